"""``hansard compress``: closed logs take less room, without loss; everything reads them as before."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

import click
from msgspec import Struct

from hansard.cli.completers import sessions
from hansard.cli.options import Age, age, json_option, note, store_option, store_path
from hansard.cli.progress import progress
from hansard.errors import LogLocked, StoreError, UsageError

if TYPE_CHECKING:
    from hansard.store import SessionInfo
    from hansard.store.files.store import JsonlStore


SHOWN = 10
"""So many problems are told one by one."""


class Done(Struct, omit_defaults=True, rename="camel"):
    """One session: what became of it, its length as text, and what it takes on the disk."""

    session: str
    state: Literal["changed", "unchanged", "being written", "failed"]
    bytes: int = 0
    stored: int = 0
    problem: str | None = None


@click.command("compress")
@click.argument("names", metavar="[SESSION…]", nargs=-1, shell_complete=sessions)
@click.option("--all", "everything", is_flag=True, help="Every session that nobody is writing.")
@click.option("--older-than", type=age, metavar="AGE", help="Every session in which nothing was said for so long: 30d, 12h, 8w.")
@click.option("--undo", is_flag=True, help="Unpack instead.")
@store_option
@json_option
def command(names: tuple[str, ...], everything: bool, older_than: Age | None, undo: bool, store: str | None, as_json: bool) -> int:
    """Compress closed logs.

    Every command reads a compressed log as before, and `zstdcat` prints its text. A session that is resumed is decompressed first. A
    session that is being written is left alone. Exit code 2 if a named session is being written, or a log could not be compressed.
    """
    from hansard.store.files.store import JsonlStore

    kept = JsonlStore(store_path(store))
    chosen = choose(kept, names, everything, older_than)
    done: list[Done] = []
    with progress("unpacking" if undo else "compressing", sum(size for _, size in chosen)) as advance:
        for name, size in chosen:
            done.append(change(kept, name, undo, bool(names)))
            advance(size)
    return report(done, undo, as_json)


def choose(store: JsonlStore, names: tuple[str, ...], everything: bool, older_than: Age | None) -> list[tuple[str, int]]:
    """The sessions that are meant, and how long their logs are."""
    from hansard.cli.inputs import need_session

    if names and (everything or older_than is not None):
        raise UsageError("name sessions, or choose them with --all or --older-than; not both")
    if names:
        found = dict.fromkeys(need_session(store.root, name) for name in names)
        return [(name, store[name].head().bytes) for name in found]
    if not everything and older_than is None:
        raise UsageError("name the sessions to compress, or say --all or --older-than AGE")
    before = time.time() * 1000 - (older_than.ms if older_than else 0)
    return [(info.id, info.bytes) for info in store.sessions() if is_meant(info, before)]


def is_meant(info: SessionInfo, before: float) -> bool:
    """Whether nothing was said in a session since a time. What cannot be read is left as it is."""
    return info.problem is None and (info.updated or 0) <= before


def change(store: JsonlStore, name: str, undo: bool, named: bool) -> Done:
    """Change one session. One that cannot be changed does not keep the others from it."""
    try:
        made = store[name].expand() if undo else store[name].compress()
    except LogLocked as problem:
        return Done(name, "failed" if named else "being written", problem=str(problem))
    except StoreError as problem:
        return Done(name, "failed", problem=str(problem))
    return Done(name, "changed" if made.changed else "unchanged", made.bytes, made.stored)


def report(done: list[Done], undo: bool, as_json: bool) -> int:
    """What became of it all, and the exit code."""
    if as_json:
        from hansard.cli.tables import print_json

        print_json(done)
    else:
        show(done, undo)
    return 2 if any(one.state == "failed" for one in done) else 0


def show(done: list[Done], undo: bool) -> None:
    """The totals for people."""
    from hansard.cli.tables import sized

    changed = [one for one in done if one.state == "changed"]
    text, stored = sum(one.bytes for one in changed), sum(one.stored for one in changed)
    counts = {state: sum(one.state == state for one in done) for state in ("unchanged", "being written", "failed")}
    told = [f"{len(changed)} {'unpacked' if undo else 'compressed'}", *(f"{count} {state}" for state, count in counts.items() if count)]
    click.echo(f"sessions: {', '.join(told)}")
    if changed and not undo:
        click.echo(f"{sized(text)} in {sized(stored)}, {text / stored:.1f} times smaller")
    failed = [one for one in done if one.state == "failed"]
    for one in failed[:SHOWN]:
        note(f"{one.session}: {one.problem}")
    if len(failed) > SHOWN:
        note(f"and {len(failed) - SHOWN} more; --json lists them all")
