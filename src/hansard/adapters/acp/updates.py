"""session/update: what an agent tells while it works, kind by kind in the order of the schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, get_args

from hansard.adapter import Context, Piece
from hansard.adapters.acp import blocks, quick, wire
from hansard.adapters.acp.calls import Call
from hansard.adapters.acp.ends import end_of, error_in_text, error_of, failed
from hansard.adapters.acp.speech import Speech
from hansard.adapters.acp.tools import NO_META
from hansard.adapters.acp.words import is_list, minus, present, told, usage_of
from hansard.content import RefusalBlock
from hansard.events import (
    ErrorInfo,
    Event,
    PlanEntry,
    StatusChange,
    StatusChangePayload,
    ToolCall,
    ToolCallPayload,
    TurnStatus,
    Usage,
    UsageEvent,
    UsagePayload,
    agent_message,
    configuration_change,
    content_block,
    error,
    interrupt,
    plan_update,
    raw,
    result,
    session_lifecycle,
    status_change,
    tool_progress,
    tool_result,
    usage,
)
from hansard.loose import as_int, as_list, as_object
from hansard.words import at, milliseconds, whole

_KNOWN = {str(update.__struct_config__.tag) for update in get_args(wire.Update)}
# Gemini CLI 0.61.0 says a change of mode as if the model had: packages/cli/src/acp/acpSession.ts, sendUpdate of "[MODE_UPDATE] …"
_MODE_UPDATE = re.compile(r"\[MODE_UPDATE\] (\S+)")


class Child:
    """A sub-agent with a session of its own."""

    def __init__(self) -> None:
        self.call: str | None = None
        self.title: str | None = None
        self.description: str | None = None


class Updates(Speech):
    """The part of the adapter that reads session/update."""

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.session: str | None = None
        self.version = 1
        self.agent: str | None = None
        self.two_way = False
        self.replaying = False
        self.title: str | None = None
        self.spent = Usage()
        self.plans: dict[str | None, list[PlanEntry]] = {}
        self.options: list[Any] = []
        self.children: dict[str, Child] = {}
        self.compactions: dict[str, str] = {}
        self.copilot_agents: dict[str, str] = {}
        self.allowed = self.refused = self.cancelled = self.interrupted = self.went_on = False

    # ---- which kind

    def session_update(self, update: Any, session_id: str | None) -> Iterable[Event]:
        """The events of an update. Most of a stream comes by here: it is fast where nothing waits."""
        meta = NO_META if update.meta is None else self.meta_of(update.meta)
        plain = meta is NO_META and not self.children and self.agent != "Copilot"
        self.parent = self.context.parent_tool_call_id if plain else self.parent_of(update, meta, session_id)
        if self.due or self.turn is None:
            return self.after_others(update, meta, session_id)
        frequent = _FREQUENT.get(update.__class__)
        return self.seldom(update, meta, session_id) if frequent is None else frequent(self, update, meta)

    def after_others(self, update: Any, meta: wire.Meta, session_id: str | None) -> Iterator[Event]:
        """An update after results that waited for more, or at the beginning of a turn."""
        yield from self.settle_results(but=update.tool_call_id if isinstance(update, wire.ToolCallUpdate) else None)
        if self.begins_turn(update, meta):
            yield from self.need_turn("callback" if meta.background_turn is not None else "user")
        frequent = _FREQUENT.get(update.__class__)
        yield from self.seldom(update, meta, session_id) if frequent is None else frequent(self, update, meta)

    def unknown_update(self, update: Any) -> Event:
        word = as_object(update).get("sessionUpdate")
        reason = "unknown_type" if isinstance(word, str) and word not in _KNOWN else "wrong_shape"
        return raw(kind=f"session/update/{word}", reason=reason)

    def seldom(self, update: Any, meta: wire.Meta, session_id: str | None) -> Iterator[Event]:
        match update:
            case wire.UserMessageChunk():
                yield from self.hush()
                yield from self.settle()
                yield from self.hear(update)
            case wire.AgentMessage() | wire.AgentThought():
                yield from self.speaks()
                yield from self.whole(update)
            case wire.UserMessage():
                yield from self.hush()
                if is_list(update.content):
                    yield self.user_said(as_list(update.content), update.message_id, self.parent)
                else:
                    yield status_change(status="user_message", detail={"messageId": update.message_id})
            case wire.ToolCallContentChunk():
                yield self.content_chunk(update)
            case wire.TerminalUpdate():
                yield from self.terminal_update(update)
            case wire.TerminalOutputChunk():
                yield self.terminal_chunk(update)
            case _:
                yield from self.surroundings(update, meta, session_id)

    def surroundings(self, update: Any, meta: wire.Meta, session_id: str | None) -> Iterator[Event]:
        match update:
            case wire.Plan():
                yield from self.speaks()
                self.plans[None] = [entry for item in update.entries if (entry := plan_entry(item, None))]
                yield self.plan()
            case wire.PlanUpdate():
                yield self.one_plan(as_object(update.plan))
            case wire.PlanRemoved():
                self.plans.pop(update.plan_id, None)
                yield self.plan()
            case wire.AvailableCommandsUpdate():
                detail = present(availableSkills=meta.available_skills)  # Qwen Code; the details of each are in the original alone
                yield configuration_change(subtype="available_commands_update", commands=update.available_commands, options=detail)
            case wire.CurrentModeUpdate():
                yield configuration_change(subtype="current_mode_update", mode_id=update.current_mode_id)
            case wire.ConfigOptionUpdate():
                if self.parent is None:
                    self.options = update.config_options
                yield self.config_options("config_option_update", update.config_options)
            case wire.SessionInfoUpdate():
                yield self.session_info(update)
            case wire.StateUpdate():
                yield from self.state(update, meta)
            case wire.Notice():
                detail = present(severity=update.severity, title=update.title, description=update.description)
                yield status_change(status="notice", detail=detail)
            case wire.CompactionUpdate():
                yield self.compaction(update)
            case wire.CompactionSummaryChunk():
                text = blocks.text_of(blocks.to_blocks(update.content))
                self.compactions[update.compaction_id] = self.compactions.get(update.compaction_id, "") + text
                yield status_change(status="compaction_summary_chunk", detail={"compactionId": update.compaction_id, "text": text})
            case wire.SubagentUpdate():
                yield from self.subagent(update)
            case wire.SessionMessage():
                yield from self.session_message(update, session_id)
            case _:  # wire.SessionMessageChunk
                text = blocks.text_of(blocks.to_blocks(update.content))
                yield status_change(status="session_message_chunk", detail={"messageId": update.message_id, "text": text})

    # ---- where an update belongs

    def parent_of(self, update: Any, meta: wire.Meta, session_id: str | None) -> str | None:
        """The call that started the agent who says this."""
        if meta is not NO_META:
            claude = None if meta.claude_code is None else meta.claude_code.parent_tool_use_id
            named = claude or meta.parent_tool_call_id
            if named is not None:
                return named
        if session_id in self.children:
            return self.children[session_id].call or session_id
        if meta.copilot is not None and meta.copilot.agent_id is not None:
            return self.copilot_parent(meta.copilot.agent_id)
        if self.agent == "Copilot" and isinstance(update, wire.AgentMessageChunk | wire.AgentThoughtChunk):
            return self.copilot_speaker()
        return self.context.parent_tool_call_id

    def agents_at_work(self) -> list[Call]:
        return [call for call in self.calls.values() if call.told and not call.done and call.is_agent]

    def copilot_speaker(self) -> str | None:
        """Copilot does not mark what a sub-agent says; but who waits for one (not in mode background) does not speak."""
        waiting = [call.id for call in self.agents_at_work() if as_object(call.args).get("mode") != "background"]
        return waiting[0] if len(waiting) == 1 else self.context.parent_tool_call_id

    def copilot_parent(self, agent_id: str) -> str | None:
        """Copilot names the sub-agent, not the call: it is the one agent call that is open."""
        if agent_id not in self.copilot_agents:
            agents = self.agents_at_work()
            if len(agents) != 1:
                return None
            self.copilot_agents[agent_id] = agents[0].id
        return self.copilot_agents[agent_id]

    def begins_turn(self, update: Any, meta: wire.Meta) -> bool:
        """Whether a turn goes on that we were not told of: a background turn of Qwen's, or a stream without our side of it."""
        if self.turn is not None or self.replaying:
            return False
        if meta.background_turn is not None:
            return True
        work = wire.AgentMessageChunk | wire.AgentThoughtChunk | wire.ToolCall | wire.ToolCallUpdate | wire.Plan
        return not self.two_way and isinstance(update, work)

    # ---- messages

    def speaks(self) -> list[Event]:
        """The agent speaks: what the user said is complete, and so are the calls before."""
        self.went_on = True
        return [*self.heard_all(), *self.settle()]

    def agent_message_chunk(self, update: wire.AgentMessageChunk, meta: wire.Meta) -> Iterable[Event]:
        content = update.content
        text = content.text if type(content) is quick.Text else as_object(content).get("text")
        if self.agent in (None, "gemini-cli") and isinstance(text, str) and (mode := _MODE_UPDATE.fullmatch(text)) is not None:
            return [configuration_change(subtype="current_mode_update", mode_id=mode.group(1))]
        if meta is NO_META:
            return self.chunk(update, thinking=False)
        if meta.usage is not None and text == "":  # Qwen Code: an empty chunk that carries the usage of the model response before it
            return [*self.heard_all(), *self.response_usage(meta)]
        return self.chunk_with_meta(update, meta)

    def agent_thought_chunk(self, update: wire.AgentThoughtChunk, meta: wire.Meta) -> Iterable[Event]:
        return self.chunk(update, thinking=True)

    def chunk(self, update: wire.AgentMessageChunk | wire.AgentThoughtChunk, thinking: bool) -> Iterable[Event]:
        self.went_on = True
        said = self.say(update.content, update.message_id, thinking, None)
        return said if self.heard is None and not self.unsaid else [*self.speaks(), *said]

    def chunk_with_meta(self, update: wire.AgentMessageChunk, meta: wire.Meta) -> Iterator[Event]:
        yield from self.speaks()
        phase = meta.source if meta.claude_code is None else meta.claude_code.kind
        yield from self.say(update.content, update.message_id, thinking=False, phase=phase)
        if as_object(meta.context_compression).get("phase") == "done":
            yield session_lifecycle(subtype="compacted", detail=meta.context_compression)
        if meta.usage is not None:
            yield from self.response_usage(meta)

    def response_usage(self, meta: wire.Meta) -> list[Event]:
        mine = self.context.parent_tool_call_id
        speaker = self.parent if self.parent in self.saying else mine  # 0.15.10 names the sub-agent here, not where it speaks
        events = self.hush_under(speaker)
        response_id = self.spoken(speaker)
        if meta.usage is not None:
            events.append(UsageEvent(payload=UsagePayload(scope="message", usage=usage_of(meta.usage)), response_id=response_id))
            if meta.duration_ms is not None:
                took = StatusChangePayload("model_response", {"durationMs": whole(meta.duration_ms)})
                events.append(StatusChange(payload=took, response_id=response_id))
        return events

    # ---- tools

    def tool_call(self, update: wire.ToolCall, meta: wire.Meta) -> Iterable[Event]:
        before = self.hush()
        if self.heard is not None or self.unsaid:
            before = [*self.heard_all(), *before, *self.settle()]
        return self.tool_after(before, update, meta, first=True) if before else self.tool(update, meta, first=True)

    def tool_call_update(self, update: wire.ToolCallUpdate, meta: wire.Meta) -> Iterable[Event]:
        first = update.tool_call_id not in self.calls
        before = self.hush() if first else []
        if self.heard is not None:
            before = [*self.heard_all(), *before]
        return self.tool_after(before, update, meta, first) if before else self.tool(update, meta, first)

    def tool_after(self, before: list[Event], update: Any, meta: wire.Meta, first: bool) -> Iterator[Event]:
        yield from before
        yield from self.tool(update, meta, first)

    # ---- plans, settings, usage

    def plan(self) -> Event:
        return plan_update(entries=[entry for entries in self.plans.values() for entry in entries])

    def one_plan(self, plan: dict[str, Any]) -> Event:
        """A plan with a name: items, a text, or a file."""
        plan_id = plan.get("planId")
        name = plan_id if isinstance(plan_id, str) else None
        if isinstance(plan.get("entries"), list):
            self.plans[name] = [entry for item in as_list(plan["entries"]) if (entry := plan_entry(item, name))]
        else:
            words = plan.get("content", plan.get("uri"))
            self.plans[name] = [PlanEntry(content=str(words), status=str(plan.get("type")), id=name, detail=plan)]
        return self.plan()

    def config_options(self, subtype: str, options: list[Any]) -> Event:
        return configuration_change(
            subtype=subtype,
            model=current(options, "model"),
            mode_id=current(options, "mode"),
            options=options,
        )

    def session_info(self, update: wire.SessionInfoUpdate) -> Event:
        title = update.title if isinstance(update.title, str) else None
        renamed = title is not None and title != self.title
        self.title = title if renamed else self.title
        return session_lifecycle(
            subtype="renamed" if renamed else "updated", title=title, detail=present(updatedAt=update.updated_at, meta=update.meta)
        )

    def usage_update(self, update: wire.UsageUpdate, meta: wire.Meta) -> Iterable[Event]:
        over = self.hush_unnamed() if meta.claude_origin is None else self.hush()  # Claude: all it has to say was said
        before = [*self.settle(), *over]
        in_dollars = update.cost is not None and update.cost.currency in (None, "USD")
        payload = UsagePayload(
            scope="context",
            usage=Usage(total_tokens=update.used),
            model=meta.claude_model,
            cost_usd=update.cost.amount if in_dollars and update.cost is not None else None,
            context_window=update.size,
        )
        return [*before, UsageEvent(payload=payload)] if before else Piece(UsageEvent, payload)

    def compaction(self, update: wire.CompactionUpdate) -> Event:
        known = self.compactions.get(update.compaction_id)
        summary = blocks.text_of(blocks.to_blocks(as_list(update.summary))) if is_list(update.summary) else None
        detail = present(compactionId=update.compaction_id, error=update.error)
        if update.status == "completed" and known != "done":
            self.compactions[update.compaction_id] = "done"
            return session_lifecycle(subtype="compacted", text=summary if summary is not None else known, detail=detail)
        if update.status == "completed" and summary is not None:
            return session_lifecycle(subtype="compaction_summary", text=summary, detail=detail)
        word = "compacting" if update.status == "in_progress" else f"compaction_{update.status}"
        return status_change(status=word, detail=detail)

    # ---- sub-agents with sessions of their own

    def subagent(self, update: wire.SubagentUpdate) -> Iterator[Event]:
        child = self.children.setdefault(update.session_id, Child())
        child.title, child.description = update.title or child.title, update.description or child.description
        state = as_object(update.state)
        status = str(state.get("state", "updated"))
        if status == "idle":
            yield from self.hush_under(child.call or update.session_id)
        detail = present(sessionId=update.session_id, description=update.description, cwd=update.cwd, state=update.state)
        if child.call is None:
            yield status_change(status=f"subagent_{status}", detail={**(detail or {}), "title": update.title})
        else:
            yield tool_progress(tool_call_id=child.call, status=status, title=update.title, detail=detail)

    def session_message(self, update: wire.SessionMessage, session_id: str | None) -> Iterator[Event]:
        """The first message to a sub-agent is the call that started it, the sub-agent's answer the result; the rest is mail."""
        said = blocks.to_blocks(as_list(update.content))
        text = blocks.text_of(said)
        started = self.children.get(update.recipient_session_id or "")
        reporting = self.children.get(update.sender_session_id or "")
        if started is not None and session_id == update.recipient_session_id:
            self.parent = started.call or session_id
            yield self.user(said, update.message_id, author="agent")
        elif started is not None and started.call is None:
            started.call = update.message_id
            args = present(title=started.title, subagent_type=started.description, prompt=text)
            call = ToolCallPayload(tool_call_id=update.message_id, tool_name="subagent", args=args, kind="agent", title=started.title)
            yield told(ToolCall(payload=call))
        elif reporting is not None and reporting.call in self.open.tools:
            yield from self.hush_under(reporting.call)
            yield told(tool_result(tool_call_id=str(reporting.call), result=text, content=None if blocks.only_text(said) else said))
        else:
            yield agent_message(
                message_id=update.message_id,
                target_agent_id="session",
                target_session_id=update.recipient_session_id,
                message=text,
            )

    # ---- the end of a turn

    def state(self, update: wire.StateUpdate, meta: wire.Meta) -> Iterator[Event]:
        """Version 2: foreground work begins, waits for us, or is over."""
        mine = self.parent == self.context.parent_tool_call_id
        if update.state in ("running", "requires_action") and mine and self.version > 1:
            yield from self.need_turn("system")
        yield status_change(status=update.state, detail=present(background=update.background, stopReason=update.stop_reason))
        if update.state != "idle" or self.turn is None or not mine or self.version == 1:
            return
        if update.stop_reason == "error":
            failure = self.read(update.error, wire.Failure) or wire.Failure(message="the agent reported an error")
            yield from self.fail(error_of(failure))
            return
        yield from self.stop(update.stop_reason, update.usage, meta)

    def stop(self, stop_reason: str | None, counted: wire.Counted | None, meta: wire.Meta) -> Iterator[Event]:
        """A turn is over, with a stop reason."""
        self.parent = self.context.parent_tool_call_id
        status, problem = ("lost", None) if stop_reason is None else end_of(stop_reason)
        status, problem = self.denied(status, problem)
        if status not in ("interrupted", "lost"):
            yield from self.hush()
            status, problem = self.owned_up(status, problem)
        if status == "interrupted" and not self.interrupted:
            yield interrupt(reason="user_cancel")
        quota = meta.quota
        used = counted or (None if quota is None else quota.token_count)
        spent = None if used is None or (status != "completed" and not used.input_tokens) else usage_of(used)
        if spent is not None and self.agent == "OpenCode":  # 1.18.33 counts the last response of a turn alone
            yield at(usage(scope="message", usage=spent), self.spoken(self.parent))
            spent = None
        elif spent is not None and self.agent == "Copilot":  # 1.0.102 counts from the beginning of the session
            yield usage(scope="session", usage=spent)
            spent, self.spent = minus(spent, self.spent), spent
        yield from self.sum_up(status, stop_reason, problem, spent, None if quota is None else quota.model_usage)

    def fail(self, problem: ErrorInfo, status: TurnStatus = "error") -> Iterator[Event]:
        """A turn is over, with an error."""
        self.parent = self.context.parent_tool_call_id
        if status in ("max_tokens", "refused"):
            yield from self.hush()
        if status == "interrupted" and not self.interrupted:
            yield interrupt(reason="user_cancel")
        yield from self.sum_up(status, None, problem, None, None)

    def sum_up(
        self, status: TurnStatus, stop_reason: str | None, problem: ErrorInfo | None, spent: Usage | None, models: list[Any] | None
    ) -> Iterator[Event]:
        yield from self.heard_all()
        yield from self.settle_all()
        if status == "refused":
            explanation = None if problem is None else problem.message
            yield told(content_block(block=RefusalBlock(category=stop_reason, explanation=explanation)))
        yield result(status=status, stop_reason=stop_reason, usage=spent, model_usage=models, error=problem)
        if problem is not None and status != "interrupted":
            yield from self.report(problem)
        if spent is not None:
            yield usage(scope="turn", usage=spent)
        self.saying.pop(self.parent, None)
        yield from self.end_turn(status, stop_reason=stop_reason, error=problem)
        self.forget_messages()
        self.allowed = self.refused = self.cancelled = self.interrupted = False

    def report(self, problem: ErrorInfo) -> Iterator[Event]:
        yield error(
            code=problem.code,
            message=problem.message,
            provider_code=problem.provider_code,
            status=problem.status,
            retryable=problem.retryable,
            details=problem.details,
            error_source=problem.error_source,
        )

    def denied(self, status: TurnStatus, problem: ErrorInfo | None) -> tuple[TurnStatus, ErrorInfo | None]:
        """A turn in which we refused. Codex means by it a turn in which nothing else was allowed, here as in its own protocol."""
        if status == "interrupted" and self.refused and not self.interrupted:
            return "denied", None
        if status == "completed" and (self.refused or self.cancelled):
            went_well = self.agent == "codex-acp" and self.allowed and self.went_on
            return ("completed" if went_well else "denied"), None
        return status, problem

    def owned_up(self, status: TurnStatus, problem: ErrorInfo | None) -> tuple[TurnStatus, ErrorInfo | None]:
        """Copilot CLI 1.0.102 ends a failed turn with end_turn; its last words, in one piece, are the error."""
        if status == "completed" and self.agent == "Copilot" and self.last_said is not None and self.last_said.startswith("Error: "):
            problem = error_in_text(self.last_said.removeprefix("Error: "))
            return failed(problem), problem
        return status, problem

    # ---- times

    def time_of_update(self, params: Any) -> int | None:
        """Qwen Code gives replayed updates the time they first happened at; a session's name comes with a time."""
        update = as_object(as_object(params).get("update"))
        if "_meta" not in update and "updatedAt" not in update:
            return None
        stamp = as_object(update.get("_meta")).get("timestamp")
        if as_int(stamp) is not None:
            return stamp
        updated = update.get("updatedAt")
        return milliseconds(updated) if isinstance(updated, str) else None


