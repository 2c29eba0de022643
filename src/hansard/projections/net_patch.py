"""The net patch of edits: what they add up to, file by file, as a unified diff in git's format.

A file is a list of lines, of which a record may show only some: those of hunks with positions. A line that an edit removed keeps its place,
so that the difference of the two ends is known line by line, each with the edit that made it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct, field

from hansard.projections.edits import Edit
from hansard.projections.hunks import Hunk, changed_blocks, split_lines

CONTEXT_LINES = 3
_QUOTED = re.compile(r'["\\\x00-\x1f\x7f]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
Kind = Literal["add", "change", "delete", "rename"]


class Line(Struct):
    """A line of a file. ``text`` is None where the record does not show it."""

    text: str | None
    was: bool
    """Whether it was there before the first edit."""
    stays: bool = True
    """Whether it is there after the last one."""
    by: Edit | None = None
    """The last edit that added or removed it; None also where something else did."""


class NetHunk(Struct, rename="camel"):
    """A part of a net patch, with lines around it. Starts count from 1, as in a diff."""

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: list[str]
    """Each with its sign and its line end."""
    edits: list[int]
    """The tool calls that made it."""
    permissions: list[str]
    """Who allowed each of them."""
    by_others: bool = False
    """Whether something else than these edits changed some of the lines between them."""

    @property
    def note(self) -> str:
        """The text behind the positions in the hunk's header."""
        notes = [f"§{seq} {permission}" for seq, permission in zip(self.edits, self.permissions, strict=True)]
        return ", ".join([*notes, *(["not by an edit on record"] if self.by_others else [])])


class FileDiff(Struct, rename="camel"):
    """What became of one file."""

    path: str
    kind: Kind
    old_path: str | None
    hunks: list[NetHunk]
    edits: list[int]
    """All tool calls that changed the file, also where nothing of it is left."""
    problems: list[str]
    """Why the patch does not have all of it."""
    binary: bool = False
    outside: bool = False
    """Whether the file is outside the folder that the patch is for."""

    @property
    def added(self) -> int:
        """How many lines were added."""
        return sum(line[0] == "+" for hunk in self.hunks for line in hunk.lines)

    @property
    def removed(self) -> int:
        """How many lines were removed."""
        return sum(line[0] == "-" for hunk in self.hunks for line in hunk.lines)

    @property
    def is_empty(self) -> bool:
        """Whether the edits of the file cancel each other out."""
        return self.kind == "change" and not self.hunks and not self.problems


class _File(Struct):
    """A file while its edits are added up."""

    path: str
    first_path: str | None
    """Where it was before the first edit; None if it was not there."""
    lines: list[Line] = field(default_factory=list[Line])
    open_end: bool = True
    """Whether there may be more lines behind the last one that is known."""
    edits: list[Edit] = field(default_factory=list[Edit])
    problems: list[str] = field(default_factory=list[str])
    is_there: bool = True

    def alive(self) -> list[int]:
        """The places of the lines that are there now."""
        return [place for place, line in enumerate(self.lines) if line.stays]

    def text(self) -> str | None:
        """The whole text, if it is known."""
        texts = [line.text for line in self.lines if line.stays]
        return None if self.open_end or None in texts else "".join(text or "" for text in texts)

    def take_text(self, text: str) -> bool:
        """Take a whole text for what the file is now. Lines that differ were changed by something else than the edits."""
        wanted = split_lines(text)
        places = self.alive()
        if self.open_end:
            if len(places) > len(wanted):
                return False
            self.lines += [Line(line, True) for line in wanted[len(places) :]]
            self.open_end = False
            places = self.alive()
        if any(self.lines[place].text is None for place in places):
            if len(places) != len(wanted):
                return False
            for place, line in zip(places, wanted, strict=True):
                self.lines[place].text = line if self.lines[place].text is None else self.lines[place].text
        self.become(text, None)
        return True

    def become(self, text: str, by: Edit | None) -> None:
        """Change the lines, all of which are known, to those of the text."""
        places = self.alive()
        new = split_lines(text)
        for first, last, start, end in reversed(changed_blocks([self.lines[place].text or "" for place in places], new)):
            self._replace(places, first, last, new[start:end], by)

    def apply(self, hunk: Hunk, by: Edit) -> bool:
        """Apply a hunk where its position says. Returns False if other lines are there."""
        start = hunk.start or 0
        while self.open_end and len(self.alive()) < start + len(hunk.old):
            self.lines.append(Line(None, True))
        places = self.alive()
        if len(places) < start + len(hunk.old):
            return False
        if not all(_same(self.lines[place].text, line) for place, line in zip(places[start:], hunk.old, strict=False)):
            return False
        place = start
        runs: list[tuple[int, int, list[str]]] = []
        for line in hunk.lines:
            if line[0] == " ":
                known = self.lines[places[place]]
                known.text = line[1:] if known.text is None else known.text
            elif line[0] == "-":
                self.lines[places[place]].text = self.lines[places[place]].text or line[1:]
            is_next = bool(runs) and runs[-1][1] == place
            if line[0] != " " and not is_next:
                runs.append((place, place, []))
            if line[0] == "-":
                runs[-1] = (runs[-1][0], place + 1, runs[-1][2])
            elif line[0] == "+":
                runs[-1][2].append(line[1:])
            place += line[0] != "+"
        for first, last, new in reversed(runs):
            self._replace(places, first, last, new, by)
        return True

    def _replace(self, places: Sequence[int], first: int, last: int, new: list[str], by: Edit | None) -> None:
        """Replace lines that are there now. One that was there before the first edit keeps its place."""
        at = places[last - 1] + 1 if last > first else places[first] if first < len(places) else len(self.lines)
        self.lines[at:at] = [Line(text, False, by=by) for text in new]
        for place in reversed(places[first:last]):
            if self.lines[place].was:
                self.lines[place].stays, self.lines[place].by = False, by
            else:
                del self.lines[place]


