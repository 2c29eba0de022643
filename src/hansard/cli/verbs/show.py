"""``hansard show``: one session as a conversation, in the terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from hansard.cli import terminal_width
from hansard.cli.completers import sessions_or_files
from hansard.cli.options import AUTO, Source, format_option, store_option, store_place

if TYPE_CHECKING:
    from hansard.events import Event
    from hansard.projections.transcript import Line

COLOURS: dict[str, dict[str, Any]] = {
    "user": {"fg": "cyan", "bold": True},
    "agent": {"fg": "green", "bold": True},
    "dim": {"dim": True},
    "tool": {"fg": "yellow"},
    "good": {"fg": "green"},
    "bad": {"fg": "red"},
    "rule": {"dim": True},
}


@click.command("show")
@click.argument("what", metavar="SESSION|FILE", shell_complete=sessions_or_files)
@click.option("--all", "all", is_flag=True, help="Include the procedure: rate limits, the queue, injected context, the agent's process.")
@click.option("--lines", "fold", type=click.IntRange(0), default=10, show_default=True, help="Lines of a tool's output; 0 for all of it.")
@click.option("--raw", is_flag=True, help="Print text as it was sent, control characters included. Not to a terminal.")
@format_option
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line: its text, tone, depth, and seq.")
def command(what: str, fold: int, all: bool, raw: bool, format: str, store: str | None, as_json: bool) -> None:
    """Print a session as a conversation.

    Prompts, answers, what was done, and how each turn ended. Rate limits, the queue, injected context, and the rest of the procedure appear
    with --all.
    """
    from hansard.cli.inputs import events_of_file, session_or_file
    from hansard.errors import UsageError

    if raw and sys.stdout.isatty():
        raise UsageError("--raw is not for a terminal: what an agent said could drive it; pipe it somewhere")
    root = store_place(store)
    session, source = (None, Source(what)) if format != AUTO else session_or_file(root, what)
    if session is not None:
        from hansard.store import open_store

        opened = open_store(root)
        lines = transcript(lambda: opened[session].conversation(), fold, all)
    elif source is not None:
        events = events_of_file(source, format)
        lines = transcript(lambda: events, fold, all, once=True)
    else:
        return
    if as_json:
        print_objects(lines)
    else:
        print_lines(lines, raw)


def transcript(read: Callable[[], Iterable[Event]], fold: int, all: bool = False, once: bool = False) -> Iterator[Line]:
    """The lines of a session, with times of the local zone."""
    from hansard.projections.session_transcript import session_transcript

    return session_transcript(read, fold, datetime.now().astimezone().tzinfo or UTC, all, once)


def print_objects(lines: Iterable[Line]) -> None:
    """Lines to stdout as JSON, in ASCII: nothing in it can drive a terminal."""
    for line in lines:
        click.echo(json.dumps(line._asdict()))


def print_lines(lines: Iterable[Line], raw: bool) -> None:
    """Print lines: escaped, indented, wrapped for a terminal, and in color where a person looks."""
    from hansard.projections.terminal_text import escape_text, wants_colour

    coloured = wants_colour(sys.stdout, os.environ.get("NO_COLOR"))
    out, width = sys.stdout.buffer, terminal_width()
    for line in lines:
        text = ("    " * line.depth + (line.text if raw else escape_text(line.text))).rstrip(" ")
        if line.tone == "rule" and len(text) > width:
            text = text[:width] + text[width:].rstrip(text[-1])  # a rule is as long as there is room
        how = COLOURS.get(line.tone) if coloured else None
        is_prose = line.tone in ("", "dim") and sys.stdout.isatty()
        for part in _fitted(text, width) if is_prose else [text]:
            out.write((click.style(part, **how) if how else part).encode("utf-8", "backslashreplace") + b"\n")  # half an emoji has no bytes
    out.flush()


def _fitted(text: str, width: int) -> list[str]:
    """Prose in lines that fit, each as far to the right as the first. Other text is left to the terminal: it can be copied as it is."""
    from hansard.cli.tables import wrapped
    from hansard.projections.terminal_text import columns

    prose = text.lstrip(" ")
    indent = len(text) - len(prose)
    if columns(text) <= width or indent < 2 or prose.startswith("│") or width - indent < 20:
        return [text]
    return [" " * indent + part for part in wrapped(prose, width - indent)]
