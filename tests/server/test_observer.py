"""The play of bad-input/permission that is about roles: who may only look cannot approve, whatever it says of itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.driving.puppet import Puppet
from tests.driving.test_permissions import PLAYS, ROLES
from tests.proof import proves
from tests.server.served import command, eventually, served

pytestmark = pytest.mark.anyio


@proves("S-05")
@pytest.mark.parametrize("name", sorted(ROLES))
async def test_play(name: str, tmp_path: Path):
    play = PLAYS[name]
    async with served(tmp_path / "store") as here, Puppet(tmp_path) as puppet:
        agent, options = puppet.agent()
        options.cwd = str(tmp_path)
        session = await here.hub.create(agent, options)
        await session.start()
        await puppet.begins()
        async with here.socket("observer") as peer, here.http("observer") as http:
            told = ""
            for step in play["steps"]:
                if step["do"] == "agent_asks":
                    request = {"subtype": "can_use_tool", "tool_name": step["tool"], "input": step["input"]}
                    await puppet.says(type="control_request", request_id=step["id"], request=request)
                    await eventually(lambda: bool(session.state.asked))
                else:
                    asked = session.state.asked[step["id"]].payload
                    reply = {"requestId": step["id"], "inputHash": asked.input_hash, "decision": step["decision"]}
                    told = (await peer.command(session.id, "permission_response", "c1", **reply))["code"]
                    for extra in ({}, {"role": "participant"}):
                        answer = await http.post(
                            f"/api/sessions/{session.id}/commands?role=participant",
                            json=command("permission_response", "c2", **reply) | extra,
                            headers={"X-Role": "participant"},
                        )
                        assert answer.status_code == 403
            assert told == play["expect"]["client_gets"]
            await asyncio.sleep(0.1)
            assert [frame for frame in puppet.heard if frame["type"] == "control_response"] == play["expect"]["agent_gets"]
            assert list(session.state.asked) == ["p1"]
