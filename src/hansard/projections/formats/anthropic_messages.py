"""The conversation as Anthropic messages: roles take turns, results come directly after their calls, nothing is empty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from msgspec import Struct

from hansard.events import Event
from hansard.events.content import AnyBlock, DocumentBlock, ThinkingBlock, ToolUseBlock
from hansard.projections.history import AnyPart, AssistantPart, HistoryProjection, Outcomes, ToolResultPart, UserPart
from hansard.projections.media import is_web, pdf, picture
from hansard.projections.omissions import skip_except
from hansard.projections.text import block_text

Block = dict[str, Any]
Message = dict[str, Any]

EMPTY = "the API refuses a text without a word"
BEGINNING = "[the record begins with an answer]"


class Turn(Struct):
    """What one side says until the other does."""

    event: Event
    role: Literal["user", "assistant"]
    content: list[Block]
    model: str | None = None

    @property
    def message(self) -> Message:
        """As the API has it."""
        return {"role": self.role, "content": self.content}


class Turns(HistoryProjection[Any]):
    """The turns of a conversation, each held until the other side speaks. A subclass says in `turn` how one looks."""

    handled = HistoryProjection.handled | {"session_init"}
    skipped = skip_except(handled, HistoryProjection.skipped)
    thinking = "thinking without a signature of Claude's is not history for this API"

    def __init__(self) -> None:
        super().__init__()
        self._open: Turn | None = None
        self._begun = False

    def turn(self, turn: Turn) -> Iterator[Any]:
        """How this turn looks."""
        raise NotImplementedError

    def write(self, part: AnyPart) -> Iterator[Any]:
        """The turn that is complete because the other side speaks."""
        match part:
            case UserPart():
                content = _with_words(map(_block, part.blocks))
                if content:
                    yield from self._say(part.event, "user", content)
                else:
                    self.skip(part.event, EMPTY)
            case AssistantPart():
                if content := self._answer(part):
                    yield from self._say(part.event, "assistant", content, part.model)
            case Outcomes():
                yield from self._say(part.event, "user", [self._result(outcome) for outcome in part.outcomes])

    def finish(self) -> Iterator[Any]:
        """The last turns."""
        yield from super().finish()
        yield from self._close()

    def _say(self, event: Event, role: Literal["user", "assistant"], content: list[Block], model: str | None = None) -> Iterator[Any]:
        content = self.whole(content)
        if self._open is not None and self._open.role != role:
            yield from self._close()
        if self._open is not None:
            self._open.content += content
            return
        if not self._begun and role == "assistant":
            self.report.note("a conversation must begin with the user: a line is put before it")
            yield from self.turn(Turn(event, "user", [_text(BEGINNING)]))
        self._begun = True
        self._open = Turn(event, role, content, model)

    def _close(self) -> Iterator[Any]:
        if self._open is not None:
            yield from self.turn(self._open)
        self._open = None

    def _answer(self, part: AssistantPart) -> list[Block]:
        content: list[Block] = []
        spoken = [not isinstance(block, ThinkingBlock) and bool(block_text(block).strip()) for block in part.blocks]
        for index, (event, block) in enumerate(zip(part.events, part.blocks, strict=True)):
            match block:
                case ThinkingBlock():
                    thought = _thought(block) if part.is_claude and any(spoken[index:]) else None
                    if thought is None:
                        self.skip(event, self.thinking)
                    else:
                        content.append(thought)
                case ToolUseBlock():
                    content.append({"type": "tool_use", "id": block.id, "name": block.name, "input": block.input})
                case _ if spoken[index]:
                    content.append(_text(block_text(block)))
                case _:
                    self.skip(event, EMPTY)
        return content

    def _result(self, outcome: ToolResultPart) -> Block:
        content = _with_words(map(_block, outcome.blocks or []))
        result: Block = {"type": "tool_result", "tool_use_id": outcome.call.id}
        if content:
            result["content"] = content
        return result | ({"is_error": True} if outcome.is_error else {})


class AnthropicMessages(Turns):
    """Each turn as a message."""

    output = "array"

    def turn(self, turn: Turn) -> Iterator[Message]:
        """A turn as a message."""
        yield turn.message


def _block(block: AnyBlock) -> Block:
    if image := picture(block):
        data = {"type": "base64", "media_type": image.media_type, "data": image.data}
        return {"type": "image", "source": {"type": "url", "url": image.url} if image.url else data}
    if document := pdf(block):
        return _document({"type": "base64", "media_type": document.media_type, "data": document.data}, document.title)
    match block:
        case DocumentBlock(url=str(url)) if is_web(url):
            return _document({"type": "url", "url": url}, block.title)
        case DocumentBlock(text=str(text)) if text.strip():
            return _document({"type": "text", "media_type": "text/plain", "data": text}, block.title)
        case _:
            return _text(block_text(block))


def _with_words(blocks: Iterable[Block]) -> list[Block]:
    """Without empty texts, which the API refuses."""
    return [block for block in blocks if block["type"] != "text" or block["text"].strip()]


def _document(source: Block, title: str | None) -> Block:
    return {"type": "document", "source": source} | ({"title": title} if title else {})


def _thought(block: ThinkingBlock) -> Block | None:
    if block.redacted:
        return {"type": "redacted_thinking", "data": block.redacted}
    return {"type": "thinking", "thinking": block.text, "signature": block.signature} if block.signature else None


def _text(text: str) -> Block:
    return {"type": "text", "text": text}
