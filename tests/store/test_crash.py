"""Every state a crash can leave on the disk: the log opens, loses only what was not synced, and says what is damaged."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hansard.events import Event, turn_end, user_message
from hansard.store import JsonlStore

Say = Callable[..., list[Event]]


@pytest.fixture
def whole(root: Path, log: Path, say: Say) -> tuple[bytes, int]:
    """A log, and how much of it was synced."""
    with JsonlStore(root) as store:
        for number in range(20):
            store.append("s", [*say(f"{number}", "é" * number), user_message(text="?"), turn_end(status="completed")])
        synced = log.stat().st_size
        store.append("s", say("a", "b" * 100, "c"))
        store.append("s", say("d"))
        return log.read_bytes(), synced


def states(whole: bytes, synced: int) -> dict[str, bytes]:
    kept, tail = whole[:synced], whole[synced:]
    found: dict[str, bytes] = {}
    for cut in {*range(0, len(tail), 3), *range(20), len(tail) - 1, len(tail)}:
        found[f"cut at {cut}"] = kept + tail[:cut]
    for cut in range(0, len(tail) + 1, 7):
        found[f"zeros from {cut}"] = kept + tail[:cut] + b"\0" * (len(tail) - cut)
        found[f"zeros up to {cut}"] = kept + b"\0" * cut + tail[cut:]
    for border in (512, 4096):
        start = (synced // border + 1) * border - synced
        found[f"a sector of {border} is lost"] = kept + tail[:start] + b"\0" * min(border, len(tail) - start) + tail[start + border :]
    return found


@pytest.mark.slow
def test_every_state_opens_and_keeps_what_was_synced(whole: tuple[bytes, int], root: Path, log: Path, say: Say) -> None:
    data, synced = whole
    safe = data[:synced].count(b"\n")
    for name, state in states(data, synced).items():
        log.write_bytes(state)
        with JsonlStore(root) as store:
            store.append("s", say("after"))
            events = list(store.read("s"))
            seqs = [event.seq for event in events if event.seq]
            assert seqs[:safe] == list(range(1, safe + 1)), name
            assert seqs == sorted(set(seqs)) and events[-1].payload.text == "after", name
            assert log.read_bytes().startswith(state), name
            damaged = sum(not event.seq for event in events)
            assert damaged == sum(finding.kind in ("torn-tail", "nul", "invalid") for finding in store.verify("s")), name


def test_a_log_that_was_being_created_is_begun_again(root: Path, log: Path, say: Say) -> None:
    with JsonlStore(root) as store:
        store.create("s")
    header = log.read_bytes()
    for cut in range(len(header)):
        log.write_bytes(header[:cut])
        with JsonlStore(root) as store:
            [event] = store.append("s", say("after"))
            shown = list(store.read("s"))
            assert [one.seq for one in shown if one.seq] == list(range(1, event.seq + 1))
            assert store.head("s").log_id
