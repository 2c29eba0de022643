"""``hansard completion``: what a shell has to be told so that it completes commands, options, sessions, formats, forms and agents."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from hansard.cli.options import json_option

SHELLS = {
    "bash": 'eval "$(hansard completion bash)"  # in ~/.bashrc',
    "zsh": 'eval "$(hansard completion zsh)"  # in ~/.zshrc, after compinit',
    "fish": "hansard completion fish | source  # in ~/.config/fish/config.fish",
}
"""How each is told."""


@click.command("completion")
@click.argument("shell", type=click.Choice(list(SHELLS)), required=False)
@json_option
def command(shell: str | None, as_json: bool) -> None:
    """Print a shell completion script.

    It completes commands, sessions, formats, and agents.

    \b
    bash   eval "$(hansard completion bash)"     in ~/.bashrc
    zsh    eval "$(hansard completion zsh)"      in ~/.zshrc, after compinit
    fish   hansard completion fish | source      in ~/.config/fish/config.fish

    Without SHELL it is the one that $SHELL names.
    """
    chosen = shell or Path(os.environ.get("SHELL", "")).name
    made = get_completion_class(chosen) if chosen in SHELLS else None
    if made is None:
        raise click.UsageError(f"name a shell: {', '.join(SHELLS)}", click.get_current_context())
    from hansard.cli.group import verbs

    script = made(verbs, {}, "hansard", "_HANSARD_COMPLETE").source()
    if as_json:
        from hansard.cli.tables import print_json

        print_json({"shell": chosen, "install": SHELLS[chosen], "script": script})
    else:
        click.echo(script)
