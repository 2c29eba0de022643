"""Where a session comes from: forks of five agents, imported in every order, and what they share counted once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from hansard.agents.renormalize import renormalize
from hansard.cli.verbs.show import transcript
from hansard.events import AssistantDone, Event, SessionLifecycle, TurnStart, UsageEvent, UserMessage, is_main_agent
from hansard.events.ledger import add_up
from hansard.events.lineage import PARENT_FOUND, Lineage
from hansard.events.prices import PriceTable
from hansard.importing.discovery import discover
from hansard.importing.job import Job
from hansard.importing.run import import_all
from hansard.projections import project
from hansard.server.fork import fork
from hansard.server.fork_usage import ForkTotals
from hansard.store import JsonlStore, SessionInfo, Store, open_store
from hansard.store.lineage import find_parents
from hansard.store.search import SearchQuery
from hansard.store.tables import read_store
from hansard.store.usage import read_ledger
from tests.opencode_database import from_rows
from tests.postgres import Database
from tests.recorded import Recording, recordings, unpack

FORKS = Path(__file__).parent.parent / "forks"


class Fork(NamedTuple):
    """A fork that an agent made: the last answer that it has from its parent, and the first prompt of its own."""

    agent: str
    child: str
    parent: str
    shared: str
    own: str | None
    copies: int
    """How many answers it has a copy of."""


CASES = {
    "claude --fork-session": Fork("claude", "claude-6eda58a8", "claude-ef247229", "Answer-cl-9 is here.", "on the fork", 9),
    "claude session/fork": Fork("claude", "claude-5d9f6427", "claude-e948b0ea", "Answer-cl-34 is here.", None, 6),
    "codex thread/fork": Fork("codex", "codex-01a1e8a2", "codex-01a1e8a0", "Answer-co-11 is here.", "on the fork", 0),
    "codex terminal": Fork("codex", "codex-01a1e8a3", "codex-01a1e8a0", "Answer-co-14 is here.", "terminal fork turn", 0),
    "qwen --fork-session": Fork("qwen", "qwen-00e8da80", "qwen-6d0a6718", "Answer-qw-8 is here.", "on the fork", 8),
    "opencode --fork": Fork("opencode", "opencode-ses_e175145c", "opencode-ses_e1753351", "Answer-op-8 is here.", "on the fork", 7),
    "opencode session/fork": Fork(
        "opencode", "opencode-ses_e174fcc0", "opencode-ses_e1750644", "Answer-op-15 is here.", "acp on the fork", 4
    ),
    "pi --fork": Fork("pi", "pi-01a1e8a2", "pi-01a1e8a1", "Answer-pi-7 is here.", "on the fork", 7),
}
TOTALS = {"claude": 5, "codex": 3, "qwen": 3, "opencode": 4, "pi": 2}
"""The sessions of each agent."""


def home_of(agent: str, folder: Path) -> Path:
    """The files as the agent kept them."""
    unpack(FORKS / agent, folder)
    (folder / "answered.json").unlink()
    for rows in folder.rglob("*.db.jsonl"):
        from_rows(rows.with_suffix(""), rows.read_bytes())
        rows.unlink()
    return folder


def jobs_in(folder: Path) -> list[Job]:
    return discover([folder], None).jobs


def store_of(root: Path, *groups: list[Job]) -> JsonlStore:
    """Import groups of sessions, one after the other."""
    for jobs in groups:
        assert all(outcome.problem is None for outcome, _ in import_all(root, jobs, True, 0, 1))
    return JsonlStore(root)


def info_of(store: Store, beginning: str) -> SessionInfo:
    return next(info for info in store.sessions() if info.id.startswith(beginning))


def lineage_of(store: Store, beginning: str) -> Lineage:
    lineage = info_of(store, beginning).lineage
    assert lineage is not None
    return lineage


def speech_in(events: Iterator[Event]) -> Iterator[tuple[int, str]]:
    for event in events:
        if isinstance(event, UserMessage | AssistantDone):
            yield event.seq, event.payload.text.strip('"')


def check(store: Store, case: Fork) -> None:
    """The child knows its parent, where it left it, and which of its texts are copies."""
    child, lineage = info_of(store, case.child), lineage_of(store, case.child)
    parent = info_of(store, case.parent)
    assert (child.parent_session_id, lineage.kind, lineage.log_id) == (parent.id, "fork", parent.log_id)
    before = [text for seq, text in speech_in(store[parent.id].conversation()) if seq <= (lineage.seq or 0)]
    assert [text for text in before if text.startswith("Answer")][-1] == case.shared
    turn = next(store[parent.id].read(after=(lineage.turn_seq or 0) - 1))
    assert isinstance(turn, TurnStart) and turn.seq < (lineage.seq or 0)
    texts = list(speech_in(store[child.id].conversation()))
    copies = [text for seq, text in texts if lineage.is_copied(seq)]
    assert [text for text in copies if text.startswith("Answer")] == [text for text in before if text.startswith("Answer")][-case.copies :][
        : case.copies
    ]
    assert len([text for text in copies if text.startswith("Answer")]) == case.copies
    own = [text for seq, text in texts if not lineage.is_copied(seq) and not text.startswith("<")]
    assert own[:1] == ([] if case.own is None else [case.own])
    check_views(store, child.id, case, lineage, texts)
    assert child.copied_events == sum(last - first + 1 for first, last in lineage.copied)
    assert store[child.id].verify() == []


def check_views(store: Store, child: str, case: Fork, lineage: Lineage, texts: list[tuple[int, str]]) -> None:
    """Every view says once where the copied part ends, and the counts of a list tell copies apart."""
    events = list(store[child].conversation())
    views = {
        "markdown": "".join(project(events, "markdown")),
        "show": "\n".join(line.text for line in transcript(lambda: events, 0, once=True)),
    }
    for view, shown in views.items():
        assert shown.count(f"fork of {lineage.session_id}") == 1 and ("everything above is a copy" in shown) is bool(lineage.copied)
        before, _, after = shown.partition(f"fork of {lineage.session_id}")
        for seq, text in texts:
            if text.startswith("Answer"):
                assert text in (before if lineage.is_copied(seq) else after), (view, text)
    (summary,) = project(events, "summary")
    said = [event for event in events if isinstance(event, UserMessage | AssistantDone) and not event.replay and is_main_agent(event)]
    copies = [event for event in said if lineage.is_copied(event.seq) and getattr(event.payload, "author", "human") == "human"]
    assert summary.copied_messages == len(copies) >= case.copies
    assert (summary.copied_turns > 0) is (case.copies > 0) and summary.copied_turns < summary.turns + (case.own is None)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("order", ["parent first", "child first"])
def test_a_fork_knows_its_parent_in_every_order_of_import(name: str, order: str, tmp_path: Path) -> None:
    case = CASES[name]
    jobs = jobs_in(home_of(case.agent, tmp_path / "home"))
    assert len(jobs) == TOTALS[case.agent]
    children = [job for job in jobs if job.session_id.startswith(case.child)]
    others = [job for job in jobs if job not in children]
    store = store_of(tmp_path / "store", *((others, children) if order == "parent first" else (children, others)))
    check(store, case)
    again = [outcome.state for outcome, _ in import_all(tmp_path / "store", jobs, True, 0, 1)]
    assert again == ["unchanged"] * len(jobs) and find_parents(store, {info.id for info in store.sessions()}) == []


@pytest.mark.parametrize("agent", TOTALS)
def test_only_forks_have_a_parent(agent: str, tmp_path: Path) -> None:
    store = store_of(tmp_path / "store", jobs_in(home_of(agent, tmp_path / "home")))
    found = {info.id for info in store.sessions() if info.lineage is not None}
    assert found == {info_of(store, case.child).id for case in CASES.values() if case.agent == agent}


@pytest.mark.parametrize("agent", TOTALS)
def test_every_text_is_found_once(agent: str, tmp_path: Path) -> None:
    store = store_of(tmp_path / "store", jobs_in(home_of(agent, tmp_path / "home")))
    for case in (case for case in CASES.values() if case.agent == agent):
        child, parent = info_of(store, case.child), info_of(store, case.parent)
        assert [hit.session_id for hit in SearchQuery(store, f'"{case.shared}"', types=["assistant_done"])] == [parent.id]
        alone = list(SearchQuery(store, f'"{case.shared}"', [child.id], types=["assistant_done"]))
        assert len(alone) == (1 if case.copies else 0)
        if case.own is not None:
            assert {hit.session_id for hit in SearchQuery(store, f'"{case.own}"', types=["user_message"])} >= {child.id}
    store.delete(info_of(store, CASES[next(name for name in CASES if CASES[name].agent == agent)].parent).id)
    case = next(case for case in CASES.values() if case.agent == agent)
    left = list(SearchQuery(store, f'"{case.shared}"', types=["assistant_done"]))
    assert len(left) == (1 if case.copies else 0), "a copy whose parent is gone is found in the fork"


@pytest.mark.parametrize("agent", ["claude", "pi"])
def test_a_table_of_all_sessions_has_every_response_once(agent: str, tmp_path: Path) -> None:
    store = store_of(tmp_path / "store", jobs_in(home_of(agent, tmp_path / "home")))
    answers = [text for _, text in speech_in(read_store(store)) if text.startswith("Answer")]
    assert len(answers) == len(set(answers))
    case = next(case for case in CASES.values() if case.agent == agent)
    assert case.shared in [text for _, text in speech_in(read_store(store, [info_of(store, case.child).id]))]


# ---- tokens

UNRECORDED = {
    "claude": "the killed turn, the summary and the response that was tried again are in the totals at most",
    "codex": "of responses that failed or were killed there is no count",
    "opencode": "titles are in no source",
}


@pytest.mark.parametrize("agent", TOTALS)
@pytest.mark.parametrize("backwards", [False, True])
def test_what_a_fork_copies_is_counted_for_its_parent(agent: str, backwards: bool, tmp_path: Path) -> None:
    jobs = jobs_in(home_of(agent, tmp_path / "home"))
    store = store_of(tmp_path / "store", *([job] for job in (reversed(jobs) if backwards else jobs)))
    ledger = read_ledger(store, PriceTable())
    total, answered = add_up(ledger.rows()), json.loads((FORKS / agent / "answered.json").read_bytes())
    assert not ledger.collisions
    counted = {(row.input_tokens, row.output_tokens) for row in ledger.rows() if row.is_response}
    assert counted <= {tuple(tokens) for tokens in answered.values()} and len(counted) == total.responses, "each response counts once"
    if agent not in UNRECORDED:
        assert (total.input_tokens, total.output_tokens) == tuple(map(sum, zip(*answered.values(), strict=True)))
    for case in (case for case in CASES.values() if case.agent == agent):
        child = info_of(store, case.child)
        rows = [row for row in ledger.rows() if row.session_id == child.id]
        own = [
            text
            for seq, text in speech_in(store[child.id].read())
            if text.startswith("Answer") and not lineage_of(store, case.child).is_copied(seq)
        ]
        numbers = sorted(int(re.sub(r"\D", "", text)) for text in own)
        assert sum(row.input_tokens or 0 for row in rows) == sum(1000 + number for number in numbers)
        assert sum(row.output_tokens or 0 for row in rows) == sum(10 + number for number in numbers)


@pytest.mark.parametrize("name", ["claude-stream-json/fork", "claude-control/fork"])
def test_the_list_counts_a_fork_without_its_copies(name: str, tmp_path: Path) -> None:
    """Parent and fork answered 100 and 20 tokens each; the fork reports 200 and 40 as its own, and both together made 300 and 60."""
    recording = next(one for one in recordings() if one.id == name)
    unpack(recording.path / "disk", tmp_path / "home")
    store = store_of(tmp_path / "store", jobs_in(tmp_path / "home"))
    store.update_index()
    totals = [info.usage for info in ForkTotals(store).replace(store.sessions()) if info.usage is not None]
    assert [(total.input_tokens, total.output_tokens) for total in totals] == [(100, 20), (100, 20)]
    assert sum(total.cost_usd or 0 for total in totals) == pytest.approx(0.0016)


# ---- growth


def lines_of(job: Job) -> list[bytes]:
    return Path(job.streams[0].path).read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("name", ["claude --fork-session", "qwen --fork-session", "pi --fork", "codex thread/fork"])
@pytest.mark.parametrize("order", [*permutations(("parent", "child"))])
def test_both_may_grow_after_the_fork(name: str, order: tuple[str, str], tmp_path: Path) -> None:
    """First the parent has half of what the fork copies, and the fork only copies; then both grow, one after the other."""
    case = CASES[name]
    home = home_of(case.agent, tmp_path / "home")
    jobs = {job.session_id: job for job in jobs_in(home)}
    child, parent = (next(job for id, job in jobs.items() if id.startswith(one)) for one in (case.child, case.parent))
    whole = {"child": lines_of(child), "parent": lines_of(parent)}
    copied = next((number for number, line in enumerate(whole["child"]) if (case.own or "").encode() in line and b"ueue" not in line), 0)
    parts = {"child": whole["child"][: max(copied, 2)], "parent": whole["parent"][: len(whole["parent"]) // 3]}
    paths = {"child": Path(child.streams[0].path), "parent": Path(parent.streams[0].path)}
    for who, path in paths.items():
        path.write_bytes(b"".join(parts[who]))
    store = store_of(tmp_path / "store", [child, parent])
    for who in order:
        paths[who].write_bytes(b"".join(whole[who]))
        store = store_of(tmp_path / "store", [child, parent])
    check(store, case)
    lineage = lineage_of(store, case.child)
    paths["parent"].write_bytes(b"".join(whole["parent"]) + whole["parent"][-1])
    again = lineage_of(store_of(tmp_path / "store", [parent]), case.child)
    assert (again.seq, again.copied) == (lineage.seq, lineage.copied)


# ---- what links, and what does not


def forked_claude(folder: Path, *, child: Callable[[str], str] = str, parent: Callable[[str], str] = str) -> JsonlStore:
    """The fork and its parent, each with its text changed."""
    home = home_of("claude", folder / "home")
    case = CASES["claude --fork-session"]
    jobs = [job for job in jobs_in(home) if job.session_id.startswith((case.child, case.parent))]
    for job in jobs:
        path, change = Path(job.streams[0].path), child if job.session_id.startswith(case.child) else parent
        path.write_text(change(path.read_text()))
    return store_of(folder / "store", jobs)


def without(pattern: str) -> Callable[[str], str]:
    return lambda text: "".join(line for line in text.splitlines(keepends=True) if not re.search(pattern, line))


def until(pattern: str) -> Callable[[str], str]:
    return lambda text: text[: re.search(pattern, text).start()].rpartition("\n")[0] + "\n"  # type: ignore[union-attr]


def test_the_same_texts_with_other_ids_are_no_copy(tmp_path: Path) -> None:
    def renamed(text: str) -> str:
        return re.sub(r"(\"(?:uuid|parentUuid|id|requestId|tool_use_id)\": ?\"(?:toolu_|msg_|req_)?)(.)", r"\1f0\2", text)

    store = forked_claude(tmp_path, child=renamed)
    lineage = lineage_of(store, "claude-6eda58a8")
    assert lineage.kind == "fork" and lineage.session_id is None, "the file shows that it is a copy, but not of which session"


def test_a_session_that_begins_with_all_of_another_one_is_its_fork(tmp_path: Path) -> None:
    """Without the queue's entries, nothing in the file shows that it is a copy."""
    store = forked_claude(tmp_path, child=without("queue-operation"), parent=until("retry .fail429-a"))
    check(store, CASES["claude --fork-session"])
    assert info_of(store, "claude-ef247229").lineage is None


