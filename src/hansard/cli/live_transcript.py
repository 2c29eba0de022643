"""A running session in the terminal: the transcript of `hansard show`, and text as it is spoken, piece by piece."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime

import click

from hansard.cli.verbs.show import COLOURS, print_lines
from hansard.events import AssistantChunk, AssistantDone, Event, ThinkingChunk, ThinkingDone, assistant_done
from hansard.projections.terminal_text import escape_text, wants_colour
from hansard.projections.transcript import Line, Transcript

Key = tuple[type, str | None, int | None]


class Live:
    """Shows events as they come. What was spoken in pieces is not shown again when it is complete."""

    def __init__(self, fold: int = 10) -> None:
        self._transcript = Transcript(fold, datetime.now().astimezone().tzinfo or UTC)
        self._coloured = wants_colour(sys.stdout, os.environ.get("NO_COLOR"))
        self._spoken: dict[Key, str] = {}
        self._speaking: Key | None = None
        self._column = 0

    def show(self, event: Event) -> None:
        """Show one event."""
        if event.parent_tool_call_id is None and isinstance(event, AssistantChunk | ThinkingChunk):
            self._piece(event)
        elif isinstance(event, AssistantDone | ThinkingDone) and self._is_shown(event):
            if self._speaking == _key(event):
                self.write("\n")  # also after an empty line: it is one
            self._speaking = None
            if event.payload.interrupted:
                print_lines([Line("  (cut off)", "dim")], raw=False)
        else:
            self.lines(list(self._transcript.lines(event)))

    def lines(self, lines: list[Line]) -> None:
        """Show whole lines."""
        if lines:
            self.end_line()
            self._speaking = None
            print_lines(lines, raw=False)

    def write(self, text: str) -> None:
        """Show something of ours, as it is."""
        click.echo(text, nl=False)
        self._column = 0 if text.endswith("\n") else 1

    def end_line(self) -> None:
        """Whatever comes next begins on a line of its own."""
        if self._column:
            self.write("\n")

    def _piece(self, event: AssistantChunk | ThinkingChunk) -> None:
        key = _key(event)
        if key != self._speaking:
            header = [] if isinstance(event, ThinkingChunk) else list(self._transcript.lines(assistant_done(text="")))
            self.lines(header[:1])
            self.end_line()
            self._speaking = key
        self._spoken[key] = self._spoken.get(key, "") + event.payload.text
        tone = COLOURS["dim"] if isinstance(event, ThinkingChunk) and self._coloured else {}
        for index, part in enumerate(event.payload.text.split("\n")):
            if index:
                self.write("\n")
            if part:
                self.write(("" if self._column else "  ") + click.style(escape_text(part), **tone, reset=bool(tone)))
        sys.stdout.flush()

    def _is_shown(self, event: AssistantDone | ThinkingDone) -> bool:
        """Whether all of it was shown in pieces."""
        return self._spoken.pop(_key(event), None) == event.payload.text != ""


def _key(event: Event) -> Key:
    """The block that an event belongs to."""
    kind = ThinkingDone if isinstance(event, ThinkingChunk | ThinkingDone) else AssistantDone
    return kind, event.response_id, event.block_index
