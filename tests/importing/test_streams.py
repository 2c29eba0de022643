"""One conversation, several streams: the wire of an agent and its file are imported in either order, and are one session."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hansard.adapters import adapter_for
from hansard.adapters.base import Context
from hansard.adapters.framing import frames
from hansard.adapters.normalize import normalize
from hansard.cli import main
from hansard.cli.inputs import session_of
from hansard.cli.verbs import import_
from hansard.cli.verbs.audit import audit_session
from hansard.errors import AmbiguousSession
from hansard.events import (
    AssistantDone,
    Event,
    ToolCall,
    ToolResult,
    TurnEnd,
    UserMessage,
    is_main_agent,
    process,
    session_lifecycle,
)
from hansard.events.replays import without_replays
from hansard.events.summary import AgentSession
from hansard.importing.discovery import discover
from hansard.importing.identity import Identities
from hansard.importing.job import Job
from hansard.importing.repair import merge_doubles
from hansard.importing.run import import_all
from hansard.importing.watch import watch
from hansard.store import JsonlStore, SessionInfo
from hansard.store.ids import TimeOrderedIds
from tests.imported import original
from tests.proof import LONG, SEED, amount
from tests.recorded import FOLDER, Recording, recordings, unpack
from tests.renormalized import check_again

SEVERAL_ON_ONE_WIRE = {"opencode-sse/session_ops", "claude-control/slash", "claude-agent-sdk/slash", "claude-acp/slash"}
"""Recordings in which one wire carries several sessions: the texts of the others are not in the first one's file."""
OTHER_TURNS = {
    "claude-stream-json/compaction",
    "claude-stream-json-partial/compaction",
    "claude-stream-json/subagent_background",
    "codex-acp/compaction",
    "codex-app-server/queue",
}
"""Recordings in which the wire has turns without any text or id that is also in the file: a compaction, a notice of a task."""
ONE_IN = amount(1, 1, quick=6)
"""`make check` takes one recording in so many of each transport."""
SIGNS = re.compile(r"\W+")


@cache
def recorded_twice() -> dict[str, list[Recording]]:
    """The recordings that have a wire and what the agent kept on disk, by transport."""
    found: dict[str, list[Recording]] = {}
    for recording in recordings():
        if (recording.path / "disk").is_dir() and recording.path.name != "long":
            found.setdefault(recording.path.parent.name, []).append(recording)
    return found


def wires_of(recording: Recording, home: Path) -> list[Job]:
    """One job for each part of the wire."""
    parts = [stream for stream in recording.streams if stream.main]
    return [job for part in parts for job in discover([home / part.name], part.format).jobs]


def files_of(home: Path) -> list[Job]:
    """The sessions that the agent kept on disk."""
    return discover([home / "disk"], None).jobs


def store_of(root: Path, *jobs: Job) -> JsonlStore:
    for job in jobs:
        (result,) = [outcome for outcome, _ in import_all(root, [job], True, 0, 1)]
        assert result.problem is None, result
    return JsonlStore(root)


def conversation(store: JsonlStore, session: str) -> Iterator[tuple[str, str]]:
    """What was said and done, each fact once, in order."""
    for event in without_replays(store[session].conversation()):
        if is_main_agent(event) and (fact := spoken(event)) is not None:
            yield fact


def spoken(event: Event) -> tuple[str, str] | None:
    match event:
        case UserMessage(payload=said) if said.author == "human":
            return "prompt", letters(said.text)
        case AssistantDone(payload=said) if letters(said.text):
            return "text", letters(said.text)
        case ToolCall():
            return "call", event.payload.tool_call_id.rpartition("/")[2]
        case ToolResult():
            return "result", event.payload.tool_call_id.rpartition("/")[2]
        case TurnEnd():
            return "turn", event.payload.status
        case _:
            return None


def letters(text: str) -> str:
    return SIGNS.sub("", text)


def identified(root: Path, jobs: list[Job]) -> list[Job]:
    return Identities(JsonlStore(root)).assign(jobs)


