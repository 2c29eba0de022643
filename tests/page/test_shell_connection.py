"""The page's side of the socket, with a clock and sockets that do what the test says: sockets.js."""

from __future__ import annotations

from typing import Any

from tests.page.chromium import Watched
from tests.proof import proves


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
def test_twenty_seconds_of_silence_are_the_end_of_a_connection(renderer: Watched) -> None:
    got = play(renderer, "takesSilenceForDeath")
    assert got == {"pinged": 1, "before": "open", "after": "waiting", "closed": True}


@proves("L-07")
def test_it_waits_longer_each_time_and_never_quite_as_long(renderer: Watched) -> None:
    got = play(renderer, "waitsLongerEachTime")
    assert got["waits"] == [500, 1000, 2000, 4000, 8000, 10_000, 10_000]
    assert got["jitter"] == [250, 500, 5000, 10_000]


def test_another_log_is_said_with_what_was_read_of_the_old_one(renderer: Watched) -> None:
    got = play(renderer, "saysWhatItHadWhenTheLogIsAnother")
    had = {"logId": "old", "seq": 42}
    assert got == {"asked": had, "lost": [["unknown_cursor", "another log", had]], "left": 0}


def test_an_event_that_did_not_fit_comes_in_its_place(renderer: Watched) -> None:
    assert play(renderer, "fetchesWhatDidNotFitInItsPlace") == {"before": [], "after": [1, 2], "live": 1}


def test_a_damaged_line_is_no_gap(renderer: Watched) -> None:
    assert play(renderer, "aDamagedLineIsNoGap") == {"seqs": [1, 0, 3], "times": 1}


def test_a_link_that_is_no_longer_good_is_said_and_not_tried_for_ever(renderer: Watched) -> None:
    got = play(renderer, "aLinkThatIsNoLongerGoodIsSaid")
    assert (got["last"], got["tries"]) == ("shut", 2)
    assert "Open the one it printed" in got["reason"]
