"""``hansard share``: a session as one masked file, or a link to it that only reads and expires."""

from __future__ import annotations

import os
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

import click

from hansard.cli import completers
from hansard.cli.options import Age, age, json_option, note, store_option, store_place
from hansard.errors import UsageError
from hansard.events.times import to_datetime

if TYPE_CHECKING:
    from hansard.events import Event
    from hansard.store import Store

MAX_DAYS = 365


def lifetime(ctx: click.Context, param: click.Parameter, value: str) -> Age:
    """How long a link is good."""
    found = age(value)
    if not 0 < found.ms <= MAX_DAYS * 24 * 3_600_000:
        raise click.BadParameter(f"a link is good for up to {MAX_DAYS} days")
    return found


@click.command("share")
@click.argument("session", metavar="SESSION", shell_complete=completers.sessions)
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="An .html or .zip file. Default: SESSION.html."
)
@click.option("--link", is_flag=True, help="Print a link to the session on a running server instead. Nothing is masked there.")
@click.option(
    "--expires", metavar="AGE", default="7d", show_default=True, callback=lifetime, help="How long the link is good: 12h, 7d, 4w."
)
@click.option("--server", metavar="URL", envvar="HANSARD_SERVER", help="The link that `hansard serve` printed. Default: $HANSARD_SERVER.")
@store_option
@json_option
def command(session: str, output: Path | None, link: bool, expires: Age, server: str | None, store: str | None, as_json: bool) -> None:
    """Write a session as one masked file, or make a link to it.

    The HTML file needs nothing else: open it in a browser, or attach it to an issue. A .zip file has the masked log, too. Secrets are
    masked, and the command lists what it masked; look through the file before you pass it on, because no list of secrets is complete.

    With --link, prints a link to the session on a running server. Anyone who has the link can read this one session as it is recorded, and
    nothing else, until it expires. A new token of the server ends all its links.
    """
    if link:
        if output is not None:
            raise UsageError("--output is for a file; a link is printed")
        print_link(session, expires, server, as_json)
        return
    from hansard.cli.inputs import need_session
    from hansard.store import open_store

    root = store_place(store)
    name = need_session(root, session)
    path = output or Path(f"{name}.html")
    if output is None and path.exists():
        raise UsageError(f"{path} exists; name another file with --output")
    if path.suffix not in (".html", ".zip"):
        raise UsageError("a file to share is .html or .zip")
    with open_store(root) as record:
        masked = write_file(record, name, path)
    print_file(path, masked, as_json)


Masked = dict[str, dict[str, int]]
"""Secrets by kind, with the places where they stood and how often."""


def write_file(record: Store, session: str, path: Path) -> Masked:
    """Write the file for this user alone, and return what was masked."""
    with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "r+b") as out:
        if path.suffix == ".html":
            pieces, masked = masked_page(record, session)
            out.writelines(pieces)
            return masked()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            page, of_page = masked_page(record, session)
            log, of_log = masked_log(record, session)
            for name, pieces in ((f"{session}.html", page), (f"{session}.jsonl", log)):
                with archive.open(name, "w") as file:
                    file.writelines(pieces)
        return of_page() | of_log()


def masked_page(record: Store, session: str) -> tuple[Iterator[bytes], Callable[[], Masked]]:
    """The pieces of the HTML file, and what was masked in them when all are written."""
    from hansard.projections import projection_for
    from hansard.projections.redaction.redact import redact
    from hansard.store.export import export_session

    redacted = redact(())
    return export_session(record, session, projection_for("html")(), redacted), lambda: redacted.masked


def masked_log(record: Store, session: str) -> tuple[Iterator[bytes], Callable[[], Masked]]:
    """The events as JSON Lines without the agent's frames, and what was masked in them."""
    from hansard.projections.redaction.redact import redact

    redacted = redact(())
    return (encoded for block in redacted.blocks(log_blocks(record, session)) for encoded in map(_line, block)), lambda: redacted.masked


def log_blocks(record: Store, session: str) -> Iterator[Sequence[Event]]:
    """The events of the log in order. A frame that nothing else says stays: it is masked, too."""
    from hansard.projections import projection_for
    from hansard.store.export import read_session, with_originals

    page = projection_for("html")()
    return with_originals(read_session(record, session, page, lambda size: None), page, record[session].get_blob)


def _line(event: Event) -> bytes:
    from hansard.events.codec import encode

    return encode(event) + b"\n"


def print_file(path: Path, masked: Masked, as_json: bool) -> None:
    """Where the file is, and what was masked."""
    if as_json:
        from hansard.cli.tables import print_json

        print_json({"file": str(path), "bytes": path.stat().st_size, "masked": masked})
        return
    from hansard.cli.tables import sized

    click.echo(f"{path} ({sized(path.stat().st_size)})")
    kinds = ", ".join(f"{kind} ({sum(places.values())})" for kind, places in sorted(masked.items()))
    click.echo(f"Masked: {kinds}" if masked else "Masked: nothing, no secrets were found")


# --------------------------------------------------------------------------------------------------------------------
# A link


def print_link(session: str, expires: Age, server: str | None, as_json: bool) -> None:
    """The link, if the server has the session."""
    import asyncio

    from hansard.server.tokens import share_secret

    if not server:
        raise UsageError("--link needs a running server: pass the link that `hansard serve` printed with --server, or set HANSARD_SERVER")
    parts = urlsplit(server)
    secret = parse_qs(parts.query).get("token", [""])[0]
    if not secret or secret.startswith("share."):
        raise UsageError("the link of the server needs the token of a participant, as `hansard serve` printed it")
    name = asyncio.run(find(server, session))
    end = int(time.time() + expires.ms / 1000)
    made = urlunsplit((parts.scheme, parts.netloc, parts.path, f"token={share_secret(secret, name, end)}", name))
    if as_json:
        from hansard.cli.tables import print_json

        told: dict[str, Any] = {"link": made, "session": name, "expires": end}
        print_json(told)
        return
    click.echo(made)
    note(f"good until {to_datetime(end * 1000, None):%Y-%m-%d %H:%M}; the session is shown as it is recorded, nothing is masked")


async def find(server: str, session: str) -> str:
    """The session by its full id. Only a participant can make links."""
    from hansard.server.client import connect

    async with connect(server) as client:
        if client.about.role != "participant":
            raise UsageError("only a participant can share a session; use the first link that `hansard serve` printed")
        return (await client.session(session)).id
