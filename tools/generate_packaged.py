"""Rewrite what goes into the wheel and is made of the rest: the manual page and the bill of materials. Part of `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.bom import bom
from tools.man_page import page

ROOT = Path(__file__).parent.parent
FILES = {"packaging/man/hansard.1": page, "packaging/hansard.cdx.json": bom}


def main() -> int:
    """Write what is stale."""
    for name, make in FILES.items():
        path, wanted = ROOT / name, make()
        if not path.exists() or path.read_text() != wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted)
            print(f"wrote: {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
