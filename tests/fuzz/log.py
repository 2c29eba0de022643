"""The log: any bytes as its file. Readers find every line or say what is wrong with it, writers refuse or go on behind it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hansard.adapters.normalize import normalize
from hansard.errors import StoreError
from hansard.events import assistant_chunk, turn_end
from hansard.store import JsonlStore
from hansard.store.lines import BOM, parse_records
from tests.recorded import streams

ROOM = Path("/dev/shm") if os.path.isdir("/dev/shm") else None  # a disk is too slow for this


def check(data: bytes) -> None:
    found = parse_records(data, 0, 1)
    lines = [line for line in data.removeprefix(BOM).split(b"\n") if line.strip()]
    assert [record.line.removesuffix(b"\r") for record in found] == [line.removesuffix(b"\r") for line in lines]
    with tempfile.TemporaryDirectory(dir=ROOM) as folder, JsonlStore(folder) as store:
        log = Path(folder) / "s" / "events.jsonl"
        log.parent.mkdir(mode=0o700)
        log.write_bytes(data)
        shown = list(store["s"].read())
        assert {record.seq for record in found} - {0} == {event.seq for event in shown} - {0}
        list(store["s"].read(store["s"].head().seq))
        assert store.sessions()
        store["s"].tail(3)
        damage = store["s"].verify()
        assert damage or data.startswith(BOM) or all(record.damage is None for record in found)
        try:
            [new] = store["s"].append([assistant_chunk(text="new")])
        except StoreError:
            assert log.read_bytes() == data
            return
        assert log.read_bytes().startswith(data)
        assert list(store["s"].read())[-1] == new


def seeds() -> Iterator[bytes]:
    """Logs of some recordings, with checkpoints."""
    with tempfile.TemporaryDirectory() as folder, JsonlStore(folder) as store:
        for stream in sorted(streams(), key=lambda stream: len(stream.data))[::150]:
            store["s"].append([*list(normalize(stream.data, stream.format))[:6], turn_end(status="completed")])
            data = (Path(folder) / "s" / "events.jsonl").read_bytes()
            store.delete("s")
            yield data[:12_000]
            yield data[: len(data) // 2]
            yield data.replace(b"\n", b"\r\n", 2)
