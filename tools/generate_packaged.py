"""Rewrite what goes into the wheel and is made of the rest: manual page, bill of materials, tables of the page. Part of `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

from tools import man_page, page_rules
from tools.bom import bom

ROOT = Path(__file__).parent.parent
FILES = {
    "packaging/man/hansard.1": man_page.page,
    "packaging/hansard.cdx.json": bom,
    "src/hansard/projections/page/static/transcript/rules.js": page_rules.page,
}


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
