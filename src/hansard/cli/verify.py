"""``hansard verify``: whether logs are as they were written."""

from __future__ import annotations

from typing import Any

import click

from hansard.cli.options import json_option, store_option, store_path


@click.command("verify")
@click.argument("session", required=False)
@store_option
@json_option
def command(session: str | None, store: str | None, as_json: bool) -> int:
    """Check the integrity of logs.

    One session, or all of them. Exit code 1 if there is damage.
    """
    from hansard.cli.inputs import need_session
    from hansard.cli.tables import print_json, style
    from hansard.errors import StoreError
    from hansard.store import open_store
    from hansard.terminal import visible_line

    root = store_path(store)
    opened = open_store(root)
    names = [info.id for info in opened.sessions()] if session is None else [need_session(root, session)]
    report: list[dict[str, Any]] = []
    for name in names:
        try:
            findings = opened.verify(name)
            report.append({"session": name, "ok": not any(one.is_damage for one in findings), "findings": findings})
        except StoreError as problem:
            report.append({"session": name, "ok": False, "findings": [{"kind": "unreadable", "message": str(problem)}]})
    damaged = [entry for entry in report if not entry["ok"]]
    if as_json:
        print_json(report)
        return 1 if damaged else 0
    for entry in report:
        for one in entry["findings"]:
            kind, message = (one["kind"], one["message"]) if isinstance(one, dict) else (one.kind, one.message)
            click.echo(f"{entry['session']}  {kind}  {visible_line(str(message))}")
    if damaged:
        click.echo(style(f"{len(damaged)} of {len(report)} logs are damaged", fg="red"))
        return 1
    click.echo(style(f"{len(report)} {'log is' if len(report) == 1 else 'logs are'} as written", fg="green"))
    return 0
