"""Claude Code's own files: ``~/.claude/projects/<cwd>/<session>.jsonl`` and its subagents' ``agent-<id>.jsonl``.

A turn begins with a prompt. It ends when a later line proves that it is over; what proves it: README-session.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, cast, get_args

from hansard import events as ev
from hansard.adapters.authors import Author, author_of
from hansard.adapters.base import Adapter, ChunkDraft, Context
from hansard.adapters.blocks import text_of
from hansard.adapters.claude import blocks, wire
from hansard.adapters.claude import session_wire as disk
from hansard.adapters.claude.inferred_turns import InferredTurn, Lanes, PromptQueue
from hansard.adapters.claude.messages import (
    SYNTHETIC,
    Message,
    Messages,
    context_usage,
    split_results,
    task_ended,
    tool_result,
    user_message,
)
from hansard.adapters.claude.outcomes import error_of
from hansard.adapters.fields import camel_fields, parse_iso_ms, place_in_message, tag_of, text_between, whole_ms
from hansard.adapters.framing import Lines
from hansard.adapters.usage import make_usage
from hansard.adapters.workspace import workspace_of
from hansard.events.lenient import as_list, as_object

_INTERRUPTED = "[Request interrupted by user"
_CAVEAT = "<local-command-caveat>"
_PRINTED = ("<local-command-stdout>", "<local-command-stderr>", "<bash-stdout>", "<bash-stderr>")
_COMMAND = ("<command-name>", "<command-message>", "<bash-input>")
_OUTPUT_TAG = re.compile(r"<(local-command-(?:stdout|stderr))>")
_API_ERROR = re.compile(r'"type":\s*"(\w+_error)"')
_AGENTS = ("agent", "coordinator", "peer", "teammate")
"""Origins of what another agent said: one that this one started, or the one that started it."""
_QUEUE = {"enqueue": "queued", "dequeue": "sent", "remove": "cancelled", "popAll": "edited"}
_UNIQUE_LINES = {
    "queue-operation",
    "last-prompt",
    "custom-title",
    "ai-title",
    "agent-name",
    "permission-mode",
    "cost-state",
    "tools-used",
    "atis-latch",
    "api-request",
    "api-request-shape",
    "api-request-blob",
    "file-history-snapshot",
    "file-history-delta",
}


class ClaudeSession(Adapter):
    """A session as Claude Code wrote it down. Its messages are read as those of the live wire are."""

    formats = ("claude-session",)
    source = "claude"
    framer = Lines
    wire = disk.Line
    dated = None

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.messages = Messages()
        self.inferred = InferredTurn()
        self.queue = PromptQueue()
        self.lanes = Lanes()
        self.turns = 0
        self.session: str | None = None
        self.version: str | None = None
        self.cwd: str | None = None
        self.mode: str | None = None
        self.title: str | None = None
        self.forked = False
        self.exited = False
        self.resumed = False
        self.half_told: dict[str | None, str | None] = {}
        self.budget: float | None = None
        self.lines: tuple[int | None, int | None] | None = None
        self.structured_output: Any = None
        self.prompt: str | None = None
        self.said_now = -1
        """When this line was written, or the last one before it that is of the conversation."""
        self.said_before = -1
        """The same of the line before."""

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """Bookkeeping that only these files have, or a line with the head that all of Claude Code's lines have."""
        kind = message.get("type")
        if kind in _UNIQUE_LINES:
            return True
        if kind == "summary":
            return "leafUuid" in message
        if kind == "mode":
            return "sessionId" in message
        head = "sessionId" in message and "parentUuid" in message and "isSidechain" in message
        if kind in ("user", "assistant"):
            return head and "content" in as_object(message.get("message"))
        return head and (kind == "attachment" or (kind == "system" and "subtype" in message))

    def time_of(self, message: Any) -> int | None:
        """Conversation lines, requests and the queue have a time; the rest of the bookkeeping has none."""
        return parse_iso_ms(message.timestamp)

    def translate(self, message: Any) -> Iterable[ev.Event]:
        self.parent = self.context.parent_tool_call_id
        self.said_before = self.said_now
        kind: type[Any] = type(message)  # pyright: ignore[reportUnknownVariableType]
        if kind not in SPOKEN:
            return LINES.get(kind, ClaudeSession.bookkeeping)(self, message)
        if not message.is_sidechain:
            self.said_now = self.now
        means = LINES.get(kind, ClaudeSession.system_line)
        if (
            message.version != self.version
            or message.session_id != self.session
            or message.cwd != self.cwd
            or (message.forked_from is not None and not self.forked)
        ):
            return self.with_news(message, means)
        self.parent = self.call_of(message)
        return means(self, message)

    def with_news(self, message: Any, means: Callable[[ClaudeSession, Any], Iterable[ev.Event]]) -> Iterator[ev.Event]:
        """A line whose head may say something new."""
        yield from self.head(message)
        self.parent = self.call_of(message)
        yield from means(self, message)

    def bookkeeping(self, message: Any) -> Iterator[ev.Event]:
        """What Claude Code writes down for itself."""
        match message:
            case disk.Summary():
                yield ev.session_lifecycle(subtype="summary", text=message.summary, message_id=message.leaf_uuid)
            case disk.AiTitle():
                yield self.titled(message.ai_title, "ai-title")
            case disk.CustomTitle():
                yield self.titled(message.custom_title, "custom-title")
            case disk.AgentName():
                yield ev.session_lifecycle(subtype="agent_named", title=message.agent_name)
            case disk.Mode():
                yield ev.configuration_change(subtype="mode", mode_id=message.mode)
            case disk.PermissionMode():
                self.mode = message.permission_mode
                yield ev.configuration_change(subtype="permission_mode_changed", permission_mode=message.permission_mode)
            case disk.FileHistorySnapshot():
                detail = camel_fields(message, "message_id", "timestamp")
                yield ev.session_lifecycle(subtype="snapshot", message_id=message.message_id, detail=detail)
            case disk.FileHistoryDelta():
                yield ev.session_lifecycle(
                    subtype="snapshot", message_id=message.snapshot_message_id, path=message.tracking_path, detail=message.backup
                )
            case _:  # disk.Progress
                yield self.progress(message)

    def note(self, message: Any) -> ChunkDraft:
        """A notice, under the file's own word for it."""
        word = tag_of(type(message))  # pyright: ignore[reportUnknownArgumentType]
        return ChunkDraft(ev.StatusChange, ev.StatusChangePayload(word, camel_fields(message, *_HEAD) or None))

    def api_request(self, line: disk.ApiRequest) -> ChunkDraft:
        thinking = None if line.params is None else line.params.thinking
        if thinking is not None:
            self.messages.budget = thinking.budget_tokens
        return ChunkDraft(ev.StatusChange, ev.StatusChangePayload("api-request", camel_fields(line, *_HEAD, "params") or None))

    # ---- who is speaking, and from where

    def head(self, line: Any) -> Iterator[ev.Event]:
        """What the head of a line says anew: the session, its origin, the program's version, the folder."""
        if line.version is not None and line.version != self.version:
            self.version, self.cwd, self.session = line.version, line.cwd, line.session_id
            yield self.introduction(line)
        elif line.session_id is not None and line.session_id != self.session:
            self.session = line.session_id
            yield ev.session_lifecycle(subtype="resumed", provider_session_id=line.session_id)
        elif line.cwd is not None and line.cwd != self.cwd:
            self.cwd = line.cwd
            yield ev.configuration_change(subtype="cwd", options={"cwd": line.cwd})
        origin = as_object(line.forked_from)
        if origin and not self.forked:
            self.forked = True
            parent, message_id = origin.get("sessionId"), origin.get("messageUuid")
            yield ev.session_lifecycle(
                subtype="forked", provider_session_id=line.session_id, parent_session_id=parent, message_id=message_id
            )
            yield from self.start_replay(line.session_id)

    def introduction(self, line: Any) -> ev.Event:
        """Nobody introduces himself in these files; every line says a bit of it."""
        if isinstance(line, disk.User):
            self.mode = line.permission_mode
        event = ev.session_init(
            agent_id="claude",
            agent_version=line.version,
            provider_session_id=line.session_id,
            cwd=line.cwd,
            permission_mode=self.mode,
            model=line.message.model if isinstance(line, disk.Assistant) else None,
            workspace=workspace_of(branch=line.git_branch, entry_point=line.entrypoint),
        )
        event.synthetic = True
        return event

    def call_of(self, line: Any) -> str | None:
        """The call that a line belongs to."""
        if self.context.parent_tool_call_id is not None or not line.is_sidechain:
            return self.context.parent_tool_call_id
        return self.lanes.call_of(line)

    # ---- assistant lines

    def line_of_assistant(self, line: disk.Assistant) -> Iterator[ev.Event]:
        said = line.message
        ours = said.model == SYNTHETIC
        if self.turn is None and not line.is_sidechain and not ours:
            yield from self.need_turn("user" if self.turns == 0 else "system")
        if self.half_told:
            yield from self.count_half_told(said.id)
        failed = line.is_api_error_message or line.error is not None
        phase = "error" if failed else "synthetic" if ours else None
        message = self.messages.get(said.id)
        last: Any = None
        for offset, item in enumerate(blocks.items_of(said.content)):
            last = blocks.Text(item) if isinstance(item, str) else self.read(item, blocks.Block)
            taken = message.take(last)
            index = taken if line.api_block_index is None else line.api_block_index + offset
            for event in self.messages.block(last, item, self.parent, phase, line.is_aborted_mid_stream, line.thinking_duration_ms):
                yield place_in_message(event, said.id, index)
            if type(last) is blocks.ToolUse:
                yield from self.asks(last)
        if failed:
            text = text_of(blocks.to_blocks(said.content))
            words = line.stream_cut_error or line.error_details or line.api_error_type  # the provider's own; the text is Claude Code's
            self.inferred.failure = error_of(line.error, line.api_error_status, text, words)
            yield ev.Error(payload=self.inferred.failure)
        if not ours:
            message.model, message.tokens = said.model, said.usage
            yield from self.count(said, message)
        if not line.is_sidechain:
            self.inferred.note_answer(line, last)
            self.exited = False

    def asks(self, call: blocks.ToolUse) -> Iterable[ev.Event]:
        """A call that is a question, or that starts a subagent."""
        args = as_object(call.input)
        prompt = args.get("prompt")
        if isinstance(prompt, str) and blocks.tool_kind(call.name) == "agent":
            self.lanes.prompts[call.id] = prompt
        if call.name != "AskUserQuestion":
            return ()
        return (ev.question(request_id=call.id, questions=args.get("questions"), tool_call_id=call.id),)

    def count(self, said: wire.Message, message: Message) -> Iterable[ev.Event]:
        """The usage of a message, once. Until a line has its stop reason, `output_tokens` is a placeholder."""
        if said.stop_reason is None:
            self.half_told[self.parent] = said.id
            return ()
        self.half_told.pop(self.parent, None)
        if message.counted:
            return ()
        why = ev.StatusChangePayload("message_delta", {"stopReason": said.stop_reason})
        return (ev.StatusChange(payload=why, response_id=said.id), *self.messages.usage(said.id, message, final=True))

    def count_half_told(self, but: str | None = None) -> Iterable[ev.Event]:
        """A message that was cut off never gets a stop reason: count what is known when somebody else speaks."""
        if self.parent not in self.half_told or (but is not None and self.half_told[self.parent] == but):
            return ()
        message_id = self.half_told.pop(self.parent)
        return self.messages.usage(message_id, self.messages.get(message_id), final=False)

    # ---- user lines: prompts, results, what the harness says

    def line_of_user(self, line: disk.User) -> Iterator[ev.Event]:
        if self.half_told:
            yield from self.count_half_told()
        if line.thinking_metadata is not None:
            self.messages.budget = line.thinking_metadata.max_thinking_tokens
        results, spoken = split_results(blocks.items_of(line.message.content), self.read)
        for block in results:
            yield from self.result_line(block, line)
        if spoken:
            yield from self.said_to_agent(spoken, line, beside_results=bool(results))

    def result_line(self, block: Any, line: disk.User) -> Iterator[ev.Event]:
        structured, call_id = line.tool_use_result, block.tool_use_id
        decision = as_object(line.permission_decision)
        if decision and (
            decision.get("decision") == "reject" or (str(decision.get("source")).startswith("user_") and "reasonType" not in decision)
        ):
            allowed, source = decision.get("decision") == "accept", decision.get("source")
            yield ev.permission_response(
                request_id=call_id, decision="allow" if allowed else "deny", by=source if isinstance(source, str) else None
            )
        if call_id in self.open.questions:
            answers = as_object(structured).get("answers")
            yield ev.answer(request_id=call_id, values=answers, action="decline" if block.is_error else "accept")
        yield tool_result(block, structured, line.tool_denial_kind)
        yield from self.messages.plan.answered(structured)
        if not line.is_sidechain:
            self.inferred.final, self.exited = line.tool_ends_turn, False

    def said_to_agent(self, items: list[Any], line: disk.User, beside_results: bool) -> Iterator[ev.Event]:
        said = blocks.to_blocks(items)
        text = text_of(said)
        author: Author = "harness" if beside_results else self.author_of(line, text)
        if text.startswith(_INTERRUPTED):
            yield from self.stopped(said, text, line)
            return
        if line.is_sidechain or beside_results:
            yield self.spoken_line(said, text, author, line)
            return
        if text.startswith(_PRINTED):
            yield self.spoken_line(said, text, "harness", line)
            if self.inferred.local:
                yield from self.end_turn_if_proven(over=True)
            return
        if self.begins_turn(line, text, author):
            yield from self.begin(line, text, author)
        yield self.spoken_line(said, self.typed(text) if author == "human" else text, author, line)
        yield from task_ended(text)
        if not text.startswith(_CAVEAT) and self.turn is not None:  # the model has yet to answer this
            self.inferred.final = self.exited = False
            self.inferred.failure = None
            self.inferred.local = author == "human" and text.startswith(_COMMAND) and line.turn_position is None

    def author_of(self, line: disk.User, text: str) -> Author:
        origin = as_object(line.origin).get("kind")
        if line.is_sidechain:
            return "harness" if line.is_meta else "agent"
        if line.is_meta or line.is_compact_summary or line.is_visible_in_transcript_only or line.turn_companion:
            return "harness"
        if origin in _AGENTS:
            return "agent"
        if origin not in (None, "human") or line.prompt_source == "system" or self.made_by_a_request(text):
            return "harness"
        return author_of(text)

    def made_by_a_request(self, text: str) -> bool:
        """A setting that a control request changed is written down like a command, with the next prompt: it is older than that prompt."""
        return text.startswith(_COMMAND) and self.queue.is_older(self.now) and not self.forked

    def begins_turn(self, line: disk.User, text: str, author: Author) -> bool:
        if line.is_meta or line.is_compact_summary or line.turn_companion or text.startswith(_PRINTED):
            return False
        if author == "harness" and self.made_by_a_request(text):
            return False
        # prompts taken from the queue together are one turn; a fork gives all prompts it copies one id, but those have answers
        return self.turn is None or self.inferred.answered or line.prompt_id is None or line.prompt_id != self.prompt

    def begin(self, line: disk.User, text: str, author: Author) -> Iterator[ev.Event]:
        yield from self.end_turn_if_proven(over=True)
        yield from self.where_from(line)
        if line.permission_mode is not None and line.permission_mode != self.mode:
            self.mode = line.permission_mode
            yield ev.configuration_change(subtype="permission_mode_changed", permission_mode=line.permission_mode)
        self.inferred = InferredTurn()
        self.prompt = line.prompt_id
        yield from self.start_turn("system" if author == "harness" else "user")

    def where_from(self, line: disk.User) -> Iterator[ev.Event]:
        """A prompt after the program's exit: resumed. A prompt that is older than the one just taken from the queue: copied history."""
        if self.resumed:
            self.resumed = False
            yield ev.session_lifecycle(subtype="resumed", provider_session_id=line.session_id)
        if self.queue.is_older(self.now) and not self.forked:
            self.forked = True
            yield ev.session_lifecycle(subtype="forked", provider_session_id=line.session_id, reason="the history is a copy")
            yield from self.start_replay(line.session_id)
        elif self.replaying and not line.forked_from and not self.queue.is_older(self.now):
            yield from self.end_replay()

    def typed(self, text: str) -> str:
        """What was typed. The file shows a command in the harness's tags, by its first name; the queue had it as it was."""
        command = blocks.slash_command(text) if text.startswith(_COMMAND) else None
        if command is None or not command.name:
            self.queue.find(text, self.now)
            return text
        told = f"/{command.name} {command.args}" if command.args else f"/{command.name}"
        queued = self.queue.find(told, self.now)
        return queued if queued is not None and queued.startswith("/") else told

    def spoken_line(self, said: list[Any], text: str, author: Author, line: disk.User) -> ev.Event:
        event = cast("ev.UserMessage", user_message(said, text_of(said), author, line.uuid, queued=False))
        event.payload.text = text
        return event

    def stopped(self, said: list[Any], text: str, line: disk.User) -> Iterator[ev.Event]:
        """The user's stop, as the harness tells the model."""
        yield ev.interrupt(reason="user_cancel")
        yield self.spoken_line(said, text, "harness", line)
        if self.turn is not None and not line.is_sidechain:
            yield from self.end_inferred_turn("interrupted", ev.ErrorInfo(code="aborted", message=text))

    # ---- attachments

    def attachment(self, line: disk.Attachment) -> Iterable[ev.Event]:
        attached = self.read(line.attachment, disk.AnyAttachment)
        if isinstance(attached, disk.BudgetUsd):
            self.budget = attached.total
        return self.note(attached) if type(attached) in disk.NOTES else self.other_attachment(attached, line)

    def other_attachment(self, attached: Any, line: disk.Attachment) -> Iterator[ev.Event]:
        match attached:
            case None:
                kind = as_object(line.attachment).get("type")
                yield ev.raw(kind=f"attachment/{kind}", reason="unknown_type")
            case disk.QueuedCommand():
                yield from self.queued_command(attached, line)
            case disk.File():
                yield self.file(attached, line)
            case disk.Model():
                identity = as_object(attached.identity)
                model = identity.get("modelId")
                yield ev.configuration_change(subtype="model", model=model if isinstance(model, str) else None, options=attached.identity)
            case disk.StructuredOutput():
                self.structured_output = attached.data
                yield ev.status_change(status="structured_output")
            case _:  # disk.MaxTurnsReached
                yield from self.note(attached)
                if not line.is_sidechain:
                    failure = ev.ErrorInfo(
                        code="max_turns",
                        message=f"reached the maximum of {attached.max_turns} turns",
                        provider_code="max_turns_reached",
                        error_source="agent",
                    )
                    yield ev.Error(payload=failure)
                    yield from self.end_inferred_turn("error", failure)

    def queued_command(self, attached: disk.QueuedCommand, line: disk.Attachment) -> Iterator[ev.Event]:
        said = blocks.to_blocks(attached.prompt)
        text = text_of(said)
        human = attached.command_mode in (None, "prompt") and not line.is_sidechain
        if human:
            yield from self.need_turn("user")
            self.inferred.final = False
        other: Author | None = "agent" if as_object(attached.origin).get("kind") in _AGENTS else None if human else "harness"
        author = author_of(text, wire=other)
        yield user_message(said, text, author, attached.source_uuid or line.uuid, queued=True)
        yield from task_ended(text)

    def file(self, attached: disk.File, line: disk.Attachment) -> ev.Event:
        """A file that was put beside the prompt: what the model saw as text, the file itself as a block."""
        shown = [self.read(item, disk.Rendered) for item in as_list(line.rendered)]
        seen = [text_of(blocks.to_blocks(part.content)) for part in shown if part is not None]
        text = "\n".join(seen) if seen else attached.display_path or attached.filename or ""
        return ev.user_message(text=text, content=[self.file_block(attached)], author="harness", message_id=line.uuid)

    def file_block(self, attached: disk.File) -> ev.AnyBlock:
        content = as_object(attached.content)
        inner = as_object(content.get("file"))
        text, data, media_type = inner.get("content"), inner.get("base64"), inner.get("type")
        if content.get("type") == "text" and isinstance(text, str):
            return ev.DocumentBlock(title=attached.filename, text=text)
        if content.get("type") == "image" and isinstance(data, str):
            return ev.ImageBlock(media_type=media_type if isinstance(media_type, str) else None, data=data, path=attached.filename)
        return ev.FileBlock(name=attached.display_path, path=attached.filename)

    # ---- system lines

    def system_line(self, message: Any) -> Iterator[ev.Event]:
        match message:
            case disk.CompactBoundary():
                yield ev.session_lifecycle(subtype="compacted", detail=message.compact_metadata)
            case disk.MicrocompactBoundary():
                yield ev.session_lifecycle(subtype="microcompacted", detail=message.microcompact_metadata)
            case disk.ApiError():
                yield from self.api_error(message)
            case disk.LocalCommand():
                tag = _OUTPUT_TAG.search(message.content)
                printed = text_between(message.content, tag.group(), f"</{tag.group(1)}>") if tag else None
                text = message.content if printed is None else printed
                yield ev.AssistantDone(payload=ev.AssistantDonePayload(text=text, phase="local_command"))
                yield from context_usage(message.context_usage)
                if self.inferred.local:
                    yield from self.end_turn_if_proven(over=True)
            case disk.ModelFallback():
                options = camel_fields(message, *_HEAD, "fallback_model")
                yield ev.configuration_change(subtype="model_fallback", model=message.fallback_model, options=options)
            case disk.ModelRefusalNoFallback():
                block = blocks.refusal(message.content, message.api_refusal_category, message.api_refusal_explanation)
                yield ev.content_block(block=block)
            case disk.StopHookSummary():
                yield from self.note(message)
                if not message.hook_errors and not message.hook_additional_context and not message.is_sidechain:
                    yield from self.end_turn_if_proven(over=False)
            case disk.TurnDuration():
                yield from self.note(message)
                yield from self.end_turn_if_proven(over=True)
            case _:
                yield from self.note(message)

    def api_error(self, line: disk.ApiError) -> Iterator[ev.Event]:
        failed = self.read(line.error, disk.Failure) or disk.Failure()
        message = failed.formatted or failed.message or "the call failed"
        word = _API_ERROR.search(failed.message.replace('"type":"error"', "")) if failed.message else None
        failure = error_of(word.group(1) if word else None, failed.status, message, line.error)
        if failure.code == "unknown":  # no answer at all: the connection failed
            failure.code = "api_error"
        failure.retryable = True
        failure.retry_after_ms = whole_ms(line.retry_in_ms)
        yield ev.status_change(status="retrying", detail=camel_fields(line, *_HEAD, "error"))
        yield ev.Error(payload=failure)

    # ---- bookkeeping

    def queue_operation(self, line: disk.QueueOperation) -> Iterator[ev.Event]:
        text = line.content if isinstance(line.content, str) else None
        action = _QUEUE.get(line.operation)
        if line.operation == "enqueue":
            self.queue.waiting.append(text)
        elif line.operation == "dequeue":
            yield from self.end_turn_if_proven(over=False)
            self.queue.take(self.now)
        elif line.operation == "remove":
            action = "steered" if line.reason == "absorbed_mid_turn" else action
            self.queue.remove(text)
        elif line.operation == "popAll":
            self.queue.waiting.clear()
        if action is None:
            yield ev.status_change(status=f"queue_{line.operation}", detail=camel_fields(line, "timestamp"))
        else:
            yield ev.queue_update(action=cast("Any", action), item_id=line.command_uuid, text=text)

    def titled(self, title: str, kind: str) -> ev.Event:
        if title == self.title:
            return ev.status_change(status=kind, detail={"title": title})
        self.title = title
        return ev.session_lifecycle(subtype="renamed", title=title, reason=kind)

    def progress(self, line: disk.Progress) -> ev.Event:
        data = as_object(line.data)
        call = line.parent_tool_use_id or line.tool_use_id
        if call is None:
            return ev.status_change(status="progress", detail=line.data)
        return ev.tool_progress(tool_call_id=call, status=str(data.get("type", "running")), detail=line.data)

    def cost_state(self, line: disk.CostState) -> Iterator[ev.Event]:
        """The program's last line: what everything cost. If the turn has a last word by now, that was its end."""
        models = as_object(line.model_usage)
        yield ev.usage(
            scope="session",
            usage=totals(models),
            cost_usd=line.total_cost_usd,
            model=next(iter(models)) if len(models) == 1 else None,
            model_usage=models or None,
        )
        yield ev.status_change(status=tag_of(disk.CostState), detail=camel_fields(line, *_HEAD, "total_cost_usd") or None)
        self.lines = line.total_lines_added, line.total_lines_removed
        yield from self.end_turn_if_proven(over=False)
        spent = self.budget is not None and (line.total_cost_usd or 0) >= self.budget
        if self.turn is not None and spent:
            failure = ev.ErrorInfo(
                code="max_budget",
                message=f"spent {line.total_cost_usd} of {self.budget} US$",
                provider_code="budget_exhausted",
                error_source="agent",
            )
            yield ev.Error(payload=failure)
            yield from self.end_inferred_turn("error", failure)
        self.exited = self.resumed = True

    # ---- the end of a turn

    def end_turn_if_proven(self, over: bool) -> Iterator[ev.Event]:
        """End the turn if its last line was a last word, or (``over``) if nothing is left open. Otherwise it is lost, or goes on."""
        if self.turn is None:
            return
        if self.inferred.aborted and not self.open.interrupted:
            yield ev.interrupt(reason="user_cancel")
        ended = self.inferred.outcome(over and not self.busy())
        if ended is not None:
            yield from self.end_inferred_turn(*ended)

    def busy(self) -> bool:
        """Whether a call of the main conversation has no result yet."""
        return any(call.parent_tool_call_id == self.context.parent_tool_call_id for call in self.open.tools.values())

    def end_inferred_turn(self, status: Any, failure: ev.ErrorInfo | None) -> Iterator[ev.Event]:
        """The turn is over; it was over when the last line of the conversation was written, not when the proof was."""
        status, failure = self.open.end_status(status, failure)
        ending = self.end_turn(status, stop_reason=self.inferred.stop_reason, error=failure)
        for event in chain(self.summed_up(status, failure), ending):
            event.timestamp = self.said_before if self.said_before >= 0 else self.now
            yield event
        self.turns += 1
        self.messages.forget_counted()
        self.inferred = InferredTurn()

    def summed_up(self, status: ev.TurnStatus, failure: ev.ErrorInfo | None) -> Iterator[ev.Event]:
        """What the program writes down besides messages: structured output and, when it exits, the lines that it added and removed."""
        output, lines = self.structured_output, self.lines
        self.structured_output = self.lines = None
        if output is not None or lines is not None:
            added, removed = lines or (None, None)
            reason = self.inferred.stop_reason
            yield ev.result(
                status=status, stop_reason=reason, structured_output=output, lines_added=added, lines_removed=removed, error=failure
            )

    def end_of_stream(self) -> Iterator[ev.Event]:
        """The file ends here. A program that left in order, or a command that needs no model, leaves no lost turn."""
        self.said_before = self.said_now
        for lane in list(self.half_told):
            self.parent = lane
            yield from self.count_half_told()
        self.parent = self.context.parent_tool_call_id
        yield from self.end_turn_if_proven(over=self.exited or self.inferred.local)


