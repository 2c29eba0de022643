"""What is synced when, and what happens when syncing or writing fails: nothing acknowledged is lost, nothing half stays."""
# pyright: basic

import errno
import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hansard.errors import AppendFailed, StoreError
from hansard.events import (
    Event,
    SessionLifecycle,
    configuration_change,
    permission_request,
    permission_response,
    process,
    session_lifecycle,
    turn_end,
    user_message,
)
from hansard.store import JsonlStore
from hansard.store.files import writer
from tests.proof import Figures, proves

Say = Callable[..., list[Event]]

INTERVAL = writer.SYNC_INTERVAL_SECONDS


@pytest.fixture(autouse=True)
def nothing_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that syncs later comes into none of the calls that a test counts. A test that is about it sets `INTERVAL` again."""
    monkeypatch.setattr(writer, "SYNC_INTERVAL_SECONDS", 3600)


SYNCED: dict[str, Event] = {
    "user_message": user_message(text=""),
    "permission_request": permission_request(request_id="1", options=[], input_hash=""),
    "permission_response": permission_response(request_id="1", decision="allow"),
    "configuration_change": configuration_change(subtype="set_model"),
    "turn_end": turn_end(status="completed"),
    "closed": session_lifecycle(subtype="closed"),
    "exited": process(event="exited"),
    "killed": process(event="killed"),
}


class Disk:
    """The calls that reach the disk, in order; ``fail`` may refuse one by returning an errno."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.own: list[str] = []
        """Those of this thread."""
        self._thread = threading.get_ident()
        self.count: Counter[str] = Counter()
        self.fail: Callable[[str, int], int] = lambda name, count: 0
        for name in ("write", "fdatasync", "fsync", "ftruncate", "rename", "open"):
            real = (lambda fd: None) if "sync" in name else getattr(os, name)  # what is promised is the call; the disk may rest
            monkeypatch.setattr(os, name, self._watched(name, real))

    def clear(self) -> None:
        """Count from here on."""
        self.calls.clear()
        self.own.clear()
        self.count.clear()

    def _watched(self, name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **options: object) -> object:
            if name != "open":
                self.calls.append(name)
                if threading.get_ident() == self._thread:
                    self.own.append(name)
            self.count[name] += 1
            number = self.fail(name, self.count[name])
            if number:
                raise OSError(number, os.strerror(number))
            return real(*args, **options)

        return call


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@proves("D-15")
@pytest.mark.parametrize("event", SYNCED.values(), ids=SYNCED.keys())
def test_what_must_not_be_lost_is_synced_before_it_is_acknowledged(event: Event, store: JsonlStore, say: Say, disk: Disk) -> None:
    store["s"].append(say(1))
    disk.clear()
    store["s"].append([event])
    assert disk.calls == ["write", "fdatasync"]


@proves("D-15")
def test_the_rest_is_synced_within_a_second(store: JsonlStore, say: Say, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "SYNC_INTERVAL_SECONDS", INTERVAL)
    assert INTERVAL < 1
    store.create("s")
    disk.clear()
    store["s"].append([*say(3), process(event="stderr", text="x")])
    assert disk.own == ["write"]
    deadline = time.monotonic() + 60  # a machine that is busy with other things may be late
    while "fdatasync" not in disk.calls and time.monotonic() < deadline:
        time.sleep(0.01)
    assert disk.calls == ["write", "fdatasync"]


@proves("D-15")
def test_always_means_every_append(root: Path, say: Say, disk: Disk) -> None:
    with JsonlStore(root, fsync="always") as store:
        store["s"].append(say(1))
        disk.clear()
        store["s"].append(say(5))
        store["s"].append(say(1))
        assert disk.calls == ["write", "fdatasync"] * 2


@proves("D-15")
def test_a_new_log_is_synced_with_the_folders_it_is_in(store: JsonlStore, disk: Disk) -> None:
    store.create("s")
    assert disk.calls.count("fsync") == 2 and disk.calls[-1] == "fdatasync"


