"""The team that Claude gathers: agents with names, what they say to each other, and whose task is whose. Its own tools tell of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hansard.events import Event, team_message, team_state_change, team_task_update
from hansard.events.lenient import as_object


class Team:
    """Who is in it, by the call that brought them in."""

    def __init__(self) -> None:
        self.members: dict[str, str] = {}

    def called(self, call_id: str, name: str, args: Any, speaker: str | None) -> Iterable[Event]:
        """What a call says of the team; ``speaker`` is the call that started whoever makes it."""
        return self._team_call(call_id, name, args, speaker) if name in _TOOLS else ()

    def _team_call(self, call_id: str, name: str, args: Any, speaker: str | None) -> Iterator[Event]:
        fields = {key: value for key, value in as_object(args).items() if isinstance(value, str)}
        match name, fields:
            case "Agent" | "Task", {"name": member}:
                self.members[call_id] = member
                yield team_state_change(member_id=member, status="started", text=fields.get("description"))
            case "SendMessage", {"to": to, "message": text}:
                detail = {"to": to} | ({"summary": fields["summary"]} if "summary" in fields else {})
                yield team_message(member_id=self.members.get(speaker or ""), text=text, detail=detail)
            case "TaskUpdate", {"taskId": task, "owner": owner}:
                yield team_task_update(task_id=task, member_id=owner, status=fields.get("status"))
            case _:
                pass

    def ended(self, call_id: str | None, status: str) -> Iterator[Event]:
        """A member has done its work, or did not come to it."""
        member = self.members.get(call_id or "")
        if member is not None:
            yield team_state_change(member_id=member, status=status)


_TOOLS = frozenset({"Agent", "Task", "SendMessage", "TaskUpdate"})
"""The tools that have to do with a team."""
