"""What the forms share that an agent resumes from: an id that is always the same for a session, where it was, and times as text."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import NAMESPACE_URL, UUID, uuid5

from hansard.events import Event, SessionInit
from hansard.events.times import to_datetime

LAST = datetime(9999, 12, 31, tzinfo=UTC)


class ResumeTarget:
    """Where a session is: its id for another agent, and its folder. Derived from the log, so that the same log gives the same file."""

    def __init__(self, cwd: str | None, name: str | None) -> None:
        self._given = cwd
        self._name = name
        self._found: str | None = None
        self._root: UUID | None = None
        self.model: str | None = None

    def see(self, event: Event, kind: str) -> None:
        """The first event names the session; the agent's own words say where it is."""
        if self._root is None:
            self._root = uuid5(NAMESPACE_URL, f"hansard:{kind}:{event.session_id}:{event.id}")
        if isinstance(event, SessionInit):
            self._found = self._found or event.payload.cwd
            self.model = event.payload.model or self.model

    @property
    def session_id(self) -> str:
        """The id under which the other agent knows the session."""
        return self._name or str(self._root or uuid5(NAMESPACE_URL, "hansard:"))

    @property
    def cwd(self) -> str:
        """The folder to go on in."""
        return self._given or self._found or "/"

    def id(self, number: int) -> str:
        """The id of one line."""
        return str(uuid5(self._root or NAMESPACE_URL, str(number)))


def iso_time(event: Event) -> str:
    """The time of an event as these files have it."""
    try:
        time = to_datetime(event.timestamp)
    except (OverflowError, ValueError, OSError):  # an odd log: later than any calendar
        time = LAST
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z"
