"""Tables for people: coloured on a terminal, plain elsewhere. What agents said is made visible first."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from hansard.cli.output import output
from hansard.projections.terminal_text import columns, shortened, visible_line, wants_colour


def print_json(value: Any) -> None:
    """A value as indented JSON."""
    from hansard.events.lenient import encode_indented

    out = output()
    out.write(encode_indented(value) + b"\n")
    out.flush()


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[str | int | None]], right: Iterable[int] = (), flexible: int | None = None
) -> None:
    """Rows under headings. ``right``: columns aligned to the right; ``flexible``: the one that gives way on a narrow terminal.

    Where that is not enough, each row is a few lines of its own: an id that was cut could not be used.
    """
    cells = [[visible_line(_text(cell)) for cell in row] for row in rows]
    widths = [max(map(columns, column)) for column in zip(headings, *cells, strict=True)]
    screen, between = terminal_width(), 2 * (len(widths) - 1)
    if flexible is not None:
        others = sum(widths) - widths[flexible] + between
        widths[flexible] = min(widths[flexible], max(screen - others, 16))
    if sys.stdout.isatty() and sum(widths) + between > screen:
        for row in cells:
            _print_stacked(headings, row, screen)
        return
    aligned = set(right)
    click.echo(style(_line(headings, widths, aligned), bold=True))
    for row in cells:
        click.echo(_line(row, widths, aligned))


def print_list(label: str, words: Iterable[str], after: str = "") -> None:
    """A list after a label, broken between words and indented where the terminal is narrow."""
    lead = f"{label:7} "
    for line in wrapped(", ".join(map(visible_line, words)) + after, terminal_width() - len(lead)):
        click.echo(f"{lead}{line}".rstrip())
        lead = " " * len(lead)


def print_wrapped(text: str) -> None:
    """A sentence, broken between words where the terminal is narrow. Colours are for the caller to add to one that is short."""
    for line in wrapped(text, terminal_width()):
        click.echo(line)


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of so many columns, broken between words; a word that is longer keeps a line of its own."""
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if columns(joined) <= width or not lines[-1]:
            lines[-1] = joined
        else:
            lines.append(word)
    return lines


def style(text: str, **how: Any) -> str:
    """The text in a colour, if stdout wants colours."""
    return click.style(text, **how) if wants_colour(sys.stdout, os.environ.get("NO_COLOR")) else text


def time_text(time: int | None) -> str:
    """A moment in local time, to the minute; empty if it is not known."""
    from hansard.events.times import to_datetime

    return "" if not time else f"{to_datetime(time, None):%Y-%m-%d %H:%M}"


def duration_text(milliseconds: int | None) -> str:
    """How long something took."""
    if milliseconds is None:
        return ""
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def print_rest(shown: int, total: int) -> None:
    """Says how many rows were left out."""
    if total > shown:
        click.echo(f"{shown:,} of {total:,}; --limit shows more", err=True)


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


def _print_stacked(headings: Sequence[str], cells: Sequence[str], width: int) -> None:
    """One row: its name, and beneath it what is known of it."""
    click.echo(style(cells[0], bold=True))
    about = [f"{heading.lower()} {cell}".strip() for heading, cell in zip(headings[1:], cells[1:], strict=True) if cell]
    for line in wrapped(shortened(" · ".join(about), 4 * width), width - 2):
        click.echo(f"  {line}")


def terminal_width() -> int:
    """How wide a line may be; wide if nobody looks."""
    return shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else 160
