"""What is open in a stream: blocks, tool calls, questions. Whatever opens is closed, if not by the wire then by us.

It watches events go by and knows nothing of wires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import msgspec

from hansard.events import (
    Answer,
    AssistantChunk,
    AssistantDone,
    Event,
    PermissionCancelled,
    PermissionRequest,
    PermissionResponse,
    Question,
    ThinkingChunk,
    ThinkingDone,
    ToolCall,
    ToolResult,
    answer,
    assistant_done,
    permission_cancelled,
    thinking_done,
    tool_result,
)


class Ledger:
    """The open things of one stream. ``mine`` is the call that started the stream's own agent, if it is a sub-agent's."""

    def __init__(self, mine: str | None = None) -> None:
        self.mine = mine
        self.blocks: dict[tuple[str | None, int | None], OpenBlock] = {}
        self.tools: dict[str, ToolCall] = {}
        self.permissions: dict[str, PermissionRequest] = {}
        self.questions: dict[str, Question] = {}

    def saw(self, event: Event) -> None:
        """Note what the event opens or closes."""
        note = NOTES.get(type(event))
        if note is not None:
            note(self, event)

    def text(self, response_id: str | None, block_index: int | None) -> str:
        """What the chunks of an open block have said so far."""
        block = self.blocks.get((response_id, block_index))
        return "" if block is None else block.text

    def close(self, reason: str, everything: bool) -> Iterator[Event]:
        """The events that close what is open. At the end of a turn, what a sub-agent has open stays: it may run on in the background."""
        for (response_id, index), block in list(self.blocks.items()):
            if everything or block.parent == self.mine:
                yield _closing(block.interrupted(), block.parent, response_id, index)
        for request_id, request in list(self.permissions.items()):
            if everything or request.parent_tool_call_id == self.mine:
                yield _closing(permission_cancelled(request_id=request_id, reason=reason), request.parent_tool_call_id)
        for request_id, asked in list(self.questions.items()):
            if everything or asked.parent_tool_call_id == self.mine:
                yield _closing(answer(request_id=request_id, values=None, action="cancelled"), asked.parent_tool_call_id)
        for tool_call_id, call in list(self.tools.items()):
            if everything or call.parent_tool_call_id == self.mine:
                result = tool_result(tool_call_id=tool_call_id, result=None, is_error=True, error=reason)
                yield _closing(result, call.parent_tool_call_id)

    def chunk(self, event: Event) -> None:
        """A piece of a block."""
        key = (event.response_id, event.block_index)
        block = self.blocks.get(key)
        if block is None:
            block = self.blocks[key] = OpenBlock(type(event) is ThinkingChunk, event.parent_tool_call_id)
        text = event.payload.text
        if block.half or text[-1:] >= "\ud800":
            event.payload.text = block.add(text)
        else:
            block.parts.append(text)

    def done(self, event: Event) -> None:
        """The whole of a block."""
        self.blocks.pop((event.response_id, event.block_index), None)

    def called(self, event: Event) -> None:
        """A tool call."""
        self.tools[event.payload.tool_call_id] = cast("ToolCall", event)

    def returned(self, event: Event) -> None:
        """A tool result; it learns the tool's name from the call."""
        call = self.tools.pop(event.payload.tool_call_id, None)
        if call is not None and event.payload.tool_name is None:
            event.payload.tool_name = call.payload.tool_name

    def asked_permission(self, event: Event) -> None:
        """A permission question."""
        self.permissions[event.payload.request_id] = cast("PermissionRequest", event)

    def answered_permission(self, event: Event) -> None:
        """Its answer, or its end."""
        self.permissions.pop(event.payload.request_id, None)

    def asked(self, event: Event) -> None:
        """Any other question."""
        self.questions[event.payload.request_id] = cast("Question", event)

    def answered(self, event: Event) -> None:
        """Its answer."""
        self.questions.pop(event.payload.request_id, None)


NOTES: dict[type[Event], Callable[[Ledger, Event], None]] = {
    AssistantChunk: Ledger.chunk,
    ThinkingChunk: Ledger.chunk,
    AssistantDone: Ledger.done,
    ThinkingDone: Ledger.done,
    ToolCall: Ledger.called,
    ToolResult: Ledger.returned,
    PermissionRequest: Ledger.asked_permission,
    PermissionResponse: Ledger.answered_permission,
    PermissionCancelled: Ledger.answered_permission,
    Question: Ledger.asked,
    Answer: Ledger.answered,
}
"""What the events that open or close something mean for it."""


class OpenBlock(msgspec.Struct, gc=False):
    """Text or thinking that has begun and not ended."""

    thinking: bool
    parent: str | None
    parts: list[str] = []
    half: str = ""

    @property
    def text(self) -> str:
        """All of it so far."""
        return "".join(self.parts) + self.half

    def add(self, text: str) -> str:
        """The text of this chunk. Half an emoji (UTF-16 code units are what JavaScript agents cut at) waits for its other half."""
        if self.half:
            text = (self.half + text).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
            self.half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self.half = text[:-1], text[-1]
        self.parts.append(text)
        return text

    def interrupted(self) -> Event:
        """The block as far as it got."""
        return thinking_done(text=self.text, interrupted=True) if self.thinking else assistant_done(text=self.text, interrupted=True)


def _closing(event: Event, parent: str | None, response_id: str | None = None, block_index: int | None = None) -> Event:
    event.synthetic = True
    event.parent_tool_call_id, event.response_id, event.block_index = parent, response_id, block_index
    return event
