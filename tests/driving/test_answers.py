"""One question to every real agent: an answer of the right shape, of a wrong one, one that takes too long, and one after a denial."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import hansard
from hansard.agents import agent_for
from hansard.agents.base import Options
from hansard.agents.execute import ExecuteResult, ExecutionStream
from hansard.events import AssistantChunk, UserMessage
from tests.driving.model import Model, Step, Text, calls, model, says
from tests.driving.real_agents import AGENTS, CLAUDES, IN_EVERY_RUN, WRITES, execute_options
from tests.driving.surroundings import PATIENCE, Surroundings
from tests.driving.test_acp import BESIDE, LONG, conversation
from tests.renormalized import check_again

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


class Point(msgspec.Struct):
    x: int


SCHEMA = msgspec.json.schema(Point)
BY_TOOL = {*CLAUDES, "claude-oneshot", "opencode"}
"""Agents whose model gives its structured output by a tool."""
SILENT = {"codex-exec", "opencode-oneshot"}
"""Agents that show a text when it is complete."""
PROMPT = "Where is x?"


def every(*always: str) -> pytest.MarkDecorator:
    """Every agent; of those that `make test` has, these always run."""
    return pytest.mark.parametrize(
        "agent", [pytest.param(name, marks=[] if name in always else [pytest.mark.all_agents]) for name in AGENTS]
    )


def is_step(request: dict[str, Any]) -> bool:
    """Whether a request is about the conversation; agents ask for titles and the like beside it."""
    asked = request.get("tools") or request.get("model") == "scripted" or request.get("response_format") or request.get("contents")
    return bool(asked) and not any(words in json.dumps(conversation(request)[-1:]) for words in BESIDE)


def answer(agent: str, x: Any) -> Step:
    """An answer of the model, by the way that the agent has for it."""
    return calls("StructuredOutput", {"x": x}) if agent in BY_TOOL else says(json.dumps({"x": x}))


async def ask(agent: str, served: Model, around: Surroundings, **more: Any) -> ExecuteResult:
    async with asyncio.timeout(2 * PATIENCE):
        return await hansard.execute_async(agent, PROMPT, **(execute_options(agent, served, around) | more))


def by_author(result: ExecuteResult, author: str) -> list[str]:
    said = [event for event in result.events if isinstance(event, UserMessage) and event.direction == "out"]
    return [event.payload.text for event in said if event.payload.author == author]


@every(*IN_EVERY_RUN)
async def test_an_answer_of_the_right_shape(agent: str, tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    with model(answer(agent, 4), is_step=is_step) as served:
        result = await ask(agent, served, around, schema=Point)
    assert (result.ok, result.data, result.status, result.exit_code, result.error) == (True, Point(4), "completed", 0, None)
    assert json.loads(result.text) == {"x": 4}
    assert by_author(result, "human") == [PROMPT]
    (request,) = served.asked
    native = agent_for(agent).native_schema(Options(schema=SCHEMA))
    in_words = "valid against this JSON Schema" in json.dumps(conversation(request))
    assert in_words == (native is None)
    assert bool(by_author(result, "harness")) == (native is None)
    if native is not None:
        apart = {key: value for key, value in request.items() if value is not conversation(request)}
        assert '{"x": {"type": "integer"}}' in json.dumps(apart)
    await asyncio.to_thread(check_again, around.store, result.session_id)


@every("claude", "codex", "openai-chat")
async def test_an_answer_of_a_wrong_shape_is_asked_for_again(agent: str, tmp_path: Path) -> None:
    with model(answer(agent, "four"), answer(agent, 4), is_step=is_step) as served:
        result = await ask(agent, served, Surroundings(tmp_path), schema=Point)
    assert (result.ok, result.data, result.exit_code) == (True, Point(4), 0)
    assert len(served.asked) == 2
    assert by_author(result, "human") == [PROMPT]


@every("claude", "codex", "openai-chat")
async def test_an_answer_of_a_wrong_shape_is_asked_for_once_more_and_no_oftener(agent: str, tmp_path: Path) -> None:
    wrong = says('{"x": "four"}')
    asked_for = 4 if agent in BY_TOOL - {"opencode"} else 2  # Claude Code itself asks again, once a turn, for the tool to be called
    with model(*[wrong] * asked_for, is_step=is_step) as served:
        result = await ask(agent, served, Surroundings(tmp_path), schema=Point)
    assert (result.ok, result.status, result.data) == (False, "error", None)
    assert result.text == '{"x": "four"}' and result.error is not None
    assert len(served.asked) == asked_for
    assert by_author(result, "human") == [PROMPT]


@every("claude", "agent-sdk", "codex", "openai-chat")
async def test_when_the_time_is_up_the_answer_is_what_was_said_until_then(agent: str, tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    with model(Step([Text(LONG)], hang=True), is_step=is_step) as served:
        async with hansard.stream(agent, PROMPT, timeout=10 * PATIENCE, **execute_options(agent, served, around)) as events:
            over = asyncio.create_task(run_out_of_time(agent, served, events))
            async for _ in events:
                pass
            await over
    result = events.result
    assert (result.ok, result.status, result.data) == (False, "interrupted", result.text)
    assert LONG.startswith(result.text) and bool(result.text) == (agent not in SILENT)
    assert result.error is not None and (result.error.code, result.error.error_source) == ("aborted", "hansard")


async def run_out_of_time(agent: str, served: Model, events: ExecutionStream) -> None:
    """Let the time be up once the model hangs, and something of its answer was seen if the agent shows it."""

    async def hangs() -> None:
        while not served.hanging.is_set():
            await asyncio.sleep(0.05)
        while agent not in SILENT and not any(isinstance(event, AssistantChunk) for event in events.exchange.events):
            await asyncio.sleep(0.05)

    await asyncio.wait_for(hangs(), 2 * PATIENCE)
    limit = events.exchange.limit
    assert limit is not None
    limit.reschedule(asyncio.get_running_loop().time())


@pytest.mark.parametrize(
    "agent", [pytest.param(name, marks=[] if name in ("claude", "codex") else [pytest.mark.all_agents]) for name in WRITES]
)
async def test_a_valid_answer_after_a_denied_tool_is_an_answer(agent: str, tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    with model(Step([WRITES[agent](around.work / "note")]), answer(agent, 4), is_step=is_step) as served:
        result = await ask(agent, served, around, schema=Point)
    assert [event.payload.decision for event in result.events if event.type == "permission_response"] == ["deny"]
    assert not (around.work / "note").exists()
    assert (result.ok, result.data, result.status, result.exit_code, result.error) == (True, Point(4), "completed", 0, None)