def problems(recording: Recording, work: Path) -> list[str]:
    """Imports wire and files into one store, in either order, and compares with what each says alone."""
    home = work / "home"
    unpack(recording.path, home)
    wires, files = wires_of(recording, home), files_of(home)
    named = {job.agent_session for job in identified(work / "none", wires)} - {None}
    files = [job for job in identified(work / "none", files) if job.agent_session in named]
    if not files:
        return []
    only_wires, only_files = store_of(work / "wire", *wires), store_of(work / "file", *files)
    found: list[str] = []
    for order, jobs in {"wire first": [*wires, *files], "file first": [*files, *wires]}.items():
        store = store_of(work / order, *jobs)
        wrong = list(session_problems(store, named))
        for info in store.sessions():
            if info.agent_sessions:  # a later part of a wire may not name its session
                merged, wire, file = list(conversation(store, info.id)), alone(only_wires, info), alone(only_files, info)
                wrong += [f"{info.id}: {problem}" for problem in differences(merged, wire, file, recording.id in OTHER_TURNS)]
        wrong += native_problems(work / order, jobs)
        if LONG or order == "wire first":
            wrong += [problem for info in store.sessions() if (problem := made_anew(store, info.id)) is not None]
        again = [outcome.state for outcome, _ in import_all(work / order, jobs, True, 0, 1)]
        wrong += [f"a second import: {again}"] if set(again) != {"unchanged"} else []
        wrong += [f"{info.id}: {finding}" for info in store.sessions() for finding in store[info.id].verify() if finding.is_damage]
        if recording.id not in SEVERAL_ON_ONE_WIRE or not all("said" in problem for problem in wrong):
            found += [f"{order}: {problem}" for problem in wrong]
    return found


def made_anew(store: JsonlStore, session: str) -> str | None:
    """Why a session is another one when it is normalized again; None if it is the same."""
    try:
        check_again(store, session)
    except AssertionError as problem:
        return f"{session} normalized again: {str(problem)[:300]}"
    return None


def session_problems(store: JsonlStore, named: set[AgentSession | None]) -> Iterator[str]:
    for identity in named:
        same = [info.id for info in store.sessions() if identity in info.agent_sessions]
        if len(same) != 1:
            yield f"{identity} is in {same}"


def alone(store: JsonlStore, info: SessionInfo) -> list[tuple[str, str]]:
    """What a store with only one kind of streams has of the same session."""
    found = sorted(other.id for other in store.sessions() if set(other.agent_sessions) & set(info.agent_sessions))
    return [fact for name in found for fact in conversation(store, name)]


def differences(
    merged: list[tuple[str, str]], wire: list[tuple[str, str]], file: list[tuple[str, str]], turns_differ: bool
) -> Iterator[str]:
    whole = "".join(text for kind, text in merged if kind == "text")
    for kind, text in [*wire, *file]:
        if kind == "text" and text not in whole:
            yield f"not said: {text[:40]}"
        if kind in ("prompt", "call", "result") and (kind, text) not in merged and not shares_no_calls(wire, file):
            yield f"not said: {kind} {text[:40]}"
    once, twice = Counter(wire) | Counter(file), Counter(merged)
    for (kind, text), count in twice.items():
        if kind != "turn" and count > once[kind, text]:
            yield f"said {count} times: {kind} {text[:40]}"
    if turns_differ:
        return
    turns = [sum(kind == "turn" for kind, _ in said) for said in (merged, wire, file)]
    if turns[0] > max(turns[1:]):
        yield f"said in {turns[0]} turns, alone in {turns[1:]}"


def shares_no_calls(wire: list[tuple[str, str]], file: list[tuple[str, str]]) -> bool:
    """Whether the wire has names of its own for calls: those of the file then stand for the same calls."""
    return not {text for kind, text in wire if kind == "call"} & {text for kind, text in file if kind == "call"}


def native_problems(root: Path, jobs: list[Job]) -> Iterator[str]:
    store = JsonlStore(root)
    kept = {original(root, info.id, stream) for info in store.sessions() for stream in streams_of(store, info.id)}
    for job in jobs:
        for stream in job.streams:
            written = [Path(stream.path).read_bytes()]
            said = b"".join(frame.verbatim for frame in frames(written, adapter_for(job.format).framer()))
            if not (stream.rows or stream.document or stream.exported) and said not in kept:
                yield f"the bytes of {Path(stream.path).name} are not those of a stream"


def streams_of(store: JsonlStore, session: str) -> set[str | None]:
    return {event.stream for event in store[session].read() if event.frame is not None}


@pytest.mark.parametrize("transport", sorted(recorded_twice()))
def test_wire_and_file_of_a_conversation_are_one_session_in_either_order(transport: str, tmp_path: Path) -> None:
    found = {one.id: problems(one, tmp_path / one.path.name) for one in recorded_twice()[transport][SEED % ONE_IN :: ONE_IN]}
    assert not any(found.values()), "\n".join(f"{name}: {'; '.join(wrong)}" for name, wrong in found.items() if wrong)


# ---- single cases


