"""Two stores at once: where sessions come from and where they go, each a folder or a database."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from hansard.cli.options import F, store_place
from hansard.errors import UsageError

if TYPE_CHECKING:
    from hansard.store import Store, StoreLocation


def from_option(function: F) -> F:
    """``--from STORE``."""
    text = "Where the sessions are: a folder, a .zip, or postgresql://…; $HANSARD_STORE or ~/.hansard if not said."
    return click.option("--from", "source", metavar="STORE", help=text)(function)


def to_option(function: F) -> F:
    """``--to STORE``."""
    return click.option("--to", "target", metavar="STORE", required=True, help="Where to bring them: a folder, a .zip, or postgresql://….")(
        function
    )


@contextmanager
def opened_pair(source: str | None, target: str) -> Generator[tuple[Store, Store]]:
    """Both stores, opened; an error if they are the same one."""
    from hansard.store import display_location, open_store

    place, other = store_place(source), store_place(target)
    if same(place, other):
        raise UsageError(f"{display_location(other)} is the same store: there is nothing to bring anywhere")
    with folder_of(place, False) as one, folder_of(other, True) as two, open_store(one) as here, open_store(two) as there:
        yield here, there


@contextmanager
def folder_of(place: StoreLocation, keep: bool) -> Generator[StoreLocation]:
    """A store as it is; one file of sessions (`.zip`) as a folder, which is in the file at the end if it is to keep what was brought."""
    from hansard.store.transfer.bundle import SUFFIX, open_bundle

    if isinstance(place, str) or place.suffix != SUFFIX or place.is_dir():
        yield place
        return
    with open_bundle(place, keep) as folder:
        yield folder


def same(one: StoreLocation, other: StoreLocation) -> bool:
    """Whether two places are one store."""
    return one == other if isinstance(one, str) or isinstance(other, str) else one.resolve() == other.resolve()
