"""OpenAI Responses: the events of a stream or whole bodies, and the requests they answer. Wire notes: README.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from hansard import events as ev
from hansard.adapters.base import ChunkDraft, Context, decoder
from hansard.adapters.blocks import text_of
from hansard.adapters.fields import declared_fields, place_in_message, tag_of
from hansard.adapters.openai import item_events, items_wire, outcomes, parts
from hansard.adapters.openai import responses_wire as wire
from hansard.adapters.openai.base import OpenAI
from hansard.adapters.openai.fields import usage_of
from hansard.adapters.openai.item_events import Slot, call_id, call_name, has_input, is_call, refusal
from hansard.events.lenient import as_list, as_object

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


_event = decoder(wire.AnyEvent).decode
_message = decoder(wire.Message).decode


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


class Responses(OpenAI):
    """``POST /v1/responses``, streaming or not, also in the background."""

    formats = ("openai-responses",)
    sent_wire = wire.Request
    wire = wire.Message

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.running: Running | None = None
        self.ended: set[str] = set()
        self.known: set[str] = set()
        self.instructions: Any = None
        self._decode_received = _decode

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """An event with a sequence number, a body, or a request."""
        if str(message.get("type")).startswith("response."):
            return "sequence_number" in message or "response" in message
        return message.get("object") == "response" or ("input" in message and "model" in message)

    def time_of(self, message: Any) -> int | None:
        """The time at which the response was created, from the events that contain it whole."""
        response = getattr(message, "response", message)
        if not isinstance(response, wire.Response):
            return None
        return self.date(response.created_at, self.running is None or self.running.id != response.id)

    # ---- from the API

    def translate(self, message: Any) -> Iterable[ev.Event]:
        if self.running is None and not isinstance(message, wire.OUTER):
            return self.take_up(message)
        return self.event(message)

    def take_up(self, message: Any) -> Iterator[ev.Event]:
        """A stream that begins in the middle (``starting_after``) does not say which response it is."""
        self.running = Running(None)
        self.waiting = None
        yield from self.need_turn("user")
        yield from self.event(message)

    def event(self, message: Any) -> Iterable[ev.Event]:
        match message:
            case wire.InputDelta():
                return self.input_delta(message)
            case wire.TextDelta() if not message.logprobs:
                slot = self.slot(message.output_index)
                place = slot.block("part", message.content_index)
                return ChunkDraft(ev.AssistantChunk, ev.TextPayload(message.delta), slot.response_id, place)
            case wire.ItemAdded():
                return (self.item_added(message),)
            case wire.ItemDone():
                return self.item_done(self.slot(message.output_index), message.item)
            case wire.Ongoing():
                return self.ongoing(message.response, message.response.status or "in_progress")
            case wire.Over():
                return self.end(message.response, _word(message))
            case wire.TextDelta():
                place = self.slot(message.output_index).put
                chunk = ev.AssistantChunk(payload=ev.TextPayload(message.delta))
                logprobs = ev.status_change(status="logprobs", detail=message.logprobs)
                return (place(chunk, "part", message.content_index), place(logprobs, "part", message.content_index))
            case wire.SummaryTextDelta():
                chunk = ev.ThinkingChunk(payload=ev.TextPayload(message.delta))
                return (self.slot(message.output_index).put(chunk, "summary", message.summary_index),)
            case wire.ReasoningDelta():
                chunk = ev.ThinkingChunk(payload=ev.TextPayload(message.delta))
                return (self.slot(message.output_index).put(chunk, "reasoning", message.content_index),)
            case wire.RefusalDelta():
                slot = self.slot(message.output_index)
                slot.refusals.setdefault(message.content_index, []).append(message.delta)
                note = ev.status_change(status="refusal_delta", detail={"delta": message.delta})
                return (slot.put(note, "part", message.content_index),)
            case wire.Response():
                return self.body(message)
            case wire.ErrorEvent():
                nested = message.error if message.error is not None else declared_fields(message, "error", "status")
                return self.broken(nested, message.status or self.http_status)
            case wire.ErrorBody():
                return self.broken(message.error, self.http_status)
            case wire.PartAdded():
                return (self.part_added(message),)
            case wire.AnnotationAdded():
                added = ev.status_change(status=_tag(message), detail=message.annotation)
                return (self.slot(message.output_index).put(added, "part", message.content_index),)
            case wire.SummaryProgress():
                note = ev.status_change(status=_tag(message))
                return (self.slot(message.output_index).put(note, "summary", message.summary_index),)
            case wire.PartProgress():
                kind = "reasoning" if isinstance(message, wire.ReasoningDone) else "part"
                return (self.slot(message.output_index).put(ev.status_change(status=_tag(message)), kind, message.content_index),)
            case wire.PartialImage():
                return (self.partial_image(message),)
            case wire.ShellOutputDelta():
                return self.shell_output_delta(message)
            case wire.CallProgress():
                return (self.call_progress(message),)
            case wire.ListProgress():
                server = getattr(self.slot(message.output_index).item, "server_label", None)
                return (ev.mcp_status(server="unknown" if server is None else server, state=_word(message)),)
            case wire.Compacting():
                return (ev.status_change(status="compacting"),)
            case wire.AudioDelta() | wire.TranscriptDelta() | wire.AudioProgress():
                return (self.audio(message),)
            case _:  # wire.SteerAccepted, wire.SteerPending, wire.SteerFailed
                return self.steered(message)

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

    def item_added(self, message: wire.ItemAdded) -> ev.Event:
        slot = self.slot(message.output_index)
        slot.item = item = self.read(message.item, items_wire.Item)
        if item is not None and is_call(item):
            status = as_object(message.item).get("status")
            progress = ev.tool_progress(
                tool_call_id=call_id(item), tool_name=call_name(item), status=status if isinstance(status, str) else "in_progress"
            )
            return slot.put(progress)
        fields = as_object(message.item)
        detail = {key: fields[key] for key in ("type", "id") if key in fields}
        return place_in_message(ev.status_change(status=_tag(message), detail=detail), slot.response_id)

    def item_done(self, slot: Slot, value: Any) -> Iterator[ev.Event]:
        """Yield a whole item, once: the end of the response repeats it."""
        if slot.done:
            return
        slot.done = True
        item = self.read(value, items_wire.Item)
        if item is not None and item.id is not None:
            self.known.add(item.id)
        for event in self.item(item, value, slot):
            self.note(event)
            if refusal(event):
                self.current().refused = True
            yield event

    def item(self, item: Any, value: Any, slot: Slot) -> Iterable[ev.Event]:
        """Return the events of a whole item; ``value`` is the item as the wire has it."""
        match item:
            case items_wire.FunctionCall():
                return (slot.put(item_events.call(item)),)
            case items_wire.FunctionCallOutput():
                return self.give(item.call_id or self.open_call(item.name) or str(item.id), item.output)
            case items_wire.Message(role="assistant"):
                return item_events.message(item, slot)
            case items_wire.Message():
                return (self.add_message(item.role, parts.to_blocks(item.content), item.id),)
            case items_wire.Reasoning():
                return item_events.reasoning(item, slot)
            case items_wire.HostedCall():
                return (slot.put(item_events.call(item)), slot.put(item_events.hosted_result(item)))
            case items_wire.ClientCall():
                return item_events.client_call(item, slot)
            case items_wire.Output():
                return self.output(item)
            case items_wire.McpListTools():
                state, detail = "listed" if item.error is None else "failed", declared_fields(item, "id", "server_label")
                return (slot.put(ev.mcp_status(server=item.server_label, state=state, detail=detail)),)
            case items_wire.McpApprovalRequest():
                return (slot.put(item_events.mcp_permission(item)),)
            case items_wire.McpApprovalResponse(approval_request_id=request_id, reason=reason):
                decision, option = ("allow", "approve") if item.approve else ("deny", "deny")
                return (ev.permission_response(request_id=request_id, decision=decision, option_id=option, message=reason),)
            case items_wire.AdditionalTools() | items_wire.ConfigurationUpdate():
                return (ev.configuration_change(subtype=tag_of(type(item)), options=declared_fields(item, "id")),)
            case items_wire.Compaction():
                return (slot.put(ev.session_lifecycle(subtype="compacted", message_id=item.id, detail=declared_fields(item, "id"))),)
            case items_wire.CompactionTrigger() | items_wire.ItemReference():
                return (ev.status_change(status=tag_of(type(item)), detail=declared_fields(item)),)
            case _:
                return (slot.put(self.unknown_block(value)),)

    def output(self, item: Any) -> Iterator[ev.Event]:
        """Yield the result of a call that the client ran."""
        match item:
            case items_wire.CustomToolCallOutput():
                yield from self.give(item.call_id, item.output)
            case items_wire.ComputerCallOutput():
                if item.acknowledged_safety_checks:
                    yield ev.permission_response(request_id=item.call_id, decision="allow", option_id="approve")
                yield from self.give(item.call_id, item.output, content=parts.to_blocks(item.output))
            case items_wire.LocalShellCallOutput():
                failed = True if item.status == "incomplete" else None
                yield from self.give(item.call_id or str(item.id), item.output, is_error=failed)
            case items_wire.ShellCallOutput():
                yield from self.give(item.call_id, item.output, content=None, **item_events.shell_outcome(item.output))
            case items_wire.ApplyPatchCallOutput():
                yield from self.give(item.call_id, item.output, is_error=item.status == "failed")
            case items_wire.ToolSearchOutput():
                call = item.call_id or self.open_call("tool_search") or str(item.id)
                yield from self.give(call, item.tools, content=None)
            case _:  # items_wire.ProgramOutput
                yield from self.give(item.call_id, item.result, is_error=item.status == "incomplete")

    def open_call(self, name: str | None) -> str | None:
        """Return the oldest call of that name that has no result yet, for results without an id."""
        return next((call_id for call_id, call in self.open.tools.items() if call.payload.tool_name == name), None)

    def note(self, event: ev.Event) -> None:
        """Remember an event, to recognize it in a request."""
        match event:
            case ev.AssistantDone() | ev.ThinkingDone():
                self.hear(event.payload.text)
            case ev.ToolCall():
                self.called.add(event.payload.tool_call_id)
            case _:
                pass

    def part_added(self, message: wire.PartAdded) -> ev.Event:
        slot, index = self.slot(message.output_index), message.content_index
        match parts.to_block(message.part):
            case ev.TextBlock(text=text):
                return slot.put(ev.AssistantChunk(payload=ev.TextPayload(text)), "part", index)
            case ev.ThinkingBlock(text=text):
                return slot.put(ev.ThinkingChunk(payload=ev.TextPayload(text)), "reasoning", index)
            case _:
                return slot.put(ev.status_change(status=_tag(message), detail=message.part), "part", index)

    def input_delta(self, message: Any) -> ChunkDraft:
        slot = self.slot(message.output_index)
        name = None if slot.item is None else call_name(slot.item)
        payload = ev.ToolInputChunkPayload(self.id_of(message.output_index), message.delta, slot.add(message.delta), name)
        return ChunkDraft(ev.ToolInputChunk, payload, slot.response_id, slot.block())

    def call_progress(self, message: Any) -> ev.Event:
        progress = ev.tool_progress(tool_call_id=self.id_of(message.output_index), status=_word(message))
        return self.slot(message.output_index).put(progress)

    def partial_image(self, message: wire.PartialImage) -> ev.Event:
        media_type = None if message.output_format is None else f"image/{message.output_format}"
        progress = ev.tool_progress(
            tool_call_id=self.id_of(message.output_index),
            status="partial_image",
            content=[ev.ImageBlock(media_type=media_type, data=message.partial_image_b64)],
            detail={"partial_image_index": message.partial_image_index},
        )
        return self.slot(message.output_index).put(progress)

    def shell_output_delta(self, message: wire.ShellOutputDelta) -> Iterator[ev.Event]:
        slot = self.slot(message.output_index)
        for stream in ("stdout", "stderr"):
            text = as_object(message.delta).get(stream)
            if isinstance(text, str):
                chunk = ev.tool_output_chunk(tool_call_id=self.id_of(message.output_index), chunk=text, offset=slot.printed, stream=stream)
                slot.printed += len(text)
                yield slot.put(chunk)

    def audio(self, message: Any) -> ev.Event:
        running = self.current()
        running.spoke = True
        if isinstance(message, wire.AudioDelta):
            running.sounds += 1
            return place_in_message(ev.audio_chunk(seq=running.sounds - 1, data=message.delta), running.id)
        if isinstance(message, wire.TranscriptDelta):
            running.transcript.append(message.delta)
            return place_in_message(ev.status_change(status=_tag(message), detail={"delta": message.delta}), running.id)
        return place_in_message(ev.status_change(status=_tag(message)), running.id)

    # ---- the response as a whole

    def goes_on(self, response: wire.Response) -> bool:
        """Whether this is the response being read."""
        reading = self.running
        return reading is not None and not reading.closed and reading.id in (response.id, None)

    def ongoing(self, response: wire.Response, status: str) -> Iterable[ev.Event]:
        note = place_in_message(ev.status_change(status=status), response.id)
        return (note,) if self.goes_on(response) else chain(self.begin(response), (note,))

    def begin(self, response: wire.Response) -> Iterator[ev.Event]:
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
            yield self.add_message("system", _instructions(response.instructions))

    def body(self, response: wire.Response) -> Iterable[ev.Event]:
        """A response in one piece; one in the background is not finished yet, and will be asked for again."""
        status = response.status or "completed"
        return self.ongoing(response, status) if status in _ONGOING else self.end(response, status)

    def end(self, response: wire.Response, status: str) -> Iterator[ev.Event]:
        if response.id is not None and response.id in self.ended:
            yield place_in_message(ev.status_change(status=status, detail={"again": True}), response.id)
            return
        yield from self.begin(response)
        running = self.current()
        for index, item in enumerate(response.output or []):
            yield from self.item_done(running.slot(index), item)
        yield place_in_message(ev.status_change(status=status), running.id)
        yield from self.rest(running)
        running.closed = self.answered = True
        if response.id is not None:
            self.ended.add(response.id)
        tokens = response.usage
        used = None if tokens is None else usage_of(tokens, response.service_tier)
        yield from self.spend(used, running.id, response.model)
        yield from self.conclude(response, status, running)

    def conclude(self, response: wire.Response, status: str, running: Running) -> Iterator[ev.Event]:
        """Yield the end of the turn, unless it waits for the client."""
        if status == "failed":
            yield from self.fail(outcomes.error_of(response.error, self.http_status))
        elif status == "cancelled":
            yield ev.interrupt(reason="user_cancel")
            yield from self.end_turn_with_usage(
                "interrupted", status, ev.ErrorInfo(code="aborted", message="the response was cancelled", provider_code=status)
            )
        elif status == "incomplete":
            reason = None if response.incomplete_details is None else response.incomplete_details.reason
            if reason == "steered":  # the API itself goes on, with what was said meanwhile
                self.waiting = reason
                return
            outcome, error = outcomes.end_of_incomplete(reason)
            if error is not None:
                yield ev.Error(payload=error)
            yield from self.end_turn_with_usage(outcome, reason, error)
        elif running.refused:
            yield from self.end_turn_with_usage("refused", status)
        elif self.open.tools or self.open.permissions:
            self.waiting = status
        else:
            yield from self.end_turn_with_usage("completed", status)

    def rest(self, running: Running) -> Iterator[ev.Event]:
        """Yield items that were never finished, from their pieces; open text is closed with the turn."""
        for index, slot in running.slots.items():
            if slot.done:
                continue
            slot.done = True
            for (kind, _), block in slot.blocks.items():
                if kind == "part":
                    self.hear(self.open.text(running.id, block))
            for part, pieces in slot.refusals.items():
                yield slot.put(ev.content_block(block=ev.RefusalBlock(text="".join(pieces))), "part", part)
            if is_call(slot.item):
                has_input(slot.item, "".join(slot.pieces))
                event = slot.put(item_events.call(slot.item))
                self.note(event)
                yield event
            elif slot.item is None and not slot.blocks:
                yield place_in_message(ev.status_change(status="item_lost", detail={"output_index": index}), running.id)
        if running.spoke:
            running.spoke = False
            yield place_in_message(ev.audio_done(transcript="".join(running.transcript) if running.transcript else None), running.id)

    def leave(self) -> Iterator[ev.Event]:
        running, self.running = self.running, None
        if running is None or running.closed:
            return
        yield from self.rest(running)
        self.answered = True
        self.spent.append(None)
        yield from self.cut()

    def broken(self, error: Any, status: int | None) -> Iterator[ev.Event]:
        """An error body, or an error inside a stream."""
        running, self.running = self.running, None
        if running is not None and not running.closed:
            yield from self.rest(running)
            self.spent.append(None)
            self.answered = True
        yield from self.fail(outcomes.error_of(error, status))

    # ---- to the API

    def translate_sent(self, message: wire.Request) -> Iterator[ev.Event]:
        given = [{"role": "user", "content": message.input}] if isinstance(message.input, str) else as_list(message.input)
        if message.type == "response.steer":
            yield from self.steer(given)
            return
        yield from self.leave()
        sender = message.client_metadata
        yield from self.introduce(message.model, message.tools, None if sender is None else sender.thread_id)
        said = ("client_metadata", "type", "input", "model", "instructions", "previous_response_id", "conversation", "tools", "stream")
        yield from self.configure(declared_fields(message, *said))
        self.conversation.continue_from([message.previous_response_id, message.conversation])
        fresh = self.news(given)
        if message.instructions is not None and message.instructions != self.instructions:
            self.instructions = message.instructions
            if not self.context.composed:
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

    def sent(self, message: Any) -> Iterator[ev.Event]:
        fields = as_object(message)
        value = {"type": "message", **fields} if "role" in fields else message  # a message may do without its type
        item = self.read(value, items_wire.Item)
        if item is not None and item.id is not None and item.id in self.known and self.is_answer(message):
            return
        for event in self.item(item, value, Slot(None, self.recall)):
            if not self.is_answer(message) or not self.was_said(event):
                self.note(event)
                yield event

    def was_said(self, event: ev.Event) -> bool:
        """Tell whether the event repeats one of the model's."""
        match event:
            case ev.AssistantDone() | ev.ThinkingDone():
                return self.has_heard(event.payload.text)
            case ev.ToolCall():
                return event.payload.tool_call_id in self.called
            case _:
                return False

    def steer(self, given: list[Any]) -> Iterator[ev.Event]:
        """WebSocket: a message into the response that is running."""
        for message in given:
            if self.is_speech(message):
                blocks = parts.to_blocks(as_object(message).get("content"))
                yield ev.user_message(text=text_of(blocks), content=None if parts.plain(blocks) else blocks, queued=True)
            else:
                yield from self.sent(message)

    def steered(self, message: Any) -> Iterator[ev.Event]:
        """What became of it."""
        if isinstance(message, wire.SteerFailed):
            yield ev.queue_update(action="cancelled", item_id=message.steer.id)
            yield ev.Error(payload=outcomes.error_of(message.error))
        else:
            accepted = isinstance(message, wire.SteerAccepted)
            yield ev.queue_update(action="steered" if accepted else "queued", item_id=message.steer.id)


def _tag(message: Any) -> str:
    """Return the event's type without the prefix that all of them have."""
    return tag_of(message.__class__).removeprefix("response.")


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
