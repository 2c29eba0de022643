"""The rows that the catalog has of one session: its turns, tool calls, changes of files, and requests.

`RowFold.apply` every event in order, and take the rows that changed. The fold survives JSON between two events, so a log that has grown is
read from where it ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from hansard.events import (
    Answer,
    DiffBlock,
    Error,
    ErrorInfo,
    Event,
    PermissionCancelled,
    PermissionRequest,
    PermissionResponse,
    Question,
    SessionInit,
    ToolCall,
    ToolCallPayload,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
    is_main_agent,
)
from hansard.events import tool_inputs as tools
from hansard.events.ledger import LEDGER_TYPES, SessionTally
from hansard.events.lenient import as_list, as_object
from hansard.events.structs import prepare
from hansard.events.summary import with_model
from hansard.events.turns import Turn, TurnList, calendar_time
from hansard.events.usage_totals import SettledTurn, TotalUsage
from hansard.projections.call_text import Call, call_changes, plain_text

ROW_TYPES = frozenset(
    str(kind.__struct_config__.tag)
    for kind in (
        *(TurnStart, TurnEnd, UserMessage, ToolCall, ToolResult, Error, SessionInit),
        *(PermissionRequest, PermissionResponse, PermissionCancelled, Question, Answer),
    )
)
"""The types of events that change a row."""
FOLD_TYPES = ROW_TYPES | LEDGER_TYPES | {"configuration_change"}
"""The types of events that `Folds` reads."""
TEXT_CHARACTERS = 400
"""The length of the texts in a row. The log has all of them."""
MAX_OPEN = 1_000
"""How many calls and requests can wait for their ends. The oldest go first: a damaged log may never end one."""

Outcome = Literal["running", "ok", "failed", "denied", "cancelled"]


class TurnRow(Struct, tag="turn"):
    """A turn of the main agent."""

    seq: int
    turn: int
    turn_id: str
    prompt: str | None
    status: str
    started: int | None
    duration_ms: int | None
    tool_ms: int
    waiting_ms: int
    error_code: str | None = None
    error: str | None = None


class CallRow(Struct, tag="call"):
    """A tool call."""

    seq: int
    turn: int | None
    tool: str
    action: str
    path: str | None
    command: str | None
    cwd: str | None
    started: int | None
    parent: int | None
    """The call that started the subagent which made this one; 0 if that is not known."""
    outcome: Outcome = "running"
    exit_code: int | None = None
    duration_ms: int | None = None
    error: str | None = None
    result_seq: int | None = None
    request: int | None = None


class EditRow(Struct, tag="edit"):
    """A change of one file by one tool call that succeeded."""

    seq: int
    number: int
    turn: int | None
    path: str
    action: str
    added: int
    removed: int
    time: int | None
    request: int | None


class RequestRow(Struct, tag="request"):
    """A permission request or a question."""

    seq: int
    turn: int | None
    kind: Literal["permission", "question"]
    call: str | None
    tool: str | None
    asked: str
    time: int | None
    decision: str | None = None
    by: str | None = None
    answer_seq: int | None = None
    waited_ms: int | None = None


Row = TurnRow | CallRow | EditRow | RequestRow
ROW_TABLES: Mapping[str, type[Row]] = {"turns": TurnRow, "tool_calls": CallRow, "edits": EditRow, "requests": RequestRow}
TABLE_OF: Mapping[type[Row], str] = {kind: name for name, kind in ROW_TABLES.items()}


ROW_KEYS = {table: "owner, seq, number" if table == "edits" else "owner, seq" for table in ROW_TABLES}
"""The primary keys."""
USAGE_COLUMNS = {
    **dict.fromkeys(("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens"), "INTEGER"),
    "cost_usd": "REAL",
}
"""What a turn used: columns of `turns` that are written when the turn is counted."""


def row_columns(table: str) -> dict[str, str]:
    """Returns the columns of a table with their SQL types, without that of the session."""
    columns = {one.name: "INTEGER" if "int" in str(one.type) else "TEXT" for one in msgspec.structs.fields(ROW_TABLES[table])}
    return columns | (USAGE_COLUMNS if table == "turns" else {})


def row_key(row: Row) -> tuple[str, int, int]:
    """Returns what a row is replaced by: its table, and its number there."""
    return TABLE_OF[type(row)], row.seq, row.number if isinstance(row, EditRow) else 0


class OpenCall(Struct):
    """A call without a result. The payload is kept if the result decides what the call changed."""

    row: CallRow
    payload: ToolCallPayload | None = None


class Activity(Struct):
    """How the time of a turn is spent: `note` is called whenever a call or a request begins or ends."""

    last: int | None = None
    calls: set[str] = field(default_factory=set[str])
    requests: set[str] = field(default_factory=set[str])
    tool_ms: int = 0
    waiting_ms: int = 0

    def note(self, event: Event) -> None:
        """Counts the time since the last call for what was open."""
        now, last = calendar_time(event), self.last
        if now is None:
            return
        passed = 0 if last is None else max(0, now - last)
        self.waiting_ms += passed if self.requests else 0
        self.tool_ms += passed if self.calls and not self.requests else 0
        self.last = now if last is None else max(now, last)


class RowFold(Struct):
    """The fold."""

    turns: TurnList = field(default_factory=TurnList)
    errors: dict[str, ErrorInfo] = field(default_factory=dict[str, ErrorInfo])
    """The last error of each open turn."""
    activity: dict[str, Activity] = field(default_factory=dict[str, Activity])
    """Of each open turn."""
    calls: dict[str, OpenCall] = field(default_factory=dict[str, OpenCall])
    requests: dict[str, RequestRow] = field(default_factory=dict[str, RequestRow])
    decisions: dict[str, RequestRow] = field(default_factory=dict[str, RequestRow])
    """The answered requests of calls that have no result yet, by the seq of the request."""
    cwd: str | None = None
    models: list[str] = field(default_factory=list[str])
    """The main agent's models."""

    def apply(self, event: Event) -> Iterable[Row]:
        """Applies one event, and returns the rows that it changes."""
        if event.replay:
            return ()
        match event:
            case ToolCall():
                return self._call(event)
            case ToolResult():
                return self._result(event)
            case TurnStart() | TurnEnd() | UserMessage() | Error() if is_main_agent(event):
                return self._turn(event)
            case PermissionRequest() | Question():
                return self._request(event)
            case PermissionResponse(payload=answer):
                return self._answer(event, answer.request_id, answer.decision, answer.by)
            case PermissionCancelled(payload=answer):
                return self._answer(event, answer.request_id, "cancelled", None)
            case Answer(payload=answer):
                return self._answer(event, answer.request_id, answer.action or "answered", answer.by)
            case SessionInit(payload=init) if is_main_agent(event):
                self.cwd = init.cwd or self.cwd
            case _:
                pass
        return ()

    # ---- turns

    def _turn(self, event: TurnStart | TurnEnd | UserMessage | Error) -> Iterable[Row]:
        name = event.turn_id or ""
        match event:
            case TurnStart():
                turn = self.turns.start(event)
                _put(self.activity, name, Activity(calendar_time(event)))
            case TurnEnd():
                turn = self.turns.end(event)
                return [*self._end_calls(event), *self._end_turn(event, turn)]
            case UserMessage():
                turn = self.turns.name(event)
            case Error():
                _put(self.errors, name, event.payload)
                return ()
        return () if turn is None else [self._turn_row(turn)]

    def _end_turn(self, event: TurnEnd, turn: Turn | None) -> Iterable[Row]:
        self._note_activity(event)
        activity = self.activity.pop(event.turn_id or "", Activity())
        error = event.payload.error or self.errors.pop(event.turn_id or "", None)
        self.errors.pop(event.turn_id or "", None)
        return () if turn is None else [self._turn_row(turn, activity, None if event.payload.status == "completed" else error)]

    def _turn_row(self, turn: Turn, activity: Activity | None = None, error: ErrorInfo | None = None) -> TurnRow:
        spent = activity or self.activity.get(turn.id) or Activity()
        return TurnRow(
            seq=turn.seq,
            turn=turn.number,
            turn_id=turn.id,
            prompt=_cut(turn.title),
            status=turn.status,
            started=turn.started,
            duration_ms=turn.duration_ms,
            tool_ms=spent.tool_ms,
            waiting_ms=spent.waiting_ms,
            error_code=None if error is None else error.code,
            error=None if error is None else _cut(error.message),
        )

    def _number(self, event: Event) -> int | None:
        """The number of the turn that an event belongs to."""
        turn = self.turns.turns.get(event.turn_id or "")
        return None if turn is None else turn.number

    def _end_calls(self, event: TurnEnd) -> list[Row]:
        """The end of a turn ends what the main agent left open in it. A result that comes later holds."""
        ended: list[Row] = []
        number = self._number(event)
        for one in self.calls.values():
            if one.row.turn == number and one.row.parent is None and one.row.outcome == "running":
                one.row = replace(one.row, outcome="cancelled")
                ended.append(one.row)
        for name in [name for name, row in self.requests.items() if row.turn == number]:
            ended += self._answer(event, name, "cancelled", None)
        return ended

    def _note_activity(self, event: Event) -> Activity | None:
        activity = self.activity.get(event.turn_id or "")
        if activity is not None:
            activity.note(event)
        return activity

    # ---- calls

    def _call(self, event: ToolCall) -> Iterable[Row]:
        call = event.payload
        activity = self._note_activity(event) if is_main_agent(event) else None
        if activity is not None:
            activity.calls.add(call.tool_call_id)
        key = _call_key(event, call.tool_call_id)
        known = self.calls.get(key)
        row = self._call_row(event)
        if known is not None and known.row.outcome == "running":  # it is told again, with more of its input
            row = replace(row, seq=known.row.seq, started=known.row.started, request=known.row.request)
        asked = next((one for one in (*self.requests.values(), *self.decisions.values()) if one.call == call.tool_call_id), None)
        if asked is not None:
            row.request = asked.seq
        _put(self.calls, key, OpenCall(row, call if call.kind == "edit" else None))
        return [row]

    def _call_row(self, event: ToolCall) -> CallRow:
        call = event.payload
        found = tools.tool_input(call)
        path = command = None
        cwd = self.cwd
        match found:
            case tools.Command(command=text, cwd=where):
                command, cwd = text, where or cwd
            case tools.Code(code=text):
                command = text
            case tools.Patch(paths=paths):
                path = paths[0] if len(set(paths)) == 1 else None
            case tools.ReadFile() | tools.ListFolder() | tools.WriteFile() | tools.EditFile() | tools.EditPlaces() | tools.DeleteFile():
                path = found.path
            case _:
                pass
        return CallRow(
            seq=event.seq,
            turn=self._number(event),
            tool=call.tool_name,
            action=call.kind or "other" if found is None else found.action,
            path=path,
            command=_cut(command),
            cwd=cwd if command is not None else None,
            started=calendar_time(event),
            parent=self._parent(event),
        )

    def _parent(self, event: Event) -> int | None:
        if event.parent_tool_call_id is None:
            return None if is_main_agent(event) else 0
        parents = (one.row.seq for key, one in reversed(self.calls.items()) if key.endswith(f" {event.parent_tool_call_id}"))
        return next(parents, 0)

    def _result(self, event: ToolResult) -> Iterable[Row]:
        result = event.payload
        activity = self._note_activity(event) if is_main_agent(event) else None
        if activity is not None:
            activity.calls.discard(result.tool_call_id)
        key = _call_key(event, result.tool_call_id)
        one = self.calls.pop(key, None)
        if one is None:
            return ()
        asked = self.decisions.pop(str(one.row.request), None)
        is_denied = asked is not None and asked.decision == "deny"
        call = Call(one.payload or ToolCallPayload(result.tool_call_id, one.row.tool, {}), result=result)
        row = one.row = replace(
            one.row,
            outcome="denied" if is_denied else _outcome(event, call),
            exit_code=result.exit_code,
            duration_ms=_duration(one.row, event),
            error=_cut(result.error) if call.failed else None,
            result_seq=event.seq,
        )
        return [row, *(_edit_rows(row, call) if row.outcome == "ok" else ())]

    # ---- requests

    def _request(self, event: PermissionRequest | Question) -> Iterable[Row]:
        asked = event.payload
        activity = self._note_activity(event)
        if activity is not None:
            activity.requests.add(asked.request_id)
        row = RequestRow(
            seq=event.seq,
            turn=self._number(event),
            kind="permission" if isinstance(event, PermissionRequest) else "question",
            call=asked.tool_call_id,
            tool=event.payload.tool_name if isinstance(event, PermissionRequest) else None,
            asked=_request_text(event),
            time=calendar_time(event),
        )
        before = self.requests.get(asked.request_id)
        if before is not None:  # a permission request that turned into a question
            row.seq, row.time = before.seq, before.time
        _put(self.requests, asked.request_id, row)
        one = self.calls.get(_call_key(event, asked.tool_call_id))
        if one is None:
            return [row]
        one.row = replace(one.row, request=row.seq)
        return [row, one.row]

    def _answer(self, event: Event, request_id: str, decision: str, by: str | None) -> Iterable[Row]:
        for activity in self.activity.values():
            if request_id in activity.requests:
                activity.note(event)
                activity.requests.discard(request_id)
        row = self.requests.pop(request_id, None)
        if row is None:
            return ()
        time = calendar_time(event)
        row = replace(row, decision=decision, by=by, answer_seq=event.seq)
        row.waited_ms = max(0, time - row.time) if time is not None and row.time is not None else None
        if row.call is not None:
            _put(self.decisions, str(row.seq), row)
        return [row]


