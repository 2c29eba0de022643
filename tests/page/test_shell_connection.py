"""The page's side of the socket, with a clock and sockets that do what the test says: sockets.js."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hansard.store import JsonlStore
from tests.page.chromium import Chromium, Watched
from tests.page.talking import Person
from tests.ports import stable_port
from tests.proof import Figures, amount, proves
from tests.server.cable import Cable
from tests.server.served import Process, words


def play(page: Watched, name: str) -> dict[str, Any]:
    return page.run("async (name) => (await import('/tests/sockets.js')).plays[name]()", name)


@proves("L-01")
def test_it_comes_back_at_its_cursor_and_takes_nothing_twice(renderer: Watched) -> None:
    got = play(renderer, "comesBackAtItsCursor")
    assert got == {"after": [None, {"logId": "L", "seq": 3}], "seqs": [1, 2, 3, 4]}


@proves("L-03")
def test_a_gap_is_asked_for_once_and_then_it_is_the_logs_own(renderer: Watched) -> None:
    got = play(renderer, "asksAgainAtAGap")
    assert got == {"after": {"logId": "L", "seq": 2}, "left": [True], "times": 2, "seqs": [1, 2, 4, 5]}


@proves("L-05")
def test_a_command_is_kept_until_it_is_answered(renderer: Watched) -> None:
    got = play(renderer, "sendsWhatIsNotAnsweredAgain")
    assert got == {"texts": ["a", "b", "c"], "same": True, "answers": [7, "changed", 8], "settled": True}


@proves("L-07")
def test_eighteen_seconds_of_silence_are_the_end_of_a_connection(renderer: Watched) -> None:
    got = play(renderer, "takesSilenceForDeath")
    assert got == {"pinged": 1, "before": "open", "after": "waiting", "closed": True}


def test_a_server_of_another_protocol_is_not_talked_to(renderer: Watched) -> None:
    assert play(renderer, "doesNotTalkToAnotherProtocol") == {"state": "shut", "sockets": 1, "said": 0, "closed": True}


@proves("L-07")
def test_it_waits_longer_each_time_and_never_quite_as_long(renderer: Watched) -> None:
    got = play(renderer, "waitsLongerEachTime")
    assert got["waits"] == [500, 1000, 2000, 4000, 8000, 10_000, 10_000]
    assert got["jitter"] == [250, 500, 5000, 10_000]


def test_another_log_is_said_with_what_was_read_of_the_old_one(renderer: Watched) -> None:
    got = play(renderer, "saysWhatItHadWhenTheLogIsAnother")
    had = {"logId": "old", "seq": 42}
    assert got == {"asked": had, "lost": [["unknown_cursor", "another log", had]], "left": 0}


@proves("F-05")
def test_a_store_that_is_away_is_said_and_asked_again_at_the_same_place(renderer: Watched) -> None:
    got = play(renderer, "waitsForAStoreThatIsAway")
    said = "The server does not reach its store: refused."
    assert got == {"after": {"logId": "L", "seq": 3}, "seqs": [4], "lost": [], "reasons": [None, said, None]}


def test_an_event_that_did_not_fit_comes_in_its_place(renderer: Watched) -> None:
    assert play(renderer, "fetchesWhatDidNotFitInItsPlace") == {"before": [], "after": [1, 2], "live": 1}


def test_a_damaged_line_is_no_gap(renderer: Watched) -> None:
    assert play(renderer, "aDamagedLineIsNoGap") == {"seqs": [1, 0, 3], "times": 1}


def test_a_link_that_is_no_longer_good_is_said_and_not_tried_for_ever(renderer: Watched) -> None:
    got = play(renderer, "aLinkThatIsNoLongerGoodIsSaid")
    assert (got["last"], got["tries"]) == ("shut", 2)
    assert "Open the one it printed" in got["reason"]


# ---------------------------------------------------------------------------------------------------------------------
# A real one, with a cable to cut


class Hasty(Process):
    """A server whose heart beats as fast as HANSARD_HEARTBEAT says."""

    program = "tests.load.station"


@contextmanager
def cable() -> Generator[tuple[Cable, asyncio.AbstractEventLoop]]:
    """A cable that leads nowhere yet, in a thread of its own: the tests of the page wait in theirs."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    made = Cable(0)
    asyncio.run_coroutine_threadsafe(made.__aenter__(), loop).result()
    try:
        yield made, loop
    finally:
        asyncio.run_coroutine_threadsafe(made.__aexit__(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.mark.slow
@proves("L-07")
def test_the_page_says_that_the_cable_is_cut(browser: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: Figures) -> None:
    """Nothing is closed, nothing comes: the page finds out by itself, says so, comes back and has everything."""
    monkeypatch.setenv("HANSARD_HEARTBEAT", str(amount(2, 15)))
    with JsonlStore(tmp_path) as store, cable() as (cut, loop):
        session = store.create().session_id
        store[session].append(words(10))
        cut.to = stable_port()
        server = Hasty(tmp_path, "--port", str(cut.to), "--name", f"127.0.0.1:{cut.port}")  # it says the name, so all come by the cable
        try:
            person = Person(browser, server, session)
            began, cut.down = time.monotonic(), True
            loop.call_soon_threadsafe(cut.cut, "silence")
            store[session].append(words(10))
            person.do(lambda page: page.wait_for_selector(".banner:not([hidden])", timeout=60_000))
            figure("seconds until the banner", time.monotonic() - began)
            assert "Reconnecting" in person.text(".banner")
            time.sleep(amount(3, 20))  # it tries again meanwhile, in vain
            cut.down = False
            person.sees("[data-connection=open]")
            person.sees_no(".banner")
            person.has_read(store[session].head().seq)
            mine = [said for said in person.watched.complaints if "closed before the connection is established" not in said]
            person.watched.complaints[:] = mine  # the browser's own word on a connection that is given up
            person.leaves()
        finally:
            server.stop()
