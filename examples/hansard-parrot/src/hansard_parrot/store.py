"""``parrot:///folder``: the store of a folder, where everything that is said aloud is also written to ``said.txt``, to be read as it comes.

A store that keeps its logs elsewhere implements all of `hansard.Store`; this one only adds to hansard's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from hansard.events import AssistantDone, Event
from hansard.store import JsonlStore


class Nest(JsonlStore):
    """A store that repeats."""

    def append(self, session_id: str, events: Iterable[Event]) -> list[Event]:
        """Write all of the events or none, then repeat what was said."""
        written = super().append(session_id, events)
        words = "".join(f"{event.payload.text}\n" for event in written if isinstance(event, AssistantDone))
        if words:
            with (self.root / "said.txt").open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(words)
        return written


def open_nest(address: str) -> Nest:
    """The store at an address."""
    return Nest(Path(unquote(urlsplit(address).path)))
