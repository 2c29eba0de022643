"""What is open in a stream: blocks, tool calls, questions. Whatever opens is closed, if not by the wire then by us.

It also notes what decides how a turn ended: an interrupt, and a denial that the agent did not follow up. It watches events go by and knows
nothing of wires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, cast

import msgspec

from hansard import events as ev
from hansard.events.closing import close_block, close_call, close_request


class OpenItems:
    """The open things of one stream. ``parent_call`` is the call that started the stream's own agent, if it is a sub-agent's."""

    def __init__(self, mine: str | None = None) -> None:
        self.parent_call = mine
        self.blocks: dict[tuple[str | None, int | None], OpenBlock] = {}
        self.tools: dict[str, ev.ToolCall] = {}
        self.permissions: dict[str, ev.PermissionRequest] = {}
        self.questions: dict[str, ev.Question] = {}
        self.interrupted = False
        """Whether this turn was interrupted."""
        self.cut_off = False
        """Whether the agent stops what it is saying: a block that is complete now was cut off."""
        self.denial: Denial | None = None
        """The last denial, until the agent says or calls something after it."""

    def apply(self, event: ev.Event) -> None:
        """Note what the event opens or closes."""
        note = OPEN_ITEM_RULES.get(type(event))
        if note is not None:
            note(self, event)

    def text(self, response_id: str | None, block_index: int | None) -> str:
        """What the chunks of an open block have said so far."""
        block = self.blocks.get((response_id, block_index))
        return "" if block is None else block.text

    def end_status(self, status: ev.TurnStatus, error: ev.ErrorInfo | None = None) -> tuple[ev.TurnStatus, ev.ErrorInfo | None]:
        """Returns how the turn ended, given what the wire reports of it.

        A denied call is a fact about that call: a turn in which the agent answers after it is completed like any other. The turn itself is
        denied if it stopped there, with nothing from the agent after the denial. An interrupt, or a denial that interrupts at once, makes
        it an interrupted turn.
        """
        if self.denial is None or self._is_speaking:
            return status, error
        if status == "completed" or (status == "interrupted" and self.denial == "denied" and not self.interrupted):
            return "denied", None
        return status, error

    @property
    def _is_speaking(self) -> bool:
        return any(block.parent == self.parent_call for block in self.blocks.values())

    def turn_began(self, event: ev.Event) -> None:
        """A turn begins."""
        self.interrupted, self.cut_off, self.denial = False, False, None

    def turn_ended(self, event: ev.Event) -> None:
        """A turn ends. One that was interrupted has the code for that, also if its wire has no words for it."""
        if event.payload.status == "interrupted" and event.payload.error is None:
            event.payload.error = ev.ErrorInfo(code="aborted", message="the turn was interrupted")
        self.turn_began(event)

    def stopped(self, event: ev.Event) -> None:
        """An interrupt."""
        self.interrupted = True

    def close(self, reason: str, everything: bool) -> Iterator[ev.Event]:
        """Yields the events that close what is open. At the end of a turn, a subagent's items stay open: it may run in the background."""
        for (response_id, index), block in list(self.blocks.items()):
            if everything or block.parent == self.parent_call:
                yield close_block(block.text, thinking=block.thinking, parent=block.parent, response_id=response_id, block_index=index)
        for request in [*self.permissions.values(), *self.questions.values()]:
            if everything or request.parent_tool_call_id == self.parent_call:
                yield close_request(request, reason)
        for tool_call_id, call in list(self.tools.items()):
            if everything or call.parent_tool_call_id == self.parent_call:
                yield close_call(tool_call_id, call.parent_tool_call_id, reason)

    def chunk(self, event: ev.Event) -> None:
        """A piece of a block."""
        key = (event.response_id, event.block_index)
        block = self.blocks.get(key)
        if block is None:
            block = self.blocks[key] = OpenBlock(type(event) is ev.ThinkingChunk, event.parent_tool_call_id)
        text = event.payload.text
        if block.half or text[-1:] >= "\ud800":
            event.payload.text = block.add(text)
        else:
            block.parts.append(text)

    def done(self, event: ev.Event) -> None:
        """The whole of a block, or what there is of it."""
        self.blocks.pop((event.response_id, event.block_index), None)
        if event.parent_tool_call_id == self.parent_call:
            self.denial = None
            event.payload.interrupted = event.payload.interrupted or self.cut_off

    def called(self, event: ev.Event) -> None:
        """A tool call."""
        self.tools[event.payload.tool_call_id] = cast("ev.ToolCall", event)
        if event.parent_tool_call_id == self.parent_call:
            self.denial = None

    def returned(self, event: ev.Event) -> None:
        """A tool result; it learns the tool's name from the call."""
        call = self.tools.pop(event.payload.tool_call_id, None)
        if call is not None and event.payload.tool_name is None:
            event.payload.tool_name = call.payload.tool_name

    def asked_permission(self, event: ev.Event) -> None:
        """A permission question."""
        self.permissions[event.payload.request_id] = cast("ev.PermissionRequest", event)

    def answered_permission(self, event: ev.Event) -> None:
        """Its answer."""
        self.permissions.pop(event.payload.request_id, None)
        reply = event.payload
        if reply.decision != "allow":
            self.denial = "denied" if reply.decision == "deny" and not reply.interrupt else "canceled"

    def permission_cancelled(self, event: ev.Event) -> None:
        """Its end without an answer."""
        self.permissions.pop(event.payload.request_id, None)

    def question_opened(self, event: ev.Event) -> None:
        """Any other question."""
        self.questions[event.payload.request_id] = cast("ev.Question", event)

    def question_closed(self, event: ev.Event) -> None:
        """Its answer."""
        self.questions.pop(event.payload.request_id, None)


Denial = Literal["denied", "canceled"]
"""How a call was denied: as such, or by canceling the request or the turn with it."""

OPEN_ITEM_RULES: dict[type[ev.Event], Callable[[OpenItems, ev.Event], None]] = {
    ev.AssistantChunk: OpenItems.chunk,
    ev.ThinkingChunk: OpenItems.chunk,
    ev.AssistantDone: OpenItems.done,
    ev.ThinkingDone: OpenItems.done,
    ev.ToolCall: OpenItems.called,
    ev.ToolResult: OpenItems.returned,
    ev.PermissionRequest: OpenItems.asked_permission,
    ev.PermissionResponse: OpenItems.answered_permission,
    ev.PermissionCancelled: OpenItems.permission_cancelled,
    ev.Question: OpenItems.question_opened,
    ev.Answer: OpenItems.question_closed,
    ev.Interrupt: OpenItems.stopped,
    ev.TurnStart: OpenItems.turn_began,
    ev.TurnEnd: OpenItems.turn_ended,
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
