"""Two stores at once: where sessions come from and where they go, each a folder or a database."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hansard.cli.options import F
from hansard.errors import UsageError
from hansard.store import default_place, is_database, open_store

if TYPE_CHECKING:
    from hansard.store import Store

_SECRET = re.compile(r"(?<=://)([^/@:]*):[^/@]*@")


def from_option(function: F) -> F:
    """``--from STORE``."""
    text = "Where the sessions are; $HANSARD_STORE or ~/.hansard if not said."
    return click.option("--from", "source", metavar="STORE", help=text)(function)


def to_option(function: F) -> F:
    """``--to STORE``."""
    return click.option("--to", "target", metavar="STORE", required=True, help="Where to bring them: a folder, or postgresql://….")(
        function
    )


@contextmanager
def opened_pair(source: str | None, target: str) -> Generator[tuple[Store, Store]]:
    """Both stores, opened; an error if they are the same one."""
    place = source or str(default_place())
    if same(place, target):
        raise UsageError(f"{shown(target)} is the same store: there is nothing to bring anywhere")
    with open_store(place) as here, open_store(target) as there:
        yield here, there


def same(one: str, other: str) -> bool:
    """Whether two names are of one store."""
    if is_database(one) or is_database(other):
        return one == other
    return Path(one).expanduser().resolve() == Path(other).expanduser().resolve()


def shown(place: str) -> str:
    """The name of a store without a password in it."""
    return _SECRET.sub(r"\1@", place)
