"""A link to a running agent: what is heard of it, and how it is told something. A process is one; so is a connection to a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from msgspec import Struct

from hansard.events import ErrorInfo


class Started(Struct, frozen=True):
    """A process runs."""

    argv: list[str]
    pid: int


class Output(Struct, frozen=True):
    """Bytes of the agent's wire, or what it complains of beside it."""

    data: bytes
    is_stderr: bool = False
    status: int | None = None
    """The HTTP status of the answer that this is of."""
    retry_after_ms: int | None = None
    """When that answer says to ask again."""


class OutputClosed(Struct, frozen=True):
    """The agent says nothing more, though its process may run on."""


class Exited(Struct, frozen=True):
    """The process has exited, and with it ``orphans`` processes that it left running. Without code and signal, its end was not seen."""

    exit_code: int | None
    signal: int | None
    orphans: int = 0
    reason: str | None = None
    """Why it was ended, if the link itself did that."""


class ConnectionClosed(Struct, frozen=True):
    """A connection without a process of ours is over; ``error`` says what was wrong with it, if the wire itself did not."""

    error: ErrorInfo | None = None


TransportEvent = Output | OutputClosed | Exited | ConnectionClosed


class Transport(Protocol):
    """Iterate over it once, to its end."""

    @property
    def started(self) -> Started | None:
        """The process that was started for it, if one was."""
        ...

    def __aiter__(self) -> AsyncIterator[TransportEvent]: ...

    async def send(self, data: bytes) -> None:
        """Give the agent a frame, or raise `AgentGone`."""
        ...

    def interrupt(self) -> None:
        """Stop what it is doing from outside, for an agent that cannot be told."""
        ...

    async def stop(self) -> None:
        """End it. Twice is once."""
        ...
