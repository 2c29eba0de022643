"""Which files make up which session: agents' own folders by their layout, everything else by how it begins."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from hansard.adapter import Context
from hansard.adapters import adapter_for, layouts
from hansard.errors import UsageError
from hansard.layout import Layout, Place
from hansard.recognising import recognise

SUFFIXES = (".jsonl", ".ndjson", ".sse")
"""What is looked at in a folder. A file that is named is always looked at."""

GLANCE = 256 * 1024
"""How much of a file is read to recognise it."""

OWN_LOG = b'{"type":"session_lifecycle",'


class Stream(Struct, frozen=True):
    """A file of frames. ``name`` is None for the session itself; a sub-agent's file is a stream with a name of its own."""

    path: str
    name: str | None = None
    sidecar: str | None = None


class Attachment(Struct, frozen=True):
    """A file that belongs to a session and is kept as it is."""

    path: str
    name: str


class Job(Struct, frozen=True):
    """One session to import."""

    session_id: str
    format: str
    streams: list[Stream]
    attachments: list[Attachment] = []
    provider_session_id: str | None = None

    @property
    def size(self) -> int:
        """How many bytes there are to read, about."""
        return sum(_size(stream.path) for stream in self.streams)


class Found(Struct):
    """What there is to import, and what was passed over."""

    jobs: list[Job] = []
    unknown: list[str] = []
    """Files that no adapter recognises."""
    problems: list[str] = []


def homes(home: Path, environment: dict[str, str]) -> list[Path]:
    """Where the agents of this machine keep their sessions, whether or not anything is there."""
    found: list[Path] = []
    for layout in layouts():
        base = environment.get(layout.home.variable)
        found.append((Path(base) if base else home / layout.home.default) / layout.home.folder)
    return found


def find(paths: Iterable[Path], format: str | None) -> Found:
    """The sessions in these files and folders. ``format``: what to read files as that are in nobody's layout; None to recognise it."""
    found = Found(jobs=[], unknown=[], problems=[])
    if format is not None:
        adapter_for(format)  # says which formats there are if this is none
    plain: list[tuple[Path, bool]] = []
    sessions: dict[tuple[str, str, str], _Session] = {}
    for path, named in _files(paths, found):
        layout, place = _placed(path, format)
        if layout is None or place is None:
            plain.append((path, named))
        else:
            _add(sessions, path, layout, place)
    for session in sessions.values():
        if session.streams:
            found.jobs.append(session.job())
        else:  # a folder that only looks like a session's
            plain += [(Path(attachment.path), False) for attachment in session.attachments]
    for path, named in plain:
        if named or path.suffix in SUFFIXES:
            _add_plain(found, path, format, named)
    found.jobs.sort(key=lambda job: job.streams[0].path)
    return found


class _Session:
    def __init__(self, layout: Layout, session: str) -> None:
        self.layout = layout
        self.session = session
        self.streams: list[Stream] = []
        self.attachments: list[Attachment] = []

    def job(self) -> Job:
        streams = sorted(self.streams, key=lambda stream: (stream.name is not None, stream.name or ""))
        attachments = sorted(self.attachments, key=lambda attachment: attachment.name)
        return Job(f"{self.layout.prefix}-{self.session}", self.layout.format, streams, attachments, self.session)


def _files(paths: Iterable[Path], found: Found) -> Iterator[tuple[Path, bool]]:
    """Every file, and whether it was named itself. Each once, however often it is named."""
    seen: set[Path] = set()
    for given in paths:
        path = Path(os.path.abspath(given))
        if path.is_dir():
            inside = _walk(path, found)
            files = [(file, False) for file in inside]
        else:
            try:
                mode = path.stat().st_mode
            except OSError as problem:
                found.problems.append(f"{given}: {problem.strerror}")
                continue
            if not stat.S_ISREG(mode):  # opening a FIFO would wait for its other end
                found.problems.append(f"{given}: not a regular file")
                continue
            files = [(path, True)]
        for file, named in files:
            if file not in seen:
                seen.add(file)
                yield file, named


def _walk(folder: Path, found: Found) -> Iterator[Path]:
    def unreadable(problem: OSError) -> None:
        found.problems.append(f"{problem.filename}: {problem.strerror}")

    for parent, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and path.is_file():
                yield path


def _placed(path: Path, format: str | None) -> tuple[Layout | None, Place | None]:
    for layout in layouts():
        if format in (None, layout.format) and (place := layout.place(path)) is not None:
            return layout, place
    return None, None


def _add(sessions: dict[tuple[str, str, str], _Session], path: Path, layout: Layout, place: Place) -> None:
    name = place.session or _session_inside(path, layout)
    folder = str(path.parent)
    if place.session and (place.stream or place.attachment):
        folder = str(path)[: str(path).rindex(place.session) - 1]
    session = sessions.setdefault((layout.prefix, name, folder), _Session(layout, name))
    if place.attachment is not None:
        session.attachments.append(Attachment(str(path), place.attachment))
    else:
        sidecar = str(path.with_name(place.sidecar)) if place.sidecar else None
        session.streams.append(Stream(str(path), place.stream, sidecar))


def _session_inside(path: Path, layout: Layout) -> str:
    try:
        with path.open("rb") as file:
            return layout.session_of(file.readline(GLANCE)) or path.stem
    except OSError:
        return path.stem  # whoever opens it next says what is wrong


def _add_plain(found: Found, path: Path, format: str | None, named: bool) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(GLANCE)
    except OSError as problem:
        found.problems.append(f"{path}: {problem.strerror}")
        return
    if head.startswith(OWN_LOG):
        if named:
            found.problems.append(f"{path}: this is a log of hansard already; `hansard show` reads it as it is")
        return
    name = format or recognise(head)
    if name is None:
        (found.problems if named else found.unknown).append(
            f"{path}: no known format begins like this; name one with --from" if named else str(path)
        )
        return
    identity = sha256(os.fsencode(path)).hexdigest()[:12]
    found.jobs.append(Job(f"{name}-{identity}", name, [Stream(str(path))]))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def context(session_id: str, format: str, stream: Stream) -> Context:
    """What the adapter of a file is told: the stream's name for its ids, and the call that a file beside it speaks of."""
    name = session_id if stream.name is None else f"{session_id}/{stream.name}"
    parent = None
    if stream.sidecar is not None and os.path.exists(stream.sidecar):
        says = Path(stream.sidecar).read_bytes()
        parent = next((layout.parent_of(says) for layout in layouts() if layout.format == format), None)
    return Context(source=name, parent_tool_call_id=parent, stream=stream.name)


def nothing_found(homes: list[Path]) -> UsageError:
    """What to say when no path was given and no agent has files here."""
    looked = ", ".join(map(str, homes)) or "nowhere: no adapter reads an agent's own files"
    return UsageError(f"no agent's session files here (looked in {looked}); name a file or a folder")