def test_of_two_that_only_begin_alike_neither_is_the_parent(tmp_path: Path) -> None:
    store = forked_claude(tmp_path, child=without("queue-operation"))
    assert [info.lineage for info in store.sessions()] == [None, None]


def test_a_fork_of_a_fork_comes_from_the_nearer_one(tmp_path: Path) -> None:
    """Its file has the copies of both, and its own prompt: the parent is the one that shares more."""
    home, case = home_of("claude", tmp_path / "home"), CASES["claude --fork-session"]
    jobs = [job for job in jobs_in(home) if job.session_id.startswith((case.child, case.parent))]
    path = next(Path(job.streams[0].path) for job in jobs if job.session_id.startswith(case.child))
    text = path.read_text()
    own = json.loads(next(line for line in text.splitlines() if '"on the fork"' in line and '"type":"user"' in line))
    own |= {"uuid": "0a0a0a0a-0000-4000-8000-000000000000", "timestamp": "2026-11-17T09:34:41.100Z", "promptId": "p"}
    own["message"]["content"] = "on the second fork"
    name = "0b0b0b0b-0000-4000-8000-000000000000"
    grandchild = text.replace("2026-11-17T08:34:41.0", "2026-11-17T09:34:41.0") + json.dumps(own, separators=(",", ":")) + "\n"
    path.with_name(f"{name}.jsonl").write_text(grandchild.replace(path.stem, name))
    for order in permutations(jobs_in(home)):
        chosen = [[job] for job in order if job.session_id.startswith((case.child, case.parent, "claude-0b0b"))]
        root = tmp_path / "-".join(job.session_id[7:9] for (job,) in chosen)
        if root.exists():
            continue
        store = store_of(root, *chosen)
        assert info_of(store, "claude-0b0b").parent_session_id == info_of(store, case.child).id
        check(store, case)


