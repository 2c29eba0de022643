"""How far a long command has got: a bar on stderr if somebody looks at it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial
from typing import Any


@contextmanager
def progress(doing: str, total: int) -> Generator[Callable[[int], object]]:
    """A bar of so many bytes; a function that moves it by some."""
    if not sys.stderr.isatty() or total == 0:
        yield _stand_still
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    shown: Iterable[Any] = (TextColumn(doing), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*shown, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=total)
        yield partial(bar.advance, task)


def _stand_still(size: int) -> None:
    """The bar that nobody looks at."""
