"""The exact edits of the sessions of a store, and which sessions have changed a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from msgspec import Struct

from hansard.errors import HansardError
from hansard.projections.edits import EDIT_TYPES, Edit, read_edits
from hansard.store.interface import Store
from hansard.store.records import SessionInfo


class FilePlace(Struct, frozen=True):
    """A file, and what git says of where it is."""

    path: str
    root: str
    """The top folder of its repository, or its folder."""
    names: tuple[str, ...]
    """Its path as seen from the root, and the paths that it had before."""
    roots: tuple[str, ...] = ()
    """The other work trees of the repository."""
    remote: str | None = None


def file_edits(store: Store, place: FilePlace) -> list[Edit]:
    """Returns the edits of a file in order of time, with those of its former names."""
    found: list[tuple[int, str, int, Edit]] = []
    names = set(place.names)
    infos = sessions_that_changed(store, place)
    for info in infos:
        found += [(edit.timestamp or info.created or 0, info.id, edit.seq, edit) for edit in _edits_of(store, info)]
    ordered = [(edit, _names(edit, place, info)) for edit, info in _by_time(found, infos)]
    kept: list[Edit] = []
    for edit, (name, old_name) in reversed(ordered):
        if name in names or (edit.change == "delete" and old_name in names):
            kept.append(edit)
            names |= {old_name} - {None}  # the file was moved here
    return kept[::-1]


def _by_time(found: list[tuple[int, str, int, Edit]], infos: list[SessionInfo]) -> Iterator[tuple[Edit, SessionInfo]]:
    by_id = {info.id: info for info in infos}
    for _, session, _, edit in sorted(found, key=lambda one: one[:3]):
        yield edit, by_id[session]


def _names(edit: Edit, place: FilePlace, info: SessionInfo) -> tuple[str | None, str | None]:
    """The path of an edit's file as seen from the root, and the one that the edit moved it from."""
    roots = [root for root in (place.root, *place.roots, info.repository, info.cwd) if root]
    return tuple(None if path is None else _seen_from(path, roots) for path in (edit.path, edit.old_path))  # pyright: ignore[reportReturnType]


def _seen_from(path: str, roots: list[str]) -> str:
    return next((path[len(root.rstrip("/")) + 1 :] for root in roots if path.startswith(f"{root.rstrip('/')}/")), path)


def sessions_that_changed(store: Store, place: FilePlace) -> list[SessionInfo]:
    """Returns the sessions that may have changed a file: those of its project in which a call names it."""
    infos = [info for info in store.sessions() if info.problem is None and _may_work_in(info, place)]
    if store.search is None or not infos:
        return infos
    named: set[str] = set()
    for name in {PurePath(name).name.lower() for name in place.names}:
        named |= set(store.search.candidates([name], ("tool_call",)).sessions)
    return [info for info in infos if info.id in named]


def _may_work_in(info: SessionInfo, place: FilePlace) -> bool:
    """Whether a session works in the project of a file, or does not say where it works."""
    if info.remote is not None and info.remote == place.remote:
        return True
    folders = [folder.rstrip("/") for folder in (info.repository, info.cwd) if folder]
    roots = [root.rstrip("/") for root in (place.root, *place.roots)]
    return not folders or any(f"{one}/".startswith(f"{other}/") for one, other in _both_ways(folders, roots))


def _both_ways(folders: list[str], roots: list[str]) -> Iterator[tuple[str, str]]:
    for folder in folders:
        for root in roots:
            yield folder, root
            yield root, folder


def _edits_of(store: Store, info: SessionInfo) -> list[Edit]:
    """The edits of a session; none if it cannot be read, which `verify` reports."""
    try:
        return session_edits(store, info.id)
    except (HansardError, OSError):
        return []


def session_edits(store: Store, session: str) -> list[Edit]:
    """Returns the edits of one session. Those that a fork copied are its parent's."""
    info = store.session(session)
    logs = {} if info.lineage is None else {one.id: one.log_id for one in store.sessions()}
    lineage = info.copies_of(logs)
    edits = read_edits(store[session].read(types=EDIT_TYPES), session)
    return [edit for edit in edits if lineage is None or not lineage.is_copied(edit.seq)]
