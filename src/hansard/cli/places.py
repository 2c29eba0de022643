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

if TYPE_CHECKING:
    from hansard.store import Store

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
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
    from hansard.store import default_place, open_store

    place = source or str(default_place())
    if same(place, target):
        raise UsageError(f"{shown(target)} is the same store: there is nothing to bring anywhere")
    with open_store(place) as here, open_store(target) as there:
        yield here, there


def same(one: str, other: str) -> bool:
    """Whether two names are of one store."""
    if is_address(one) or is_address(other):
        return one == other
    return Path(one).expanduser().resolve() == Path(other).expanduser().resolve()


def is_address(place: str) -> bool:
    """Whether it names a database."""
    return _ADDRESS.match(place) is not None


def shown(place: str) -> str:
    """The name of a store without a password in it."""
    return _SECRET.sub(r"\1@", place)
