"""What is particular to the Agent SDK in process; the tests it shares with Claude Code are in test_claude.py."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

import pytest

from hansard.agents import agent_for
from hansard.agents.base import Options
from hansard.agents.drivers.agent_sdk import Pipe
from hansard.errors import AgentNotStarted, Refused
from tests.driving.capabilities import shows
from tests.driving.claude_stage import stage
from tests.driving.model import calls, says
from tests.driving.test_codex import loud_one

pytestmark = pytest.mark.anyio


@pytest.mark.slow
@shows("setting", agent="agent-sdk")
async def test_settings_are_calls_of_the_client(tmp_path: Path) -> None:
    async with stage("agent-sdk", tmp_path, says("One."), says("Two."), model="first-model") as play:
        await play.says("Begin.")
        await play.session.configure("set_model", model="second-model")
        with pytest.raises(Refused, match="bypassPermissions"):
            await play.session.configure("set_permission_mode", permission_mode="bypassPermissions")
        with pytest.raises(Refused) as refused:
            await play.session.configure("set_max_thinking_tokens", options={"max_thinking_tokens": 2048})
        assert refused.value.code == "unsupported"
        await play.says("Go on.")
        await play.ends()
        assert [request["model"] for request in play.model.asked] == ["first-model", "second-model"]
        assert [payload.ok for payload in play.only("control_response")] == [True, True, False]


@pytest.mark.slow
@pytest.mark.all_agents
async def test_what_an_mcp_server_asks_the_sdk_declines_itself(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"mcp_servers": loud_one("ask"), "allowed_tools": ["mcp__loud_one__shout"]}
    async with stage("agent-sdk", tmp_path, calls("mcp__loud_one__shout", {}), says("Fine."), **asked) as play:
        await play.says("Shout")
        await play.ends()
        assert not play.only("question")
        assert "accept" not in str(play.only("tool_result")[0].result)
        assert [payload.status for payload in play.only("turn_end")] == ["completed"]


def test_without_the_sdk_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    with pytest.raises(AgentNotStarted, match=r"hansard\[agent-sdk\]"):
        agent_for("agent-sdk").find(Options())


async def test_a_line_that_is_no_message_goes_on_the_record_and_not_to_the_sdk() -> None:
    pipe = Pipe(cast("Any", None))
    assert pipe.feed(b'noise\n{"type":"sys') == [b"noise"]
    assert pipe.feed(b'tem"}\n[1]\n') == [b"[1]"]
    pipe.end()
    assert [message async for message in pipe.read_messages()] == [{"type": "system"}]
