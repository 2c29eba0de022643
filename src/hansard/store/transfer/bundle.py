"""Sessions in one file: a zip with a folder for each, its log and its blobs, as any program that reads zips shows them.

While it is open it is a folder; what was brought there is in the file when it is closed. The same sessions give the same bytes.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

from hansard.errors import UsageError

SUFFIX = ".zip"
FREE_BYTES, MAX_RATIO = 64 * 1024 * 1024, 200
"""A file that is larger unpacked than this, and so many times as large as it is, holds no sessions."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}/(?:events(?:\.\d+)?\.jsonl|blobs/[0-9a-f]{64})")


@contextmanager
def open_bundle(path: Path, keep: bool) -> Generator[Path]:
    """The sessions of a file as a folder of theirs; with ``keep`` the file has at the end what the folder has."""
    if not keep and not path.exists():
        raise UsageError(f"there is no file {path}")
    with TemporaryDirectory(prefix="hansard-") as made:
        folder = Path(made)
        if path.exists():
            _unpack(path, folder)
        yield folder
        if keep:
            _pack(folder, path)


def _unpack(path: Path, folder: Path) -> None:
    try:
        with ZipFile(path) as bundle:
            entries = [entry for entry in bundle.infolist() if not entry.is_dir()]
            strange = next((entry.filename for entry in entries if _NAME.fullmatch(entry.filename) is None), None)
            if strange is not None:
                raise UsageError(f"{path} is no file of sessions: it has {strange!r} in it")
            if sum(entry.file_size for entry in entries) > max(FREE_BYTES, MAX_RATIO * path.stat().st_size):
                raise UsageError(f"{path} is no file of sessions: it unpacks to out of all proportion")
            for entry in entries:
                (folder / entry.filename).parent.mkdir(0o700, parents=True, exist_ok=True)
                with bundle.open(entry) as source, _new(folder / entry.filename) as target:
                    shutil.copyfileobj(source, target)
    except BadZipFile as problem:
        raise UsageError(f"{path} is no file of sessions: {problem}") from problem


def _pack(folder: Path, path: Path) -> None:
    """Beside its place first: whoever is stopped in the middle leaves the file as it was."""
    half = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with _new(half) as out, ZipFile(out, "w", ZIP_DEFLATED) as bundle:
            for file in sorted(folder.rglob("*")):
                name = file.relative_to(folder).as_posix()
                if _NAME.fullmatch(name) is not None:
                    entry = ZipInfo(name)  # without a time: the same sessions, the same bytes
                    entry.compress_type, entry.external_attr = ZIP_DEFLATED, 0o600 << 16
                    with file.open("rb") as source, bundle.open(entry, "w", force_zip64=True) as target:
                        shutil.copyfileobj(source, target)
        os.replace(half, path)
    finally:
        half.unlink(missing_ok=True)


def _new(path: Path) -> BinaryIO:
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
