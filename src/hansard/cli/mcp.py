"""``hansard mcp``: the tools by which an agent reaches other agents, over stdin and stdout."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from hansard.cli.options import json_anyway_option


@click.command("mcp")
@click.argument("ticket", type=click.Path(path_type=Path))
@json_anyway_option
def command(ticket: Path) -> None:
    """Let an agent send messages to other agents: an MCP server on stdin and stdout.

    An agent starts this command itself, if its session lets it talk. TICKET is the file that says whose tools these are; the hansard
    that runs the agent makes it.
    """
    from hansard.errors import UsageError

    if find_spec("mcp") is None:
        raise UsageError("this needs the package `mcp`: install hansard[mcp]")
    from hansard.server.mcp import server

    server(ticket).run()
