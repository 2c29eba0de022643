"""hansard compress: smaller, and nobody notices."""

from __future__ import annotations

import json
import os
import time

import pytest

from hansard.events import user_message
from hansard.store import JsonlStore
from tests.proof import proves
from tests.sessions import SESSION, turn

ID = f"claude-{SESSION}"


VERBS = [
    ("sessions", "--json"),
    ("show", ID),
    ("show", ID[:12]),
    ("events", ID),
    ("events", ID, "--after", "5", "--limit", "2"),
    ("search", "because"),
    ("export", ID, "--to", "openai-messages"),
    ("export", ID, "--to", "html"),
    ("export", ID, "--to", "native"),
    ("export", ID, "--to", "otel"),
    ("sql", "select type, count(*) from events group by 1 order by 1"),
    ("audit", ID),
    ("verify", "--json"),
]


@proves("D-18")
@pytest.mark.slow
def test_every_verb_says_of_a_compressed_session_what_it_said_before(run, session, store):
    before = [run(*verb) for verb in VERBS]
    assert [ran.code for ran in before] == [0] * len(VERBS)
    ran = run("compress", "--all")
    assert (ran.code, "1 compressed" in ran.out, "times smaller" in ran.out) == (0, True, True)
    assert sorted(path.name for path in (store / ID).glob("events*")) == ["events.jsonl.zst"]
    for verb, was in zip(VERBS, before, strict=True):
        assert run(*verb) == was, verb


def test_a_compressed_log_can_be_named_as_a_file(run, session, store):
    before = run("events", store / ID / "events.jsonl").out
    run("compress", ID)
    assert run("events", store / ID / "events.jsonl.zst").out == before
    assert run("audit", store, "--against").code == 0


def test_importing_again_leaves_it_compressed_and_more_unpacks_it(run, session, store):
    run("compress", ID)
    assert "1 unchanged" in run("import", session.parent).out
    assert (store / ID / "events.jsonl.zst").exists()
    with session.open("ab") as file:
        file.write(turn(7))
    assert "1 updated" in run("import", session.parent).out
    assert (store / ID / "events.jsonl").exists() and not (store / ID / "events.jsonl.zst").exists()
    assert run("verify").code == 0


def test_undo_gives_the_bytes_back(run, session, store):
    before = (store / ID / "events.jsonl").read_bytes()
    assert run("compress", ID[:10]).code == 0
    assert "1 unchanged" in run("compress", ID).out
    assert "1 unpacked" in run("compress", ID, "--undo").out
    assert (store / ID / "events.jsonl").read_bytes() == before


def test_older_than_leaves_what_was_said_lately(run, store):
    month = 30 * 24 * 3600 * 1000
    with JsonlStore(store, clock=lambda: int(time.time() * 1000) - month) as then, JsonlStore(store) as now:
        then["old"].append([user_message(text="x")])
        now["new"].append([user_message(text="x")])
    (one,) = json.loads(run("compress", "--older-than", "7", "--json").out)
    assert (one["session"], one["state"]) == ("old", "changed")
    assert (store / "new" / "events.jsonl").exists()


def test_a_session_that_is_being_written_is_left_alone(run, session, store):
    with JsonlStore(store) as writing:
        writing["live"].append([user_message(text="x")])
        ran = run("compress", "--all")
        assert (ran.code, "1 compressed, 1 being written" in ran.out) == (0, True)
        ran = run("compress", "live")
        assert (ran.code, str(os.getpid()) in ran.err) == (2, True)


@pytest.mark.parametrize("arguments", [(), ("nobody",), (ID, "--all"), ("--older-than", "-1")], ids=["none", "nobody", "both", "negative"])
def test_what_makes_no_sense_is_one_sentence(run, session, arguments):
    ran = run("compress", *arguments)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)


def test_a_damaged_one_does_not_keep_the_others(run, session, store):
    with JsonlStore(store) as other:
        other["bad"].append([user_message(text="x" * 5000)])
    run("compress", "--all")
    packed = store / "bad" / "events.jsonl.zst"
    data = bytearray(packed.read_bytes())
    data[60] ^= 1
    packed.write_bytes(data)
    ran = run("compress", "--all", "--undo")
    assert (ran.code, "1 unpacked, 1 failed" in ran.out, "damaged" in ran.err) == (2, True, True)
    assert packed.read_bytes() == data
    assert run("verify", "bad").code == 1
