"""The Claude Agent SDK for Python: its objects, live or recorded, and what our side calls.

Each object is turned back into the frame that the SDK made it of, so that there is one translation for both. Wire notes: README.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from msgspec import UNSET

from hansard import events as ev
from hansard.adapters.authors import author_of
from hansard.adapters.base import Context
from hansard.adapters.claude import blocks, sdk_record, wire
from hansard.adapters.claude import sdk_wire as objects
from hansard.adapters.claude.messages import user_message
from hansard.adapters.claude.outcomes import raised
from hansard.adapters.claude.stream import ClaudeStream
from hansard.adapters.control_protocol import setting
from hansard.adapters.fields import place_in_message
from hansard.adapters.framing import Frame
from hansard.errors import CannotEncode
from hansard.events.lenient import as_list, as_object
from hansard.events.times import is_time

"""The end of the year 9999: a larger number is no time."""


class AgentSdk(ClaudeStream):
    """A program that uses the Agent SDK: what the SDK yields, asks and raises, and what we call."""

    source = "agent_sdk"
    formats = ("agent-sdk",)
    wire = objects.AnyObject
    dated = None

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.user_turn = 0
        self.ended_turn = 0
        self.prompts: set[str] = set()
        self.hooks: list[str] = []
        self.last_error: ev.ErrorInfo | None = None

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """The name of a class or of something that happened, and its fields."""
        return isinstance(message.get("type"), str) and "fields" in message

    def feed_object(self, value: object, time: int | None = None) -> list[ev.Event]:
        """The events of an object that the SDK yielded or an exception that it raised: those its recording would give."""
        return self.feed(Frame(sdk_record.record_object(value), time=time))

    def feed_note(self, kind: str, fields: Any, time: int | None = None) -> list[ev.Event]:
        """The events of what is no object: ``can_use_tool``, ``can_use_tool_answer``, ``hook``, ``server_info``, ``call:set_model``, …"""
        return self.feed(Frame(sdk_record.note(kind, fields), time=time))

    def time_of(self, message: Any) -> int | None:
        """The time at which the recorder wrote the object down."""
        if message.t is None or not is_time(message.t):
            return None
        time = int(message.t)
        return time if time >= ev.EARLIEST_CALENDAR_MS else self.context.epoch + time

    def _decode_leniently(self, document: Any, frame: Frame) -> None:
        word = as_object(document).get("type")
        family = objects.OPEN.get(word.partition(":")[0]) if isinstance(word, str) and ":" in word else None
        message = None if family is None else self.read(document, family)
        if message is None:
            super()._decode_leniently(document, frame)
        else:
            self._read(message, frame)

    # ---- what the SDK yields

    def translate_sent(self, message: Any) -> Iterable[ev.Event]:
        return self.translate(message)

    def translate(self, message: Any) -> Iterator[ev.Event]:
        self.parent = self.context.parent_tool_call_id
        self.user_turn = max(self.user_turn, message.turn or 0)
        match message:
            case objects.AssistantMessage(fields=said):
                yield from super().translate(assistant_frame(said))
                if said.content == []:  # one frame per block on the wire: the SDK did not know this one and left it out
                    yield place_in_message(ev.status_change(status="block_dropped", detail={"by": "claude-agent-sdk"}), said.message_id)
            case objects.UserMessage(fields=said):
                yield from self.user_object(said)
            case objects.ResultMessage(fields=said):
                yield from self.result_object(said)
            case objects.StreamEvent(fields=said):
                yield from self.stream_event(said)
            case objects.RateLimitEvent(fields=said):
                yield from super().translate(wire.RateLimitEvent(rate_limit_info=rate_limit_frame(said.rate_limit_info)))
            case objects.ConversationResetMessage(fields=said):
                yield from self.other(said)
            case objects.ServerInfo():
                self.control.requests["initialize"] = "initialize"
                yield from self.control.agent_answers(wire.ControlAnswer("initialize", "success", message.fields))
            case objects.CanUseTool(fields=asked):
                yield from self.may_tool_run(asked)
            case objects.CanUseToolAnswer(fields=reply):
                yield from _ours(self.we_decide(reply))
            case objects.Hook(fields=called):
                yield from self.hook(called)
            case objects.HookAnswer(fields=reply):
                request_id = reply.request_id or (self.hooks.pop(0) if self.hooks else None)
                yield from _ours([ev.control_response(request_id=request_id, ok=True, method="hook_callback", result=reply.output)])
            case objects.Call():
                yield from self.call(message.type.partition(":")[2], message.fields, message.request_id or f"call_{self.frames}")
            case objects.Returned(fields=came):
                yield from self.returned(message.request_id, came.raises, came.message, came.returns)
            case objects.CanUseToolCancelled(fields=withdrawn):
                yield from self.control.withdrawn(withdrawn.tool_use_id)
            case objects.Raised():
                yield from self.raised(message.type.partition(":")[2], message.fields)
            case _:
                yield from self.system_object(message)

    def trigger(self) -> Literal["user", "system"]:
        """Recordings number the user's turns: one that has not ended yet is the user's."""
        return "user" if self.user_turn > self.ended_turn else super().trigger()

    def result_object(self, said: wire.ResultFields) -> Iterator[ev.Event]:
        for event in self.result(said):
            if isinstance(event, ev.TurnEnd):
                self.last_error = event.payload.error
            yield event
        self.ended_turn = self.user_turn

    def system_object(self, message: Any) -> Iterator[ev.Event]:
        frame = objects.system_frame(message)
        try:
            system = self._convert(frame, wire.AnySystem)
        except (ValueError, RecursionError) as problem:
            yield self._unknown({**frame, "type": message.__struct_config__.tag}, str(problem))
        else:
            yield from super().translate(system)

    def user_object(self, said: objects.UserFields) -> Iterator[ev.Event]:
        if isinstance(said.content, str) and said.content in self.prompts:  # with --replay-user-messages; it has no id we could know
            yield ev.status_change(status="user_message_echo", detail={"messageId": said.uuid})
            return
        yield from super().translate(
            wire.User(
                message=wire.UserContent(objects.api_content(said.content)),
                uuid=said.uuid,
                parent_tool_use_id=said.parent_tool_use_id,
                tool_use_result=said.tool_use_result,
                origin=said.origin,
            )
        )

    # ---- what the SDK asks, and what we answer

    def may_tool_run(self, asked: objects.CanUseToolFields) -> Iterator[ev.Event]:
        context = asked.context or objects.ToolPermissionContext()
        request_id = context.tool_use_id or f"can_use_tool_{self.frames}"
        request = {
            "subtype": "can_use_tool",
            "tool_name": asked.tool_name,
            "input": asked.input,
            "tool_use_id": context.tool_use_id,
            "description": context.description or context.title,
            "permission_suggestions": objects.updates(context.suggestions),
            "agent_id": context.agent_id,
        }
        yield from self.control.agent_asks(wire.ControlRequest(request_id, request))

    def we_decide(self, reply: objects.PermissionResultFields) -> Iterator[ev.Event]:
        request_id = reply.request_id or next(iter(self.open.permissions), f"answer_{self.frames}")
        self.control.asked.setdefault(request_id, "can_use_tool")
        response = {
            "behavior": reply.behavior,
            "updatedInput": reply.updated_input,
            "updatedPermissions": objects.updates(reply.updated_permissions),
            "message": reply.message,
            "interrupt": reply.interrupt,
        }
        yield from self.control.we_answer(wire.ControlAnswer(request_id, "success", response))

    def hook(self, called: objects.HookFields) -> Iterator[ev.Event]:
        request_id = f"hook_{self.frames}"
        self.hooks.append(request_id)
        request = {"subtype": "hook_callback", "input": called.input, "tool_use_id": called.tool_use_id}
        yield from self.control.agent_asks(wire.ControlRequest(request_id, request))
        heard = as_object(called.input)
        prompt = heard.get("prompt") if heard.get("hook_event_name") == "UserPromptSubmit" else None
        if isinstance(prompt, str) and prompt not in self.prompts:
            yield from self.need_turn("user")  # nothing else shows what the user said, unless the call of `query` was recorded
            yield user_message(blocks.to_blocks(prompt), prompt, author_of(prompt), None, queued=False)

    # ---- what we call, and what is raised

    def call(self, method: str, call: objects.CallFields, request_id: str) -> Iterator[ev.Event]:
        prompts = self.prompts_of(call) if method in ("query", "connect") else []
        if prompts:
            for prompt in prompts:
                self.prompts |= {prompt.message.content} if isinstance(prompt.message.content, str) else set()
                yield from _ours(self.we_say(prompt))
        else:
            yield from _ours(self.we_ask(wire.ControlRequest(request_id, objects.request_of(method, call))))
            self.open.cut_off = self.open.cut_off or method == "interrupt"  # an AssistantMessage does not say that it was cut off
        if call.raises is not None or (call.returns is not UNSET and not prompts):
            yield from self.returned(request_id, call.raises, call.message, call.returns)

    def returned(self, request_id: str, raises: str | None, message: str | None, returns: Any) -> Iterator[ev.Event]:
        if raises is None:
            yield from self.control.agent_answers(wire.ControlAnswer(request_id, "success", returns))
        else:
            yield from self.control.agent_answers(
                wire.ControlAnswer(request_id, "error", error=f"{raises}: {message}" if message else raises)
            )

    def prompts_of(self, call: objects.CallFields) -> list[wire.User]:
        """The messages that a call of ``query`` sends: a text, a message, or several."""
        given = (call.args or [None])[0]
        prompt = as_object(call.kwargs).get("prompt", given)
        if isinstance(prompt, str):
            return [wire.User(message=wire.UserContent(prompt))]
        messages = as_list(prompt) or [prompt]
        return [user for user in (self.read(message, wire.User) for message in messages) if user is not None]

    def raised(self, name: str, problem: objects.RaisedFields) -> Iterator[ev.Event]:
        """An exception ends the stream of messages, and with it the turn that is open."""
        error = raised([name, *(problem.bases or [])], problem, self.last_error)
        if problem.exit_code is not None:
            error.details = {"exitCode": problem.exit_code}
        stopped = error.code == "aborted" and self.turn is not None and not self.open.interrupted
        if stopped:
            yield ev.interrupt(reason="timeout" if error.provider_code == "TimeoutError" else "user_cancel")
        yield ev.Error(payload=error)
        if self.turn is not None:
            yield from self.end_turn("interrupted" if error.code == "aborted" else "error", stop_reason=name, error=error)
            self.failure = None
            self.ended_turn = self.user_turn

    # ---- the way back: the call of ClaudeSDKClient, or the answer of a callback, that says a command

    def encode(self, command: ev.Event) -> bytes:
        match command:
            case ev.UserMessage(payload=said):
                content = blocks.content_to_send(said)
                prompt = content if isinstance(content, str) else {"type": "user", "message": {"role": "user", "content": content}}
                return sdk_record.note("call:query", {"args": [prompt]}) + b"\n"
            case ev.PermissionResponse(payload=reply):
                return _decision(reply.request_id, self.control.permission_result(command))
            case ev.Answer(payload=reply) if self.control.is_tool(reply.request_id):
                return _decision(reply.request_id, self.control.answered_tool(command))
            case ev.Interrupt():
                return self.encode_call("interrupt", {})
            case ev.ConfigurationChange(payload=change):
                return self.encode_call(change.subtype, setting(change))
            case ev.ControlRequest(payload=request):
                return self.encode_call(request.method, as_object(request.params))
            case ev.ControlResponse(payload=reply):
                return sdk_record.note("hook_answer", {"output": reply.result, "request_id": reply.request_id}) + b"\n"
            case _:
                raise CannotEncode(f"the Agent SDK has no call for {command.type}")

    def encode_call(self, subtype: str, params: dict[str, Any]) -> bytes:
        for method, (sends, names) in objects.METHODS.items():
            if sends == subtype:
                args = [params.get(name) for name in names]
                return sdk_record.note(f"call:{method}", {"args": args}, f"call_{self.frames + 1}") + b"\n"
        raise CannotEncode(f"the Agent SDK has no call for {subtype}")


def assistant_frame(said: objects.AssistantFields) -> wire.Assistant:
    """The frame of an AssistantMessage. On the wire ``error`` and ``is_api_error_message`` always come together."""
    message = wire.Message(
        content=objects.api_content(said.content), id=said.message_id, model=said.model, stop_reason=said.stop_reason, usage=said.usage
    )
    return wire.Assistant(
        message=message,
        parent_tool_use_id=said.parent_tool_use_id,
        error=said.error,
        is_api_error_message=said.error is not None,
    )


def rate_limit_frame(info: objects.RateLimitInfo) -> wire.RateLimitInfo:
    """The frame's own information; ``raw`` knows what the class does not."""
    fields = {name: getattr(info, name) for name in info.__struct_fields__ if name != "raw"}
    return wire.RateLimitInfo(**fields, is_using_overage=None if info.raw is None else info.raw.is_using_overage)


def _ours(events: Iterable[ev.Event]) -> Iterator[ev.Event]:
    for event in events:
        event.direction = "out"
        yield event


def _decision(request_id: str, decision: dict[str, Any]) -> bytes:
    spelled = {
        "behavior": decision["behavior"],
        "updated_input": decision.get("updatedInput"),
        "updated_permissions": decision.get("updatedPermissions"),
        "message": decision.get("message"),
        "interrupt": decision.get("interrupt", False),
    }
    return sdk_record.note("can_use_tool_answer", {**spelled, "request_id": request_id}) + b"\n"
