"""What the Messages API streams: a message in pieces. Claude Code passes it on, and captures of the API have it itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from hansard import events as ev
from hansard.adapters.base import ChunkDraft
from hansard.adapters.claude import blocks, wire
from hansard.adapters.claude.fields import merged
from hansard.adapters.claude.messages import Messages, Streamed, tool_call
from hansard.adapters.claude.outcomes import error_of
from hansard.adapters.fields import camel_fields, parse_arguments, place_in_message
from hansard.adapters.open_items import OpenItems
from hansard.events.lenient import as_object


class MessagePieces:
    """The messages of a stream, as far as they have arrived."""

    def __init__(self, messages: Messages, read: Callable[[Any, Any], Any], open: OpenItems) -> None:
        self.messages = messages
        self.read = read
        self.open = open
        self.parent: str | None = None
        """The call that started the agent whose message is read."""
        self.arriving: dict[str | None, str | None] = {}
        """The message that is arriving, by the call that started its agent."""

    def events(self, frame: wire.StreamFields, parent: str | None) -> Iterable[ev.Event]:
        """Returns the events of one piece."""
        self.parent = parent
        return MEANINGS[type(frame.event)](self, frame.api_message_id or self.arriving.get(parent), frame.event, frame)

    def message_start(self, message_id: str | None, event: wire.MessageStart, frame: wire.StreamFields) -> ChunkDraft:
        started = event.message
        message_id = started.id or message_id
        self.arriving[self.parent] = message_id
        message = self.messages.get(message_id)
        message.model, message.tokens = started.model, started.usage
        return ChunkDraft(ev.StatusChange, ev.StatusChangePayload("message_start", {"model": started.model}), message_id)

    def message_delta(self, message_id: str | None, event: wire.MessageDelta, frame: wire.StreamFields) -> Iterable[ev.Event]:
        message = self.messages.get(message_id)
        message.tokens = merged(message.tokens, event.usage)
        return (
            ev.StatusChange(payload=ev.StatusChangePayload("message_delta", camel_fields(event.delta)), response_id=message_id),
            *self.messages.usage(message_id, message, final=True),
        )

    def message_stop(self, message_id: str | None, event: wire.MessageStop, frame: wire.StreamFields) -> Iterable[ev.Event]:
        stop = ChunkDraft(ev.StatusChange, ev.StatusChangePayload("message_stop", frame.abandoned_blocks), message_id)
        used = self.messages.usage(message_id, self.messages.get(message_id), final=False)
        return (*stop, *used) if used else stop

    def ping(self, message_id: str | None, event: wire.Ping, frame: wire.StreamFields) -> Iterable[ev.Event]:
        return (ev.heartbeat(),)

    def stream_error(self, message_id: str | None, event: wire.StreamError, frame: wire.StreamFields) -> Iterable[ev.Event]:
        told = event.error
        error = as_object(told)
        return (ev.Error(payload=error_of(str(error.get("type")), None, str(error.get("message", told)))),)

    def block_start(self, message_id: str | None, event: wire.ContentBlockStart, frame: wire.StreamFields) -> ChunkDraft:
        block = self.read(event.content_block, blocks.Block)
        started = self.messages.get(message_id).start(event.index, block, event.content_block)
        match block:
            case blocks.ToolUse() | blocks.ServerToolUse() | blocks.McpToolUse():
                payload = ev.ToolProgressPayload(tool_call_id=block.id, tool_name=block.name, status="pending")
                return ChunkDraft(ev.ToolProgress, payload, message_id, event.index)
            case blocks.Text():
                return ChunkDraft(ev.AssistantChunk, ev.TextPayload(block.text), message_id, event.index)
            case blocks.Thinking():
                return ChunkDraft(ev.ThinkingChunk, ev.TextPayload(block.thinking), message_id, event.index)
            case _:
                kind = started.kind or as_object(event.content_block).get("type")
                return ChunkDraft(ev.StatusChange, ev.StatusChangePayload("content_block_start", {"block": kind}), message_id, event.index)

    def delta(self, message_id: str | None, event: wire.ContentBlockDelta, frame: wire.StreamFields) -> ChunkDraft:
        index, delta = event.index, event.delta
        if type(delta) is wire.TextDelta:
            return ChunkDraft(ev.AssistantChunk, ev.TextPayload(delta.text), message_id, index)
        if type(delta) is wire.ThinkingDelta:
            return ChunkDraft(ev.ThinkingChunk, ev.TextPayload(delta.thinking), message_id, index)
        block = self.messages.get(message_id).block(index)
        if type(delta) is wire.InputJsonDelta:
            offset = block.received
            block.input.append(delta.partial_json)
            block.received += len(delta.partial_json)
            payload = ev.ToolInputChunkPayload(block.tool_id or f"{message_id}:{index}", delta.partial_json, offset, block.tool_name)
            return ChunkDraft(ev.ToolInputChunk, payload, message_id, index)
        if type(delta) is wire.SignatureDelta:
            block.signature = delta.signature
            return ChunkDraft(ev.StatusChange, ev.StatusChangePayload("signature_delta", {"signature": delta.signature}), message_id, index)
        cited = cast("wire.CitationsDelta", delta).citation
        block.citations.append(cited)
        return ChunkDraft(ev.StatusChange, ev.StatusChangePayload("citations_delta", {"citation": cited}), message_id, index)

    def block_stop(self, message_id: str | None, event: wire.ContentBlockStop, frame: wire.StreamFields) -> Iterable[ev.Event]:
        """The whole block came before this, as an assistant frame; if it did not, the pieces are all we will ever have."""
        index = event.index
        message = self.messages.get(message_id)
        block = message.block(index)
        stop = ChunkDraft(ev.StatusChange, ev.StatusChangePayload("content_block_stop"), message_id, index)
        if block.done:
            return stop
        message.finish(block)
        return self.unsaid(message_id, index, block, stop)

    def unsaid(self, message_id: str | None, index: int, block: Streamed, stop: ChunkDraft) -> Iterator[ev.Event]:
        for event in self.assembled(message_id, index, block):
            event.synthetic = True
            yield place_in_message(event, message_id, index)
        yield from stop

    def assembled(self, message_id: str | None, index: int, block: Streamed) -> Iterator[ev.Event]:
        pieces = self.open.text(message_id, index)
        match block.kind:
            case "text":
                yield ev.AssistantDone(payload=ev.AssistantDonePayload(text=pieces, citations=block.citations or None))
            case "thinking":
                thought = ev.ThinkingDonePayload(text=pieces, signature=block.signature, budget_tokens=self.messages.budget)
                yield ev.ThinkingDone(payload=thought)
            case _ if block.tool_id is not None:
                yield tool_call(block.tool_id, block.tool_name or "", parse_arguments("".join(block.input) or "{}"))
            case _ if block.item is not None:  # it came whole at its start, or nobody knows how its pieces add up
                yield from self.messages.block(self.read(block.item, blocks.Block), block.item, self.parent, None)
            case _:
                pass


MEANINGS: dict[type[Any], Callable[[MessagePieces, str | None, Any, wire.StreamFields], Iterable[ev.Event]]] = {
    wire.ContentBlockDelta: MessagePieces.delta,
    wire.ContentBlockStart: MessagePieces.block_start,
    wire.ContentBlockStop: MessagePieces.block_stop,
    wire.MessageStart: MessagePieces.message_start,
    wire.MessageDelta: MessagePieces.message_delta,
    wire.MessageStop: MessagePieces.message_stop,
    wire.Ping: MessagePieces.ping,
    wire.StreamError: MessagePieces.stream_error,
}
"""What each kind of piece means."""
