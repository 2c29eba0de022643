"""One session, brought from one store to another: byte for byte, from where the target is, and nothing is overwritten."""

from __future__ import annotations

import asyncio
import os
from hashlib import sha256
from pathlib import Path

import pytest

from hansard.errors import Fenced, LogForked
from hansard.events import assistant_chunk, turn_end, user_message
from hansard.events.originals import wrap
from hansard.store import JsonlStore, Store, open_store
from hansard.store.transfer import copy as moving
from hansard.store.transfer.copy import SessionCopy, compare, copy_session, digest
from tests.proof import amount, proves
from tests.store.test_damage import PLAIN
from tests.store.test_damage import damage as damage_log


@pytest.fixture
def stores(places):
    with open_store(places.source) as source, open_store(places.target) as target:
        yield source, target


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(moving, "CHUNK_LINES", 7)


def lines(store: Store, session_id: str) -> list[bytes]:
    return [record.line for record in store[session_id].records()]


def damage(store: Store, session_id: str) -> list[str]:
    return [finding.message for finding in store[session_id].verify()]


@proves("M-01")
def test_a_copy_has_the_same_lines_and_blobs_and_verifies(stores, fill):
    source, target = stores
    fill(source, "s")
    done = copy_session(source, target, "s")
    assert (done.state, done.events, done.seq, done.blobs) == ("copied", source["s"].head().seq, source["s"].head().seq, 1)
    assert lines(target, "s") == lines(source, "s")
    assert digest(target, "s") == digest(source, "s")
    assert target["s"].head() == source["s"].head()
    assert damage(target, "s") == damage(source, "s") == []
    assert copy_session(source, target, "s").state == "unchanged"


@proves("M-01")
def test_a_large_original_comes_along(stores):
    source, target = stores
    frame = b'{"large":"' + b"y" * 2_000_000 + b'"}'
    event = assistant_chunk(text="z")
    event.original = wrap(frame)
    source["s"].append([event])
    source["s"].release()
    assert copy_session(source, target, "s").blobs == 1
    found = next(event for event in target["s"].read() if event.original is not None)
    assert target["s"].original(found) == frame


def test_the_sum_is_that_of_the_file(folders, fill):
    with JsonlStore(folders.source) as source:
        fill(source, "s")
    data = (Path(folders.source) / "s" / "events.jsonl").read_bytes()
    assert digest(source, "s").sha256 == sha256(data).hexdigest()


def test_what_comes_later_is_added_and_nothing_else(stores, fill):
    source, target = stores
    fill(source, "s")
    before = copy_session(source, target, "s")
    source["s"].append([user_message(text="more")])
    source["s"].release()
    done = copy_session(source, target, "s")
    assert (done.state, done.events) == ("continued", source["s"].head().seq - before.seq)
    assert lines(target, "s") == lines(source, "s")


def test_a_session_that_is_being_written_comes_up_to_its_head(stores, fill):
    source, target = stores
    source["s"].append([assistant_chunk(text=str(number)) for number in range(50)])
    assert copy_session(source, target, "s", live=True).live
    assert lines(target, "s") == lines(source, "s")
    source["s"].append([assistant_chunk(text="more")])
    source["s"].release()
    copy_session(source, target, "s")
    assert lines(target, "s") == lines(source, "s")
    assert damage(target, "s") == []


def test_nobody_is_taken_for_the_writer_of_a_copy(stores, fill):
    source, target = stores
    fill(source, "s")
    steps = SessionCopy(source, target, "s").steps()
    next(steps)
    next(steps)
    assert target.abandoned() == []
    assert not target.sessions()[0].live


@proves("M-03")
def test_another_log_of_that_name_is_refused_and_untouched(stores, fill):
    source, target = stores
    fill(source, "s")
    fill(target, "s")
    before = lines(target, "s")
    done = copy_session(source, target, "s")
    assert (done.state, "another log" in str(done.problem)) == ("failed", True)
    assert lines(target, "s") == before


