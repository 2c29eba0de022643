"""Codex, one turn per process: ``codex exec --json``. Wire notes: README.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hansard import events as ev
from hansard.adapters.base import Context
from hansard.adapters.codex import exec_wire as wire
from hansard.adapters.codex import shared_wire as shared
from hansard.adapters.codex import tools
from hansard.adapters.codex.base import Codex
from hansard.adapters.codex.fields import usage_of
from hansard.adapters.codex.outcomes import end_of, error_of
from hansard.adapters.fields import declared_fields, place_in_message, tag_of
from hansard.adapters.usage import subtract_usage

_COUNTED = re.compile(r"item_\d+")
_RETRY = re.compile(r"Reconnecting\.\.\.")


class CodexExec(Codex):
    """What ``codex exec --json`` prints. All that it takes is the prompt: on its standard input, or as an argument."""

    formats = ("codex-exec-json",)
    wire = wire.Line
    takes_text = True

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.thread: str | None = None
        self.totals: dict[str | None, ev.Usage] = {}
        self.failure: ev.ErrorInfo | None = None
        self.todos: list[wire.Todo] = []

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """Lines named ``thread.…``, ``turn.…``, ``item.…``."""
        kind = message.get("type")
        return kind in ("thread.started", "turn.started", "item.started", "item.completed") and "payload" not in message

    def translate(self, message: Any) -> Iterable[ev.Event]:
        match message:
            case wire.ItemStarted(item=item):
                return self.in_turn(self.started, item) if self.turn is None else self.started(item)
            case wire.ItemCompleted(item=item):
                starts = self.turn is None and not isinstance(item, wire.ErrorItem)  # warnings come before the turn too
                return self.in_turn(self.completed, item) if starts else self.completed(item)
            case wire.ItemUpdated(item=item):
                return (self.updated(item),)
            case wire.ThreadStarted():
                return self.thread_started(message.thread_id)
            case wire.TurnStarted():
                return self.begin_turn("user")
            case wire.ThreadError():
                retried = _RETRY.match(message.message) is not None
                failure = error_of(message.message, retryable=True if retried else None)
                if not retried:
                    self.failure = failure
                return (ev.Error(payload=failure),)
            case wire.TurnCompleted():
                return self.turn_completed(message.usage)
            case _:  # wire.TurnFailed
                return self.turn_failed(message.error.message)

    def in_turn(self, read: Callable[[Any], Iterable[ev.Event]], item: Any) -> Iterator[ev.Event]:
        """Yield the events of an item in a turn that it begins: its ids are made of the turn's."""
        yield from self.need_turn()
        yield from read(item)

    def thread_started(self, thread_id: str) -> Iterator[ev.Event]:
        if self.thread is not None:  # the next process of the same conversation
            yield ev.session_lifecycle(subtype="resumed" if thread_id == self.thread else "created", provider_session_id=thread_id)
        self.thread = thread_id
        yield ev.session_init(agent_id="codex", provider_session_id=thread_id)

    # ---- items

    def key(self, item_id: str) -> str:
        """Return an id that is good beyond this process: items are counted from 0 in each, so the turn's id goes before the count."""
        return f"{self.turn}/{item_id}" if _COUNTED.fullmatch(item_id) else item_id

    def started(self, item: Any) -> tuple[ev.Event, ...]:
        match item:
            case shared.CommandExecution():
                return self.tool_call(item)
            case wire.TodoList():
                return (*self.tool_call(item), self.plan(item))
            case shared.WebSearch():  # the query comes when the search is over
                return (ev.tool_progress(tool_call_id=self.key(item.id), tool_name="web_search", status="pending"),)
            case wire.AgentMessage() | wire.Reasoning() | wire.ErrorItem():
                detail = {"type": tag_of(type(item)), **declared_fields(item)}
                return (place_in_message(ev.status_change(status="item_started", detail=detail), self.key(item.id)),)
            case _:
                return self.tool_call(item)

    def updated(self, item: Any) -> ev.Event:
        if isinstance(item, wire.TodoList):
            return self.plan(item)
        return ev.tool_progress(tool_call_id=self.key(item.id), status="updated", detail=declared_fields(item, "id"))

    def completed(self, item: Any) -> Iterable[ev.Event]:
        key = self.key(item.id)
        match item:
            case shared.CommandExecution() if key in self.seen.calls:
                return self.seen.outcome(key, tools.outcome_of(item))
            case wire.AgentMessage():
                return self.assistant(key, item.text)
            case wire.Reasoning():
                return (place_in_message(ev.thinking_done(text=item.text, summary=True), key, 0),)
            case wire.TodoList():  # its final state, usually known from an update
                changed = () if self.todos == item.items else (self.plan(item),)
                return (*changed, *self.seen.outcome(key, tools.other(declared_fields(item, "id"))))
            case wire.ErrorItem():
                return (ev.status_change(status="warning", detail={"message": item.message}),)
            case shared.WebSearch():
                return self.searched(key, item.query, item.action, None)
            case _:
                called = () if key in self.seen.calls else self.tool_call(item)
                return (*called, *self.seen.outcome(key, self.tool_outcome(item)))

    def tool_call(self, item: Any) -> tuple[ev.Event]:
        if isinstance(item, wire.TodoList):  # one item for the whole turn, however often the model calls its tool
            return self.seen.call(self.key(item.id), "todo_list", declared_fields(item, "id"), "think")
        return self.seen.call(self.key(item.id), *tools.call_of(item))

    def tool_outcome(self, item: Any) -> tools.ToolOutcome:
        if isinstance(item, shared.FileChange):  # without a diff: the paths are all there is
            return tools.ToolOutcome(declared_fields(item, "id"), None, item.status != "completed")
        return tools.outcome_of(item)

    def plan(self, item: wire.TodoList) -> ev.Event:
        self.todos = item.items
        entries = [ev.PlanEntry(content=todo.text, status="completed" if todo.completed else "pending") for todo in item.items]
        return ev.plan_update(entries=entries)

    # ---- the end of a turn

    def turn_completed(self, tokens: shared.Tokens | None) -> Iterator[ev.Event]:
        own = None
        if tokens is not None:
            total = usage_of(tokens)
            before = self.totals.get(self.thread)
            if before is not None or not self.context.resumed:
                own = subtract_usage(total, before)
            self.totals[self.thread] = total
            yield ev.usage(scope="session", usage=total)
        yield ev.result(status="completed", subtype="turn.completed", usage=own)
        if own is not None:
            yield ev.usage(scope="turn", usage=own)
        yield from self.end_turn("completed", stop_reason="turn.completed")

    def turn_failed(self, message: str) -> Iterator[ev.Event]:
        failure = self.failure if self.failure is not None and self.failure.message == message else error_of(message)
        status = end_of(failure)
        yield ev.result(status=status, subtype="turn.failed", error=failure)
        if failure is not self.failure:
            yield ev.Error(payload=failure)
        yield from self.end_turn(status, stop_reason=failure.provider_code or "turn.failed", error=failure)
        self.failure = None
