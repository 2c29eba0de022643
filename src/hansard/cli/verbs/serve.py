"""``hansard serve``: the record and the agents of this machine for a browser and for programs, on loopback, behind a token."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hansard.cli.options import open_option, store_option, store_place
from hansard.errors import UsageError

if TYPE_CHECKING:
    from hansard.store import StoreLocation

PORT = 7413


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="The port; 0 takes any that is free.")
@open_option
@click.option("--observer-link", is_flag=True, help="Print a second link, for somebody who may only look.")
@click.option(
    "--token-file", type=click.Path(path_type=Path, dir_okay=False), help="Keep the token there, so that links outlive a restart."
)
@click.option("--name", "names", multiple=True, metavar="HOST[:PORT]", help="One more name it may be asked for by. Repeatable.")
@click.option("--tls-cert", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE", help="Speak TLS, with this.")
@click.option("--tls-key", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE", help="The key of the certificate.")
@click.option("--insecure-listen", is_flag=True, help="Listen beyond this machine without TLS: who is on the way reads everything.")
@click.option("--limit", "limited", multiple=True, metavar="NAME=N", help="Another limit than that of the documentation. Repeatable.")
@click.option("--json", "as_json", is_flag=True, help="The links as JSON, on one line.")
@store_option
def command(host: str, port: int, store: str | None, as_json: bool, **about: Any) -> int:
    """Start the web page and the API.

    The printed link contains a token: anyone who has the link can do everything. Ctrl-C stops the agents and closes their sessions.
    """
    from hansard.server.uvicorn_protocols import bound, is_loopback

    secure = about["tls_cert"] is not None
    if (about["tls_key"] is not None) != secure:
        raise UsageError("--tls-cert and --tls-key go together")
    if not is_loopback(host) and not secure and not about["insecure_listen"]:
        raise UsageError(f"{host} can be reached from elsewhere: give --tls-cert and --tls-key, or say --insecure-listen if that is meant")
    listening = bound(host, port)
    return serve(listening, host, store_place(store), as_json=as_json, **about)


def serve(listening: Any, host: str, root: StoreLocation, *, as_json: bool = False, page: Path | None = None, **about: Any) -> int:
    """Serve until somebody says stop. The socket listens already."""
    from hansard.server.app import app
    from hansard.server.protocol import Limits
    from hansard.server.uvicorn_protocols import Listener, hosts_of
    from hansard.store import open_store

    limits = _limits(about.get("limited", ()), Limits())
    tokens = _tokens(about.get("token_file"))
    port = listening.getsockname()[1]
    names = [name if ":" in name else f"{name}:{port}" for name in about.get("names", ())]
    cert, key = about.get("tls_cert"), about.get("tls_key")
    address = f"{'https' if cert else 'http'}://{(names or hosts_of(host, port))[0]}/"
    links = {token.role: f"{address}?token={token.secret}" for token in tokens}

    def ready() -> None:
        _say(links, root, as_json, about.get("observer_link", False))
        if wants_page(about.get("opens")):
            click.launch(links["participant"])

    _log_without([token.secret for token in tokens])
    with open_store(root) as store:
        made = app(store, tokens, [*hosts_of(host, port), *names], limits=limits, page=page)
        Listener(made, limits, cert=cert, key=key, ready=ready).run(sockets=[listening])
    return 0


def _log_without(secrets: list[str]) -> None:
    """Whatever this process logs, of whichever library, goes to stderr without secrets."""
    import logging

    from hansard.server.uvicorn_protocols import RedactingFormatter

    lines = logging.StreamHandler()
    lines.setFormatter(RedactingFormatter(secrets))
    logging.basicConfig(handlers=[lines], level=logging.WARNING)


def _tokens(kept: Path | None) -> list[Any]:
    from hansard.server.tokens import Token

    if kept is None:
        return [Token.make("participant"), Token.make("observer")]
    if not kept.exists():
        made = [Token.make("participant"), Token.make("observer")]
        fd = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(fd, "w") as file:
            file.writelines(f"{token.role} {token.secret}\n" for token in made)
        return made
    about = kept.stat()
    if about.st_uid != os.geteuid():
        raise UsageError(f"{kept} is another user's, who may know what is in it")
    if about.st_mode & 0o077:
        raise UsageError(f"{kept} can be read by others; chmod 600 it, or remove it for new tokens")
    lines = [line.split() for line in kept.read_text().splitlines() if line.strip()]
    if [line[0] for line in lines if len(line) == 2] != ["participant", "observer"]:
        raise UsageError(f"{kept} is no file of tokens; remove it for new ones")
    return [Token(role, secret, role) for role, secret in lines]  # pyright: ignore[reportArgumentType]


def _limits(given: tuple[str, ...], limits: Any) -> Any:
    from msgspec.structs import asdict, replace

    known = asdict(limits)
    for text in given:
        name, _, number = text.partition("=")
        if name not in known or not number.isdecimal():
            raise UsageError(f"--limit wants NAME=N, with one of {', '.join(known)}")
        limits = replace(limits, **{name: int(number)})
    return limits


def _say(links: dict[str, str], root: StoreLocation, as_json: bool, observer: bool) -> None:
    if as_json:
        import json

        from hansard.store import display_location

        told = {"url": links["participant"], "observerUrl": links["observer"], "store": display_location(root), "pid": os.getpid()}
        click.echo(json.dumps(told))
    else:
        click.echo(f"hansard is at {links['participant']}")
        if observer:
            click.echo(f"to look only:  {links['observer']}")
        click.echo("Ctrl-C stops it." if sys.stdout.isatty() else "", nl=sys.stdout.isatty())
    sys.stdout.flush()


def wants_page(opens: bool | None) -> bool:
    """Whether to open a browser: as it was said, or if there is one and somebody to see it."""
    if opens is not None:
        return opens
    there = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(there) and sys.stdout.isatty() and "SSH_CONNECTION" not in os.environ
