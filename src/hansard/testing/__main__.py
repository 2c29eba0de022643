"""``python -m hansard.testing FOLDER…``: holds folders of recordings to every promise, and says what of their truth is not on the wire.

``--write`` writes their golden files first, and packs large streams.
"""

from __future__ import annotations

import argparse

from hansard.errors import HansardError
from hansard.testing.recordings import check_recordings, doubts, pack, recordings_in, write_golden


def main() -> None:
    """Check each folder, and say which promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m hansard.testing", description="Hold recordings to every promise.")
    parser.add_argument("--write", action="store_true", help="write the golden files (review the difference like code), pack large streams")
    parser.add_argument("folder", nargs="+", help="a folder with a formats.json")
    given = parser.parse_args()
    try:
        for folder in given.folder:
            if given.write:
                write(folder)
            for doubt in (doubt for recording in recordings_in(folder) for doubt in doubts(recording)):
                print(doubt)
            print(f"{folder}: {check_recordings(folder)} recordings keep every promise")
    except (AssertionError, HansardError) as problem:
        raise SystemExit(str(problem)) from None


def write(folder: str) -> None:
    """Write what is made, and say what was written."""
    for path in pack(folder):
        print(f"packed {path}")
    for path in write_golden(folder):
        print(f"wrote {path}")


main()
