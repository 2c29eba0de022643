"""The conversation as OpenAI chat messages: what the API accepts as history. Only the main agent's; interrupted text is not history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hansard.content import AnyBlock, ImageBlock, RefusalBlock, ThinkingBlock, ToolUseBlock
from hansard.events import Event
from hansard.projections.conversation import TYPES, Answer, AnyItem, Conversation, Returned, Said
from hansard.projections.projection import Projected, Projection
from hansard.projections.reasons import BOOKKEEPING, STREAMING, except_for
from hansard.projections.words import as_text, block_text, result_text

Message = dict[str, Any]


def openai_messages(events: Iterable[Event]) -> Projected[Message]:
    """A session as OpenAI chat messages."""
    return Projected(OpenAIMessages(), events)


class OpenAIMessages(Projection[Message]):
    """Every call is answered directly after its message: an API refuses anything else."""

    shape = "array"
    uses = TYPES - {"session_init", "usage", "turn_end"}
    leaves = except_for(uses, STREAMING | BOOKKEEPING | {"turn_end": "history has no turns", "usage": "history has no prices"})

    def __init__(self) -> None:
        super().__init__()
        self._conversation = Conversation()
        self._open: dict[str, str] = {}
        """Calls that no message has answered yet, and their names."""

    def take(self, event: Event) -> Iterator[Message]:
        """The messages that are complete with this event."""
        if event.parent_tool_call_id is not None:
            self.leave(event, "a sub-agent's: the main agent has its result")
            return
        for item in self._conversation.feed(event):
            yield from self._message(item)

    def finish(self) -> Iterator[Message]:
        """The last messages."""
        for item in self._conversation.close_all():
            yield from self._message(item)
        yield from self._answered()

    def _message(self, item: AnyItem) -> Iterator[Message]:
        match item:
            case Returned(payload=payload) if payload.tool_call_id in self._open:
                del self._open[payload.tool_call_id]
                yield {"role": "tool", "tool_call_id": payload.tool_call_id, "content": result_text(payload)}
            case Returned(payload=payload):
                yield from self._answered()
                self.report.note("a result that came late is told as user text")
                yield {"role": "user", "content": f"[result of {payload.tool_name or payload.tool_call_id}]\n{result_text(payload)}"}
            case Said():
                yield from self._answered()
                yield {"role": "user", "content": _content(item.blocks)}
            case Answer():
                yield from self._answered()
                yield from self._answer(item)
            case _:
                pass

    def _answer(self, answer: Answer) -> Iterator[Message]:
        message: Message = {"role": "assistant", "content": None}
        said: list[str] = []
        for event, block in zip((event for event in answer.events if event.type != "usage"), answer.blocks, strict=True):
            match block:
                case _ if any(block is cut for cut in answer.interrupted):
                    self.leave(event, "cut off: no model said this to its end")
                case ThinkingBlock():
                    self.leave(event, "thinking is not history for this API")
                case ToolUseBlock():
                    self._open[block.id] = block.name
                    function = {"name": block.name, "arguments": as_text(block.input)}
                    message.setdefault("tool_calls", []).append({"id": block.id, "type": "function", "function": function})
                case RefusalBlock():
                    message["refusal"] = block_text(block)
                case _:
                    said.append(block_text(block))
        if said:
            message["content"] = "\n\n".join(said)
        if len(message) > 2 or said:
            yield message

    def _answered(self) -> Iterator[Message]:
        """Nothing else may be said while a call is open."""
        for call in self._open:
            self.report.note("a call without a result is answered with a placeholder")
            yield {"role": "tool", "tool_call_id": call, "content": "[no result]"}
        self._open.clear()


def _content(blocks: list[AnyBlock]) -> str | list[dict[str, Any]]:
    """Text alone is a string; with pictures it is a list of parts."""
    if not any(isinstance(block, ImageBlock) and (block.data or block.url) for block in blocks):
        return "\n".join(block_text(block) for block in blocks)
    return [_part(block) for block in blocks]


def _part(block: AnyBlock) -> dict[str, Any]:
    if isinstance(block, ImageBlock) and (block.data or block.url):
        return {"type": "image_url", "image_url": {"url": block.url or f"data:{block.media_type or 'image/png'};base64,{block.data}"}}
    return {"type": "text", "text": block_text(block)}
