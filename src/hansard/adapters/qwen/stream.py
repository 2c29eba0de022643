"""Qwen Code, live: ``qwen -o stream-json``, with and without ``--include-partial-messages``. Wire notes: README.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from hansard.adapter import Adapter, Context
from hansard.adapters.qwen import lanes, wire
from hansard.adapters.qwen.words import API_ERROR, cancelled_by_user, error_of, exit_code, plan_of, tool_kind, tool_server
from hansard.content import RawBlock, TextBlock
from hansard.events import (
    Error,
    ErrorInfo,
    Event,
    TurnStatus,
    Usage,
    assistant_chunk,
    assistant_done,
    configuration_change,
    error,
    interrupt,
    raw,
    result,
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
from hansard.words import at, whole

_LIFE = {
    "session_start": "started",
    "session_end": "closed",
    "worktree_started": "worktree_started",
    "worktree_restored": "worktree_restored",
}


class QwenOutput(Adapter):
    """What a running Qwen Code says."""

    source = "qwen"
    wire = wire.Line

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.answers: dict[str | None, lanes.Answer] = {}
        self.counts: dict[str | None, int] = {}
        self.counted: set[str | None] = set()
        self.called: set[str] = set()
        self.spent: Usage | None = None
        self.requests_of_turn: list[Usage] = []
        self.helped = False
        self.failure: ErrorInfo | None = None
        self.interrupted = False
        self.refused = False

    @classmethod
    def recognises(cls, message: dict[str, Any]) -> bool:
        """An init with this program's version."""
        return message.get("type") == "system" and "qwen_code_version" in message

    def translate(self, message: Any) -> Iterator[Event]:
        self.parent = self.context.parent_tool_call_id
        match message:
            case wire.System():
                self.parent = message.parent_tool_use_id or self.parent
                yield from self.system(message)
            case wire.StreamEvent():
                self.parent = message.parent_tool_use_id or self.parent
                yield from self.piece(message.event)
            case wire.Assistant():
                self.parent = message.parent_tool_use_id or self.parent
                yield from self.assistant(message.message)
            case wire.User():
                self.helped = self.helped or message.parent_tool_use_id is not None
                self.parent = message.parent_tool_use_id or self.parent
                yield from self.heard(message)
            case _:  # wire.Result
                yield from self.result(message)

    def at_end(self) -> Iterator[Event]:
        """On SIGINT there is no result; what was cancelled says it."""
        if self.turn is not None and self.interrupted:
            yield from self.end_turn("interrupted", error=ErrorInfo(code="aborted", message="cancelled by the user"))

    @property
    def is_main(self) -> bool:
        """Whether the agent of this stream speaks, not one that it started."""
        return self.parent == self.context.parent_tool_call_id

    # ---- system lines

    def system(self, message: wire.System) -> Iterator[Event]:
        data = as_object(message.data)
        match message.subtype:
            case "init":
                yield from self.need_turn("user")
                yield self.init(message)
            case "retry":
                self.helped = True  # several requests for one answer, which has the tokens of the last
                yield status_change(status="retrying", detail=message.data)
            case "task_started" | "task_notification":
                yield self.task(message.subtype, data)
            case "model_fallback":
                model = data.get("model", data.get("fallbackModel"))
                yield configuration_change(subtype="model_fallback", model=model if isinstance(model, str) else None, options=data)
            case "continue_turn_failed":
                yield error(code="execution_error", message=str(data.get("error")), provider_code=message.subtype)
            case subtype if subtype in _LIFE:
                yield session_lifecycle(subtype=_LIFE[subtype], detail=message.data)
            case subtype:
                yield raw(kind=f"system/{subtype}", reason="unknown_type")

    def init(self, message: wire.System) -> Event:
        return session_init(
            agent_id="qwen",
            agent_version=message.qwen_code_version,
            provider_session_id=message.session_id,
            model=message.model,
            cwd=message.cwd,
            tools=message.tools,
            mcp_servers=message.mcp_servers,
            commands=message.slash_commands,
            skills=message.skills,
            agents=message.agents,
            permission_mode=message.permission_mode,
        )

    def task(self, subtype: str, data: dict[str, Any]) -> Event:
        """A background agent or command: progress of the call that started it."""
        call, status, title = data.get("tool_use_id"), data.get("status"), data.get("description")
        if not isinstance(call, str):
            return status_change(status=subtype, detail=data)
        return tool_progress(
            tool_call_id=call,
            status=status if isinstance(status, str) else "started",
            title=title if isinstance(title, str) else None,
            detail=data,
        )

    # ---- answers in pieces

    def piece(self, event: Any) -> Iterator[Event]:
        if not isinstance(event, wire.GoalState) and self.is_main:
            yield from self.need_turn()
        match event:
            case wire.MessageStart(message=started):
                answer = lanes.Answer(started.id or self.new_id(), announced=True)
                self.answers[self.parent] = answer
                yield at(status_change(status="message_start", detail={"model": started.model}), answer.id)
            case wire.ContentBlockStart():
                yield self.block_start(event)
            case wire.ContentBlockDelta():
                yield self.delta(event)
            case wire.ContentBlockStop():
                # a retry that keeps the text goes on writing into a stopped block, so this ends nothing
                answer = self.answer()
                yield at(status_change(status="content_block_stop"), answer.id, answer.places.get(event.index))
            case wire.MessageStop():
                yield at(status_change(status="message_stop"), self.answer().id)
            case wire.ToolProgress():
                yield tool_progress(tool_call_id=event.tool_use_id, status="running", detail=event.content)
            case _:  # wire.GoalState
                yield status_change(status="goal_state", detail=event.goal_state)

    def new_id(self) -> str:
        """A sub-agent's answers are not announced, so their ids come too late for their pieces."""
        return f"{self.parent or self.turn}:{self.frames}"

    def answer(self) -> lanes.Answer:
        answer = self.answers.get(self.parent)
        if answer is None:
            answer = self.answers[self.parent] = lanes.Answer(self.new_id(), announced=False)
        return answer

    def block_start(self, event: wire.ContentBlockStart) -> Event:
        answer, block = self.answer(), event.content_block
        match block:
            case wire.Text():
                index = answer.start(event.index, lanes.Block("text"))
                return at(assistant_chunk(text=block.text), answer.id, index)
            case wire.Thinking():
                index = answer.start(event.index, lanes.Block("thinking"))
                return at(thinking_chunk(text=block.thinking), answer.id, index)
            case wire.ToolUse():
                index = answer.start(event.index, lanes.Block("tool_use", block.id, block.name))
                return at(tool_progress(tool_call_id=block.id, tool_name=block.name, status="pending"), answer.id, index)

    def delta(self, event: wire.ContentBlockDelta) -> Event:
        answer, delta = self.answer(), event.delta
        index = answer.places.get(event.index)
        match delta:
            case wire.TextDelta():
                if index is None:
                    index = answer.start(event.index, lanes.Block("text"))
                return at(assistant_chunk(text=delta.text), answer.id, index)
            case wire.ThinkingDelta():
                if index is None:
                    index = answer.start(event.index, lanes.Block("thinking"))
                return at(thinking_chunk(text=delta.thinking), answer.id, index)
            case wire.InputJsonDelta():
                block = lanes.Block("tool_use") if index is None else answer.blocks[index]
                offset = block.written
                block.written += len(delta.partial_json)
                call = block.tool_id or f"{answer.id}:{event.index}"
                return at(
                    tool_input_chunk(tool_call_id=call, tool_name=block.tool_name, chunk=delta.partial_json, offset=offset),
                    answer.id,
                    index,
                )

    # ---- whole messages

    def assistant(self, message: wire.Message) -> Iterator[Event]:
        if self.is_main:
            yield from self.need_turn()
        answer = self.answers.get(self.parent)
        place = message.id
        for item in message.content or []:
            block = self.read(item, wire.Content)
            place, index = self.place(answer, message.id, block)
            if block is None:
                yield at(self.unknown_block(item), place, index)
            else:
                yield from (at(event, place, index) for event in self.block(block, message))
        if not message.content:
            yield at(status_change(status="message", detail={"stopReason": message.stop_reason}), place)
        yield from self.message_usage(message, place)
        if answer is not None and not answer.announced:
            self.answers.pop(self.parent, None)

    def place(self, answer: lanes.Answer | None, message_id: str | None, block: Any) -> tuple[str | None, int]:
        """Where a whole block belongs: where its pieces went, else next in the message itself."""
        kind = "" if block is None else str(block.__struct_config__.tag)
        index = None if answer is None else answer.take(kind, block.id if isinstance(block, wire.ToolUse) else None)
        if answer is not None and index is not None:
            return answer.id, index
        if answer is not None and answer.blocks:  # something that had no pieces, between blocks that had
            answer.blocks.append(lanes.Block(kind))
            answer.blocks[-1].done = True
            return answer.id, len(answer.blocks) - 1
        count = self.counts.get(message_id, 0)
        self.counts[message_id] = count + 1
        return message_id, count

    def block(self, block: Any, message: wire.Message) -> Iterator[Event]:
        match block:
            case wire.Text():
                failed = block.text.startswith(API_ERROR) and not tokens_known(message.usage)
                yield assistant_done(text=block.text, interrupted=False, phase="error" if failed else None)
                if failed and self.is_main:
                    self.failure = error_of(block.text)
                    yield Error(payload=self.failure)
            case wire.Thinking():
                yield thinking_done(text=block.thinking, signature=block.signature if block.signature != "" else None)
            case _:  # wire.ToolUse
                if block.id in self.called:
                    yield status_change(status="tool_use_repeated", detail={"toolCallId": block.id})
                    return
                self.called.add(block.id)
                yield tool_call(
                    tool_call_id=block.id,
                    tool_name=block.name,
                    args=block.input,
                    kind=tool_kind(block.name),
                    server=tool_server(block.name),
                )
                yield from plan_of(block.name, block.input)

    def message_usage(self, message: wire.Message, place: str | None) -> Iterator[Event]:
        """Only the last message of an answer has the tokens; the others say 0."""
        if message.usage is None or not tokens_known(message.usage) or (place is not None and place in self.counted):
            return
        self.counted.add(place)
        used = usage_of(message.usage)
        self.requests_of_turn.append(used)
        yield at(usage(scope="message", usage=used, model=message.model), place)

    # ---- what the model is told

    def heard(self, frame: wire.User) -> Iterator[Event]:
        content = frame.message.content
        items = cast("list[Any]", content) if isinstance(content, list) else [content]
        spoken: list[Any] = []
        for item in items:
            block = self.read(item, wire.Heard)
            if isinstance(block, wire.ToolResult):
                yield from self.tool_result(block)
            else:
                spoken.append(item)
        if spoken:
            yield self.spoken(spoken, "harness" if self.is_main else "agent", frame.uuid)

    def spoken(self, items: list[Any], author: str, message_id: str | None, queued: bool = False) -> Event:
        blocks = [text_block(item) for item in items]
        text = "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
        plain = len(blocks) == 1 and isinstance(blocks[0], TextBlock)
        content = None if plain else cast("Any", blocks)
        return user_message(text=text, content=content, author=cast("Any", author), message_id=message_id, queued=queued)

    def tool_result(self, block: wire.ToolResult) -> Iterator[Event]:
        call = self.open.tools.get(block.tool_use_id)
        if cancelled_by_user(block.content) and not self.interrupted:
            self.interrupted = True
            yield interrupt(reason="user_cancel")
        yield tool_result(
            tool_call_id=block.tool_use_id,
            result=block.content,
            is_error=block.is_error,
            exit_code=exit_code(None if call is None else call.payload.tool_name, block.content),
        )

    # ---- the end of a turn

    def result(self, frame: wire.Result) -> Iterator[Event]:
        yield from self.need_turn("user")
        status, failure = self.end(frame)
        if status == "interrupted" and not self.interrupted:
            yield interrupt(reason="user_cancel")
        used = self.turn_usage(frame.usage)
        yield result(
            status=status,
            subtype=frame.subtype,
            text=frame.result if isinstance(frame.result, str) else None,
            structured_output=frame.structured_result,
            usage=used,
            model_usage=frame.model_usage,
            duration_ms=whole(frame.duration_ms),
            duration_api_ms=whole(frame.duration_api_ms),
            num_turns=frame.num_turns,
            permission_denials=frame.permission_denials,
            error=failure,
        )
        if failure is not None and failure is not self.failure and status == "error":
            yield Error(payload=failure)
        if used is not None:
            yield usage(scope="turn", usage=used)
        if self.spent is not None:
            yield usage(scope="session", usage=self.spent)
        yield from self.end_turn(status, stop_reason=frame.subtype, error=failure)
        self.failure, self.interrupted, self.refused = None, False, False

    def end(self, frame: wire.Result) -> tuple[TurnStatus, ErrorInfo | None]:
        """How the turn ended. 0.15 reports success after errors of the API; the text that took the answer's place does not."""
        said = None if frame.error is None else frame.error.message
        if said is None and frame.is_error:
            said = frame.result if isinstance(frame.result, str) else str(frame.subtype)
        if said is not None:
            failure = self.failure if self.failure is not None and self.failure.message == said else error_of(said)
            return ("interrupted" if failure.code == "aborted" else "error"), failure
        if self.interrupted:
            return "interrupted", ErrorInfo(code="aborted", message="cancelled by the user")
        if self.failure is not None and frame.result in (None, self.failure.message):
            return "error", self.failure
        return ("denied" if self.refused else "completed"), None

    def turn_usage(self, tokens: wire.Tokens | None) -> Usage | None:
        """What this turn added. The wire counts from the start of the session, so the first result may be about older turns too."""
        requests, helped, before = self.requests_of_turn, self.helped, self.spent
        self.requests_of_turn, self.helped = [], False
        if tokens is None or not tokens_known(tokens):
            return None
        self.spent = usage_of(tokens)
        if before is not None:
            return difference(self.spent, before)
        return self.spent if helped else total(requests)


