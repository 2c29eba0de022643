"""Codex's own files: ``sessions/YYYY/MM/DD/rollout-*.jsonl``, which have everything twice. Wire notes: README.md.

`event_msg` lines record what happened, `response_item` lines what was sent to and from the model. A user's message is taken from the
event (the item has it with attachments unpacked), the model's from the one that comes first, a call from the item, a result from the item
with the event's data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from hansard import events as ev
from hansard.adapters.authors import Author, is_injected
from hansard.adapters.base import Context
from hansard.adapters.blocks import image_at, text_of
from hansard.adapters.codex import blocks, response_items, tools
from hansard.adapters.codex import rollout_wire as wire
from hansard.adapters.codex import shared_wire as shared
from hansard.adapters.codex.base import Codex
from hansard.adapters.codex.fields import context_of, duration_of, limits_of, share, usage_of, without_empty
from hansard.adapters.codex.outcomes import aborted, end_of, error_of
from hansard.adapters.fields import declared_fields, parse_arguments, parse_iso_ms, place_in_message, tag_of
from hansard.adapters.usage import add_usage, subtract_usage
from hansard.adapters.workspace import workspace_of
from hansard.events.lenient import as_list, as_object
from hansard.events.lineage import HISTORY_BASE

# What the program takes out of a message before it shows it.
_HIDDEN = ("proposed_plan", "oai-mem-citation")


class CodexRollout(Codex):
    """A rollout file, of either dialect."""

    formats = ("codex-rollout",)
    wire = wire.Line

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.meta: wire.Meta | None = None
        self.waiting: response_items.Message | None = None
        self.settings: wire.Settings | None = None
        self.model: str | None = None
        self.plan: list[tuple[str, str]] = []
        self.total: shared.Tokens | None = None
        self.recorded = False
        """Whether the next count is about a response that has a record. An older Codex may continue the file of a newer one."""
        self.turn_usage: ev.Usage | None = None
        self.used_so_far: ev.Usage | None = None
        self.inherited: ev.Usage | None = None
        """What the parent had used: the totals of a fork that continues its parent's file begin with it."""
        self.named_turn: str | None = None
        self.counted = 0
        self.compacted = self.overflowed = False
        self.asked = self.spoke = False
        self.spawns: dict[str, str] = {}

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """A line with a time, a type and a payload, usually the session's own data."""
        kind = message.get("type")
        return "payload" in message and "timestamp" in message and kind in ("session_meta", "response_item", "event_msg", "turn_context")

    def time_of(self, message: Any) -> int | None:
        """Every line has its time."""
        return parse_iso_ms(message.timestamp)

    def end_of_stream(self) -> Iterator[ev.Event]:
        if self.waiting is not None:
            content = blocks.to_blocks(self.waiting.content)
            yield self.user(content, self.speaker, self.waiting.id)
            self.waiting = None
        yield from self.seen.settle()

    # ---- lines

    def translate(self, message: Any) -> Iterable[ev.Event]:
        payload = self.event_of(message.payload) if type(message) is wire.EventLine else message.payload
        events = self.line(message, payload)
        if self.waiting is None or _is_user_message(payload):
            return events
        return chain(self.unclaimed(), events)

    def line(self, message: Any, payload: Any) -> Iterable[ev.Event]:
        match message:
            case wire.EventLine():
                return self.event(payload) if payload is not None else self.unread_event(message.payload)
            case wire.ResponseItemLine():
                return self.response_item(payload)
            case wire.TokenUsageRecord():
                self.recorded = True
                return (self.used(usage_of(payload.usage), payload.response_id, None),)
            case wire.SessionMeta():
                return self.session(payload)
            case wire.TurnContext():
                return (self.turn_context(payload),)
            case wire.Compacted():
                self.compacted = True
                kept = len(payload.replacement_history or [])
                return (ev.session_lifecycle(subtype="compacted", text=payload.message, detail={"replacementItems": kept}),)
            case wire.WorldState():
                return (ev.status_change(status="world_state", detail={"full": as_object(payload).get("full")}),)
            case _:  # wire.InterAgentMetadata, wire.RetainedContext
                return (ev.status_change(status=tag_of(message.__class__), detail=payload),)

    def event_of(self, payload: Any) -> Any:
        """Return the event of an ``event_msg`` line, or None if it is of no declared type or shape."""
        struct = wire.EVENTS.get(str(as_object(payload).get("type")))
        return None if struct is None else self.read(payload, struct)

    def unread_event(self, payload: Any) -> tuple[ev.Event]:
        fields = without_empty(payload)
        kind = str(fields.pop("type", None))
        if kind in wire.PASSED_ON:
            return (ev.status_change(status=kind, detail=fields or None),)
        words = ["event_msg", kind, as_object(fields.get("item")).get("type")]
        known = kind in wire.EVENTS and kind != "item_completed"
        return (ev.raw(kind="/".join(str(word) for word in words if word), reason="wrong_shape" if known else "unknown_type"),)

    def event(self, event: Any) -> Iterable[ev.Event]:
        match event:
            case wire.ItemCompleted():
                return self.item(event.item)
            case wire.TokenCount():
                return self.token_count(event)
            case wire.TaskStarted():
                return self.task_started(event)
            case wire.TaskComplete():
                return self.task_complete(event)
            case wire.TurnAborted():
                return self.turn_aborted(event)
            case wire.UserMessage():
                pictures = [image_at(url) for url in event.images or [] if isinstance(url, str)]
                local = [ev.ImageBlock(path=path) for path in event.local_images or [] if isinstance(path, str)]
                return self.user_said([ev.TextBlock(event.message), *pictures, *local], None)
            case wire.AgentMessage():
                return self.agent_said(None, event.message, event.phase, event.memory_citation)
            case wire.AgentReasoning():
                return self.thought(None, [event.text], [])
            case wire.AgentReasoningRaw():
                return self.thought(None, [], [event.text])
            case wire.SettingsApplied():
                return (ev.status_change(status="thread_settings_applied", detail=event.thread_settings),)
            case wire.ContextCompacted():
                return (self.compaction(None),)
            case wire.ThreadNameUpdated():
                return (ev.session_lifecycle(subtype="renamed", title=event.thread_name),)
            case wire.ThreadRolledBack():
                return (ev.session_lifecycle(subtype="reverted", detail=declared_fields(event)),)
            case wire.ErrorEvent():
                return (ev.Error(payload=error_of(event.message, event.codex_error_info)),)
            case wire.StreamError():
                return (ev.Error(payload=error_of(event.message, event.codex_error_info, event.additional_details, retryable=True)),)
            case wire.PlanUpdate():
                return (self.planned([(step.step, step.status) for step in event.plan]),)
            case wire.McpToolCallEnd():
                return self.mcp_call_ended(event)
            case _:  # a call that is over, in the words of older files
                return self.item(event)

    # ---- the session and its turns

    def session(self, meta: wire.Meta) -> Iterator[ev.Event]:
        if self.meta is not None and self.meta.id != meta.id:  # a legacy fork carries its parent's file
            yield ev.session_lifecycle(subtype="forked", provider_session_id=self.meta.id, parent_session_id=meta.id)
            return
        self.meta = meta
        if self.parent is None and self.speaker == "agent":  # nobody knows the call that started it: its thread stands for it, as live
            self.parent = self.open.parent_call = meta.id
        git = meta.git or wire.Git()
        yield ev.session_init(
            agent_id="codex",
            agent_version=meta.cli_version,
            provider_session_id=meta.id,
            cwd=meta.cwd,
            tools=meta.dynamic_tools,
            workspace=workspace_of(remote=git.repository_url, branch=git.branch, commit=git.commit_hash, entry_point=meta.source),
        )
        parent = meta.forked_from_id or meta.parent_thread_id
        if parent is not None:
            subtype = "created" if meta.forked_from_id is None else "forked"
            base = meta.history_base.end_ordinal_exclusive if meta.history_base is not None else None
            detail = {"source": meta.source} | ({} if base is None else {HISTORY_BASE: base})
            yield ev.session_lifecycle(subtype=subtype, provider_session_id=meta.id, parent_session_id=parent, detail=detail)

    @property
    def speaker(self) -> Author:
        """The author of messages in the user's role: in a subagent's file, another agent."""
        source = as_object(self.meta.source) if self.meta is not None else {}
        return "agent" if "subagent" in source else "human"

    def turn_context(self, settings: wire.Settings) -> ev.Event:
        same = self.settings is not None and declared_fields(self.settings, "turn_id") == declared_fields(settings, "turn_id")
        self.settings, self.model = settings, settings.model
        if same:
            return ev.status_change(status="turn_context", detail={"turnId": settings.turn_id})
        mode = as_object(settings.collaboration_mode).get("mode")
        return ev.configuration_change(
            subtype="turn_context",
            model=settings.model,
            permission_mode=settings.approval_policy if isinstance(settings.approval_policy, str) else None,
            mode_id=mode if isinstance(mode, str) else None,
            options=declared_fields(settings, "turn_id"),
        )

    def task_started(self, event: wire.TaskStarted) -> Iterator[ev.Event]:
        by = event.turn_attribution
        by_itself = by is not None and (by.parent_turn_id is not None or by.turn_trigger not in (None, "user", "exec"))
        yield from self.start_turn("system" if by_itself else "user")
        self.asked = self.spoke = self.compacted = False
        self.turn_usage, self.named_turn, self.counted = None, event.turn_id, 0
        self.seen.unmatched = {}

    def task_complete(self, event: wire.TaskComplete) -> Iterator[ev.Event]:
        yield from self.seen.settle()
        failure = None
        if event.error is not None:
            failure = error_of(event.error.message, event.error.codex_error_info)
            yield ev.Error(payload=failure)
        elif self.went_wrong(event.last_agent_message):
            failure = ev.ErrorInfo(
                code="context_overflow" if self.overflowed else "unknown",
                message="the turn ended without a final answer; the file does not say why",
                error_source="agent",
            )
        yield from self.over("completed" if failure is None else end_of(failure), failure, "task_complete", event.duration_ms)

    def went_wrong(self, last_message: str | None) -> bool:
        """Core 0.137 files no errors. But a turn that was asked something, and ended with no last message although the model spoke
        (the answer was cut) or without any response of the model, did not end well."""
        legacy = self.meta is None or self.meta.history_mode is None
        return legacy and self.asked and last_message is None and (self.spoke or self.turn_usage is None)

    def turn_aborted(self, event: wire.TurnAborted) -> Iterator[ev.Event]:
        yield from self.seen.settle()
        word = event.reason or "aborted"
        if word == "budget_limited":
            yield from self.over(
                "error", ev.ErrorInfo(code="max_budget", message=word, provider_code=word, error_source="agent"), word, event.duration_ms
            )
            return
        yield ev.interrupt(reason="user_cancel" if word == "interrupted" else "error", by=None if word == "interrupted" else word)
        yield from self.over("interrupted", aborted(word), word, event.duration_ms)

    def over(self, status: ev.TurnStatus, failure: ev.ErrorInfo | None, word: str, duration_ms: int | None) -> Iterator[ev.Event]:
        yield from self.need_turn()
        status, failure = self.open.end_status(status, failure)
        yield ev.result(status=status, subtype=word, usage=self.turn_usage, duration_ms=duration_ms, error=failure)
        if self.turn_usage is not None:
            yield ev.usage(scope="turn", usage=self.turn_usage, model=self.model)
        yield from self.end_turn(status, stop_reason=word, error=failure)
        self.turn_usage = None

    # ---- tokens

    def used(self, tokens: ev.Usage, response_id: str | None, window: int | None) -> ev.Event:
        self.turn_usage = add_usage(self.turn_usage, tokens)
        self.used_so_far = add_usage(self.used_so_far, tokens)
        self.counted += 1
        origin = None if response_id is not None or self.named_turn is None else f"{self.named_turn}/{self.counted}"  # a fork copies it
        used = ev.usage(scope="message", usage=tokens, model=self.model, context_window=window, origin_id=origin)
        return place_in_message(used, response_id)

    def token_count(self, event: wire.TokenCount) -> Iterator[ev.Event]:
        """Yield the thread's total. Files of 0.166 also have a record of each response; in older ones a total that grew is one."""
        info = event.info
        if info is not None:
            own = None if self.recorded else share(info.total_token_usage, self.total, info.last_token_usage)
            self.total, self.recorded = info.total_token_usage, False
            total = info.total_token_usage
            counted = usage_of(total)
            self.overflowed = not counted.total_tokens and bool(total.total_tokens)
            if own is not None:
                yield self.used(own, None, info.model_context_window)
            if self.inherited is None and self.meta is not None and self.meta.history_base is not None:
                self.inherited = subtract_usage(counted, self.used_so_far)
            thread = context_of(total, counted) if self.overflowed else subtract_usage(counted, self.inherited)
            yield ev.usage(scope="context" if self.overflowed else "session", usage=thread, context_window=info.model_context_window)
        limits = event.rate_limits
        if limits is None:
            if info is None:
                yield ev.status_change(status="token_count")
            return
        yield from limits_of(limits)

    # ---- what the user said

    def user_item(self, item: response_items.Message) -> Iterator[ev.Event]:
        content = blocks.to_blocks(item.content)
        kinds = item.passthrough.content_item_kinds if item.passthrough is not None else None
        by_user = any(str(kind).startswith("user.") for kind in kinds) if kinds else not is_injected(text_of(content))
        if by_user:
            self.waiting = item
            yield self.echo(item)
        else:
            yield self.user(content, "harness", item.id)

    def unclaimed(self) -> Iterator[ev.Event]:
        """Yield a user's item whose event did not follow: the harness wrote it."""
        if self.waiting is not None:
            yield self.user(blocks.to_blocks(self.waiting.content), "harness", self.waiting.id)
            self.waiting = None

    def user_said(self, content: list[ev.AnyBlock], message_id: str | None) -> Iterator[ev.Event]:
        if self.waiting is not None:
            item = "".join(_words(blocks.to_blocks(self.waiting.content)))
            if all(word.replace("\n", "") in item.replace("\n", "") for word in _words(content)):
                self.waiting = None
        yield from self.unclaimed()
        self.asked = True
        yield self.user(content, self.speaker, message_id)

    # ---- what the model said

    def is_echo(self, message_id: str | None, text: str) -> bool:
        return super().is_echo(message_id, text) or (message_id is None and _without_hidden(text) in self.seen.unmatched)

    def agent_said(self, message_id: str | None, text: str, phase: str | None, citation: Any) -> Iterator[ev.Event]:
        self.spoke = True
        if self.is_echo(message_id, text):
            yield place_in_message(ev.status_change(status="agent_message_echo"), message_id)
        else:
            yield from self.assistant(message_id, text, phase, as_list(as_object(citation).get("entries")))

    def item(self, item: Any) -> Iterable[ev.Event]:
        """Return the events of an item that is over."""
        match item:
            case shared.CommandExecution():
                return self.ran(item)
            case shared.UserMessage():
                return self.user_said(blocks.to_blocks(item.content), item.client_id or item.id)
            case wire.AgentMessageItem():
                text = "".join(_words(blocks.to_blocks(item.content)))
                return self.agent_said(item.id, text, item.phase, item.memory_citation)
            case shared.Plan():
                return self.assistant(item.id, item.text, "plan")
            case wire.ReasoningItem() if item.id in self.seen.messages:
                return (place_in_message(ev.status_change(status="reasoning_echo"), item.id),)
            case wire.ReasoningItem() if item.summary_text or item.raw_content:
                return self.thought(item.id, item.summary_text or [], item.raw_content or [])
            case wire.ReasoningItem():
                self.seen.messages.add(item.id)
                return (place_in_message(ev.status_change(status="item_completed", detail={"type": "Reasoning"}), item.id),)
            case shared.HookPrompt():
                return (self.user(blocks.fragments(item.fragments), "harness", item.id),)
            case shared.ContextCompaction():
                return (self.compaction(item.id),)
            case wire.EnteredReviewModeItem() | wire.ExitedReviewModeItem():
                detail = declared_fields(item, "id")
                return (place_in_message(ev.status_change(status=tag_of(type(item)), detail=detail), item.id),)
            case shared.WebSearch():
                return self.searched(item.id, item.query, item.action, item.results)
            case shared.ImageGeneration():
                return self.pictured(item.id, item.revised_prompt, tools.image(item.result, item.status, item.saved_path))
            case shared.SubAgentActivity() if item.kind != "started":
                call = self.spawns.get(item.agent_thread_id, item.id)
                return (ev.tool_progress(tool_call_id=call, status=item.kind, detail=declared_fields(item)),)
            case wire.FunctionCallOutputItem():
                return self.returned(item.id, item.output, item.name)
            case _:
                return self.ran(item)

    # ---- tools

    def ran(self, item: Any) -> Iterable[ev.Event]:
        """Return a call that is over, as the program saw it."""
        if isinstance(item, shared.SubAgentActivity):
            self.spawns[item.agent_thread_id] = item.id
        if isinstance(item, wire.PatchApplyEnd) and not item.status:
            item.status = "failed" if item.success is False else "completed"
        name, args, kind, server = tools.call_of(item)
        return self.call_ended(item.id, (wire.TOOLS.get(name, name), args, kind, server), tools.outcome_of(item))

    def mcp_call_ended(self, event: wire.McpToolCallEnd) -> Iterable[ev.Event]:
        """Return the same of a call to an MCP server, as older files tell it."""
        asked, result = event.invocation, as_object(event.result)
        given = result.get("Ok", event.result if "Err" not in result else None)
        failed = "Err" in result or as_object(given).get("isError") is True
        outcome = tools.mcp(given, result.get("Err"), "failed" if failed else "completed", duration_of(event.duration))
        return self.call_ended(event.call_id, (asked.tool, asked.arguments, "mcp", asked.server), outcome)

    def call_ended(self, call_id: str, call: tools.Call, outcome: tools.ToolOutcome) -> Iterable[ev.Event]:
        """Return the end of a call. If the model made it, the result waits for what the model is shown."""
        if call_id in self.seen.results:
            return (outcome.afterwards(call_id),)
        if call_id in self.seen.calls:
            self.seen.known[call_id] = outcome
            status = "failed" if outcome.is_error else "completed"
            return (ev.tool_progress(tool_call_id=call_id, status=status, content=outcome.content),)
        return (*self.seen.call(call_id, *call), *self.seen.outcome(call_id, outcome))

    def called(self, call_id: str, name: str, args: Any, namespace: str | None) -> Iterator[ev.Event]:
        yield from super().called(call_id, name, args, namespace)
        if name == "update_plan" and (steps := _plan_steps(args)):
            yield self.planned(steps)
        if name == "request_user_input":
            yield ev.question(request_id=call_id, questions=as_object(args).get("questions"), tool_call_id=call_id)

    def returned(self, call_id: str, output: Any, name: str | None) -> Iterator[ev.Event]:
        if call_id in self.open.questions:
            values = parse_arguments(output)
            yield ev.answer(request_id=call_id, values=as_object(values).get("answers", values))
        if not isinstance(output, str) or output.lstrip().startswith("{"):
            thread_id = as_object(parse_arguments(output)).get("agent_id")
            if isinstance(thread_id, str):
                self.spawns[thread_id] = call_id
        if tools.rejected(output):
            yield ev.permission_response(request_id=call_id, decision="deny", by="user")
        yield from super().returned(call_id, output, name)

    def planned(self, steps: list[tuple[str, str]]) -> ev.Event:
        if steps == self.plan:
            return ev.status_change(status="plan_echo")
        self.plan = steps
        return ev.plan_update(entries=[ev.PlanEntry(content=step, status=status) for step, status in steps])

    def compaction(self, item_id: str | None) -> ev.Event:
        """Return a compaction, unless the line `compacted` came before it, with the summary."""
        if self.compacted:
            self.compacted = False
            return place_in_message(ev.status_change(status="context_compacted"), item_id)
        return place_in_message(ev.session_lifecycle(subtype="compacted"), item_id)


def _words(content: list[ev.AnyBlock]) -> list[str]:
    return [block.text for block in content if isinstance(block, ev.TextBlock)]


def _is_user_message(payload: Any) -> bool:
    """Tell whether an event says what the user's item before it says, and so claims it."""
    return isinstance(payload, wire.UserMessage) or (
        isinstance(payload, wire.ItemCompleted) and isinstance(payload.item, shared.UserMessage)
    )


def _plan_steps(plan: Any) -> list[tuple[str, str]]:
    """Return the steps and states of a plan, from the arguments of ``update_plan``."""
    steps = [as_object(step) for step in as_list(as_object(plan).get("plan"))]
    return [(step["step"], str(step.get("status", "unknown"))) for step in steps if isinstance(step.get("step"), str)]


def _without_hidden(text: str) -> str:
    """Returns a text without the elements that Codex does not show."""
    for tag in _HIDDEN:
        kept: list[str] = []
        position = 0
        while (start := text.find(f"<{tag}>", position)) >= 0 and (end := text.find(f"</{tag}>", start)) >= 0:
            kept.append(text[position:start])
            position = end + len(f"</{tag}>")
            position += text.startswith("\n", position)
        text = "".join(kept) + text[position:]
    return text
