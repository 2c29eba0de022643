"""Damage: every case of ``bad-input/log-damage.jsonl``. Readers go on and say so, writers start on their own line, bytes stay."""
# pyright: basic

import asyncio
import base64
import gzip
import json
import os
import random
import stat
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hansard.errors import LogDeleted, LogRefused, LogReset, StoreError
from hansard.events import Event, RawEvent, turn_end
from hansard.store import JsonlStore
from tests.proof import LONG, SEED, Figures, proves

Say = Callable[..., list[Event]]

CASES = [json.loads(line) for line in (Path(__file__).parents[1] / "bad-input" / "log-damage.jsonl").read_bytes().split(b"\n") if line]
Lines = list[bytes]


@pytest.fixture
def closed(root: Path, say: Say) -> JsonlStore:
    """A log of 20 records, the 18th of them a checkpoint, as a writer leaves it that was killed."""
    with JsonlStore(root) as store:
        store["s"].append([*say(15), turn_end(status="completed"), *say(2)])
        left = store["s"].head()
        assert left.seq == 20
    os.truncate(root / "s" / "events.jsonl", left.bytes)
    return store


def cut(line: bytes, share: float) -> int:
    return int(len(line) * share)


def zero(lines: Lines, record: int, **op: Any) -> None:
    line = lines[record - 1]
    start, end = cut(line, op["from"]), cut(line, op["to"])
    lines[record - 1] = line[:start] + b"\0" * (end - start) + line[end:]


def splice(lines: Lines, record: int, keep: float) -> None:
    stub = lines.pop(record - 1)
    lines[record - 1] = stub[: cut(stub, keep)] + lines[record - 1]


def join(lines: Lines, after: int) -> None:
    lines[after - 1 : after + 1] = [lines[after - 1] + lines[after]]


def insert(lines: Lines, record: int, at: float, b64: str) -> None:
    line = lines[record - 1]
    lines[record - 1] = line[: cut(line, at)] + base64.b64decode(b64) + line[cut(line, at) :]


def bitflip(lines: Lines, record: int, at: float, bit: int) -> None:
    line = bytearray(lines[record - 1])
    line[cut(bytes(line), at)] ^= 1 << bit
    lines[record - 1] = bytes(line)


def swap(lines: Lines, a: int, b: int) -> None:
    lines[a - 1], lines[b - 1] = lines[b - 1], lines[a - 1]


def copy_field(lines: Lines, to: int, field: str, **op: Any) -> None:
    value = json.loads(lines[op["from"] - 1])[field]
    edit(lines, to, field, lambda _: value)


def shift_time(lines: Lines, ms: int, to: int = 20, **op: Any) -> None:
    for record in range(op["from"], to + 1):
        edit(lines, record, "timestamp", lambda time: time + ms)


def edit(lines: Lines, record: int, field: str, change: Callable[[Any], Any]) -> None:
    event = json.loads(lines[record - 1])
    event[field] = change(event[field])
    lines[record - 1] = json.dumps(event, separators=(",", ":")).encode()


BY_LINE: dict[str, Callable[..., None]] = {
    "zero_record": zero,
    "splice_record": splice,
    "remove_newline": join,
    "insert": insert,
    "bitflip": bitflip,
    "swap": swap,
    "copy_field": copy_field,
    "shift_time": shift_time,
    "duplicate": lambda lines, record: lines.insert(record, lines[record - 1]),
    "delete": lambda lines, record: lines.pop(record - 1),
    "insert_line": lambda lines, after, b64: lines.insert(after, base64.b64decode(b64)),
}
BY_FILE: dict[str, Callable[..., bytes]] = {
    "truncate_bytes": lambda data, n: data[:-n],
    "truncate_record": lambda data, record, keep: b"".join(
        [*(lines := data.splitlines(keepends=True))[: record - 1], lines[record - 1][: cut(lines[record - 1].rstrip(b"\n"), keep)]]
    ),
    "truncate_to_record": lambda data, record: b"".join(data.splitlines(keepends=True)[:record]),
    "append_bytes": lambda data, unit_b64, count: data + base64.b64decode(unit_b64) * count,
    "prepend": lambda data, b64: base64.b64decode(b64) + data,
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "transcode": lambda data, to: data.decode().encode(to),
    "gzip": lambda data: gzip.compress(data),
    "empty": lambda data: b"",
}


