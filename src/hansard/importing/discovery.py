"""Which files make up which session: agents' own folders by their layout, everything else by how it begins."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from operator import itemgetter
from pathlib import Path, PurePath
from typing import NamedTuple

from msgspec import Struct

from hansard.adapters import adapter_for, layouts
from hansard.adapters.detection import detect
from hansard.adapters.framing import Document, DocumentOrLines
from hansard.adapters.layout import FileRole, Layout
from hansard.adapters.normalize import OWN_LOG
from hansard.errors import UsageError
from hansard.events import MAIN_STREAM_MARK
from hansard.events.summary import AgentSession
from hansard.importing.databases import MAGIC, SessionTree, Unreadable, session_trees
from hansard.importing.job import Attachment, Job, SourceStream

SUFFIXES = (".jsonl", ".ndjson", ".sse")
"""What is looked at in a folder. A file that is named is always looked at."""

WAL = "-wal"
"""The ending of the file in which SQLite keeps the latest changes of a database."""
DETECT_BYTES = 256 * 1024
"""How much of a file is read to recognise it."""


class Discovery(Struct):
    """What there is to import, and what was passed over."""

    jobs: list[Job] = []
    unknown: list[str] = []
    """Files that no adapter recognises."""
    problems: list[str] = []


def homes(home: Path, environment: dict[str, str]) -> list[Path]:
    """Where the agents of this machine keep their sessions, whether or not anything is there."""
    found: list[Path] = []
    for agent_home in (layout.home for layout in layouts()):
        moved = [Path(environment[name], below) for name, below in agent_home.variables if environment.get(name)]
        base = [*moved, home / agent_home.default][0]
        for folder in agent_home.folders:
            found += sorted(base.glob(folder)) or [base / folder]
        if agent_home.file_variable is not None and environment.get(agent_home.file_variable):
            found.append(base / environment[agent_home.file_variable])
    return found


class FoundFile(NamedTuple):
    """A file, and what changes when it does."""

    path: str
    is_named: bool
    """Whether a person named the file, and not a folder that it is in."""
    mark: str
    modified: float
    """In seconds since the epoch."""


class FileList(Struct):
    """The files that an import looks at, and what could not be looked at."""

    files: dict[str, FoundFile] = {}
    problems: list[str] = []


def list_files(paths: Iterable[Path]) -> FileList:
    """Lists the files in these folders, and the files that were named, each once."""
    listed = FileList(files={}, problems=[])
    for given in paths:
        path = os.path.abspath(given)
        if os.path.isdir(path):
            _walk(path, listed)
            continue
        try:
            now = os.stat(path)
        except OSError as problem:
            listed.problems.append(f"{given}: {problem.strerror}")
            continue
        if stat.S_ISREG(now.st_mode):  # opening a FIFO would wait for its other end
            listed.files.setdefault(path, FoundFile(path, True, file_mark(now, path + WAL), now.st_mtime))
        else:
            listed.problems.append(f"{given}: not a regular file")
    return listed


def _walk(folder: str, listed: FileList) -> None:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as problem:
        listed.problems.append(f"{problem.filename}: {problem.strerror}")
        return
    names = {entry.name for entry in entries}
    folders: list[str] = []
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            folders += [] if entry.is_symlink() else [entry.path]
            continue
        with suppress(OSError):
            now = entry.stat()
            if stat.S_ISREG(now.st_mode) and entry.path not in listed.files:
                beside = entry.path + WAL if entry.name + WAL in names else None
                listed.files[entry.path] = FoundFile(entry.path, False, file_mark(now, beside), now.st_mtime)
    for path in folders:
        _walk(path, listed)


def file_mark(now: os.stat_result, beside: str | None) -> str:
    """Returns what changes when a file does; for a database, also what has yet to be moved into it."""
    mark = f"{now.st_ino}.{now.st_mtime_ns}.{now.st_size}"
    if beside is not None:
        with suppress(OSError):
            log = os.stat(beside)
            mark += f" {log.st_mtime_ns}.{log.st_size}"
    return mark


def discover(paths: Iterable[Path], format: str | None) -> Discovery:
    """The sessions in these files and folders. ``format``: what to read files as that are in nobody's layout; None to recognise it."""
    return discover_sessions(list_files(paths), format)