def _same(known: str | None, line: str) -> bool:
    return known is None or known.removesuffix("\n") == line.removesuffix("\n")


# --------------------------------------------------------------------------------------------------------------------
# Adding up


def net_patch(edits: Iterable[Edit], root: str | None = None) -> list[FileDiff]:
    """Returns what the edits add up to, file by file, with paths as seen from the root."""
    files: dict[str, _File] = {}
    done: list[_File] = []
    for edit in edits:
        file = _file_of(edit, files, done)
        file.edits.append(edit)
        _apply(edit, file)
    found = [_file_diff(file, root) for file in [*done, *files.values()]]
    return sorted((file for file in found if file is not None and not file.is_empty), key=lambda file: file.path)


def _file_of(edit: Edit, files: dict[str, _File], done: list[_File]) -> _File:
    before = edit.old_path or edit.path
    file = files.pop(before, None)
    if file is None:
        is_new = edit.change == "add" or edit.detail == "overwrite"
        file = _File(edit.path, None if is_new else before, open_end=not is_new)
    if edit.old_path is not None and edit.path in files:
        done.append(files.pop(edit.path))
    file.path = edit.path
    files[edit.path] = file
    return file


def _apply(edit: Edit, file: _File) -> None:
    file.is_there = edit.change != "delete"
    match edit.detail:
        case "whole":
            if not file.take_text(edit.before or ""):
                file.problems.append(f"§{edit.seq} does not follow from the edits before it")
                return
            file.become(edit.after or "", edit)
        case "overwrite":
            if len(file.edits) == 1:
                file.problems.append(f"§{edit.seq} may have replaced a file; what was in it is not on record")
            elif file.text() is None:
                file.problems.append(f"§{edit.seq} replaced lines that are not on record")
                return
            file.become(edit.after or "", edit)
        case "lines":
            shift = 0
            for hunk in edit.hunks:
                placed = Hunk(hunk.lines, (hunk.start or 0) + shift)
                if not file.apply(placed, edit):
                    file.problems.append(f"§{edit.seq} does not fit the lines that the record has")
                shift += len(hunk.new) - len(hunk.old)
        case "fragments":
            file.problems.append(f"§{edit.seq} has no position: only the lines it changed are on record")
        case "path":
            file.problems.append(f"§{edit.seq}: what it changed is not on record")


def _file_diff(file: _File, root: str | None) -> FileDiff | None:
    path = relative_path(file.path, root)
    old_path = None if file.first_path is None else relative_path(file.first_path, root)
    outside = path.startswith("/")
    seqs = [edit.seq for edit in file.edits]
    if old_path is None and not file.is_there:
        return None
    kind: Kind = "delete" if not file.is_there else "add" if old_path is None else "rename" if old_path != path else "change"
    if kind == "delete":
        if (file.open_end or any(line.text is None for line in file.lines)) and not file.problems:
            file.problems.append("the deleted text is not on record")
        for line in file.lines:
            line.stays = False
    moved = old_path if kind == "rename" else None
    if any("\0" in (line.text or "") for line in file.lines):
        return FileDiff(path, kind, moved, [], seqs, ["the file is binary"], binary=True, outside=outside)
    return FileDiff(path, kind, moved, list(_net_hunks(file.lines)), seqs, file.problems, outside=outside)


def relative_path(path: str, root: str | None) -> str:
    """Returns a path as seen from the root; as it is if it is elsewhere."""
    return path.removeprefix(f"{root.rstrip('/')}/") if root is not None else path


