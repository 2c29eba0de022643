"""Appending: every event is stamped, all of a batch is written or nothing, and the log says who wrote it."""
# pyright: basic

import json
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from msgspec import Raw

from hansard.errors import ForeignEvent, HansardError, InvalidSessionId, SessionExists, UsageError
from hansard.events import SCHEMA_VERSION, Event, SessionLifecycle, assistant_chunk, session_lifecycle, turn_end
from hansard.events.codec import from_builtins
from hansard.events.originals import wrap
from hansard.store import JsonlStore, Store, batch, checkpoint, open_store

Say = Callable[..., list[Event]]


def test_seq_grows_by_one_from_the_header_on(store: Store, say: Say) -> None:
    assert [event.seq for event in store["s"].append(say(3))] == [2, 3, 4]
    assert [event.seq for event in store["s"].append(say(2))] == [5, 6]
    assert [event.seq for event in store["s"].read()] == [1, 2, 3, 4, 5, 6]


def test_the_log_begins_with_who_wrote_it(store: Store) -> None:
    head = store.create("s", title="A talk", format="codex-exec-json", parent_session_id="p")
    [first] = store["s"].read()
    assert isinstance(first, SessionLifecycle)
    assert (first.seq, first.payload.subtype, first.payload.schema_version) == (1, "created", SCHEMA_VERSION)
    assert first.payload.log_id == head.log_id
    assert (first.payload.title, first.payload.format, first.payload.parent_session_id) == ("A talk", "codex-exec-json", "p")


def _checkpoint(event: Event) -> tuple[int, str, str | None]:
    """Where an event stands, what it is, and which title it says if it is a checkpoint."""
    if event.type != "session_lifecycle" or event.payload.subtype != "checkpoint":
        return event.seq, event.type, None
    return event.seq, "checkpoint", event.payload.detail.get("title", "")


@pytest.mark.parametrize("run", [1_000, 256 * 1024])
def test_checkpoints_stand_where_they_are_due_however_large_the_batches_are(
    store: Store, run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "MAX_OPEN_RECORDS", 7)
    monkeypatch.setattr(checkpoint, "MAX_OPEN_BYTES", 3_000)
    monkeypatch.setattr(batch, "_MAX_RUN_BYTES", run)
    luck = random.Random(5)
    events: list[Event] = [assistant_chunk(text="x" * luck.choice([1, 1, 1, 500, 4_000])) for _ in range(150)]
    for event in luck.sample(events, 100):
        event.original = Raw(json.dumps("y" * luck.choice([1, 1, 700])).encode())
    for _ in range(10):
        events.insert(luck.randrange(150), luck.choice([turn_end(status="completed"), session_lifecycle(subtype="renamed", title="new")]))
    for event in events:
        store["one-by-one"].append([event])
    stamped = store["at-once"].append(events)
    one, other = [[_checkpoint(event) for event in store[name].read()] for name in ("one-by-one", "at-once")]
    assert one == other and len(one) > 190 and "new" in {title for _, _, title in one}
    ids = {event.id for event in stamped}
    assert [event for event in store["at-once"].read() if event.id in ids] == stamped
    assert store["one-by-one"].verify() == store["at-once"].verify()


def test_a_created_session_gets_an_id_and_cannot_be_created_again(either: Store, place: str) -> None:
    head = either.create()
    UUID(head.session_id)
    with pytest.raises(SessionExists):
        either.create(head.session_id)
    with open_store(place) as other, pytest.raises(HansardError, match=r"written by process|already exists"):
        other.create(head.session_id)


def test_a_session_that_exists_is_not_held_by_a_failed_create(either: Store, place: str, say: Say) -> None:
    either["s"].append(say(1))
    either["s"].release()
    with open_store(place) as other:
        with pytest.raises(SessionExists):
            other.create("s")
        either["s"].append(say(1))


def test_an_unknown_header_field_is_refused_before_anything_is_made(store: Store) -> None:
    with pytest.raises(TypeError):
        store.create("s", colour="red")
    assert store.sessions() == []


def test_what_is_missing_is_stamped_and_what_is_there_is_kept(store: Store) -> None:
    bare, full = store["s"].append(
        [assistant_chunk(text=""), from_builtins({"type": "assistant_chunk", "id": "x", "timestamp": 0, "payload": {"text": ""}})]
    )
    assert UUID(bare.id).version == 7 and bare.timestamp > 0
    assert (full.id, full.timestamp, full.session_id) == ("x", 0, "s")


def test_the_callers_events_are_left_alone(store: Store) -> None:
    event = assistant_chunk(text="twice")
    assert store["a"].append([event, event])[1].seq == 3
    assert store["b"].append([event])[0].seq == 2
    assert (event.seq, event.id, event.session_id) == (0, "", "")