def test_much_that_waits_is_synced_at_once(store: JsonlStore, say: Say, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MAX_UNSYNCED_BYTES", 1000)
    store["s"].append(say(1))
    disk.clear()
    store["s"].append(say("x" * 2000))
    assert disk.calls == ["write", "fdatasync"]


def test_closing_syncs_what_waits(store: JsonlStore, say: Say, disk: Disk) -> None:
    store["s"].append(say(2))
    disk.clear()
    store.close()
    assert "fdatasync" in disk.calls


# ---- a sync that fails


def first(name: str, number: int = errno.EIO) -> Callable[[str, int], int]:
    return lambda call, count: number if (call, count) == (name, 1) else 0


def always(*names: str) -> Callable[[str, int], int]:
    return lambda call, count: errno.EIO if call in names else 0


def texts(store: JsonlStore) -> list[str]:
    return [event.payload.text for event in store["s"].read(types=["assistant_chunk", "user_message"])]


@proves("D-05")
def test_after_a_failed_sync_the_log_goes_on_in_a_new_file(store: JsonlStore, say: Say, disk: Disk, log: Path) -> None:
    store["s"].append(say("a"))
    disk.clear()
    disk.fail = first("fdatasync")
    store["s"].append([user_message(text="b")])
    second = log.with_name("events.2.jsonl")
    assert b'"text":"a"' in second.read_bytes() and b'"text":"b"' in second.read_bytes()
    assert disk.calls[:6] == ["write", "fdatasync", "write", "fsync", "rename", "fsync"]
    store["s"].append([*say("c"), turn_end(status="completed")])
    assert texts(store) == ["a", "b", "c"]
    assert [event.seq for event in store["s"].read()] == list(range(1, store["s"].head().seq + 1))
    assert store["s"].verify() == []
    assert stat_mode(second) == 0o600


def stat_mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_failed_sync_is_said_in_the_log(store: JsonlStore, disk: Disk) -> None:
    store.create("s")
    disk.clear()
    disk.fail = first("fdatasync")
    store["s"].append([user_message(text="b")])
    notice = list(store["s"].read())[-1]
    assert isinstance(notice, SessionLifecycle) and notice.payload.subtype == "store_degraded"
    assert "Input/output error" in (notice.payload.reason or "")


def test_a_descriptor_that_failed_is_never_synced_again(store: JsonlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create("s")
    asked: list[int] = []

    def fdatasync(fd: int) -> None:
        asked.append(os.fstat(fd).st_ino)
        if len(asked) == 1:
            raise OSError(errno.EIO, "lost")

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    for _ in range(3):
        store["s"].append([user_message(text="")])
    assert asked[0] not in asked[1:]


@proves("D-05")
def test_what_the_first_file_lost_is_read_from_the_second(store: JsonlStore, say: Say, disk: Disk, log: Path) -> None:
    store["s"].append([user_message(text="safe")])
    kept = log.stat().st_size
    store["s"].append(say("a", "b", "c"))
    disk.clear()
    disk.fail = first("fdatasync")
    store["s"].append([user_message(text="d")])
    store.close()
    log.write_bytes(log.read_bytes()[:kept] + b"\0" * 300)  # what the failed sync may have left
    assert texts(store) == ["safe", "a", "b", "c", "d"]
    for after in range(store["s"].head().seq):
        assert [event.seq for event in store["s"].read(after) if event.seq] == list(range(after + 1, store["s"].head().seq + 1))
    store["s"].append([*say("e"), turn_end(status="completed")])
    assert texts(store)[-1] == "e"
    assert not {"gap", "order", "duplicate", "checksum"} & {finding.kind for finding in store["s"].verify()}


def test_a_log_can_lose_its_footing_again_and_again(store: JsonlStore, say: Say, disk: Disk) -> None:
    store.create("s")
    for number in range(5):
        disk.clear()
        disk.fail = first("fdatasync")
        store["s"].append([*say(f"{number}"), user_message(text=f"{number}")])
        store["s"].append(say("."))
    store.close()
    with JsonlStore(store.root) as again:
        again["s"].append(say("end"))
        assert texts(again) == [text for number in range(5) for text in (f"{number}", f"{number}", ".")] + ["end"]
        assert len(list((store.root / "s").glob("events*.jsonl"))) == 6
        assert again["s"].verify() == []


def test_a_sync_that_fails_behind_is_mended_behind(
    store: JsonlStore, say: Say, disk: Disk, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SYNC_INTERVAL_SECONDS", INTERVAL)
    store["s"].append(say("a"))
    disk.clear()
    disk.fail = first("fdatasync")
    store["s"].append(say("b"))
    deadline = time.monotonic() + 60
    while not log.with_name("events.2.jsonl").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    store["s"].append(say("c"))
    assert texts(store) == ["a", "b", "c"]


@proves("D-05")
def test_where_no_new_file_can_be_made_nothing_is_acknowledged_and_nothing_is_lost(
    store: JsonlStore, say: Say, disk: Disk, log: Path
) -> None:
    store["s"].append(say("a"))
    before = log.read_bytes()
    disk.fail = always("fdatasync", "fsync")
    for _ in range(3):
        with pytest.raises(AppendFailed):
            store["s"].append([user_message(text="b")])
    assert log.read_bytes() == before
    disk.fail = lambda name, count: 0
    store["s"].append([user_message(text="c")])
    assert texts(store) == ["a", "c"]
    assert [event.seq for event in store["s"].read()] == list(range(1, store["s"].head().seq + 1))


# ---- a write that fails


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_failed_write_leaves_the_log_as_it_was(number: int, store: JsonlStore, say: Say, disk: Disk, log: Path) -> None:
    store["s"].append(say("a"))
    before = log.read_bytes()
    disk.clear()
    disk.fail = first("write", number)
    with pytest.raises(AppendFailed, match=os.strerror(number)):
        store["s"].append(say("b"))
    assert log.read_bytes() == before
    assert store["s"].append(say("c"))[0].seq == 3
    assert texts(store) == ["a", "c"]


@pytest.mark.parametrize("short", range(1, 8))
def test_short_writes_are_gone_on_with(short: int, store: JsonlStore, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, memoryview(data)[:short]))
    store["s"].append(say("a", "b"))
    assert texts(store) == ["a", "b"]
    assert store["s"].verify() == []


@pytest.mark.parametrize("room", [0, 1, 100, 250, 400])
def test_a_batch_that_fits_only_in_part_is_taken_back(
    room: int, store: JsonlStore, say: Say, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store["s"].append(say("a"))
    before = log.read_bytes()
    left = [room]

    def write(fd: int, data: bytes) -> int:
        count = real(fd, memoryview(data)[: left[0]]) if left[0] else 0
        if not left[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left[0] -= count
        return count

    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(AppendFailed):
            store["s"].append(say("b", "c", "d"))
    assert log.read_bytes() == before
    store["s"].append(say("e"))
    assert texts(store) == ["a", "e"]
    assert store["s"].verify() == []


def test_a_tail_that_cannot_be_cut_off_is_closed_and_reported(
    store: JsonlStore, say: Say, disk: Disk, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store["s"].append(say("a"))
    real = os.write
    disk.fail = always("ftruncate")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: real(fd, data[:20]) if len(data) > 20 and not isinstance(data, memoryview) else 0)
        with pytest.raises(AppendFailed):
            store["s"].append(say("b"))
    disk.fail = lambda name, count: 0
    store["s"].append(say("c"))
    assert texts(store) == ["a", "c"]
    assert [finding.kind for finding in store["s"].verify()] == ["torn-tail"]


FAILING = ("write", "fdatasync", "fsync", "rename", "ftruncate", "open")
NUMBERS = (errno.EIO, errno.ENOSPC, errno.EINTR)


def session(store: JsonlStore, say: Say) -> list[str]:
    """A short session with a kill in it; what was acknowledged."""
    acknowledged: list[str] = []
    for number in range(6):
        try:
            store["s"].append([*say(f"{number}"), user_message(text=f"{number}!")])
            acknowledged += [f"{number}", f"{number}!"]
            if number == 2:
                store.close()
                with (store.root / "s" / "events.jsonl").open("ab") as file:
                    file.write(b'{"torn')
        except StoreError:
            pass
    return acknowledged


def whole(store: JsonlStore, acknowledged: list[str], case: str) -> None:
    assert texts(store) == acknowledged, case
    seqs = [event.seq for event in store["s"].read() if event.seq]
    assert seqs == list(range(1, len(seqs) + 1)), case
    assert not {finding.kind for finding in store["s"].verify()} - {"torn-tail"}, case


@proves("D-05")
@pytest.mark.slow
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("number", NUMBERS, ids=errno.errorcode.get)
def test_any_failing_call_loses_nothing_that_was_acknowledged(
    number: int, lasting: bool, tmp_path: Path, say: Say, disk: Disk, figure: Figures
) -> None:
    """Fail the nth call of each kind, for every n, once, or from then on until the disk is well again."""
    cases = 0
    for name in FAILING:
        for nth in range(1, 200):
            with JsonlStore(tmp_path / f"{name}{nth}") as store:
                disk.clear()
                disk.fail = lambda call, count, name=name, nth=nth: (
                    number if call == name and (count >= nth if lasting else count == nth) else 0
                )
                acknowledged = session(store, say)
                met = disk.count[name] >= nth
                disk.fail = lambda call, count: 0
                store["s"].append(say("end"))
                whole(store, [*acknowledged, "end"], f"{name} {nth}")
            cases += 1
            if not met:
                break
        else:
            raise AssertionError(f"{name} has no end")
    figure("calls that failed", cases)


@proves("D-05")
@pytest.mark.slow
def test_any_short_write_before_a_failure_leaves_no_half_record(
    tmp_path: Path, say: Say, disk: Disk, monkeypatch: pytest.MonkeyPatch, figure: Figures
) -> None:
    """The nth write takes 1 to 7 bytes, and the one after it none: as the kernel does on a full disk."""
    real, cases = os.write, 0
    for short in range(1, 8):
        for nth in range(1, 200):
            count = 0

            def write(fd: int, data: bytes, short: int = short, nth: int = nth) -> int:
                nonlocal count
                count += 1
                if count == nth:
                    return real(fd, memoryview(data)[:short])
                if count == nth + 1:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return real(fd, data)

            with JsonlStore(tmp_path / f"{short}-{nth}") as store:
                with monkeypatch.context() as patch:
                    patch.setattr(os, "write", write)
                    acknowledged = session(store, say)
                store["s"].append(say("end"))
                whole(store, [*acknowledged, "end"], f"{short} bytes of write {nth}")
            cases += 1
            if count < nth:
                break
    figure("short writes", cases)


@proves("D-06")
def test_a_full_device_is_an_error_each_time_and_writing_resumes(
    store: JsonlStore, say: Say, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store["s"].append(say("a"))
    real, expected = os.write, ["a"]
    for number in range(20):
        before = log.read_bytes()
        with open("/dev/full", "wb", buffering=0) as full, monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda fd, data, full=full: real(full.fileno(), data))
            for _ in range(3):
                with pytest.raises(AppendFailed, match="No space left"):
                    store["s"].append([*say("x"), user_message(text="y")])
        assert log.read_bytes() == before
        store["s"].append(say(f"{number}"))
        expected.append(f"{number}")
    assert texts(store) == expected and store["s"].verify() == []


@proves("D-06")
def test_a_limit_on_file_size_is_an_error_and_writing_resumes_below_it(tmp_path: Path) -> None:
    script = """
import resource, sys
from hansard.errors import AppendFailed
from hansard.events import assistant_chunk
from hansard.store import JsonlStore
store = JsonlStore(sys.argv[1])
store["s"].append([])
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
good = failed = 0
for _ in range(20):
    try:
        store["s"].append([assistant_chunk(text="x" * 150), assistant_chunk(text="y")])
        good += 2
    except AppendFailed:
        failed += 1
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store["s"].append([assistant_chunk(text="end")])
print(good, failed, len(list(store["s"].read(types=["assistant_chunk"]))), store["s"].verify())
"""
    good, failed, found, findings = run(script, tmp_path).split()
    assert int(failed) > 0 and int(found) == int(good) + 1 and findings == "[]"


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB."""
    place = tmp_path / "small"
    place.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("mounting a small tmpfs takes root; the limit on file size and injected ENOSPC test the same code")
    yield place
    subprocess.run(["umount", place], check=True)


@proves("D-06")
def test_a_full_disk_is_an_error_and_writing_resumes_when_there_is_room(full_disk: Path, say: Say, figure: Figures) -> None:
    ballast = full_disk / "ballast"
    acknowledged = failed = 0
    with JsonlStore(full_disk / "store") as store:
        for number in range(20):
            session = f"s{number}"
            store[session].append(say(1))
            ballast.write_bytes(b"x" * 30_000)
            said = 0
            with pytest.raises(AppendFailed, match="No space left"):  # noqa: PT012 (the disk fills up while we write)
                for _ in range(100):
                    said += len(store[session].append(say("x" * 700, "y" * 700)))
            ballast.unlink()
            store[session].append(say("end"))
            store[session].release()
            assert sum(event.type == "assistant_chunk" for event in store[session].read()) == said + 2
            assert store[session].verify() == []
            acknowledged, failed = acknowledged + said, failed + 1
            store.delete(session)
    figure("appends that found the disk full", failed)


def run(script: str, root: Path) -> str:
    done = subprocess.run(["python3", "-c", script, str(root / "store")], capture_output=True, text=True, timeout=60, env=python_env())
    assert done.returncode == 0, done.stderr
    return done.stdout


def python_env() -> dict[str, str]:
    import sys

    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


# ---- several hands


def test_threads_may_append_to_one_session(store: JsonlStore, say: Say) -> None:
    def work(name: str) -> None:
        for number in range(50):
            store["s"].append([*say(f"{name}{number}"), user_message(text=name)])

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [event.seq for event in store["s"].read()] == list(range(1, 402))
    assert store["s"].verify() == []


def test_a_session_that_is_released_while_it_is_written_is_an_error(store: JsonlStore, say: Say) -> None:
    def events() -> Iterator[Event]:
        yield from say(1)

    store["s"].append(events())
    held = store.writers.get("s")  # what another thread may still have in its hands
    store["s"].release()
    with pytest.raises(StoreError, match="released"):
        held.append(say(1))


def test_a_notice_that_cannot_be_written_does_not_undo_what_was_acknowledged(store: JsonlStore, say: Say, disk: Disk) -> None:
    store.create("s")
    disk.clear()
    disk.fail = lambda call, count: errno.EIO if (call, count) in (("fdatasync", 1), ("write", 3)) else 0
    store["s"].append([user_message(text="a")])
    disk.fail = lambda call, count: 0
    store["s"].append(say("b"))
    kinds = [event.payload.subtype if isinstance(event, SessionLifecycle) else event.type for event in store["s"].read()]
    assert kinds == ["created", "user_message", "assistant_chunk", "store_degraded"]


@pytest.mark.parametrize("step", ["write", "fsync", "rename", "folder"])
def test_a_new_file_that_could_not_be_finished_is_not_taken_for_the_log(
    step: str, store: JsonlStore, say: Say, disk: Disk, log: Path
) -> None:
    store["s"].append(say("a"))
    disk.clear()
    broken = {"write": ("write", 2), "fsync": ("fsync", 1), "rename": ("rename", 1), "folder": ("fsync", 2)}[step]
    disk.fail = lambda call, count: errno.EIO if (call, count) in (("fdatasync", 1), broken) else 0
    with pytest.raises(AppendFailed):
        store["s"].append([user_message(text="b")])
    assert [path.name for path in log.parent.glob("events*")] == ["events.jsonl"]
    assert texts(store) == ["a"]
    store["s"].append(say("c"))
    assert texts(store) == ["a", "c"]