def discover_sessions(listed: FileList, format: str | None) -> Discovery:
    """The sessions in these files."""
    found = Discovery(jobs=[], unknown=[], problems=list(listed.problems))
    if format is not None:
        adapter_for(format)  # says which formats there are if this is none
    plain: list[tuple[Path, bool]] = []
    sessions = _Sessions()
    for path, named in [(Path(file.path), file.is_named) for file in listed.files.values()]:
        layout, place = _locate(path, format, named)
        if layout is None or place is None:
            plain.append((path, named))
        elif place.database:
            sessions.add_database(path, layout, found)
        elif named or _is_session(path, layout, place):
            sessions.add(path, layout, place)
    jobs, left = sessions.jobs()
    found.jobs += jobs
    for path, named in [*plain, *((path, False) for path in left)]:
        if named or path.suffix in SUFFIXES:
            _add_plain(found, path, format, named)
    found.jobs.sort(key=lambda job: (job.streams[0].path, job.session_id))
    return found


class _Sessions:
    """The files that layouts know, by session."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, PurePath], _Session] = {}
        self._attachments: list[tuple[Path, Layout, FileRole]] = []

    def add(self, path: Path, layout: Layout, place: FileRole) -> None:
        if place.attachment is not None:
            self._attachments.append((path, layout, place))
            return
        key = (layout.prefix, place.session, place.folder)
        self._found.setdefault(key, _Session(layout, place.session)).files.append((path, place))

    def add_database(self, path: Path, layout: Layout, found: Discovery) -> None:
        if layout.database is None:
            return
        try:
            known = session_trees(path, layout.database)
        except Unreadable as problem:
            found.problems.append(str(problem))
            return
        for family in known:
            place = FileRole(family.ids[0], path.parent, database=True)
            self.add(path, layout, place)
            self._found[layout.prefix, place.session, place.folder].families[path] = family

    def jobs(self) -> tuple[list[Job], list[Path]]:
        """The sessions, and the attachments of none: files in a folder that only looks like a session's."""
        left: list[Path] = []
        named: dict[tuple[str, str], list[tuple[PurePath, _Session]]] = {}
        for (prefix, name, folder), session in self._found.items():
            named.setdefault((prefix, name), []).append((folder, session))
        for path, layout, place in self._attachments:
            same = named.get((layout.prefix, place.session), [])
            owners = [session for folder, session in same if folder.is_relative_to(place.folder)]
            for owner in owners:
                owner.attachments.append(Attachment(str(path), place.attachment or path.name))
            if not owners:
                left.append(path)
        return [session.job() for session in self._found.values()], left


class _Session:
    def __init__(self, layout: Layout, session: str) -> None:
        self.layout = layout
        self.session = session
        self.files: list[tuple[Path, FileRole]] = []
        self.attachments: list[Attachment] = []
        self.families: dict[Path, SessionTree] = {}

    def job(self) -> Job:
        attachments = sorted(self.attachments, key=lambda attachment: attachment.name)
        return Job(
            f"{self.layout.prefix}-{self.session}",
            self.layout.format,
            self.streams(),
            attachments,
            AgentSession(self.layout.prefix, self.session),
            True,
        )

    def streams(self) -> list[SourceStream]:
        """The session's own file first. Where it has several, the others are streams named like their files."""
        own = [(path, place) for path, place in sorted(self.files) if place.stream is None]
        parts = [(path, None if number == 0 else MAIN_STREAM_MARK + path.stem, place) for number, (path, place) in enumerate(own)]
        below = sorted(((path, place.stream, place) for path, place in self.files if place.stream is not None), key=itemgetter(1))
        return [self.stream(path, name, place) for path, name, place in [*parts, *below]]

    def stream(self, path: Path, name: str | None, place: FileRole) -> SourceStream:
        sidecar = str(path.with_name(place.sidecar)) if place.sidecar else None
        parents = [str(other) for other, it in self.files if place.parent is not None and place.parent == (it.stream or self.session)]
        return SourceStream(str(path), name, sidecar, tuple(sorted(parents)), place.document, self.families.get(path))


