"""The team that Claude gathers: agents with names, what they say to each other, and whose task is whose. Its own tools tell of it.

The tools were renamed and respelled over time: ``Task`` is ``Agent`` now, and a message had ``recipient`` and ``content`` before it had
``to`` and ``message``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hansard.events import Event, team_message, team_state_change, team_task_update
from hansard.events.lenient import as_object


class Team:
    """Who is in it, by the call that brought them in."""

    def __init__(self) -> None:
        self.members: dict[str, str] = {}
        self.name: str | None = None

    def called(self, call_id: str, name: str, args: Any, speaker: str | None) -> Iterable[Event]:
        """What a call says of the team; ``speaker`` is the call that started whoever makes it."""
        return self._team_call(call_id, name, args, speaker) if name in _TOOLS else ()

    def _team_call(self, call_id: str, name: str, args: Any, speaker: str | None) -> Iterator[Event]:
        fields = {key: value for key, value in as_object(args).items() if isinstance(value, str)}
        match name, fields:
            case "TeamCreate", {"team_name": team}:
                self.name = team
                yield team_state_change(team_id=team, status="created", text=fields.get("description"))
            case "TeamDelete", _:
                team, self.name = self.name, None
                yield team_state_change(team_id=fields.get("team_name", team), status="deleted")
            case "Agent" | "Task", {"name": member}:
                self.members[call_id] = member
                team = fields.get("team_name", self.name)
                yield team_state_change(team_id=team, member_id=member, status="started", text=fields.get("description"))
            case "SendMessage", {"message": text} | {"content": text}:
                yield team_message(team_id=self.name, member_id=self.members.get(speaker or ""), text=text, detail=_address(fields))
            case "TaskCreate", {"subject": subject} if self.name is not None or self.members:
                detail = {key: fields[key] for key in ("description", "activeForm") if key in fields}
                yield team_task_update(
                    team_id=self.name, member_id=fields.get("owner"), status="pending", text=subject, detail=detail or None
                )
            case "TaskUpdate", {"taskId": task} | {"task_id": task} if "owner" in fields or self.name is not None:
                owner, status, subject = fields.get("owner"), fields.get("status"), fields.get("subject")
                yield team_task_update(team_id=self.name, task_id=task, member_id=owner, status=status, text=subject)
            case _:
                pass

    def ended(self, call_id: str | None, status: str) -> Iterator[Event]:
        """A member has done its work, or did not come to it."""
        member = self.members.get(call_id or "")
        if member is not None:
            yield team_state_change(team_id=self.name, member_id=member, status=status)


def _address(fields: dict[str, str]) -> dict[str, str]:
    """Whom a message is for, and what kind it is: a broadcast has no recipient."""
    to = fields.get("to", fields.get("recipient"))
    return ({} if to is None else {"to": to}) | {key: fields[key] for key in ("summary", "type", "request_id") if key in fields}


_TOOLS = frozenset({"Agent", "Task", "SendMessage", "TaskCreate", "TaskUpdate", "TeamCreate", "TeamDelete"})
"""The tools that have to do with a team."""
