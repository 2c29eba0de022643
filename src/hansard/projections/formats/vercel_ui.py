"""The UI message stream of Vercel's AI SDK (``ai`` 5 to 7), as server-sent events, and the same as a list of messages.

A stream is one answer of the assistant: ``start``, its parts, and one of ``finish``, ``abort``, ``error``. So a turn is a message, and a
whole session is its answers one after the other, each with an id of its own; give the projection the events of one turn to serve one
answer. The user's words are not in a stream, because who asked has them; the list (``vercel-ui-messages``) has them, and is what a page
begins with.

Every tool is ``dynamic``: no page has declared an agent's tools. What is said that the format has no word for is a ``data-<our type>`` part
that holds the event, sub-agents among it: a text of theirs among the parts would read as if the assistant had said it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from msgspec import Struct

from hansard import events as ev
from hansard.projections.base import EXTENSION_KEY, Projection
from hansard.projections.block_streams import Block, BlockStreams, Done, Piece
from hansard.projections.omissions import BOOKKEEPING, STREAMING, skip_except
from hansard.projections.text import block_text, event_json, image_url, json_text, present_fields, result_text, whole_payload

Chunk = dict[str, Any]

HELD = 256
"""How many events of a turn wait for its first word before they make a message of their own."""

_REASONS: dict[ev.TurnStatus, str] = {"completed": "stop", "max_tokens": "length", "refused": "content-filter", "denied": "other"}
_LEFT = {
    "audio_chunk",
    "auth_status",
    "configuration_change",
    "control_request",
    "control_response",
    "heartbeat",
    "mcp_status",
    "process",
    "queue_update",
    "rate_limit",
    "status_change",
    "tool_output_chunk",
    "tool_progress",
}
"""Types that would be thousands of parts in a message and tell its reader nothing."""
_SPEECH = (
    ev.AssistantChunk,
    ev.AssistantDone,
    ev.ThinkingChunk,
    ev.ThinkingDone,
    ev.ContentBlock,
    ev.ToolInputChunk,
    ev.ToolCall,
    ev.ToolResult,
)
_PIECES = (ev.AssistantChunk, ev.ThinkingChunk, ev.ToolInputChunk)


class Tool(Struct):
    """A call that has a part in this message."""

    name: str
    about: Chunk
    known: bool = False
    """Whether its input is complete."""
    over: bool = False
    approval: str | None = None
    approved: bool | None = None


class OpenUiMessage:
    """The message that is being told."""

    def __init__(self, name: str) -> None:
        self.id = name
        self.speaking = BlockStreams()
        self.tools: dict[str, Tool] = {}
        self.step: str | None = None
        self.in_step = False
        self.usage: list[Any] = []

    def asks(self, request: str) -> Tool | None:
        """The call that this permission was asked for."""
        return next((tool for tool in self.tools.values() if tool.approval == request), None)


class VercelUi(Projection[Chunk]):
    """Every part is opened before anything is added to it, and closed before the message is."""

    output = "sse-done"
    handled = frozenset(ev.TYPES) - _LEFT
    skipped = skip_except(handled, STREAMING | BOOKKEEPING)
    leaves_unknown = None

    def __init__(self) -> None:
        super().__init__()
        self._answer: OpenUiMessage | None = None
        self._answers = 0
        self._turn: ev.TurnStart | None = None
        self._held: list[ev.Event] = []
        self._model: str | None = None

    # ---- messages

    def handle(self, event: ev.Event) -> Iterable[Chunk]:
        """The chunks of an event."""
        if isinstance(event, ev.AssistantChunk | ev.ThinkingChunk) and (delta := self._delta(event)) is not None:
            return (delta,)
        return [chunk if _is_safe(chunk) else self._made_safe(chunk) for chunk in self._take(event)]

    def _delta(self, event: Piece) -> Chunk | None:
        """A piece, if it opens and closes nothing. Most events are one."""
        answer = self._answer
        if answer is None or not answer.in_step or event.parent_tool_call_id is not None or event.response_id not in (None, answer.step):
            return None
        block = answer.speaking.continues(event)
        return None if block is None else {"type": f"{_kind(block)}-delta", "id": block.id, "delta": event.payload.text}

    def _made_safe(self, chunk: Chunk) -> Chunk:
        self.report.note("an object with a key that the reader refuses is told as text")
        return _safe(chunk)

    def _take(self, event: ev.Event) -> Iterator[Chunk]:
        main = event.parent_tool_call_id is None
        if isinstance(event, ev.SessionInit):
            self._model = event.payload.model or self._model
        if isinstance(event, ev.TurnStart) and main:
            yield from self._lost()
            self._turn = event
        elif isinstance(event, ev.TurnEnd) and main:
            yield from self._begin(event)
            yield from self._ended(event)
            self._turn = None
        elif isinstance(event, ev.UserMessage) and main and self._is_before_answer():
            if self._answer is not None:
                yield from self._lost()
            yield from self.user_message(event)
        elif self._answer is None and not isinstance(event, _SPEECH):
            yield from self._hold(event)
        elif not main and isinstance(event, _PIECES):
            self.skip(event, "a piece of a sub-agent's: it comes whole later")
        else:
            yield from self._begin(event)
            yield from self._say(event)

    def finish(self) -> Iterator[Chunk]:
        """The end of a message that nothing ended."""
        if self._answer is None and self._held and self._turn is not None:
            yield from self._begin(self._turn)
        yield from self._lost()

    def user_message(self, event: ev.UserMessage) -> Iterator[Chunk]:
        """What the user says before an answer."""
        self.skip(event, "a stream is the answer: who asked has the question")
        yield from ()

    def _is_before_answer(self) -> bool:
        """Whether nobody is answering: no message is open, or one outside every turn, which ends here."""
        return self._answer is None or self._turn is None

    def _hold(self, event: ev.Event) -> Iterator[Chunk]:
        """Events of a turn wait for its first word; outside every turn there is no answer they could be a part of."""
        if self._turn is None:
            self.skip(event, "between two answers: part of neither")
            return
        self._held.append(event)
        if len(self._held) == HELD:
            yield from self._begin(event)

    def _begin(self, event: ev.Event) -> Iterator[Chunk]:
        if self._answer is not None:
            return
        self._answers += 1
        turn = self._turn
        name = (None if turn is None else turn.turn_id) or event.response_id or event.id or "answer"
        self._answer = OpenUiMessage(f"{name}:{self._answers}")
        about = present_fields(sessionId=event.session_id or None, turnId=None if turn is None else turn.turn_id, model=self._model)
        about |= present_fields(seq=event.seq or None, timestamp=event.timestamp if event.timestamp >= 0 else None)
        yield {"type": "start", "messageId": self._answer.id, "messageMetadata": {EXTENSION_KEY: about}}
        held, self._held = self._held, []
        for waiting in held:
            yield from self._say(waiting)

    def _close(self) -> Iterator[Chunk]:
        """Close every part."""
        answer = self._answer
        if answer is None:
            return
        for block in answer.speaking.cut_off(everywhere=True):
            yield _block_end(block, {"interrupted": True})
        for name, tool in answer.tools.items():
            yield from self._answered(tool, False)
            if not tool.known:
                self.report.note("a call whose input never came")
                yield {"type": "tool-input-error", "toolCallId": name, "toolName": tool.name, "errorText": "cut off", **_tool(tool, None)}
        if answer.in_step:
            yield {"type": "finish-step"}

    def _lost(self) -> Iterator[Chunk]:
        """A message that no turn_end ends."""
        if self._answer is None:
            self._turn = None
            for event in self._held:
                self.skip(event, "of a turn without an answer and without an end")
            self._held = []
            return
        yield from self._close()
        answer, self._answer = self._answer, None
        metadata = {EXTENSION_KEY: {"usage": answer.usage}} if answer.usage else None
        if self._turn is None:
            yield {"type": "finish", **present_fields(messageMetadata=metadata)}
        else:
            yield {"type": "abort", "reason": "the record ends here"}
        self._turn = None

    def _ended(self, event: ev.TurnEnd) -> Iterator[Chunk]:
        payload, answer = event.payload, self._answer
        yield from self._close()
        self._answer = None
        end = whole_payload(event)
        metadata = {EXTENSION_KEY: {"end": end, **({"usage": answer.usage} if answer is not None and answer.usage else {})}}
        if payload.status in _REASONS:
            yield {"type": "finish", "finishReason": _REASONS[payload.status], "messageMetadata": metadata}
            return
        yield {"type": "message-metadata", "messageMetadata": metadata}
        if payload.status == "interrupted":
            yield {"type": "abort", "reason": payload.stop_reason or "interrupted"}
        else:
            yield {"type": "error", "errorText": payload.stop_reason or payload.status if payload.error is None else payload.error.message}

    # ---- parts

    def _say(self, event: ev.Event) -> Iterator[Chunk]:
        answer = self._answer
        if answer is None or event.parent_tool_call_id is not None:
            yield self._data(event)
            return
        yield from self._step(event, answer)
        match event:
            case ev.AssistantChunk() | ev.ThinkingChunk():
                yield from self._piece(event, answer)
            case ev.AssistantDone() | ev.ThinkingDone():
                yield from self._done(event, answer)
            case ev.ContentBlock():
                yield from self._block(event)
            case ev.ToolInputChunk():
                yield from self._input(event, answer)
            case ev.ToolCall():
                yield from self._call(event, answer)
            case ev.ToolResult():
                yield from self._result(event, answer)
            case ev.PermissionRequest() | ev.PermissionResponse() | ev.PermissionCancelled():
                yield from self._permission(event, answer)
            case ev.TurnStart():
                pass
            case _:
                if isinstance(event, ev.UsageEvent):
                    answer.usage.append(whole_payload(event))
                else:
                    yield self._data(event)

    def _step(self, event: ev.Event, answer: OpenUiMessage) -> Iterator[Chunk]:
        """A step is one message of the model."""
        if not isinstance(event, _SPEECH) or isinstance(event, ev.ToolResult):
            return
        if isinstance(event, ev.ToolInputChunk | ev.ToolCall) and event.payload.tool_call_id in answer.tools:
            return  # the reader looks for a call that has begun in the current step alone
        if answer.in_step and (event.response_id is None or event.response_id == answer.step):
            return
        if answer.in_step:
            yield {"type": "finish-step"}
        answer.in_step, answer.step = True, event.response_id
        yield {"type": "start-step"}

    def _data(self, event: ev.Event) -> Chunk:
        return {"type": f"data-{event.type}", "data": event_json(event)}

    def _piece(self, event: Piece, answer: OpenUiMessage) -> Iterator[Chunk]:
        block = answer.speaking.piece(event)
        yield from _block_start(block)
        yield {"type": f"{_kind(block)}-delta", "id": block.id, "delta": event.payload.text}

    def _done(self, event: Done, answer: OpenUiMessage) -> Iterator[Chunk]:
        end = answer.speaking.done(event)
        yield from _block_start(end.block)
        if end.rest:
            yield {"type": f"{_kind(end.block)}-delta", "id": end.block.id, "delta": end.rest}
        about = {name: value for name, value in whole_payload(event).items() if name != "text"}
        if end.differs:
            self.report.note("a text that is not what its pieces said: the whole of it is in the metadata")
            about["text"] = event.payload.text
        yield _block_end(end.block, about)

    def _block(self, event: ev.ContentBlock) -> Iterator[Chunk]:
        block = event.payload.block
        match block:
            case ev.ImageBlock() if url := image_url(block):
                yield {"type": "file", "url": url, "mediaType": block.media_type or "image/png"}
            case ev.FileBlock(data=str(data), media_type=str(media_type)):
                yield {"type": "file", "url": f"data:{media_type};base64,{data}", "mediaType": media_type}
            case ev.RefusalBlock():
                name = f"refusal-{event.seq or event.id}"
                yield {"type": "text-start", "id": name}
                yield {"type": "text-delta", "id": name, "delta": block_text(block)}
                yield {"type": "text-end", "id": name, "providerMetadata": {EXTENSION_KEY: whole_payload(event)}}
            case _:
                yield self._data(event)

    # ---- tools

    def _input(self, event: ev.ToolInputChunk, answer: OpenUiMessage) -> Iterator[Chunk]:
        payload = event.payload
        tool = answer.tools.get(payload.tool_call_id)
        if tool is None:
            tool = answer.tools[payload.tool_call_id] = Tool(payload.tool_name or payload.tool_call_id, {})
            yield {"type": "tool-input-start", "toolCallId": payload.tool_call_id, "toolName": tool.name, "dynamic": True}
        if tool.known:
            yield self._data(event)
        else:
            yield {"type": "tool-input-delta", "toolCallId": payload.tool_call_id, "inputTextDelta": payload.chunk}

    def _call(self, event: ev.ToolCall, answer: OpenUiMessage) -> Iterator[Chunk]:
        payload = event.payload
        tool = answer.tools.get(payload.tool_call_id)
        if tool is not None and tool.known:
            self.report.note("a call that is said twice is a data part the second time")
            yield self._data(event)
            return
        about = present_fields(kind=payload.kind, server=payload.server, seq=event.seq or None)
        tool = answer.tools[payload.tool_call_id] = Tool(payload.tool_name, about, known=True)
        head = {"type": "tool-input-available", "toolCallId": payload.tool_call_id, "toolName": tool.name}
        yield {**head, **_tool(tool, payload.args), **present_fields(title=payload.title)}

    def _result(self, event: ev.ToolResult, answer: OpenUiMessage) -> Iterator[Chunk]:
        payload = event.payload
        tool = answer.tools.get(payload.tool_call_id)
        if tool is not None and tool.over:
            self.report.note("a second result of a call is a data part")
            yield self._data(event)
            return
        if tool is None or not tool.known:
            self.report.note("a result whose call is not in this answer: the call is told again, without its input")
            tool = answer.tools[payload.tool_call_id] = Tool(payload.tool_name or payload.tool_call_id, {"inputUnknown": True}, known=True)
            head = {"type": "tool-input-available", "toolCallId": payload.tool_call_id, "toolName": tool.name}
            yield {**head, **_tool(tool, None)}
        tool.over = True
        yield from self._answered(tool, not payload.is_error)
        if tool.approved is False:
            yield {"type": "tool-output-denied", "toolCallId": payload.tool_call_id}
            yield self._data(event)
        else:
            yield _output(payload, {**tool.about, **_about(event)})

    # ---- permission: a part of the call it is asked for

    def _permission(
        self, event: ev.PermissionRequest | ev.PermissionResponse | ev.PermissionCancelled, answer: OpenUiMessage
    ) -> Iterator[Chunk]:
        request = event.payload.request_id
        if isinstance(event, ev.PermissionRequest):
            call = event.payload.tool_call_id or ""
            tool = answer.tools.get(call)
            if tool is not None and tool.known and not tool.over and tool.approved is not False:
                yield from self._answered(tool, True)
                tool.approval, tool.approved = request, None
                reason = present_fields(reason=event.payload.description)
                yield {"type": "tool-approval-request", "approvalId": request, "toolCallId": call, **reason}
        elif (tool := answer.asks(request)) is not None and tool.approved is None:
            tool.approved = isinstance(event, ev.PermissionResponse) and event.allowed
            reason = event.payload.message if isinstance(event, ev.PermissionResponse) else event.payload.reason
            yield {"type": "tool-approval-response", "approvalId": request, "approved": tool.approved, **present_fields(reason=reason)}
        yield self._data(event)

    def _answered(self, tool: Tool, approved: bool) -> Iterator[Chunk]:
        """A part with an output must say how it was approved, also when the log does not."""
        if tool.approval is not None and tool.approved is None:
            self.report.note("an answer that is not in the log is taken from what happened")
            tool.approved = approved
            yield {"type": "tool-approval-response", "approvalId": tool.approval, "approved": approved, "reason": "not on the record"}


def _is_safe(value: Any) -> bool:
    """Whether the SDK's reader takes it: it refuses a whole chunk for a key that could reach an object's prototype."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return not _is_refused(fields) and (_is_flat(fields.values()) or all(map(_is_safe, fields.values())))
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return _is_flat(items) or all(map(_is_safe, items))
    return True


