"""Two stores, one to move from and one to move to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from hansard.events import Event, assistant_chunk, audio_done, turn_end
from hansard.store import Store
from tests.postgres import fresh


class Places(NamedTuple):
    """Where the two stores are."""

    source: str
    target: str


@pytest.fixture(params=["folder-folder", "folder-postgres", "postgres-folder", "postgres-postgres"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Places]:
    """Each test, for every two engines."""
    with ExitStack() as stack:

        def place(engine: str, name: str) -> str:
            if engine == "folder":
                return str(tmp_path / name)
            return stack.enter_context(fresh(request.getfixturevalue("postgres"))).address

        source, _, target = request.param.partition("-")
        yield Places(place(source, "source"), place(target, "target"))


@pytest.fixture(params=["folder", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """One store, of either engine."""
    return str(tmp_path / "store") if request.param == "folder" else request.getfixturevalue("database").address


@pytest.fixture
def folders(tmp_path: Path) -> Places:
    """Two folders, for what only a folder has."""
    return Places(str(tmp_path / "source"), str(tmp_path / "target"))


Fill = Callable[..., None]


@pytest.fixture
def fill() -> Fill:
    """Puts a session with a few turns and a blob into a store: ``fill(store, "s", turns=3)``."""

    def go(store: Store, session_id: str, turns: int = 3) -> None:
        for turn in range(turns):
            said: list[Event] = [assistant_chunk(text=f"{turn}.{piece} é\u2028 " + "x" * piece) for piece in range(20)]
            store[session_id].append([*said, turn_end(status="completed")])
        sound = store[session_id].put_blob(f"sound of {session_id}".encode() * 100)
        store[session_id].append([assistant_chunk(text="listen"), audio_done(duration_ms=3, audio=sound)])
        store[session_id].release()

    return go