def damage(log: Path, ops: list[dict[str, Any]]) -> bytes:
    for op in ops:
        name, options = op["op"], {key: value for key, value in op.items() if key != "op"}
        data = log.read_bytes()
        if name in BY_LINE:
            lines = data.split(b"\n")[:-1]
            BY_LINE[name](lines, **options)
            log.write_bytes(b"\n".join(lines) + b"\n")
        else:
            log.write_bytes(BY_FILE[name](data, **options))
    return log.read_bytes()


def readable(events: list[Event]) -> list[int]:
    return [event.seq for event in events if 1 <= event.seq <= 20]


PLAIN = [case for case in CASES if all(op["op"] in BY_LINE or op["op"] in BY_FILE for op in case["ops"])]


@proves("D-10")
@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case["id"])
def test_readers_go_on_and_verify_says_what_is_wrong(case: dict[str, Any], closed: JsonlStore, log: Path) -> None:
    damage(log, case["ops"])
    expect = case["expect"]
    found = readable(list(closed["s"].read()))
    kinds = {finding.kind for finding in closed["s"].verify()}
    assert len(found) in expect.get("readable_any", [expect.get("readable")])
    assert found == sorted(found)
    assert set(expect.get("report", [])) <= kinds
    if "report_any" in expect:
        assert set(expect["report_any"]) & kinds
    if "report_if_less" in expect and len(found) < 20:
        assert set(expect["report_if_less"]) <= kinds
    if expect.get("report") == []:
        edited = {"checksum"} if case["id"].startswith("clock") else {"unsealed"}  # the edit is noticed; that the time is odd is not
        assert kinds <= edited


@proves("D-10")
@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case["id"])
def test_the_next_record_starts_on_its_own_line_and_no_byte_is_touched(
    case: dict[str, Any], closed: JsonlStore, log: Path, say: Say
) -> None:
    before = damage(log, case["ops"])
    found = readable(list(closed["s"].read()))
    if case["expect"].get("bytes_preserved"):
        with pytest.raises(LogRefused):
            closed["s"].append(say(1))
        assert log.read_bytes() == before
        return
    [new] = closed["s"].append(say("new"))
    assert log.read_bytes().startswith(before)
    after = list(closed["s"].read())
    assert after[-1] == new
    assert set(readable(after)) >= set(found)
    assert json.loads(log.read_bytes().split(b"\n")[-2])["seq"] == new.seq


@proves("D-10")
@pytest.mark.parametrize("case", [case for case in PLAIN if case["id"].startswith("tail-")], ids=lambda case: case["id"])
def test_a_torn_tail_is_reported_and_reporting_it_is_repeatable(case: dict[str, Any], closed: JsonlStore, log: Path, say: Say) -> None:
    damage(log, case["ops"])
    closed["s"].append(say(1))
    closed.close()
    once = log.read_bytes()
    assert once.count(b'"log_recovered"') == 1
    closed["s"].append([])
    closed.close()
    assert log.read_bytes() == once


def test_damage_is_shown_where_it_stands(closed: JsonlStore, log: Path) -> None:
    before = log.read_bytes().split(b"\n")
    damage(log, [{"op": "zero_record", "record": 10, "from": 0.4, "to": 0.6}])
    events = list(closed["s"].read(8, before=13))
    assert [event.seq for event in events] == [9, 0, 11, 12]
    shown = events[1]
    assert isinstance(shown, RawEvent) and shown.payload.reason == "invalid_json" and shown.synthetic
    assert str(len(b"\n".join(before[:9])) + 1) in (shown.payload.detail or "")
    assert closed["s"].original(shown) == log.read_bytes().split(b"\n")[9]


REASONS = {
    b"{": "invalid_json",
    b"\xff": "invalid_utf8",
    b'{"a":1}': "wrong_shape",
    b'{"seq":0,"type":"raw"}': "wrong_shape",
    b"[]": "wrong_shape",
    b"\0\0\0": "noise",
    b"[" * 100_000: "invalid_json",
}


