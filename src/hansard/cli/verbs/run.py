"""``hansard run``: an agent on the record, in the terminal. Ctrl-C once interrupts it, twice stops it."""

from __future__ import annotations

import asyncio
import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from hansard.cli import completers as completing
from hansard.cli.options import store_option, store_place, variables
from hansard.errors import UsageError

if TYPE_CHECKING:
    from hansard.store import Store


@click.command("run")
@click.argument("agent", shell_complete=completing.agents)
@click.argument("prompt", required=False)
@click.option(
    "--session",
    "going_on",
    metavar="ID",
    shell_complete=completing.sessions,
    help="Go on with this session, also with another agent.",
)
@click.option("--hand-off", is_flag=True, help="With --session: continue in a new session of the agent, which gets the conversation.")
@click.option(
    "--schema",
    metavar="FILE|JSON",
    shell_complete=completing.files,
    help="A JSON Schema of the answer. Print the answer as JSON, and nothing else; ask nothing. Needs hansard[schema].",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Interrupt the agent if it has not finished by then.",
)
@click.option("--model", help="Which model the agent uses.")
@click.option("--mode", "permission_mode", help="The agent's permission mode, in its own word.")
@click.option("--cwd", type=click.Path(exists=True, file_okay=False), metavar="DIR", help="Where it works; here if not said.")
@click.option("--system", "system_prompt", metavar="TEXT", help="The system prompt, instead of the agent's own.")
@click.option("--append-system", "append_system_prompt", metavar="TEXT", help="More for the agent's own system prompt.")
@click.option("--allow-tool", "allowed_tools", multiple=True, metavar="NAME", help="A tool it may use without asking. Repeatable.")
@click.option("--deny-tool", "denied_tools", multiple=True, metavar="NAME", help="A tool it may not use. Repeatable.")
@click.option("--mcp", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="MCP servers, as JSON.")
@click.option("--image", "images", type=click.Path(exists=True, dir_okay=False), multiple=True, metavar="FILE", help="Repeatable.")
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable of the agent's environment. Repeatable.")
@click.option("--program", type=click.Path(), metavar="PATH", help="The agent's program, if not the one on the PATH.")
@click.option("--argument", "arguments", multiple=True, metavar="TEXT", help="One more argument of the program. Repeatable.")
@click.option("--base-url", metavar="URL", help="Where the agent finds its model.")
@click.option(
    "--talk", "messaging", is_flag=True, help="Let it send messages to other agents; what those ask for, --allow or --deny decides."
)
@click.option("--resume", metavar="ID", help="The agent's own name of an earlier session to go on with.")
@click.option("--allow", is_flag=True, help="Allow whatever it asks for.")
@click.option("--deny", is_flag=True, help="Deny whatever it asks for; the default when no one can be asked.")
@click.option("--all", "all", is_flag=True, help="Show the procedure too: rate limits, the queue, injected context, the agent's process.")
@click.option("--json", "as_json", is_flag=True, help="Events as JSON, one a line; asks nothing.")
@store_option
def command(agent: str, prompt: str | None, going_on: str | None, all: bool, as_json: bool, store: str | None, **about: Any) -> int:
    """Run an agent in the terminal and record the session.

    Without PROMPT, starts a conversation. Use - to read the prompt from stdin. Exit codes: 0 completed, 1 the turn failed or the answer
    does not match the schema, 2 error, 130 interrupted, 124 timed out.
    """
    from hansard.agents import agent_for
    from hansard.agents.base import Options
    from hansard.agents.execute import picture
    from hansard.agents.hub import Hub
    from hansard.agents.output_schema import output_schema
    from hansard.cli.inputs import need_session
    from hansard.cli.interactive import AnswerFrontend, JsonFrontend, TerminalFrontend, converse
    from hansard.store import open_store

    allow, deny, images = about.pop("allow"), about.pop("deny"), [picture(path) for path in about.pop("images")]
    hand_off, timeout, schema = about.pop("hand_off"), about.pop("timeout"), about.pop("schema")
    if allow and deny:
        raise UsageError("--allow and --deny exclude each other")
    if hand_off and going_on is None:
        raise UsageError("--hand-off needs --session: the session whose conversation the agent gets")
    said = _prompt(prompt)
    wanting = {"--json": as_json, "--schema": schema is not None, "--timeout": timeout is not None}
    if said is None and any(wanting.values()):
        option = next(name for name, given in wanting.items() if given)
        raise UsageError(f"{option} needs a prompt: an argument, or - to read it from stdin")
    expected = output_schema(None if schema is None else _schema(schema))
    quiet = as_json or schema is not None
    terminal = not quiet and sys.stdin.isatty() and sys.stdout.isatty()
    asks = "allow" if allow else "ask" if terminal and not deny else "deny"
    frontend = JsonFrontend if as_json else partial(TerminalFrontend, all=all) if schema is None else AnswerFrontend
    root = store_place(store)
    options: dict[str, Any] = _options(about) | {"schema": expected.json_schema}
    agent_for(agent).require(Options(**options))
    resumed = None if going_on is None else need_session(root, going_on)

    async def go(opened: Store) -> int:
        async with Hub(opened, entry_point="run") as hub:
            hub.talks.policy = "allow" if asks == "allow" else "deny"
            session = await (hub.create(agent, Options(**options)) if resumed is None else hub.open(resumed))
            side = frontend(session, asks, expected, timeout)
            session.subscribe(side.watch)
            await session.configure_agent(agent, hand_off=hand_off, **options)
            return await converse(hub, session, side, said, images)

    with open_store(root) as opened:
        return asyncio.run(go(opened))


def _prompt(given: str | None) -> str | None:
    """What to say: the argument, or stdin if it says so or is no terminal; None to talk."""
    if given == "-" or (given is None and not sys.stdin.isatty()):
        given = sys.stdin.buffer.read().decode("utf-8", "replace").strip("\n")
        if not given:
            raise UsageError("nothing to say: stdin is empty")
    return given


def _options(about: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, as the session wants them."""
    mcp, env = about.pop("mcp"), variables(about.pop("env"))
    lists = {name: list(about.pop(name)) for name in ("allowed_tools", "denied_tools", "arguments")}
    given: dict[str, Any] = about | lists | {"mcp_servers": None if mcp is None else _servers(mcp), "env": env}
    return {name: value for name, value in given.items() if value}


def _schema(given: str) -> dict[str, Any]:
    """A JSON Schema: the option's value itself, or the file that it names."""
    inline = given.lstrip().startswith("{")
    name = "--schema" if inline else given
    try:
        found: Any = json.loads(given if inline else Path(given).read_bytes())
    except OSError as problem:
        raise UsageError(f"--schema takes a file or a JSON Schema that begins with {{: {given}: {problem.strerror}") from problem
    except ValueError as problem:
        raise UsageError(f"{name} is not JSON: {problem}") from problem
    if not isinstance(found, dict):
        raise UsageError(f"{name} is not a JSON Schema: it must be an object")
    return cast("dict[str, Any]", found)


def _servers(path: str) -> dict[str, Any]:
    """MCP servers from a file: by name, or under ``mcpServers`` as most programs keep them."""
    try:
        found: Any = json.loads(Path(path).read_bytes())
        servers: Any = found.get("mcpServers", found)
        if all("command" in about or "url" in about for about in servers.values()):
            return servers
    except (ValueError, AttributeError, TypeError):
        pass
    raise UsageError(f'{path}: this is no list of MCP servers, like {{"mcpServers": {{"name": {{"command": "…"}}}}}}')
