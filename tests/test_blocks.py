"""Every fenced block of the documentation does what it says: `tests/blocks.py` runs them, page by page."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

import pytest

from tests.blocks import ROOT, Block, Reader, agrees, blocks, commands, pages

INSTALLS = "installs packages, or runs every test"
DATABASE = "wants a database with its roles; tests/test_deployment.py does the same on a real PostgreSQL"
PROGRAM = "wants the program that it records; tests/test_record.py records a small one"
ACCOUNT = "wants the real program and an account; tests/driving starts it so"
DRAWING = "a drawing or a listing: nothing to run"
NOT_RUN: dict[tuple[str, str], str] = {
    ("README.md", "$ pip install . && hansard demo"): INSTALLS,
    ("CONTRIBUTING.md", "$ make check"): INSTALLS,
    ("CONTRIBUTING.md", "$ PYTHONPATH=. .venv/bin/python tools/record.py"): PROGRAM,
    ("docs/code.md", "cli | integrations"): DRAWING,
    ("docs/code.md", "src/hansard/"): DRAWING,
    ("docs/how-it-works.md", " bytes ──► frames"): DRAWING,
    ("docs/log-format.md", "<store>/<session>/events.jsonl"): DRAWING,
    ("docs/deployment.md", "$ pip install 'hansard[postgres]'"): DATABASE,
    ("docs/start/team-server.md", "$ pip install 'hansard[postgres]'"): DATABASE,
    ("src/hansard/adapters/codex/README.md", "codex exec --json"): ACCOUNT,
}
"""Blocks that are not run, by their page and how they begin, and why."""
ELSEWHERE = {"docs/plugins.md": "tests/test_plugins.py", "docs/integrations.md": "tests/integrations"}
"""Pages whose blocks need packages of their own, and the tests that run them there."""


def listed(block: Block) -> tuple[str, str] | None:
    """The entry of the list by which a block is not run."""
    return next((entry for entry in NOT_RUN if entry[0] == block.page and block.text.startswith(entry[1])), None)


def runs(page: str) -> list[tuple[Block, str | None]]:
    """What is run of a page, each block with the output that is shown after it."""
    found = [] if page in ELSEWHERE else blocks(page)
    return [
        (block, following.text if following is not None and following.language == "output" else None)
        for block, following in zip_longest(found, found[1:])
        if block.language != "output" and listed(block) is None
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
    with Reader(tmp_path, None if imports else record, page) as reader:
        for block, shown in runs(page):
            reader.read(block, shown)


def test_what_is_not_run_is_there_and_no_longer_than_a_screen() -> None:
    assert set(NOT_RUN) - {listed(block) for page in pages() for block in blocks(page)} == set()
    assert len(NOT_RUN) <= 20


@pytest.mark.parametrize("page", sorted(ELSEWHERE.keys() & set(pages())))
def test_a_page_that_is_run_elsewhere_is_run_there(page: str) -> None:
    place = ROOT / ELSEWHERE[page]
    tests = [place] if place.is_file() else sorted(place.rglob("test_*.py"))
    assert any(f'"{Path(page).name}"' in path.read_text() for path in tests)


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
