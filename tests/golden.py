"""Rewrite the golden files: the events we make of every recording, without the originals, and what `hansard show` prints of some.

`make golden`; review the diff like code.

``--check`` writes nothing and exits 1 if a file is missing or differs.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hansard.adapters import formats
from hansard.testing.recordings import golden
from tests import shown
from tests.recorded import FOLDER, read, streams, write


def main() -> int:
    """Write or check every golden file, and remove those that no recording has any more."""
    check = "--check" in sys.argv[1:]
    known = {stream.recording.path / stream.golden: stream for stream in streams() if stream.format in formats()}
    stale = [path for path, stream in known.items() if not is_current(path, golden(stream), check)]
    for path in FOLDER.glob("*/*/**/*golden.*jsonl*"):
        if path.with_name(path.name.removesuffix(".gz")) not in known:
            stale.append(path)
            if not check:
                path.unlink()
    stale += check_shown(check)
    for path in stale:
        print(("stale: " if check else "wrote: ") + str(path.relative_to(FOLDER.parent)))
    return 1 if check and stale else 0


def check_shown(check: bool) -> list[Path]:
    """Write or check what `hansard show` prints; returns the files that differ."""
    known = {one.golden: shown.show(one) for one in shown.SHOWN}
    stale = [path for path, text in known.items() if not path.exists() or path.read_bytes() != text]
    left = sorted(set(shown.FOLDER.glob("*")) - known.keys())
    for path in [] if check else stale:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(known[path])
    for path in [] if check else left:
        path.unlink()
    return stale + left


def is_current(path, wanted: bytes, check: bool) -> bool:
    """Whether the file has these bytes; if not, and this is no check, now it has."""
    try:
        current = read(path) == wanted
    except FileNotFoundError:
        current = False
    if not current and not check:
        write(path, wanted)
    return current


if __name__ == "__main__":
    sys.exit(main())
