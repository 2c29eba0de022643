"""How an agent takes over a conversation that another one began: as a session file of its own, or in words."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from hansard.adapters.schema_instruction import is_instruction
from hansard.events import Event, session_lifecycle
from hansard.events.content import TextBlock
from hansard.events.summary import HANDOFF_WRITTEN
from hansard.projections.base import Projected
from hansard.projections.formats.claude_session import ClaudeSession
from hansard.projections.formats.codex_rollout import CodexRollout
from hansard.projections.formats.prompt import Prompt
from hansard.projections.output import written


class Handoff(Struct, frozen=True):
    """How an agent gets to know a conversation that it takes over."""

    as_text: bool = False
    """Whether the conversation must be sent with the first message."""
    session_id: str | None = None
    """The agent's own id of the session to resume."""
    file: Path | None = None
    """The file of that session."""
    size: int = 0
    frames: int = 0
    digest: str = ""
    """The SHA-256 of the file as hansard wrote it. A long conversation is many megabytes, which are hashed where they are written."""

    def event(self, agent: str) -> Event:
        """Returns the event that remembers the file, so that it is never taken for a conversation of its own."""
        return session_lifecycle(
            subtype=HANDOFF_WRITTEN,
            provider_session_id=self.session_id,
            path=str(self.file),
            size=self.size,
            detail={"agent": agent, "frames": self.frames, "sha256": self.digest},
        )

    def discard(self) -> None:
        """Removes the file, if the agent did not take over."""
        if self.file is not None:
            self.file.unlink(missing_ok=True)


def write_handoff_file(form: ClaudeSession | CodexRollout, events: Iterable[Event], home: Path) -> Handoff:
    """Writes the session file where the agent looks for it, for this user alone; none if nothing was said yet."""
    data = b"".join(written(Projected(form, without_instructions(events)), form.output))
    if not data:
        return Handoff()
    place = home / form.path
    for folder in reversed([folder for folder in place.parents if not folder.exists()]):
        folder.mkdir(0o700, exist_ok=True)
    with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(data)
    return Handoff(session_id=form.session_id, file=place, size=len(data), frames=data.count(b"\n"), digest=sha256(data).hexdigest())


def handoff_block(events: Iterable[Event]) -> TextBlock | None:
    """The conversation in words, to be sent before the next message; None if nothing was said yet.

    An embedded resource of ACP would not do: Gemini and Claude put it after the message, Copilot into a file that its model does not see.
    """
    text = "".join(Projected(Prompt(), without_instructions(events)))
    return TextBlock(text) if text else None


def without_instructions(events: Iterable[Event]) -> Iterator[Event]:
    """Yields the events without the schemas of earlier answers."""
    return (event for event in events if not is_instruction(event))