def test_a_parent_that_was_recorded_again_is_found_again(tmp_path: Path) -> None:
    case = CASES["qwen --fork-session"]
    jobs = jobs_in(home_of("qwen", tmp_path / "home"))
    store = store_of(tmp_path / "store", jobs)
    parent = info_of(store, case.parent)
    store.delete(parent.id)
    check(store_of(tmp_path / "store", jobs), case)


def test_an_old_codex_fork_without_ids_counts_once(tmp_path: Path) -> None:
    """It repeats its parent's file after its own first line; here neither turns nor messages have ids."""
    recording = next(one for one in recordings() if one.id == "codex-acp/multi_turn")
    unpack(recording.path / "disk", tmp_path / "home")
    (job,) = jobs_in(tmp_path / "home")
    path = Path(job.streams[0].path)
    lines = [json.loads(line) for line in path.read_text().splitlines() if '"token_usage_record"' not in line]
    for line in lines[1:]:
        _drop_ids(line["payload"])
    meta = json.loads(json.dumps(lines[0]))
    name = "01a1e8a9-0000-7000-8000-000000000000"
    meta["payload"] |= {"id": name, "session_id": name}
    write_lines(path, lines)
    parent = store_of(tmp_path / "alone", [job])
    write_lines(path.with_name(f"rollout-2026-11-17T09-00-00-{name}.jsonl"), [meta, *lines])
    alone = add_up(read_ledger(parent, PriceTable()).rows())
    for order in permutations(jobs_in(tmp_path / "home")):
        store = store_of(tmp_path / order[0].session_id, *([one] for one in order))
        assert info_of(store, f"codex-{name}").parent_session_id == job.session_id
        both = add_up(read_ledger(store, PriceTable()).rows())
        assert alone.input_tokens > 0 and (both.input_tokens, both.output_tokens) == (alone.input_tokens, alone.output_tokens)