def _is_flat(items: Iterable[Any]) -> bool:
    return _DEEP.isdisjoint(map(type, items))


_DEEP = frozenset({dict, list})


def _is_refused(fields: dict[str, Any]) -> bool:
    return "__proto__" in fields or (isinstance(fields.get("constructor"), dict) and "prototype" in fields["constructor"])


def _safe(value: Any) -> Any:
    match value:
        case dict():
            fields = cast("dict[str, Any]", value)
            return json_text(fields) if _is_refused(fields) else {name: _safe(item) for name, item in fields.items()}
        case list():
            return [_safe(item) for item in cast("list[Any]", value)]
        case _:
            return value


def _kind(block: Block) -> str:
    return "reasoning" if block.thinking else "text"


def _block_start(block: Block) -> Iterator[Chunk]:
    if block.begins:
        block.begins = False
        yield {"type": f"{_kind(block)}-start", "id": block.id}


def _block_end(block: Block, about: Chunk) -> Chunk:
    return {"type": f"{_kind(block)}-end", "id": block.id, **({"providerMetadata": {EXTENSION_KEY: about}} if about else {})}


def _tool(tool: Tool, args: Any) -> Chunk:
    return {"input": args, "dynamic": True, **({"toolMetadata": {EXTENSION_KEY: tool.about}} if tool.about else {})}


def _about(event: ev.ToolResult) -> Chunk:
    """What a result says beside its output."""
    names = ("exitCode", "durationMs", "error", "content")
    return {name: value for name, value in whole_payload(event).items() if name in names}


def _output(payload: ev.ToolResultPayload, about: Chunk) -> Chunk:
    call = {"toolCallId": payload.tool_call_id, "dynamic": True}
    if payload.is_error:
        metadata = {EXTENSION_KEY: {**about, "result": payload.result}}
        return {"type": "tool-output-error", **call, "errorText": result_text(payload) or "failed", "toolMetadata": metadata}
    output = result_text(payload) if payload.result is None else payload.result
    return {"type": "tool-output-available", **call, "output": output, **({"toolMetadata": {EXTENSION_KEY: about}} if about else {})}
