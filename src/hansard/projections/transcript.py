"""A session as a conversation: events in, lines for a terminal out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, tzinfo
from typing import Literal, NamedTuple

from hansard import events as ev
from hansard.events.times import to_datetime
from hansard.projections import reading
from hansard.projections.call_text import (
    Call,
    Change,
    arguments_text,
    call_argument,
    call_changes,
    call_name,
    call_outcome,
    call_output,
    decision_text,
    hidden_arguments,
    relative,
)
from hansard.projections.reading import AnyItem, Reader, ToolUse
from hansard.projections.text import block_text

Tone = Literal["", "user", "agent", "dim", "tool", "good", "bad", "rule"]
"""What a line is, so that the printer can choose a color."""

RULE_COLUMNS = 72
MAX_ARGUMENT_CHARACTERS = 400
"""The length of a call's argument when output is shortened."""
MAX_LINE_CHARACTERS = 240
"""The length of a line of output when output is shortened."""
MIN_CUT_CHARACTERS = 60
"""A text that is longer by no more than this is not cut."""
ASKED_CHARACTERS = 1_000
"""The length of the beginning, and of the end, of an input that a person is asked to allow."""

MARKS = {"completed": "✓", "in_progress": "▸", "pending": "·", "cancelled": "✗"}
"""The mark of a plan's step, by its status."""
ENDS = {"completed": "✓", "interrupted": "■"}
"""The mark of a turn's end, by its status."""


_DIFF_TONES: dict[str, Tone] = {"+": "good", "-": "bad"}


class Line(NamedTuple):
    """A line of the transcript. The text may contain anything an agent sent: escape it before a terminal gets it."""

    text: str
    tone: Tone = ""
    depth: int = 0
    seq: int = 0
    """The seq of the event that it shows, 0 for totals and the like."""


