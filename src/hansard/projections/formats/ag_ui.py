"""AG-UI 1.0: the events a front end of the Agent User Interaction Protocol reads. Every event of ours is in it.

A turn is a run; what happens between turns stands in runs of its own, because the protocol knows nothing outside a run. A run fails when
its turn did: errors that were retried are CUSTOM. The agent goes on while it waits for permission, so questions and answers are CUSTOM
events inside the run, not the end of it. What the protocol has no word for is CUSTOM with our type as its name, what nobody knows is RAW.
Our seq, and what else does not fit, is in ``metadata.hansard``: a client drops fields it does not know, but not metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from hansard import events as ev
from hansard.projections.base import EXTENSION_KEY, Projection
from hansard.projections.block_streams import Block, Done, Piece
from hansard.projections.formats.ag_ui_run import SAFE, Call, Run
from hansard.projections.omissions import skip_except
from hansard.projections.text import block_text, callback_text, event_json, json_text, present_fields, result_text, whole_payload

Sent = dict[str, Any]


class AgUi(Projection[Sent]):
    """Opens what has to be open, and closes it again before a run ends."""

    output = "sse"
    handled = frozenset(ev.TYPES)
    skipped = skip_except(handled, {})
    leaves_unknown = None

    def __init__(self) -> None:
        super().__init__()
        self._thread: str | None = None
        self._runs = 0
        self._run: Run | None = None
        self._model: str | None = None

    # ---- runs

    def handle(self, event: ev.Event) -> Iterable[Sent]:
        """What an event says, inside a run."""
        if isinstance(event, ev.AssistantChunk | ev.ThinkingChunk) and (piece := self._next_piece(event)) is not None:
            return (piece,)  # nearly all events are pieces of what is being said: nothing else has to be looked at
        return self._take(event)

    def _take(self, event: ev.Event) -> Iterator[Sent]:
        if isinstance(event, ev.TurnStart) and event.parent_tool_call_id is None:
            yield from self._stop(event, self._finished(event))
            yield self._start(event, event.turn_id, of_turn=True)
            return
        if self._run is None:
            yield self._start(event, None, of_turn=False)
        run = self._run
        assert run is not None  # noqa: S101 (just started)  # nosec B101
        if isinstance(event, ev.TurnEnd) and event.parent_tool_call_id is None:
            yield from self._stop(event, self._ended(event, run))
            return
        yield from self._agent(event, run)
        yield from self._text_events(event, run)

    def finish(self) -> Iterator[Sent]:
        """The end of a run that nothing ended."""
        yield from self._stop(None, self._finished(None))

    def _start(self, event: ev.Event, name: str | None, of_turn: bool) -> Sent:
        self._thread = self._thread or event.session_id or "session"
        self._runs += 1
        self._run = Run(name or f"{self._thread}:{self._runs}", of_turn)
        trigger = event.payload.trigger if isinstance(event, ev.TurnStart) else None
        about = {"trigger": trigger} if of_turn else {"outsideTurns": True}
        return _sent("RUN_STARTED", event, about, threadId=self._thread, runId=self._run.id)

    def _stop(self, event: ev.Event | None, end: Sent | None) -> Iterator[Sent]:
        """Close what is open, then the run."""
        run, self._run = self._run, None
        if run is None or end is None:
            return
        for block in run.speaking.cut_off(everywhere=True):
            yield from self._close_block(block, event, run, cut=True)
        for call in run.writing():
            yield _sent("TOOL_CALL_END", event, _CLOSED, toolCallId=call.id, **run.agent_of(call.lane))
        for agent in run.agents.values():
            yield _sent("SUBAGENT_FINISHED", event, _CLOSED, subagentRunId=agent)
        yield end

    def _finished(self, event: ev.Event | None) -> Sent | None:
        """The end of a run that no turn_end ends."""
        run = self._run
        if run is None:
            return None
        outcome = {"type": "cancelled" if run.of_turn else "success"}
        usage = present_fields(usage=run.usage() or None)
        return _sent("RUN_FINISHED", event, _CLOSED, threadId=self._thread, runId=run.id, outcome=outcome, **usage)

    def _ended(self, event: ev.TurnEnd, run: Run) -> Sent:
        payload, usage = event.payload, present_fields(usage=run.usage() or None)
        about = whole_payload(event)
        if payload.status in ("error", "lost"):
            error = payload.error
            message = f"the turn ended: {payload.stop_reason or payload.status}" if error is None else error.message
            return _sent("RUN_ERROR", event, about, message=message, code=payload.status if error is None else error.code, **usage)
        outcome = {"type": "cancelled" if payload.status == "interrupted" else "success"}
        return _sent("RUN_FINISHED", event, about, threadId=self._thread, runId=run.id, result=about, outcome=outcome, **usage)

    # ---- sub-agents

    def _agent(self, event: ev.Event, run: Run) -> Iterator[Sent]:
        """A sub-agent begins with the first thing it says in a run."""
        lane = event.parent_tool_call_id
        if lane is None or lane in run.agents:
            return
        call = run.calls.get(lane)
        above = None if call is None else run.agents.get(call.lane or "")
        agent = run.new_agent(lane)
        name = "agent" if call is None else call.name
        fields = present_fields(subagentRunId=agent, name=name, parentToolCallId=lane, parentSubagentRunId=above)
        yield _sent("SUBAGENT_STARTED", event, {}, **fields)

    def _agent_over(self, event: ev.ToolResult, run: Run) -> Iterator[Sent]:
        agent = run.agents.pop(event.payload.tool_call_id, None)
        if agent is None:
            return
        for block in run.speaking.cut_off(event.payload.tool_call_id):
            yield from self._close_block(block, event, run, cut=True, agent={"subagentRunId": agent})
        if event.payload.is_error:
            yield _sent("SUBAGENT_ERROR", event, {}, subagentRunId=agent, message=event.payload.error or result_text(event.payload))
        else:
            yield _sent("SUBAGENT_FINISHED", event, {}, subagentRunId=agent)

    # ---- what is said

    def _text_events(self, event: ev.Event, run: Run) -> Iterator[Sent]:
        run.spent(event, self._model)
        match event:
            case ev.AssistantChunk() | ev.ThinkingChunk():
                yield from self._piece(event, run)
            case ev.AssistantDone() | ev.ThinkingDone():
                yield from self._done(event, run)
            case ev.ContentBlock() if isinstance(event.payload.block, ev.RefusalBlock):
                yield from self._words(event, run, "assistant", block_text(event.payload.block), whole_payload(event))
            case ev.UserMessage(payload=said):
                about = {} if said.content is None else {"content": msgspec.to_builtins(said.content)}
                about |= {"author": said.author} | ({"queued": True} if said.queued else {})
                yield from self._words(event, run, "user", said.text, about, said.from_agent_id)
            case ev.UserAudio(payload=spoken):
                yield from self._words(event, run, "user", spoken.transcription, whole_payload(event))
            case ev.AgentCallback(payload=back) if not back.as_result:
                yield from self._words(event, run, "user", callback_text(back), whole_payload(event), back.from_agent_id)
            case ev.ToolInputChunk():
                yield from self._input(event, run)
            case ev.ToolCall():
                yield from self._call(event, run)
            case ev.ToolResult():
                yield from self._agent_over(event, run)
                yield from self._result(event, run)
            case ev.PlanUpdate():
                fields = {"messageId": f"{event.parent_tool_call_id or run.id}:plan", "activityType": "PLAN", "replace": True}
                yield self._in("ACTIVITY_SNAPSHOT", event, run, {}, content=whole_payload(event), **fields)
            case ev.RawEvent() | ev.Unknown():
                yield self._raw(event, run)
            case _:
                if isinstance(event, ev.SessionInit):
                    self._model = event.payload.model or self._model
                elif isinstance(event, ev.Result):
                    run.summed_up = event
                yield self._custom(event, run)

    def _in(self, kind: str, event: ev.Event, run: Run, about: Sent, /, **fields: Any) -> Sent:
        return _sent(kind, event, about, **fields, **run.agent_of(event.parent_tool_call_id))

    def _custom(self, event: ev.Event, run: Run) -> Sent:
        about = present_fields(responseId=event.response_id, synthetic=event.synthetic or None)
        return self._in("CUSTOM", event, run, about, name=event.type, value=whole_payload(event))

    def _raw(self, event: ev.RawEvent | ev.Unknown, run: Run) -> Sent:
        fields = event_json(event)
        about = fields.get("payload") if isinstance(event, ev.RawEvent) else None
        said = fields.get("original", fields)
        return self._in("RAW", event, run, about or {}, event=said, source=event.source or EXTENSION_KEY)

    # ---- text and thinking

    def _piece(self, event: Piece, run: Run) -> Iterator[Sent]:
        block = run.speaking.piece(event)
        yield from self._open_block(block, event, run)
        kind = "REASONING_MESSAGE_CONTENT" if block.thinking else "TEXT_MESSAGE_CONTENT"
        yield self._in(kind, event, run, {}, messageId=block.id, delta=event.payload.text)

    def _next_piece(self, event: Piece) -> Sent | None:
        """The main agent goes on with a block that it has begun; None if it does not."""
        block = None if self._run is None or event.parent_tool_call_id is not None else self._run.speaking.continues(event)
        if block is None:
            return None
        kind = "REASONING_MESSAGE_CONTENT" if block.thinking else "TEXT_MESSAGE_CONTENT"
        return _stamped({"type": kind, "messageId": block.id, "delta": event.payload.text}, event, {})

    def _done(self, event: Done, run: Run) -> Iterator[Sent]:
        end = run.speaking.done(event)
        block = end.block
        yield from self._open_block(block, event, run)
        if end.rest:
            kind = "REASONING_MESSAGE_CONTENT" if block.thinking else "TEXT_MESSAGE_CONTENT"
            yield self._in(kind, event, run, {}, messageId=block.id, delta=end.rest)
        about = {name: value for name, value in whole_payload(event).items() if name != "text"}
        if end.differs:
            self.report.note("a text that is not what its pieces said: the whole of it is in the metadata")
            about["text"] = event.payload.text
        if isinstance(event, ev.ThinkingDone) and (sealed := event.payload.signature or event.payload.redacted):
            yield self._in("REASONING_ENCRYPTED_VALUE", event, run, {}, subtype="message", entityId=block.id, encryptedValue=sealed)
        yield from self._close_block(block, event, run, about=about)

    def _open_block(self, block: Block, event: ev.Event, run: Run) -> Iterator[Sent]:
        if not block.begins:
            return
        block.begins = False
        if block.thinking:
            yield self._in("REASONING_START", event, run, {}, messageId=block.id)
            yield self._in("REASONING_MESSAGE_START", event, run, {}, messageId=block.id, role="reasoning")
        else:
            yield self._in("TEXT_MESSAGE_START", event, run, {}, messageId=block.id, role="assistant")

    def _close_block(
        self, block: Block, event: ev.Event | None, run: Run, cut: bool = False, about: Sent | None = None, agent: Sent | None = None
    ) -> Iterator[Sent]:
        about = _CLOSED if cut else about or {}
        agent = run.agent_of(block.lane) if agent is None else agent
        if block.thinking:
            yield _sent("REASONING_MESSAGE_END", event, about, messageId=block.id, **agent)
            yield _sent("REASONING_END", event, {}, messageId=block.id, **agent)
        else:
            yield _sent("TEXT_MESSAGE_END", event, about, messageId=block.id, **agent)

    def _words(self, event: ev.Event, run: Run, role: str, text: str, about: Sent, name: str | None = None) -> Iterator[Sent]:
        """A message that comes whole."""
        message = {"messageId": run.fresh(event)}
        yield self._in("TEXT_MESSAGE_START", event, run, about, **message, role=role, **present_fields(name=name))
        yield self._in("TEXT_MESSAGE_CONTENT", event, run, {}, **message, delta=text)
        yield self._in("TEXT_MESSAGE_END", event, run, {}, **message)

    # ---- tools

    def _input(self, event: ev.ToolInputChunk, run: Run) -> Iterator[Sent]:
        payload = event.payload
        call = run.call(event, payload.tool_call_id, payload.tool_name)
        if call.said:
            yield self._custom(event, run)
            return
        yield from self._open_call(call, event, run)
        call.pieces.append(payload.chunk)
        yield self._in("TOOL_CALL_ARGS", event, run, {}, toolCallId=call.id, delta=payload.chunk)

    def _call(self, event: ev.ToolCall, run: Run) -> Iterator[Sent]:
        payload = event.payload
        call = run.call(event, payload.tool_call_id, payload.tool_name)
        if call.said:
            self.report.note("a call that is said twice is CUSTOM the second time")
            yield self._custom(event, run)
            return
        yield from self._open_call(call, event, run)
        about = {name: value for name, value in whole_payload(event).items() if name in ("kind", "title", "server")}
        if not call.pieces:
            yield self._in("TOOL_CALL_ARGS", event, run, {}, toolCallId=call.id, delta=json_text(payload.args))
        elif not call.wrote(payload.args):
            self.report.note("arguments that are not what was written first: the whole of them is in the metadata")
            about["args"] = payload.args
        call.said = True
        call.pieces.clear()
        yield self._in("TOOL_CALL_END", event, run, about, toolCallId=call.id)

    def _open_call(self, call: Call, event: ev.Event, run: Run) -> Iterator[Sent]:
        if call.begins:
            call.begins = False
            fields = present_fields(toolCallId=call.id, toolCallName=call.name, parentMessageId=run.speaking.message_id(event))
            yield self._in("TOOL_CALL_START", event, run, call.about, **fields)

    def _result(self, event: ev.ToolResult, run: Run) -> Iterator[Sent]:
        payload = event.payload
        call = run.call(event, payload.tool_call_id, payload.tool_name)
        if not call.begins and not call.said:
            call.said = True
            yield self._in("TOOL_CALL_END", event, run, _CLOSED, toolCallId=call.id)
        call.results += 1
        number = "" if call.results == 1 else f":{call.results}"
        about = {name: value for name, value in whole_payload(event).items() if name not in ("toolCallId", "content")}
        if isinstance(payload.result, str) and not payload.content:
            del about["result"]
        fields = {"messageId": f"{call.id}:result{number}", "toolCallId": call.id, "role": "tool"}
        yield self._in("TOOL_CALL_RESULT", event, run, about, content=_content(payload), **fields)


_CLOSED = {"synthetic": True}
"""What nothing in the log closed."""


def _sent(kind: str, event: ev.Event | None, about: Sent, /, **fields: Any) -> Sent:
    return _stamped({"type": kind, **fields}, event, about)


def _stamped(sent: Sent, event: ev.Event | None, about: Sent) -> Sent:
    """With its time, its place in our log, and what else there is to say about it."""
    if event is not None:
        if 0 <= event.timestamp <= SAFE:
            sent["timestamp"] = event.timestamp
        about = {"seq": event.seq, **about} if event.seq else about
    if about:
        sent["metadata"] = {EXTENSION_KEY: about}
    return sent


def _content(payload: ev.ToolResultPayload) -> str | list[Sent]:
    """Text, or parts when there is a picture or a sound among them."""
    blocks = payload.content or []
    if not any(_source(block) for block in blocks):
        return result_text(payload)
    return [_part(block) for block in blocks]


def _part(block: ev.AnyBlock) -> Sent:
    source = _source(block)
    if source is None:
        return {"type": "text", "text": block.text if isinstance(block, ev.TextBlock) else block_text(block)}
    return {"type": "image" if isinstance(block, ev.ImageBlock) else "audio", "source": source}


def _source(block: ev.AnyBlock) -> Sent | None:
    match block:
        case ev.ImageBlock(data=str(data)) | ev.AudioBlock(data=str(data)):
            kind = "image/png" if isinstance(block, ev.ImageBlock) else "audio/wav"
            return {"type": "data", "value": data, "mimeType": block.media_type or kind}
        case ev.ImageBlock(url=str(url)):
            return {"type": "url", "value": url, **present_fields(mimeType=block.media_type)}
        case _:
            return None