_FREQUENT: dict[type, Callable[[Updates, Any, wire.Meta], Iterable[Event]]] = {
    kind: how
    for kinds, how in (
        ((quick.AgentMessageChunk, wire.AgentMessageChunk), Updates.agent_message_chunk),
        ((quick.AgentThoughtChunk, wire.AgentThoughtChunk), Updates.agent_thought_chunk),
        ((quick.ToolCall, wire.ToolCall), Updates.tool_call),
        ((quick.ToolCallUpdate, wire.ToolCallUpdate), Updates.tool_call_update),
        ((quick.UsageUpdate, wire.UsageUpdate), Updates.usage_update),
    )
    for kind in kinds
}
"""What is read in the short way or in the long one."""


def plan_entry(value: Any, plan_id: str | None) -> PlanEntry | None:
    """A line of a plan."""
    fields = as_object(value)
    content, status, priority = fields.get("content"), fields.get("status"), fields.get("priority")
    if not isinstance(content, str):
        return None
    meta = as_object(fields.get("_meta"))
    own_id = as_object(meta.get("qwenTodo")).get("id")
    return PlanEntry(
        content=content,
        status=str(status),
        priority=priority if isinstance(priority, str) else None,
        id=own_id if isinstance(own_id, str) else None,
        detail=present(planId=plan_id, meta=meta or None),
    )


def current(options: list[Any], category: str) -> str | None:
    """The value of the setting of this category: model, mode, …"""
    for option in options:
        fields = as_object(option)
        if fields.get("category") == category and isinstance(fields.get("currentValue"), str):
            return str(fields["currentValue"])
    return None


def choices(options: list[Any], category: str) -> list[Any] | None:
    """What the setting of this category can be, groups opened up."""
    for option in options:
        fields = as_object(option)
        if fields.get("category") == category and isinstance(fields.get("options"), list):
            return [choice for item in as_list(fields["options"]) for choice in as_list(as_object(item).get("options")) or [item]]
    return None