class Transcript:
    """Turns events into lines.

    ``fold`` is the number of lines of a tool's output that are shown, 0 for all. ``all`` adds the procedure: rate limits, the queue,
    injected context, the agent's process. ``asking`` shows each permission request before its answer. ``turns_before`` is the number of
    turns before the first event.
    """

    def __init__(self, fold: int = 10, zone: tzinfo = UTC, all: bool = False, asking: bool = False, turns_before: int = 0) -> None:
        self._fold = fold
        self._zone = zone
        self._reader = Reader(all, asking, turns_before)
        self._group: str | None = None
        """What the last lines were; a blank line separates groups."""
        self._continues = False
        self._announced: AnyItem | None = None

    def lines(self, event: ev.Event) -> Iterator[Line]:
        """Returns the lines that an event completes. A call waits for its result, or for the next line."""
        return self._drawn(self._reader.read(event))

    def finish(self) -> Iterator[Line]:
        """Returns the last lines: what is still open, and the totals of several turns."""
        return self._drawn(self._reader.finish())

    def flush(self) -> Iterator[Line]:
        """Returns the lines of the call that waits for its result."""
        return self._drawn(self._reader.flush())

    def expect(self, events: Iterable[ev.Event]) -> Iterator[Line]:
        """Look ahead; returns the lines that introduce the agent, which come first."""
        self._reader.expect(events)
        return self._drawn(self._reader.introduce())

    def heading(self, thinking: bool) -> Iterator[Line]:
        """Returns the lines above a message of the agent that is about to be shown piece by piece."""
        yield from self.flush()
        item = reading.Thought(text="") if thinking else reading.Message(speaker=self._reader.agent, kind="agent")
        yield from list(self._drawn([item]))

    def hold(self) -> Iterator[Line]:
        """Returns the first line of the call that waits for its result, once. `lines` repeats it, with its outcome."""
        use = self._reader.held
        if use is not None and use is not self._announced:
            yield from self._separator(use)
            self._announced = use
            yield Line(self._head(use)[0], "tool", use.depth)

    def _drawn(self, items: Iterable[AnyItem]) -> Iterator[Line]:
        for item in items:
            if item is not self._announced:
                yield from self._separator(item)
            for line in self._draw(item):
                for text in line.text.split("\n"):
                    yield Line(text, line.tone, item.depth, item.seq)

    def _separator(self, item: AnyItem) -> Iterator[Line]:
        """A blank line between groups, and between messages. The next message of the same speaker has no heading."""
        group = _group(item)
        self._continues = group == self._group
        follows_rule = self._group == "turn" and not isinstance(item, reading.TurnEnded)
        if self._group is not None and not follows_rule and (not self._continues or isinstance(item, reading.Message | reading.Plan)):
            yield Line("")
        self._group = group

    def _draw(self, item: AnyItem) -> Iterator[Line]:
        match item:
            case reading.Introduction():
                yield Line(" · ".join(item.facts), "dim")
            case reading.TurnStarted():
                trigger = "" if item.trigger == "user" else f" · {item.trigger}"
                yield Line(_rule(f"turn {item.number}{trigger}{self._time(item.timestamp)}"), "rule")
            case reading.Message():
                yield from self._message(item)
            case reading.Thought():
                yield Line("thinking:", "dim")
                if item.text:
                    yield Line(indented(item.text.rstrip("\n")), "dim")
            case ToolUse():
                yield from self._tool_use(item)
            case reading.Asked():
                yield from self._request(item)
            case reading.Decided():
                yield Line(f"  {decision_text(item.payload)}", "good" if item.payload.decision == "allow" else "bad")
            case reading.Questions():
                for question, options in item.questions:
                    yield Line(f"? {question}", "tool")
                    yield from (Line(f"    {option}", "dim") for option in options)
            case reading.Answered():
                yield Line(f"  → {item.text}", "good")
            case reading.Plan():
                yield Line("plan:", "tool")
                yield from (Line(f"  {MARKS.get(status, status)} {content}", "") for content, status in item.steps)
            case reading.Failure():
                yield Line(f"✗ {error_text(item)}", "bad")
            case reading.Notice():
                yield Line(self._folded(item.text), "" if item.important else "dim")
            case reading.TurnEnded():
                tone = "good" if item.status == "completed" else "bad"
                yield Line(" · ".join([f"{ENDS.get(item.status, '✗')} {item.status}", *item.notes, *item.facts]), tone)
            case reading.Total():
                yield Line(_rule(" · ".join(item.facts)), "rule")

    # ---- messages

    def _message(self, item: reading.Message) -> Iterator[Line]:
        notes = f" ({', '.join(item.notes)})" if item.notes else ""
        is_context = item.kind == "harness"
        if not self._continues:
            yield Line(f"{item.speaker}{notes}:", "dim" if item.kind == "harness" else item.kind)
        if item.text:
            text = item.text.rstrip("\n")
            yield Line(indented(self._folded(text) if is_context else text), "dim" if is_context else "")
        for block in item.blocks:
            yield Line(indented(block_text(block)), "bad" if isinstance(block, ev.RefusalBlock) else "dim")

    # ---- tools

    def _head(self, use: ToolUse) -> list[str]:
        """What a call does: its first line, and the rest of a long command."""
        payload = use.call.payload
        argument = call_argument(payload, self._reader.cwd)
        if self._fold:
            argument = _cut(argument, MAX_ARGUMENT_CHARACTERS)
        first, *rest = self._folded(argument.rstrip("\n")).split("\n")
        return [f"▸ {call_name(payload)}  {first}".rstrip(), *rest]

    def _tool_use(self, use: ToolUse) -> Iterator[Line]:
        call, tone = use.call, "bad" if use.call.failed else "tool"
        outcome = call_outcome(call)
        first, *rest = [f"◂ {call_name(call.payload)}"] if use.part == "result" else self._head(use)
        has_ended = use.part in ("whole", "result")
        yield Line(f"{first}  {outcome}".rstrip() if has_ended else first, tone)
        yield from (Line(f"    {line}", tone) for line in rest)
        if use.part in ("whole", "call"):
            yield from self._changes(call_changes(call), call.denied)
        if has_ended and (output := self._folded(call_output(call))):
            yield Line("\n".join(f"  │ {line}" for line in output.split("\n")), "bad" if call.failed else "dim")

    def _changes(self, changes: list[Change], denied: bool) -> Iterator[Line]:
        for change in changes:
            if len(changes) > 1:
                yield Line(f"  {relative(change.path, self._reader.cwd)}", "dim")
            for line in self._folded("\n".join(change.lines)).split("\n"):
                yield Line(f"  │ {line}", "dim") if denied else _changed(line)

    def _request(self, item: reading.Asked) -> Iterator[Line]:
        """A request with everything that is asked for, unless the call above shows it."""
        asked = item.payload
        question = f"? Allow {asked.tool_name or 'this'}?"
        payload = item.call or ev.ToolCallPayload("", asked.tool_name or "", asked.input, kind="edit")
        if hidden_arguments(payload):
            yield Line(f"{question}  {_ends(arguments_text(asked.input))}", "tool")
            return
        argument = call_argument(payload, self._reader.cwd)
        is_shown = item.call is not None and argument in "\n".join(self._head(ToolUse(call=Call(payload))))
        yield Line(question if is_shown else f"{question}  {_ends(argument)}", "tool")
        for change in call_changes(Call(payload)):
            yield from map(_changed, _ends("\n".join(change.lines)).split("\n"))

    # ---- texts

    def _folded(self, text: str) -> str:
        """The beginning of a long text, and how much is left out."""
        if not self._fold:
            return text
        lines = text.split("\n")
        shown = lines if len(lines) <= self._fold + 1 else lines[: self._fold]
        cut = [_cut(line, MAX_LINE_CHARACTERS) for line in shown]
        return "\n".join(cut + [f"… {len(lines) - len(shown):,} more lines"] * (len(shown) < len(lines)))

    def _time(self, timestamp: int) -> str:
        if timestamp < ev.EARLIEST_CALENDAR_MS:  # counted from the start of a recording
            return ""
        return f" · {to_datetime(timestamp, self._zone):%Y-%m-%d %H:%M:%S}"


