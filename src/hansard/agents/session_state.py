"""The state of a session in which agents run: the fold of the log, with the options of its launch decoded."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, field

from hansard.agents.base import Options
from hansard.events import decoder
from hansard.events.state import State
from hansard.events.structs import prepare


class Launch(Struct, rename="camel", kw_only=True):
    """Which agent runs, and how it was started."""

    agent: str
    options: Options
    restart_count: int = field(default=1, name="run")
    """How often it was started; 0 if it was chosen and not started yet. ``run`` is its name in the log."""
    needs_handoff: bool = field(default=False, name="untold")
    """Whether the agent does not know the conversation yet. ``untold`` is its name in the log."""


class SessionState(State):
    """The fold. Options are defined by agents, so only here can a launch be decoded."""

    launch: Launch | None = None

    def decode_launch(self, detail: Any) -> Launch:
        """Returns the launch that an event records."""
        return msgspec.convert(detail, Launch)


prepare(globals(), decoder.decoder)
