"""The plans of an agent. Every event has all of them."""

from __future__ import annotations

from typing import Any

from hansard import events as ev
from hansard.adapters.acp.fields import present
from hansard.events.lenient import as_list, as_object, as_text


class Plans:
    """The plans, by name; the agent's only plan has none."""

    def __init__(self) -> None:
        self._plans: dict[str | None, list[ev.PlanEntry]] = {}

    def replace(self, name: str | None, items: list[Any]) -> ev.Event:
        """Take a plan that is a list."""
        self._plans[name] = [entry for item in items if (entry := _entry(item, name))]
        return self._event()

    def update(self, plan: dict[str, Any]) -> ev.Event:
        """Take a plan with a name (version 2): a list, a text, or a file."""
        name = as_text(plan.get("planId"))
        if isinstance(plan.get("entries"), list):
            return self.replace(name, as_list(plan["entries"]))
        text = str(plan.get("content", plan.get("uri")))
        self._plans[name] = [ev.PlanEntry(content=text, status=str(plan.get("type")), id=name, detail=plan)]
        return self._event()

    def remove(self, name: str) -> ev.Event:
        """Remove a plan."""
        self._plans.pop(name, None)
        return self._event()

    def _event(self) -> ev.Event:
        return ev.plan_update(entries=[entry for entries in self._plans.values() for entry in entries])


def _entry(value: Any, plan_id: str | None) -> ev.PlanEntry | None:
    fields = as_object(value)
    content = fields.get("content")
    if not isinstance(content, str):
        return None
    meta = as_object(fields.get("_meta"))
    return ev.PlanEntry(
        content=content,
        status=str(fields.get("status")),
        priority=as_text(fields.get("priority")),
        id=as_text(as_object(meta.get("qwenTodo")).get("id")),
        detail=present(planId=plan_id, meta=meta or None),
    )