def _drop_ids(value: Any) -> None:
    if isinstance(value, dict):
        for name in ("id", "turn_id", "response_id", "root_turn_id"):
            value.pop(name, None)
        for item in value.values():
            _drop_ids(item)


def write_lines(path: Path, lines: list[Any]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


# ---- live sessions, forks of hansard, old logs


@pytest.mark.parametrize("files_first", [False, True])
def test_a_live_fork_and_its_file_have_one_parent(files_first: bool, tmp_path: Path) -> None:
    """hansard recorded the parent and the fork; their files add the copies, in the place where they belong."""
    recording: Recording = next(one for one in recordings() if one.id == "claude-stream-json/fork")
    unpack(recording.path, tmp_path / "home")
    files = jobs_in(tmp_path / "home" / "disk")
    wires = [job for part in recording.streams if part.main for job in discover([tmp_path / "home" / part.name], part.format).jobs]
    groups = [[job] for job in ([*files, *wires] if files_first else [*wires, *files])]
    store = store_of(tmp_path / "store", *groups)
    infos = store.sessions()
    (child,) = [info for info in infos if info.lineage is not None]
    assert len(infos) == 2 and child.parent_session_id in {info.id for info in infos}
    total = add_up(read_ledger(store, PriceTable()).rows())
    assert (total.input_tokens, total.output_tokens) == (200, 40)
    assert len(list(SearchQuery(store, "Original", types=["user_message"]))) == 1
    texts = [text for _, text in speech_in(event for event in store[child.id].conversation() if not event.replay)]
    assert texts.index("Original heron-fork line.") < texts.index("Forked heron-fork line.")


def test_a_fork_that_hansard_makes_has_its_lineage(tmp_path: Path) -> None:
    store = store_of(tmp_path / "store", jobs_in(home_of("pi", tmp_path / "home")))
    case = CASES["pi --fork"]
    parent = info_of(store, case.parent)
    seq = next(seq for seq, text in speech_in(store[parent.id].read()) if text == case.shared)
    name, _ = fork(store, parent.id, seq, "a fork")
    lineage = lineage_of(store, name)
    assert (lineage.kind, lineage.session_id, lineage.seq, lineage.log_id) == ("fork", parent.id, seq, parent.log_id)
    assert all(lineage.is_copied(seq) for seq, _ in speech_in(store[name].read()))
    assert {hit.session_id for hit in SearchQuery(store, f'"{case.shared}"')} == {parent.id}
    ledger = read_ledger(store, PriceTable())
    assert not [row for row in ledger.rows() if row.session_id == name]
    assert find_parents(store, {name, parent.id}) == []


@pytest.mark.parametrize("by_hansard", [False, True])
def test_a_fork_that_is_normalized_again_keeps_its_parent(by_hansard: bool, tmp_path: Path) -> None:
    store = store_of(tmp_path / "store", jobs_in(home_of("pi", tmp_path / "home")))
    parent = info_of(store, CASES["pi --fork"].parent)
    name = fork(store, parent.id, None, None)[0] if by_hansard else info_of(store, CASES["pi --fork"].child).id
    before, after = lineage_of(store, name), lineage_of(store, renormalize(store, name, "again"))
    assert (after.session_id, after.log_id) == (parent.id, parent.log_id)
    texts = [
        [text for seq, text in speech_in(store[one].read()) if lineage.is_copied(seq)]
        for one, lineage in ((name, before), ("again", after))
    ]
    assert texts[0] == texts[1] != []


def test_a_fork_of_version_0_1_still_names_its_parent(root: Path) -> None:
    store = JsonlStore(root)
    store.create("parent")
    store.create("child", parent_session_id="parent", parent_seq=1)
    lineage = lineage_of(store, "child")
    assert (info_of(store, "child").parent_session_id, lineage.seq, lineage.copied) == ("parent", 1, ())


def test_a_checkpoint_repeats_the_lineage(tmp_path: Path) -> None:
    """The list reads only the two ends of a log."""
    store = store_of(tmp_path / "store", jobs_in(home_of("pi", tmp_path / "home")))
    child, lineage = info_of(store, "pi-01a1e8a2"), lineage_of(store, "pi-01a1e8a2")
    log = store[child.id]
    counts = [replace(event, id="", seq=0, original=None) for event in log.read() if isinstance(event, UsageEvent)]
    for _ in range(3):
        log.append([replace(event) for event in counts * 300])
    log.release()
    assert lineage_of(JsonlStore(tmp_path / "store"), "pi-01a1e8a2") == lineage


def test_the_conversation_shows_the_parent_where_the_copies_end(tmp_path: Path) -> None:
    store = store_of(tmp_path / "store", jobs_in(home_of("qwen", tmp_path / "home")))
    case = CASES["qwen --fork-session"]
    events = list(store[info_of(store, case.child).id].conversation())
    place = next(place for place, event in enumerate(events) if _is_found(event))
    texts = [event.payload.text for event in events[:place] if isinstance(event, UserMessage | AssistantDone)]
    later = [event.payload.text for event in events[place:] if isinstance(event, UserMessage | AssistantDone)]
    assert texts[-1] == case.shared and later[0] == case.own


def _is_found(event: Event) -> bool:
    return isinstance(event, SessionLifecycle) and event.payload.subtype == PARENT_FOUND


def test_a_database_has_the_same_lineage(database: Database, tmp_path: Path) -> None:
    jobs = jobs_in(home_of("pi", tmp_path / "home"))
    assert all(outcome.problem is None for outcome, _ in import_all(database.address, jobs, True, 0, 1))
    with open_store(database.address) as store:
        check(store, CASES["pi --fork"])
        assert {hit.session_id for hit in SearchQuery(store, '"Answer-pi-7"')} == {info_of(store, "pi-01a1e8a1").id}
