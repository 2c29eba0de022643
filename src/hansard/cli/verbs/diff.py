"""``hansard diff``: what a session changed, as one patch; or two sessions compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hansard.cli import completers
from hansard.cli.options import json_option, note, store_option, store_place
from hansard.errors import UsageError

if TYPE_CHECKING:
    from hansard.projections.conversation_steps import Difference, Step
    from hansard.projections.edits import Edit
    from hansard.projections.net_patch import FileDiff
    from hansard.projections.session_comparison import FileComparison, SessionComparison
    from hansard.store import Store

COLOURS = {"+": "green", "-": "red", "@": "cyan"}
SHOWN_CHARACTERS = 200
"""How much of a step is shown."""


@click.command("diff")
@click.argument("session", metavar="SESSION", shell_complete=completers.sessions)
@click.argument("other", metavar="[SESSION]", required=False, shell_complete=completers.sessions)
@click.option("--turn", type=click.IntRange(1), metavar="N", help="Only what this turn changed.")
@click.option("--by-turn", is_flag=True, help="A patch for each turn instead of one for all.")
@click.option("--stat", is_flag=True, help="Only the files, with the number of lines added and removed.")
@store_option
@json_option
def command(session: str, other: str | None, turn: int | None, by_turn: bool, stat: bool, store: str | None, as_json: bool) -> None:
    """Show what a session changed, or compare two sessions.

    Prints one patch in git's format, with paths as seen from the repository or folder that the agent worked in. Pass it to `git apply`.
    The header of each hunk names the tool calls that made it, and who allowed them. Changes that are not completely on record are listed on
    stderr.

    With two sessions, compares outcome, time, tokens, cost, tools, and files, and shows where they differ first.
    """
    from hansard.cli.inputs import need_session
    from hansard.store import open_store

    root = store_place(store)
    names = [need_session(root, name) for name in (session, other) if name is not None]
    with open_store(root) as record:
        if len(names) == 2:
            if turn is not None or by_turn:
                raise UsageError("--turn and --by-turn show one session; two are compared as a whole")
            compare(record, names[0], names[1], stat, as_json)
        else:
            show(record, names[0], turn, by_turn, stat, as_json)


def show(record: Store, session: str, turn: int | None, by_turn: bool, stat: bool, as_json: bool) -> None:
    """One session."""
    from hansard.projections.net_patch import net_patch
    from hansard.store.edits import session_edits

    info = record.session(session)
    folder = info.repository or info.cwd
    edits = [edit for edit in session_edits(record, session) if turn is None or edit.turn == turn]
    parts: list[tuple[int | None, list[Edit]]] = [(turn, edits)]
    if by_turn:
        turns = list(dict.fromkeys(edit.turn for edit in edits))
        parts = [(number, [edit for edit in edits if edit.turn == number]) for number in turns]
    found = [(number, part, net_patch(part, folder)) for number, part in parts]
    if as_json:
        print_json(session, folder, found)
        return
    for number, part, files in found:
        if by_turn:
            print_heading(number, part)
        print_stat(files) if stat else print_patch(files)
        note_problems(files)
    if not edits:
        note("no edits on record" + ("" if turn is None else f" in turn {turn}"))


def print_json(session: str, folder: str | None, found: list[tuple[int | None, list[Edit], list[FileDiff]]]) -> None:
    """Prints all that is known: the net patch file by file, and every edit."""
    import msgspec

    from hansard.cli import tables
    from hansard.projections.net_patch import git_patch

    parts: list[dict[str, Any]] = [
        {
            "turn": number,
            "patch": git_patch(files),
            "files": [msgspec.to_builtins(file) | {"added": file.added, "removed": file.removed} for file in files],
            "edits": [msgspec.to_builtins(edit) | {"detail": edit.detail, "allowed": edit.permission.text} for edit in edits],
        }
        for number, edits, files in found
    ]
    tables.print_json({"session": session, "folder": folder, "parts": parts})


def print_heading(number: int | None, edits: list[Edit]) -> None:
    """Which turn follows. ``git apply`` skips it."""
    from hansard.projections.terminal_text import visible_line

    prompt = next((edit.prompt for edit in edits if edit.prompt), None)
    about = "" if prompt is None else f": {visible_line(prompt)[:SHOWN_CHARACTERS]}"
    click.echo(f"# Turn {number if number is not None else '(unknown)'}{about}")


def print_patch(files: list[FileDiff]) -> None:
    """The patch as it is; in color where a person looks."""
    import sys

    from hansard.cli.output import output
    from hansard.cli.tables import style
    from hansard.projections.net_patch import git_patch

    text = git_patch(files)
    if sys.stdout.isatty():
        rows = [style(row, fg=COLOURS[row[0]]) if row[:1] in COLOURS else row for row in map(_visible, text.split("\n")[:-1])]
        click.echo("\n".join(rows), nl=bool(rows))
        return
    out = output()
    out.write(text.encode("utf-8", "surrogatepass"))
    out.flush()


def _visible(row: str) -> str:
    from hansard.projections.terminal_text import escape_text

    return escape_text(row)


def print_stat(files: list[FileDiff]) -> None:
    """A line for each file."""
    from hansard.cli.tables import print_table

    rows = [(file.path, file.kind, f"+{file.added}", f"-{file.removed}", " ".join(f"§{seq}" for seq in file.edits)) for file in files]
    if rows:
        print_table(("FILE", "CHANGE", "ADDED", "REMOVED", "CALLS"), rows, right=(2, 3), flexible=0)


def note_problems(files: list[FileDiff]) -> None:
    """Says which changes the patch does not have."""
    for file in files:
        for problem in file.problems:
            note(f"{file.path}: {problem}")
        if file.outside:
            note(f"{file.path}: outside the folder of the session, so the patch does not have it; --json does")


# --------------------------------------------------------------------------------------------------------------------
# Two sessions


def compare(record: Store, first: str, second: str, stat: bool, as_json: bool) -> None:
    """Two sessions."""
    from hansard.cli import tables
    from hansard.projections.session_comparison import compare_sessions

    found = compare_sessions((first, list(record[first].conversation())), (second, list(record[second].conversation())))
    if as_json:
        tables.print_json(found)
        return
    print_facts(found)
    print_files(found.files, stat)
    print_difference(found.first_difference)


def print_facts(found: SessionComparison) -> None:
    """The numbers of both."""
    from hansard.cli.tables import print_table

    left, right = found.sessions
    tools = sorted(left.tools.keys() | right.tools.keys())
    rows: list[tuple[str, str, str]] = [
        ("title", left.title or "", right.title or ""),
        ("agent", left.agent or "", right.agent or ""),
        ("model", ", ".join(left.models), ", ".join(right.models)),
        ("outcome", left.status or "unknown", right.status or "unknown"),
        ("turns", f"{left.turns}", f"{right.turns}"),
        ("time", _time(left.duration_ms), _time(right.duration_ms)),
        ("tokens", _number(left.total_tokens), _number(right.total_tokens)),
        ("cost", _cost(left.cost_usd), _cost(right.cost_usd)),
        *((f"calls: {tool}", f"{left.tools.get(tool, 0)}", f"{right.tools.get(tool, 0)}") for tool in tools),
        ("failed calls", f"{left.failed_calls}", f"{right.failed_calls}"),
        ("files", f"{len(left.files)}", f"{len(right.files)}"),
        ("lines", f"+{left.added} -{left.removed}", f"+{right.added} -{right.removed}"),
    ]
    print_table(("", left.session, right.session), rows, flexible=2)


def _time(duration_ms: int | None) -> str:
    return "unknown" if duration_ms is None else f"{duration_ms / 1000:,.1f} s"


def _number(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


def _cost(cost: float | None) -> str:
    from hansard.projections.money import money

    return "unknown" if cost is None else money(cost)


def print_files(files: list[FileComparison], stat: bool) -> None:
    """How the changes of each file differ."""
    from hansard.cli.tables import style
    from hansard.projections.terminal_text import visible_line

    for file in files:
        click.echo(f"\n{visible_line(file.path)}: {file.outcome}" + (" session" if file.outcome.startswith("only") else " changes"))
        for row in [] if stat else file.diff[2:]:
            click.echo(style(f"  {visible_line(row)}", fg=COLOURS.get(row[:1])))


def print_difference(found: Difference | None) -> None:
    """Where the conversations part."""
    if found is None:
        click.echo("\nThe conversations have the same prompts, answers, and calls.")
        return
    click.echo(f"\nFirst difference, after {found.same_steps} equal {'step' if found.same_steps == 1 else 'steps'}:")
    for step in (found.left, found.right):
        click.echo(f"  {_step(step)}")


def _step(step: Step | None) -> str:
    from hansard.projections.terminal_text import visible_line

    if step is None:
        return "the end of the conversation"
    return f"§{step.seq} {step.kind}: {visible_line(step.title)[:SHOWN_CHARACTERS]}"
