"""``hansard verify``: whether logs are as they were written."""

from __future__ import annotations

import click
from msgspec import Struct

from hansard.cli.completers import sessions
from hansard.cli.options import json_option, store_option, store_place
from hansard.cli.progress import progress
from hansard.errors import StoreError, UnknownSession
from hansard.store import Finding, Store


class Checked(Struct, omit_defaults=True):
    """One log, looked at."""

    session: str
    ok: bool
    findings: list[Finding] = []
    problem: str | None = None
    captured: bool = False
    """Whether files of it were only copied so far."""


@click.command("verify")
@click.argument("session", required=False, shell_complete=sessions)
@store_option
@json_option
def command(session: str | None, store: str | None, as_json: bool) -> int:
    """Check that logs are complete and undamaged.

    Checks one session, or all of them; of a session that is not read yet, the copies of its files. Exit code 1 if a log is damaged.
    """
    from hansard.cli.inputs import need_session
    from hansard.cli.tables import print_json, style
    from hansard.projections.terminal_text import visible_line
    from hansard.store import open_store

    root = store_place(store)
    opened = open_store(root)
    if session is None:
        sizes = {info.id: info.bytes for info in [*opened.sessions(), *opened.captured()]}
    else:
        name = need_session(root, session)
        sizes = {name: 0}
    report: list[Checked] = []
    with progress("checking", sum(sizes.values())) as advance:
        for name, size in sizes.items():
            report.append(check(opened, name))
            advance(size)
    damaged = [entry for entry in report if not entry.ok]
    if as_json:
        print_json(report)
        return 1 if damaged else 0
    for entry in report:
        if entry.problem is not None:
            click.echo(f"{entry.session}  unreadable  {visible_line(entry.problem)}")
        for one in entry.findings:
            click.echo(f"{entry.session}  {one.kind}  {visible_line(one.message)}")
    if damaged:
        click.echo(style(f"{len(damaged)} of {len(report)} logs are damaged", fg="red"))
        return 1
    waiting = sum(entry.captured for entry in report)
    click.echo(style(f"{len(report) - waiting} {'log is' if len(report) - waiting == 1 else 'logs are'} as written", fg="green"))
    if waiting:
        click.echo(
            style(
                f"the copied files of {waiting} {'session' if waiting == 1 else 'sessions'} are as they were; they are not read yet",
                fg="green",
            )
        )
    return 0


def check(store: Store, session: str) -> Checked:
    """Look at one log. One that cannot be read at all does not keep the others from being looked at."""
    captures = store.captures
    captured = captures is not None and captures.has(session)
    findings = captures.verify(session) if captures is not None and captured else []
    try:
        findings += store[session].verify()
    except UnknownSession:
        if not captured:
            raise
    except StoreError as problem:
        return Checked(session, False, problem=str(problem), captured=captured)
    return Checked(session, not any(one.is_damage for one in findings), findings, captured=captured)
