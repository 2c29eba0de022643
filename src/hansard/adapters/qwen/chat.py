"""Qwen Code's own files: ``~/.qwen/projects/<cwd>/chats/<session>.jsonl``, sub-agents in ``subagents/<session>/agent-*.jsonl``.

What ends a turn: README.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from hansard import events as ev
from hansard.adapters.authors import author_of
from hansard.adapters.base import Adapter, Context
from hansard.adapters.blocks import text_of
from hansard.adapters.fields import mcp_server, parse_iso_ms, place_in_message, whole_ms
from hansard.adapters.framing import Lines
from hansard.adapters.gemini_parts import CANCELLED_COMMAND, REFUSED, diff_block, exit_code, media_block, screen_text
from hansard.adapters.qwen import chat_wire as disk
from hansard.adapters.qwen.fields import cancelled_by_user, error_of, plan_of, tool_kind
from hansard.adapters.usage import make_usage
from hansard.adapters.workspace import workspace_of
from hansard.events.lenient import as_int, as_object, as_text, read
from hansard.events.usage_totals import Uncounted

_LIFE = {
    "chat_compression": "compacted",
    "rewind": "rewound",
    "branch_checkpoint": "checkpoint",
    "file_history_snapshot": "snapshot",
    "attribution_snapshot": "snapshot",
    "session_artifact_snapshot": "snapshot",
    "session_sources_snapshot": "snapshot",
    "session_artifact_event": "artifact",
    "session_source": "source",
}
_NOTICES = (
    "at_command",
    "background_task_completed",
    "continue_last_turn",
    "goal_runtime",
    "goal_state",
    "goal_turn_end",
    "omni_recall",
    "session_recording_degraded",
    "turn_result",
    "user_text_elements",
)


class QwenChat(Adapter):
    """A session as Qwen Code wrote it down."""

    formats = ("qwen-chat",)
    source = "qwen"
    uncounted: ClassVar[Uncounted] = {"": frozenset({"compaction"})}
    framer = Lines
    wire = disk.Record

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.version: str | None = None
        self.session: str | None = None
        self.counting = False
        self.answers = 0
        self.responded = False
        self.called: set[str] = set()
        self.returned: set[str] = set()
        self.took: dict[str, int | None] = {}
        self._new_turn()

    def _new_turn(self) -> None:
        self.prompt: str | None = None
        self.answered = False
        self.cut_off: bool | None = None  # None: nothing tells
        self.failure: ev.ErrorInfo | None = None

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """A record whose message has parts, or a system record with its payload."""
        head = "sessionId" in message and "parentUuid" in message and "version" in message
        return head and ("parts" in as_object(message.get("message")) or "systemPayload" in message)

    def time_of(self, message: Any) -> int | None:
        """Every record has its time."""
        return parse_iso_ms(message.timestamp)

    def translate(self, message: Any) -> Iterable[ev.Event]:
        if message.version != self.version or message.session_id != self.session:
            return self.headed(message)
        return self.record(message)

    def headed(self, record: Any) -> Iterator[ev.Event]:
        yield from self.head(record)
        yield from self.record(record)

    def record(self, record: Any) -> Iterable[ev.Event]:
        match record:
            case disk.System():
                return self.system(record)
            case disk.Assistant():
                return self.assistant(record)
            case disk.ToolResult():
                return self.tool_results(record)
            case _:  # disk.User
                return self.user(record)

    def end_of_stream(self) -> Iterator[ev.Event]:
        """The last turn is over if it was answered, failed or was stopped; else nobody knows what became of it."""
        if self.turn is not None and (self.answered or self.open.interrupted or self.open.denial or self.failure is not None):
            yield from self.settle()

    def head(self, record: Any) -> Iterator[ev.Event]:
        """Nobody introduces himself in these files; the first record says a bit of it, and whenever the program changes."""
        self.version, self.session = record.version, record.session_id
        yield ev.session_init(
            agent_id="qwen",
            agent_version=record.version,
            provider_session_id=record.session_id,
            cwd=record.cwd,
            model=record.model if isinstance(record, disk.Assistant) else None,
            workspace=workspace_of(branch=record.git_branch),
        )
        if record.agent_name is not None:
            yield ev.status_change(status="subagent", detail={"agentId": record.agent_id, "agentName": record.agent_name})
        origin = as_object(record.forked_from)
        if origin:
            parent, copied = as_text(origin.get("sessionId")), as_text(origin.get("messageUuid"))
            yield ev.session_lifecycle(subtype="forked", provider_session_id=record.session_id, parent_session_id=parent, message_id=copied)

    # ---- prompts

    def user(self, record: disk.User) -> Iterator[ev.Event]:
        if record.subtype not in ("mid_turn_user_message", "realtime_message"):
            yield from self.settle()
            yield from self.start_turn("system" if record.is_sidechain or record.subtype is not None else "user")
        typed: disk.Prompt = self.read(record.system_payload, disk.Prompt) or disk.Prompt()
        parts = [] if record.message is None else record.message.parts or []
        blocks = [*(self.block(part) for part in parts), *(self.link(value) for value in typed.resource_links or [])]
        text = text_of(blocks)
        if typed.display_text is not None:
            text = typed.display_text
        plain = len(blocks) == 1 and isinstance(blocks[0], ev.TextBlock) and blocks[0].text == text
        self.prompt = text
        human = record.subtype in (None, "mid_turn_user_message", "realtime_message") and record.provenance in (None, "real_user")
        if typed.hook_context is not None and typed.hook_context != "":  # always there beside what was typed
            yield ev.user_message(text=typed.hook_context, author="harness")
        yield ev.user_message(
            text=text,
            content=None if plain else blocks,
            author=author_of(text, wire=None if human or record.is_sidechain else "harness", nested=record.is_sidechain),
            message_id=record.uuid,
            queued=record.subtype == "mid_turn_user_message",
        )

    def link(self, value: Any) -> ev.AnyBlock:
        link = self.read(value, disk.ResourceLink)
        return ev.RawBlock(raw=value) if link is None else ev.ResourceBlock(uri=link.uri, name=link.name)

    def block(self, value: Any) -> ev.AnyBlock:
        part = self.read(value, disk.Part)
        if part is not None and part.text is not None:
            return ev.TextBlock(text=part.text)
        return media_block(part) or ev.RawBlock(raw=value)

    # ---- answers

    def assistant(self, record: disk.Assistant) -> Iterator[ev.Event]:
        if self.turn is None:
            yield ev.turn_start(trigger="system")
        self.answers += 1
        parts = [] if record.message is None else record.message.parts or []
        tokens = record.usage_metadata
        self.cut_off = self.was_cut_off(record)
        spoke = called = False
        for index, value in enumerate(parts):
            part = self.read(value, disk.Part)
            spoke = spoke or (part is not None and part.text is not None and part.thought is not True)
            called = called or (part is not None and part.function_call is not None)
            for event in self.part(part, value, record, index):
                event.response_id, event.block_index = record.uuid, index
                yield event
        if tokens is not None:
            self.counting = True
            yield place_in_message(
                ev.usage(scope="message", usage=usage_of(tokens), model=record.model, context_window=record.context_window_size),
                record.uuid,
            )
        elif not parts:
            yield place_in_message(ev.status_change(status="message", detail={"model": record.model}), record.uuid)
        self.answered = spoke and not called
        self.failure = None  # an earlier attempt
        self.responded = False

    def was_cut_off(self, record: disk.Assistant) -> bool | None:
        """Whether the answer never came to its end: it has no tokens where others have, or nothing says that its request was over.

        Where no request has tokens, nothing can be said about the first answer (0.15 also writes down a stopped request as over).
        """
        if record.usage_metadata is not None:
            return False
        if self.counting or not (self.responded or record.is_sidechain):
            return True
        return None if self.answers == 1 else False

    def part(self, part: disk.Part | None, value: Any, record: disk.Assistant, index: int) -> Iterable[ev.Event]:
        if part is not None and part.text is not None:
            if part.thought is True:
                return (ev.thinking_done(text=part.text, signature=part.thought_signature),)
            return (ev.assistant_done(text=part.text, interrupted=self.cut_off is True),)
        call = None if part is None else part.function_call
        if call is None:
            return (ev.content_block(block=self.block(value)),)
        call_id = call.id if call.id is not None else f"{record.uuid}:{index}"
        if call_id in self.called:
            return (ev.status_change(status="function_call", detail={"toolCallId": call_id}),)
        self.called.add(call_id)
        server = mcp_server(call.name)
        called = ev.tool_call(tool_call_id=call_id, tool_name=call.name, args=call.args, kind=tool_kind(call.name), server=server)
        return (called, *plan_of(call.name, call.args))

    # ---- results

    def tool_results(self, record: disk.ToolResult) -> Iterator[ev.Event]:
        parts = [] if record.message is None else record.message.parts or []
        for value in parts:
            part = self.read(value, disk.Part)
            if part is not None and part.function_response is not None:
                yield from self.tool_result(part.function_response, record.tool_call_result or disk.CallResult())
            else:  # an image beside the response, in older files
                yield ev.content_block(block=self.block(value))

    def tool_result(self, response: disk.FunctionResponse, over: disk.CallResult) -> Iterator[ev.Event]:
        call_id = response.id if response.id is not None else over.call_id
        if call_id is None or call_id in self.returned:
            yield ev.status_change(status="function_response", detail={"toolCallId": call_id})
            return
        self.returned.add(call_id)
        told = as_object(response.response)
        failed, output = told.get("error"), told.get("output")
        if isinstance(failed, str) and failed.endswith(REFUSED):
            self.open.denial = "denied"
        stopped = over.status == "cancelled" and as_object(over.result_display).get("outcome") in ("cancelled", "aborted")
        stopped = stopped or (isinstance(output, str) and output.startswith(CANCELLED_COMMAND))
        if (cancelled_by_user(failed) or stopped or failed == _DISCARDED) and not self.open.interrupted:
            yield ev.interrupt(reason="user_cancel")
        if over.result_display is not None or over.error_type is not None or over.execution_status is not None:
            yield from how_it_ran(call_id, response.name, over)
        took = self.took.pop(call_id, None)
        displayed = result_blocks(over.result_display, failed if output is None else output)
        yield ev.tool_result(
            tool_call_id=call_id,
            tool_name=response.name,
            result=response.response,
            content=[*(self.block(part) for part in response.parts or []), *displayed] or None,
            is_error=failed is not None if over.status is None else over.status != "success",
            error=failed if isinstance(failed, str) else None,
            exit_code=code_of(over.result_display, response.name, failed if isinstance(failed, str) else output),
            duration_ms=whole_ms(over.duration_ms) if took is None else took,
        )

    # ---- everything else

    def system(self, record: disk.System) -> Iterable[ev.Event]:
        payload = as_object(record.system_payload)
        return self.telemetry(payload) if record.subtype == "ui_telemetry" else self.system_record(record, payload)

    def system_record(self, record: disk.System, payload: dict[str, Any]) -> Iterator[ev.Event]:
        match record.subtype:
            case "slash_command":
                yield from self.slash_command(payload, self.read(payload, disk.Command))
            case "custom_title":
                title = payload.get("customTitle")
                yield ev.session_lifecycle(subtype="renamed", title=title if isinstance(title, str) else None, detail=payload)
            case "session_model":
                model = payload.get("model", payload.get("modelId"))
                yield ev.configuration_change(subtype="set_model", model=model if isinstance(model, str) else None, options=payload)
            case "parent_session":
                parent = payload.get("parentSessionId")
                yield ev.session_lifecycle(subtype="forked", parent_session_id=parent if isinstance(parent, str) else None, detail=payload)
            case str(word) if word in _LIFE:
                yield ev.session_lifecycle(subtype=_LIFE[word], detail=payload)
            case str(word) if word in _NOTICES:
                yield ev.status_change(status=word, detail=payload)
            case _:
                yield ev.raw(kind=f"system/{record.subtype}", reason="unknown_type")

    def telemetry(self, payload: dict[str, Any]) -> Iterator[ev.Event]:
        event = self.read(payload.get("uiEvent"), disk.UiEvent)
        if event is None:
            yield ev.status_change(status="ui_telemetry", detail=payload)
            return
        if event.name.endswith("api_error"):
            failure = error_of(str(event.error_message), event.error_type, event.status_code)
            failure.details = payload.get("uiEvent")
            if failure.code == "aborted":
                if not self.open.interrupted:
                    yield ev.interrupt(reason="user_cancel")
            elif event.subagent_name is None:
                self.failure = failure
            yield ev.Error(payload=failure)
            return
        yield ev.status_change(status=event.name, detail=payload.get("uiEvent"))
        if event.subagent_name is not None:
            yield from self.overheard(event)
        if event.name.endswith("api_response") and event.subagent_name is None:
            self.responded = True
        if event.name.endswith("tool_call"):
            yield from self.timed(event)

    def timed(self, event: disk.UiEvent) -> Iterator[ev.Event]:
        """How long a call took, and whether it was allowed. 0.15 names no call here, and writes down a refused one nowhere else."""
        call_id = self.call_like(event) if event.call_id is None else event.call_id
        if call_id is None:
            return
        self.took[call_id] = whole_ms(event.duration_ms)
        refused = isinstance(event.error, str) and event.error.endswith(REFUSED)
        if event.decision == "reject" or (refused and event.call_id is None):
            yield ev.permission_response(request_id=call_id, decision="deny")
        if refused and event.call_id is None:
            self.returned.add(call_id)
            took = self.took.pop(call_id)
            yield ev.tool_result(
                tool_call_id=call_id, tool_name=event.function_name, result=event.error, is_error=True, error=event.error, duration_ms=took
            )

    def call_like(self, event: disk.UiEvent) -> str | None:
        """The open call of this name with these arguments."""
        wanted = (event.function_name, event.function_args)
        calls = ((call_id, call.payload) for call_id, call in self.open.tools.items())
        return next((found for found, call in calls if found not in self.took and (call.tool_name, call.args) == wanted), None)

    def overheard(self, event: disk.UiEvent) -> Iterator[ev.Event]:
        """What a sub-agent said, where it has no file of its own (0.15: no ``subagent_id``), if it is clear which call started it."""
        calls = [call_id for call_id, call in self.open.tools.items() if call.payload.kind == "agent"]
        if event.subagent_id is not None or event.response_text is None or len(calls) != 1:
            return
        said = place_in_message(ev.assistant_done(text=event.response_text), event.response_id, 0)
        said.parent_tool_call_id = calls[0]
        yield said

    def slash_command(self, payload: dict[str, Any], told: disk.Command | None) -> Iterator[ev.Event]:
        """A command that the program carried out itself: a turn of its own, without the model."""
        if told is None or told.phase == "invocation":
            yield ev.status_change(status="slash_command", detail=payload)
            return
        if self.turn is None or self.prompt != told.raw_command:
            yield from self.settle()
            yield from self.start_turn("user")
        if self.prompt != told.raw_command:
            name, _, args = told.raw_command.removeprefix("/").partition(" ")
            block = ev.SlashCommandBlock(name=name, args=args if args != "" else None)
            yield ev.user_message(text=told.raw_command, content=[ev.TextBlock(text=told.raw_command), block])
        for item in told.output_history_items or []:
            text = as_object(item).get("text")
            if isinstance(text, str):
                yield ev.assistant_done(text=text, phase="local_command")
            if set(as_object(item)) != {"type", "text"}:
                yield ev.status_change(status="slash_command_output", detail=item)
        yield from self.end_turn("completed")
        self._new_turn()

    # ---- the end of a turn

    def settle(self) -> Iterator[ev.Event]:
        """Close the turn before, now that something later proves it is over."""
        if self.turn is not None:
            if self.failure is not None:
                yield from self.end_turn("error", error=self.failure)
            elif self.open.interrupted or (self.answered and self.cut_off is True):
                if not self.open.interrupted:
                    yield ev.interrupt(reason="user_cancel")
                yield from self.end_turn("interrupted", error=ev.ErrorInfo(code="aborted", message="cancelled by the user"))
            else:
                over = self.open.denial is not None or (self.answered and self.cut_off is False)
                status, _ = self.open.end_status("completed" if over else "lost")
                yield from self.end_turn(status)
        self._new_turn()


_DISCARDED = "The tool had already completed; its output was discarded."


def result_blocks(display: Any, told: Any) -> list[ev.AnyBlock]:
    """What people are shown of a result, where that is more than what the model was told: text, a diff, a sub-agent's report."""
    fields = as_object(display)
    if fields.get("type") == "task_execution":
        return [ev.RawBlock(raw=display, raw_type="task_execution")]
    text = display if isinstance(display, str) else fields.get("text")
    if isinstance(text, str):
        return [] if text in ("", told) else [ev.TextBlock(text=text)]
    try:
        view = read(display, disk.Screen if "ansiOutput" in fields else disk.FileChange)
    except (ValueError, RecursionError):
        return []
    if isinstance(view, disk.Screen):
        return [ev.TextBlock(text=screen_text(view.ansi_output))]
    block = diff_block(view, view.original_content)
    return [] if block is None else [block]


def how_it_ran(call_id: str, name: str | None, over: disk.CallResult) -> Iterator[ev.Event]:
    """What else is known about a call: whether it ran at all, the kind of its failure, and a command's signal, directory and process."""
    display = as_object(over.result_display)
    detail = (
        {key: value for key, value in display.items() if key not in ("text", "output")} if display.get("type") == "shell_result" else {}
    )
    if over.error_type is not None:
        detail["errorType"] = over.error_type
    status = over.status if over.execution_status is None else over.execution_status
    if status is not None and (detail or status != over.status):
        yield ev.tool_progress(tool_call_id=call_id, tool_name=name, status=status, detail=detail or None)


def code_of(display: Any, name: str | None, text: Any) -> int | None:
    """The exit code of a shell command: from its result, or from its text in older versions."""
    code = as_object(display).get("exitCode")
    return exit_code(name, text) if as_int(code) is None else code


def usage_of(tokens: disk.Tokens) -> ev.Usage:
    """Tokens of one request; output counts thoughts in."""
    return make_usage(
        tokens.prompt_token_count,
        tokens.candidates_token_count,
        cache_read=tokens.cached_content_token_count,
        reasoning=tokens.thoughts_token_count,
    )
