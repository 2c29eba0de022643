"""Copies of agents' files that wait to be read into logs: the files as they were, with their hashes.

A capture is the folder ``.captured/<session>``. It appears with all its files or not at all, is never changed, and is removed when the log
of the session has everything in it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

import msgspec

from hansard.errors import InvalidSessionId, LogLocked, StoreError
from hansard.store.captures import Capture, CapturedFile, CaptureRequest
from hansard.store.files import paths
from hansard.store.ids import check_session_id
from hansard.store.records import Finding, SessionInfo

FOLDER = ".captured"
MANIFEST = "capture.json"
COPY_BYTES = 1024 * 1024


class FolderCaptures:
    """The captures of a store in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._folder = root / FOLDER
        self._known: dict[str, tuple[int, Capture]] = {}
        """Captures by session, each with the inode of its folder."""

    # ---- what is there

    def names(self) -> list[str]:
        """Returns the sessions that wait to be read."""
        return capture_names(self.root)

    def has(self, session_id: str) -> bool:
        """Whether files of a session wait to be read."""
        return os.path.lexists(self._folder / check_session_id(session_id))

    def all(self) -> list[Capture]:
        """Returns all captures, the newest first."""
        found = {name: one for name in self.names() if (one := self._load(name)) is not None}
        self._known = {name: one for name, one in self._known.items() if name in found}
        return sorted(found.values(), key=lambda one: (-one.updated, one.session_id))

    def sessions(self) -> list[SessionInfo]:
        """Returns the captured sessions of which nothing is in a log, the newest first."""
        return [capture.info() for capture in self.all() if not paths.has_log(self.root / capture.session_id)]

    def folder(self, session_id: str) -> Path:
        """Returns where the copies of a capture are."""
        return self._folder / check_session_id(session_id)

    def _load(self, session_id: str) -> Capture | None:
        """A capture, or None if it is gone or cannot be read: then its files are captured again."""
        folder = self.folder(session_id)
        with suppress(OSError, ValueError):
            inode = os.stat(folder).st_ino
            if session_id not in self._known or self._known[session_id][0] != inode:
                self._known[session_id] = inode, msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Capture)
            return self._known[session_id][1]
        return None

    # ---- capturing

    @contextmanager
    def capturing(self) -> Generator[None]:
        """Lets no other process capture, and removes what killed ones have left."""
        paths.make_folder(self.root)
        paths.make_folder(self._folder)
        with paths.open_folder(self._folder) as fd:
            fcntl.flock(fd, fcntl.LOCK_EX)
            for entry in list(os.scandir(fd)):
                if entry.name.startswith("."):
                    shutil.rmtree(self._folder / entry.name, ignore_errors=True)
            yield

    def put(self, request: CaptureRequest) -> Capture:
        """Copies the files of a session. It is safe after `sync`."""
        folder = self.folder(request.session_id)
        unfinished = self._folder / f".{request.session_id}.{token_hex(4)}.new"
        unfinished.mkdir(0o700)
        try:
            files = [_copy(path, unfinished, str(number)) for number, path in enumerate(request.paths)]
            updated = max(file.modified for file in files)
            capture = Capture(request.session_id, request.format, request.agent_session, request.at, updated, files, request.jobs)
            with _create(unfinished / MANIFEST) as fd:
                paths.write_all(fd, msgspec.json.encode(capture))
            if os.path.lexists(folder):  # it could not be read
                os.rename(folder, self._folder / f".{request.session_id}.{token_hex(4)}.deleted")
            os.rename(unfinished, folder)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        return capture

    def sync(self, captures: Iterable[Capture]) -> None:
        """Makes captures durable. One call writes everything to the disk; the others only learn whether that failed."""
        os.sync()
        for capture in captures:
            folder = self.folder(capture.session_id)
            for path in [*(folder / file.name for file in capture.files), folder / MANIFEST, folder]:
                with suppress(FileNotFoundError):  # it was read meanwhile
                    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
                    try:
                        os.fsync(fd)
                    finally:
                        os.close(fd)
        paths.sync_folder(self._folder)

    # ---- reading

    @contextmanager
    def reading(self, session_id: str, wait: bool = True) -> Generator[Capture | None]:
        """Lets no other process read a capture meanwhile; None if it is gone. Without ``wait``, `LogLocked` if another process reads it."""
        folder = self.folder(session_id)
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            yield None
            return
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                raise LogLocked(f"the files of {session_id!r} are being read by another process", folder) from None
            yield self._load(session_id) if _is_current(folder, fd) else None
        finally:
            os.close(fd)

    def remove(self, session_id: str) -> None:
        """Removes a capture. Its log is made durable first, if there is one."""
        log = self.root / session_id
        if paths.has_log(log):
            for name in sorted(os.listdir(log)):
                if name.startswith("events"):
                    fd = paths.open_file(log, name, paths.READ)
                    try:
                        os.fsync(fd)
                    finally:
                        os.close(fd)
        gone = self._folder / f".{session_id}.{token_hex(4)}.deleted"
        with suppress(FileNotFoundError):
            os.rename(self.folder(session_id), gone)
            shutil.rmtree(gone, ignore_errors=True)

    def verify(self, session_id: str) -> list[Finding]:
        """Returns what is wrong with the copies."""
        capture = self._load(session_id)
        if capture is None:
            return [Finding("capture", f"{MANIFEST} of {session_id} cannot be read")]
        return [
            Finding("capture", f"the copy of {file.path} is damaged")
            for file in capture.files
            if _hash(self.folder(session_id) / file.name) != file.sha256
        ]

    def contains(self, session_id: str, words: Iterable[bytes]) -> bool:
        """Whether the copies contain all the words, which are in lower case."""
        capture, left = self._load(session_id), set(words)
        for file in () if capture is None else capture.files:
            with suppress(FileNotFoundError):
                overlap = max(map(len, left), default=0)
                for chunk in _chunks(self.folder(session_id) / file.name, overlap):
                    left = {word for word in left if word not in chunk}
                    if not left:
                        return True
        return not left


