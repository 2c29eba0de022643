"""Blame: every line of a text against who wrote it, and lines of which nothing tells who did."""

from __future__ import annotations

from difflib import SequenceMatcher
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard.projections.agent_trace import agent_trace
from hansard.projections.blame import blame_text
from hansard.projections.edits import Edit
from hansard.projections.hunks import Hunk, parse_diff

HUMAN = None


def edit(seq: int, before: str | None, after: str | None, **more: Any) -> Edit:
    fields: dict[str, Any] = {"session": "s", "path": "/f", "change": "change", "tool": "Edit", "call": str(seq)} | more
    return Edit(seq=seq, before=before, after=after, **fields)


def owners(text: str, *edits: Edit) -> list[int | str | None]:
    """The edit of each line; a question mark where it is in doubt."""
    return [
        line.edit.seq if line.verdict == "agent" and line.edit else "?" if line.verdict == "ambiguous" else None
        for line in blame_text(text, edits)
    ]


def test_each_line_is_of_the_edit_that_wrote_it() -> None:
    first = edit(1, "", "a\nb\nc\n", change="add")
    second = edit(2, "a\nb\nc\n", "a\nB\nc\nd\n")
    assert owners("a\nB\nc\nd\n", first, second) == [1, 2, 1, 2]


def test_a_line_of_a_person_is_no_ones() -> None:
    first = edit(1, "own\n", "own\nmade\n")
    assert owners("own\nmine\nmade\nlast\n", first) == [None, None, 1, None]


def test_a_person_who_types_a_deleted_line_again_has_written_it() -> None:
    edits = edit(1, "a\n", "a\nline of words\n"), edit(2, "a\nline of words\n", "a\n")
    assert owners("a\nline of words\n", *edits) == [None, None]


def test_a_bracket_that_was_there_before_is_not_given_away() -> None:
    """Which of the two brackets the agent wrote, the texts alone do not tell."""
    before, after = "f {\n}\n", "f {\n}\ng {\n}\n"
    assert owners(after, edit(1, before, after)) == [None, None, 1, "?"]


def test_of_two_agents_each_has_its_bracket() -> None:
    first, second = edit(1, "", "f {\n}\n", change="add"), edit(2, "f {\n}\n", "f {\n}\ng {\n}\n")
    assert owners("f {\n}\ng {\n}\n", first, second) == [1, 1, 2, 2]


def test_a_person_who_rewrites_a_block_has_its_brackets_too() -> None:
    first = edit(1, "top\n", "top\nf {\n  one\n}\nend of it\n")
    assert owners("top\ng {\n  two\n}\nother\n", first) == [None] * 5


def test_a_hunk_is_found_where_lines_above_it_were_added() -> None:
    hunk = edit(1, None, None, hunks=parse_diff("@@ -2,2 +2,3 @@\n b\n+new\n c\n"))
    assert owners("x\ny\nz\na\nb\nnew\nc\n", hunk) == [None] * 5 + [1, None]


def test_a_hunk_of_which_a_person_changed_a_part() -> None:
    hunk = edit(1, None, None, hunks=parse_diff("@@ -1,2 +1,5 @@\n b\n+one of it\n+two of it\n+three of it\n c\n"))
    assert owners("b\none of it\nmine\nthree of it\nc\n", hunk) == [None, 1, None, 1, None]


def test_a_whole_file_over_an_unknown_one_may_have_kept_its_lines() -> None:
    overwrite = edit(1, None, "kept\nmade\n")
    assert owners("kept\nmade\n", overwrite) == ["?", "?"]
    known = edit(0, "", "kept\n", change="add")
    assert owners("kept\nmade\n", known, overwrite) == [0, 1]


def test_a_fragment_counts_if_it_is_there_once() -> None:
    from hansard.events.tool_inputs import Replacement

    fragment = edit(1, None, None, hunks=[Hunk(["-x\n", "+value = 7\n"])], replacements=[Replacement("x", "value = 7")])
    assert owners("a\n  value = 7\nb\n", fragment) == [None, 1, None]
    assert owners("value = 7\nvalue = 7\n", fragment) == [None, None]


