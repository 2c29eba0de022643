"""The same log read by others: by a reader of twenty lines that knows docs/log-format.md and nothing of hansard, and by jq."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from hansard.adapters.normalize import normalize
from hansard.events import Event, assistant_chunk, raw
from hansard.events.originals import wrap
from hansard.store import JsonlStore
from tests.proof import SEED, Figures, amount, proves
from tests.recorded import streams
from tests.store.test_damage import PLAIN, damage

JQ = shutil.which("jq")


def reference(folder: Path) -> list[dict[str, Any]]:
    """Every record of a log, once, in the order of the file. What is no record is left out."""
    found: list[dict[str, Any]] = []
    seen: set[bytes] = set()
    for path in sorted(folder.glob("events*.jsonl"), key=lambda path: (len(path.name), path.name)):
        segment: list[dict[str, Any]] = []
        for number, line in enumerate(path.read_bytes().split(b"\n")):
            line = line.removesuffix(b"\r").removeprefix(b"\xef\xbb\xbf" if number == 0 else b"")
            try:
                record = json.loads(line.decode())
            except (ValueError, RecursionError):
                continue
            if (
                isinstance(record, dict)
                and isinstance(record.get("seq"), int)
                and record["seq"] > 0
                and isinstance(record.get("type"), str)
            ):
                if line not in seen:
                    segment.append(record)
                seen.add(line)
        if segment and found:  # a later file overrules the ones before from its first record on
            found = [record for record in found if record["seq"] < segment[0]["seq"]]
        found += segment
    return found


def digest(records: Iterable[Any]) -> str:
    """A hash of what all readers agree to spell alike."""
    lines = (json.dumps([record.get(name) for name in ("seq", "id", "type", "timestamp", "sessionId")]) for record in records)
    return sha256("\n".join(lines).encode()).hexdigest()


def ours(store: JsonlStore, session: str) -> list[dict[str, Any]]:
    return [json.loads(record.line) for record in store[session].records() if record.damage is None]


def jq(folder: Path) -> list[dict[str, Any]]:
    """What jq prints of a log of one file; numbers beyond 2^53 it may spell otherwise."""
    assert JQ is not None
    run = subprocess.run([JQ, "-c", "{seq, id, type, timestamp, sessionId}", folder / "events.jsonl"], capture_output=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def everything() -> list[Event]:
    """Events of all formats, and such as have what is hard to read in them."""
    some = [stream for stream in streams() if len(stream.data) < 30_000][SEED % 7 :: amount(60, 4)]
    odd = [assistant_chunk(text=text) for text in ("\u2028\u2029\x85\x7f\0", "é😀", "x" * 300_000)]
    frames = [raw(reason="noise") for _ in range(4)]
    for event, data in zip(frames, (b"\xff\0", b"1e400", b'{"text":1}', b"[" * 3000), strict=True):
        event.original = wrap(data)
    return [*odd, *frames, *(event for stream in some for event in normalize(stream.data, stream.format, stream.context))]


@proves("Z5")
def test_three_readers_find_the_same_records(tmp_path: Path, figure: Figures) -> None:
    with JsonlStore(tmp_path) as store:
        store["s"].append(everything())
        if JQ is not None:
            assert digest(jq(tmp_path / "s")) == digest(ours(store, "s"))
        store["s"].append([assistant_chunk(text="\ud83d")])  # jq 1.6 ends at half a character
        mine = ours(store, "s")
        assert [record["seq"] for record in mine] == list(range(1, store["s"].head().seq + 1))
        theirs = reference(tmp_path / "s")
        assert theirs == mine
        assert digest(theirs) == digest(mine)
        figure("records read by all", len(mine))


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case["id"])
@proves("D-10")
def test_a_simple_reader_finds_in_a_damaged_log_what_we_find(case: dict[str, Any], tmp_path: Path) -> None:
    with JsonlStore(tmp_path) as store:
        store["s"].append([assistant_chunk(text=str(number)) for number in range(17)])
        store["s"].append([assistant_chunk(text="18"), assistant_chunk(text="19")])
    damage(tmp_path / "s" / "events.jsonl", case["ops"])
    if case["expect"].get("bytes_preserved"):
        return  # not a log any more: compressed, or in another encoding
    assert sorted(digest([record]) for record in ours(store, "s")) == sorted(digest([record]) for record in reference(tmp_path / "s"))