_HEAD = ("timestamp", "uuid", "parent_uuid", "cwd", "version", "is_sidechain", "agent_id", "forked_from", "git_branch", "entrypoint")


def totals(models: dict[str, Any]) -> ev.Usage:
    """The sum over the models of a cost-state line."""

    def total(name: str) -> int | None:
        counts = [count for model in models.values() if isinstance(count := as_object(model).get(name), int)]
        return sum(counts) if counts else None

    return make_usage(
        total("inputTokens"),
        total("outputTokens"),
        cache_creation=total("cacheCreationInputTokens"),
        cache_read=total("cacheReadInputTokens"),
        reasoning=total("thinkingTokens"),
    )


LINES: dict[type[Any], Callable[[ClaudeSession, Any], Iterable[ev.Event]]] = {
    disk.User: ClaudeSession.line_of_user,
    disk.Assistant: ClaudeSession.line_of_assistant,
    disk.Attachment: ClaudeSession.attachment,
    disk.QueueOperation: ClaudeSession.queue_operation,
    disk.CostState: ClaudeSession.cost_state,
    disk.ApiRequest: ClaudeSession.api_request,
    **dict.fromkeys(disk.BOOKS, ClaudeSession.note),
}
"""What the most frequent lines mean."""

SPOKEN: frozenset[type[Any]] = frozenset({disk.User, disk.Assistant, disk.Attachment, *get_args(disk.AnySystem)})
"""The lines of the conversation, each of which says whose it is and where."""
