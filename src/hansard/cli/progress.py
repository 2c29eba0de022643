"""How far a long command has got: a bar on stderr if somebody looks at it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import click


@contextmanager
def progress(doing: str, total: int, beside: bool = False) -> Generator[Callable[[int], object]]:
    """A bar of so many bytes; a function that moves it by some. None beside output that goes to the same terminal meanwhile."""
    if not sys.stderr.isatty() or total == 0 or (beside and sys.stdout.isatty()):
        yield _stand_still
        return
    with click.progressbar(length=total, label=doing, file=sys.stderr, show_pos=False, width=0) as bar:
        yield bar.update
    sys.stderr.write("\x1b[1A\x1b[2K")  # what was done says the result; the bar goes


def _stand_still(size: int) -> None:
    """The bar that nobody looks at."""
