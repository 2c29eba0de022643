"""``hansard blame``: which session, turn, prompt, and permission wrote each line of a file."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import click

from hansard.cli import completers
from hansard.cli.options import json_option, note, note_captured, store_option, store_place
from hansard.errors import UsageError
from hansard.events.times import to_datetime

if TYPE_CHECKING:
    from hansard.projections.blame import BlamedLine
    from hansard.projections.edits import Edit
    from hansard.store.edits import FilePlace

SHORT_ID = 12
"""How much of a session's id is shown: a command finds the session by it."""
SHOWN_CHARACTERS = 60
"""How much of a prompt is shown in the list."""


@click.command("blame")
@click.argument("file", metavar="FILE[:LINE]", shell_complete=completers.files)
@click.option("--agent-trace", is_flag=True, help="Print an Agent Trace record (agent-trace.dev).")
@click.option("--git-notes", is_flag=True, help="Write the record as a git note of the current commit, to refs/notes/hansard.")
@store_option
@json_option
def command(file: str, agent_trace: bool, git_notes: bool, store: str | None, as_json: bool) -> None:
    """Show which session wrote each line of a file.

    A line is an agent's only if an edit on record wrote it. The edits are followed through later edits, changes by people, renames, and
    rebases. A line that no agent wrote has no session. Where an equal line was there before, and nothing tells which of the two an agent
    wrote, the line is marked with a question mark.
    """
    from hansard.agents.file_history import read_place
    from hansard.projections.blame import blame_text
    from hansard.store import open_store
    from hansard.store.edits import file_edits

    path, number = split_line(file)
    text = read_text(path)
    root = store_place(store)
    with open_store(root) as record:
        place = read_place(path)
        edits = file_edits(record, place)
        note_captured(record)
    lines = blame_text(text, edits)
    if number is not None and number > len(lines):
        raise UsageError(f"{path} has {len(lines):,} lines")
    unknown = sorted({(edit.session, edit.seq) for edit in edits if edit.detail == "path"})
    shown = lines if number is None else [lines[number - 1]]
    if git_notes:
        save_note(place, lines)
    elif agent_trace:
        click.echo(json.dumps(trace(place, lines), ensure_ascii=False, indent=2))
    elif as_json:
        print_json(place, shown, unknown)
    elif number is not None:
        print_line(shown[0])
    else:
        print_lines(shown)
    if unknown:
        note(f"{len(unknown)} {'edit' if len(unknown) == 1 else 'edits'} of this file on record without the text; --json lists them")


def split_line(name: str) -> tuple[Path, int | None]:
    """The file, and the line that was named behind it."""
    found = re.fullmatch(r"(.+):(\d+)", name)
    if found is None or Path(name).exists():
        return Path(name), None
    if int(found[2]) == 0:
        raise UsageError("lines are numbered from 1")
    return Path(found[1]), int(found[2])


def read_text(path: Path) -> str:
    """The text of a file."""
    if not path.is_file():
        raise UsageError(f"{path} is not a file")
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as problem:
        raise UsageError(f"{path} is not UTF-8 text") from problem


def trace(place: FilePlace, lines: list[BlamedLine]) -> dict[str, Any]:
    """The Agent Trace record. It names the commit if the file is in it as it is."""
    from hansard.agents.file_history import is_committed
    from hansard.agents.workspace import read_commit
    from hansard.projections.agent_trace import agent_trace

    commit = read_commit(place.root) if is_committed(place) else None
    return agent_trace(place.names[0], lines, str(uuid4()), datetime.now(UTC).isoformat(timespec="seconds"), commit)


def save_note(place: FilePlace, lines: list[BlamedLine]) -> None:
    """Write the record into the note of the commit, which keeps those of other files."""
    from hansard.agents.file_history import is_committed, read_note, write_note
    from hansard.agents.workspace import read_commit

    commit = read_commit(place.root)
    if commit is None or not is_committed(place):
        raise UsageError(f"{place.names[0]} differs from the current commit; commit it first, so that the note is about these lines")
    record = trace(place, lines)
    rows = [row for row in read_note(place.root, commit).split("\n") if row and not _is_about(row, place.names[0])]
    write_note(place.root, commit, "\n".join([*rows, json.dumps(record, ensure_ascii=False)]) + "\n")
    click.echo(f"refs/notes/hansard of {commit[:SHORT_ID]} has {place.names[0]}")


def _is_about(row: str, name: str) -> bool:
    try:
        return any(file["path"] == name for file in json.loads(row)["files"])
    except (ValueError, KeyError, TypeError):
        return False


# --------------------------------------------------------------------------------------------------------------------
# What is shown


def about(edit: Edit) -> dict[str, Any]:
    """What is known of the edit that wrote a line."""
    return {
        "session": edit.session,
        "seq": edit.seq,
        "turn": edit.turn,
        "promptSeq": edit.prompt_seq,
        "prompt": edit.prompt,
        "agent": edit.agent,
        "model": edit.model,
        "tool": edit.tool,
        "call": edit.call,
        "timestamp": edit.timestamp,
        "permission": edit.permission,
        "allowed": edit.permission.text,
    }


def print_json(place: FilePlace, lines: list[BlamedLine], unknown: list[tuple[str, int]]) -> None:
    """Every line."""
    from hansard.cli import tables

    rows = [
        {"line": one.number, "text": one.text, "verdict": one.verdict, "edit": None if one.edit is None else about(one.edit)}
        for one in lines
    ]
    without_text = [{"session": session, "seq": seq} for session, seq in unknown]
    tables.print_json({"file": place.names[0], "root": place.root, "lines": rows, "editsWithoutText": without_text})


def print_line(line: BlamedLine) -> None:
    """One line, with all that is known of where it comes from."""
    from hansard.projections.terminal_text import visible_line

    click.echo(f"{line.number}: {visible_line(line.text.rstrip())}")
    edit = line.edit
    if edit is None:
        click.echo("No edit on record wrote this line.")
        return
    if line.verdict == "ambiguous":
        click.echo("This edit may have written the line: an equal one was there before, or the text before is not on record.")
    rows = {
        "session": edit.session,
        "call": f"§{edit.seq} {edit.tool}",
        "turn": None if edit.turn is None else str(edit.turn),
        "prompt": None if edit.prompt is None else f"§{edit.prompt_seq} {edit.prompt}",
        "agent": " ".join(filter(None, (edit.agent, edit.model))),
        "permission": edit.permission.text,
        "time": None if edit.timestamp is None else f"{to_datetime(edit.timestamp, None):%Y-%m-%d %H:%M}",
    }
    for label, text in rows.items():
        if text:
            click.echo(f"  {label:10}  {visible_line(text)}")


def print_lines(lines: list[BlamedLine]) -> None:
    """The file, with the edit before each line."""
    from hansard.projections.terminal_text import escape_text, visible_line

    heads = [_head(line) for line in lines]
    width = max((len(head) for head in heads), default=0)
    digits = len(str(len(lines)))
    for head, line in zip(heads, lines, strict=True):
        click.echo(f"{visible_line(head):{width}}  {line.number:{digits}}  {escape_text(line.text.rstrip())}".rstrip())


def _head(line: BlamedLine) -> str:
    edit = line.edit
    if edit is None:
        return ""
    words = [edit.session[:SHORT_ID], f"§{edit.seq}", edit.agent or "", edit.permission.text]
    return " ".join(filter(None, words)) + (" ?" if line.verdict == "ambiguous" else "")