class Folds(Struct):
    """What the events of a log add up to for the catalog: its rows, and what its turns used."""

    tally: SessionTally = field(default_factory=SessionTally)
    rows: RowFold = field(default_factory=RowFold)

    def apply(self, event: Event) -> dict[tuple[str, int, int], Row]:
        """Applies one event of `FOLD_TYPES`, and returns the rows that it changes, by their keys."""
        if not event.replay:
            self.rows.models = with_model(self.rows.models, event)
        if event.type in LEDGER_TYPES:
            self.tally.apply(event)
        return {row_key(row): row for row in self.rows.apply(event)} if event.type in ROW_TYPES else {}


def usage_values(settled: SettledTurn) -> dict[str, Any]:
    """Returns what a turn used, by the names of the columns."""
    total: TotalUsage = settled.spent.total
    return {
        "input_tokens": total.input_tokens,
        "output_tokens": total.output_tokens,
        "cache_read_tokens": total.cache_read_input_tokens,
        "cache_write_tokens": total.cache_creation_input_tokens,
        "reasoning_tokens": total.reasoning_tokens,
        "cost_usd": total.cost_usd,
    }


def _edit_rows(row: CallRow, call: Call) -> Iterable[EditRow]:
    """Yields the files that a call changed, with the lines that it added and removed."""
    match tools.tool_input(call.payload):
        case tools.Patch(paths=[_, _, *_], patch=str(patch)) if not _has_diffs(call):
            changes = list(_patched_files(patch))
        case tools.DeleteFile(path=path):
            changes = [(path, 0, 0)]
        case _:
            changes = [(change.path, *change.counts) for change in call_changes(call)]
    for number, (path, added, removed) in enumerate(changes):
        yield EditRow(row.seq, number, row.turn, path, row.action, added, removed, row.started, row.request)


