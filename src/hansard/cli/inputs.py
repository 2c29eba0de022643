"""SESSION or FILE: what a person names, as events."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hansard.cli.options import AUTO, Source
from hansard.errors import AmbiguousSession, InvalidSessionId, UnknownSession

if TYPE_CHECKING:
    from hansard.events import Event
    from hansard.store import StoreLocation


def session_of(root: StoreLocation, name: str) -> str | None:
    """The session with this id, or this id of the agent's, or the only one that begins so. A file of the same name is ``./name``."""
    from hansard.store import open_store
    from hansard.store.ids import check_session_id
    from hansard.store.lookup import MIN_PREFIX

    try:
        check_session_id(name)
    except InvalidSessionId:
        return None
    found = beginning(root, name)
    if name not in found and len(name) < MIN_PREFIX:
        return None
    if name not in found and len(found) > 1:
        raise AmbiguousSession(name, found)
    with open_store(root) as store:
        session = name if name in found else found[0] if found else store.find(name)
        if session is not None and store.captures is not None and store.captures.has(session):
            from hansard.importing.capture import open_session  # nearly every session is read, and this takes long to import

            open_session(store, session)
    return session


def beginning(root: StoreLocation, name: str) -> list[str]:
    """The sessions that begin so. No log is opened for this."""
    if isinstance(root, str):
        from hansard.store import open_store

        with open_store(root) as store:
            return sorted(info.id for info in store.sessions() if info.id.startswith(name))
    from hansard.store.files.captures import capture_names
    from hansard.store.files.paths import has_log

    if name and has_log(root / name):
        return [name]
    logs = {entry for entry in os.listdir(root) if entry.startswith(name) and has_log(root / entry)} if root.is_dir() else set[str]()
    return sorted(logs | {entry for entry in capture_names(root) if entry.startswith(name)})


def need_session(root: StoreLocation, name: str) -> str:
    """The session of that name; an error if there is none."""
    found = session_of(root, name)
    if found is None:
        raise unknown_session(root, name)
    return found


def unknown_session(root: StoreLocation, name: str) -> UnknownSession:
    """That there is no such session, and which one may be meant."""
    return UnknownSession(name, beginning(root, ""))


def session_or_file(root: StoreLocation, name: str) -> tuple[str | None, Source | None]:
    """What was named: a session of the store, or a file (or ``-``)."""
    session = session_of(root, name)
    if session is not None:
        return session, None
    if name != "-" and not os.path.lexists(name) and not {"/", os.sep, "."} & set(name):
        raise unknown_session(root, name)
    return None, Source(name)


def events_of_file(source: Source, format: str = AUTO) -> Iterator[Event]:
    """The events of a file: a log of ours as it is, anything else normalized."""
    from hansard.adapters.normalize import OWN_LOG, events_of_log
    from hansard.cli.verbs.normalize import events_of

    if format == AUTO and source.head().startswith(OWN_LOG):
        return events_of_log(source.chunks())
    return events_of(source, source.format(format))
