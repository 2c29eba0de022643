"""OpenAI Responses: the events of a stream or whole bodies, and the requests they answer. Wire notes: README.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hansard.adapter import Context, Piece, decoder
from hansard.adapters.openai import ends, items, parts, responses_wire
from hansard.adapters.openai.item_events import Items, Slot, call_id, call_name, has_input, is_call, refusal
from hansard.adapters.openai.words import response_usage, told
from hansard.content import ImageBlock, RefusalBlock, TextBlock, ThinkingBlock
from hansard.events import (
    AssistantChunk,
    AssistantDone,
    Error,
    ErrorInfo,
    Event,
    TextPayload,
    ThinkingChunk,
    ThinkingDone,
    ToolCall,
    ToolInputChunk,
    ToolInputChunkPayload,
    audio_chunk,
    audio_done,
    content_block,
    interrupt,
    mcp_status,
    queue_update,
    status_change,
    tool_output_chunk,
    tool_progress,
    user_message,
)
from hansard.loose import as_list, as_object
from hansard.words import at

_ONGOING = ("queued", "in_progress")
_ANSWERS = (
    "reasoning",
    "function_call",
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "tool_search_call",
    "program",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "compaction",
)


_event = decoder(responses_wire.AnyEvent).decode
_message = decoder(responses_wire.Message).decode


def _decode(data: bytes) -> Any:
    """An event in one step, as most messages are; any other in the two that `Message` asks for."""
    try:
        return _event(data)
    except ValueError:
        return _message(data)


class Running:
    """A response while it arrives."""

    def __init__(self, response_id: str | None) -> None:
        self.id = response_id
        self.slots: dict[int, Slot] = {}
        self.blocks = 0
        self.refused = False
        self.sounds = 0
        self.transcript: list[str] = []
        self.spoke = False
        self.closed = False

    def block(self) -> int:
        """The place of a block that begins now."""
        self.blocks += 1
        return self.blocks - 1

    def slot(self, index: int) -> Slot:
        """The item at that place of the output."""
        found = self.slots.get(index)
        if found is None:
            found = self.slots[index] = Slot(self.id, self.block)
        return found


class Responses(Items):
    """``POST /v1/responses``, streaming or not, also in the background."""

    formats = ("openai-responses",)
    wire = responses_wire.Message
    sent_wire = responses_wire.Request

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.running: Running | None = None
        self.ended: set[str] = set()
        self.known: set[str] = set()
        self.instructions: Any = None
        self._decode_received = _decode

    @classmethod
    def recognises(cls, message: dict[str, Any]) -> bool:
        """An event with a sequence number, a body, or a request."""
        if str(message.get("type")).startswith("response."):
            return "sequence_number" in message or "response" in message
        return message.get("object") == "response" or ("input" in message and "model" in message)

    def time_of(self, message: Any) -> int | None:
        """When the response was created, said by the events that show it whole."""
        response = getattr(message, "response", message)
        if not isinstance(response, responses_wire.Response):
            return None
        return self.date(response.created_at, self.running is None or self.running.id != response.id)

    # ---- from the API

    def translate(self, message: Any) -> Iterable[Event]:
        if self.running is None and type(message) not in responses_wire.OUTER:
            return self.take_up(message)
        return self.event(message)

    def take_up(self, message: Any) -> Iterator[Event]:
        """A stream that begins in the middle (``starting_after``) does not say which response it is."""
        self.running = Running(None)
        self.waiting = None
        yield from self.need_turn("user")
        yield from self.event(message)

    def event(self, message: Any) -> Iterable[Event]:
        wire = responses_wire
        match message:
            case _ if type(message) in wire.INPUT_DELTAS:
                return self.input_delta(message)
            case wire.TextDelta() if not message.logprobs:
                slot = self.slot(message.output_index)
                place = slot.block("part", message.content_index)
                return Piece(AssistantChunk, TextPayload(message.delta), slot.response_id, place)
            case wire.ItemAdded():
                return (self.item_added(message),)
            case wire.ItemDone():
                return self.item_done(self.slot(message.output_index), message.item)
            case wire.ArgumentsDone():
                return (self.call_progress(message),)
            case wire.Created() | wire.InProgress() | wire.Queued() if self.goes_on(message.response):
                return (at(status_change(status=message.response.status or "in_progress"), message.response.id),)
            case _:
                return self.other_event(message)

    def other_event(self, message: Any) -> Iterator[Event]:
        wire = responses_wire
        match message:
            case wire.TextDelta():
                slot = self.slot(message.output_index)
                yield slot.put(AssistantChunk(payload=TextPayload(message.delta)), "part", message.content_index)
                yield slot.put(status_change(status="logprobs", detail=message.logprobs), "part", message.content_index)
            case wire.SummaryTextDelta():
                chunk = ThinkingChunk(payload=TextPayload(message.delta))
                yield self.slot(message.output_index).put(chunk, "summary", message.summary_index)
            case wire.ReasoningDelta():
                chunk = ThinkingChunk(payload=TextPayload(message.delta))
                yield self.slot(message.output_index).put(chunk, "reasoning", message.content_index)
            case wire.RefusalDelta():
                slot = self.slot(message.output_index)
                slot.refusals.setdefault(message.content_index, []).append(message.delta)
                yield slot.put(status_change(status="refusal_delta", detail={"delta": message.delta}), "part", message.content_index)
            case wire.Created() | wire.InProgress() | wire.Queued():
                yield from self.begin(message.response)
                yield at(status_change(status=message.response.status or "in_progress"), message.response.id)
            case wire.Completed() | wire.Incomplete() | wire.Failed() | wire.Cancelled():
                yield from self.end(message.response, _word(message))
            case wire.Response():
                yield from self.body(message)
            case wire.ErrorEvent():
                nested = message.error if message.error is not None else told(message, "error", "status")
                yield from self.broken(nested, message.status or self.http_status)
            case wire.ErrorBody():
                yield from self.broken(message.error, self.http_status)
            case wire.PartAdded():
                yield self.part_added(message)
            case wire.PartDone() | wire.TextDone() | wire.RefusalDone():
                yield self.slot(message.output_index).put(status_change(status=_tag(message)), "part", message.content_index)
            case wire.AnnotationAdded():
                added = status_change(status=_tag(message), detail=message.annotation)
                yield self.slot(message.output_index).put(added, "part", message.content_index)
            case wire.SummaryPartAdded() | wire.SummaryPartDone() | wire.SummaryTextDone():
                yield self.slot(message.output_index).put(status_change(status=_tag(message)), "summary", message.summary_index)
            case wire.ReasoningDone():
                yield self.slot(message.output_index).put(status_change(status=_tag(message)), "reasoning", message.content_index)
            case wire.PartialImage():
                yield self.partial_image(message)
            case wire.ShellOutputDelta():
                yield from self.shell_output_delta(message)
            case wire.Compacting():
                yield status_change(status="compacting")
            case wire.AudioDelta() | wire.AudioDone() | wire.TranscriptDelta() | wire.TranscriptDone():
                yield self.audio(message)
            case wire.SteerAccepted() | wire.SteerPending() | wire.SteerFailed():
                yield from self.steered(message)
            case _ if isinstance(message, wire.ListProgress):
                server = getattr(self.slot(message.output_index).item, "server_label", None)
                yield mcp_status(server="unknown" if server is None else server, state=_word(message))
            case _:  # wire.CallProgress
                yield self.call_progress(message)

    # ---- items

    def current(self) -> Running:
        """The response being read."""
        if self.running is None:
            self.running = Running(None)
        return self.running

    def slot(self, index: int) -> Slot:
        return self.current().slot(index)

    def id_of(self, index: int) -> str:
        item = self.slot(index).item
        return f"{self.current().id}:{index}" if item is None else call_id(item)

    def item_added(self, message: responses_wire.ItemAdded) -> Event:
        slot = self.slot(message.output_index)
        slot.item = item = self.read(message.item, items.Item)
        if item is not None and is_call(item):
            status = as_object(message.item).get("status")
            progress = tool_progress(
                tool_call_id=call_id(item), tool_name=call_name(item), status=status if isinstance(status, str) else "in_progress"
            )
            return slot.put(progress)
        fields = as_object(message.item)
        detail = {key: fields[key] for key in ("type", "id") if key in fields}
        return at(status_change(status=_tag(message), detail=detail), slot.response_id)

    def item_done(self, slot: Slot, value: Any) -> Iterator[Event]:
        """A whole item; the end of the response repeats it, and then it is no news."""
        if slot.done:
            return
        slot.done = True
        item = self.read(value, items.Item)
        if item is not None and item.id is not None:
            self.known.add(item.id)
        for event in self.item(item, value, slot):
            self.note(event)
            if refusal(event):
                self.current().refused = True
            yield event

    def note(self, event: Event) -> None:
        """Remember what was said, to know it again in a request."""
        match event:
            case AssistantDone() | ThinkingDone():
                self.hear(event.payload.text)
            case ToolCall():
                self.called.add(event.payload.tool_call_id)
            case _:
                pass

    def part_added(self, message: responses_wire.PartAdded) -> Event:
        slot, index = self.slot(message.output_index), message.content_index
        match parts.to_block(message.part):
            case TextBlock(text=text):
                return slot.put(AssistantChunk(payload=TextPayload(text)), "part", index)
            case ThinkingBlock(text=text):
                return slot.put(ThinkingChunk(payload=TextPayload(text)), "reasoning", index)
            case _:
                return slot.put(status_change(status=_tag(message), detail=message.part), "part", index)

    def input_delta(self, message: Any) -> Piece:
        slot = self.slot(message.output_index)
        name = None if slot.item is None else call_name(slot.item)
        payload = ToolInputChunkPayload(self.id_of(message.output_index), message.delta, slot.add(message.delta), name)
        return Piece(ToolInputChunk, payload, slot.response_id, slot.block())

    def call_progress(self, message: Any) -> Event:
        progress = tool_progress(tool_call_id=self.id_of(message.output_index), status=_word(message))
        return self.slot(message.output_index).put(progress)

    def partial_image(self, message: responses_wire.PartialImage) -> Event:
        media_type = None if message.output_format is None else f"image/{message.output_format}"
        progress = tool_progress(
            tool_call_id=self.id_of(message.output_index),
            status="partial_image",
            content=[ImageBlock(media_type=media_type, data=message.partial_image_b64)],
            detail={"partial_image_index": message.partial_image_index},
        )
        return self.slot(message.output_index).put(progress)

    def shell_output_delta(self, message: responses_wire.ShellOutputDelta) -> Iterator[Event]:
        slot = self.slot(message.output_index)
        for stream in ("stdout", "stderr"):
            text = as_object(message.delta).get(stream)
            if isinstance(text, str):
                chunk = tool_output_chunk(tool_call_id=self.id_of(message.output_index), chunk=text, offset=slot.printed, stream=stream)
                slot.printed += len(text)
                yield slot.put(chunk)

    def audio(self, message: Any) -> Event:
        running = self.current()
        running.spoke = True
        if isinstance(message, responses_wire.AudioDelta):
            running.sounds += 1
            return at(audio_chunk(seq=running.sounds - 1, data=message.delta), running.id)
        if isinstance(message, responses_wire.TranscriptDelta):
            running.transcript.append(message.delta)
            return at(status_change(status=_tag(message), detail={"delta": message.delta}), running.id)
        return at(status_change(status=_tag(message)), running.id)

    # ---- the response as a whole

    def goes_on(self, response: responses_wire.Response) -> bool:
        """Whether this is the response being read."""
        reading = self.running
        return reading is not None and not reading.closed and reading.id in (response.id, None)

    def begin(self, response: responses_wire.Response) -> Iterator[Event]:
        if self.goes_on(response):
            return
        yield from self.leave()
        self.running = Running(response.id)
        if not self.introduced:
            yield from self.introduce(response.model, response.tools)
        yield from self.need_turn("user")
        self.waiting = None
        if response.instructions is not None and response.instructions != self.instructions:
            self.instructions = response.instructions
            yield self.say("system", _instructions(response.instructions))

    def body(self, response: responses_wire.Response) -> Iterator[Event]:
        """A response in one piece; one in the background is not finished yet, and will be asked for again."""
        status = response.status or "completed"
        if status in _ONGOING:
            yield from self.begin(response)
            yield at(status_change(status=status), response.id)
        else:
            yield from self.end(response, status)

    def end(self, response: responses_wire.Response, status: str) -> Iterator[Event]:
        if response.id is not None and response.id in self.ended:
            yield at(status_change(status=status, detail={"again": True}), response.id)
            return
        yield from self.begin(response)
        running = self.current()
        for index, item in enumerate(response.output or []):
            yield from self.item_done(running.slot(index), item)
        yield at(status_change(status=status), running.id)
        yield from self.rest(running)
        running.closed = self.answered = True
        if response.id is not None:
            self.ended.add(response.id)
        tokens = response.usage
        used = None if tokens is None else response_usage(tokens, response.service_tier)
        yield from self.spend(used, running.id, response.model)
        yield from self.conclude(response, status, running)

    def conclude(self, response: responses_wire.Response, status: str, running: Running) -> Iterator[Event]:
        """How the turn goes on after a response: it is over, or waits for the client."""
        if status == "failed":
            yield from self.fail(ends.error_of(response.error, self.http_status))
        elif status == "cancelled":
            yield interrupt(reason="user_cancel")
            yield from self.over(
                "interrupted", status, ErrorInfo(code="aborted", message="the response was cancelled", provider_code=status)
            )
        elif status == "incomplete":
            reason = None if response.incomplete_details is None else response.incomplete_details.reason
            if reason == "steered":  # the API itself goes on, with what was said meanwhile
                self.waiting = reason
                return
            outcome, error = ends.end_of_incomplete(reason)
            if error is not None:
                yield Error(payload=error)
            yield from self.over(outcome, reason, error)
        elif running.refused:
            yield from self.over("refused", status)
        elif self.open.tools or self.open.permissions:
            self.waiting = status
        else:
            yield from self.over("completed", status)

    def rest(self, running: Running) -> Iterator[Event]:
        """What the pieces of items add up to that were never finished; open text is closed with the turn."""
        for index, slot in running.slots.items():
            if slot.done:
                continue
            slot.done = True
            for (kind, _), block in slot.blocks.items():
                if kind == "part":
                    self.hear(self.open.text(running.id, block))
            for part, pieces in slot.refusals.items():
                yield slot.put(content_block(block=RefusalBlock(text="".join(pieces))), "part", part)
            if is_call(slot.item):
                has_input(slot.item, "".join(slot.pieces))
                event = slot.put(self.call(slot.item))
                self.note(event)
                yield event
            elif slot.item is None and not slot.blocks:
                yield at(status_change(status="item_lost", detail={"output_index": index}), running.id)
        if running.spoke:
            running.spoke = False
            yield at(audio_done(transcript="".join(running.transcript) if running.transcript else None), running.id)

    def leave(self) -> Iterator[Event]:
        running, self.running = self.running, None
        if running is None or running.closed:
            return
        yield from self.rest(running)
        self.answered = True
        self.spent.append(None)
        yield from self.cut()

    def broken(self, error: Any, status: int | None) -> Iterator[Event]:
        """An error body, or an error inside a stream."""
        running, self.running = self.running, None
        if running is not None and not running.closed:
            yield from self.rest(running)
            self.spent.append(None)
            self.answered = True
        yield from self.fail(ends.error_of(error, status))

    # ---- to the API

    def translate_sent(self, message: responses_wire.Request) -> Iterator[Event]:
        given = [{"role": "user", "content": message.input}] if isinstance(message.input, str) else as_list(message.input)
        if message.type == "response.steer":
            yield from self.steer(given)
            return
        yield from self.leave()
        yield from self.introduce(message.model, message.tools)
        said = ("type", "input", "model", "instructions", "previous_response_id", "conversation", "tools", "stream")
        yield from self.configure(told(message, *said))
        self.conversation.on([message.previous_response_id, message.conversation])
        composed, fresh = self.composed, self.news(given)
        if message.instructions is not None and message.instructions != self.instructions:
            self.instructions = message.instructions
            if not composed:
                fresh.insert(0, {"role": "system", "content": message.instructions})
        thread = {"previous_response_id": message.previous_response_id, "conversation": message.conversation}
        known = {name: value for name, value in thread.items() if value is not None}
        yield from self.request(fresh, {"items": len(given), "stream": message.stream is True, **known})

    def is_answer(self, message: Any) -> bool:
        fields = as_object(message)
        return fields.get("role") == "assistant" or fields.get("type") in _ANSWERS

    def is_speech(self, message: Any) -> bool:
        return as_object(message).get("role") == "user"

    def is_result(self, message: Any) -> bool:
        kind = str(as_object(message).get("type"))
        return kind.endswith("_output") or kind == "mcp_approval_response"

    def sent(self, message: Any) -> Iterator[Event]:
        fields = as_object(message)
        value = {"type": "message", **fields} if "role" in fields else message  # a message may do without its type
        item = self.read(value, items.Item)
        if item is not None and item.id is not None and item.id in self.known and self.is_answer(message):
            return
        for event in self.item(item, value, Slot(None, self.recall)):
            if not self.is_answer(message) or not self.was_said(event):
                self.note(event)
                yield event

    def was_said(self, event: Event) -> bool:
        """Whether the event repeats what we heard the model say."""
        match event:
            case AssistantDone() | ThinkingDone():
                return self.has_heard(event.payload.text)
            case ToolCall():
                return event.payload.tool_call_id in self.called
            case _:
                return False

    def steer(self, given: list[Any]) -> Iterator[Event]:
        """WebSocket: a message into the response that is running."""
        for message in given:
            if self.is_speech(message):
                blocks = parts.to_blocks(as_object(message).get("content"))
                yield user_message(text=parts.text_of(blocks), content=None if parts.plain(blocks) else blocks, queued=True)
            else:
                yield from self.sent(message)

    def steered(self, message: Any) -> Iterator[Event]:
        """What became of it."""
        if isinstance(message, responses_wire.SteerFailed):
            yield queue_update(action="cancelled", item_id=message.steer.id)
            yield Error(payload=ends.error_of(message.error))
        else:
            accepted = isinstance(message, responses_wire.SteerAccepted)
            yield queue_update(action="steered" if accepted else "queued", item_id=message.steer.id)


def _tag(message: Any) -> str:
    """The event's own word, without what all of them begin with."""
    return str(message.__struct_config__.tag).removeprefix("response.")


def _word(message: Any) -> str:
    """How far something has got: the last word of the event's type, or all of it where that says nothing alone."""
    tag = _tag(message)
    last = tag.rpartition(".")[2]
    return tag if last in ("done", "added") else last


def _instructions(value: Any) -> list[Any]:
    """Instructions are text, or (from a prompt template) a list of items."""
    if isinstance(value, str):
        return parts.to_blocks(value)
    return [block for item in as_list(value) for block in parts.to_blocks(as_object(item).get("content", item))]
