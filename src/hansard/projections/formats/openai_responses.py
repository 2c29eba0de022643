"""The conversation as input items of OpenAI's Responses API: a call and its output are items of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hansard.events.content import AnyBlock, ToolUseBlock
from hansard.projections.history import AnyPart, AssistantPart, HistoryProjection, Outcomes, UserPart
from hansard.projections.media import address, data_url, pdf, picture
from hansard.projections.text import block_text, json_text

Item = dict[str, Any]


class OpenAIResponses(HistoryProjection[Item]):
    """Outputs follow the answer that asked for them; pictures stay where they are."""

    output = "array"
    thinking = "sealed reasoning is good only in the session it was made in"

    def write(self, part: AnyPart) -> Iterator[Item]:
        """A part as items."""
        for item in self.items(part):
            yield self.whole(item)

    def items(self, part: AnyPart) -> Iterator[Item]:
        """A part as items."""
        match part:
            case UserPart():
                yield {"type": "message", "role": "user", "content": [_input(block) for block in part.blocks]}
            case AssistantPart():
                yield from self._answer(part)
            case Outcomes():
                for outcome in part.outcomes:
                    yield {"type": "function_call_output", "call_id": outcome.call.id, "output": _output(outcome.blocks or [])}

    def _answer(self, part: AssistantPart) -> Iterator[Item]:
        said = [block_text(block) for block in self.report_change(part) if not isinstance(block, ToolUseBlock)]
        if said:
            yield {"type": "message", "role": "assistant", "content": "\n\n".join(said)}
        for call in part.calls:
            yield {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": json_text(call.input)}


def _output(blocks: list[AnyBlock]) -> str | list[Item]:
    """Text alone is a string; with pictures it is a list of parts."""
    if not any(picture(block) or pdf(block) for block in blocks):
        return "\n".join(block_text(block) for block in blocks)
    return [_input(block) for block in blocks]


def _input(block: AnyBlock) -> Item:
    if image := picture(block):
        return {"type": "input_image", "image_url": address(image), "detail": "auto"}
    if document := pdf(block):
        data = data_url(document.media_type, document.data)
        return {"type": "input_file", "filename": document.title or "document.pdf", "file_data": data}
    return {"type": "input_text", "text": block_text(block)}
