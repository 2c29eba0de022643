"""The scorecard's own counting: it tells a tool that drops something from one that does not. No other tool is needed here."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from benchmarks.scorecard import follow
from benchmarks.scorecard.__main__ import add
from benchmarks.scorecard.counting import CAUSES, Fact, Said, causes, facts, names
from benchmarks.scorecard.kept import read
from benchmarks.scorecard.page import PAGE, RULES, Card, table
from benchmarks.scorecard.peer import FromPyPI, NotInstalled, Output, Peer
from benchmarks.scorecard.samples import FOLDERS, Sample, samples

FORMAT = "claude-session"


class Mirror(Peer):
    """A tool that says everything it is given, but for one kind of fact."""

    name, version, registry, formats = "mirror", "1", "nowhere", (FORMAT,)

    def __init__(self, dropped: str = "") -> None:
        super().__init__()
        self.dropped = dropped

    def read(self, sample: Sample, home: Path) -> Output:
        lost = [text for fact in sample.facts if fact.kind == self.dropped for text in fact.texts]
        return Output([text for text in sample.input if not any(one in text for one in lost)])


class Copier(Mirror):
    """A tool that understands nothing, and keeps a copy of its input."""

    def read(self, sample: Sample, home: Path) -> Output:
        return Output([], list(sample.input))


def kept(peer: Peer) -> tuple[int, int]:
    found = read(peer, FORMAT)
    return sum(found.kept.values()), sum(found.all.values())


def test_a_tool_that_says_everything_keeps_every_fact_and_names_every_cause() -> None:
    found = read(Mirror(), FORMAT)
    assert found.kept == found.all
    assert found.named == found.ended > 0


@pytest.mark.parametrize("kind", ["user", "text", "thinking", "tool_call", "tool_result", "error"])
def test_a_tool_that_drops_a_kind_of_fact_scores_less(kind: str) -> None:
    found = read(Mirror(kind), FORMAT)
    assert found.kept[kind] < found.all[kind]
    assert {fact.kind for _, fact in found.missed} >= {kind}


def test_a_copy_of_the_input_is_not_counted_as_read() -> None:
    found = read(Copier(), FORMAT)
    assert sum(found.kept.values()) == 0
    assert found.copied == sum(found.all.values())
    assert found.named == 0


def test_kinds_that_do_not_pass_through_a_tool_are_not_asked_for() -> None:
    class Relay(Mirror):
        unasked = frozenset({"user"})

    assert kept(Relay()) < kept(Mirror())
    assert read(Relay(), FORMAT).all["user"] == 0


@pytest.mark.parametrize("format", FOLDERS)
def test_every_format_has_recordings_and_facts(format: str) -> None:
    assert sum(len(sample.facts) for sample in samples(format)) > 50


def test_there_are_at_least_fifteen_bad_ends_of_claude_code() -> None:
    assert sum(len(sample.causes) for sample in samples(FORMAT)) >= 15


@pytest.mark.parametrize("said", ["a < b  &\n c", "a &lt; b &amp; c", "x a<b&c y"])
def test_white_space_and_html_make_no_difference(said: str) -> None:
    assert Fact("text", ("a < b & c",)) in Said([said])


def test_every_text_of_a_fact_is_needed() -> None:
    assert Fact("tool_call", ("first one", "second one")) not in Said(["the first one"])


def test_a_patch_counts_by_its_lines_and_a_command_by_its_parts() -> None:
    patch = {"input": "*** Begin Patch\n*** Update File: a\n@@\n-old line\n+new line\n*** End Patch\n"}
    call = {"tool_call": {"id": "c", "name": "apply_patch", "args": patch}}
    told = facts({"turns": [{"user": "/greet the heron", "model": [call], "end": "completed"}]}, on_disk=False)
    assert told == [Fact("user", ("/greet", "the heron")), Fact("tool_call", ("old line", "new line"))]


def turn(**fields: object) -> dict[str, object]:
    return {
        "word": "heron",
        "turns": [{"user": "Ask about the rate limit.", "model": [], "end": "error", "error_code": "rate_limit", **fields}],
    }


def test_a_cause_is_named_by_the_output_and_not_by_the_prompt() -> None:
    assert causes(turn()) == ["rate_limit"]
    assert names("rate_limit", ["Ask about the rate limit.", "429 Too many requests"], turn())
    assert not names("rate_limit", ["Ask about the rate limit.", "done"], turn())


def test_what_plain_runs_say_too_names_no_cause() -> None:
    assert not names("rate_limit", ["mind the rate limit of #"], turn(), frozenset({"mind the rate limit of #"}))


def test_a_turn_that_completed_has_no_cause() -> None:
    assert causes(turn(end="completed", error_code=None)) == []
    assert set(causes(turn(end="interrupted"))) <= set(CAUSES)


def test_what_does_not_install_is_skipped_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing(FromPyPI):
        name, version = "no-such-tool", "9"

    def fails(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 1, "", "looking\nERROR: No matching distribution found\n")

    monkeypatch.setattr(subprocess, "run", fails)
    card = Card()
    add(card, Missing())
    assert card.peers == []
    assert card.skipped == {"no-such-tool": "9 does not install here: ERROR: No matching distribution found"}
    with pytest.raises(NotInstalled):
        Missing().install()


def test_what_a_tool_does_not_claim_is_no_zero() -> None:
    card = Card(peers=[Mirror()], kept={("mirror", FORMAT): read(Mirror("thinking"), FORMAT)})
    cells = {row[0]: row[1] for row in table(card)}
    assert cells["facts kept: Claude Code's files"].split(" of ")[0] != "0"
    assert cells["facts kept: Codex's files"] == cells["lost: slow reader"] == cells["import of 24 MB: CPU"] == "–"


def test_the_page_tells_the_rules_that_are_in_force() -> None:
    assert RULES in PAGE.read_text()
    assert all(f"`{cause}`" in PAGE.read_text() for cause in CAUSES)


# ---- a server that loses something


class Leaky(follow.Streams):
    """A server of numbered pieces that forgets all but the last of them when a client comes back."""

    def __init__(self, keeps: int) -> None:
        self.keeps = keeps

    @contextmanager
    def turn(self, home: Path, launcher: str) -> Iterator[follow.Turn]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), self.answers())
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield LeakyTurn(server.server_port)
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def answers(self) -> type[BaseHTTPRequestHandler]:
        keeps = self.keeps

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                after = int(self.headers.get("Last-Event-ID", "-1"))
                self.send_response(200)
                self.end_headers()
                first = after + 1 if after < 0 else max(after + 1, follow.PIECES - keeps)
                try:
                    for number in range(first, follow.PIECES):
                        self.wfile.write(f"id: {number}\ndata: {json.dumps(f'<piece {number}>')}\n\n".encode())
                except OSError:
                    pass  # the client hung up

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Answers


class LeakyTurn(follow.Turn):
    def __init__(self, port: int) -> None:
        self.place = follow.Place(port, "/", {})

    def begin(self) -> None:
        pass

    def wait(self) -> None:
        pass

    def is_piece(self, data: str) -> bool:
        return True


def test_pieces_that_a_client_never_sees_are_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "PIECES", 1_000)
    assert follow.lost(Leaky(keeps=0), tmp_path, cut=False) == 0
    assert follow.lost(Leaky(keeps=250), tmp_path, cut=True) == 1_000 - follow.PART - 250
    assert follow.lost(Leaky(keeps=1_000), tmp_path, cut=True) == 0
