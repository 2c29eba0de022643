"""Who says that a page of Markdown is right: a CommonMark parser, which may find no HTML in it but ours."""

from __future__ import annotations

from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

OURS = {"<details><summary>Thinking</summary>", "</details>"}


@cache
def parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"maxNesting": 100})


def tokens(text: str) -> list[Token]:
    found = parser().parse(text)
    return [*found, *(child for token in found for child in token.children or [])]


def markdown_is_a_page(pieces: list[str], data: bytes) -> None:
    text = data.decode()
    found = tokens(text)
    tags = [token.content.strip() for token in found if token.type.startswith("html")]
    assert set(tags) <= OURS
    assert tags.count("</details>") * 2 == len(tags)
    assert not [token for token in found if token.type == "image"]
    if pieces:
        assert found[0].type == "heading_open" and found[1].content.startswith("Session ")
