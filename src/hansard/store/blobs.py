"""Blobs: large bytes beside a log, named by their SHA-256, so that nothing but the right bytes can have the name."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

from hansard.errors import BlobDamaged, UsageError
from hansard.store.files import paths

_NAME = re.compile(r"[0-9a-f]{64}")


def put(folder: Path, data: bytes) -> str:
    """Store the bytes durably and return their name; bytes that are there already are not written again."""
    name = sha256(data).hexdigest()
    blobs = folder / paths.BLOBS
    with paths.open_folder(folder) as above:  # of the store, and no link out of it
        try:
            os.mkdir(paths.BLOBS, 0o700, dir_fd=above)
            os.fsync(above)
        except FileExistsError:
            pass
    if _size(blobs / name) != len(data):
        _write(blobs, name, data)
    return name


def check_name(name: str) -> None:
    """`UsageError` if a blob cannot have that name."""
    if _NAME.fullmatch(name) is None:
        raise UsageError(f"not a SHA-256 in hex: {name!r}")


def get(folder: Path, name: str) -> bytes:
    """The bytes of that name; `BlobDamaged` when they are gone or are others."""
    check_name(name)
    path = folder / paths.BLOBS / name
    try:
        fd = paths.open_file(path.parent, name, paths.READ)
    except FileNotFoundError:
        raise BlobDamaged(f"blob {name} is missing", path) from None
    with open(fd, "rb") as file:
        data = file.read()
    if sha256(data).hexdigest() != name:
        raise BlobDamaged(f"the bytes of blob {name} are not the ones that were stored", path)
    return data


def _size(path: Path) -> int | None:
    with suppress(FileNotFoundError):
        return path.lstat().st_size
    return None


def _write(blobs: Path, name: str, data: bytes) -> None:
    unfinished = f".{name}.{token_hex(4)}"
    fd = paths.open_file(blobs, unfinished, paths.CREATE)
    try:
        paths.write_all(fd, data)
        os.fsync(fd)
        os.rename(blobs / unfinished, blobs / name)
    except BaseException:
        with suppress(OSError):
            os.unlink(blobs / unfinished)
        raise
    finally:
        os.close(fd)
    paths.sync_folder(blobs)