def _changed(line: str) -> Line:
    return Line(f"  {line}", _DIFF_TONES.get(line[:1], "dim"))


def _group(item: AnyItem) -> str | None:
    match item:
        case reading.Message():
            return f"message of {item.speaker} {' '.join(item.notes)} {item.depth}"
        case ToolUse() | reading.Decided():
            return "tools"
        case reading.Questions() | reading.Answered() | reading.Asked():
            return "questions"
        case reading.Notice() | reading.Failure():
            return "notices"
        case reading.TurnStarted():
            return "turn"
        case _:
            return type(item).__name__


def error_text(failure: reading.Failure) -> str:
    """Returns an error as text: its code, the provider's, and the message."""
    error = failure.error
    codes = [str(code) for code in (error.status, error.provider_code) if code and code != error.code]
    wait = f" (retry in {error.retry_after_ms / 1000:.0f} s)" if error.retry_after_ms else ""
    return " ".join([error.code, *codes]) + (f": {failure.message}" if failure.message else "") + wait


def _cut(text: str, limit: int) -> str:
    """The beginning of a text that is much longer than the limit, and how much is left out."""
    left_out = len(text) - limit
    return text if left_out <= MIN_CUT_CHARACTERS else f"{text[:limit].rstrip()} … ({left_out:,} more characters)"


def indented(text: str) -> str:
    """Returns the text two columns to the right."""
    return "\n".join(f"  {line}" if line else line for line in text.split("\n"))


def _ends(text: str) -> str:
    """The beginning and the end of a long text, and how much lies between."""
    if len(text) <= 2 * ASKED_CHARACTERS:
        return text
    left_out = len(text) - 2 * ASKED_CHARACTERS
    return f"{text[:ASKED_CHARACTERS]}\n  … {left_out:,} of {len(text):,} characters are not shown …\n{text[-ASKED_CHARACTERS:]}"


def _rule(text: str) -> str:
    return f"── {text} ".ljust(RULE_COLUMNS, "─")
