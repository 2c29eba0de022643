"""The conversation as OpenAI chat messages: what the API accepts as history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hansard.events.content import AnyBlock, RefusalBlock, ToolUseBlock
from hansard.projections.history import AnyPart, AssistantPart, HistoryProjection, Outcomes, UserPart
from hansard.projections.media import address, data_url, pdf, picture
from hansard.projections.text import block_text, json_text

Message = dict[str, Any]


class OpenAIMessages(HistoryProjection[Message]):
    """Parallel calls stand in one message; each is answered by a message of its own, and what those cannot carry follows them."""

    output = "array"
    id_limit = 40

    def write(self, part: AnyPart) -> Iterator[Message]:
        """A part as messages."""
        match part:
            case UserPart():
                yield self.whole({"role": "user", "content": _content(part.blocks)})
            case AssistantPart():
                yield from self._answer(part)
            case Outcomes():
                yield from self._results(part)

    def _answer(self, part: AssistantPart) -> Iterator[Message]:
        message: Message = {"role": "assistant", "content": None}
        said: list[str] = []
        for block in self.report_change(part):
            match block:
                case ToolUseBlock():
                    function = {"name": block.name, "arguments": json_text(block.input)}
                    message.setdefault("tool_calls", []).append({"id": block.id, "type": "function", "function": function})
                case RefusalBlock():
                    message["refusal"] = block_text(block)
                case _:
                    said.append(block_text(block))
        if said:
            message["content"] = "\n\n".join(said)
        if len(message) > 2 or said:
            yield self.whole(message)

    def _results(self, part: Outcomes) -> Iterator[Message]:
        shown: list[Message] = []
        for outcome in part.outcomes:
            blocks = outcome.blocks or []
            text = "\n".join(block_text(block) for block in blocks)
            yield self.whole({"role": "tool", "tool_call_id": outcome.call.id, "content": text})
            pictures = [block for block in blocks if _media(block)]
            if pictures:
                self.report.note("a picture that a tool gave back follows as the user's")
                shown += [_text(f"[from {outcome.call.name}]"), *map(_part, pictures)]
        if shown:
            yield self.whole({"role": "user", "content": shown})


def _content(blocks: list[AnyBlock]) -> str | list[Message]:
    """Text alone is a string; with pictures it is a list of parts."""
    if not any(_media(block) for block in blocks):
        return "\n".join(block_text(block) for block in blocks)
    return [_part(block) for block in blocks]


def _part(block: AnyBlock) -> Message:
    return _media(block) or _text(block_text(block))


def _media(block: AnyBlock) -> Message | None:
    if image := picture(block):
        return {"type": "image_url", "image_url": {"url": address(image)}}
    if document := pdf(block):
        data = data_url(document.media_type, document.data)
        return {"type": "file", "file": {"filename": document.title or "document.pdf", "file_data": data}}
    return None


def _text(text: str) -> Message:
    return {"type": "text", "text": text}