def tokens_known(tokens: wire.Tokens | None) -> bool:
    """Two zeros are what the program writes when it does not know."""
    return tokens is not None and (tokens.input_tokens, tokens.output_tokens) not in ((0, 0), (None, None))


def usage_of(tokens: wire.Tokens) -> Usage:
    """Usage in our words; input counts cached tokens in."""
    given, made = tokens.input_tokens, tokens.output_tokens
    return Usage(
        input_tokens=given,
        output_tokens=made,
        total_tokens=None if given is None or made is None else given + made,
        cache_read_input_tokens=tokens.cache_read_input_tokens,
    )


_COUNTS = ("input_tokens", "output_tokens", "total_tokens", "cache_read_input_tokens")


def difference(now: Usage, before: Usage) -> Usage:
    """What was added since, as far as both are known."""
    pairs = {name: (getattr(now, name), getattr(before, name)) for name in _COUNTS}
    return Usage(**{name: None if None in pair else pair[0] - pair[1] for name, pair in pairs.items()})


def total(used: list[Usage]) -> Usage | None:
    """The sum of several requests; a count that one of them does not know is unknown."""
    counts: dict[str, list[Any]] = {name: [getattr(usage, name) for usage in used] for name in _COUNTS}
    sums: dict[str, Any] = {name: None if None in each else sum(each) for name, each in counts.items()}
    return Usage(**sums) if used else None


def text_block(item: Any) -> TextBlock | RawBlock:
    """A block of what was said to the model."""
    text = item if isinstance(item, str) else as_object(item).get("text")
    if isinstance(text, str) and (isinstance(item, str) or as_object(item).get("type") == "text"):
        return TextBlock(text=text)
    kind = as_object(item).get("type")
    return RawBlock(raw=item, raw_type=kind if isinstance(kind, str) else None)