def capture_names(root: Path) -> list[str]:
    """Returns the sessions of a store that wait to be read."""
    found: list[str] = []
    with suppress(FileNotFoundError):
        for name in os.listdir(root / FOLDER):
            with suppress(InvalidSessionId):
                found.append(check_session_id(name))
    return found


def _copy(path: str, folder: Path, name: str) -> CapturedFile:
    """Copies a file with its time; what is appended while it is copied may be left out, and is new for the next import."""
    digest, size = sha256(), 0
    source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        now = os.fstat(source)
        with _create(folder / name) as copy:
            while data := os.read(source, COPY_BYTES):
                digest.update(data)
                paths.write_all(copy, data)
                size += len(data)
            os.utime(copy, ns=(now.st_mtime_ns, now.st_mtime_ns))
    finally:
        os.close(source)
    return CapturedFile(path, name, size, digest.hexdigest(), now.st_mtime_ns // 1_000_000)


@contextmanager
def _create(path: Path) -> Generator[int]:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise StoreError(f"cannot create {path}: {problem.strerror}", path) from problem
    try:
        yield fd
    finally:
        os.close(fd)


def _is_current(folder: Path, fd: int) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.stat(folder), os.fstat(fd))
    return False


def _hash(path: Path) -> str | None:
    digest = sha256()
    try:
        with path.open("rb") as file:
            while data := file.read(COPY_BYTES):
                digest.update(data)
    except OSError:
        return None
    return digest.hexdigest()


def _chunks(path: Path, overlap: int) -> Iterator[bytes]:
    """A file in lower case, in pieces that repeat the end of the one before."""
    end = b""
    with path.open("rb") as file:
        while data := file.read(COPY_BYTES):
            data = data.lower()
            yield end + data
            end = data[-overlap:] if overlap else b""