def live_session(root: Path, recording: Recording, session: str) -> None:
    """A session of version 0.1 in which hansard ran an agent: events with ids of the moment, and a launch."""
    store, ids = JsonlStore(root), TimeOrderedIds()
    store.create(session, format=recording.streams[0].format)
    context = Context(ids=lambda frame, index: ids.next())
    events = list(normalize(recording.streams[0].data, recording.streams[0].format, context))
    started, exited = process(event="started"), process(event="exited")
    started.timestamp, exited.timestamp = events[0].timestamp, events[-1].timestamp
    store[session].append([session_lifecycle(subtype="launched", detail={"agent": "claude", "run": 1}), started, *events, exited])
    store.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    unpack(RECORDING.path, tmp_path / "home")
    return tmp_path / "home"


RECORDING = Recording(FOLDER / "claude-control" / "tool_ok")


def test_a_session_that_is_being_written_is_left_for_the_next_import(root: Path, home: Path) -> None:
    live_session(root, RECORDING, "mine")
    writer = JsonlStore(root)
    writer["mine"].append([])
    (busy,) = [outcome for outcome, _ in import_all(root, files_of(home), True, 0, 1)]
    assert (busy.session_id, busy.state, busy.problem) == ("mine", "in use", None)
    writer.close()
    (free,) = [outcome for outcome, _ in import_all(root, files_of(home), True, 0, 1)]
    assert (free.session_id, free.state) == ("mine", "updated")


def test_watching_reports_a_session_in_use_once_and_imports_it_later(root: Path, home: Path) -> None:
    live_session(root, RECORDING, "mine")
    writer = JsonlStore(root)
    writer["mine"].append([])
    seen: list[str] = []
    for outcome in watch(root, lambda: discover([home / "disk"], None), 600, rounds=4):
        seen.append(outcome.state)
        writer.close()
    assert seen == ["in use", "updated"]


def test_a_session_is_found_by_the_id_of_the_agent(root: Path, home: Path) -> None:
    live_session(root, RECORDING, "mine")
    (identity,) = JsonlStore(root).sessions()[0].agent_sessions
    assert session_of(root, identity.id) == session_of(root, identity.id[:8]) == "mine"
    live_session(root, RECORDING, "yours")
    with pytest.raises(AmbiguousSession, match="mine, yours"):
        session_of(root, identity.id)


def test_audit_lists_what_one_stream_reports_alone(root: Path, home: Path) -> None:
    live_session(root, RECORDING, "mine")
    import_all_of(root, files_of(home))
    reports = audit_session(root, "mine").streams
    assert set(reports) == {"first", "@claude-session"}
    assert reports["first"].shared > 0
    assert not [fact for fact in reports["@claude-session"].alone if fact.type in ("assistant_done", "tool_call", "tool_result")]


def test_a_session_that_hansard_ran_is_merged_with_its_file_again(root: Path, home: Path) -> None:
    live_session(root, RECORDING, "mine")
    import_all_of(root, files_of(home))
    check_again(JsonlStore(root), "mine")


def test_a_watching_import_merges_doubles_before_it_watches(root: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import_all_of(root, files_of(home))
    live_session(root, RECORDING, "mine")
    found: list[list[str]] = []

    def follow(*_: Any) -> int:
        found.append([info.id for info in JsonlStore(root).sessions()])
        return 0

    monkeypatch.setattr(import_, "follow", follow)
    assert main(["import", str(home / "disk"), "--repair", "--watch", "--store", str(root)]) == 0
    assert found == [["mine"]]


def test_doubles_of_version_0_1_are_merged_and_the_merge_is_on_the_record(root: Path, home: Path) -> None:
    import_all_of(root, files_of(home))
    (double,) = [info.id for info in JsonlStore(root).sessions()]
    before = original(root, double)
    live_session(root, RECORDING, "mine")
    (merged,) = merge_doubles(JsonlStore(root), files_of(home))
    assert (merged.session_id, merged.into, merged.problem) == (double, "mine", None)
    store = JsonlStore(root)
    assert [info.id for info in store.sessions()] == ["mine"]
    assert original(root, "mine", "@claude-session") == before
    noted = [event.payload.detail for event in store["mine"].read(types=("session_lifecycle",)) if event.payload.subtype == "merged"]
    assert [detail["session"] for detail in noted] == [double]
    texts = [text for kind, text in conversation(store, "mine") if kind == "text"]
    assert len(texts) == len(set(texts)) == 2
    assert [outcome.state for outcome, _ in import_all(root, files_of(home), True, 0, 1)] == ["unchanged"]


def import_all_of(root: Path, jobs: list[Job]) -> None:
    for outcome, _ in import_all(root, jobs, True, 0, 1):
        assert outcome.problem is None