def test_an_event_of_another_session_is_refused_loudly(store: Store, say: Say) -> None:
    [event] = store["a"].append(say(1))
    with pytest.raises(ForeignEvent):
        store["b"].append([assistant_chunk(text="good"), event])
    assert [event.seq for event in store["b"].read()] == [1]


def test_a_bad_session_id_is_refused_before_any_path_is_built(store: JsonlStore, say: Say) -> None:
    with pytest.raises(InvalidSessionId):
        store["../x"].append(say(1))
    assert not store.root.exists()


def test_an_empty_batch_writes_nothing(store: Store, say: Say) -> None:
    store["s"].append(say(1))
    before = store["s"].head()
    assert store["s"].append([]) == []
    assert store["s"].head() == before


def test_a_batch_is_one_write(store: JsonlStore, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    store["s"].append(say(1))
    writes: list[int] = []
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: writes.append(len(data)) or real(fd, data))
    store["s"].append([*say(50), turn_end(status="completed"), *say(50)])
    assert len(writes) == 1


def test_one_line_is_one_record_of_plain_json(store: Store) -> None:
    text = "".join(map(chr, [0, 9, 10, 13, 0x7F, 0x85, 0x2028, 0x2029, 0xD83D, 0x1F600]))
    store["s"].append([assistant_chunk(text=text)])
    lines = "\n".join(record.line.decode() for record in store["s"].records()).splitlines()
    assert len(lines) == 2
    assert json.loads(lines[1])["payload"]["text"] == text
    assert not any(char < " " or char == "\x7f" for char in lines[1])
    assert [event.payload.text for event in store["s"].read(1)] == [text]


def test_an_original_with_a_line_end_is_refused(store: Store) -> None:
    event = assistant_chunk(text="")
    event.original = Raw(b'{\n"a":1}')
    with pytest.raises(UsageError, match="wrap"):
        store["s"].append([event])
    event.original = wrap(b'{\n"a":1}')
    [stored] = store["s"].append([event])
    assert store["s"].original(stored) == b'{\n"a":1}'


def test_an_unknown_type_is_written_as_it_is(store: Store) -> None:
    store["s"].append([from_builtins({"type": "from_the_future", "payload": {"x": 1}, "new": 2})])
    [line] = [json.loads(record.line) for record in store["s"].records(1)]
    assert (line["type"], line["payload"], line["new"], line["seq"], line["sessionId"]) == ("from_the_future", {"x": 1}, 2, 2, "s")


def test_a_checkpoint_follows_every_turn_end(store: Store, say: Say) -> None:
    store["s"].append([*say(2), turn_end(status="completed"), *say(1), turn_end(status="error")])
    subtypes = [event.payload.subtype if isinstance(event, SessionLifecycle) else event.type for event in store["s"].read()]
    assert subtypes == [
        "created",
        "assistant_chunk",
        "assistant_chunk",
        "turn_end",
        "checkpoint",
        "assistant_chunk",
        "turn_end",
        "checkpoint",
    ]
    assert store["s"].verify() == []


def test_an_agents_own_checkpoint_is_not_one_of_the_log(place: str, say: Say) -> None:
    for _ in range(2):  # the second writer goes on from what it takes for the last checkpoint
        with open_store(place) as store:
            own = session_lifecycle(subtype="checkpoint", detail={"sha256": "of the agent's"})
            own.source = "qwen"
            store["s"].append([*say(2), own, *say(1), turn_end(status="completed"), *say(1), own])
    with open_store(place) as store:
        assert store["s"].verify() == []


def test_a_checkpoint_comes_at_least_every_thousand_records(store: Store, say: Say) -> None:
    store["s"].append(say(1500))
    for _ in range(15):
        store["s"].append(say(100))
    checkpoints = [event.seq for event in store["s"].read(types=["session_lifecycle"])][1:]
    assert checkpoints == [1001, 2001, 3001]
    assert store["s"].verify() == []


def test_checkpoints_are_a_chain_across_restarts(place: str, say: Say) -> None:
    for _ in range(5):
        with open_store(place) as store:
            store["s"].append([*say(3), turn_end(status="completed"), *say(1)])
    with open_store(place) as store:
        sinces = [event.payload.detail["since"] for event in store["s"].read(types=["session_lifecycle"]) if event.seq > 1]
        assert sinces == [0, 6, 8, 13, 15, 20, 22, 27, 29, 34]  # one at the end of the turn, one when it was closed
        assert store["s"].verify() == []


def test_a_checkpoint_can_be_checked_with_a_shell(store: JsonlStore, say: Say, log: Path) -> None:
    store["s"].append([*say(2), turn_end(status="completed"), *say(2), turn_end(status="completed")])
    command = f"head -n 4 {log} | sha256sum; sed -n 5,8p {log} | sha256sum"
    shell = subprocess.run(command, shell=True, capture_output=True, text=True).stdout.split()[::2]
    hashes = [event.payload.detail["sha256"] for event in store["s"].read(types=["session_lifecycle"]) if event.seq > 1]
    assert shell == hashes
