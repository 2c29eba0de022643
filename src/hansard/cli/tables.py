"""Tables for people: coloured on a terminal, plain elsewhere. What agents said is made visible first."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from hansard.cli.output import output
from hansard.terminal import columns, shortened, visible_line, wants_colour


def print_json(value: Any) -> None:
    """A value as indented JSON."""
    import msgspec

    out = output()
    out.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
    out.flush()


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[str | int | None]], right: Iterable[int] = (), flexible: int | None = None
) -> None:
    """Rows under headings. ``right``: columns aligned to the right; ``flexible``: the one that gives way on a narrow terminal."""
    cells = [[visible_line(_text(cell)) for cell in row] for row in rows]
    widths = [max(map(columns, column)) for column in zip(headings, *cells, strict=True)]
    if flexible is not None:
        others = sum(widths) - widths[flexible] + 2 * (len(widths) - 1)
        widths[flexible] = min(widths[flexible], max(_terminal_width() - others, 16))
    aligned = set(right)
    click.echo(style(_line(headings, widths, aligned), bold=True))
    for row in cells:
        click.echo(_line(row, widths, aligned))


def style(text: str, **how: Any) -> str:
    """The text in a colour, if stdout wants colours."""
    return click.style(text, **how) if wants_colour(sys.stdout, os.environ.get("NO_COLOR")) else text


def counted(number: int) -> str:
    """A number with separators."""
    return f"{number:,}"


def sized(number: float) -> str:
    """A number of bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"
        number /= 1000
    raise AssertionError


def _text(cell: str | int | None) -> str:
    return "" if cell is None else counted(cell) if isinstance(cell, int) else cell


def _line(cells: Sequence[str], widths: Sequence[int], right: set[int]) -> str:
    fitted = [shortened(cell, width) for cell, width in zip(cells, widths, strict=True)]
    padded = [
        " " * (width - columns(cell)) + cell if index in right else cell + " " * (width - columns(cell))
        for index, (cell, width) in enumerate(zip(fitted, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()


def _terminal_width() -> int:
    return shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else 160
