"""pi, live: ``pi --mode json …``. One process is one prompt or several, each a turn. Wire notes: README.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from hansard.adapter import Adapter, Context
from hansard.adapters.pi import wire
from hansard.adapters.pi.words import ENDS, STATES, TOOLS, change_of, cost_of, error_of, usage_of
from hansard.content import AnyBlock, ImageBlock, RawBlock, TextBlock
from hansard.events import (
    Error,
    ErrorInfo,
    Event,
    assistant_chunk,
    assistant_done,
    auth_status,
    configuration_change,
    error,
    interrupt,
    session_init,
    session_lifecycle,
    status_change,
    thinking_chunk,
    thinking_done,
    tool_call,
    tool_input_chunk,
    tool_progress,
    tool_result,
    usage,
    user_message,
)
from hansard.loose import as_object
from hansard.words import at, milliseconds


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
        self.writing: dict[int, str] = {}
        """The calls that are being written, by their place in the answer."""
        self.written = 0
        self.stop_reason: str | None = None
        self.failure: ErrorInfo | None = None

    @classmethod
    def recognises(cls, message: dict[str, Any]) -> bool:
        """The line after the header, which session files have, too."""
        return message == {"type": "agent_start"}

    @classmethod
    def may_be(cls, message: dict[str, Any]) -> bool:
        """The header of a session."""
        return message.get("type") == "session" and "version" in message and "cwd" in message

    def time_of(self, message: Any) -> int | None:
        """Of a session its beginning, of a message its own."""
        return milliseconds(message.timestamp) if isinstance(message, wire.Session) else message.message.timestamp

    def translate(self, message: Any) -> Iterator[Event]:
        match message:
            case wire.MessageUpdate(assistant_message_event=piece):
                yield from self.piece(piece)
            case wire.MessageStart(message=begun):
                yield from self.begin(begun)
            case wire.MessageEnd(message=said):
                yield from self.said(said)
            case wire.ExecutionStart():
                yield tool_progress(tool_call_id=message.tool_call_id, status="running")
            case wire.ExecutionUpdate(partial_result=so_far):
                blocks = self.blocks(so_far.content)
                yield tool_progress(tool_call_id=message.tool_call_id, status="running", content=blocks, detail=so_far.details)
            case wire.ExecutionEnd(tool_call_id=call_id, result=result):
                yield self.call_over(call_id, result, self.read(result, wire.Outcome), message.is_error)
            case wire.AgentStart():
                yield from self.need_turn("user")
                yield notice(message)
            case wire.AgentSettled():
                yield from self.settle()
            case wire.Session():
                yield session_init(agent_id="pi", provider_session_id=message.id, cwd=message.cwd)
            case wire.SessionInfo():
                yield session_lifecycle(subtype="renamed", title=message.name)
            case wire.ThinkingLevel():
                yield configuration_change(subtype="thinking_level_changed", options={"level": message.level})
            case wire.CompactionEnd():
                yield compaction_end(message)
            case _:  # wire.Notice
                yield notice(message)

    # ---- an answer, in pieces; the wire names it only when it is over, so the turn and a count do it

    @property
    def answer_id(self) -> str:
        return f"{self.turn}:{self.answers}"

    def begin(self, message: wire.Beginning) -> Iterator[Event]:
        yield from self.need_turn("user")
        if message.role == "assistant":
            self.answers += 1
            self.writing = {}
        yield status_change(status="message_start", detail={"role": message.role})

    def piece(self, piece: wire.Piece) -> Iterator[Event]:
        yield from self.need_turn()
        yield at(self.piece_of(piece), self.answer_id, piece.content_index)

    def piece_of(self, piece: wire.Piece) -> Event:
        match piece:
            case wire.TextDelta():
                return assistant_chunk(text=piece.delta)
            case wire.ThinkingDelta():
                return thinking_chunk(text=piece.delta)
            case wire.CallStart():
                self.writing[piece.content_index], self.written = piece.id, 0
                return tool_progress(tool_call_id=piece.id, status="pending", tool_name=piece.tool_name)
            case wire.CallDelta() if piece.content_index in self.writing:
                self.written += len(piece.delta)
                return tool_input_chunk(
                    tool_call_id=self.writing[piece.content_index], chunk=piece.delta, offset=self.written - len(piece.delta)
                )
            case _:
                return notice(piece)

    # ---- messages, whole

    def said(self, message: wire.Message) -> Iterator[Event]:
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
                yield status_change(status="tool_result_repeated", detail={"toolCallId": message.tool_call_id})

    def system(self, message: wire.System) -> Iterator[Event]:
        parts = [block.text for block in self.blocks(message.content) if isinstance(block, TextBlock) and block.text]
        parts += [text for text in as_object(message.sections).values() if isinstance(text, str)]
        yield user_message(text="\n\n".join(parts), author="harness", role="system")
        changes = {"added": message.tools_added, "removed": message.tools_removed, "replace": message.replace}
        said = {word: value for word, value in changes.items() if value is not None}
        if said:
            yield configuration_change(subtype="tools", options=said)

    def user(self, message: wire.User) -> Event:
        blocks = self.blocks(message.content)
        text = "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
        if self.repeats_prompt(text):
            return status_change(status="prompt_echo")
        plain = all(isinstance(block, TextBlock) for block in blocks)
        return user_message(text=text, content=None if plain else blocks)

    def answer(self, message: wire.Assistant) -> Iterator[Event]:
        cut = len(message.content) - 1 if message.stop_reason in ("aborted", "error") else None
        for index, item in enumerate(message.content):
            yield at(self.block(item, index == cut), self.answer_id, index)
        used = usage_of(message.usage)
        if used is not None:
            yield at(usage(scope="message", usage=used, model=message.model, cost_usd=cost_of(message.usage)), self.answer_id)
        self.stop_reason, self.failure = message.stop_reason, None
        if message.error_message is not None:
            self.failure = error_of(message.error_message, message.stop_reason)
            yield Error(payload=self.failure)
        if not message.content and used is None and self.failure is None:
            yield status_change(status="message_end", detail={"stopReason": message.stop_reason})

    def block(self, item: Any, cut: bool) -> Event:
        match self.read(item, wire.Block):
            case wire.Text(text=text):
                return assistant_done(text=text, interrupted=cut)
            case wire.Thinking(thinking=text, thinking_signature=data, redacted=True):
                return thinking_done(text=text, redacted=data)
            case wire.Thinking(thinking=text, thinking_signature=signature):
                return thinking_done(text=text, signature=signature, interrupted=cut)
            case wire.ToolCall(id=call_id, name=name, arguments=args):
                return tool_call(tool_call_id=call_id, tool_name=name, args=args, kind=TOOLS.get(name, "other"))
            case _:
                return self.unknown_block(item)

    def blocks(self, content: Any) -> list[AnyBlock]:
        """What was said to the model, or given back by a tool: a text or a list."""
        return [self.shown(item) for item in ([content] if isinstance(content, str) else content or [])]

    def shown(self, item: Any) -> AnyBlock:
        match wire.Text(item) if isinstance(item, str) else self.read(item, wire.Shown):
            case wire.Text(text=text):
                return TextBlock(text=text)
            case wire.Image(data=data, mime_type=media_type):
                return ImageBlock(data=data, media_type=media_type)
            case _:
                kind = as_object(item).get("type")
                return RawBlock(raw=item, raw_type=kind if isinstance(kind, str) else None)

    # ---- tools, and the end

    def call_over(self, call_id: str, result: Any, outcome: wire.Outcome | None, is_error: bool | None) -> Event:
        call, blocks = self.open.tools.get(call_id), None
        if outcome is not None:
            blocks = self.blocks(outcome.content)
            if call is not None and not is_error:
                blocks += change_of(call.payload.tool_name, call.payload.args, outcome.details)
        return tool_result(tool_call_id=call_id, result=result, content=blocks, is_error=is_error)

    def settle(self) -> Iterator[Event]:
        status = ENDS.get(self.stop_reason, "completed")
        if status == "interrupted":
            yield interrupt(reason="user_cancel")
        if self.failure is not None and self.failure.code == "provider_auth":
            yield auth_status(is_authenticating=False, error=self.failure.message)
        yield from self.end_turn(status, stop_reason=self.stop_reason, error=self.failure)
        self.stop_reason, self.failure, self.answers = None, None, 0


def notice(message: Any) -> Event:
    """A line that says how it goes, and all that it says."""
    detail = msgspec.to_builtins(message)
    detail.pop("timestamp", None)
    word: str = detail.pop("type")
    return status_change(status=STATES.get(word, word), detail=detail or None)


def compaction_end(message: wire.CompactionEnd) -> Event:
    """The summary, if there is one."""
    if message.error_message is not None:
        return error(code="execution_error", message=message.error_message, error_source="agent")
    if message.result is None:
        return status_change(status="compaction_aborted", detail={"reason": message.reason})
    return session_lifecycle(subtype="compacted", reason=message.reason, text=message.result.summary)
