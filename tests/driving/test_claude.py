"""Claude Code itself, driven over its control protocol and through the Agent SDK, with a model that says what the test says."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from hansard.agents import agent_for, own
from hansard.agents.base import Handshake, Options
from hansard.agents.drivers.claude import Claude
from hansard.errors import AgentNotStarted, Refused
from hansard.events import control_request
from hansard.events.content import ImageBlock, TextBlock
from tests.driving.capabilities import shows
from tests.driving.claude_stage import shown_to, stage, written
from tests.driving.model import Step, Text, calls, says
from tests.driving.stage import DOT
from tests.driving.surroundings import idle, until
from tests.driving.test_codex import loud_one

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture(params=["claude", pytest.param("agent-sdk", marks=pytest.mark.all_agents)])
def agent(request: pytest.FixtureRequest) -> str:
    """Both ways to it."""
    return request.param


async def test_an_interrupt_at_a_question_withdraws_it(agent: str, tmp_path: Path) -> None:
    async with stage(agent, tmp_path, written(tmp_path / "work")) as play:
        await play.session.send("Write a note.")
        question = await play.permission_request()
        await play.session.interrupt()
        await idle(play.session)
        with pytest.raises(Refused) as refused:
            await play.session.decide(question.payload.request_id, "allow")
        assert refused.value.code == "cancelled"
        await play.ends()
        assert [payload.status for payload in play.only("turn_end")] == ["interrupted"]


@shows("setting", agent="claude")
async def test_settings_are_confirmed_or_refused(tmp_path: Path) -> None:
    async with stage("claude", tmp_path, says("One."), says("Two."), model="first-model") as play:
        await play.says("Begin.")
        await play.session.configure("set_model", model="second-model")
        await play.session.configure("set_permission_mode", permission_mode="plan")
        await play.session.configure("set_max_thinking_tokens", options={"max_thinking_tokens": 2048})
        with pytest.raises(Refused, match="bypassPermissions"):
            await play.session.configure("set_permission_mode", permission_mode="bypassPermissions")
        await play.says("Go on.")
        assert [request["model"] for request in play.model.asked] == ["first-model", "second-model"]
        state = play.session.state
        assert (state.model, state.permission_mode) == ("second-model", "plan")
        with pytest.raises(Refused) as refused:
            await play.session.configure("set_mode", mode_id="fast")
        assert refused.value.code == "unsupported"
        await play.ends()


async def test_what_was_set_holds_in_the_next_process(agent: str, tmp_path: Path) -> None:
    async with stage(agent, tmp_path, says("One."), says("Two."), model="first-model") as play:
        await play.says("Begin.")
        await play.session.configure("set_model", model="second-model")
        await play.session.configure("set_permission_mode", permission_mode="plan")
        await play.restarts()
        await play.says("Go on.")
        await play.ends()
        assert [request["model"] for request in play.model.asked] == ["first-model", "second-model"]
        assert play.session.state.permission_mode == "plan"


async def test_a_session_that_is_not_there_is_said_to_be_missing(agent: str, tmp_path: Path) -> None:
    async with stage(agent, tmp_path, resume="00000000-0000-4000-8000-000000000000") as play:
        with pytest.raises(AgentNotStarted, match="No conversation found"):
            await play.session.send("Where were we?")
        await play.ends()


async def test_a_second_message_waits_for_its_turn(agent: str, tmp_path: Path) -> None:
    async with stage(agent, tmp_path, says("First answer."), says("Second answer.")) as play:
        await play.session.send("First.")
        queued = await play.session.send("Second.")
        assert queued.type == "queue_update"
        await idle(play.session)
        await play.ends()
        said = [event.payload.text for event in play.events if event.type in ("user_message", "assistant_done")]
        assert said == ["First.", "First answer.", "Second.", "Second answer."]


async def test_a_message_in_the_middle_steers_the_turn(tmp_path: Path) -> None:
    async with stage("claude", tmp_path, written(tmp_path / "work"), says("In red, then.")) as play:
        await play.session.send("Write a note.")
        question = await play.permission_request()
        await play.session.send("In red, please.", steer=True)
        await play.session.decide(question.payload.request_id, "allow")
        await idle(play.session)
        await play.ends()
        assert "In red, please." in shown_to(play.model.asked[-1])
        assert len(play.only("turn_end")) == 1
        assert [payload.queued for payload in play.only("user_message")] == [False, True]


async def test_a_message_that_comes_too_late_to_steer_has_a_turn_of_its_own(tmp_path: Path) -> None:
    async with stage("claude", tmp_path, Step([Text("A long story " * 20)], hang=True), says("In red.")) as play:
        await play.session.send("Tell me a story.")
        await until(play.session, lambda past: bool(past.blocks))
        await play.session.send("In red, please.", steer=True)
        await until(play.session, lambda past: [waiting.text for waiting in past.agent_queue] == ["In red, please."])
        await play.session.interrupt()
        await idle(play.session)
        await play.ends()
        assert [payload.trigger for payload in play.only("turn_start")] == ["user", "user"]
        assert [payload.status for payload in play.only("turn_end")] == ["interrupted", "completed"]


async def test_a_picture_is_shown_to_the_model(agent: str, tmp_path: Path) -> None:
    async with stage(agent, tmp_path, says("A dot.")) as play:
        await play.says("What is it?", content=[ImageBlock(media_type="image/png", data=DOT)])
        await play.ends()
        shown = [block for message in play.model.asked[0]["messages"] for block in message["content"] if isinstance(block, dict)]
        assert [block["source"]["data"] for block in shown if block["type"] == "image"] == [DOT]
        assert [type(block) for block in play.only("user_message")[0].content] == [TextBlock, ImageBlock]


async def test_a_question_with_choices_is_answered(agent: str, tmp_path: Path) -> None:
    choice = {"question": "Which colour?", "header": "Colour", "multiSelect": False}
    choice |= {"options": [{"label": "Red", "description": "like fire"}, {"label": "Blue", "description": "like ice"}]}
    async with stage(agent, tmp_path, calls("AskUserQuestion", {"questions": [choice]}), says("Blue it is.")) as play:
        await play.session.send("Ask me.")
        question = await play.permission_request()
        await play.session.answer(question.payload.request_id, {"Which colour?": "Blue"})
        await idle(play.session)
        await play.ends()
        assert [payload.values for payload in play.only("answer")] == [{"Which colour?": "Blue"}]
        assert "Blue" in shown_to(play.model.asked[-1])
        assert [payload.status for payload in play.only("turn_end")] == ["completed"]


SERVER = """
import json, sys
TOOL = {"name": "weigh", "description": "Weighs", "inputSchema": {"type": "object", "properties": {}}}
for line in sys.stdin:
    asked = json.loads(line)
    results = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "demo", "version": "1"}},
        "tools/list": {"tools": [TOOL]},
        "tools/call": {"content": [{"type": "text", "text": "3 kg"}]},
    }
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": results.get(asked["method"], {})}), flush=True)
"""


async def test_prompts_tools_and_servers_are_as_asked(agent: str, tmp_path: Path) -> None:
    asked: dict[str, Any] = {
        "system_prompt": "--You are a scale; say nothing else.",
        "allowed_tools": ["mcp__demo__weigh"],
        "denied_tools": ["Write", "WebFetch"],
        "mcp_servers": {"demo": {"command": sys.executable, "args": ["-c", SERVER]}},
    }
    async with stage(agent, tmp_path, calls("mcp__demo__weigh", {}), says("3 kg."), **asked) as play:
        await play.says("Weigh it.")
        await play.ends()
        request = play.model.asked[0]
        assert "--You are a scale; say nothing else." in json.dumps(request["system"])
        assert {"Write", "WebFetch"}.isdisjoint(tool["name"] for tool in request["tools"])
        assert not play.only("permission_request")
        assert [payload.server for payload in play.only("tool_call")] == ["demo"]
        assert "3 kg" in str(play.only("tool_result")[0].result)


@pytest.mark.parametrize("action", ["accept", *(pytest.param(no, marks=pytest.mark.all_agents) for no in ("decline", "cancel"))])
async def test_a_question_of_an_mcp_server(tmp_path: Path, action: str) -> None:
    asked: dict[str, Any] = {"mcp_servers": loud_one("ask"), "allowed_tools": ["mcp__loud_one__shout"]}
    async with stage("claude", tmp_path, calls("mcp__loud_one__shout", {}), says("Fine."), **asked) as play:
        await play.session.send("Shout")
        await until(play.session, lambda past: bool(past.asked))
        (question,) = play.only("question")
        assert (question.message, question.server) == ("Which?", "loud_one")
        await play.session.answer(question.request_id, {"size": "large"} if action == "accept" else None, action)
        await idle(play.session)
        await play.ends()
        (result,) = play.only("tool_result")
        assert (action in str(result.result), "large" in str(result.result)) == (True, action == "accept")
        assert [(payload.values, payload.action) for payload in play.only("answer")] == [
            ({"size": "large"} if action == "accept" else None, action)
        ]
        assert [payload.status for payload in play.only("turn_end")] == ["completed"]


async def test_an_interrupt_at_a_question_of_an_mcp_server_withdraws_it(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"mcp_servers": loud_one("ask"), "allowed_tools": ["mcp__loud_one__shout"]}
    async with stage("claude", tmp_path, calls("mcp__loud_one__shout", {}), says("Yes?"), **asked) as play:
        await play.session.send("Shout")
        await until(play.session, lambda past: bool(past.asked))
        await play.session.interrupt()
        await idle(play.session)
        await play.says("Are you there?")
        await play.ends()
        assert [payload.status for payload in play.only("turn_end")] == ["interrupted", "completed"]


class Hooked(Claude):
    """Claude Code, told to call back before and after each tool."""

    name = "claude-hooked"

    async def handshake(self, talk: Handshake, options: Options) -> None:
        hooks = {when: [{"matcher": None, "hookCallbackIds": [when]}] for when in ("PreToolUse", "PostToolUse", "Stop")}
        await talk.call("initialize", {"hooks": hooks})


async def test_a_hook_that_calls_back_is_answered_and_has_nothing_against_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(own(), Hooked.name, Hooked())
    async with stage(Hooked.name, tmp_path, calls("Bash", {"command": "echo hooked"}), says("Done."), allowed_tools=["Bash"]) as play:
        await play.says("Run it.")
        await play.ends()
        called = [payload.params["callback_id"] for payload in play.only("control_request") if payload.method == "hook_callback"]
        assert called == ["PreToolUse", "PostToolUse", "Stop"]
        assert [payload.result for payload in play.only("control_response") if payload.method == "hook_callback"] == [{}] * 3
        assert "hooked" in str(play.only("tool_result")[0].result)
        assert [payload.status for payload in play.only("turn_end")] == ["completed"]


async def test_a_hook_of_the_users_own_can_forbid_a_tool(agent: str, tmp_path: Path) -> None:
    says_no = "echo 'Not on a Sunday.' >&2; exit 2"
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": says_no}]}]}
    async with stage(agent, tmp_path, calls("Bash", {"command": "echo hooked"}), says("Not then."), allowed_tools=["Bash"]) as play:
        place = play.around.home / ".claude/settings.json"
        place.parent.mkdir()
        place.write_text(json.dumps({"hooks": hooks}))
        await play.says("Run it.")
        await play.ends()
        (result,) = play.only("tool_result")
        assert result.is_error and "Not on a Sunday." in str(result.result)
        assert "Not on a Sunday." in shown_to(play.model.asked[-1])
        assert [payload.text for payload in play.only("assistant_done")] == ["Not then."]


async def test_a_prompt_can_be_added_to_its_own(tmp_path: Path) -> None:
    async with stage("claude", tmp_path, says("Arr."), append_system_prompt="Speak like a pirate.") as play:
        await play.says("Hello.")
        await play.ends()
        system = json.dumps(play.model.asked[0]["system"])
        assert "Speak like a pirate." in system
        assert "Claude" in system


def test_what_it_asks_that_is_no_question_to_a_person_is_answered() -> None:
    claude = agent_for("claude")

    def reply(method: str, **params: Any) -> Any:
        return claude.reply(cast("Any", control_request(method=method, params=params, request_id="r")), Options())

    assert reply("hook_callback").result == {}
    answer = reply("mcp_message", server_name="demo", message={"jsonrpc": "2.0", "id": 7, "method": "tools/list"}).result["mcp_response"]
    assert (answer["id"], "demo" in answer["error"]["message"]) == (7, True)
    assert reply("novelty") is None  # then the session says that it cannot
