"""A store in a fresh place for every test: in a folder, and for what is true of every engine also on PostgreSQL."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hansard.events import Event, assistant_chunk
from hansard.store import JsonlStore, Store, open_store

Say = Callable[..., list[Event]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(root: Path) -> Iterator[JsonlStore]:
    with JsonlStore(root) as opened:
        yield opened


@pytest.fixture(params=["folder", "postgres"])
def place(request: pytest.FixtureRequest, root: Path) -> str:
    """Where a store may be, for tests that hold for both engines; `open_store` opens it, as often as one likes."""
    return str(root) if request.param == "folder" else request.getfixturevalue("database").address


@pytest.fixture
def either(place: str) -> Iterator[Store]:
    """A store of either engine."""
    with open_store(place) as opened:
        yield opened


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
