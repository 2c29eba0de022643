"""``hansard show``: one session as a conversation, in the terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
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
    "rule": {"fg": "blue"},
}


@click.command("show")
@click.argument("what", metavar="SESSION|FILE", shell_complete=sessions_or_files)
@click.option("--lines", "fold", type=click.IntRange(0), default=10, show_default=True, help="Lines of a tool's result; 0 for all of it.")
@click.option("--raw", is_flag=True, help="Print what was said as it was said, control characters and all. Not to a terminal.")
@format_option
@store_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line of the conversation: its text, its tone, its depth.")
def command(what: str, fold: int, raw: bool, format: str, store: str | None, as_json: bool) -> None:
    """Print a session as a conversation."""
    from hansard.cli.inputs import events_of_file, session_or_file
    from hansard.errors import UsageError

    if raw and sys.stdout.isatty():
        raise UsageError("--raw is not for a terminal: what an agent said could drive it; pipe it somewhere")
    root = store_place(store)
    session, source = (None, Source(what)) if format != AUTO else session_or_file(root, what)
    if session is not None:
        from hansard.store import open_store

        opened = open_store(root)
        lines = transcript(lambda: opened[session].read(), fold)
    elif source is not None:
        events = events_of_file(source, format)
        lines = transcript(lambda: events, fold, once=True)
    else:
        return
    if as_json:
        print_objects(lines)
    else:
        print_lines(lines, raw)


def transcript(read: Callable[[], Iterable[Event]], fold: int, once: bool = False) -> Iterator[Line]:
    """The lines of a session. What a sub-agent wrote in a file of its own stands under the call that started it."""
    from hansard.events import ToolCall
    from hansard.projections.transcript import Transcript

    zone = datetime.now().astimezone().tzinfo
    shown = Transcript(fold, zone) if zone else Transcript(fold)
    beside: dict[str | None, list[Line]] = {} if once else _streams(read(), fold)
    for event in read():
        if event.stream is not None and not once:
            continue
        lines = list(shown.lines(event))
        yield from lines
        if isinstance(event, ToolCall) and event.payload.tool_call_id in beside:
            depth = lines[-1].depth if lines else 0
            for line in beside.pop(event.payload.tool_call_id):
                yield line._replace(depth=line.depth + depth)
    for lines in beside.values():
        yield from lines


def _streams(events: Iterable[Event], fold: int) -> dict[str | None, list[Line]]:
    """What sub-agents said in files of their own, by the call that started them."""
    from hansard.projections.transcript import Transcript

    speakers: dict[str, Transcript] = {}
    beside: dict[str | None, list[Line]] = {}
    for event in events:
        if event.stream is not None:
            speaker = speakers.setdefault(event.stream, Transcript(fold))
            beside.setdefault(event.parent_tool_call_id, []).extend(speaker.lines(event))
    return beside


def print_objects(lines: Iterable[Line]) -> None:
    """Lines to stdout as JSON, in ASCII: nothing in it can drive a terminal."""
    for line in lines:
        click.echo(json.dumps(line._asdict()))


def print_lines(lines: Iterable[Line], raw: bool) -> None:
    """Lines to stdout: visible, indented, and in colour where somebody looks."""
    from hansard.projections.terminal_text import escape_text, wants_colour

    coloured = wants_colour(sys.stdout, os.environ.get("NO_COLOR"))
    out, width = sys.stdout.buffer, terminal_width()
    for line in lines:
        text = "    " * line.depth + (line.text if raw else escape_text(line.text))
        if line.tone == "rule" and len(text) > width:
            text = text[:width] + text[width:].rstrip(text[-1])  # a rule is as long as there is room
        how = COLOURS.get(line.tone) if coloured else None
        out.write((click.style(text, **how) if how else text).encode("utf-8", "backslashreplace") + b"\n")  # half an emoji has no bytes
    out.flush()
