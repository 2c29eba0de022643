"""Killed while it recovers: recovery can be repeated from wherever it was stopped, and when it is done, doing it again changes nothing."""
# pyright: basic

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hansard.events import Event, SessionLifecycle, user_message
from hansard.store import JsonlStore
from tests.proof import Figures, amount, proves

Say = Callable[..., list[Event]]

CALLS = ("open", "pread", "write", "pwrite", "fsync", "fdatasync", "ftruncate", "fstat", "close")
TAILS = {
    "a brace": b"{",
    "half a record": b'{"type":"assistant_chunk","id":"0198',
    "a record without its end": None,
    "zeros": b"\0" * 700,
    "letters": b"not ours",
}


def die_at(nth: int, how: str) -> None:
    """Kill this process at its nth call: before it, after it, or with half a write done."""
    count = 0

    def watched(name: str, real: Callable) -> Callable:
        def call(*args: Any, **options: Any) -> object:
            nonlocal count
            count += 1
            if count != nth:
                return real(*args, **options)
            if how == "after":
                real(*args, **options)
            elif how == "half" and name == "write":
                real(args[0], args[1][: len(args[1]) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
            return None

        return call

    for name in CALLS:
        setattr(os, name, watched(name, getattr(os, name)))


def recover(root: Path) -> None:
    with JsonlStore(root) as store:
        store["s"].append([])


def killed(root: Path, nth: int, how: str) -> bool:
    """Recover in a child that dies at its nth call; false if it was done before."""
    child = os.fork()
    if child == 0:
        try:
            die_at(nth, how)
            recover(root)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@proves("D-03")
@pytest.mark.slow
@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS.keys())
def test_recovery_that_is_killed_at_any_call_can_be_repeated(tail: bytes | None, root: Path, log: Path, say: Say, figure: Figures) -> None:
    with JsonlStore(root) as store:
        store["s"].append([*say(5), user_message(text="kept")])
        safe = store["s"].head()
    whole = log.read_bytes()
    torn = whole[: safe.bytes] + tail if tail is not None else whole[: safe.bytes - 1]
    kills = 0
    for how in ("before", "after", "half"):
        nth = 0
        while True:
            nth += amount(5, 1)
            log.write_bytes(torn)
            if not killed(root, nth, how):
                break
            kills += 1
            assert log.read_bytes().startswith(torn)  # nothing that was there is touched
            recover(root)
            once = log.read_bytes()
            recover(root)
            assert log.read_bytes() == once, f"{how} call {nth}"
            seqs = [event.seq for event in JsonlStore(root)["s"].read() if event.seq]
            assert seqs == list(range(1, len(seqs) + 1)) and len(seqs) > safe.seq
            assert not {finding.kind for finding in JsonlStore(root)["s"].verify()} - {"torn-tail", "nul", "invalid"}
            notices = [event for event in JsonlStore(root)["s"].read(types=["session_lifecycle"]) if is_recovery(event)]
            assert 1 <= len(notices) <= 2  # the kill may have torn the notice, too
    assert kills >= 20
    figure("kills", kills)


def is_recovery(event: Event) -> bool:
    return isinstance(event, SessionLifecycle) and event.payload.subtype == "log_recovered"