def _has_diffs(call: Call) -> bool:
    return any(isinstance(block, DiffBlock) for block in (call.result and call.result.content) or [])


def _patched_files(patch: str) -> Iterable[tuple[str, int, int]]:
    """Yields the files of a patch with several, with the lines that it adds and removes."""
    places = [*tools.FILES_IN_PATCH.finditer(patch)]
    for place, following in zip(places, [*places[1:], None], strict=True):
        lines = patch[place.end() : None if following is None else following.start()].split("\n")
        yield place[1], sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def _outcome(event: ToolResult, call: Call) -> Outcome:
    return "ok" if not call.failed else "cancelled" if event.synthetic else "failed"


def _call_key(event: Event, call_id: str | None) -> str:
    """What names a call: Qwen Code numbers those of a subagent like its own."""
    return f"{event.parent_tool_call_id or ''} {call_id or ''}"


def _request_text(event: PermissionRequest | Question) -> str:
    """Returns what a request asks for, in a line."""
    if isinstance(event, PermissionRequest):
        asked = event.payload
        call = ToolCallPayload(asked.tool_call_id or "", asked.tool_name or "", asked.input)
        return _cut(asked.description) or _cut(plain_text(asked.input)) or call.tool_name
    first = next((as_object(one) for one in as_list(event.payload.questions)), dict[str, Any]())
    return _cut(event.payload.message) or _cut(plain_text(first.get("question"))) or ""


def _duration(row: CallRow, event: ToolResult) -> int | None:
    """Returns how long a call took: as its agent says, else by the times of its events."""
    if event.payload.duration_ms is not None:
        return event.payload.duration_ms
    ended = calendar_time(event)
    return max(0, ended - row.started) if ended is not None and row.started is not None else None


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= TEXT_CHARACTERS else f"{text[: TEXT_CHARACTERS - 1]}…"


def _put(table: dict[str, Any], name: str, value: Any) -> None:
    table[name] = value
    if len(table) > MAX_OPEN:
        del table[next(iter(table))]


prepare(globals())
