"""Codex, one turn per process: ``codex exec --json``. Wire notes: README.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hansard.adapter import Context
from hansard.adapters.codex import exec_wire as wire
from hansard.adapters.codex import outcomes
from hansard.adapters.codex.conversation import Conversation
from hansard.adapters.codex.ends import end_of, error_of
from hansard.adapters.codex.words import command_arguments, minus, spoken, usage_of
from hansard.events import (
    Error,
    ErrorInfo,
    Event,
    PlanEntry,
    Usage,
    plan_update,
    result,
    session_init,
    session_lifecycle,
    status_change,
    thinking_done,
    tool_progress,
    usage,
)
from hansard.words import at

_COUNTED = re.compile(r"item_\d+")
_RETRY = re.compile(r"Reconnecting\.\.\.")


class CodexExec(Conversation):
    """What ``codex exec --json`` prints. All that it takes is the prompt: on its standard input, or as an argument."""

    formats = ("codex-exec-json",)
    wire = wire.Line
    takes_text = True

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.thread: str | None = None
        self.totals: dict[str | None, Usage] = {}
        self.failure: ErrorInfo | None = None
        self.todos: list[wire.Todo] = []

    @classmethod
    def recognises(cls, message: dict[str, Any]) -> bool:
        """Lines named ``thread.…``, ``turn.…``, ``item.…``."""
        kind = message.get("type")
        return kind in ("thread.started", "turn.started", "item.started", "item.completed") and "payload" not in message

    def translate(self, message: wire.Line) -> Iterable[Event]:
        match message:
            case wire.ItemStarted(item=item):
                return self.in_turn(self.started, item) if self.turn is None else self.started(item)
            case wire.ItemCompleted(item=item):
                starts = self.turn is None and not isinstance(item, wire.ErrorItem)  # warnings come before the turn too
                return self.in_turn(self.completed, item) if starts else self.completed(item)
            case wire.ItemUpdated(item=item):
                return self.updated(item)
            case wire.ThreadStarted():
                return self.thread_started(message.thread_id)
            case wire.TurnStarted():
                return self.begin_turn("user")
            case wire.ThreadError():
                retried = _RETRY.match(message.message) is not None
                failure = error_of(message.message, retryable=True if retried else None)
                if not retried:
                    self.failure = failure
                return (Error(payload=failure),)
            case wire.TurnCompleted():
                return self.turn_completed(message.usage)
            case wire.TurnFailed(error=failed):
                return self.turn_failed(failed.message)

    def in_turn(self, read: Callable[[Any], Iterable[Event]], item: Any) -> Iterator[Event]:
        """What an item says, in a turn that it begins: ids are made of the turn's."""
        yield from self.need_turn()
        yield from read(item)

    def thread_started(self, thread_id: str) -> Iterator[Event]:
        if self.thread is not None:  # the next process of the same conversation
            yield session_lifecycle(subtype="resumed" if thread_id == self.thread else "created", provider_session_id=thread_id)
        self.thread = thread_id
        yield session_init(agent_id="codex", provider_session_id=thread_id)

    # ---- items

    def key(self, item_id: str) -> str:
        """An id that is good beyond this process: items are counted from 0 in each, so the turn's id goes before the count."""
        return f"{self.turn}/{item_id}" if _COUNTED.fullmatch(item_id) else item_id

    def started(self, item: Any) -> tuple[Event, ...]:
        match item:
            case wire.TodoList():
                return (*self.tool_call(item), self.plan(item))
            case wire.WebSearch():  # what is searched for comes when it is over
                return (tool_progress(tool_call_id=self.key(item.id), tool_name="web_search", status="pending"),)
            case wire.AgentMessage() | wire.Reasoning() | wire.ErrorItem():
                return (at(status_change(status="item_started", detail=spoken(item)), self.key(item.id)),)
            case _:
                return self.tool_call(item)

    def updated(self, item: Any) -> tuple[Event]:
        match item:
            case wire.TodoList():
                return (self.plan(item),)
            case _:
                return (tool_progress(tool_call_id=self.key(item.id), status="updated", detail=spoken(item, "id", "type")),)

    def completed(self, item: Any) -> Iterable[Event]:
        key = self.key(item.id)
        match item:
            case wire.AgentMessage():
                return self.assistant(key, item.text)
            case wire.Reasoning():
                return (at(thinking_done(text=item.text, summary=True), key, 0),)
            case wire.TodoList():  # what it was at the end, usually said before
                changed = () if self.todos == item.items else (self.plan(item),)
                return (*changed, *self.outcome(key, outcomes.other(spoken(item, "id", "type"))))
            case wire.ErrorItem():
                return (status_change(status="warning", detail={"message": item.message}),)
            case wire.WebSearch():
                return self.searched(key, item.query, item.action, None)
            case _:
                called = () if key in self.calls else self.tool_call(item)
                return (*called, *self.outcome(key, self.tool_outcome(item)))

    def tool_call(self, item: Any) -> tuple[Event]:
        key = self.key(item.id)
        match item:
            case wire.CommandExecution():
                return self.call(key, "command_execution", command_arguments(item.command), "execute")
            case wire.FileChange():
                return self.call(key, "file_change", {"changes": item.changes}, "edit")
            case wire.McpToolCall():
                return self.call(key, item.tool, item.arguments, "mcp", item.server)
            case wire.CollabToolCall():
                args = spoken(item, "id", "type", "tool", "status", "agents_states")
                return self.call(key, item.tool, args, "agent")
            case _:  # wire.TodoList: one item for the whole turn, however often the model calls its tool
                return self.call(key, "todo_list", spoken(item, "id", "type"), "think")

    def tool_outcome(self, item: Any) -> outcomes.Outcome:
        match item:
            case wire.CommandExecution():
                return outcomes.command(item.aggregated_output, item.exit_code, item.status)
            case wire.FileChange():
                return outcomes.Outcome(spoken(item, "id", "type"), None, item.status != "completed")
            case wire.McpToolCall():
                return outcomes.mcp(item.result, item.error, item.status)
            case _:
                result = {"receiver_thread_ids": item.receiver_thread_ids, "agents_states": item.agents_states}
                return outcomes.other(result, item.status)

    def plan(self, item: wire.TodoList) -> Event:
        self.todos = item.items
        entries = [PlanEntry(content=todo.text, status="completed" if todo.completed else "pending") for todo in item.items]
        return plan_update(entries=entries)

    # ---- the end of a turn

    def turn_completed(self, tokens: wire.Tokens | None) -> Iterator[Event]:
        own = None
        if tokens is not None:
            total = usage_of(tokens)
            before = self.totals.get(self.thread)
            if before is not None or not self.context.resumed:
                own = minus(total, before)
            self.totals[self.thread] = total
            yield usage(scope="session", usage=total)
        yield result(status="completed", subtype="turn.completed", usage=own)
        if own is not None:
            yield usage(scope="turn", usage=own)
        yield from self.end_turn("completed", stop_reason="turn.completed")

    def turn_failed(self, message: str) -> Iterator[Event]:
        failure = self.failure if self.failure is not None and self.failure.message == message else error_of(message)
        status = end_of(failure)
        yield result(status=status, subtype="turn.failed", error=failure)
        if failure is not self.failure:
            yield Error(payload=failure)
        yield from self.end_turn(status, stop_reason=failure.provider_code or "turn.failed", error=failure)
        self.failure = None