@pytest.mark.parametrize(("line", "reason"), REASONS.items(), ids=["cut", "not-utf8", "no-seq", "seq-0", "a-list", "nul", "an-abyss"])
def test_damage_says_why(line: bytes, reason: str, closed: JsonlStore, log: Path) -> None:
    log.write_bytes(log.read_bytes() + line + b"\n")
    shown = list(closed["s"].read())[-1]
    assert isinstance(shown, RawEvent) and shown.payload.reason == reason
    assert closed["s"].original(shown) == line


@pytest.mark.parametrize("payload", [b"1" * 5000, b"[" * 900 + b"]" * 900, b'{"text":1e400}'], ids=["digits", "deep", "infinite"])
def test_a_record_whose_insides_cannot_be_read_keeps_its_place(payload: bytes, closed: JsonlStore, log: Path, say: Say) -> None:
    line = b'{"type":"assistant_chunk","seq":21,"payload":' + payload + b"}"
    log.write_bytes(log.read_bytes() + line + b"\n")
    assert [event.seq for event in closed["s"].read(19)] == [20, 21]
    assert closed["s"].append(say(1))[0].seq == 22
    assert next(closed["s"].records(20)).line == line


def test_a_record_is_shown_once_however_far_apart_its_copies_are(store: JsonlStore, say: Say, log: Path) -> None:
    store["s"].append(say(3000))
    store.close()
    head = store["s"].head().seq
    log.write_bytes(log.read_bytes() * 2)
    assert [event.seq for event in store["s"].read()] == list(range(1, head + 1))
    assert {finding.kind for finding in store["s"].verify()} >= {"duplicate"}


def test_two_records_with_one_seq_are_both_kept(closed: JsonlStore, log: Path) -> None:
    lines = log.read_bytes().split(b"\n")
    lines.insert(10, lines[9].replace(b'"text":"8"', b'"text":"another"'))
    log.write_bytes(b"\n".join(lines))
    assert [event.seq for event in closed["s"].read()].count(10) == 2
    assert "another" in next(finding.message for finding in closed["s"].verify() if finding.kind == "duplicate")


