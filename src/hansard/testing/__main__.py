"""``python -m hansard.testing FOLDER…``: holds folders of recordings to every promise; ``--write`` writes their golden files first."""

from __future__ import annotations

import argparse

from hansard.errors import HansardError
from hansard.testing.recordings import check_recordings, write_golden


def main() -> None:
    """Check each folder, and say which promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m hansard.testing", description="Hold recordings to every promise.")
    parser.add_argument("--write", action="store_true", help="write the golden files; review the difference like code")
    parser.add_argument("folder", nargs="+", help="a folder with a formats.json")
    given = parser.parse_args()
    try:
        for folder in given.folder:
            for path in write_golden(folder) if given.write else ():
                print(f"wrote {path}")
            print(f"{folder}: {check_recordings(folder)} recordings keep every promise")
    except (AssertionError, HansardError) as problem:
        raise SystemExit(str(problem)) from None


main()
