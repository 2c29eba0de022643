"""`make scorecard`: install what installs, measure, print one table, write docs/scorecard.md."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.scorecard import follow, speed
from benchmarks.scorecard.kept import read
from benchmarks.scorecard.page import PAGE, Card, page, plain, replace_tokens, table
from benchmarks.scorecard.peer import NotInstalled, Peer
from benchmarks.scorecard.peers import ALL, COUNTING
from benchmarks.scorecard.samples import HOMES
from benchmarks.scorecard.tokens import exact


def main() -> None:
    """Measure."""
    options = argparse.ArgumentParser(description="hansard beside other tools that read agents, by the same measurements")
    options.add_argument("--only", default="", help="tools with this in their name; the page is not written")
    options.add_argument("--format", default="", help="formats with this in their name; the page is not written")
    options.add_argument("--tokens", action="store_true", help="only the tokens, and only that section of the page is written")
    given = options.parse_args()
    card = Card()
    if given.tokens:
        count(card)
        PAGE.write_text(replace_tokens(PAGE.read_text(), card))
        return
    for kind in ALL:
        if given.only in kind.name:
            add(card, kind())
    for peer in card.peers:
        for format in peer.formats:
            if given.format in format:
                tell(f"{peer.name}: {format}")
                card.kept[peer.name, format] = read(peer, format)
    for peer in card.peers:
        if isinstance(peer, follow.Streams):
            tell(f"{peer.name}: stream")
            card.lost[peer.name] = (lost(peer, cut=False), lost(peer, cut=True))
    tell("speed")
    card.spent = speed.measure(card.peers)
    print(plain(table(card)))
    for name, why in card.skipped.items():
        print(f"skipped {name}: {why}")
    if not given.only and not given.format:
        count(card)
        PAGE.write_text(page(card))
        print(f"wrote {PAGE.relative_to(Path.cwd()) if PAGE.is_relative_to(Path.cwd()) else PAGE}")


def count(card: Card) -> None:
    """Measure which tools count tokens exactly."""
    for kind in COUNTING:
        peer = kind()
        try:
            peer.install()
        except NotInstalled as problem:
            tell(f"skipped {peer.name}: {peer.version} does not install here: {problem}")
            continue
        card.counting.append(peer)
        for format in HOMES:
            tell(f"{peer.name}: tokens, {format}")
            found = exact(peer, format)
            if found is not None:
                card.exact[peer.name, format] = found


def add(card: Card, peer: Peer) -> None:
    """Install a tool, or say why not."""
    tell(f"{peer.name} {peer.version}: install")
    try:
        peer.install()
    except NotInstalled as problem:
        card.skipped[peer.name] = f"{peer.version} does not install here: {problem}"
        tell(f"skipped {peer.name}: {card.skipped[peer.name]}")
    else:
        card.peers.append(peer)


def lost(tool: follow.Streams, cut: bool) -> int:
    """How much a client loses, in a place of its own."""
    with tempfile.TemporaryDirectory(prefix="scorecard-", ignore_cleanup_errors=True) as home:
        return follow.lost(tool, Path(home), cut)


def tell(what: str) -> None:
    """Progress, for whoever waits."""
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
