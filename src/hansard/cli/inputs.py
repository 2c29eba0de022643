"""SESSION or FILE: what a person names, as events."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hansard.cli.options import AUTO, Source
from hansard.errors import InvalidSessionId, UnknownSession, UsageError

if TYPE_CHECKING:
    from hansard.events import Event

MIN_PREFIX = 4


def session_of(root: Path, name: str) -> str | None:
    """The session of that name, or the only one that begins so. A file of the same name is reached with ``./``."""
    from hansard.store.files import has_log
    from hansard.store.ids import check_session_id

    try:
        if has_log(root / check_session_id(name)):
            return name
    except InvalidSessionId:
        return None
    if len(name) < MIN_PREFIX or not root.is_dir():
        return None
    found = sorted(entry for entry in os.listdir(root) if entry.startswith(name) and has_log(root / entry))
    if len(found) > 1:
        raise UsageError(f"{len(found)} sessions begin with {name!r}; say more of the id")
    return found[0] if found else None


def need_session(root: Path, name: str) -> str:
    """The session of that name; an error if there is none."""
    found = session_of(root, name)
    if found is None:
        raise UnknownSession(name)
    return found


def session_or_file(root: Path, name: str) -> tuple[str | None, Source | None]:
    """What was named: a session of the store, or a file (or ``-``)."""
    session = session_of(root, name)
    if session is not None:
        return session, None
    if name != "-" and not os.path.lexists(name) and not {"/", os.sep, "."} & set(name):
        raise UnknownSession(name)
    return None, Source(name)


def events_of_file(source: Source, format: str = AUTO) -> Iterator[Event]:
    """The events of a file: a log of ours as it is, anything else normalized."""
    from hansard.cli.normalize import events_of
    from hansard.normalizing import OWN_LOG, events_of_log

    if format == AUTO and source.head().startswith(OWN_LOG):
        return events_of_log(source.chunks())
    return events_of(source, source.format(format))
