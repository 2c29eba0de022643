"""What holds for every page of its own: it runs its own script and nothing else, and its events can be read out of it again."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

from hansard.events.codec import decode, encode

BEGIN, STATE, END = b'id="events">\n', b'</script>\n<script type="application/json" id="state">\n', b'\n</script>\n<script type="module">'


def html_is_whole(pieces: list[Any], data: bytes) -> None:
    """The events are lines of JSON that no HTML can begin in; around them is what is around every session's."""
    head, _, rest = data.partition(BEGIN)
    lines, _, rest = rest.partition(STATE)
    state, _, tail = rest.partition(END)
    assert b"<" not in lines and len(lines.splitlines()) == len(pieces) - 3
    assert b"<" not in state and json.loads(state)["seq"] >= 0
    for line in lines.split(b"\n")[:-1]:
        event = decode(line)
        assert json.loads(encode(event)) == json.loads(line)
    frame_is_closed(head, tail)


@cache
def frame_is_closed(head: bytes, tail: bytes) -> None:
    """Only the script and the style with the hashes that stand in the head; and nothing that leads out."""
    page = Page()
    page.feed((head + BEGIN + END + tail).decode())
    assert [name for name, _ in page.found] == ["script", "style"], page.found
    policy = next(text for text in page.metas if "default-src" in text)
    for kind, text in page.found:
        assert f"{kind}-src 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in policy
    assert "default-src 'none'" in policy and "connect-src" not in policy and "unsafe" not in policy
    assert page.addresses == ["data:,"]


class Page(HTMLParser):
    """The scripts and styles that would run, the policies, and the addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self.metas: list[str] = []
        self.addresses: list[str] = []
        self._inside: str | None = None
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A script of data does not run."""
        fields = dict(attrs)
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag == "meta" and re.fullmatch("content-security-policy", fields.get("http-equiv") or "", re.IGNORECASE):
            self.metas.append(fields.get("content") or "")
        if tag == "style" or (tag == "script" and fields.get("type") == "module"):
            self._inside, self._text = tag, ""

    def handle_data(self, data: str) -> None:
        """What stands in it."""
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        """Its end."""
        if tag == self._inside:
            self.found.insert(0, (tag, self._text))
            self._inside = None
