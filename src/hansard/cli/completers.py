"""What a shell offers when somebody presses Tab: names that are there. Nothing here fails; where nothing can be offered, nothing is."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import click
from click.shell_completion import CompletionItem

from hansard.errors import HansardError

MOST = 200
"""More than this nobody reads."""


def sessions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The sessions of the store that the line so far speaks of."""
    from hansard.cli.inputs import beginning
    from hansard.cli.options import store_place

    with suppress(HansardError, OSError):
        place = store_place(ctx.params.get("store") or ctx.params.get("source"))
        return _offered(beginning(place, incomplete), incomplete)
    return []


def sessions_or_files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Sessions; where none begins so, files."""
    return sessions(ctx, param, incomplete) or [CompletionItem(incomplete, type="file")]


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files."""
    return [CompletionItem(incomplete, type="file")]


def formats(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Wire formats."""
    from hansard.adapters import format_names
    from hansard.cli.options import AUTO

    return _offered([AUTO, *format_names()], incomplete)


def forms(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Forms that a session can be given."""
    from hansard.cli.verbs.export import OTLP
    from hansard.projections import FORMATS

    return _offered([*FORMATS, OTLP], incomplete)


def agents(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Agents that can be driven."""
    from hansard.agents import agents

    return [CompletionItem(name, help=agent.title) for name, agent in sorted(agents().items()) if name.startswith(incomplete)]


def event_types(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Types of events."""
    from hansard.events import TYPES

    return _offered(sorted(TYPES), incomplete)


def _offered(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)][:MOST]
