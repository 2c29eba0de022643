"""A store and its sessions as a notebook shows them: HTML without a script, whose colours are those of the notebook around it.

Whatever was said is text here, and secrets are masked: notebooks are passed on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from html import escape
from itertools import islice
from typing import Protocol

from hansard.events import Error, Event, PermissionResponse, ThinkingDone, ToolCall, ToolResult, TurnEnd, UserMessage
from hansard.projections.display import line, text_of
from hansard.projections.words import as_text
from hansard.redaction import masked, redact
from hansard.store.interface import Cursor, Head, SessionInfo
from hansard.terminal import visible
from hansard.tools import tool_title

SESSIONS = 50
"""So many sessions a list has."""
EVENTS = 1_000
"""So many events are looked at: a notebook is no place for a long log."""
TEXT = 20_000
"""So many characters of one text are shown."""

TYPES = (
    "user_message", "assistant_done", "thinking_done", "tool_call", "tool_result", "permission_response", "error", "turn_end",
)  # fmt: skip

_BOX = "border-left:3px solid currentColor;padding:0 0 0 .8em;margin:.6em 0;text-align:left"
_TEXT = "white-space:pre-wrap;overflow-wrap:anywhere;text-align:left;margin:0"


class Readable(Protocol):
    """As much of a store as this takes."""

    def head(self, session_id: str) -> Head: ...

    def read(
        self,
        session_id: str,
        after: int | Cursor = 0,
        limit: int | None = None,
        before: int | None = None,
        types: Iterable[str] | None = None,
    ) -> Iterator[Event]: ...


class Recorded:
    """A session on the record: iterate over its events; a notebook shows what was said."""

    def __init__(self, store: Readable, id: str) -> None:
        store.head(id)  # says if there is no such session
        self.store = store
        self.id = id

    def __iter__(self) -> Iterator[Event]:
        return self.store.read(self.id)

    def __repr__(self) -> str:
        return f"<session {self.id}: {self.store.head(self.id).seq} events>"

    def _repr_html_(self) -> str:
        return conversation(self.id, self.store.read(self.id, types=TYPES), self.store.head(self.id).seq)


def conversation(name: str, events: Iterable[Event], count: int) -> str:
    """What was said and done, from the beginning."""
    rest = iter(events)
    shown = "".join(_item(event) for event in redact(islice(rest, EVENTS)))
    more = "<p><i>It goes on; this is how it began.</i></p>" if next(rest, None) is not None else ""
    return f"<div><p><b>{_text(name)}</b> · {count:,} events</p>{shown}{more}</div>"


def listing(sessions: list[SessionInfo]) -> str:
    """The sessions of a store, as a table."""
    rows = "".join(_row(info) for info in sessions[:SESSIONS])
    head = "".join(f'<th style="text-align:left">{word}</th>' for word in ("session", "agent", "title", "events", "updated", "ended"))
    more = f"<p><i>and {len(sessions) - SESSIONS:,} more</i></p>" if len(sessions) > SESSIONS else ""
    return f"<div><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}</div>"


def _row(info: SessionInfo) -> str:
    when = "" if info.updated is None else datetime.fromtimestamp(info.updated / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    cells = (info.id, info.agent or info.format or "", masked(info.title or info.problem or ""), f"{info.events:,}", when, info.status or "")
    return "<tr>" + "".join(f'<td style="text-align:left">{_text(cell)}</td>' for cell in cells) + "</tr>"


def _item(event: Event) -> str:
    match event:
        case ThinkingDone(payload=thought):
            return _folded("thinking", thought.text)
        case ToolCall(payload=call):
            return _folded(f"▸ {line(tool_title(call))}", as_text(call.args))
        case ToolResult(payload=result):
            return _folded("◂ failed" if result.is_error else "◂ result", text_of(event) or "")
        case PermissionResponse(payload=answer):
            return f"<p>? {_text(answer.decision)}</p>"
        case Error(payload=problem):
            return _said("error", f"{problem.code}: {problem.message}")
        case TurnEnd(payload=end):
            return f"<p><i>{_text(end.status)}</i></p>"
        case _:
            return _said("user" if isinstance(event, UserMessage) else "agent", text_of(event) or "")


def _said(who: str, text: str) -> str:
    return f'<div style="{_BOX}"><b>{who}</b><div style="{_TEXT}">{_text(text)}</div></div>'


def _folded(title: str, text: str) -> str:
    return f'<details style="{_BOX}"><summary>{_text(title)}</summary><div style="{_TEXT}">{_text(text)}</div></details>'


def _text(text: str) -> str:
    """Text and nothing else: no tag, no control character, no half emoji."""
    cut = text if len(text) <= TEXT else f"{text[:TEXT]} … ({len(text) - TEXT:,} more characters)"
    return escape(visible(cut))
