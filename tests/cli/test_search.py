"""Search: every place where the words were said, and no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hansard
from hansard.cli import main
from hansard.events import PlanEntry, assistant_chunk, assistant_done, error, plan_update, tool_call, tool_result, user_message
from hansard.store.search import SearchQuery


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with hansard.open(tmp_path) as record:
        for session, events in {
            "first": [
                user_message(text="Why does the Parser fail?"),
                assistant_chunk(text="The parser"),
                assistant_done(text="The parser reads “a\nb” as one."),
            ],
            "second": [
                tool_call(tool_call_id="c", tool_name="Bash", args={"command": "grep -n parser *.py"}),
                tool_result(tool_call_id="c", result="naïve_parser.py:1: Ärger", exit_code=0),
                error(code="rate_limit", message="slow down"),
                plan_update(entries=[PlanEntry("mend the parser", "pending")]),
            ],
        }.items():
            record.create(session, title=f"the {session}")
            record[session].append(events)
    return tmp_path


def places(store: Path, query: str, sessions: list[str] | None = None, types: list[str] | None = None) -> list[tuple[str, str]]:
    with hansard.open(store) as record:
        return [(found.session_id, found.type) for found in SearchQuery(record, query, sessions, types)]


def test_every_place_is_found_and_a_piece_is_not_one(store: Path) -> None:
    assert sorted(places(store, "PARSER")) == [
        ("first", "assistant_done"),
        ("first", "user_message"),
        ("second", "plan_update"),
        ("second", "tool_call"),
        ("second", "tool_result"),
    ]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("fail parser", [("first", "user_message")]),
        ('"parser fail"', [("first", "user_message")]),
        ('"fail parser"', []),
        ("ärger", [("second", "tool_result")]),
        ("naïve", [("second", "tool_result")]),
        ("rate_limit down", [("second", "error")]),
        ("“a\nb”", [("first", "assistant_done")]),
        ("doesn't", []),
        ('say "', []),
        ("pars* fail", [("first", "user_message")]),
        ("arser* fail", []),
        ("arser fail", [("first", "user_message")]),
        ("Par* -fail -mend -grep -py", [("first", "assistant_done")]),
        ('parser -"parser fail" -mend -py', [("first", "assistant_done")]),
        ("parser -pars*", []),
        ("reads -", []),
        ('"-n" parser', [("second", "tool_call")]),
        ('"mend the"*', [("second", "plan_update")]),
        ('"end the"*', []),
        ("*.py", [("second", "tool_call")]),
    ],
)
def test_all_the_words_must_stand_in_one_event(store: Path, query: str, found: list[tuple[str, str]]) -> None:
    assert places(store, query) == found


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"pars\w+ (fail|reads)", [("first", "user_message"), ("first", "assistant_done")]),
        (r"^the", [("first", "assistant_done")]),
        (r"ÄRGER$", [("second", "tool_result")]),
        (r"^$", []),
    ],
)
def test_a_regular_expression_is_looked_for_in_all_texts(store: Path, pattern: str, found: list[tuple[str, str]]) -> None:
    with hansard.open(store) as record:
        assert [(hit.session_id, hit.type) for hit in SearchQuery(record, pattern, regex=True)] == found
        for bad in ("(", "", "x" * 1001):
            with pytest.raises(hansard.UsageError, match="regular expression"):
                SearchQuery(record, bad, regex=True)


def test_only_words_to_leave_out_are_not_a_search(store: Path) -> None:
    with pytest.raises(hansard.UsageError, match="in addition to those"):
        places(store, "-parser")


def test_the_command_takes_words_to_leave_out_and_patterns(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "--store", str(store), "--json", "parser", "-fail", "-mend", "-py"]) == 0
    assert [hit["type"] for hit in json.loads(capsys.readouterr().out)] == ["assistant_done"]
    assert main(["search", "--store", str(store), "--json", "--regex", "m.nd .he"]) == 0
    assert [hit["type"] for hit in json.loads(capsys.readouterr().out)] == ["plan_update"]


def test_sessions_and_types_narrow_it(store: Path) -> None:
    assert places(store, "parser", sessions=["first"], types=["user_message"]) == [("first", "user_message")]
    with pytest.raises(hansard.UnknownSession):
        places(store, "parser", sessions=["third"])
    with pytest.raises(hansard.UsageError, match="nothing is said by turn_end"):
        places(store, "parser", types=["turn_end"])
    with pytest.raises(hansard.UsageError, match="one word or more"):
        places(store, "  ")


def test_what_is_shown_stands_around_the_words(tmp_path: Path) -> None:
    with hansard.open(tmp_path) as record:
        record.create("long")
        record["long"].append([assistant_done(text="x " * 500 + "needle" + " y" * 500)])
        (found,) = SearchQuery(record, "needle")
    assert found.text.startswith("…x ") and " needle " in found.text and found.text.endswith("y…")
    assert len(found.text) < 200


def test_the_command_prints_a_table_or_json_and_says_no_with_its_exit_code(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "--store", str(store), "mend", "parser"]) == 0
    assert "mend the parser" in capsys.readouterr().out
    assert main(["search", "--store", str(store), "--json", "--limit", "2", "parser"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert len(printed) == 2 and {"sessionId", "seq", "type", "timestamp", "text", "title"} == set(printed[0])
    assert main(["search", "--store", str(store), "nowhere"]) == 1
    assert capsys.readouterr() == ("", "nobody said nowhere\n")
