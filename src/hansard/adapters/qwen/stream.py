"""Qwen Code, live: ``qwen -o stream-json``, with and without ``--include-partial-messages``. Wire notes: README.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from hansard import events as ev
from hansard.adapters.base import Adapter, Context
from hansard.adapters.blocks import raw_block, text_of
from hansard.adapters.control_protocol import error_line, parameters, request_line, response_line, sent_request, setting
from hansard.adapters.fields import input_hash, json_line, mcp_server, place_in_message, whole_ms
from hansard.adapters.gemini_parts import exit_code
from hansard.adapters.qwen import answers, wire
from hansard.adapters.qwen.control import SETTINGS, description, options, sent_block
from hansard.adapters.qwen.fields import API_ERROR, cancelled_by_user, error_of, plan_of, tool_kind
from hansard.adapters.usage import make_usage, sum_usage
from hansard.errors import CannotEncode
from hansard.events.lenient import as_list, as_object

_LIFE = {
    "session_start": "started",
    "session_end": "closed",
    "worktree_started": "worktree_started",
    "worktree_restored": "worktree_restored",
}


class QwenStream(Adapter):
    """A running Qwen Code, with what our side says to it."""

    formats = ("qwen-stream-json", "qwen-stream-json-io")
    source = "qwen"
    wire = wire.Line

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.answers: dict[str | None, answers.OpenResponse] = {}
        self.counts: dict[str | None, int] = {}
        self.counted: set[str | None] = set()
        self.called: set[str] = set()
        self.spent: ev.Usage | None = None
        self.requests_of_turn: list[ev.Usage] = []
        self.helped = False
        self.failure: ev.ErrorInfo | None = None
        self.requests: dict[str, str] = {}
        self.asked: set[str] = set()

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """An init with this program's version."""
        return message.get("type") == "system" and "qwen_code_version" in message

    def translate(self, message: Any) -> Iterator[ev.Event]:
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
                yield from self.user_message(message)
            case wire.Result():
                yield from self.result(message)
            case wire.ControlRequest():
                yield from self.agent_asks(message)
            case wire.ControlResponse(response=reply):
                yield from self.agent_answers(reply)
            case _:  # wire.ControlCancelRequest
                yield ev.permission_cancelled(request_id=str(message.request_id), reason="withdrawn by the agent")

    def end_of_stream(self) -> Iterator[ev.Event]:
        """On SIGINT there is no result; what was cancelled says it."""
        if self.turn is not None and self.open.interrupted:
            yield from self.end_turn("interrupted", error=ev.ErrorInfo(code="aborted", message="cancelled by the user"))

    @property
    def is_main(self) -> bool:
        """Whether the agent of this stream speaks, not one that it started."""
        return self.parent == self.context.parent_tool_call_id

    # ---- system lines

    def system(self, message: wire.System) -> Iterator[ev.Event]:
        data = as_object(message.data)
        match message.subtype:
            case "init":
                yield from self.need_turn("user")
                yield self.init(message)
            case "retry":
                self.helped = True  # several requests for one answer, which has the tokens of the last
                yield ev.status_change(status="retrying", detail=message.data)
            case "task_started" | "task_notification":
                yield self.task(message.subtype, data)
            case "model_fallback":
                model = data.get("model", data.get("fallbackModel"))
                yield ev.configuration_change(subtype="model_fallback", model=model if isinstance(model, str) else None, options=data)
            case "continue_turn_failed":
                yield ev.error(code="execution_error", message=str(data.get("error")), provider_code=message.subtype)
            case subtype if subtype in _LIFE:
                yield ev.session_lifecycle(subtype=_LIFE[subtype], detail=message.data)
            case subtype:
                yield ev.raw(kind=f"system/{subtype}", reason="unknown_type")

    def init(self, message: wire.System) -> ev.Event:
        return ev.session_init(
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

    def task(self, subtype: str, data: dict[str, Any]) -> ev.Event:
        """A background agent or command: progress of the call that started it."""
        call, status, title = data.get("tool_use_id"), data.get("status"), data.get("description")
        if not isinstance(call, str):
            return ev.status_change(status=subtype, detail=data)
        return ev.tool_progress(
            tool_call_id=call,
            status=status if isinstance(status, str) else "started",
            title=title if isinstance(title, str) else None,
            detail=data,
        )

    # ---- answers in pieces

    def piece(self, event: Any) -> Iterator[ev.Event]:
        if not isinstance(event, wire.GoalState) and self.is_main:
            yield from self.need_turn()
        match event:
            case wire.MessageStart(message=started):
                answer = answers.OpenResponse(started.id or self.new_id(), announced=True)
                self.answers[self.parent] = answer
                yield place_in_message(ev.status_change(status="message_start", detail={"model": started.model}), answer.id)
            case wire.ContentBlockStart():
                yield self.block_start(event)
            case wire.ContentBlockDelta():
                yield self.delta(event)
            case wire.ContentBlockStop():
                # a retry that keeps the text goes on writing into a stopped block, so this ends nothing
                answer = self.answer()
                yield place_in_message(ev.status_change(status="content_block_stop"), answer.id, answer.places.get(event.index))
            case wire.MessageStop():
                yield place_in_message(ev.status_change(status="message_stop"), self.answer().id)
            case wire.ToolProgress():
                yield ev.tool_progress(tool_call_id=event.tool_use_id, status="running", detail=event.content)
            case _:  # wire.GoalState
                yield ev.status_change(status="goal_state", detail=event.goal_state)

    def new_id(self) -> str:
        """A sub-agent's answers are not announced, so their ids come too late for their pieces."""
        return f"{self.parent or self.turn}:{self.frames}"

    def answer(self) -> answers.OpenResponse:
        answer = self.answers.get(self.parent)
        if answer is None:
            answer = self.answers[self.parent] = answers.OpenResponse(self.new_id(), announced=False)
        return answer

    def block_start(self, event: wire.ContentBlockStart) -> ev.Event:
        answer, block = self.answer(), event.content_block
        match block:
            case wire.Text():
                index = answer.start(event.index, answers.Block("text"))
                return place_in_message(ev.assistant_chunk(text=block.text), answer.id, index)
            case wire.Thinking():
                index = answer.start(event.index, answers.Block("thinking"))
                return place_in_message(ev.thinking_chunk(text=block.thinking), answer.id, index)
            case wire.ToolUse():
                index = answer.start(event.index, answers.Block("tool_use", block.id, block.name))
                return place_in_message(ev.tool_progress(tool_call_id=block.id, tool_name=block.name, status="pending"), answer.id, index)

    def delta(self, event: wire.ContentBlockDelta) -> ev.Event:
        answer, delta = self.answer(), event.delta
        index = answer.places.get(event.index)
        match delta:
            case wire.TextDelta():
                if index is None:
                    index = answer.start(event.index, answers.Block("text"))
                return place_in_message(ev.assistant_chunk(text=delta.text), answer.id, index)
            case wire.ThinkingDelta():
                if index is None:
                    index = answer.start(event.index, answers.Block("thinking"))
                return place_in_message(ev.thinking_chunk(text=delta.thinking), answer.id, index)
            case wire.InputJsonDelta():
                block = answers.Block("tool_use") if index is None else answer.blocks[index]
                offset = block.written
                block.written += len(delta.partial_json)
                call = block.tool_id or f"{answer.id}:{event.index}"
                return place_in_message(
                    ev.tool_input_chunk(tool_call_id=call, tool_name=block.tool_name, chunk=delta.partial_json, offset=offset),
                    answer.id,
                    index,
                )

    # ---- whole messages

    def assistant(self, message: wire.Message) -> Iterator[ev.Event]:
        if self.is_main:
            yield from self.need_turn()
        answer = self.answers.get(self.parent)
        place = message.id
        for item in message.content or []:
            block = self.read(item, wire.Content)
            place, index = self.place(answer, message.id, block)
            if block is None:
                yield place_in_message(self.unknown_block(item), place, index)
            else:
                yield from (place_in_message(event, place, index) for event in self.block(block, message))
        if not message.content:
            yield place_in_message(ev.status_change(status="message", detail={"stopReason": message.stop_reason}), place)
        yield from self.message_usage(message, place)
        if answer is not None and not answer.announced:
            self.answers.pop(self.parent, None)

    def place(self, answer: answers.OpenResponse | None, message_id: str | None, block: Any) -> tuple[str | None, int]:
        """Where a whole block belongs: where its pieces went, else next in the message itself."""
        kind = "" if block is None else str(block.__struct_config__.tag)
        index = None if answer is None else answer.take(kind, block.id if isinstance(block, wire.ToolUse) else None)
        if answer is not None and index is not None:
            return answer.id, index
        if answer is not None and answer.blocks:  # something that had no pieces, between blocks that had
            answer.blocks.append(answers.Block(kind))
            answer.blocks[-1].done = True
            return answer.id, len(answer.blocks) - 1
        count = self.counts.get(message_id, 0)
        self.counts[message_id] = count + 1
        return message_id, count

    def block(self, block: Any, message: wire.Message) -> Iterator[ev.Event]:
        match block:
            case wire.Text():
                failed = block.text.startswith(API_ERROR) and not tokens_known(message.usage)
                yield ev.assistant_done(text=block.text, interrupted=False, phase="error" if failed else None)
                if failed and self.is_main:
                    self.failure = error_of(block.text)
                    yield ev.Error(payload=self.failure)
            case wire.Thinking():
                yield ev.thinking_done(text=block.thinking, signature=block.signature if block.signature != "" else None)
            case _:  # wire.ToolUse
                if block.id in self.called:
                    yield ev.status_change(status="tool_use_repeated", detail={"toolCallId": block.id})
                    return
                self.called.add(block.id)
                yield ev.tool_call(
                    tool_call_id=block.id,
                    tool_name=block.name,
                    args=block.input,
                    kind=tool_kind(block.name),
                    server=mcp_server(block.name),
                )
                yield from plan_of(block.name, block.input)

    def message_usage(self, message: wire.Message, place: str | None) -> Iterator[ev.Event]:
        """Only the last message of an answer has the tokens; the others say 0."""
        if message.usage is None or not tokens_known(message.usage) or (place is not None and place in self.counted):
            return
        self.counted.add(place)
        used = usage_of(message.usage)
        self.requests_of_turn.append(used)
        yield place_in_message(ev.usage(scope="message", usage=used, model=message.model), place)

    # ---- what the model is told

    def user_message(self, frame: wire.User) -> Iterator[ev.Event]:
        spoken: list[Any] = []
        for item in items_of(frame):
            block = self.read(item, wire.Heard)
            if isinstance(block, wire.ToolResult):
                yield from self.tool_result(block)
            else:
                spoken.append(item)
        if spoken:
            yield self.user_event(spoken, "harness" if self.is_main else "agent", frame.uuid)

    def user_event(self, items: list[Any], author: str, message_id: str | None, queued: bool = False) -> ev.Event:
        blocks = [text_block(item) for item in items]
        text = text_of(blocks)
        plain = len(blocks) == 1 and isinstance(blocks[0], ev.TextBlock)
        content = None if plain else cast("Any", blocks)
        return ev.user_message(text=text, content=content, author=cast("Any", author), message_id=message_id, queued=queued)

    def tool_result(self, block: wire.ToolResult) -> Iterator[ev.Event]:
        call = self.open.tools.get(block.tool_use_id)
        if cancelled_by_user(block.content) and not self.open.interrupted:
            yield ev.interrupt(reason="user_cancel")
        yield ev.tool_result(
            tool_call_id=block.tool_use_id,
            result=block.content,
            is_error=block.is_error,
            exit_code=exit_code(None if call is None else call.payload.tool_name, block.content),
        )

    # ---- the end of a turn

    def result(self, frame: wire.Result) -> Iterator[ev.Event]:
        yield from self.need_turn("user")
        status, failure = self.open.end_status(*self.end(frame))
        if status == "interrupted" and not self.open.interrupted:
            yield ev.interrupt(reason="user_cancel")
        used = self.turn_usage(frame.usage)
        yield ev.result(
            status=status,
            subtype=frame.subtype,
            text=frame.result if isinstance(frame.result, str) else None,
            structured_output=frame.structured_result,
            usage=used,
            model_usage=frame.model_usage,
            duration_ms=whole_ms(frame.duration_ms),
            duration_api_ms=whole_ms(frame.duration_api_ms),
            num_turns=frame.num_turns,
            permission_denials=frame.permission_denials,
            error=failure,
        )
        if failure is not None and failure is not self.failure and status == "error":
            yield ev.Error(payload=failure)
        if used is not None:
            yield ev.usage(scope="turn", usage=used)
        if self.spent is not None:
            yield ev.usage(scope="session", usage=self.spent)
        yield from self.end_turn(status, stop_reason=frame.subtype, error=failure)
        self.failure = None

    def end(self, frame: wire.Result) -> tuple[ev.TurnStatus, ev.ErrorInfo | None]:
        """How the turn ended. 0.15 reports success after errors of the API; the text that took the answer's place does not."""
        said = None if frame.error is None else frame.error.message
        if said is None and frame.is_error:
            said = frame.result if isinstance(frame.result, str) else str(frame.subtype)
        if said is not None:
            failure = self.failure if self.failure is not None and self.failure.message == said else error_of(said)
            return ("interrupted" if failure.code == "aborted" else "error"), failure
        if self.open.interrupted:
            return "interrupted", ev.ErrorInfo(code="aborted", message="cancelled by the user")
        if self.failure is not None and frame.result in (None, self.failure.message):
            return "error", self.failure
        return "completed", None

    def turn_usage(self, tokens: wire.Tokens | None) -> ev.Usage | None:
        """What this turn added. The wire counts from the start of the session, so the first result may be about older turns too."""
        requests, helped, before = self.requests_of_turn, self.helped, self.spent
        self.requests_of_turn, self.helped = [], False
        if tokens is None or not tokens_known(tokens):
            return None
        self.spent = usage_of(tokens)
        if before is not None:
            return difference(self.spent, before)
        return self.spent if helped else sum_usage(requests)

    # ---- the control protocol, from the agent

    def agent_asks(self, message: wire.ControlRequest) -> Iterator[ev.Event]:
        request = as_object(message.request)
        method = str(request.get("subtype"))
        asks = self.read(request, wire.CanUseTool) if method == "can_use_tool" else None
        if asks is None:
            yield ev.control_request(request_id=message.request_id, method=method, params=parameters(request))
            return
        self.asked.add(message.request_id)
        yield ev.permission_request(
            request_id=message.request_id,
            options=options(asks.permission_suggestions),
            input_hash=input_hash(asks.input),
            tool_call_id=asks.tool_use_id,
            tool_name=asks.tool_name,
            input=asks.input,
            description=description(asks),
            suggestions=asks.permission_suggestions,
        )

    def agent_answers(self, reply: wire.ControlAnswer) -> Iterator[ev.Event]:
        method = self.requests.pop(reply.request_id, None)
        response = as_object(reply.response)
        yield ev.control_response(
            request_id=reply.request_id, ok=reply.subtype == "success", method=method, result=reply.response, error=reply.error
        )
        if method == "interrupt" and reply.subtype == "success":
            self.open.cut_off = True
        if method == "supported_commands" and "commands" in response:
            yield ev.configuration_change(subtype="available_commands_update", commands=as_list(response["commands"]))

    # ---- the way back: what our side sent

    def translate_sent(self, message: Any) -> Iterator[ev.Event]:
        self.parent = self.context.parent_tool_call_id
        match message:
            case wire.User():
                queued = self.turn is not None
                yield from self.need_turn("user")
                yield self.user_event(items_of(message), "human", message.uuid, queued)
            case wire.ControlRequest():
                yield from self.we_ask(message)
            case wire.ControlResponse(response=reply):
                yield from self.we_answer(reply)
            case wire.ControlCancelRequest():
                yield ev.control_request(method="control_cancel_request", request_id=message.request_id)
            case _:
                yield from self.translate(message)

    def we_ask(self, message: wire.ControlRequest) -> Iterator[ev.Event]:
        request = as_object(message.request)
        self.reply_id = message.request_id
        self.requests[message.request_id] = str(request.get("subtype"))
        yield sent_request(message.request_id, request, SETTINGS)

    def we_answer(self, reply: wire.ControlAnswer) -> Iterator[ev.Event]:
        if reply.request_id not in self.asked:
            yield ev.control_response(request_id=reply.request_id, ok=reply.subtype == "success", result=reply.response, error=reply.error)
            return
        self.asked.discard(reply.request_id)
        decision = self.read(as_object(reply.response), wire.PermissionResult) or wire.PermissionResult()
        allowed = reply.subtype == "success" and decision.behavior == "allow"
        yield ev.permission_response(
            request_id=reply.request_id,
            decision="allow" if allowed else "deny",
            option_id="allow" if allowed else "deny",
            updated_input=decision.updated_input,
            message=decision.message if decision.message is not None else reply.error if isinstance(reply.error, str) else None,
            interrupt=decision.interrupt,
        )

    def encode(self, command: ev.Event) -> bytes:
        request_id = command.command_id or command.id or f"req-{self.frames}"
        match command:
            case ev.UserMessage(payload=said):
                content = said.text if said.content is None else [sent_block(block) for block in said.content]
                return json_line(type="user", session_id="", parent_tool_use_id=None, message={"role": "user", "content": content})
            case ev.PermissionResponse(payload=reply):
                return response_line(reply.request_id, self.permission_result(command))
            case ev.Interrupt():
                return request_line(request_id, {"subtype": "interrupt"})
            case ev.ConfigurationChange(payload=change) if change.subtype in SETTINGS:
                return request_line(request_id, setting(change))
            case ev.ControlRequest(payload=asked):
                return request_line(asked.request_id or request_id, {"subtype": asked.method, **as_object(asked.params)})
            case ev.ControlResponse(payload=reply) if reply.ok:
                return response_line(str(reply.request_id), reply.result)
            case ev.ControlResponse(payload=reply):
                return error_line(reply.request_id, reply.error)
            case _:
                raise CannotEncode(f"Qwen Code has no words for {command.type}")

    def permission_result(self, command: ev.PermissionResponse) -> dict[str, Any]:
        payload = command.payload
        if not command.allowed:
            return {"behavior": "deny", **({"message": payload.message} if payload.message is not None else {})}
        asked = self.open.permissions.get(payload.request_id)
        shown = None if asked is None else asked.payload.input
        return {"behavior": "allow", "updatedInput": shown if payload.updated_input is None else payload.updated_input}


def items_of(frame: wire.User) -> list[Any]:
    """Return the blocks of a message. A message of plain text is one block."""
    content = frame.message.content
    return cast("list[Any]", content) if isinstance(content, list) else [content]


def tokens_known(tokens: wire.Tokens | None) -> bool:
    """Two zeros are what the program writes when it does not know."""
    return tokens is not None and (tokens.input_tokens, tokens.output_tokens) not in ((0, 0), (None, None))


def usage_of(tokens: wire.Tokens) -> ev.Usage:
    """Usage in our words; input counts cached tokens in."""
    return make_usage(tokens.input_tokens, tokens.output_tokens, cache_read=tokens.cache_read_input_tokens)


_COUNTS = ("input_tokens", "output_tokens", "total_tokens", "cache_read_input_tokens")


def difference(now: ev.Usage, before: ev.Usage) -> ev.Usage:
    """What was added since, as far as both are known."""
    pairs = {name: (getattr(now, name), getattr(before, name)) for name in _COUNTS}
    return ev.Usage(**{name: None if None in pair else pair[0] - pair[1] for name, pair in pairs.items()})


def text_block(item: Any) -> ev.TextBlock | ev.RawBlock:
    """A block of what was said to the model."""
    text = item if isinstance(item, str) else as_object(item).get("text")
    if isinstance(text, str) and (isinstance(item, str) or as_object(item).get("type") == "text"):
        return ev.TextBlock(text=text)
    return raw_block(item)
