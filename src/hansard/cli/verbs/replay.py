"""``hansard replay``: an agent once more with the recorded answers of its model, and the first thing that it does otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hansard.cli import completers as completing
from hansard.cli.options import json_option, store_option, store_place, variables


@click.command("replay")
@click.argument("session", shell_complete=completing.sessions)
@click.option("--from", "from_seq", type=click.IntRange(min=1), metavar="§", help="Begin with the first prompt at or after this event.")
@click.option("--agent", shell_complete=completing.agents, help="Use another agent, with the same prompts and answers.")
@click.option("--model", help="Use another model name.")
@click.option("--mode", "permission_mode", help="Use another permission mode of the agent.")
@click.option(
    "--workspace",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Work in a copy of this folder. The default is the recorded commit, or else an empty folder.",
)
@click.option(
    "--keep", type=click.Path(path_type=Path), metavar="DIR", help="Keep the log, the work tree, and the home of the replay here."
)
@click.option(
    "--agent-home",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="The home folder of the recorded agent, where its own session files are. The default is yours.",
)
@click.option("--program", type=click.Path(), metavar="PATH", help="The agent's program, if not the recorded one or the one on the PATH.")
@click.option("--argument", "arguments", multiple=True, metavar="TEXT", help="One more argument of the program. Repeatable.")
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable of the agent's environment. Repeatable.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="How long a turn may take.",
)
@store_option
@json_option
def command(session: str, env: tuple[str, ...], arguments: tuple[str, ...], store: str | None, as_json: bool, **given: Any) -> int:
    """Run an agent again with the recorded answers of its model.

    The agent gets the same prompts, permission decisions, and settings. A server on this computer gives it the answers of its model from
    the record, so it needs no account and no network. It works in a copy of its work tree, with an empty home folder. The first event that
    differs is shown from both sides.

    Exit codes: 0 no divergence, 1 a divergence, 2 error.
    """
    import msgspec

    from hansard.cli.inputs import need_session
    from hansard.projections.terminal_text import escape_text
    from hansard.store import open_store
    from hansard.testing.replay import ReplayOptions, replay, report

    root = store_place(store)
    options = ReplayOptions(arguments=list(arguments), env=variables(env), **given)
    with open_store(root) as opened:
        result = replay(opened, need_session(root, session), options)
    click.echo(msgspec.json.encode(result).decode() if as_json else escape_text(report(result)), nl=as_json)
    return 0 if result.divergence is None else 1
