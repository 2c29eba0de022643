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
    """Let an agent send messages to other agents over MCP.

    An MCP server on stdin and stdout. An agent starts this command itself if its session has messaging turned on. TICKET is the file that
    identifies the session; the hansard process that runs the agent creates it.
    """
    from hansard.errors import UsageError

    if find_spec("mcp") is None:
        raise UsageError("this needs the package `mcp`: install hansard[mcp]")
    from hansard.server.mcp_server import server

    server(ticket).run()
