"""``parrot:///folder``: the store of a folder, where everything that is said aloud is also written to ``said.txt``, to be read as it comes.

A store that keeps its logs elsewhere implements `hansard.Store` and `hansard.Log`; this one only adds to hansard's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from hansard.events import AssistantDone, Event
from hansard.store import FolderLog, JsonlStore


class Nest(JsonlStore):
    """A store that repeats."""

    def __getitem__(self, session_id: str) -> NestLog:
        """Returns the log of a session."""
        return NestLog(self.writers, session_id)


class NestLog(FolderLog):
    """A log that repeats."""

    def append(self, events: Iterable[Event]) -> list[Event]:
        """Writes all of the events or none, then repeats what was said."""
        written = super().append(events)
        words = "".join(f"{event.payload.text}\n" for event in written if isinstance(event, AssistantDone))
        if words:
            with (self.folder.parent / "said.txt").open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(words)
        return written


def open_nest(address: str) -> Nest:
    """The store at an address."""
    return Nest(Path(unquote(urlsplit(address).path)))
