"""A session as a page of Markdown. What was said stands in quotes and fences: it can neither end them nor bring in HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hansard import events as ev
from hansard.projections import conversation
from hansard.projections.base import Projection
from hansard.projections.conversation import AnyItem, Conversation, InputMessage, LateUsage, OutputMessage, ToolReturn, TurnEnded
from hansard.projections.omissions import BOOKKEEPING, STREAMING, skip_except
from hansard.projections.text import block_text, json_text, result_text

USES = conversation.TYPES | {"error", "interrupt", "result"}
SPEAKERS = {"human": "User", "agent": "Another agent", "harness": "Harness"}

_LINE = re.compile(r"\r\n|\r|\n")
_TICKS = re.compile("`+")
# Tags, pictures that would be fetched, addresses that run, and whatever could spell one of these.
_NOT_PROSE = re.compile(r"<|!\[|&[#\w]+;|script:|data:", re.IGNORECASE)


class Markdown(Projection[str]):
    """Turns, who spoke, thinking folded away, calls and their results, sub-agents inside the call that started them."""

    output = "text"
    handled = USES
    skipped = skip_except(USES, STREAMING | BOOKKEEPING)

    def __init__(self) -> None:
        super().__init__()
        self._conversation = Conversation()
        self._began = False
        self._speaker: tuple[str | None, str] | None = None
        self._inside: dict[str, str | None] = {}
        """The lanes of the calls that sub-agents made."""
        self._tokens: dict[str, int] = {}

    def handle(self, event: ev.Event) -> Iterator[str]:
        """The parts of the page that this event completes."""
        if not self._began:
            self._began = True
            yield f"# Session {span(event.session_id or 'without a name')}\n\n"
        if event.type == "session_init":
            yield from self._about(event)
        match event:
            case ev.Error(payload=error):
                yield from self._note(event, f"Error: {error.code}", error.message)
            case ev.Interrupt(payload=stopped):
                yield from self._note(event, f"Interrupted: {stopped.reason}")
            case ev.Result(payload=result) if result.cost_usd is not None:
                yield from self._note(event, f"Cost: {result.cost_usd:.4f} USD")
            case ev.Result():
                self.skip(event, BOOKKEEPING["result"])
            case _ if event.type == "usage" and event.payload.scope != "message":
                self.skip(event, "the counts of the messages are added up instead")
            case _:
                for item in self._conversation.feed(event):
                    yield from self._item(item)

    def finish(self) -> Iterator[str]:
        """What was still open."""
        for item in self._conversation.close_all():
            yield from self._item(item)

    def _about(self, event: ev.Event) -> Iterator[str]:
        said = event.payload
        facts = {"agent": said.agent_id, "version": said.agent_version, "model": said.model, "folder": said.cwd}
        yield from self._put(event.parent_tool_call_id, "\n".join(f"- {name}: {span(fact)}" for name, fact in facts.items() if fact))

    def _item(self, item: AnyItem) -> Iterator[str]:
        match item:
            case InputMessage():
                yield from self._heading(item.lane, SPEAKERS[item.author])
                for block in item.blocks:
                    yield from self._put(item.lane, block_markdown(block))
            case OutputMessage():
                self._add(item.usage)
                yield from self._heading(item.lane, "Assistant" if item.lane is None else "Sub-agent")
                for block in item.blocks:
                    if isinstance(block, ev.ToolUseBlock) and item.lane is not None:
                        self._inside[block.id] = item.lane
                    cut = "\n\n*Cut off here.*" if block in item.interrupted else ""
                    yield from self._put(item.lane, block_markdown(block) + cut)
            case ToolReturn(payload=payload):
                failed = payload.is_error or payload.error is not None
                title = f"**{'Failed' if failed else 'Result'}** {span(payload.tool_call_id)}"
                parts = [block_markdown(block) for block in payload.content or []] or [fence(result_text(payload))]
                yield from self._put(item.lane, "\n\n".join([title, *parts]))
            case TurnEnded(payload=end):
                word = end.status if end.stop_reason in (None, end.status) else f"{end.status} ({end.stop_reason})"
                tokens = ", ".join(f"{name} {count:,}" for name, count in self._tokens.items())
                self._tokens = {}
                yield from self._note(
                    item.first, f"Turn ended: {word}", end.error and end.error.message, f"Tokens: {tokens}" if tokens else None
                )
                yield "---\n\n"
                self._speaker = None
            case LateUsage(payload=payload):
                self._add(payload.usage)

    def _note(self, event: ev.Event, title: str, text: str | None = None, more: str | None = None) -> Iterator[str]:
        parts = [f"**{plain(title)}**", fence(text) if text else "", plain(more or "")]
        yield from self._put(event.parent_tool_call_id, "\n\n".join(filter(None, parts)))

    def _add(self, usage: ev.Usage | None) -> None:
        if usage is None:
            return
        for name, count in (("in", usage.input_tokens), ("out", usage.output_tokens), ("from cache", usage.cache_read_input_tokens)):
            if count is not None:
                self._tokens[name] = self._tokens.get(name, 0) + count

    def _heading(self, lane: str | None, who: str) -> Iterator[str]:
        if self._speaker != (lane, who):
            self._speaker = (lane, who)
            yield from self._put(lane, f"## {who}")

    def _put(self, lane: str | None, text: str) -> Iterator[str]:
        """A part of the page; what a sub-agent says is quoted as deep as it was called."""
        if text:
            yield quoted(text, self._depth(lane)) + "\n\n"

    def _depth(self, lane: str | None) -> int:
        depth = 0
        while lane is not None and depth < 8:
            lane, depth = self._inside.get(lane), depth + 1
        return depth


def block_markdown(block: ev.AnyBlock) -> str:
    """A block as Markdown."""
    match block:
        case ev.TextBlock(text=text):
            return prose(text)
        case ev.ThinkingBlock(text=text):
            inside = prose(text) if text else "*Withheld by the provider.*"
            return f"<details><summary>Thinking</summary>\n\n{inside}\n\n</details>"
        case ev.ToolUseBlock():
            return f"**Call** {span(block.name)} {span(block.id)}\n\n{fence(json_text(block.input), 'json')}"
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
    return f"{ticks} {' '.join(text.split())} {ticks}"


def plain(text: str) -> str:
    """Words of which no character means anything to Markdown."""
    return re.sub(r"([^\w\s,.:])", r"\\\1", " ".join(text.split()), flags=re.ASCII)


def quoted(text: str, depth: int = 1) -> str:
    """Each line behind as many marks."""
    marks = "> " * depth
    return "\n".join(marks + line for line in _LINE.split(text)) if depth else text


def _lines(mark: str, text: str | None) -> str:
    return "" if text is None else "\n".join(mark + line for line in _LINE.split(text))
