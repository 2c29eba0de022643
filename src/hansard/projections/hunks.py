"""Differences of texts, line by line: hunks with their positions where they are known, read from diffs, applied, and compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal, NamedTuple

from msgspec import Struct, field

NO_LINE_END = "\\"
"""How the line of a diff begins that says that the line before it has no line end."""
MAX_COMPARED_LINES = 20_000
"""Of longer texts only the equal lines at both ends are found."""
_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_DIFF_OF_COPILOT = re.compile(r"\s*diff --git .*\n(?:.*\n){0,2}?index 0000000\.\.0000000")
_PATCH_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.*\S)\s*$")
_PATCH_MOVE = re.compile(r"\*\*\* Move to: (.*\S)\s*$")


class Hunk(Struct, rename="camel", omit_defaults=True):
    """Lines that follow each other, each with its sign (space, minus, or plus) and its line end.

    ``start`` is the number of lines before the hunk in the old text; None if the record does not have it.
    """

    lines: list[str]
    start: int | None = None

    @property
    def old(self) -> list[str]:
        """The lines before the change."""
        return [line[1:] for line in self.lines if line[0] != "+"]

    @property
    def new(self) -> list[str]:
        """The lines after the change."""
        return [line[1:] for line in self.lines if line[0] != "-"]


class FilePatch(Struct):
    """What a patch in the format of Codex does to one file."""

    path: str
    change: Literal["add", "update", "delete"]
    moved_to: str | None = None
    hunks: list[Hunk] = field(default_factory=list[Hunk])


class Block(NamedTuple):
    """Lines of an old text that became lines of a new one; equal lines are in no block."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def split_lines(text: str) -> list[str]:
    """Returns the lines with their line ends; only the last one may have none."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


# --------------------------------------------------------------------------------------------------------------------
# Reading


def parse_diff(diff: str) -> list[Hunk]:
    """Returns the hunks of a unified diff of one file. Everything else is skipped."""
    rows, hunks, place = diff.split("\n"), list[Hunk](), 0
    while place < len(rows):
        row = rows[place]
        place += 1
        if not row.startswith("@@"):
            continue
        header = _HEADER.match(row)
        if header is None:
            lines, place = _until_next(rows, place)
            hunks.append(Hunk(lines))
            continue
        start, old, _, new = (1 if number is None else int(number) for number in header.groups())
        lines, place = _counted(rows, place, old, new)
        hunks.append(Hunk(lines, start - 1 if old else start))
    if _DIFF_OF_COPILOT.match(diff):
        return [_without_phantom(hunk) for hunk in hunks]
    return [hunk for hunk in hunks if hunk.lines]


def _counted(rows: Sequence[str], place: int, old: int, new: int) -> tuple[list[str], int]:
    """The lines of a hunk whose header counts them. Some agents count wrong: other lines than those of a diff end it, too."""
    lines: list[str] = []
    while place < len(rows) and (old > 0 or new > 0 or rows[place].startswith(NO_LINE_END)):
        row = rows[place]
        if row.startswith(NO_LINE_END):
            _cut_line_end(lines)
        elif row[:1] in ("", " ", "-", "+"):
            if row == "" and place == len(rows) - 1:
                break
            lines.append(f"{row or ' '}\n")
            old -= row[:1] != "+"
            new -= row[:1] != "-"
        else:
            break
        place += 1
    return lines, place


def _until_next(rows: Sequence[str], place: int) -> tuple[list[str], int]:
    lines: list[str] = []
    while place < len(rows) and rows[place][:1] in (" ", "-", "+", NO_LINE_END):
        if rows[place].startswith(NO_LINE_END):
            _cut_line_end(lines)
        else:
            lines.append(f"{rows[place]}\n")
        place += 1
    return lines, place


def _cut_line_end(lines: list[str]) -> None:
    if lines:
        lines[-1] = lines[-1].removesuffix("\n")


def _without_phantom(hunk: Hunk) -> Hunk:
    """Copilot takes what follows the last line end for one more line."""
    return Hunk(hunk.lines[:-1], hunk.start) if hunk.lines and hunk.lines[-1] == " \n" else hunk


def parse_patch(text: str) -> list[FilePatch]:
    """Returns what a patch in the format of Codex (``*** Begin Patch``) does. Its hunks have no positions."""
    found: list[FilePatch] = []
    for row in text.split("\n"):
        file, move = _PATCH_FILE.match(row), _PATCH_MOVE.match(row)
        if file is not None:
            found.append(FilePatch(file[2], _CHANGES[file[1]]))
        elif move is not None and found:
            found[-1].moved_to = move[1]
        elif row.startswith("@@") and found:
            found[-1].hunks.append(Hunk([]))
        elif row[:1] in ("+", "-", " ") and row and found:
            if not found[-1].hunks:
                found[-1].hunks.append(Hunk([]))
            found[-1].hunks[-1].lines.append(f"{row}\n")
    for one in found:
        one.hunks = [hunk for hunk in one.hunks if hunk.lines]
    return found


_CHANGES: dict[str, Literal["add", "update", "delete"]] = {"Add": "add", "Update": "update", "Delete": "delete"}

# --------------------------------------------------------------------------------------------------------------------
# Comparing and applying


def changed_blocks(old: Sequence[str], new: Sequence[str]) -> list[Block]:
    """Returns where two lists of lines differ, in order."""
    head = _equal_lines(old, new)
    tail = _equal_lines(old[head:][::-1], new[head:][::-1])
    old_end, new_end = len(old) - tail, len(new) - tail
    if head in (old_end, new_end) or old_end + new_end - 2 * head > MAX_COMPARED_LINES:
        return [Block(head, old_end, head, new_end)] if head < max(old_end, new_end) else []
    matcher = SequenceMatcher(None, old[head:old_end], new[head:new_end], autojunk=False)
    return [
        Block(head + first, head + last, head + start, head + end)
        for tag, first, last, start, end in matcher.get_opcodes()
        if tag != "equal"
    ]


def smallest_rows(rows: Iterable[str]) -> list[str]:
    """Returns the rows of a hunk in which no line is removed and added again."""
    found: list[str] = []
    for is_kept, group in groupby(rows, key=lambda row: row[0] == " "):
        changed = list(group)
        if is_kept:
            found += changed
            continue
        old, new = ([row[1:] for row in changed if row[0] == sign] for sign in "-+")
        place = 0
        for first, last, start, end in changed_blocks(old, new):
            found += [f" {line}" for line in old[place:first]]
            found += [f"-{line}" for line in old[first:last]] + [f"+{line}" for line in new[start:end]]
            place = last
        found += [f" {line}" for line in old[place:]]
    return found


def _equal_lines(old: Iterable[str], new: Iterable[str]) -> int:
    count = 0
    for before, after in zip(old, new, strict=False):
        if before != after:
            break
        count += 1
    return count


def compare_texts(old: str, new: str) -> list[Hunk]:
    """Returns the difference of two whole texts, without lines around the changes."""
    before, after = split_lines(old), split_lines(new)
    return [
        Hunk([f"-{line}" for line in before[first:last]] + [f"+{line}" for line in after[start:end]], first)
        for first, last, start, end in changed_blocks(before, after)
    ]


def apply_hunks(text: str, hunks: Sequence[Hunk]) -> str | None:
    """Returns the text after the hunks, whose positions are those of the old text; None if they do not fit exactly."""
    old, new, place = split_lines(text), list[str](), 0
    for hunk in hunks:
        before = hunk.old
        start = _only_place(old, before, place) if hunk.start is None else hunk.start
        if start is None or start < place or not _fits(old, before, start):
            return None
        new += old[place:start]
        new += _with_ends_of(old[start : start + len(before)], hunk)
        place = start + len(before)
    return "".join([*new, *old[place:]])


def _fits(old: Sequence[str], wanted: Sequence[str], start: int) -> bool:
    there = old[start : start + len(wanted)]
    return start <= len(old) and [line.removesuffix("\n") for line in there] == [line.removesuffix("\n") for line in wanted]


def _with_ends_of(old: Sequence[str], hunk: Hunk) -> Iterator[str]:
    """The new lines. A line that stays keeps the line end that it has in the text."""
    place = 0
    for line in hunk.lines:
        if line[0] == " ":
            yield old[place]
        elif line[0] == "+":
            yield line[1:]
        place += line[0] != "+"


def _only_place(old: Sequence[str], wanted: Sequence[str], after: int) -> int | None:
    """Where the lines are, if they are in one place only."""
    found = find_lines(old, wanted, after)
    return found[0] if len(found) == 1 else None


def find_lines(lines: Sequence[str], wanted: Sequence[str], after: int = 0) -> list[int]:
    """Returns all places where the wanted lines are."""
    if not wanted:
        return []
    last = len(lines) - len(wanted)
    return [place for place in range(after, last + 1) if lines[place] == wanted[0] and lines[place : place + len(wanted)] == wanted]


def indent_hunks(hunks: Sequence[Hunk], before: str | None, known: Iterable[str]) -> list[Hunk] | None:
    """Returns the hunks of a diff that was shown without its common indentation, with the indentation; None if nothing tells it.

    The text before tells it, or else ``known``: texts that have some of the changed lines whole.
    """
    indent = _indent_in(hunks, {line for text in known for line in split_lines(text)[1:]}) if before is None else _indent_at(hunks, before)
    if indent is None:
        return None
    return [Hunk([f"{line[0]}{indent if line[1:].strip() else ''}{line[1:]}" for line in hunk.lines], hunk.start) for hunk in hunks]


def _indent_at(hunks: Sequence[Hunk], before: str) -> str | None:
    """Returns the indentation of the lines of the hunks where the text has them."""
    lines = split_lines(before)
    found: set[str] = set()
    for hunk in hunks:
        start = hunk.start or 0
        there = lines[start : start + len(hunk.old)]
        if len(there) < len(hunk.old):
            return None
        for line, shown in zip(there, hunk.old, strict=True):
            if shown.strip():
                found.add(line.rstrip("\n")[: len(line.rstrip("\n")) - len(shown.rstrip("\n"))])
            if not line.rstrip("\n").endswith(shown.rstrip("\n")):
                return None
    return found.pop() if len(found) == 1 and not "".join(found).strip() else None


def _indent_in(hunks: Sequence[Hunk], known: set[str]) -> str | None:
    """Returns the indentation of the changed lines in the known ones, if it is the same for all."""
    found: set[str] | None = None
    for line in (line for hunk in hunks for line in hunk.lines if line[0] != " " and line[1:].strip()):
        indents = {one[: len(one) - len(line) + 1] for one in known if one.endswith(line[1:])}
        indents = {indent for indent in indents if not indent.strip()}
        if indents:
            found = indents if found is None else found & indents
    return found.pop() if found is not None and len(found) == 1 else None


def reverse_hunks(text: str, hunks: Sequence[Hunk]) -> str | None:
    """Returns the text before the hunks, given the one after them; None if they do not fit exactly."""
    shift, turned = 0, list[Hunk]()
    for hunk in hunks:
        lines = [f"{_OPPOSITE[line[0]]}{line[1:]}" for line in hunk.lines]
        turned.append(Hunk(lines, None if hunk.start is None else hunk.start + shift))
        shift += len(hunk.new) - len(hunk.old)
    return apply_hunks(text, turned)


_OPPOSITE = {" ": " ", "-": "+", "+": "-"}
