"""A real agent, its model, and a witness of what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hansard.agents.base import Options
from hansard.agents.session import Session
from hansard.events import Event, PermissionRequest
from tests.adapters import only
from tests.driving.model import Model
from tests.driving.surroundings import Surroundings, idle, until
from tests.driving.witness import Witness

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A picture."""


class Stage:
    """A session with a real agent, from its start to its end."""

    def __init__(self, folder: Path, scripted: Model, agent: str, program: str, env: dict[str, str], **asked: Any) -> None:
        self.around = Surroundings(folder)
        self.model = scripted
        self.witness = Witness(program, folder)
        self.env = env
        self._agent, self._options = agent, Options(program=self.witness.program, env=dict(env), **asked)

    async def begin(self) -> None:
        """Create the session."""
        self.session = await self.around.session(self._agent, self._options)

    @property
    def events(self) -> list[Event]:
        return list(self.around.store[self.session.id].read())

    def only(self, kind: str) -> list[Any]:
        return only(self.events, kind)

    async def says(self, text: str, **more: Any) -> None:
        """Say it and wait for the end of the turn."""
        await self.session.send(text, **more)
        await idle(self.session)

    async def permission_request(self) -> PermissionRequest:
        """Wait for a permission question."""
        await until(self.session, lambda past: bool(past.asked))
        return next(event for event in reversed(self.events) if isinstance(event, PermissionRequest))

    async def restarts(self) -> None:
        """Close the session, and take it up again as another process would."""
        await self.session.close()
        self.session = await Session.open(self.around.store, self.session.id, env=self.around.env | self.env)

    async def ends(self) -> None:
        """Stop, and look at the record."""
        await self.session.close()
        self.witness.confirms(self.session)
