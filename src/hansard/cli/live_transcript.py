"""A running session in the terminal: the transcript of `hansard show`, with messages as they arrive, piece by piece."""

from __future__ import annotations

import os
import re
import sys
from datetime import UTC, datetime

import click

from hansard.cli import terminal_width
from hansard.cli.verbs.show import COLOURS, print_lines
from hansard.events import AssistantChunk, AssistantDone, Event, ThinkingChunk, ThinkingDone
from hansard.projections.terminal_text import columns, escape_text, wants_colour
from hansard.projections.transcript import Line, Transcript

Key = tuple[type, str | None, int | None]
INDENT = "  "
_WORD = re.compile(r"\n|[^\S\n]+|\S+")


class Live:
    """Prints events as they come. A message that was printed in pieces is not printed again when it is complete."""

    def __init__(self, fold: int = 10, all: bool = False, asking: bool = False, turns_before: int = 0) -> None:
        self._transcript = Transcript(fold, datetime.now().astimezone().tzinfo or UTC, all, asking, turns_before)
        self._coloured = wants_colour(sys.stdout, os.environ.get("NO_COLOR"))
        self._width = terminal_width() if sys.stdout.isatty() else None
        self._spoken: dict[Key, str] = {}
        self._speaking: Key | None = None
        self._column = 0
        self._after_space = False
        self._line_ends = 0
        self._held: Line | None = None
        """The beginning of a call, printed without the end of the line: its outcome may follow."""

    def show(self, event: Event) -> None:
        """Print one event."""
        if event.parent_tool_call_id is None and isinstance(event, AssistantChunk | ThinkingChunk):
            self._piece(event)
            return
        lines = list(self._transcript.lines(event))
        if isinstance(event, AssistantDone | ThinkingDone) and self._is_shown(event):
            if self._speaking == _key(event) and event.payload.interrupted:
                self.end_line()
                print_lines([Line("  (interrupted)", "dim")], raw=False)
            self.end_line()
            self._speaking = None
        else:
            self.lines(lines)
        self._hold()

    def finish(self) -> None:
        """Print what is left when the session ends."""
        self.lines(list(self._transcript.finish()))

    def lines(self, lines: list[Line]) -> None:
        """Print whole lines; the first may complete the call that is printed already."""
        if not lines:
            return
        if self._held is not None:
            head, first = self._held, lines[0]
            self._held = None
            if first.text.startswith(head.text) and first.depth == head.depth:
                self.write(self._styled(first.text[len(head.text) :], first) + "\n")
                lines = lines[1:]
        self.end_line()
        self._speaking = None
        print_lines(lines, raw=False)

    def write(self, text: str) -> None:
        """Print something of ours, as it is."""
        if text:
            click.echo(text, nl=False)
            self._column = 0 if text.endswith("\n") else self._column + columns(click.unstyle(text))

    def end_line(self) -> None:
        """Start a new line, unless one is started already."""
        self._held = None
        if self._column:
            self.write("\n")

    def _hold(self) -> None:
        """Print the beginning of a call that now runs."""
        *before, head = list(self._transcript.hold()) or [None]
        if head is not None:
            self.lines([line for line in before if line is not None])
            self.end_line()
            self.write(INDENT * 2 * head.depth + self._styled(head.text, head))
            self._held = head
            sys.stdout.flush()

    def _piece(self, event: AssistantChunk | ThinkingChunk) -> None:
        key = _key(event)
        if key != self._speaking:
            self.lines(list(self._transcript.heading(isinstance(event, ThinkingChunk))))
            self.end_line()
            self._speaking, self._line_ends = key, 0
        self._spoken[key] = self._spoken.get(key, "") + event.payload.text
        tone = Line("", "dim" if isinstance(event, ThinkingChunk) else "")
        for word in _WORD.findall(event.payload.text):
            self._word(word, tone)
        sys.stdout.flush()

    def _word(self, word: str, tone: Line) -> None:
        """Print a word: on the next line if it does not fit on this one, unless its beginning is there already."""
        if word == "\n":
            self._line_ends += 1  # those at the end of a message are not printed
            return
        self.write("\n" * self._line_ends)
        self._line_ends = 0
        if self._width is not None and self._after_space and self._column + columns(escape_text(word)) > self._width:
            self.write("\n")
        self._after_space = word.isspace()
        self.write(("" if self._column else INDENT) + self._styled(word, tone))

    def _styled(self, text: str, line: Line) -> str:
        how = COLOURS.get(line.tone) if self._coloured else None
        return click.style(escape_text(text), **how) if how else escape_text(text)

    def _is_shown(self, event: AssistantDone | ThinkingDone) -> bool:
        """Whether all of it was printed in pieces."""
        return self._spoken.pop(_key(event), None) == event.payload.text != ""


def _key(event: Event) -> Key:
    """The block that an event belongs to."""
    kind = ThinkingDone if isinstance(event, ThinkingChunk | ThinkingDone) else AssistantDone
    return kind, event.response_id, event.block_index
