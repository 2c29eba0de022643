"""Structs that are read from JSON, made ready where they are defined.

msgspec looks at a struct when it is first read. If two threads do that at once, one of them may use what the other has not finished, and
the process is gone (0.22: a segmentation fault). A module is imported by one thread alone, and the others wait for it: so that is the time.
"""

from __future__ import annotations

from typing import Any

import msgspec


def prepare(defined: dict[str, Any], *before: msgspec.json.Decoder[Any]) -> None:
    """Make the structs of a module ready to be read: ``prepare(globals())`` as its last line.

    If they hold events or parts of them, these come first: ``prepare(globals(), strict.decoder)``.
    """
    for value in list(defined.values()):
        if isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__module__ == defined["__name__"]:
            msgspec.json.Decoder(value)