@proves("M-03")
def test_a_log_that_went_another_way_is_refused_and_untouched(stores, fill):
    source, target = stores
    fill(source, "s")
    copy_session(source, target, "s")
    for store in stores:
        store["s"].append([user_message(text="what now")])
        store["s"].release()
    before = lines(target, "s")
    for _ in range(2):
        done = copy_session(source, target, "s")
        assert (done.state, "another way" in str(done.problem)) == ("failed", True)
        source["s"].append([user_message(text="and now")])
        source["s"].release()
    assert lines(target, "s") == before


def test_a_target_that_went_on_is_left_as_it_is(stores, fill):
    source, target = stores
    fill(source, "s")
    copy_session(source, target, "s")
    target["s"].append([user_message(text="on")])
    target["s"].release()
    assert copy_session(source, target, "s").state == "ahead"
    assert copy_session(target, source, "s").state == "continued"
    assert lines(source, "s") == lines(target, "s")


def test_what_differs_is_noticed(stores, fill, tmp_path):
    source, target = stores
    fill(source, "s")
    copy_session(source, target, "s")
    compare(source, target, "s", source["s"].head().seq)
    with JsonlStore(tmp_path / "other") as other:
        fill(other, "s")
        with pytest.raises(LogForked, match="not the same"):
            compare(source, other, "s", source["s"].head().seq)


def test_one_that_somebody_writes_at_the_target_is_not_touched(stores, places, fill):
    source, target = stores
    fill(source, "s")
    copy_session(source, target, "s")
    source["s"].append([user_message(text="more")])
    source["s"].release()
    target["s"].append([])
    before = lines(target, "s")
    with open_store(places.target) as other:
        done = copy_session(source, other, "s")
    assert (done.state, lines(target, "s")) == ("failed", before)


def test_a_missing_blob_is_said_and_the_rest_comes(folders, fill):
    with JsonlStore(folders.source) as source, JsonlStore(folders.target) as target:
        fill(source, "s")
        (blob,) = (Path(folders.source) / "s" / "blobs").iterdir()
        blob.write_bytes(b"rotten")
        done = copy_session(source, target, "s")
        assert (done.state, done.missing) == ("copied", [blob.name])
        assert lines(target, "s") == lines(source, "s")


def test_a_session_that_somebody_copies_to_at_that_moment_is_not_said_to_be_deleted(database, tmp_path, fill, monkeypatch):
    from hansard.store.postgres import blobs

    with JsonlStore(tmp_path) as source, open_store(database.address) as store, open_store(database.address) as other:
        fill(source, "s")
        copy_session(source, store, "s")
        source["s"].append([user_message(text="more")])
        source["s"].release()
        take = blobs.acquire

        def late(*arguments, **options):
            taken = take(*arguments, **options)
            assert copy_session(source, other, "s").state == "continued"
            return taken

        monkeypatch.setattr(blobs, "acquire", late)
        with pytest.raises(Fenced):
            store.delete("s")
        assert digest(store, "s") == digest(source, "s")


# ---- damage, and what a crash leaves


@proves("M-01")
def test_damage_comes_along_byte_for_byte(folders, fill):
    with JsonlStore(folders.source) as source, JsonlStore(folders.target) as target:
        fill(source, "s")
        log = Path(folders.source) / "s" / "events.jsonl"
        rows = log.read_bytes().split(b"\n")
        rows[5], rows[6] = b"\xff\xfe garbage", b"\0" * 30
        rows[20] = rows[20][:-10]
        rows.insert(21, b"not a record either")
        log.write_bytes(b"\n".join(rows))
        done = copy_session(source, target, "s")
        assert done.state == "copied"
        assert (Path(folders.target) / "s" / "events.jsonl").read_bytes() == log.read_bytes()
        assert copy_session(source, target, "s").state == "unchanged"


