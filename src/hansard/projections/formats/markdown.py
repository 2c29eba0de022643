"""A session as a page of Markdown. Text stands in quotes and fences: it can neither end them nor bring in HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import assert_never

from hansard import events as ev
from hansard.events.times import to_datetime
from hansard.projections import reading
from hansard.projections.base import Projection
from hansard.projections.call_text import (
    call_argument,
    call_changes,
    call_name,
    call_outcome,
    call_output,
    decision_text,
    hidden_arguments,
    relative,
)
from hansard.projections.omissions import BOOKKEEPING, STREAMING, skip_except
from hansard.projections.reading import AnyItem, Reader
from hansard.projections.reading_levels import LEVELS, level_of
from hansard.projections.reading_order import ReadingOrder
from hansard.projections.text import block_text, json_text
from hansard.projections.transcript import ENDS, MARKS, error_text

USES = frozenset(name for name, level in LEVELS.items() if level != "record") | {"usage"}
MAX_SPAN_CHARACTERS = 100
"""A longer argument has a fence of its own."""

_LINE = re.compile(r"\r\n|\r|\n")
_TICKS = re.compile("`+")
# Tags, pictures that would be fetched, addresses that run, and whatever could spell one of these.
_NOT_PROSE = re.compile(r"<|!\[|&[#\w]+;|script:|data:", re.IGNORECASE)


class Markdown(Projection[str]):
    """Turns, messages, thinking folded away, calls with their changes and output, and subagents inside the call that started them.

    ``all`` adds the procedure: rate limits, the queue, injected context, the agent's process.
    """

    output = "text"
    handled = USES
    skipped = skip_except(USES, STREAMING | BOOKKEEPING)
    observed = frozenset({"assistant_chunk"})
    options = frozenset({"all"})

    def __init__(self, all: bool = False) -> None:
        super().__init__()
        self._all = all
        self._reader = Reader(all)
        self._order = ReadingOrder()
        self._began = False
        self._speaker: tuple[int, str] | None = None

    def feed(self, event: ev.Event) -> Iterable[str]:
        """The same. The pieces of a text say when it began."""
        if isinstance(event, ev.AssistantChunk) and not event.replay:
            self._order.begin(event)
        return super().feed(event)

    def handle(self, event: ev.Event) -> Iterator[str]:
        """The parts of the page that this event completes."""
        if not self._began:
            self._began = True
            yield f"# Session {span(event.session_id or 'without a name')}\n\n"
        level = level_of(event)
        if level == "procedure" and not self._all:
            self.skip(event, "procedure, which the option `all` includes")
        elif level == "record" and not isinstance(event, ev.UsageEvent):
            self.skip(event, BOOKKEEPING[event.type])
        yield from self._read(self._order.feed(event))

    def finish(self) -> Iterator[str]:
        """What was still open, and the totals."""
        yield from self._read(self._order.finish())
        for item in self._reader.finish():
            yield from self._put(item)

    def _read(self, events: Iterable[ev.Event]) -> Iterator[str]:
        for event in events:
            for item in self._reader.read(event):
                yield from self._put(item)

    def _put(self, item: AnyItem) -> Iterator[str]:
        """A part of the page; a subagent's parts are quoted as deep as it was called."""
        heading = _speaker(item)
        if heading is not None and self._speaker != (item.depth, heading):
            yield quoted(f"### {heading}", item.depth) + "\n\n"
        if heading is not None or isinstance(item, reading.TurnStarted):
            self._speaker = None if heading is None else (item.depth, heading)
        for part in self._parts(item):
            if part:
                yield quoted(part, item.depth) + "\n\n"

    def _parts(self, item: AnyItem) -> Iterator[str]:
        match item:
            case reading.Introduction():
                yield " · ".join(map(span, item.facts))
            case reading.TurnStarted():
                yield f"## Turn {item.number}{_time(item.timestamp)}"
            case reading.Message():
                yield prose(item.text) if item.text else ""
                yield from map(block_markdown, item.blocks)
                yield "*Interrupted.*" if "interrupted" in item.notes else ""
            case reading.Thought():
                yield block_markdown(ev.ThinkingBlock(item.text))
            case reading.ToolUse():
                yield from self._tool_use(item)
            case reading.Asked(payload=asked):
                yield f"**Permission requested** {span(asked.tool_name or 'this')}"
                yield fence(json_text(asked.input), "json")
            case reading.Decided(payload=decision):
                yield f"**Permission** {plain(decision_text(decision))}"
            case reading.Questions():
                for question, options in item.questions:
                    yield prose("\n".join([question, *(f"- {option}" for option in options)]))
            case reading.Answered():
                yield f"**Answer**\n\n{prose(item.text)}"
            case reading.Plan():
                yield "**Plan**"
                yield fence("\n".join(f"{MARKS.get(status, status)} {content}" for content, status in item.steps))
            case reading.Failure():
                yield f"**✗ Error**\n\n{fence(error_text(item))}"
            case reading.Notice():
                yield prose(item.text)
            case reading.TurnEnded():
                yield f"**{ENDS.get(item.status, '✗')} {plain(' · '.join([item.status, *item.notes, *item.facts]))}**"
                yield "---"
            case reading.Total():
                yield f"**{plain(' · '.join(item.facts))}**"
            case _:
                assert_never(item)

    def _tool_use(self, use: reading.ToolUse) -> Iterator[str]:
        call = use.call
        name, outcome = call_name(call.payload), call_outcome(call) if use.part != "call" else ""
        if use.part == "result":
            yield f"**◂** {span(name)} {plain(outcome)}".rstrip()
        else:
            yield from self._call(call.payload, f"**▸** {span(name)}", plain(outcome))
            for change in call_changes(call):
                path = relative(change.path, self._reader.cwd)
                yield span(path) if path not in call_argument(call.payload, self._reader.cwd) else ""
                yield fence("\n".join(change.lines), "diff")
        if use.part != "call" and (output := call_output(call)):
            yield fence(output)

    def _call(self, payload: ev.ToolCallPayload, title: str, outcome: str) -> Iterator[str]:
        """A call by the argument that says what it does, else with all of its arguments."""
        argument = call_argument(payload, self._reader.cwd)
        if hidden_arguments(payload) and payload.args:
            yield f"{title} {outcome}".rstrip()
            yield fence(json_text(payload.args), "json")
        elif "\n" in argument or len(argument) > MAX_SPAN_CHARACTERS:
            yield f"{title} {outcome}".rstrip()
            yield fence(argument)
        else:
            yield " ".join(filter(None, [title, span(argument) if argument else "", outcome]))


