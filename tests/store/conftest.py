"""A store in a fresh place for every test.

A test that says ``store: Store`` speaks of the interface: it runs on both engines. One that says ``store: JsonlStore`` is about files.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hansard.events import Event, assistant_chunk
from hansard.store import JsonlStore, Store, is_database, open_store
from hansard.store.postgres.store import PostgresStore

Say = Callable[..., list[Event]]

ENGINES = ["folder", "postgres"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    said = metafunc.function.__annotations__.values()
    if "store" in metafunc.fixturenames and (Store in said or "Store" in said):
        metafunc.parametrize("store", ENGINES, indirect=True)


def open_at(place: str, **options: Any) -> Store:
    """A store at a `place`, with a clock of one's own and the like."""
    return PostgresStore(place, **options) if is_database(place) else JsonlStore(place, **options)


def opened(request: pytest.FixtureRequest, root: Path, **options: Any) -> Store:
    """The store of the engine that the test is run on."""
    if getattr(request, "param", "folder") == "folder":
        return JsonlStore(root, **options)
    return PostgresStore(request.getfixturevalue("database").address, **options)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(request: pytest.FixtureRequest, root: Path) -> Iterator[Store]:
    with opened(request, root) as made:
        yield made


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest, root: Path) -> str:
    """Where a store may be, for tests of both engines that open several stores there."""
    return str(root) if request.param == "folder" else request.getfixturevalue("database").address


@pytest.fixture
def either(place: str) -> Iterator[Store]:
    """A store of either engine, beside which others can be opened at its `place`."""
    with open_store(place) as made:
        yield made


@pytest.fixture
def log(root: Path) -> Path:
    """Where the log of session ``s`` is."""
    return root / "s" / "events.jsonl"


@pytest.fixture
def say() -> Say:
    """Makes events: ``say(3)`` says 0, 1, 2; ``say("a", "b")`` says a, b."""

    def make(*words: object) -> list[Event]:
        texts = range(words[0]) if len(words) == 1 and isinstance(words[0], int) else words
        return [assistant_chunk(text=str(text)) for text in texts]

    return make