@proves("M-01")
def test_every_damage_comes_there_and_back_as_readers_show_it(folders, database, figure):
    """Through a database and into a folder again. What readers do not show, such as a second copy of a record, is not there any more."""
    with JsonlStore(folders.source) as source, open_store(database.address) as between, JsonlStore(folders.target) as target:
        for case in PLAIN:
            name = case["id"]
            said = [assistant_chunk(text=str(number)) for number in range(15)]
            source[name].append([*said, turn_end(status="completed"), *said[:2]])
            size = source[name].head().bytes
            source[name].release()
            log = Path(folders.source) / name / "events.jsonl"
            os.truncate(log, size)  # as a killed writer leaves it, with the twenty records that the cases speak of
            damage_log(log, case["ops"])
            if not source[name].head().bytes:
                continue
            for here, there in ((source, between), (between, target)):
                assert (name, copy_session(here, there, name).problem) == (name, None)
                assert digest(here, name) == digest(there, name), name
                assert copy_session(here, there, name).state == "unchanged", name
            figure("logs", 1)


def test_a_torn_tail_comes_once_and_the_log_goes_on_after_it(folders, fill):
    with JsonlStore(folders.source) as source, JsonlStore(folders.target) as target:
        fill(source, "s")
        log, copy = (Path(place) / "s" / "events.jsonl" for place in folders)
        with log.open("ab") as file:
            file.write(b'{"type":"assistant_chunk","id"')
        for _ in range(2):
            copy_session(source, target, "s")
            assert copy.read_bytes() == log.read_bytes() + b"\n"
        source["s"].append([user_message(text="on")])  # says that the line was torn
        source["s"].release()
        copy_session(source, target, "s")
        assert copy.read_bytes() == log.read_bytes()


@proves("M-02")
def test_a_copy_that_was_cut_anywhere_goes_on_there(folders, fill, figure):
    """What a killed copy leaves is a beginning of the log, up to any byte."""
    with JsonlStore(folders.source) as source:
        source["s"].append([assistant_chunk(text="é" * number) for number in range(3)])
        source["s"].release()
        log, copy = (Path(place) / "s" / "events.jsonl" for place in folders)
        whole = log.read_bytes()
        copy.parent.mkdir(parents=True)
        ends = [number for number, byte in enumerate(whole) if byte == 10]
        cuts = {*range(0, len(whole), amount(13, 1)), *(end + near for end in ends for near in (-1, 0, 1))} - {len(whole)}
        for cut in sorted(cuts):
            copy.write_bytes(whole[:cut])
            with JsonlStore(folders.target) as target:
                copy_session(source, target, "s")
                assert copy.read_bytes() == whole, cut
        figure("places", len(cuts))


def test_a_compressed_copy_is_unpacked_only_when_there_is_more(folders, fill):
    with JsonlStore(folders.source) as source, JsonlStore(folders.target) as target:
        fill(source, "s")
        copy_session(source, target, "s")
        target["s"].compress()
        packed = Path(folders.target) / "s" / "events.jsonl.zst"
        assert (copy_session(source, target, "s").state, packed.exists()) == ("unchanged", True)
        source["s"].compress()
        assert (copy_session(source, target, "s").state, packed.exists()) == ("unchanged", True)
        source["s"].append([user_message(text="more")])
        source["s"].release()
        assert (copy_session(source, target, "s").state, packed.exists()) == ("continued", False)
        assert lines(target, "s") == lines(source, "s")


def test_followers_of_the_copy_see_it_grow(stores, fill):
    source, target = stores
    fill(source, "s", 1)
    copy_session(source, target, "s")

    async def follow() -> list[int]:
        seen: list[int] = []
        async for record in target["s"].follow_records(target["s"].head().seq):
            seen.append(record.seq)
            if record.seq == source["s"].head().seq:
                return seen
        return seen

    async def both() -> list[int]:
        task = asyncio.create_task(follow())
        await asyncio.sleep(0.05)
        source["s"].append([user_message(text="more")])
        source["s"].release()
        await asyncio.to_thread(copy_session, source, target, "s")
        return await asyncio.wait_for(task, 60)

    before = source["s"].head().seq
    assert asyncio.run(both()) == list(range(before + 1, source["s"].head().seq + 1))
