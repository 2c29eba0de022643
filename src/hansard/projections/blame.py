"""Who wrote each line of a text: by the exact edits on record, from the last one back to the first.

The text is taken back edit by edit. A line that an edit added is its line; a line that the edit does not know was written later by
something else, such as a person, a formatter, or a merge. Times only put the edits in order: a line is an agent's only if its call wrote
these words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from hansard.projections.edits import Edit, complete_edit
from hansard.projections.hunks import changed_blocks, find_lines, split_lines

Verdict = Literal["agent", "none", "ambiguous"]
"""``none``: no edit on record wrote the line. ``ambiguous``: an edit may have, and an equal line beside it was there before."""


class BlamedLine(Struct, rename="camel"):
    """A line of the text, numbered from 1, with the edit that wrote it, or that may have."""

    number: int
    text: str
    verdict: Verdict = "none"
    edit: Edit | None = None


class _Slot(Struct):
    """A line of the text as it was at some time. ``line`` is None if it is not in the last text."""

    text: str
    line: BlamedLine | None = None
    twin: _Slot | None = None
    """An equal line beside it. One of the two was written by something else, and nothing tells which."""


def blame_text(text: str, edits: Sequence[Edit]) -> list[BlamedLine]:
    """Returns the lines of the text, each with the edit that wrote it. The edits are those of the file, in order of time."""
    lines = [BlamedLine(number, line) for number, line in enumerate(split_lines(text), 1)]
    slots = [_Slot(line.text, line) for line in lines]
    doubts: list[tuple[BlamedLine, _Slot]] = []
    for edit in reversed(complete_edits(edits)):
        slots = _before(slots, edit, doubts)
    for line, twin in doubts:
        if line.verdict == "ambiguous" and twin.line is not None and twin.line.verdict == "agent":
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
                if slot.line is not None and slot.line.edit is None:
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

    Lines between two changes that have no words (a bracket, an empty line) may as well belong to the changes.
    """
    found: list[_Slot] = []
    there = 0
    blocks = changed_blocks(after, [slot.text for slot in slots])
    ends = [*blocks, (len(after), len(after), len(slots), len(slots))]
    for number, (first, last, start, end) in enumerate(ends):
        kept = slots[there:start]
        is_between = 0 < number < len(blocks)
        trusted = not is_between or any(_has_words(slot.text) for slot in kept)
        found += kept if trusted else [_Slot(slot.text) for slot in kept]
        _doubt_neighbors(slots, start, end)
        found += [_Slot(text) for text in after[first:last]]
        there = end
    return found


def _doubt_neighbors(slots: list[_Slot], start: int, end: int) -> None:
    """Lines beside an insertion that are equal to lines in it: the insertion may have been one line higher or lower."""
    for shift in range(end - start):
        if end + shift >= len(slots) or slots[start + shift].text != slots[end + shift].text:
            break
        slots[end + shift].twin = slots[start + shift]
    for shift in range(1, end - start + 1):
        if start - shift < 0 or slots[start - shift].text != slots[end - shift].text:
            break
        slots[start - shift].twin = slots[end - shift]


def _has_words(text: str) -> bool:
    return any(character.isalnum() for character in text)


# --------------------------------------------------------------------------------------------------------------------
# What an edit changed


def _taken_back(after: list[_Slot], before: list[str], edit: Edit, doubts: list[tuple[BlamedLine, _Slot]]) -> list[_Slot]:
    """The lines before an edit, given all of them after it. What it added is its own."""
    found: list[_Slot] = []
    place = 0
    for first, last, start, end in changed_blocks(before, [slot.text for slot in after]):
        found += after[place:start]
        _give(after, start, end, first == last, edit, doubts)
        found += [_Slot(text) for text in before[first:last]]
        place = end
    return found + after[place:]


def _give(slots: list[_Slot], start: int, end: int, is_insertion: bool, edit: Edit, doubts: list[tuple[BlamedLine, _Slot]]) -> None:
    twins = _twins(slots, start, end) if is_insertion else {}
    for place in range(start, end):
        slot = slots[place]
        if slot.line is None:
            continue
        twin = twins.get(place) or slot.twin
        slot.line.verdict, slot.line.edit = "agent" if twin is None else "ambiguous", edit
        if twin is not None:
            doubts.append((slot.line, twin))


def _twins(slots: list[_Slot], start: int, end: int) -> dict[int, _Slot]:
    """The lines of an insertion that are equal to lines beside it, which were there before."""
    found: dict[int, _Slot] = {}
    for shift in range(end - start):
        if end + shift >= len(slots) or slots[start + shift].text != slots[end + shift].text:
            break
        found[start + shift] = slots[end + shift]
    for shift in range(1, end - start + 1):
        if start - shift < 0 or slots[end - shift].text != slots[start - shift].text:
            break
        found[end - shift] = slots[start - shift]
    return found


def _without_hunks(slots: list[_Slot], edit: Edit, doubts: list[tuple[BlamedLine, _Slot]]) -> list[_Slot]:
    """The lines before an edit of which only hunks are known: each is looked for around its position."""
    shift = sum(len(hunk.new) - len(hunk.old) for hunk in edit.hunks)
    for hunk in reversed(edit.hunks):
        shift -= len(hunk.new) - len(hunk.old)
        texts = [slot.text for slot in slots]
        expected = (hunk.start or 0) + shift
        places = find_lines(texts, hunk.new)
        if places:
            start = min(places, key=lambda place: abs(place - expected))
            slots = _replaced(slots, start, start + len(hunk.new), hunk.old, edit, doubts)
        else:
            slots = _without_pieces(slots, [line[1:] for line in hunk.lines if line[0] == "+"], edit)
    return slots


def _replaced(slots: list[_Slot], start: int, end: int, old: list[str], edit: Edit, doubts: list[tuple[BlamedLine, _Slot]]) -> list[_Slot]:
    inner = _taken_back(slots[start:end], old, edit, doubts)
    return [*slots[:start], *inner, *slots[end:]]


def _without_pieces(slots: list[_Slot], added: list[str], edit: Edit) -> list[_Slot]:
    """Something else has changed lines of a hunk since. Those that are left are known by their words, if no other line has them."""
    texts = [slot.text for slot in slots]
    own = {text for text in added if _has_words(text) and texts.count(text) == added.count(text) == 1}
    for slot in slots:
        if slot.text in own and slot.line is not None:
            slot.line.verdict, slot.line.edit = "agent" if slot.twin is None else "ambiguous", edit
    return [slot for slot in slots if slot.text not in own]


def _without_fragments(slots: list[_Slot], edit: Edit, doubts: list[tuple[BlamedLine, _Slot]]) -> list[_Slot]:
    """The lines before an edit of which only pieces of text are known: each counts if it is there once."""
    for piece in reversed(edit.replacements):
        text = "".join(slot.text for slot in slots)
        if piece.new and text.count(piece.new) == 1:
            slots = _taken_back(slots, split_lines(text.replace(piece.new, piece.old)), edit, doubts)
    for hunk in reversed([] if edit.replacements else edit.hunks):
        places = find_lines([slot.text for slot in slots], hunk.new)
        if len(places) == 1:
            slots = _replaced(slots, places[0], places[0] + len(hunk.new), hunk.old, edit, doubts)
        else:
            slots = _without_pieces(slots, [line[1:] for line in hunk.lines if line[0] == "+"], edit)
    return slots
