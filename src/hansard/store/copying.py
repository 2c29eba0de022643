"""What a record refers to, brought along to another log."""

from __future__ import annotations

import re

from hansard.errors import BlobDamaged
from hansard.store.interface import Store

_BLOB = re.compile(rb'"blob":"([0-9a-f]{64})"')


def copy_blobs(store: Store, session_id: str, to: str, line: bytes) -> None:
    """Give another session the blobs that a line of this one names."""
    for name in set(_BLOB.findall(line)):
        try:
            store.put_blob(to, store.get_blob(session_id, name.decode()))
        except BlobDamaged:
            pass  # the words look like a reference, or the blob was lost before
