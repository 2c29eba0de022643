"""The tables of the catalog, on every engine, and what the filters choose."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import hansard.cli
from hansard.errors import UsageError
from hansard.events import (
    Event,
    Usage,
    error,
    permission_request,
    permission_response,
    session_init,
    tool_call,
    tool_result,
    turn_end,
    turn_start,
    user_message,
)
from hansard.events import usage as usage_event
from hansard.events.lineage import Lineage, parent_found
from hansard.store import JsonlStore, Store
from hansard.store.failures import CAUSES, count_causes, find_failures
from hansard.store.filters import FAILED, FILTER_WORDS, SessionFilter, parse_filter, parse_time, select_sessions
from hansard.store.invoice import compare_invoice, read_invoice
from hansard.store.table_query import TABLES, table_rows
from hansard.store.tool_use import find_commands, find_files

NOW = datetime(2026, 11, 19, 8, 0, tzinfo=UTC)
DAY = 24 * 3600 * 1000
TODAY = int(NOW.timestamp() * 1000)
FOLDER = "/home/ann/heron"


def with_times(time: int, *events: Event, turn: str = "t") -> Iterator[Event]:
    for number, event in enumerate(events):
        event.timestamp, event.turn_id = time + 100 * number, turn
        yield event


def begin(agent: str, folder: str, model: str) -> Event:
    return session_init(agent_id=agent, cwd=folder, model=model, provider_session_id=f"{agent}-own")


def fill(store: Store) -> None:
    """Two sessions of two agents: one edits a file yesterday, one fails a week ago."""
    store.create("edits")
    command = tool_call("c1", "Bash", {"command": "make test"}, kind="execute")
    edit = tool_call("c2", "Edit", {"file_path": f"{FOLDER}/a.py", "old_string": "one\n", "new_string": "two\nthree\n"}, kind="edit")
    denied = tool_call("c3", "Bash", {"command": "rm -r /"}, kind="execute")
    read = tool_call("c4", "Read", {"file_path": "b.py"}, kind="read")
    store["edits"].append([
        *with_times(TODAY - DAY - 1, begin("claude", FOLDER, "claude-opus-5-5")),
        *with_times(TODAY - DAY, turn_start("user"), user_message("Change a.py", author="human")),
        *with_times(TODAY - DAY + 1000, command, tool_result("c1", "ok", exit_code=0)),
        *with_times(TODAY - DAY + 2000, edit, permission_request("r", [], "h", tool_call_id="c2", tool_name="Edit")),
        *with_times(TODAY - DAY + 5000, permission_response("r", "allow", by="ann"), tool_result("c2", "done")),
        *with_times(TODAY - DAY + 6000, denied, permission_request("s", [], "h", tool_call_id="c3"), permission_response("s", "deny")),
        *with_times(TODAY - DAY + 7000, tool_result("c3", "denied", is_error=True), read, tool_result("c4", "text")),
        *with_times(TODAY - DAY + 9000, usage_event("turn", Usage(input_tokens=10, output_tokens=5), cost_usd=1.5), turn_end("completed")),
    ])  # fmt: skip
    store.create("fails")
    store["fails"].append([
        *with_times(TODAY - 7 * DAY - 1, begin("codex", "/home/bob/owl", "gpt-5.5")),
        *with_times(TODAY - 7 * DAY, turn_start("user"), user_message("Run it", author="human")),
        *with_times(TODAY - 7 * DAY + 1000, tool_call("d1", "shell", {"command": ["bash", "-lc", "false"]}, kind="execute")),
        *with_times(TODAY - 7 * DAY + 2000, tool_result("d1", "", exit_code=1), error("rate_limit", "too many requests")),
        *with_times(TODAY - 7 * DAY + 3000, turn_end("error")),
    ])  # fmt: skip
    for name in ("edits", "fails"):
        store[name].release()


def rows(store: Store, question: str) -> list[tuple[Any, ...]]:
    return list(store.query(question))


def test_the_rows_of_a_session_are_the_same_on_every_engine(either: Store) -> None:
    fill(either)
    turns = rows(
        either, "SELECT session, turn, prompt, status, duration_ms, tool_ms, waiting_ms, error_code, cost_usd FROM turns ORDER BY 1"
    )
    assert turns == [
        ("edits", 1, "Change a.py", "completed", 9100, 1300, 3000, None, 1.5),
        ("fails", 1, "Run it", "error", 3000, 1000, 0, "rate_limit", None),
    ]
    calls = rows(either, "SELECT action, path, command, outcome, exit_code FROM tool_calls ORDER BY session, seq")
    assert calls == [
        ("command", None, "make test", "ok", 0),
        ("edit_file", f"{FOLDER}/a.py", None, "ok", None),
        ("command", None, "rm -r /", "denied", None),
        ("read_file", "b.py", None, "ok", None),
        ("command", None, "false", "failed", 1),
    ]
    assert rows(either, "SELECT path, added, removed, request IS NOT NULL FROM edits") == [(f"{FOLDER}/a.py", 2, 1, 1)]
    requests = rows(either, "SELECT call, decision, by, waited_ms FROM requests ORDER BY seq")
    assert requests == [("c2", "allow", "ann", 2900), ("c3", "deny", None, 100)]
    assert rows(either, "SELECT session, project, agent, models FROM sessions ORDER BY 1") == [
        ("edits", "heron", "claude", "claude-opus-5-5"),
        ("fails", "owl", "codex", "gpt-5.5"),
    ]
    assert rows(either, "SELECT session, input_tokens, cost_usd, cost_source FROM usage") == [("edits", 10, 1.5, "reported")]
    assert rows(either, "SELECT count(*) FROM events WHERE session_id = 'fails'") == [(either["fails"].head().seq,)]


def test_what_a_fork_has_copied_is_in_its_parent_alone(either: Store) -> None:
    fill(either)
    parent = either["edits"]
    either.create("fork")
    lineage = Lineage("fork", session_id="edits", log_id=parent.head().log_id, seq=5, copied=((2, 5),))
    again = list(with_times(TODAY, turn_start("user"), user_message("Again", author="human"), turn_end("completed"), turn="u"))
    either["fork"].append(
        [
            begin("claude", FOLDER, "m"),
            *with_times(1, turn_start("user"), tool_call("c1", "Bash", {"command": "x"}), turn_end("completed")),
            parent_found(lineage),
            *again,
        ]
    )
    assert rows(either, "SELECT prompt FROM turns WHERE session = 'fork'") == [("Again",)]
    assert rows(either, "SELECT count(*) FROM tool_calls WHERE session = 'fork'") == [(0,)]
    either.delete("edits")
    assert rows(either, "SELECT count(*) FROM tool_calls WHERE session = 'fork'") == [(1,)]


def test_tables_are_frames(either: Store) -> None:
    fill(either)
    for table in TABLES.keys() - {"events"}:
        frame = hansard.frame(either, table=table)
        assert frame.to_arrow().column_names == list(TABLES[table]), table
    calls = hansard.frame(either, "fails", table="tool_calls").to_pandas()
    assert calls.command.item() == "false" and str(calls.started.dtype).startswith("datetime64")
    assert either.query("SELECT sum(added) AS lines FROM edits").to_pandas().lines.item() == 2
    with pytest.raises(UsageError, match="unknown table 'nope'"):
        table_rows(either, "nope")


FILTERS: dict[str, tuple[str, set[str]]] = {
    "since": ("2d", {"edits"}),
    "until": ("2026-11-15", {"fails"}),
    "project": ("heron", {"edits"}),
    "agent": ("codex", {"fails"}),
    "model": ("gpt", {"fails"}),
    "status": ("failed", {"fails"}),
    "touched": (f"{FOLDER}/b.py", {"edits"}),
    "person": ("nobody", set()),
    "cost_over": ("$1", {"edits"}),
}


@pytest.mark.parametrize("word", FILTER_WORDS)
def test_each_filter_chooses_on_every_engine(either: Store, word: str) -> None:
    fill(either)
    value, names = FILTERS[word]
    wanted = parse_filter({word: value}, NOW, FOLDER)
    assert {info.id for info in select_sessions(either, wanted)} == names and not wanted.is_empty
    assert {one.session_id for one in find_commands(either, wanted)} == names
    assert {one.session_id for one in find_failures(either, wanted)} == names & {"fails"}


def test_here_is_the_folder_or_the_repository_around_it(tmp_path: Path) -> None:
    with JsonlStore(tmp_path) as store:
        fill(store)
        for folder in (FOLDER, "/home/ann"):
            assert {info.id for info in select_sessions(store, parse_filter({"project": "."}, NOW, folder))} == {"edits"}
        assert not select_sessions(store, parse_filter({"project": "."}, NOW, "/home/ann/her"))
        assert len(find_files(store, parse_filter({"touched": "a.py"}, NOW, FOLDER), by_turn=True)) == 1


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("7d", "2026-11-12T08:00", "2026-11-12T08:00"),
        ("90m", "2026-11-19T06:30", "2026-11-19T06:30"),
        ("today", "2026-11-19", "2026-11-20"),
        ("Yesterday", "2026-11-18", "2026-11-19"),
        ("2026-11-01", "2026-11-01", "2026-11-02"),
        ("2026-11-01T12:00", "2026-11-01T12:00", "2026-11-01T12:00"),
        ("2026-11-01T12:00+02:00", "2026-11-01T10:00", "2026-11-01T10:00"),
        ("999999w", "1970-01-01", "1970-01-01"),
    ],
)
def test_times_are_read_as_people_write_them(text: str, start: str, end: str) -> None:
    expected = [int(datetime.fromisoformat(one).replace(tzinfo=UTC).timestamp() * 1000) for one in (start, end)]
    assert [parse_time(text, NOW), parse_time(text, NOW, is_end=True)] == expected


@pytest.mark.parametrize(
    ("words", "problem"), [({"since": "soon"}, "not a time"), ({"cost_over": "much"}, "not an amount"), ({"x": "y"}, "unknown filter 'x'")]
)
def test_a_filter_that_is_none_is_an_error_that_says_what_there_is(words: dict[str, str], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        parse_filter(words, NOW)


def test_every_status_that_is_a_failure_has_a_cause(tmp_path: Path) -> None:
    assert {"lost", "denied", "refused"} <= FAILED & CAUSES.keys()
    with JsonlStore(tmp_path) as store:
        fill(store)
        (failure,) = find_failures(store)
        assert (failure.session_id, failure.turn, failure.cause, failure.error) == ("fails", 1, "rate_limit", "too many requests")
        (cause,) = count_causes([failure])
        assert (cause.failures, cause.sessions, cause.next_step) == (1, 1, CAUSES["rate_limit"].next_step)
        assert not find_failures(store, SessionFilter(statuses=("lost",)))


def test_files_add_up_and_the_last_use_is_named(tmp_path: Path) -> None:
    with JsonlStore(tmp_path) as store:
        fill(store)
        found = {use.path: (use.reads, use.changes, use.added, use.removed, use.turn) for use in find_files(store)}
        assert found == {f"{FOLDER}/a.py": (0, 1, 2, 1, 1), f"{FOLDER}/b.py": (1, 0, 0, 0, 1)}
        assert [use.path for use in find_files(store, only_changed=True)] == [f"{FOLDER}/a.py"]


INVOICES = {
    "plain": "date,model,cost\n2026-11-18,claude-opus-5-5-20260101,2.00\n",
    "with a time": "start_time_iso,amount_value,model\n2026-11-18T00:00:00+00:00,$2.00,anthropic/claude-opus-5-5\n",
}


@pytest.mark.parametrize("form", INVOICES)
def test_an_invoice_is_compared_by_day_and_model(form: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "invoice.csv"
    path.write_text(INVOICES[form])
    with JsonlStore(tmp_path / "store") as store:
        fill(store)
    assert hansard.cli.main(["usage", "--against", str(path), "--store", str(tmp_path / "store"), "--json"]) == 0
    (difference,) = json.loads(capfd.readouterr().out)
    assert difference["invoicedUsd"] == 2.0 and difference["day"] == "2026-11-18"
    assert compare_invoice(read_invoice(path), [])[0].difference_usd == 2.0


def test_an_invoice_without_costs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "invoice.csv"
    path.write_text("date,tokens\n2026-11-18,5\n")
    with pytest.raises(UsageError, match="no column for the day or the cost"):
        read_invoice(path)
