"""``hansard acp``: the record as an agent of the Agent Client Protocol, over stdin and stdout."""

from __future__ import annotations

import sys

import click

from hansard.cli import completers as completing
from hansard.cli.options import json_anyway_option, store_option, store_place


@click.command("acp")
@click.argument("sessions", metavar="[SESSION]...", nargs=-1, shell_complete=completing.sessions)
@json_anyway_option
@store_option
def command(sessions: tuple[str, ...], store: str | None) -> None:
    """Let an editor load recorded sessions over ACP.

    Speaks the Agent Client Protocol on stdin and stdout. An editor starts this command as it starts an agent, lists the sessions of every
    agent in the store, and loads any of them. With SESSION, only those.
    """
    from hansard.cli.inputs import need_session
    from hansard.server.acp_agent import RecordAgent
    from hansard.store import open_store

    root = store_place(store)
    agent = RecordAgent(open_store(root), frozenset(need_session(root, name) for name in sessions))
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        if line.strip():
            out.writelines(agent.answer(line))
            out.flush()