def _locate(path: Path, format: str | None, named: bool) -> tuple[Layout | None, FileRole | None]:
    """What a file is, and whose: of several who know such a name, the one who is sure."""
    places = [(layout, layout.classify(path)) for layout in layouts() if format in (None, layout.format)]
    known = [(layout, place) for layout, place in places if place is not None]
    if not known:
        keepers = [layout for layout, _ in places if layout.database is not None] if named and _is_database(path) else []
        return (keepers[0], FileRole("", path.parent, database=True)) if keepers else (None, None)
    layout, place = next((one for one in known if one[1].sure), known[0])
    return layout, layout.classify_content(place, _read_start(path, place)) if place.inside else place


def _is_session(path: Path, layout: Layout, place: FileRole) -> bool:
    """Whether a file is more than what an agent writes when it is started."""
    if place.stream is not None or place.attachment is not None or not place.inside:
        return True
    try:
        with path.open("rb") as file:
            beginning = file.read(DETECT_BYTES + 1)
    except OSError:
        return True  # whoever opens it next says what is wrong
    return len(beginning) > DETECT_BYTES or layout.is_session(beginning)


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def _read_start(path: Path, place: FileRole) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(DETECT_BYTES) if place.document else file.readline(DETECT_BYTES)
    except OSError:
        return b""  # whoever opens it next says what is wrong


def _add_plain(found: Discovery, path: Path, format: str | None, named: bool) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(DETECT_BYTES)
    except OSError as problem:
        found.problems.append(f"{path}: {problem.strerror}")
        return
    if head.startswith(OWN_LOG):
        if named:
            found.problems.append(f"{path}: this is a log of hansard already; `hansard show` reads it as it is")
        return
    name = format or detect(head)
    if name is None:
        (found.problems if named else found.unknown).append(
            f"{path}: no known format begins like this; name one with --from" if named else str(path)
        )
        return
    identity = sha256(os.fsencode(path)).hexdigest()[:12]
    found.jobs.append(Job(f"{name}-{identity}", name, [SourceStream(str(path), exported=_is_document(name, path, head))]))


def _is_document(format: str, path: Path, head: bytes) -> bool:
    """Whether a file that begins like this is one document: by its lines, or by its name if it has only one."""
    framer = adapter_for(format).framer()
    if not isinstance(framer, Document | DocumentOrLines):
        return False
    lines = len(framer.feed(head))
    return isinstance(framer, Document) or framer.is_document or (lines == 1 and path.suffix == ".json" and len(head) < DETECT_BYTES)


def nothing_found_error(homes: list[Path]) -> UsageError:
    """What to say when no path was given and no agent has files here."""
    looked = ", ".join(dict.fromkeys(_shorten(home) for home in homes)) or "nowhere: no adapter reads an agent's own files"
    return UsageError(f"no agent has left session files here (looked in {looked}); name a file or a folder, or try `hansard demo`")


def _shorten(home: Path) -> str:
    """The folder of an agent that a place is in: where to look for it, not every place in it."""
    dotted = next((number for number, part in enumerate(home.parts, 1) if part.startswith(".") and part not in (".local", ".config")), None)
    folder = Path(*home.parts[:dotted]) if dotted is not None else home.parent
    try:
        return f"~/{folder.relative_to(Path.home()).as_posix()}"
    except (ValueError, RuntimeError):
        return str(folder)
