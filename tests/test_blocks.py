"""Every fenced block of the documentation does what it says: `tests/blocks.py` runs them, page by page."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

import pytest

from tests.blocks import Block, Reader, agrees, blocks, commands, pages

INSTALLS = "installs packages, or runs every test"
DATABASE = "wants a database with its roles; tests/test_deployment.py does the same on a real PostgreSQL"
ACCOUNT = "wants an agent with an account; the same is done with the demo agent on this page"
DRAWING = "a drawing or a listing: nothing to run"
NOT_RUN: dict[tuple[str, str], str] = {
    ("README.md", "$ pip install . && hansard demo"): INSTALLS,
    ("README.md", "$ make test"): INSTALLS,
    ("README.md", " an agent's stdout · HTTP/SSE · its transcript on disk"): DRAWING,
    ("CONTRIBUTING.md", "$ make check     # style, types, layers, fast tests: under 3 minutes, before every commit"): INSTALLS,
    (
        "CONTRIBUTING.md",
        "cli > server > hub > session > importing > agents | store > drift > audit | normalizing | recognising > adapters | projections > adapter | tools | transcript > framing | ledger | loose | words > codec > originals > events > content > errors",
    ): DRAWING,
    ("docs/log-format.md", "<store>/<session>/events.jsonl      the log"): DRAWING,
    (
        "src/hansard/adapters/codex/README.md",
        'codex exec --json --skip-git-repo-check -- "prompt"                 stdin closed, or it waits for more',
    ): DRAWING,
    ("docs/deployment.md", "$ pip install 'hansard[postgres]'"): DATABASE,
    ("docs/start/team-server.md", "$ pip install 'hansard[postgres]'"): DATABASE,
}
"""Blocks that are not run, by their page and first line, and why."""


def key(block: Block) -> tuple[str, str]:
    """What a block is called in the list of those that are not run."""
    return block.page, block.text.partition("\n")[0]


def runs(page: str) -> list[tuple[Block, str | None]]:
    """What is run of a page, each block with the output that is shown after it."""
    found = blocks(page)
    return [
        (block, following.text if following is not None and following.language == "output" else None)
        for block, following in zip_longest(found, found[1:])
        if block.language != "output" and key(block) not in NOT_RUN
    ]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with what agents left in a home."""
    home = tmp_path_factory.mktemp("home")
    with Reader(home) as reader:
        reader.read(Block("", 0, "console", "$ hansard import\nsessions: 4 added\n…\n"), None)
    return home / ".hansard"


SLOW = {page for page in pages() if any(block.language in ("console", "python", "js") for block, _ in runs(page))}
"""Pages that start a process; the others are held to this by `make check`, too."""


@pytest.mark.parametrize("page", [pytest.param(page, marks=[pytest.mark.slow] if page in SLOW else []) for page in pages() if runs(page)])
def test_every_block_of_a_page_does_what_it_says(page: str, record: Path, tmp_path: Path) -> None:
    imports = any("$ hansard import" in block.text for block in blocks(page))
    with Reader(tmp_path, None if imports else record) as reader:
        for block, shown in runs(page):
            reader.read(block, shown)


def test_what_is_not_run_is_there_and_no_longer_than_a_screen() -> None:
    there = {key(block) for page in pages() for block in blocks(page)}
    assert set(NOT_RUN) - there == set()
    assert len(NOT_RUN) <= 20


def test_output_stands_after_what_is_run() -> None:
    for page in pages():
        found = blocks(page)
        for before, block in zip([None, *found], found, strict=False):
            assert block.language != "output" or (before is not None and before.language in ("python", "js")), (page, block.line)


@pytest.mark.parametrize(
    ("said", "shown", "same"),
    [
        ("one\ntwo\n", "one\ntwo", True),
        ("one\ntwo", "one\n…", True),
        ("one\ntwo\nthree", "one\n…\nthree", True),
        ("one\nthree", "one\n…\nthree", True),
        ("one", "one\n…", True),
        ("id 019a2b end", "id … end", True),
        ("id 019a2b\nend", "id … end", False),
        ("one\ntwo", "one", False),
        ("one", "two", False),
    ],
)
def test_dots_stand_for_anything_and_nothing_else_does(said: str, shown: str, same: bool) -> None:
    assert agrees(said, shown) is same


def test_a_block_that_says_something_else_fails(tmp_path: Path) -> None:
    block = Block("page.md", 1, "console", "$ echo one\ntwo\n")
    with Reader(tmp_path) as reader, pytest.raises(AssertionError, match="and says:\none"):
        reader.read(block, None)


def test_a_command_that_fails_fails(tmp_path: Path) -> None:
    block = Block("page.md", 1, "console", "$ hansard show nobody\n")
    with Reader(tmp_path) as reader, pytest.raises(AssertionError, match="ends with 2"):
        reader.read(block, None)


def test_a_command_may_go_on_in_the_next_line() -> None:
    assert [command.text for command in commands("$ one \\\n>   two\nsaid\n$ three\n")] == ["one \\\n  two", "three"]
