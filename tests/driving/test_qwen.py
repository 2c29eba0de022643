"""Qwen Code, both ways, against a scripted model: what the matrix does not have."""

from __future__ import annotations

import pytest

from hansard.agents.session import Session
from tests.driving.capabilities import shows
from tests.driving.model import Model, model, says
from tests.driving.test_oneshots import QWEN, ends, turn
from tests.driving.witness import Around

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def open_session(around: Around, server: Model) -> Session:
    return await QWEN.session(around, server, agent="qwen-io", permission_mode="default")


@shows("setting", agent="qwen-io")
async def test_a_permission_mode_is_changed(around: Around) -> None:
    with model(says("Shorter.")) as server:
        session = await open_session(around, server)
        await session.start()
        await session.configure("set_permission_mode", permission_mode="yolo")
        await turn(session, "Shorter.")
        await session.close()
    assert ends(session) == ["completed"]
    assert session.state.permission_mode == "yolo"