def _net_hunks(lines: list[Line]) -> Iterator[NetHunk]:
    """The differences of the two ends, with the lines around them that are known."""
    rows = list(_rows([line for line in lines if line.was or line.stays]))
    changed = [place for place, (sign, _) in enumerate(rows) if sign != " "]
    place = 0
    while place < len(changed):
        first = last = changed[place]
        while place < len(changed) and _is_near(rows, last, changed[place]):
            last = changed[place]
            place += 1
        yield _hunk(rows, first, last)


Row = tuple[str, Line]


def _rows(lines: list[Line]) -> Iterator[Row]:
    """The lines with their signs. In each group of changes the removed lines come first, and lines that came back are not changes."""
    group: list[Line] = []
    for line in lines:
        if line.was and line.stays:
            yield from _grouped(group)
            group = []
            yield " ", line
        else:
            group.append(line)
    yield from _grouped(group)


def _grouped(group: list[Line]) -> Iterator[Row]:
    old, new = [line for line in group if line.was], [line for line in group if line.stays]
    place = 0
    for first, last, start, end in changed_blocks([line.text or "" for line in old], [line.text or "" for line in new]):
        yield from ((" ", line) for line in old[place:first])
        yield from (("-", line) for line in old[first:last])
        yield from (("+", line) for line in new[start:end])
        place = last
    yield from ((" ", line) for line in old[place:])


def _is_near(rows: Sequence[Row], last: int, other: int) -> bool:
    between = rows[last + 1 : other]
    return len(between) <= 2 * CONTEXT_LINES and all(line.text is not None for _, line in between)


def _hunk(rows: Sequence[Row], first: int, last: int) -> NetHunk:
    start, end = first, last + 1
    while start > max(0, first - CONTEXT_LINES) and rows[start - 1][1].text is not None and rows[start - 1][0] == " ":
        start -= 1
    while end < min(len(rows), last + 1 + CONTEXT_LINES) and rows[end][1].text is not None and rows[end][0] == " ":
        end += 1
    shown = rows[start:end]
    before, after = sum(sign != "+" for sign, _ in rows[:start]), sum(sign != "-" for sign, _ in rows[:start])
    old, new = sum(sign != "+" for sign, _ in shown), sum(sign != "-" for sign, _ in shown)
    made = {line.by.seq: line.by for sign, line in shown if sign != " " and line.by is not None}
    return NetHunk(
        before + (old > 0),
        old,
        after + (new > 0),
        new,
        [f"{sign}{line.text}" for sign, line in shown],
        sorted(made),
        [made[seq].permission.text for seq in sorted(made)],
        any(sign != " " and line.by is None for sign, line in shown),
    )


# --------------------------------------------------------------------------------------------------------------------
# Writing


def git_patch(files: Iterable[FileDiff]) -> str:
    """Returns the files as one patch that ``git apply`` takes. Files outside the root, and binary ones, are left out."""
    return "".join(_git_file(file) for file in files if not file.outside and not file.binary)


def _git_file(file: FileDiff) -> str:
    if not file.hunks and file.kind == "change":
        return ""
    old, new = _quoted("a/", file.old_path or file.path), _quoted("b/", file.path)
    rows = [f"diff --git {old} {new}"]
    match file.kind:
        case "add":
            rows.append("new file mode 100644")
        case "delete":
            rows.append("deleted file mode 100644")
        case "rename":
            rows += ["similarity index 50%" if file.hunks else "similarity index 100%"]
            rows += [f"rename from {_quoted('', file.old_path or '')}", f"rename to {_quoted('', file.path)}"]
        case "change":
            pass
    if file.hunks:
        rows.append(f"--- {'/dev/null' if file.kind == 'add' else _with_tab(old)}")
        rows.append(f"+++ {'/dev/null' if file.kind == 'delete' else _with_tab(new)}")
    body = "".join(_git_hunk(hunk) for hunk in file.hunks)
    return "\n".join(rows) + "\n" + body


def _git_hunk(hunk: NetHunk) -> str:
    header = f"@@ -{_range(hunk.old_start, hunk.old_lines)} +{_range(hunk.new_start, hunk.new_lines)} @@ {hunk.note}"
    lines = [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in hunk.lines]
    return f"{header}\n{''.join(lines)}"


def _range(start: int, count: int) -> str:
    return str(start) if count == 1 else f"{start},{count}"


def _quoted(prefix: str, path: str) -> str:
    """A path as git writes it: in quotation marks if it has characters that would end it."""
    if not _QUOTED.search(path):
        return prefix + path
    return '"' + prefix + _QUOTED.sub(lambda found: _ESCAPES.get(found[0], f"\\{ord(found[0]):03o}"), path) + '"'


def _with_tab(path: str) -> str:
    """A name with spaces ends with a tab, so that nothing behind it is taken for a part of it."""
    return f"{path}\t" if " " in path and not path.startswith('"') else path
