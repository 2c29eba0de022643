"""Who wrote each line of a text: by the exact edits on record, from the last one back to the first.

The text is taken back edit by edit. A line that an edit added is its line; a line that the edit does not know was written later by
something else, such as a person, a formatter, or a merge. Times only put the edits in order: a line is an agent's only if its call wrote
these words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, takewhile
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from hansard.projections.edits import Edit, complete_edit
from hansard.projections.hunks import Block, Hunk, changed_blocks, find_lines, smallest_rows, split_lines

Verdict = Literal["agent", "none", "ambiguous"]
"""``none``: no edit on record wrote the line. ``ambiguous``: an edit may have, and an equal line next to it was there before."""


COMMON_WORDS = frozenset(
    {
        *("begin", "break", "catch", "continue", "default", "do", "done", "else", "end", "endif", "esac", "except", "false", "fi"),
        *("finally", "nil", "none", "null", "pass", "return", "self", "then", "true", "try"),
    }
)
"""A line without other words may occur anywhere."""


class BlamedLine(Struct, rename="camel"):
    """A line of the text, numbered from 1, with the edit that wrote it, or that may have."""

    number: int
    text: str
    verdict: Verdict = "none"
    edit: Edit | None = None


class _Slot(Struct):
    """A line of the text as it was at some time. The ``line`` has the number 0 if it is not in the last text."""

    text: str
    line: BlamedLine
    twin: _Slot | None = None
    """An equal line next to it. One of the two was written by something else, and nothing tells which."""


def blame_text(text: str, edits: Sequence[Edit]) -> list[BlamedLine]:
    """Returns the lines of the text, each with the edit that wrote it. The edits are those of the file, in order of time."""
    lines = [BlamedLine(number, line) for number, line in enumerate(split_lines(text), 1)]
    slots = [_Slot(line.text, line) for line in lines]
    doubts: list[tuple[BlamedLine, _Slot]] = []
    for edit in reversed(complete_edits(edits)):
        slots = _before(slots, edit, doubts)
    for line, twin in doubts:
        if line.verdict == "ambiguous" and twin.line.verdict == "agent":
            line.verdict = "agent"  # both are agents' lines
    return lines


def complete_edits(edits: Iterable[Edit]) -> list[Edit]:
    """Returns the edits, completed by what edits of other sessions show of the file."""
    known: dict[str, str] = {}
    found: list[Edit] = []
    for edit in edits:
        before = known.pop(edit.old_path or edit.path, None)
        if edit.detail != "whole" and before is not None:
            completed = replace(edit)
            complete_edit(completed, before, edit.replacements)
            edit = completed if completed.detail == "whole" else edit
        if edit.after is not None and edit.change != "delete":
            known[edit.path] = edit.after
        found.append(edit)
    return found


def _before(slots: list[_Slot], edit: Edit, doubts: list[tuple[BlamedLine, _Slot]]) -> list[_Slot]:
    """The lines before an edit, given those after it."""
    match edit.detail:
        case "whole":
            after = _aligned(slots, split_lines(edit.after or ""))
            return _taken_back(after, split_lines(edit.before or ""), edit, doubts)
        case "overwrite":
            after = _aligned(slots, split_lines(edit.after or ""))
            for slot in after:
                if slot.line.edit is None:
                    slot.line.verdict, slot.line.edit = "ambiguous", edit
            return after
        case "lines":
            return _without_hunks(slots, edit, doubts)
        case "fragments":
            return _without_fragments(slots, edit, doubts)
        case "path":
            return slots


# --------------------------------------------------------------------------------------------------------------------
# What something else changed after an edit


def _aligned(slots: list[_Slot], after: list[str]) -> list[_Slot]:
    """The lines that an edit left, each with its line in the last text if it is still there.

    Lines between those that something else wrote may be its own, too, if they are common ones: a bracket, an empty line, a return.
    """
    counts = Counter(slot.text for slot in slots)
    found: list[_Slot] = []
    there = 0
    blocks = changed_blocks(after, [slot.text for slot in slots])
    for number, (first, last, start, end) in enumerate([*blocks, Block(len(after), len(after), len(slots), len(slots))]):
        kept = slots[there:start]
        is_inside = 0 < number < len(blocks) and (blocks[number - 1].new_start < there or start < end)
        trusted = not is_inside or any(_has_words(slot.text) and counts[slot.text] == 1 for slot in kept)
        gone = [_lost(text) for text in after[first:last]]
        found += [*(kept if trusted else [_lost(slot.text) for slot in kept]), *gone]
        _doubt([*slots[start:end], *gone], slots[:start], slots[end:])
        there = end
    return found


def _lost(text: str) -> _Slot:
    """A line that is not in the last text."""
    return _Slot(text, BlamedLine(0, text))


def _doubt(run: list[_Slot], before: list[_Slot], after: list[_Slot]) -> None:
    """Lines next to lines that came or went are in doubt if they are equal to them: the others may be those that came or went."""
    for inside, outside in _shifts(run, before, after):
        outside.twin = outside.twin or inside


def _shifts(run: list[_Slot], before: list[_Slot], after: list[_Slot]) -> Iterator[tuple[_Slot, _Slot]]:
    """The lines of a run, each with an equal line outside that may be in its place: the run may be higher or lower, or in two pieces."""
    for ours, others in ((run, after), (run[::-1], before[::-1])):
        for inside, outside in zip(ours, others, strict=False):
            if inside.text != outside.text:
                break
            yield inside, outside
        for outside in takewhile(lambda slot: not _has_words(slot.text), others):
            yield from ((inside, outside) for inside in ours if inside.text == outside.text)


def _has_words(text: str) -> bool:
    """Whether a line has a word that not every text has."""
    return any(word.lower() not in COMMON_WORDS for word in re.findall(r"\w+", text))


# --------------------------------------------------------------------------------------------------------------------
# What an edit changed


def _taken_back(after: list[_Slot], before: list[str], edit: Edit, doubts: list[tuple[BlamedLine, _Slot]]) -> list[_Slot]:
    """The lines before an edit, given all of them after it. Its additions are its own."""
    found: list[_Slot] = []
    place = 0
    for first, last, start, end in changed_blocks(before, [slot.text for slot in after]):
        gone = [_lost(text) for text in before[first:last]]
        found += [*after[place:start], *gone]
        if start == end:
            _doubt(gone, after[:start], after[end:])
        _give(after, start, end, edit, doubts)
        place = end
    return found + after[place:]


def _give(slots: list[_Slot], start: int, end: int, edit: Edit, doubts: list[tuple[BlamedLine, _Slot]]) -> None:
    """These lines are of the edit. One that is equal to a line next to them may have been there before, in its place."""
    run = slots[start:end]
    twins = {id(inside): outside for inside, outside in _shifts(run, slots[:start], slots[end:])}
    for slot in run:
        twin = twins.get(id(slot)) or slot.twin
        slot.line.verdict, slot.line.edit = "agent" if twin is None else "ambiguous", edit
        if twin is not None:
            doubts.append((slot.line, twin))


def _without_hunks(slots: list[_Slot], edit: Edit, doubts: list[tuple[BlamedLine, _Slot]]) -> list[_Slot]:
    """The lines before an edit of which only hunks are known: each is looked for around its position."""
    shift = sum(len(hunk.new) - len(hunk.old) for hunk in edit.hunks)
    for hunk in reversed(edit.hunks):
        shift -= len(hunk.new) - len(hunk.old)
        slots = _without_hunk(slots, hunk, (hunk.start or 0) + shift, edit, doubts)
    return slots


def _without_hunk(slots: list[_Slot], hunk: Hunk, expected: int, edit: Edit, doubts: list[tuple[BlamedLine, _Slot]]) -> list[_Slot]:
    texts, new = [slot.text for slot in slots], hunk.new
    places = find_lines(texts, new)
    if places:
        start = min(places, key=lambda place: abs(place - expected))
        return _rows_taken_back(slots, start, start + len(new), hunk.lines, edit, doubts)
    anchors = [place for place, text in enumerate(new) if _has_words(text) and texts.count(text) == new.count(text) == 1]
    there = [texts.index(new[place]) for place in anchors]
    if not anchors or there != sorted(there):
        return slots
    rows = _rows_between(hunk.lines, anchors[0], anchors[-1])
    return _rows_taken_back(slots, there[0], there[-1] + 1, rows, edit, doubts)


def _rows_between(rows: Sequence[str], first: int, last: int) -> list[str]:
    """The rows of a hunk from one of its new lines to another one."""
    number, found = -1, list[str]()
    for row in rows:
        number += row[0] != "-"
        if first <= number <= last and not (number == last and row[0] == "-"):
            found.append(row)
    return found


def _rows_taken_back(
    slots: list[_Slot], start: int, end: int, rows: Sequence[str], edit: Edit, doubts: list[tuple[BlamedLine, _Slot]]
) -> list[_Slot]:
    """The lines before a hunk. Its rows tell which lines it added; something else may have changed some of them since."""
    before, after, rows = slots[:start], slots[end:], smallest_rows(rows)
    found: list[_Slot] = []
    inner = _aligned(slots[start:end], [row[1:] for row in rows if row[0] != "-"])
    around = [*before, *inner, *after]
    place = start
    for sign, group in groupby(rows, key=lambda row: row[0]):
        texts = [row[1:] for row in group]
        if sign == "-":
            found += [_lost(text) for text in texts]
            continue
        if sign == "+":
            _give(around, place, place + len(texts), edit, doubts)
        else:
            found += around[place : place + len(texts)]
        place += len(texts)
    return [*before, *found, *after]


def _without_fragments(slots: list[_Slot], edit: Edit, doubts: list[tuple[BlamedLine, _Slot]]) -> list[_Slot]:
    """The lines before an edit of which only pieces of text are known: each counts if it is there once."""
    for piece in reversed(edit.replacements):
        text = "".join(slot.text for slot in slots)
        if piece.new and text.count(piece.new) == 1:
            slots = _taken_back(slots, split_lines(text.replace(piece.new, piece.old)), edit, doubts)
    for hunk in reversed([] if edit.replacements else edit.hunks):
        places = find_lines([slot.text for slot in slots], hunk.new)
        if len(places) < 2:
            slots = _without_hunk(slots, hunk, 0, edit, doubts)
    return slots
