"""The group of all verbs. It knows their names and one-line helps by heart, and imports the module of a verb on use."""

from __future__ import annotations

import importlib
import keyword
import os
from collections.abc import Iterable

import click

from hansard._version import __version__
from hansard.cli import VERBS, terminal_width
from hansard.cli.failures import boundary
from hansard.errors import did_you_mean

ALIASES = {
    "cat": "events",
    "check": "verify",
    "convert": "export",
    "cost": "usage",
    "costs": "usage",
    "find": "search",
    "grep": "search",
    "help": "--help",
    "list": "sessions",
    "ls": "sessions",
    "record": "run",
    "start": "run",
    "tail": "events --follow",
    "version": "--version",
    "view": "show",
    "web": "serve",
}
"""What other programs call what we do, or nearly."""


class Verbs(click.Group):
    """A click group whose commands are modules that are not imported yet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every verb, in the order of `VERBS`."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a verb; this is where its module is imported."""
        if cmd_name not in VERBS:
            return None
        return importlib.import_module(f"hansard.cli.verbs.{module_name(cmd_name)}").command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that was named; if there is none, the one that may be meant."""
        name = args[0]
        if name not in VERBS and not name.startswith("-") and not ctx.resilient_parsing:
            other = ALIASES.get(name)
            ctx.fail(f"no command is called {name!r}" + (f"; did you mean {other!r}?" if other else did_you_mean(name, VERBS) or "."))
        return super().resolve_command(ctx, args)


def module_name(verb: str) -> str:
    """The module of a verb: its name, with an underscore where the name alone is a word of Python."""
    return f"{verb}_" if keyword.iskeyword(verb) else verb


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="hansard", message="%(prog)s %(version)s")
def verbs() -> None:
    """Record, search, and understand what your coding agents say and do."""


def narrow() -> int | None:
    """How wide a narrow terminal is: click by itself never writes help in less than 50 columns."""
    width = terminal_width()
    return width - 2 if width < 52 else None


class NarrowFormatter(click.HelpFormatter):
    """Help for a narrow terminal: a longer option has a line of its own, so that there is room for what it does."""

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 12, col_spacing: int = 2) -> None:
        """Writes options and what they do."""
        super().write_dl(list(rows), min(col_max, 12), col_spacing)


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code: what the verb returned if that is an int, what it exited with, or 0."""
    outcome: object = None
    try:
        with boundary():
            if "_HANSARD_COMPLETE" in os.environ:
                verbs.main(arguments, prog_name="hansard")  # click answers the shell and exits
            if narrow() is not None:
                click.Context.formatter_class = NarrowFormatter
            with verbs.make_context("hansard", arguments, terminal_width=narrow()) as context:
                outcome = verbs.invoke(context)
    except SystemExit as end:
        outcome = end.code
    return outcome if isinstance(outcome, int) else 0
