"""pi, live: ``pi --mode json …``. One process is one prompt or several, each a turn. Wire notes: README.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from hansard import events as ev
from hansard.adapters.authors import author_of
from hansard.adapters.base import Adapter, Context
from hansard.adapters.blocks import only_text, raw_block, text_of
from hansard.adapters.fields import parse_iso_ms, place_in_message
from hansard.adapters.pi import wire
from hansard.adapters.pi.fields import ENDS, STATES, TOOLS, change_of, cost_of, error_of, usage_of
from hansard.events.lenient import as_object


class Pi(Adapter):
    """A running pi."""

    formats = ("pi-json",)
    source = "pi"
    dated = frozenset({wire.Session, wire.MessageStart, wire.MessageEnd})
    wire = wire.Line
    takes_text = True

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.answers = 0
        self.writing: dict[int, tuple[str, str | None]] = {}
        """The calls that are being written, by their place in the answer."""
        self.written = 0
        self.stop_reason: str | None = None
        self.failure: ev.ErrorInfo | None = None

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """The line after the header, which session files have, too."""
        return message == {"type": "agent_start"}

    @classmethod
    def may_detect(cls, message: dict[str, Any]) -> bool:
        """The header of a session."""
        return message.get("type") == "session" and "version" in message and "cwd" in message

    def time_of(self, message: Any) -> int | None:
        """Of a session its beginning, of a message its own."""
        return parse_iso_ms(message.timestamp) if isinstance(message, wire.Session) else message.message.timestamp

    def translate(self, message: Any) -> Iterator[ev.Event]:
        match message:
            case wire.MessageUpdate(assistant_message_event=piece):
                yield from self.piece(piece)
            case wire.MessageStart(message=begun):
                yield from self.begin(begun)
            case wire.MessageEnd(message=said):
                yield from self.message(said)
            case wire.ExecutionStart():
                yield ev.tool_progress(tool_call_id=message.tool_call_id, status="running")
            case wire.ExecutionUpdate(partial_result=so_far):
                blocks = self.blocks(so_far.content)
                yield ev.tool_progress(tool_call_id=message.tool_call_id, status="running", content=blocks, detail=so_far.details)
            case wire.ExecutionEnd(tool_call_id=call_id, result=result):
                yield self.call_over(call_id, result, self.read(result, wire.Outcome), message.is_error)
            case wire.AgentStart():
                yield from self.need_turn("user")
                yield notice(message)
            case wire.AgentSettled():
                yield from self.settle()
            case wire.Session():
                yield ev.session_init(agent_id="pi", provider_session_id=message.id, cwd=message.cwd)
                if message.parent_session is not None:
                    parent = message.parent_session.removesuffix(".jsonl").rpartition("_")[2]
                    yield ev.session_lifecycle(
                        subtype="forked", provider_session_id=message.id, parent_session_id=parent, path=message.parent_session
                    )
            case wire.SessionInfo():
                yield ev.session_lifecycle(subtype="renamed", title=message.name)
            case wire.ThinkingLevel():
                yield ev.configuration_change(subtype="thinking_level_changed", options={"level": message.level})
            case wire.CompactionEnd():
                yield compaction_end(message)
            case _:  # a notice
                yield notice(message)

    # ---- an answer, in pieces; the wire names it only when it is over, so the turn and a count do it

    @property
    def answer_id(self) -> str:
        return f"{self.turn}:{self.answers}"

    def begin(self, message: wire.Beginning) -> Iterator[ev.Event]:
        yield from self.need_turn("user")
        if message.role == "assistant":
            self.answers += 1
            self.writing = {}
        yield ev.status_change(status="message_start", detail={"role": message.role})

    def piece(self, piece: wire.Piece) -> Iterator[ev.Event]:
        yield from self.need_turn()
        yield place_in_message(self.piece_of(piece), self.answer_id, piece.content_index)

    def piece_of(self, piece: wire.Piece) -> ev.Event:
        match piece:
            case wire.TextDelta():
                return ev.assistant_chunk(text=piece.delta)
            case wire.ThinkingDelta():
                return ev.thinking_chunk(text=piece.delta)
            case wire.CallStart():
                self.writing[piece.content_index], self.written = (piece.id, piece.tool_name), 0
                return ev.tool_progress(tool_call_id=piece.id, status="pending", tool_name=piece.tool_name)
            case wire.CallDelta() if piece.content_index in self.writing:
                call, tool = self.writing[piece.content_index]
                offset, self.written = self.written, self.written + len(piece.delta)
                return ev.tool_input_chunk(tool_call_id=call, tool_name=tool, chunk=piece.delta, offset=offset)
            case _:
                return notice(piece)

    # ---- messages, whole

    def message(self, message: wire.Message) -> Iterator[ev.Event]:
        yield from self.need_turn("user")
        match message:
            case wire.System():
                yield from self.system(message)
            case wire.User():
                yield self.user(message)
            case wire.Assistant():
                yield from self.answer(message)
            case wire.ToolResult(content=content, details=details) if message.tool_call_id in self.open.tools:
                yield self.call_over(message.tool_call_id, content, wire.Outcome(content, details), message.is_error)
            case wire.ToolResult():  # an echo, by identity
                yield ev.status_change(status="tool_result_repeated", detail={"toolCallId": message.tool_call_id})

    def system(self, message: wire.System) -> Iterator[ev.Event]:
        parts = [block.text for block in self.blocks(message.content) if isinstance(block, ev.TextBlock) and block.text]
        parts += [text for text in as_object(message.sections).values() if isinstance(text, str)]
        yield ev.user_message(text="\n\n".join(parts), author="harness", role="system")
        changes = {"added": message.tools_added, "removed": message.tools_removed, "replace": message.replace}
        said = {word: value for word, value in changes.items() if value is not None}
        if said:
            yield ev.configuration_change(subtype="tools", options=said)

    def user(self, message: wire.User) -> ev.Event:
        blocks = self.blocks(message.content)
        text = text_of(blocks)
        if self.repeats_prompt(text):
            return ev.status_change(status="prompt_echo")
        return ev.user_message(text=text, content=None if only_text(blocks) else blocks, author=author_of(text))

    def answer(self, message: wire.Assistant) -> Iterator[ev.Event]:
        cut = len(message.content) - 1 if message.stop_reason in ("aborted", "error") else None
        for index, item in enumerate(message.content):
            yield place_in_message(self.block(item, index == cut), self.answer_id, index)
        used = usage_of(message.usage)
        if used is not None:
            cost, origin = cost_of(message.usage), message.response_id
            count = ev.usage(scope="message", usage=used, model=message.model, cost_usd=cost, origin_id=origin)
            yield place_in_message(count, self.answer_id)
        self.stop_reason, self.failure = message.stop_reason, None
        if message.error_message is not None:
            self.failure = error_of(message.error_message, message.stop_reason)
            yield ev.Error(payload=self.failure)
        if not message.content and used is None and self.failure is None:
            yield ev.status_change(status="message_end", detail={"stopReason": message.stop_reason})

    def block(self, item: Any, cut: bool) -> ev.Event:
        match self.read(item, wire.Block):
            case wire.Text(text=text):
                return ev.assistant_done(text=text, interrupted=cut)
            case wire.Thinking(thinking=text, thinking_signature=data, redacted=True):
                return ev.thinking_done(text=text, redacted=data)
            case wire.Thinking(thinking=text, thinking_signature=signature):
                return ev.thinking_done(text=text, signature=signature, interrupted=cut)
            case wire.ToolCall(id=call_id, name=name, arguments=args):
                return ev.tool_call(tool_call_id=call_id, tool_name=name, args=args, kind=TOOLS.get(name, "other"))
            case _:
                return self.unknown_block(item)

    def blocks(self, content: Any) -> list[ev.AnyBlock]:
        """What was said to the model, or given back by a tool: a text or a list."""
        return [self.result_block(item) for item in ([content] if isinstance(content, str) else content or [])]

    def result_block(self, item: Any) -> ev.AnyBlock:
        match wire.Text(item) if isinstance(item, str) else self.read(item, wire.Shown):
            case wire.Text(text=text):
                return ev.TextBlock(text=text)
            case wire.Image(data=data, mime_type=media_type):
                return ev.ImageBlock(data=data, media_type=media_type)
            case _:
                return raw_block(item)

    # ---- tools, and the end

    def call_over(self, call_id: str, result: Any, outcome: wire.Outcome | None, is_error: bool | None) -> ev.Event:
        call, blocks = self.open.tools.get(call_id), None
        if outcome is not None:
            blocks = self.blocks(outcome.content)
            if call is not None and not is_error:
                blocks += change_of(call.payload.tool_name, call.payload.args, outcome.details)
        return ev.tool_result(tool_call_id=call_id, result=result, content=blocks, is_error=is_error)

    def settle(self) -> Iterator[ev.Event]:
        status = ENDS.get(self.stop_reason, "completed")
        if status == "max_tokens" and self.failure is None:
            self.failure = ev.ErrorInfo(code="output_length", message="the answer reached the output limit", provider_code=self.stop_reason)
        if status == "interrupted":
            yield ev.interrupt(reason="user_cancel")
        if self.failure is not None and self.failure.code == "provider_auth":
            yield ev.auth_status(is_authenticating=False, error=self.failure.message)
        yield from self.end_turn(status, stop_reason=self.stop_reason, error=self.failure)
        self.stop_reason, self.failure, self.answers = None, None, 0


def notice(message: Any) -> ev.Event:
    """A line that says how it goes, and all that it says."""
    detail = msgspec.to_builtins(message)
    detail.pop("timestamp", None)
    word: str = detail.pop("type")
    return ev.status_change(status=STATES.get(word, word), detail=detail or None)


def compaction_end(message: wire.CompactionEnd) -> ev.Event:
    """The summary, if there is one."""
    if message.error_message is not None:
        return ev.error(code="execution_error", message=message.error_message, error_source="agent")
    if message.result is None:
        return ev.status_change(status="compaction_aborted", detail={"reason": message.reason})
    return ev.session_lifecycle(subtype="compacted", reason=message.reason, text=message.result.summary)
