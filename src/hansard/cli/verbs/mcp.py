"""``hansard mcp``: the record as tools for agents, or the tools by which an agent reaches other agents, over stdin and stdout."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import click

from hansard.cli.options import json_anyway_option, store_option, store_place


@click.command("mcp")
@click.argument("ticket", type=click.Path(path_type=Path), required=False)
@click.option(
    "--project",
    "projects",
    multiple=True,
    metavar="NAME|PATH",
    help="Only sessions of this project; may be given more than once. Default: that of the folder you are in.",
)
@click.option("--all-projects", is_flag=True, help="The sessions of all projects.")
@store_option
@json_anyway_option
def command(ticket: Path | None, projects: tuple[str, ...], all_projects: bool, store: str | None) -> None:
    """Let an agent search the record over MCP, or message others.

    An MCP server on stdin and stdout, for agents that look up earlier sessions. It only reads. Add it to Claude Code
    with `claude mcp add hansard -- hansard mcp`.

    With TICKET, it lets an agent send messages to other agents instead. The agent starts that if its session has messaging turned
    on. TICKET is the file that identifies the session; the hansard process that runs the agent creates it.
    """
    from hansard.errors import UsageError

    if find_spec("mcp") is None:
        raise UsageError("this needs the package `mcp`: install hansard[mcp]")
    if all_projects and projects:
        raise UsageError("--project and --all-projects exclude each other")
    if ticket is not None:
        from hansard.server.mcp_server import server

        server(ticket).run()
        return
    from datetime import datetime

    from hansard.server.record_tools import record_server
    from hansard.store import open_store
    from hansard.store.filters import parse_filter

    wanted = parse_filter({"project": [] if all_projects else projects or ["."]}, datetime.now().astimezone(), os.getcwd())
    with open_store(store_place(store)) as record:
        record_server(record, wanted.projects).run()
