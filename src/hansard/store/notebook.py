"""A store and its sessions as a notebook shows them: HTML without a script, whose colours are those of the notebook around it.

Whatever was said is text here, and secrets are masked: notebooks are passed on.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from itertools import islice

from hansard.events import Error, Event, PermissionResponse, ThinkingDone, ToolCall, ToolResult, TurnEnd, UserMessage
from hansard.events.times import to_datetime
from hansard.events.tool_inputs import tool_title
from hansard.projections.display import preview, text_of
from hansard.projections.redaction.redact import mask_text, redact
from hansard.projections.terminal_text import escape_text
from hansard.projections.text import json_text
from hansard.store.records import SessionInfo

MAX_SESSIONS = 50
"""So many sessions a list has."""
MAX_EVENTS = 1_000
"""So many events are looked at: a notebook is no place for a long log."""
MAX_TEXT_CHARS = 20_000
"""So many characters of one text are shown."""

SHOWN_TYPES = (
    "user_message", "assistant_done", "thinking_done", "tool_call", "tool_result", "permission_response", "error", "turn_end",
)  # fmt: skip

_BOX = "border-left:3px solid currentColor;padding:0 0 0 .8em;margin:.6em 0;text-align:left"
_TEXT = "white-space:pre-wrap;overflow-wrap:anywhere;text-align:left;margin:0"


def session_html(name: str, events: Iterable[Event], count: int) -> str:
    """What was said and done, from the beginning."""
    rest = iter(events)
    shown = "".join(_item(event) for event in redact(islice(rest, MAX_EVENTS)))
    more = "<p><i>It goes on; this is how it began.</i></p>" if next(rest, None) is not None else ""
    return f"<div><p><b>{_text(name)}</b> · {count:,} events</p>{shown}{more}</div>"


def sessions_html(sessions: list[SessionInfo]) -> str:
    """The sessions of a store, as a table."""
    rows = "".join(_row(info) for info in sessions[:MAX_SESSIONS])
    head = "".join(f'<th style="text-align:left">{word}</th>' for word in ("session", "agent", "title", "events", "updated", "ended"))
    more = f"<p><i>and {len(sessions) - MAX_SESSIONS:,} more</i></p>" if len(sessions) > MAX_SESSIONS else ""
    return f"<div><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}</div>"


def _row(info: SessionInfo) -> str:
    when = "" if info.updated is None else to_datetime(info.updated).strftime("%Y-%m-%d %H:%M")
    cells = (
        info.id,
        info.agent or info.format or "",
        mask_text(info.title or info.problem or ""),
        f"{info.events:,}",
        when,
        info.status or "",
    )
    return "<tr>" + "".join(f'<td style="text-align:left">{_text(cell)}</td>' for cell in cells) + "</tr>"


def _item(event: Event) -> str:
    match event:
        case ThinkingDone(payload=thought):
            return _details("thinking", thought.text)
        case ToolCall(payload=call):
            return _details(f"▸ {preview(tool_title(call))}", json_text(call.args))
        case ToolResult(payload=result):
            return _details("◂ failed" if result.is_error else "◂ result", text_of(event) or "")
        case PermissionResponse(payload=answer):
            return f"<p>? {_text(answer.decision)}</p>"
        case Error(payload=problem):
            return _message("error", f"{problem.code}: {problem.message}")
        case TurnEnd(payload=end):
            return f"<p><i>{_text(end.status)}</i></p>"
        case _:
            return _message("user" if isinstance(event, UserMessage) else "agent", text_of(event) or "")


def _message(who: str, text: str) -> str:
    return f'<div style="{_BOX}"><b>{who}</b><div style="{_TEXT}">{_text(text)}</div></div>'


def _details(title: str, text: str) -> str:
    return f'<details style="{_BOX}"><summary>{_text(title)}</summary><div style="{_TEXT}">{_text(text)}</div></details>'


def _text(text: str) -> str:
    """Text and nothing else: no tag, no control character, no half emoji."""
    cut = text if len(text) <= MAX_TEXT_CHARS else f"{text[:MAX_TEXT_CHARS]} … ({len(text) - MAX_TEXT_CHARS:,} more characters)"
    return escape(escape_text(cut))
