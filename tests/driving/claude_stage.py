"""What the tests of Claude Code and of its SDK share: the real program, its model, and what must hold of the record in the end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec

from hansard.adapters.normalize import normalize
from hansard.agents.session import Session
from hansard.projections import project
from tests.driving import stage as any_stage
from tests.driving.model import Model, Step, calls, model
from tests.driving.surroundings import QUIET_CLAUDE, claude_program
from tests.driving.witness import whole


class Stage(any_stage.Stage):
    """A real Claude Code, its model, and a witness of what they say."""

    def __init__(self, agent: str, folder: Path, scripted: Model, **asked: Any) -> None:
        super().__init__(folder, scripted, agent, claude_program(), QUIET_CLAUDE, base_url=scripted.url, **asked)
        self.agent = agent

    async def ends(self) -> None:
        """Stop, and look at the record."""
        await self.session.close()
        whole(self.session)
        if self.agent != "agent-sdk":
            self.witness.confirms(self.session)
        else:
            replays(self.session)


@asynccontextmanager
async def stage(agent: str, folder: Path, *script: Step, **asked: Any) -> AsyncIterator[Stage]:
    """Raise the curtain."""
    with model(*script) as scripted:
        play = Stage(agent, folder, scripted, **asked)
        await play.begin()
        yield play


def replays(session: Session) -> None:
    """What the SDK gave and was told, read again from the record, says the same."""
    events = list(session.recorder.log.read())
    recording = b"".join(msgspec.json.encode(line) + b"\n" for line in project(events, "recording"))
    live = [event for event in events if event.frame is not None and not event.synthetic]
    again = [event for event in normalize(BytesIO(recording), session.agent.format) if not event.synthetic]
    assert [event.type for event in again] == [event.type for event in live]


def written(folder: Path) -> Step:
    """The model writes a note."""
    return calls("Write", {"file_path": str(folder / "note.txt"), "content": "a note"})


def shown_to(request: dict[str, Any]) -> str:
    """All that the model was shown, as text."""
    return json.dumps(request["messages"])
