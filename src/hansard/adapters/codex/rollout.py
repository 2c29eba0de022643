"""Codex's own files: ``sessions/YYYY/MM/DD/rollout-*.jsonl``, which say everything twice. Wire notes: README.md.

`event_msg` lines tell what happened, `response_item` lines what was sent to and from the model. The user's words are taken from the
event (the item has them with attachments unpacked), the model's from whichever comes first, calls from the item, results from the item
with the event's data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from hansard.adapter import Context
from hansard.adapters.codex import blocks, outcomes, responses
from hansard.adapters.codex import rollout_wire as wire
from hansard.adapters.codex.conversation import Conversation, plan_steps
from hansard.adapters.codex.ends import aborted, end_of, error_of
from hansard.adapters.codex.outcomes import Outcome
from hansard.adapters.codex.words import (
    arguments,
    command_arguments,
    context_of,
    duration_of,
    limits_of,
    path_of,
    plus,
    share,
    spoken,
    told,
    usage_of,
)
from hansard.content import AnyBlock, ImageBlock, TextBlock
from hansard.events import (
    Error,
    ErrorInfo,
    Event,
    PlanEntry,
    ToolKind,
    TurnStatus,
    Usage,
    answer,
    configuration_change,
    interrupt,
    permission_response,
    plan_update,
    question,
    raw,
    result,
    session_init,
    session_lifecycle,
    status_change,
    tool_progress,
    usage,
)
from hansard.loose import as_list, as_object
from hansard.words import at, milliseconds

# What files of core 0.137 put in the user's mouth; files of 0.166 say so in `content_item_kinds`.
_HARNESS = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|turn_aborted|subagent_notification|user_shell_command|user_action|skill"
    r"|codex_internal_context|model_switch|collaboration_mode|permissions instructions|hook_prompt)\b|# AGENTS\.md instructions)"
)
# What the program takes out of a message before it shows it.
_HIDDEN = re.compile(r"<(proposed_plan|oai-mem-citation)>.*?</\1>\n?", re.DOTALL)


class CodexRollout(Conversation):
    """A rollout file, of either dialect."""

    formats = ("codex-rollout",)
    wire = wire.Line

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.meta: wire.Meta | None = None
        self.waiting: responses.Message | None = None
        self.settings: wire.Settings | None = None
        self.model: str | None = None
        self.plan: list[tuple[str, str]] = []
        self.total: wire.Tokens | None = None
        self.recorded = False
        self.turn_usage: Usage | None = None
        self.compacted = self.overflowed = False
        self.asked = self.spoke = False
        self.spawns: dict[str, str] = {}
        self.asking: set[str] = set()
        self.allowed = self.denied = 0

    @classmethod
    def recognises(cls, message: dict[str, Any]) -> bool:
        """A line with a time, a type and a payload, usually the session's own data."""
        kind = message.get("type")
        return "payload" in message and "timestamp" in message and kind in ("session_meta", "response_item", "event_msg", "turn_context")

    def time_of(self, message: Any) -> int | None:
        """Every line has its time."""
        return milliseconds(message.timestamp)

    def at_end(self) -> Iterator[Event]:
        if self.waiting is not None:
            content = blocks.to_blocks(self.waiting.content)
            yield self.user(content, self.speaker, self.waiting.id)
            self.waiting = None
        yield from self.settle()

    # ---- lines

    def translate(self, message: wire.Line) -> Iterable[Event]:
        match message:
            case wire.EventLine():
                return self.event_line(message.payload)
            case _:
                return self.line(message) if self.waiting is None else self.line_after(message)

    def line_after(self, message: wire.Line) -> Iterator[Event]:
        yield from self.nobody_claimed()
        yield from self.line(message)

    def line(self, message: wire.Line) -> Iterable[Event]:
        match message:
            case wire.ResponseItemLine(payload=item):
                return self.response_item(item)
            case wire.TokenUsageRecord(payload=record):
                self.recorded = True
                return (self.used(usage_of(record.usage), record.response_id, None),)
            case _:
                return self.other_line(message)

    def other_line(self, message: wire.Line) -> Iterator[Event]:
        match message:
            case wire.SessionMeta(payload=meta):
                yield from self.session(meta)
            case wire.TurnContext(payload=settings):
                yield self.turn_context(settings)
            case wire.Compacted(payload=compaction):
                self.compacted = True
                kept = len(compaction.replacement_history or [])
                yield session_lifecycle(subtype="compacted", text=compaction.message, detail={"replacementItems": kept})
            case wire.WorldState():
                yield status_change(status="world_state", detail={"full": as_object(message.payload).get("full")})
            case _:  # wire.InterAgentMetadata, wire.RetainedContext
                yield status_change(status=str(message.__struct_config__.tag), detail=message.payload)

    def event_line(self, payload: Any) -> Iterable[Event]:
        kind = str(as_object(payload).get("type"))
        struct = wire.EVENTS.get(kind)
        event = None if struct is None else self.read(payload, struct)
        if event is None:
            return self.unread_event(kind, payload)
        if self.waiting is None:
            return self.event(event)
        return self.event_after(event)

    def unread_event(self, kind: str, payload: Any) -> Iterator[Event]:
        yield from self.nobody_claimed()
        if kind in wire.TOLD:
            detail = {key: value for key, value in told(payload).items() if key != "type"}
            yield status_change(status=kind, detail=detail or None)
        else:
            words = ["event_msg", kind, as_object(as_object(payload).get("item")).get("type")]
            known = kind in wire.EVENTS and kind != "item_completed"
            yield raw(kind="/".join(str(word) for word in words if word), reason="wrong_shape" if known else "unknown_type")

    def event_after(self, event: Any) -> Iterator[Event]:
        """An event after a user's item: the one that says the same claims it."""
        claims = isinstance(event, wire.UserMessage) or (
            isinstance(event, wire.ItemCompleted) and isinstance(event.item, wire.UserMessageItem)
        )
        if not claims:
            yield from self.nobody_claimed()
        yield from self.event(event)

    def event(self, event: Any) -> Iterable[Event]:
        match event:
            case wire.ItemCompleted():
                return self.item(event.item)
            case wire.TokenCount():
                return self.token_count(event)
            case _:
                return self.other_event(event)

    def other_event(self, event: Any) -> Iterator[Event]:
        match event:
            case wire.TaskStarted() | wire.TurnStarted():
                yield from self.task_started(event)
            case wire.TaskComplete() | wire.TurnComplete():
                yield from self.task_complete(event)
            case wire.TurnAborted():
                yield from self.turn_aborted(event)
            case wire.UserMessage():
                pictures = [blocks.image(url) for url in event.images or [] if isinstance(url, str)]
                local = [ImageBlock(path=path) for path in event.local_images or [] if isinstance(path, str)]
                yield from self.user_said([TextBlock(event.message), *pictures, *local], None)
            case wire.AgentMessage():
                yield from self.agent_said(None, event.message, event.phase, event.memory_citation)
            case wire.AgentReasoning():
                yield from self.thought(None, [event.text], [])
            case wire.AgentReasoningRaw():
                yield from self.thought(None, [], [event.text])
            case wire.SettingsApplied():
                yield status_change(status="thread_settings_applied", detail=event.thread_settings)
            case wire.ContextCompacted():
                yield self.compaction(None)
            case wire.ThreadNameUpdated():
                yield session_lifecycle(subtype="renamed", title=event.thread_name)
            case wire.ThreadRolledBack():
                yield session_lifecycle(subtype="reverted", detail=spoken(event, "type"))
            case wire.ErrorEvent():
                yield Error(payload=error_of(event.message, event.codex_error_info))
            case wire.StreamError():
                yield Error(payload=error_of(event.message, event.codex_error_info, event.additional_details, retryable=True))
            case wire.PlanUpdate():
                yield self.planned([(step.step, step.status) for step in event.plan])
            case _:
                yield from self.tool_end(event)

    # ---- the session and its turns

    def session(self, meta: wire.Meta) -> Iterator[Event]:
        if self.meta is not None and self.meta.id != meta.id:  # a legacy fork carries its parent's file
            yield session_lifecycle(subtype="forked", provider_session_id=self.meta.id, parent_session_id=meta.id)
            return
        self.meta = meta
        if self.parent is None and self.speaker == "agent":  # nobody knows the call that started it: its thread stands for it, as live
            self.parent = self.open.mine = meta.id
        yield session_init(
            agent_id="codex", agent_version=meta.cli_version, provider_session_id=meta.id, cwd=meta.cwd, tools=meta.dynamic_tools
        )
        parent = meta.forked_from_id or meta.parent_thread_id
        if parent is not None:
            subtype = "created" if meta.forked_from_id is None else "forked"
            yield session_lifecycle(subtype=subtype, provider_session_id=meta.id, parent_session_id=parent, detail={"source": meta.source})

    @property
    def speaker(self) -> str:
        """Who speaks in the user's role: in a sub-agent's file, another agent."""
        source = as_object(self.meta.source) if self.meta is not None else {}
        return "agent" if "subagent" in source else "human"

    def turn_context(self, settings: wire.Settings) -> Event:
        same = self.settings is not None and spoken(self.settings, "turn_id") == spoken(settings, "turn_id")
        self.settings, self.model = settings, settings.model
        if same:
            return status_change(status="turn_context", detail={"turnId": settings.turn_id})
        mode = as_object(settings.collaboration_mode).get("mode")
        return configuration_change(
            subtype="turn_context",
            model=settings.model,
            permission_mode=settings.approval_policy if isinstance(settings.approval_policy, str) else None,
            mode_id=mode if isinstance(mode, str) else None,
            options=spoken(settings, "turn_id"),
        )

    def task_started(self, event: wire.TaskStarted | wire.TurnStarted) -> Iterator[Event]:
        by = event.turn_attribution
        by_itself = by is not None and (by.parent_turn_id is not None or by.turn_trigger not in (None, "user", "exec"))
        yield from self.start_turn("system" if by_itself else "user")
        self.asked = self.spoke = self.compacted = False
        self.allowed = self.denied = 0
        self.turn_usage = None
        self.unmatched = {}

    def task_complete(self, event: wire.TaskComplete | wire.TurnComplete) -> Iterator[Event]:
        yield from self.settle()
        failure = None
        if event.error is not None:
            failure = error_of(event.error.message, event.error.codex_error_info)
            yield Error(payload=failure)
        elif self.went_wrong(event.last_agent_message):
            failure = ErrorInfo(
                code="context_overflow" if self.overflowed else "unknown",
                message="the turn ended without a final answer; the file does not say why",
                error_source="agent",
            )
        status: TurnStatus = "completed" if failure is None else end_of(failure)
        if failure is None and self.denied and not self.allowed:
            status = "denied"
        yield from self.over(status, failure, "task_complete", event.duration_ms)

    def went_wrong(self, last_message: str | None) -> bool:
        """Core 0.137 files no errors. But a turn that was asked something, and ended with no last message although the model spoke
        (the answer was cut) or without any response of the model, did not end well."""
        legacy = self.meta is None or self.meta.history_mode is None
        return legacy and self.asked and last_message is None and (self.spoke or self.turn_usage is None)

    def turn_aborted(self, event: wire.TurnAborted) -> Iterator[Event]:
        yield from self.settle()
        word = event.reason or "aborted"
        if word == "budget_limited":
            yield from self.over(
                "error", ErrorInfo(code="max_budget", message=word, provider_code=word, error_source="agent"), word, event.duration_ms
            )
            return
        yield interrupt(reason="user_cancel" if word == "interrupted" else "error", by=None if word == "interrupted" else word)
        yield from self.over("interrupted", aborted(word), word, event.duration_ms)

    def over(self, status: TurnStatus, failure: ErrorInfo | None, word: str, duration_ms: int | None) -> Iterator[Event]:
        yield from self.need_turn()
        yield result(status=status, subtype=word, usage=self.turn_usage, duration_ms=duration_ms, error=failure)
        if self.turn_usage is not None:
            yield usage(scope="turn", usage=self.turn_usage, model=self.model)
        yield from self.end_turn(status, stop_reason=word, error=failure)
        self.turn_usage = None

    # ---- tokens

    def used(self, tokens: Usage, response_id: str | None, window: int | None) -> Event:
        self.turn_usage = plus(self.turn_usage, tokens)
        return at(usage(scope="message", usage=tokens, model=self.model, context_window=window), response_id)

    def token_count(self, event: wire.TokenCount) -> Iterator[Event]:
        """The thread's total. Files of 0.166 have a record of each response beside it; in older ones a total that grew is one."""
        info = event.info
        if info is not None:
            own = None if self.recorded else share(info.total_token_usage, self.total, info.last_token_usage)
            self.total = total = info.total_token_usage
            counted = usage_of(total)
            self.overflowed = not counted.total_tokens and bool(total.total_tokens)
            if own is not None:
                yield self.used(own, None, info.model_context_window)
            yield usage(scope="session", usage=context_of(total, counted), context_window=info.model_context_window)
        limits = event.rate_limits
        if limits is None:
            if info is None:
                yield status_change(status="token_count")
            return
        yield from limits_of(limits)

    # ---- what the user said

    def user_item(self, item: responses.Message) -> Iterator[Event]:
        content = blocks.to_blocks(item.content)
        kinds = item.passthrough.content_item_kinds if item.passthrough is not None else None
        by_user = any(str(kind).startswith("user.") for kind in kinds) if kinds else not _HARNESS.match(blocks.text_of(content))
        if by_user:
            self.waiting = item
            yield self.echo(item)
        else:
            yield self.user(content, "harness", item.id)

    def nobody_claimed(self) -> Iterator[Event]:
        """A user's item without the event that says the same: not the user's words."""
        if self.waiting is not None:
            yield self.user(blocks.to_blocks(self.waiting.content), "harness", self.waiting.id)
            self.waiting = None

    def user_said(self, content: list[AnyBlock], message_id: str | None) -> Iterator[Event]:
        if self.waiting is not None:
            item = "".join(_words(blocks.to_blocks(self.waiting.content)))
            if all(word.replace("\n", "") in item.replace("\n", "") for word in _words(content)):
                self.waiting = None
        yield from self.nobody_claimed()
        self.asked = True
        yield self.user(content, self.speaker, message_id)

    # ---- what the model said

    def is_echo(self, message_id: str | None, text: str) -> bool:
        return super().is_echo(message_id, text) or (message_id is None and _HIDDEN.sub("", text) in self.unmatched)

    def agent_said(self, message_id: str | None, text: str, phase: str | None, citation: Any) -> Iterator[Event]:
        self.spoke = True
        if self.is_echo(message_id, text):
            yield at(status_change(status="agent_message_echo"), message_id)
        else:
            yield from self.assistant(message_id, text, phase, as_list(as_object(citation).get("entries")))

    def item(self, item: Any) -> Iterator[Event]:
        return self.tool_item(item) if isinstance(item, wire.CommandExecutionItem) else self.other_completed(item)

    def other_completed(self, item: Any) -> Iterator[Event]:
        match item:
            case wire.UserMessageItem():
                yield from self.user_said(blocks.to_blocks(item.content), item.client_id or item.id)
            case wire.AgentMessageItem():
                text = "".join(_words(blocks.to_blocks(item.content)))
                yield from self.agent_said(item.id, text, item.phase, item.memory_citation)
            case wire.PlanItem():
                yield from self.assistant(item.id, item.text, "plan")
            case wire.ReasoningItem() if item.id in self.said:
                yield at(status_change(status="reasoning_echo"), item.id)
            case wire.ReasoningItem():
                yield from self.thought(item.id, item.summary_text or [], item.raw_content or [])
                if not item.summary_text and not item.raw_content:
                    yield at(status_change(status="item_completed", detail={"type": "Reasoning"}), item.id)
            case wire.HookPromptItem():
                yield self.user(blocks.fragments(item.fragments), "harness", item.id)
            case wire.ContextCompactionItem():
                yield self.compaction(item.id)
            case wire.EnteredReviewModeItem() | wire.ExitedReviewModeItem():
                yield at(status_change(status=str(item.__struct_config__.tag), detail=spoken(item, "type", "id")), item.id)
            case wire.WebSearchItem():
                yield from self.searched(item.id, item.query, item.action, item.results)
            case wire.ImageGenerationItem():
                yield from self.pictured(item.id, item.revised_prompt, outcomes.image(item.result, item.status, item.saved_path))
            case wire.SubAgentActivityItem() if item.kind != "started":
                call = self.spawns.get(item.agent_thread_id, item.id)
                yield tool_progress(tool_call_id=call, status=item.kind, detail=spoken(item, "type"))
            case wire.FunctionCallOutputItem():
                yield from self.returned(item.id, item.output, item.name)
            case _:
                yield from self.tool_item(item)

    # ---- tools

    def tool_item(self, item: Any) -> Iterator[Event]:
        """A call that is over, as the program saw it."""
        match item:
            case wire.CommandExecutionItem():
                outcome = outcomes.command(item.aggregated_output, item.exit_code, item.status, duration_of(item.duration))
                args = command_arguments(item.command, path_of(item.cwd), source=item.source)
                yield from self.ran(item.id, "CommandExecution", args, "execute", outcome)
            case wire.FileChangeItem():
                outcome = outcomes.patch(item.changes, item.status, _printed(item.stdout, item.stderr))
                yield from self.ran(item.id, "FileChange", {"changes": item.changes}, "edit", outcome)
            case wire.McpToolCallItem():
                outcome = outcomes.mcp(item.result, item.error, item.status, duration_of(item.duration))
                yield from self.ran(item.id, item.tool, item.arguments, "mcp", outcome, item.server)
            case wire.DynamicToolCallItem():
                outcome = outcomes.dynamic(item.content_items, item.success, item.status, duration_of(item.duration))
                yield from self.ran(item.id, item.tool, item.arguments, "other", outcome, item.namespace)
            case wire.CollabAgentToolCallItem():
                states = {"receiver_thread_ids": item.receiver_thread_ids, "agents_states": item.agents_states}
                args = spoken(item, "id", "type", "tool", "status", "agents_states")
                yield from self.ran(item.id, item.tool, args, "agent", outcomes.other(states, item.status))
            case wire.SubAgentActivityItem():
                self.spawns[item.agent_thread_id] = item.id
                yield from self.ran(
                    item.id, "SubAgentActivity", spoken(item, "id", "type"), "agent", outcomes.other(spoken(item, "id", "type"))
                )
            case wire.ImageViewItem():
                path = path_of(item.path)
                outcome = outcomes.other({"path": path}, content=[ImageBlock(path=path)])
                yield from self.ran(item.id, "ImageView", {"path": path}, "read", outcome)
            case _:  # wire.SleepItem, wire.ExtensionItem
                name = item.kind if isinstance(item, wire.ExtensionItem) else "sleep"
                yield from self.ran(item.id, name, spoken(item, "id", "type"), "other", outcomes.other(None, duration_ms=item.duration_ms))

    def tool_end(self, event: Any) -> Iterator[Event]:
        """The same in the words of older files."""
        match event:
            case wire.ExecCommandEnd():
                outcome = outcomes.command(event.aggregated_output, event.exit_code, event.status, duration_of(event.duration))
                args = command_arguments(event.command, path_of(event.cwd), source=event.source)
                yield from self.ran(event.call_id, "exec_command", args, "execute", outcome)
            case wire.PatchApplyEnd():
                status = event.status or ("failed" if event.success is False else "completed")
                outcome = outcomes.patch(event.changes, status, _printed(event.stdout, event.stderr))
                yield from self.ran(event.call_id, "apply_patch", {"changes": event.changes}, "edit", outcome)
            case wire.McpToolCallEnd(invocation=asked):
                told_result = as_object(event.result)
                given = told_result.get("Ok", event.result if "Err" not in told_result else None)
                failed = "Err" in told_result or as_object(given).get("isError") is True
                status = "failed" if failed else "completed"
                outcome = outcomes.mcp(given, told_result.get("Err"), status, duration_of(event.duration))
                yield from self.ran(event.call_id, asked.tool, asked.arguments, "mcp", outcome, asked.server)
            case wire.WebSearchEnd():
                yield from self.searched(event.call_id, event.query, event.action, None)
            case _:  # wire.ImageGenerationEnd
                outcome = outcomes.image(event.result, event.status, event.saved_path)
                yield from self.pictured(event.call_id, event.revised_prompt, outcome)

    def ran(self, call_id: str, name: str, args: Any, kind: ToolKind, outcome: Outcome, server: str | None = None) -> Iterator[Event]:
        """A call that the model made waits for what the model was shown; one that nobody announced is told whole."""
        if call_id in self.results:
            yield outcome.afterwards(call_id)
        elif call_id in self.calls:
            self.known[call_id] = outcome
            yield tool_progress(tool_call_id=call_id, status="failed" if outcome.is_error else "completed", content=outcome.content)
        else:
            yield from self.call(call_id, name, args, kind, server)
            yield from self.outcome(call_id, outcome)

    def called(self, call_id: str, name: str, args: Any, namespace: str | None) -> Iterator[Event]:
        yield from super().called(call_id, name, args, namespace)
        if name == "apply_patch" or as_object(args).get("sandbox_permissions") == "require_escalated":
            self.asking.add(call_id)
        if name == "update_plan" and (steps := plan_steps(args)):
            yield self.planned(steps)
        if name == "request_user_input":
            yield question(request_id=call_id, questions=as_object(args).get("questions"), tool_call_id=call_id)

    def returned(self, call_id: str, said: Any, name: str | None) -> Iterator[Event]:
        if call_id in self.open.questions:
            values = arguments(said)
            yield answer(request_id=call_id, values=as_object(values).get("answers", values))
        if not isinstance(said, str) or said.lstrip().startswith("{"):
            thread_id = as_object(arguments(said)).get("agent_id")
            if isinstance(thread_id, str):
                self.spawns[thread_id] = call_id
        if outcomes.rejected(said):  # a file says only that a call was rejected; one that may have asked and ran was allowed
            self.denied += 1
            yield permission_response(request_id=call_id, decision="deny", by="user")
        elif call_id in self.asking and not outcomes.never_ran(said):
            self.allowed += 1
        yield from super().returned(call_id, said, name)

    def planned(self, steps: list[tuple[str, str]]) -> Event:
        if steps == self.plan:
            return status_change(status="plan_echo")
        self.plan = steps
        return plan_update(entries=[PlanEntry(content=step, status=status) for step, status in steps])

    def compaction(self, item_id: str | None) -> Event:
        """The line `compacted` has said it, with the summary."""
        if self.compacted:
            self.compacted = False
            return at(status_change(status="context_compacted"), item_id)
        return at(session_lifecycle(subtype="compacted"), item_id)


def _words(content: list[AnyBlock]) -> list[str]:
    return [block.text for block in content if isinstance(block, TextBlock)]


def _printed(stdout: str | None, stderr: str | None) -> str | None:
    texts = [text for text in (stdout, stderr) if text is not None]
    return "".join(texts) if texts else None
