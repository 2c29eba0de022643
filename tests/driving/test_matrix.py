"""Every story with every real agent: whatever hansard says of it is what the user did and the scripted model saw and answered."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hansard import events as ev
from hansard.agents import agent_for
from hansard.agents.execute import ExecuteResult
from hansard.agents.pump import STOPPED
from hansard.events import AgentCallback, AgentMessage, Event, Interrupt, PermissionRequest, PermissionResponse, Process
from hansard.testing import check_truth
from hansard.testing.truth import STORIES, Loss
from tests.comparison import Session
from tests.driving.capabilities import CANNOT as LACKING
from tests.driving.capabilities import shows
from tests.driving.matrix import CALLBACK, LONG, MATRIX, Cell, play
from tests.driving.model import Step, Text, request_text
from tests.driving.real_agents import AGENTS, BY_SCHEMA, BY_TOOL, FAMILIES, MODELS, SILENT
from tests.driving.witness import unknown, whole
from tests.page.chromium import Watched
from tests.page.test_truth_shown import read_page
from tests.renormalized import check_again
from tests.surfaces import SURFACES

MESSAGES = ("agent message waited for", "agent message not waited for")
CANNOT: dict[tuple[str, str], str] = {
    (story, agent): "it starts MCP servers beside the session, and nothing says when their tools are there"
    for story in MESSAGES
    for agent in ("copilot", "qwen")
} | {
    ("always", "claude-acp"): "it offers no such answer for this command",
    ("always", "qwen-io"): "its wire has no such answer",
}
"""Cells that an agent cannot have although its driver declares nothing against it, and why."""
TOLD_OTHERWISE: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {
    ("interrupted in a tool", "codex-exec"): ("it shows a call when it is over", {"results": []}),
    ("interrupted in a tool", "gemini"): ("it reports a canceled call as completed", {"results": [False]}),
    ("interrupted in a tool", "opencode-oneshot"): ("it shows a call when it is over", {"results": []}),
    ("always", "gemini"): ("it asks again", {"requests": 2, "decisions": [("allow", "somebody")] * 2}),
}
"""What a program itself reports otherwise than it happened, and why."""
LAST_RESPONSE = Loss(format="acp", scenarios=[], kind="usage", what="message", reason="it counts the last response of a turn alone")
LOSSES = {(story, "opencode-acp"): [LAST_RESPONSE] for story in ("tool allowed", "always", "switch", *MESSAGES[:1])}
"""What a program leaves out of its wire."""


def why_not(story: str, agent: str) -> str | None:
    """Returns why an agent cannot have a story; None if it can."""
    capabilities = agent_for(agent).capabilities
    lacking = [need for need in MATRIX[story].needs if not getattr(capabilities, need)]
    if lacking:
        return f"its driver declares no {', '.join(lacking)}"
    if MATRIX[story].tools and agent in MODELS:
        return "a model without an agent has no tools"
    return CANNOT.get((story, agent))


CELLS = {(story, agent): why_not(story, agent) for story in MATRIX for agent in AGENTS}
"""Every cell, and the reason of those that there cannot be."""


def _param(story: str, agent: str) -> Any:
    shown = shows(*(capability for capability in MATRIX[story].shows if (agent, capability) not in LACKING), agent=agent)
    return pytest.param(
        story, agent, id=f"{agent}-{story}", marks=[shown] if agent in MATRIX[story].often else [shown, pytest.mark.all_agents]
    )


@pytest.mark.slow
@pytest.mark.parametrize(("story", "agent"), [_param(*cell) for cell, reason in CELLS.items() if reason is None])
def test_cell(story: str, agent: str, tmp_path: Path, renderer: Watched) -> None:
    cell = Cell(story, agent, tmp_path)
    asyncio.run(play(cell))
    check(cell, renderer)


def check(cell: Cell, renderer: Watched) -> None:
    """Everything that is said of a cell is true."""
    events, truth = cell.events, cell.truth
    whole(cell.session) if cell.witness is None else cell.witness.confirms(cell.session)
    check_again(cell.around.store, cell.session.id)
    found = check_truth(events, truth, cell.wire, losses=LOSSES.get((cell.name, cell.agent), []))
    session = Session(f"{cell.name}/{cell.agent}", cell.session.agent.format, events, truth, found)
    _, otherwise = TOLD_OTHERWISE.get((cell.name, cell.agent), ("", {}))
    assert facts(session.told, events) == expected(cell) | otherwise
    assert (session.strange_prompts(), session.repeated_answers()) == ([], [])
    check_arguments(cell, events)
    check_requests(cell)
    check_results(cell)
    surfaces = {name: read(events) for name, read in SURFACES.items()} | {"page": read_page(renderer, events)}
    false = [f"{surface}: {words}" for surface, told in surfaces.items() for words in session.false_statements(told)]
    assert not false, "\n".join(false)


def facts(told: dict[str, Any], events: list[Event]) -> dict[str, Any]:
    """What the log says."""
    return {name: told[name] for name in ("prompts", "ends", "codes")} | {
        "answers": [text for text in told["answers"] if text not in told["cut"]],
        "cut": len(told["cut"]),
        "results": [failed for _, failed in told["results"]],
        "requests": sum(isinstance(event, PermissionRequest) for event in events),
        "decisions": [(event.payload.decision, event.payload.by) for event in events if isinstance(event, PermissionResponse)],
        "interrupts": [event.payload.reason for event in events if isinstance(event, Interrupt)],
        "messages": [event.payload.message for event in events if isinstance(event, AgentMessage)],
        "callbacks": [event.payload.result for event in events if isinstance(event, AgentCallback)],
    }


def expected(cell: Cell) -> dict[str, Any]:
    """What it should say, as the script has it."""
    turns, scripted = cell.turns, cell.truth["turns"]
    decisions = [(decision, "somebody") for turn in turns for decision in turn.decisions]
    return {
        "prompts": [turn.prompt for turn in turns if turn.prompt],
        "ends": [turn["end"] for turn in scripted],
        "codes": [turn["error_code"] for turn in scripted],
        "answers": [item["text"] for turn in scripted for item in turn["model"] if "text" in item],
        "cut": sum(step.hang and cell.agent not in SILENT for turn in turns for step in turn.script),
        "results": [failed for turn in turns for failed in turn.results],
        "requests": len(decisions),
        "decisions": decisions,
        "interrupts": [{"interrupt": "user_cancel", "timeout": "timeout"}[turn.stop] for turn in turns if turn.stop],
        "messages": ["think"] * cell.story.by_message,
        "callbacks": [CALLBACK] * cell.story.by_message,
    }


def check_arguments(cell: Cell, events: list[Event]) -> None:
    """What a person says is no argument of a program, which other users of the machine could read, and nothing runs because of it."""
    arguments = [argument for event in events if isinstance(event, Process) for argument in event.payload.argv or []]
    assert not [argument for argument in arguments for turn in cell.turns if turn.prompt and turn.prompt in argument]
    assert not (cell.around.work / "no").exists()


def check_requests(cell: Cell) -> None:
    """The model saw the conversation so far and then the prompt, and every call with its result."""
    said: list[str] = []
    asked = iter(cell.served.asked)
    for turn in cell.turns:
        request = next(asked)
        in_order([*said, turn.prompt or CALLBACK], request_text(request))
        assert not (agent_for(cell.agent).composes and LONG[:40] in request_text(request))  # what was cut off is no answer
        if turn.stop is None:  # of a turn that was stopped, agents remember more or less
            said += [turn.prompt or CALLBACK, *(item.text for step in turn.script for item in step.items if isinstance(item, Text))]
        pairs_are_valid(request)
        if turn.shape is not None:
            assert schema_places(request) == {"tool" if cell.agent in BY_TOOL else "option" if cell.agent in BY_SCHEMA else "prompt"}
        for _ in (*turn.script[1:], *(turn.again or [])):
            next(asked, None)
    reasons = [turn.reason for turn in cell.turns if turn.reason is not None]
    assert [reason for reason in reasons if reason not in request_text(cell.served.asked[-1])] == []
    assert cell.served.taken == len(cell.served.script) or "error" in expected(cell)["ends"]


def schema_places(request: dict[str, Any]) -> set[str]:
    """Where a model was told the shape of the answer."""
    texts = {
        "tool": json.dumps(request.get("tools")),
        "option": json.dumps([request.get("response_format"), request.get("text")]),
        "prompt": request_text(request),
    }
    words = {"prompt": "valid against this JSON Schema"}
    return {place for place, text in texts.items() if words.get(place, '{"x": {"type": "integer"}}') in text}


def in_order(facts: list[str], text: str) -> None:
    position = 0
    for fact in facts:
        position = text.find(json.dumps(fact, ensure_ascii=False)[1:-1], position) + 1
        assert position, f"{fact!r} is not in its place in {text}"


def check_results(cell: Cell) -> None:
    """`hansard.execute` returned what the model answered."""
    agent, beside = cell.agent, sum("claude" in str(request.get("model")) for request in cell.served.beside)
    for turn, result in zip(cell.turns, cell.results, strict=not cell.story.by_message):
        agent = turn.agent or agent
        if turn.wrong is not None:
            assert (result.ok, result.status, result.data, result.text) == (False, "error", None, turn.wrong) and result.error is not None
            continue
        status, code = STORIES[turn.story]
        script = [step for step in (*turn.script, *(turn.again or [])) if step.status == 200]
        assert (result.ok, result.status) == (status == "completed", status)
        assert (None if result.error is None else result.error.code) == code
        assert result.exit_code == 0 or not result.ok
        assert result.data == (result.text if turn.shape is None else turn.data)
        assert [text for text in user_texts(result) if text in [other.prompt for other in cell.turns]] == [turn.prompt]
        used = (result.usage.input_tokens, result.usage.output_tokens)
        is_counted = turn.stop is None and (cell.name, cell.agent) not in LOSSES
        if is_counted and used != (None, None):
            beside -= count_beside(used, len(script), agent)
        if turn.shape is None:
            check_text(result.text, script, cell.agent in SILENT)
    assert beside >= 0, "more calls are counted than were answered"


def count_beside(used: tuple[int | None, int | None], steps: int, agent: str) -> int:
    """Returns how many answers a turn counts that are no steps of the conversation.

    Claude asks for titles over ACP; the running total of whatever resumes its session next has their tokens.
    """
    count = (used[0] or 0) // 10 - steps
    assert used == (10 * (steps + count), 5 * (steps + count)), f"{used} of {steps} answers"
    assert count == 0 or (count > 0 and FAMILIES[agent] == "claude"), f"{used} of {steps} answers"
    return count


def test_a_line_that_was_cut_off_when_hansard_stopped_the_program_is_not_unknown() -> None:
    cut = ev.raw(reason="invalid_json")
    assert unknown([cut, ev.process(event="exited", text=STOPPED)]) == []
    assert unknown([cut, ev.process(event="exited")]) == [cut]
    assert unknown([cut, ev.turn_end("completed"), ev.process(event="exited", text=STOPPED)]) == [cut]


def test_calls_beside_the_conversation_are_expected_of_claude_alone() -> None:
    assert (count_beside((20, 10), 2, "opencode"), count_beside((20, 10), 1, "claude")) == (0, 1)
    for used, steps, agent in (((20, 10), 1, "opencode"), ((0, 0), 1, "claude"), ((20, 5), 1, "claude")):
        with pytest.raises(AssertionError):
            count_beside(used, steps, agent)


def user_texts(result: ExecuteResult) -> list[str]:
    messages = [message["content"] for message in result.messages if message["role"] == "user"]
    return [block["text"] for content in messages for block in content if block["type"] == "text"]


def check_text(text: str, script: list[Step], silent: bool) -> None:
    """The text of an answer is the last that the model gave, or as much of it as was seen."""
    if script and script[-1].hang:
        assert LONG.startswith(text) and bool(text) != silent
    else:
        said = [item.text for step in script for item in step.items if isinstance(item, Text)]
        assert text == (said[-1] if said else "")


def pairs_are_valid(request: dict[str, Any]) -> None:
    """Every call has one result, after it."""
    made: list[str] = []
    given: list[str] = []
    for item in request.get("messages", request.get("input", [])):
        content = item.get("content")
        blocks = [item, *(item.get("tool_calls") or []), *(content if isinstance(content, list) else [])]
        for block in blocks:
            match block:
                case {"type": "tool_use" | "function", "id": name} | {"type": "function_call", "call_id": name}:
                    made.append(name)
                case {"type": "tool_result", "tool_use_id": name} | {"type": "function_call_output", "call_id": name}:
                    assert name in made
                    given.append(name)
                case {"role": "tool", "tool_call_id": name}:
                    assert name in made
                    given.append(name)
                case _:
                    pass
    assert sorted(made) == sorted(given)
