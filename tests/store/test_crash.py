"""Every state a crash can leave on the disk: the log opens, loses only what was not synced, and says what is damaged."""
# pyright: basic

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hansard.events import Event, assistant_chunk, turn_end, user_message
from hansard.store import JsonlStore
from hansard.store.files import writer
from tests.proof import Figures, amount, proves

Say = Callable[..., list[Event]]

SECTORS = (512, 4096)


class Moment(NamedTuple):
    """The log after a write: what the disk surely has, and what only the kernel knows."""

    synced: bytes
    tail: bytes


@pytest.fixture
def moments(root: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> list[Moment]:
    """A session of 200 events, in batches of all sizes; syncs of the background come when they come."""
    found: list[Moment] = []
    synced = 0
    real_sync, real_write = os.fdatasync, os.write

    def fdatasync(fd: int) -> None:
        nonlocal synced
        real_sync(fd)
        synced = os.fstat(fd).st_size

    def write(fd: int, data: bytes) -> int:
        count = real_write(fd, data)
        whole = log.read_bytes()
        found.append(Moment(whole[:synced], whole[synced:]))
        return count

    monkeypatch.setattr(writer.Writer, "sync_in_background", lambda self: None)  # the longest tails: as if it were always late
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fdatasync)
        patch.setattr(os, "write", write)
        with JsonlStore(root) as store:
            number = 0
            while number < 200:
                batch: list[Event] = [assistant_chunk(text=f"{number} " + "é" * (number * 7 % 90)) for _ in range(1 + number % 4)]
                batch += [user_message(text="?")] * (number % 9 == 8) + [turn_end(status="completed")] * (number % 17 == 16)
                number += len(store["s"].append(batch))
    return found


@pytest.fixture
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried on these logs need not reach the disk."""
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def states(moment: Moment) -> Iterator[tuple[str, bytes]]:
    """What the disk may hold: the tail absent, cut, zeroed in whole or in part, or with a sector missing."""
    kept, tail = moment
    size = len(tail)
    borders = {border - len(kept) % border + more for border in SECTORS for more in range(0, size, border)}
    for cut in sorted({0, 1, 2, size // 2, size - 1, size, *(border for border in borders if border < size)}):
        yield f"cut at {cut}", kept + tail[:cut]
        yield f"zeros from {cut}", kept + tail[:cut] + bytes(size - cut)
        yield f"zeros up to {cut}", kept + bytes(cut) + tail[cut:]
    for start in sorted(border for border in borders if border < size):
        for sector in SECTORS:
            yield f"{sector} lost at {start}", kept + tail[:start] + bytes(min(sector, size - start)) + tail[start + sector :]


@proves("D-04")
@pytest.mark.slow
def test_every_state_opens_and_keeps_what_was_synced(moments: list[Moment], unsynced: None, log: Path, say: Say, figure: Figures) -> None:
    found = {state: (name, moment.synced.count(b"\n")) for moment in moments for name, state in states(moment)}
    assert len(found) > 1500
    chosen = list(found.items())[:: amount(4, 1)]
    damaged = 0
    for state, (name, safe) in chosen:
        damaged += check(state, f"{name}, {safe} safe", safe, log, say)
    figure("states", len(chosen))
    figure("of these damaged", damaged)


def check(state: bytes, name: str, safe: int, log: Path, say: Say) -> bool:
    log.write_bytes(state)
    with JsonlStore(log.parents[1]) as store:
        store["s"].append(say("after"))
        events = list(store["s"].read())
        seqs = [event.seq for event in events if event.seq]
        assert seqs[:safe] == list(range(1, safe + 1)), name
        assert seqs == sorted(set(seqs)) and events[-1].payload.text == "after", name
        assert log.read_bytes().startswith(state), name
        damaged = sum(not event.seq for event in events)
        assert damaged == sum(finding.kind in ("torn-tail", "nul", "invalid") for finding in store["s"].verify()), name
    return damaged > 0


@proves("D-04")
def test_a_log_that_was_being_created_is_begun_again(root: Path, log: Path, say: Say, unsynced: None) -> None:
    with JsonlStore(root) as store:
        header = store.create("s").bytes
    whole = log.read_bytes()
    for cut in range(0, header, amount(3, 1)):
        log.write_bytes(whole[:cut])
        with JsonlStore(root) as store:
            [event] = store["s"].append(say("after"))
            shown = list(store["s"].read())
            assert [one.seq for one in shown if one.seq] == list(range(1, event.seq + 1))
            assert store["s"].head().log_id