def test_an_edit_without_its_text_gives_nothing_away() -> None:
    assert owners("a\nb\n", edit(1, None, None)) == [None, None]


def test_the_record_of_agent_trace_has_the_ranges_of_each_conversation() -> None:
    lines = blame_text("a\nb\nmine\nc\n", [edit(1, "", "a\nb\nc\n", change="add", model="m", agent="claude")])
    record = agent_trace("f.py", lines, "id", "2026-01-01T00:00:00+00:00", "abc")
    (file,) = record["files"]
    assert file["path"] == "f.py" and record["version"] == "0.1.0" and record["vcs"] == {"type": "git", "revision": "abc"}
    (talk,) = file["conversations"]
    assert talk["contributor"] == {"type": "ai", "model_id": "m"}
    assert talk["ranges"] == [{"start_line": 1, "end_line": 2}, {"start_line": 4, "end_line": 4}]


# --------------------------------------------------------------------------------------------------------------------
# Any number of changes

COMMON = ("", "}", ")")


@given(st.integers(0, 2**32))
def test_no_line_of_a_person_is_an_agents(seed: int) -> None:
    """Only of two equal brackets side by side, of which the person wrote one and deleted the other, the texts do not tell which is left."""
    for text, owner, said in played(Random(seed)):
        assert owner is not HUMAN or said in (None, "?") or text.strip() in COMMON, f"{text!r} is a person's, and not of {said}"


def test_nearly_every_line_has_its_owner() -> None:
    found = [line for seed in range(60) for line in played(Random(seed))]
    wrong = [line for line in found if line[1] != line[2]]
    taken = [line for line in wrong if line[1] is HUMAN and line[2] != "?"]
    assert len(found) > 3000
    assert len(taken) <= len(found) / 2000
    assert len(wrong) <= len(found) / 50


def played(random: Random) -> list[tuple[str, int | None, int | str | None]]:
    """Agents and a person change a text at random. Half of the edits are on record with all of the text, the others as hunks.

    Returns each line of the text in the end, with who wrote it, and who did by the record.
    """
    lines: list[tuple[str, int | None]] = [(f"line {number}\n", HUMAN) for number in range(12)]
    edits: list[Edit] = []
    for number in range(1, 40):
        by = number if random.random() < 0.7 else HUMAN
        before = [text for text, _ in lines]
        first = random.randrange(len(lines) + 1)
        last = min(len(lines), first + random.choice((0, 0, 1, 2)))
        new = [
            f"{random.choice(COMMON)}\n" if random.random() < 0.15 else f"word {number} {place}\n" for place in range(random.randint(0, 4))
        ]
        lines[first:last] = owned(lines[first:last], new, by)
        if by is HUMAN or [text for text, _ in lines] == before:
            continue
        if random.random() < 0.5:
            edits.append(edit(number, "".join(before), "".join(text for text, _ in lines)))
        else:
            start, end = max(0, first - 1), min(len(before), last + 1)
            rows = [f" {text}" for text in before[start:first]] + [f"-{text}" for text in before[first:last]]
            rows += [f"+{text}" for text in new] + [f" {text}" for text in before[last:end]]
            edits.append(edit(number, None, None, hunks=[Hunk(rows, start)]))
    said = owners("".join(text for text, _ in lines), *edits)
    return [(text, owner, one) for (text, owner), one in zip(lines, said, strict=True)]


def owned(old: list[tuple[str, int | None]], new: list[str], by: int | None) -> list[tuple[str, int | None]]:
    """New lines in the place of old ones. A line that was there before stays whose it was: nobody wrote it anew."""
    made: list[tuple[str, int | None]] = [(text, by) for text in new]
    for block in SequenceMatcher(None, [text for text, _ in old], new, autojunk=False).get_matching_blocks():
        made[block.b : block.b + block.size] = old[block.a : block.a + block.size]
    return made


@pytest.mark.parametrize("text", ["", "\n", "a", "a\r\nb"])
def test_a_text_without_edits_is_no_ones(text: str) -> None:
    assert "".join(line.text for line in blame_text(text, [])) == text
    assert {line.verdict for line in blame_text(text, [])} <= {"none"}