def _speaker(item: AnyItem) -> str | None:
    """The heading above an item, which the next items of the same speaker share."""
    match item:
        case reading.Message():
            notes = [note for note in item.notes if note != "interrupted"]
            return plain(item.speaker.capitalize() + (f" ({', '.join(notes)})" if notes else ""))
        case _:
            return None


def _time(timestamp: int) -> str:
    if timestamp < ev.EARLIEST_CALENDAR_MS:  # counted from the start of a recording
        return ""
    return f" · {to_datetime(timestamp):%Y-%m-%d %H:%M:%S} UTC"


def block_markdown(block: ev.AnyBlock) -> str:
    """A block as Markdown."""
    match block:
        case ev.TextBlock(text=text):
            return prose(text)
        case ev.ThinkingBlock(text=text):
            inside = prose(text) if text else "*Withheld by the provider.*"
            return f"<details><summary>Thinking</summary>\n\n{inside}\n\n</details>"
        case ev.CodeBlock():
            return fence(block.code, block.language or "")
        case ev.DiffBlock() if block.diff is None:
            texts = _lines("-", block.old_text), _lines("+", block.new_text)
            return f"{span(block.path)}\n\n{fence(chr(10).join(filter(None, texts)), 'diff')}"
        case ev.DiffBlock():
            return f"{span(block.path)}\n\n{fence(block.diff or '', 'diff')}"
        case ev.ImageBlock() | ev.FileBlock():
            where = block.path or block.url or block.file_id or block.blob or (block.data and f"{len(block.data):,} characters of base64")
            return f"*{block.__struct_config__.tag}* {span(' '.join(filter(None, [block.media_type, where])) or 'without a name')}"
        case ev.ResourceBlock() if block.text is None:
            return f"*resource* {span(block.uri)}"
        case _:
            return fence(block_text(block))


def prose(text: str) -> str:
    """What somebody said: their own Markdown in a quote, which ends whatever they left open. What is more than prose is fenced."""
    return fence(text) if _NOT_PROSE.search(text) else quoted(text)


def fence(text: str, language: str = "") -> str:
    """Text as it is, in a fence that is longer than any in it."""
    ticks = "`" * max(3, 1 + max((len(found) for found in _TICKS.findall(text)), default=0))
    return f"{ticks}{re.sub('[^A-Za-z0-9+#-]', '', language)}\n" + "\n".join(_LINE.split(text)) + f"\n{ticks}"


def span(text: str) -> str:
    """Text as code in a line."""
    ticks = "`" * (1 + max((len(found) for found in _TICKS.findall(text)), default=0))
    words = " ".join(text.split())
    room = " " if not words or "`" in (words[0], words[-1]) else ""  # CommonMark takes off one space at each end
    return f"{ticks}{room}{words}{room}{ticks}"


def plain(text: str) -> str:
    """Words of which no character means anything to Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#!|~&])", r"\\\1", " ".join(text.split()), flags=re.ASCII)


def quoted(text: str, depth: int = 1) -> str:
    """Each line behind as many marks."""
    marks = "> " * depth
    return "\n".join(marks + line for line in _LINE.split(text)) if depth else text


def _lines(mark: str, text: str | None) -> str:
    return "" if text is None else "\n".join(mark + line for line in _LINE.split(text))
