"""Compressed logs: the same bytes, read by everything as before, whole at every moment, and much smaller."""
# pyright: basic

import asyncio
import errno
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from hansard.errors import LogLocked, LogRefused, SessionExists, StoreError, UnknownSession, UsageError
from hansard.events import Event, assistant_chunk, user_message
from hansard.store import JsonlStore
from hansard.store.files import compressed as packed
from hansard.store.files import compression
from tests.proof import SEED, Figures, amount, proves
from tests.recorded import normalize_recording, recordings
from tests.store.test_access import another_writer

Say = Callable[..., list[Event]]


@pytest.fixture
def small_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames of 4 KiB, so that a short log has many."""
    monkeypatch.setattr(packed, "FRAME_BYTES", 4096)
    monkeypatch.setattr(compression, "FRAME_BYTES", 4096)


@pytest.fixture
def closed(root: Path) -> JsonlStore:
    """A log of a thousand records that nobody is writing, about 300 kB."""
    chance = random.Random(1)
    with JsonlStore(root) as store:
        for number in range(100):
            store["s"].append([*(assistant_chunk(text="é" * chance.randrange(40)) for _ in range(9)), user_message(text=f"{number}")])
    return store


@pytest.fixture
def zst(log: Path) -> Path:
    return log.with_name("events.jsonl.zst")


def everything(store: JsonlStore) -> list[object]:
    head = store["s"].head()
    cursors = [*range(0, head.seq, 97), head.seq - 1, head.seq]
    return [
        head,
        list(store["s"].records()),
        [list(store["s"].read(after, 3)) for after in cursors],
        store["s"].tail(20),
        store.sessions(),
        store["s"].verify(),
        asyncio.run(followed(store, head.seq)),
    ]


async def followed(store: JsonlStore, until: int) -> list[int]:
    found: list[int] = []
    async for record in store["s"].follow_records():
        found.append(record.seq)
        if record.seq == until:
            break
    return found


@proves("D-18")
def test_everything_reads_a_compressed_log_as_before(closed: JsonlStore, log: Path, zst: Path, small_frames: None) -> None:
    before, text, time = everything(closed), log.read_bytes(), log.stat().st_mtime_ns
    made = closed["s"].compress()
    assert not log.exists() and zst.stat().st_mode & 0o777 == 0o600 and zst.stat().st_mtime_ns == time
    assert (log.parent / "lock").read_bytes() == b""  # and if it had been killed, nobody would take that for a writer's end
    assert (made.bytes, made.stored) == (len(text), zst.stat().st_size)
    assert everything(closed) == before
    assert everything(JsonlStore(closed.root)) == before
    assert not closed["s"].compress().changed
    assert closed["s"].expand().changed and not closed["s"].expand().changed
    assert log.read_bytes() == text and not zst.exists()
    assert everything(closed) == before


@proves("D-18")
@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 8192, 100_000])
def test_every_length_comes_back(size: int, root: Path, log: Path, zst: Path, small_frames: None) -> None:
    data = random.Random(size).randbytes(size)
    log.parent.mkdir(parents=True)
    log.write_bytes(data)
    store = JsonlStore(root)
    store["s"].compress()
    assert not log.exists()
    if shutil.which("zstdcat"):
        assert subprocess.run(["zstdcat", zst], capture_output=True, check=True).stdout == data
    assert packed.zstd.decompress(zst.read_bytes()) == data
    store["s"].expand()
    assert log.read_bytes() == data


LONG = [recording for recording in recordings() if json.loads((recording.path / "meta.json").read_bytes()).get("scenario") == "long"]
LARGE = 100_000
"""Shorter logs have little to save."""


@proves("D-18")
@pytest.mark.slow
def test_long_sessions_are_at_least_eight_times_smaller(root: Path, figure: Figures) -> None:
    text = stored = 0
    ratios: list[float] = []
    with JsonlStore(root) as store:
        for recording in LONG:
            session = recording.id.replace("/", "-")
            for event in normalize_recording(recording, recording.streams[0].format)[0]:
                event.id, event.seq, event.session_id, event.timestamp = "", 0, "", -1
                store[session].append([event])  # one by one, as they come from an agent
            store[session].release()
            before = (root / session / "events.jsonl").read_bytes()
            made = store[session].compress()
            assert packed.zstd.decompress((root / session / "events.jsonl.zst").read_bytes()) == before
            assert store[session].verify() == []
            text, stored = text + made.bytes, stored + made.stored
            if made.bytes > LARGE:
                ratios.append(made.bytes / made.stored)
    assert len(LONG) > 10 and len(ratios) >= 8
    figure("times smaller", text / stored)
    figure("times smaller, the least", min(ratios))
    figure("long sessions", len(LONG))


@proves("D-18")
def test_a_place_in_a_compressed_log_costs_a_few_frames(store: JsonlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (packed, compression):
        monkeypatch.setattr(module, "FRAME_BYTES", 32 * 1024)
    for _ in range(40):
        store["s"].append([assistant_chunk(text="x" * 1000) for _ in range(100)])
    store.close()
    store["s"].compress()
    real, unpacked = packed._decompress, []
    monkeypatch.setattr(packed, "_decompress", lambda data, size: unpacked.append(size) or real(data, size))
    head = store["s"].head()
    assert head.bytes // (32 * 1024) > 130
    for after in (0, 1, head.seq // 3, head.seq // 2, head.seq - 2):
        unpacked.clear()
        [event] = store["s"].read(after, 1)
        assert event.seq == after + 1
        assert len(unpacked) < 30  # both ends, the bisection, and one block of 256 KiB


def test_who_writes_a_compressed_log_unpacks_it_first(closed: JsonlStore, log: Path, zst: Path, say: Say) -> None:
    before, head = log.read_bytes(), closed["s"].head().seq
    closed["s"].compress()
    closed["s"].append([])
    assert closed["s"].append(say("more"))[0].seq == head + 1
    assert log.read_bytes().startswith(before) and not zst.exists()
    closed.close()
    closed["s"].compress()
    assert [event.seq for event in closed["s"].read(head - 1)] == [head, head + 1, head + 2]
    assert closed["s"].verify() == []
    with pytest.raises(SessionExists):
        closed.create("s")


def test_a_log_of_several_files_is_compressed_file_by_file(store: JsonlStore, say: Say, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store["s"].append(say("a"))

    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "lost")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        store["s"].append([user_message(text="b")])
    store["s"].append(say("c"))
    store.close()
    before = list(store["s"].records())
    store["s"].compress()
    assert sorted(path.name for path in log.parent.glob("events*")) == ["events.2.jsonl.zst", "events.jsonl.zst"]
    assert list(store["s"].records()) == before and store["s"].verify() == []
    store["s"].append(say("d"))  # only the last one is written to
    assert sorted(path.name for path in log.parent.glob("events*")) == ["events.2.jsonl", "events.jsonl.zst"]
    store.close()
    assert [event.payload.text for event in store["s"].read(types=["assistant_chunk", "user_message"])] == ["a", "b", "c", "d"]
    assert store["s"].verify() == []


def test_a_log_that_is_being_written_is_refused(store: JsonlStore, say: Say, log: Path) -> None:
    with another_writer(store.root) as writer:
        for change in (store["s"].compress, store["s"].expand):
            with pytest.raises(LogLocked, match=str(writer.pid)):
                change()
        writer.kill()
        writer.wait()
    assert store.abandoned() == ["s"]
    store["s"].compress()
    assert store.abandoned() == ["s"]  # that its writer was killed is still to be said in it
    store["s"].append(say(1))
    with pytest.raises(LogLocked):
        store["s"].compress()
    with pytest.raises(UnknownSession):
        store["t"].compress()


def test_a_follower_goes_on_while_the_log_is_compressed_and_unpacked(closed: JsonlStore, say: Say) -> None:
    head = closed["s"].head().seq

    async def run() -> None:
        found: list[int] = []

        async def follow() -> None:
            async for record in closed["s"].follow_records(head - 3):
                found.append(record.seq)  # noqa: PERF401 (seen while it grows)

        async def seen(seq: int) -> None:
            async with asyncio.timeout(60):
                while not found or found[-1] < seq:
                    await asyncio.sleep(0.01)

        following = asyncio.create_task(follow())
        await seen(head)
        closed["s"].compress()
        await asyncio.sleep(0.1)
        closed["s"].append(say("more"))
        await seen(head + 1)
        closed.close()
        closed["s"].compress()
        await asyncio.sleep(0.1)
        closed["s"].expand()
        await asyncio.sleep(0.1)
        closed["s"].append(say("and more"))
        await seen(head + 3)
        assert not following.done() and found == list(range(head - 2, head + 4))
        following.cancel()

    asyncio.run(run())


# ---- whole at every moment


@proves("D-18")
@pytest.mark.slow
def test_kill_9_while_a_log_changes_its_form_loses_nothing(tmp_path: Path, figure: Figures) -> None:
    script = Path(__file__).with_name("kill_packing.py")
    command = [sys.executable, str(script), str(tmp_path), str(amount(40, 1000)), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    for wrong in ("lost", "changed", "damaged"):
        assert result[wrong] == 0, result
    assert any("unfinished" in left for left in result["left"]), "no kill met a log that was changing"
    figure("kills while its form changes", result["kills"])
    figure("lost", result["lost"])


@proves("D-18")
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("name", ["open", "write", "fsync", "rename", "unlink", "pread"])
def test_any_call_that_fails_leaves_the_log_whole(
    name: str, number: int, store: JsonlStore, say: Say, log: Path, monkeypatch: pytest.MonkeyPatch, small_frames: None
) -> None:
    store["s"].append(say(60))
    store.close()
    before, real = log.read_bytes(), getattr(os, name)
    for change in (store["s"].compress, store["s"].expand):
        for nth in range(1, 400):
            calls = 0

            def call(*args: object, nth: int = nth, **options: object) -> object:
                nonlocal calls
                calls += 1
                if calls == nth:
                    raise OSError(number, os.strerror(number))
                return real(*args, **options)

            with monkeypatch.context() as patch:
                patch.setattr(os, name, call)
                try:
                    change()
                except StoreError:
                    pass
            assert b"".join(record.line + b"\n" for record in store["s"].records()) == before
            if calls < nth:
                break
        else:
            raise AssertionError(f"{name} never ended")
    store["s"].expand()
    assert log.read_bytes() == before and [path.name for path in log.parent.glob("events*")] == ["events.jsonl"]


def test_of_two_forms_the_plain_one_counts_and_the_other_goes(closed: JsonlStore, log: Path, zst: Path, say: Say) -> None:
    """A kill between the two steps leaves both."""
    before = log.read_bytes()
    closed["s"].compress()
    kept = zst.read_bytes()
    for change in (lambda: closed["s"].append(say(1)), lambda: closed["s"].expand()):
        log.write_bytes(before)
        zst.write_bytes(kept)
        (log.parent / "events.jsonl.unfinished").write_bytes(b"{")
        (log.parent / "events.jsonl.zst.unfinished").write_bytes(b"{")
        assert b"".join(record.line + b"\n" for record in closed["s"].records()) == before
        change()
        closed.close()
        assert log.read_bytes().startswith(before) and not zst.exists()
    closed["s"].compress()
    assert zst.exists() and not log.exists()


# ---- damage


@proves("D-11", "D-18")
@pytest.mark.slow
def test_every_flipped_bit_of_a_compressed_log_is_noticed_or_changes_nothing(root: Path, zst: Path, say: Say, figure: Figures) -> None:
    with JsonlStore(root) as store:
        store["s"].append(say(100))
    before = list(store["s"].records())
    store["s"].compress()
    whole = zst.read_bytes()
    bits = range(0, len(whole) * 8, amount(7, 1))
    harmless = 0
    for bit in bits:
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        zst.write_bytes(data)
        if not [finding for finding in store["s"].verify() if finding.is_damage]:
            harmless += 1
            assert list(store["s"].records()) == before, f"bit {bit}"
        list(store["s"].read())
    figure("bits flipped of a compressed log", len(bits))
    figure("of these without effect", harmless)


def test_a_damaged_frame_reads_as_nul_and_everything_else_is_there(closed: JsonlStore, log: Path, zst: Path, small_frames: None) -> None:
    text = log.read_bytes()
    closed["s"].compress()
    data = bytearray(zst.read_bytes())
    at = data.index(b"\x28\xb5\x2f\xfd", len(data) // 2)
    data[at + 20] ^= 1
    zst.write_bytes(data)
    whole = {number for number, line in enumerate(text.split(b"\n"), 1)}
    found = [event.seq for event in closed["s"].read() if event.seq]
    assert found == sorted(found) and len(whole) - 60 < len(found) < len(whole)
    assert {"frame", "gap", "checksum"} <= {finding.kind for finding in closed["s"].verify()}
    for change in (lambda: closed["s"].append([]), lambda: closed["s"].expand()):
        with pytest.raises(LogRefused, match="damaged"):
            change()
        closed.close()
    assert zst.read_bytes() == data and not log.exists()


@pytest.mark.parametrize("cut", [1, 9, 100])
def test_a_compressed_log_without_its_table_is_read_all_the_same(cut: int, closed: JsonlStore, zst: Path, small_frames: None) -> None:
    before = [(record.seq, record.offset) for record in closed["s"].records()]
    closed["s"].compress()
    os.truncate(zst, zst.stat().st_size - cut)
    assert [(record.seq, record.offset) for record in closed["s"].records()] == before
    assert [finding.kind for finding in closed["s"].verify()] == ["frame"]


def test_a_compressed_log_that_was_cut_is_read_as_far_as_it_goes(closed: JsonlStore, zst: Path, small_frames: None) -> None:
    closed["s"].compress()
    data = zst.read_bytes()
    for cut in range(0, len(data), len(data) // 40):
        zst.write_bytes(data[:cut])
        found = [event.seq for event in closed["s"].read() if event.seq]
        assert found == list(range(1, len(found) + 1))
        assert closed["s"].verify()
    assert len(found) > 500


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("/etc/hostname"), os.mkfifo, os.mkdir], ids=["link", "fifo", "dir"])
def test_what_is_not_a_regular_file_is_refused(make: Callable[[Path], object], closed: JsonlStore, log: Path, zst: Path, say: Say) -> None:
    log.unlink()
    make(zst)
    for door in (
        lambda: closed["s"].head(),
        lambda: closed["s"].append(say(1)),
        lambda: closed["s"].expand(),
        lambda: closed["s"].verify(),
    ):
        with pytest.raises(LogRefused):
            door()
        closed.close()


def test_a_file_that_unpacks_to_out_of_all_proportion_is_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bomb: 10 GB of zeros in a few hundred kilobytes. A log that repeats itself is read all the same."""
    monkeypatch.setattr(packed, "FREE_BYTES", 1024 * 1024)
    bomb, log = tmp_path / "bomb.zst", tmp_path / "log.zst"
    bomb.write_bytes(packed.zstd.compress(bytes(50_000_000)))
    text = b"".join(b'{"type":"assistant_chunk","seq":%d,"payload":{"text":"again"}}\n' % seq for seq in range(50_000))
    log.write_bytes(packed.zstd.compress(text))
    with log.open("rb") as raw, packed.decompress_stream(raw) as file:
        assert file.read() == text
    with bomb.open("rb") as raw, packed.decompress_stream(raw) as file, pytest.raises(UsageError, match="no log"):
        file.read()
    with subprocess.Popen(["cat", str(log)], stdout=subprocess.PIPE) as piped:
        assert piped.stdout is not None
        with packed.decompress_stream(cast("BinaryIO", piped.stdout)) as file:
            assert file.read() == text
