"""The two engines are one store: whatever is done to both, they hold the same lines and give the same answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hansard.adapters.normalize import normalize
from hansard.errors import HansardError, LogForked
from hansard.events import (
    Event,
    Usage,
    assistant_chunk,
    assistant_done,
    result,
    session_init,
    session_lifecycle,
    tool_call,
    turn_end,
    turn_start,
    usage,
    user_message,
)
from hansard.events.originals import wrap
from hansard.events.usage_totals import UsageFold
from hansard.store import JsonlStore, Store, ids, open_store
from hansard.store.postgres.catalog import CHANGED, LATE
from hansard.store.postgres.store import PostgresStore
from hansard.store.records import newest_first
from hansard.store.search import SearchQuery
from tests.postgres import Database
from tests.proof import SEED, Figures, amount
from tests.recorded import streams

NOW = 1_800_000_000_000
LIMIT = 2_000

texts = st.text(max_size=20) | st.sampled_from(["x" * 3000, "\u2028", "\n", '{"text":', "\ud83d", "\0", "100% _sure_ \\", "ẞ Straße İ"])


def framed(text: str) -> Event:
    event = assistant_chunk(text="")
    event.original = wrap(text.encode("utf-8", "surrogatepass"))
    return event


events = st.one_of(
    texts.map(lambda text: assistant_chunk(text=text)),
    texts.map(lambda text: user_message(text=text)),
    texts.map(lambda text: assistant_done(text=text)),
    texts.map(lambda text: tool_call(tool_call_id="c", tool_name="sh", args={"command": text})),
    texts.map(framed),
    st.just(turn_start(trigger="user")),
    st.sampled_from(["completed", "error", "refused"]).map(lambda status: turn_end(status=status)),  # type: ignore[arg-type]
    st.just(session_init(agent_id="codex")),
    texts.map(lambda text: session_lifecycle(subtype="renamed", title=text)),
    st.sampled_from(["archived", "unarchived"]).map(lambda subtype: session_lifecycle(subtype=subtype)),
    st.integers(0, 10**6).map(lambda n: usage(scope="message", usage=Usage(input_tokens=n, output_tokens=1))),
)
names = st.sampled_from(["a", "b", "c"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), names, st.lists(events, max_size=4)),
        st.tuples(st.just("create"), names, texts),
        st.tuples(st.just("release"), names, st.none()),
        st.tuples(st.just("delete"), names, st.none()),
        st.tuples(st.just("blob"), names, texts),
        st.tuples(st.just("read"), names, st.tuples(st.integers(0, 12), st.integers(1, 12), st.none() | st.integers(0, 5))),
        st.tuples(st.just("tail"), names, st.integers(0, 8)),
    ),
    max_size=25,
)


def perform(store: Store, step: tuple[str, str, Any]) -> object:
    what, name, how = step
    match what:
        case "append":
            return [json.dumps([event.seq, event.id, event.timestamp]) for event in store[name].append(how)]
        case "create":
            return store.create(name, title=how)
        case "blob":
            return store[name].get_blob(store[name].put_blob(how.encode("utf-8", "surrogatepass")))
        case "read":
            return list(store[name].records(how[0], how[2], how[1]))
        case "tail":
            return store[name].tail(how)
        case "release":
            return store[name].release()
        case _:
            return store.delete(name)


def answer(store: Store, step: tuple[str, str, Any]) -> object:
    try:
        return perform(store, step)
    except HansardError as problem:
        return type(problem)


def state(store: Store) -> object:
    """Everything that can be asked. When a session changed last is a file's own time where nothing was said in it."""
    infos = sorted((replace(info, updated=None, title=seen(info.title)) for info in store.sessions()), key=lambda info: info.id)
    logs = [
        (info, store[info.id].head(), list(store[info.id].records()), list(store[info.id].read(types=["user_message"]))) for info in infos
    ]
    found = [[(hit.session_id, hit.seq, hit.text) for hit in SearchQuery(store, words)] for words in ("x", "sure_ 100%", "straße", "codex")]
    return logs, [sorted(hits) for hits in found]


def seen(title: str | None) -> str | None:
    """A title as a column can hold it."""
    return None if title is None else title.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


