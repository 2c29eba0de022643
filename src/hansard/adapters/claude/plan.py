"""The to-do list, as Claude's own tools change it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from hansard.events import Event, PlanEntry, plan_update
from hansard.events.lenient import as_list, as_object


class Plan:
    """The to-do list as Claude's own tools change it: TodoWrite says it whole, TaskCreate and TaskUpdate in steps."""

    def __init__(self) -> None:
        self.tasks: dict[str, PlanEntry] = {}

    def called(self, name: str, args: Any) -> Iterable[Event]:
        """The plan that a call of TodoWrite states."""
        if name != "TodoWrite":
            return ()
        entries = [entry for todo in as_list(as_object(args).get("todos")) if (entry := plan_entry(todo))]
        return (plan_update(entries=entries),) if entries else ()

    def answered(self, structured: Any) -> Iterable[Event]:
        """The plan after a task tool reported back."""
        fields = as_object(structured)
        if fields.keys().isdisjoint(_SAID):
            return ()
        changed = False
        if isinstance(fields.get("tasks"), list):
            listed = [plan_entry(task) for task in fields["tasks"]]
            self.tasks = {entry.id: entry for entry in listed if entry is not None and entry.id is not None}
            changed = bool(self.tasks)
        elif (entry := plan_entry(fields.get("task"))) is not None and entry.id is not None:
            self.tasks[entry.id] = entry
            changed = True
        elif fields.get("taskId") in self.tasks and "to" in (change := as_object(fields.get("statusChange"))):
            self.tasks[fields["taskId"]].status = str(change["to"])
            changed = True
        return (plan_update(entries=[msgspec.structs.replace(entry) for entry in self.tasks.values()]),) if changed else ()


_SAID = frozenset({"tasks", "task", "taskId"})
"""The fields of a result that speak of tasks."""


def plan_entry(value: Any) -> PlanEntry | None:
    """A line of the plan from a to-do or a task."""
    fields = as_object(value)
    content = fields.get("content", fields.get("subject"))
    if not isinstance(content, str):
        return None
    task_id = fields.get("id")
    known = ("content", "subject", "status", "id")
    detail = {key: item for key, item in fields.items() if key not in known}
    status = fields.get("status", "pending")
    return PlanEntry(content=content, status=str(status), id=task_id if isinstance(task_id, str) else None, detail=detail or None)
