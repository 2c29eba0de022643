"""A session as one HTML file that needs nothing else: its events, and the page's own renderer, which draws them as the live page does.

The state of the session is in the file, too, after the events: the script computes nothing of it.

A browser may run that one script and nothing more, and ask nobody for anything: the file says so by the script's hash.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from typing import Any, cast

from hansard.events import TYPES, Event
from hansard.events.codec import encode
from hansard.events.content import AudioBlock, DocumentBlock, FileBlock, ImageBlock, ResourceBlock
from hansard.events.state import State
from hansard.projections.base import Projection
from hansard.projections.omissions import skip_except
from hansard.projections.output import encode as encode_json
from hansard.projections.page import bundle, style
from hansard.projections.text import without_frame

HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '{script}'; style-src '{style}'; \
img-src data:; media-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'">
<meta name="referrer" content="no-referrer">
<title>A session on the record</title>
<link rel="icon" href="data:,">
<style>{sheet}</style>
</head>
<body>
<noscript>This is a session on the record. The page is drawn by a script; the events are in its source, one a line.</noscript>
<script type="application/x-ndjson" id="events">
"""
STATE = """</script>
<script type="application/json" id="state">
"""
TAIL = """
</script>
<script type="module">{code}</script>
</body>
</html>
"""
IN_BLOBS = "its bytes lie in a blob beside the log; it is named"


class Html(Projection[bytes]):
    """Every event, as the page gets it, in a page that draws them. The verbatim frames stay in the log, unless nothing else says them."""

    output = "bytes"
    handled = frozenset(TYPES)
    skipped = skip_except(handled, {})
    leaves_unknown = None
    carries_replays = True  # the page leaves them out itself

    def __init__(self) -> None:
        super().__init__()
        self._began = False
        self._state = State()

    def handle(self, event: Event) -> Iterator[bytes]:
        """A line of the file."""
        yield from self._beginning()
        self._note(event)
        self._state.apply(event)
        yield _in_script(encode(without_frame(event))) + b"\n"

    def finish(self) -> Iterator[bytes]:
        """The state, and the end of the page."""
        yield from self._beginning()
        yield STATE.encode() + _in_script(encode_json(self._state.snapshot()))
        yield page()[1]

    def _beginning(self) -> Iterator[bytes]:
        if not self._began:
            self._began = True
            yield page()[0]

    def _note(self, event: Event) -> None:
        content = cast("list[Any]", getattr(event.payload, "content", None) or [])
        for block in [*content, getattr(event.payload, "block", None)]:
            if isinstance(block, AudioBlock | DocumentBlock | FileBlock | ImageBlock | ResourceBlock) and block.blob is not None:
                self.report.note(IN_BLOBS)


@cache
def page() -> tuple[bytes, bytes]:
    """What stands before the events, and behind them."""
    code, sheet = bundle("transcript/standalone.js"), style("transcript/standalone.css")
    return HEAD.format(script=_hash(code), style=_hash(sheet), sheet=sheet).encode(), TAIL.format(code=code).encode()


def _in_script(data: bytes) -> bytes:
    """Returns JSON that HTML reads as text to the end of the script."""
    return data.replace(b"<", b"\\u003c")


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()