@pytest.mark.slow
def test_whatever_is_done_both_engines_answer_alike(
    database: Database, root: Path, monkeypatch: pytest.MonkeyPatch, figure: Figures
) -> None:
    monkeypatch.setattr(ids, "randbits", lambda bits: 1 << (bits - 2))  # the same ids in both
    made: list[Callable[[], Store]] = [
        lambda: JsonlStore(root, inline_limit=LIMIT, clock=lambda: NOW),
        lambda: PostgresStore(database.address, inline_limit=LIMIT, clock=lambda: NOW),
    ]
    done = 0

    @settings(max_examples=amount(25, 2000), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
    @given(steps, st.booleans())
    def run(steps: list[tuple[str, str, Any]], again: bool) -> None:
        nonlocal done
        folder, rows = (make() for make in made)
        for store in (folder, rows):
            for info in store.sessions():
                store.delete(info.id)
        for step in steps:
            assert answer(folder, step) == answer(rows, step)
        for store in (folder, rows):
            store.close()
        folder, rows = (make() for make in made)
        if again:
            for step in steps:
                assert answer(folder, step) == answer(rows, step)
        assert state(folder) == state(rows)
        for info in folder.sessions():
            assert folder[info.id].verify() == rows[info.id].verify()
        for store in (folder, rows):
            store.close()
        done += len(steps)

    run()
    figure("steps", done)


def test_what_recordings_become_is_the_same_in_both(database: Database, root: Path, figure: Figures) -> None:
    some = [stream for stream in streams() if len(stream.data) < 60_000][SEED % 5 :: amount(40, 2)]
    with JsonlStore(root) as folder, open_store(database.address) as rows, open_store(root.parent / "back") as back:
        for number, stream in enumerate(some):
            name = f"s{number}"
            folder[name].append(normalize(stream.data, stream.format, stream.context))
            folder[name].release()
            rows[name].ingest(folder[name].records())
            back[name].ingest(rows[name].records())
            assert [*folder[name].records()] == [*rows[name].records()] == [*back[name].records()]
            assert [block for block, _ in folder[name].read_blocks(50_000)] and rows[name].verify() == folder[name].verify()
        known = [{info.id: info.cwd for info in store.sessions()} for store in (folder, rows)]
        assert all(known[0][name] in (None, known[1][name]) for name in known[1])  # a folder's list reads only the ends of a log
        folder.update_index()
        alike: dict[str, Any] = {"updated": None, "cwd": None}
        told = [{info.id: replace(info, title=seen(info.title), **alike) for info in store.sessions()} for store in (folder, rows)]
        assert told[0] == told[1]
        figure("recordings", len(some))


def used(store: Store, session: str) -> Any:
    tally = UsageFold()
    for event in store[session].read():
        tally.apply(event)
    return tally.session()


def test_what_was_used_is_in_the_row_and_in_the_view(database: Database) -> None:
    def spend(tokens: int, name: str) -> Event:
        made = usage(scope="message", usage=Usage(input_tokens=tokens, output_tokens=1, total_tokens=tokens + 1), cost_usd=0.5)
        made.response_id = name
        return made

    with open_store(database.address) as store:
        store["s"].append([turn_start(trigger="user"), spend(10, "a")])
        more = [spend(10, "a"), assistant_done(text="x"), spend(5, "b"), turn_end(status="completed"), result(status="completed")]
        store["s"].append(more)
    with open_store(database.address) as store:  # a writer that knows of it only what is in the log
        store["s"].append([turn_start(trigger="user"), spend(100, "c")])
        whole = used(store, "s")
        [row] = database.execute("SELECT input_tokens, output_tokens, total_tokens, cost_usd FROM session_usage WHERE session_id = 's'")
        assert row == (whole.input_tokens, whole.output_tokens, whole.total_tokens, whole.cost_usd) == (115, 3, 118, 1.5)


def test_a_search_is_answered_by_an_index(database: Database) -> None:
    with open_store(database.address) as store:
        store["s"].append([user_message(text=f"word{number} here" + " and more" * 40) for number in range(3000)])
        assert [hit.seq for hit in SearchQuery(store, "WORD1234 here")] == [1237]
    question = f"EXPLAIN SELECT session_id FROM {database.schema}.event WHERE type = ANY('{{user_message}}') AND said LIKE '%word1234%'"
    with psycopg.connect(database.server.address(), options="-c enable_seqscan=off", autocommit=True) as connection:
        assert any("event_said" in line for (line,) in connection.execute(question.encode()))


def test_lines_of_the_folder_do_not_go_into_another_log_of_that_name(database: Database, root: Path) -> None:
    with JsonlStore(root) as folder, open_store(database.address) as rows:
        folder["s"].append([assistant_chunk(text="here")])
        rows["s"].append([assistant_chunk(text="there")])
        rows["s"].release()
        with pytest.raises(LogForked):
            rows["s"].ingest(folder["s"].records())


def test_a_look_at_the_list_reads_what_changed_by_an_index(database: Database) -> None:
    with open_store(database.address) as store, PostgresStore(database.address) as other:
        for number in range(300):
            store[f"s{number:03}"].append([user_message(text="words")])
            store[f"s{number:03}"].release()
        first = other.changes()
        assert first.gone is None and {info.id for info in first.sessions} == {f"s{number:03}" for number in range(300)}
        database.execute("UPDATE session SET changed = changed - interval '1 hour'")
        assert (other.changes(first.mark).sessions, other.changes(first.mark).gone) == ([], [])
        store["s007"].append([user_message(text="more")])
        store.delete("s008")
        store.delete("s009")
        store["s009"].append([user_message(text="again")])
        second = other.changes(first.mark)
        assert {info.id for info in second.sessions} == {"s007", "s009"} and second.gone == ["s008"]
        known = {info.id: info for info in first.sessions}
        assert newest_first(second.apply(known).values()) == other.sessions()
    database.execute("ANALYZE session")
    with psycopg.connect(database.server.address(), autocommit=True) as connection:
        connection.execute(f"SET search_path TO {database.schema}, public; SET enable_seqscan = off".encode())
        row = connection.execute(b"EXPLAIN (ANALYZE, FORMAT JSON) " + CHANGED.encode(), {"since": second.mark - LATE}).fetchone()
        assert row is not None
        scans = [node for node in nodes(row[0][0]["Plan"]) if node.get("Relation Name") == "session" or "session_changed" in str(node)]
        assert any(node.get("Index Name") == "session_changed" for node in scans)
        assert sum(node["Actual Rows"] * node["Actual Loops"] + node.get("Rows Removed by Filter", 0) for node in scans) < 30


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every step of a plan."""
    yield plan
    for step in plan.get("Plans", []):
        yield from nodes(step)


def test_a_session_whose_writer_was_killed_is_not_live_at_the_next_look(database: Database) -> None:
    with PostgresStore(database.address) as store, PostgresStore(database.address) as other:
        store["s"].append([user_message(text="words")])
        first = other.changes()
        assert [info.live for info in first.sessions] == [True]
        database.execute("UPDATE session SET changed = changed - interval '1 hour'")
        database.execute("UPDATE writer SET until = now() - interval '2 hours'")
        second = other.changes(first.mark)
        assert [(info.id, info.live) for info in second.sessions] == [("s", False)]