@proves("D-11")
@pytest.mark.slow
def test_every_flipped_bit_of_a_closed_log_is_noticed(root: Path, log: Path, say: Say, figure: Figures) -> None:
    """Every bit of every record, the last checkpoint and the line ends included."""
    with JsonlStore(root) as store:
        store["s"].append([*say(40), turn_end(status="completed"), *say(57)])
    whole = log.read_bytes()
    assert whole.count(b"\n") == 101
    last = whole.rindex(b"\n", 0, -1) * 8
    every = range(len(whole) * 8)
    chosen = every if LONG else [*random.Random(SEED).sample(every, 600), *random.Random(SEED).sample(every[last:], 300)]
    noticed: Counter[str] = Counter()
    with log.open("r+b", buffering=0) as file:
        for count, bit in enumerate(chosen):
            os.pwrite(file.fileno(), bytes([whole[bit // 8] ^ 1 << bit % 8]), bit // 8)
            findings = store["s"].verify()
            assert findings, f"bit {bit}"
            noticed["as damage" if any(finding.is_damage for finding in findings) else "as a notice"] += 1
            if not any(finding.is_damage for finding in findings):
                assert bit > last, f"bit {bit}"  # the last line is no checkpoint any more: then nobody closed the log
            if count % 10 == 0:
                list(store["s"].read())
            os.pwrite(file.fileno(), whole[bit // 8 : bit // 8 + 1], bit // 8)
    assert log.read_bytes() == whole and store["s"].verify() == []
    figure("bits flipped", len(chosen))
    for how, count in noticed.items():
        figure(f"noticed {how}", count)


def test_a_log_that_was_not_closed_is_a_notice_and_no_damage(closed: JsonlStore, say: Say) -> None:
    [finding] = closed["s"].verify()
    assert finding.kind == "unsealed" and not finding.is_damage
    closed["s"].append(say(1))
    assert closed["s"].verify() == []  # somebody is writing it
    closed.close()
    assert closed["s"].verify() == []


def test_closing_a_log_in_which_nothing_was_written_writes_nothing(closed: JsonlStore, log: Path, say: Say) -> None:
    closed["s"].append(say(1))
    closed.close()
    once = log.read_bytes()
    for _ in range(3):
        closed["s"].append([])
        closed.close()
    assert log.read_bytes() == once


def test_a_checkpoint_that_cannot_be_written_does_not_keep_a_log_from_closing(
    store: JsonlStore, say: Say, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store["s"].append(say(3))
    before = log.read_bytes()

    def full(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        store.close()
    assert log.read_bytes() == before
    assert [finding.kind for finding in store["s"].verify()] == ["unsealed"]


def following(closed: JsonlStore, then: Callable[[], object]) -> None:
    async def run() -> None:
        events = closed["s"].follow()
        async with asyncio.timeout(60):
            async for event in events:
                if event.seq == 20:
                    then()

    asyncio.run(run())


@proves("D-07")
def test_a_follower_notices_that_the_log_shrank(closed: JsonlStore, log: Path) -> None:
    shorter = BY_FILE["truncate_to_record"](log.read_bytes(), 10)
    with pytest.raises(LogReset, match="shorter"):
        following(closed, lambda: os.truncate(log, len(shorter)))
    assert readable(list(closed["s"].read())) == list(range(1, 11))


@proves("D-07")
def test_a_follower_notices_that_the_log_was_replaced(closed: JsonlStore, log: Path) -> None:
    def replace() -> None:
        (log.parent / "other").write_bytes(log.read_bytes())
        os.rename(log.parent / "other", log)

    with pytest.raises(LogReset, match="another file"):
        following(closed, replace)


@proves("D-07")
def test_a_follower_notices_that_the_log_was_removed(closed: JsonlStore, log: Path) -> None:
    with pytest.raises(LogDeleted):
        following(closed, log.unlink)


@proves("D-07")
def test_a_follower_notices_that_the_session_was_deleted(closed: JsonlStore) -> None:
    with pytest.raises(LogDeleted):
        following(closed, lambda: closed.delete("s"))


@proves("D-07")
def test_a_log_that_is_removed_while_it_is_written_is_an_error(store: JsonlStore, say: Say, log: Path) -> None:
    store["s"].append(say(1))
    log.unlink()
    with pytest.raises(LogDeleted):
        store["s"].append(say(1))
    assert store["s"].append(say(1))[0].seq == 2


def test_a_writer_that_finds_its_log_changed_looks_at_it_again(store: JsonlStore, say: Say, log: Path) -> None:
    store["s"].append(say(1))
    with log.open("ab") as file:
        file.write(b"somebody was here")
    assert store["s"].append(say(1))[0].seq == 4
    assert [finding.kind for finding in store["s"].verify()] == ["torn-tail"]


SPECIAL: dict[str, Callable[[Path], object]] = {
    "symlink": lambda log: log.symlink_to("/etc/hostname"),
    "dangling symlink": lambda log: log.symlink_to("nowhere"),
    "fifo": lambda log: os.mkfifo(log),
    "dir": lambda log: log.mkdir(),
    "socket": lambda log: os.mknod(log, stat.S_IFSOCK | 0o600),
    "device": lambda log: os.mknod(log, 0o20600, os.makedev(1, 7)) if os.geteuid() == 0 else os.mkfifo(log),
}


@proves("D-07")
@pytest.mark.parametrize("make", SPECIAL.values(), ids=SPECIAL.keys())
def test_what_is_not_a_regular_file_is_refused_at_once(make: Callable[[Path], object], closed: JsonlStore, log: Path, say: Say) -> None:
    log.unlink()
    make(log)
    doors: list[Callable[[], object]] = [
        lambda: closed["s"].append(say(1)),
        lambda: closed["s"].head(),
        lambda: closed["s"].read(),
        lambda: closed["s"].follow(),
    ]
    for door in doors:
        with pytest.raises(LogRefused):
            door()
    [info] = closed.sessions()
    assert info.problem and "regular file" in info.problem


@proves("D-07")
def test_a_session_folder_that_is_a_link_is_refused(closed: JsonlStore, root: Path, tmp_path: Path, say: Say) -> None:
    os.rename(root / "s", tmp_path / "elsewhere")
    (root / "s").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError):
        closed["s"].append(say(1))
    with pytest.raises(LogRefused):
        closed["s"].read()


def test_the_log_of_another_session_is_not_gone_on_with(closed: JsonlStore, root: Path, say: Say) -> None:
    os.rename(root / "s", root / "t")
    assert len(list(closed["t"].read())) == 20
    with pytest.raises(LogRefused, match="session 's'"):
        closed["t"].append(say(1))
