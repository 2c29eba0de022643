"""A store in a fresh folder for every test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hansard.events import Event, assistant_chunk
from hansard.store import JsonlStore

Say = Callable[..., list[Event]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(root: Path) -> Iterator[JsonlStore]:
    with JsonlStore(root) as opened:
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
