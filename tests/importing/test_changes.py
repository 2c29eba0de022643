"""Waiting for files to change: notified by the system, or by looking again."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hansard.importing import session
from hansard.importing.changes import Changes, Inotify, PlaceChanges, Polling
from hansard.importing.discovery import Discovery, discover
from hansard.importing.session import ImportResult
from hansard.importing.watch import watch
from tests.imported import original
from tests.sessions import SESSION, project, turn

PATIENCE = 20.0
KINDS: list[Callable[[list[Path]], Inotify | Polling]] = [Polling, *([Inotify] if sys.platform == "linux" else [])]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def watched(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Changes]:
    monkeypatch.setattr("hansard.importing.changes.POLL_SECONDS", 0.01)
    (tmp_path / "below/further").mkdir(parents=True)
    (tmp_path / "below/old").write_text("1")
    changes = request.param([tmp_path])
    yield changes
    changes.close()


def until(changes: Changes, *paths: Path) -> bool:
    """Waits until these files were named as changed, and no other."""
    wanted, found, end = {str(path) for path in paths}, set[str](), time.monotonic() + PATIENCE
    while not wanted <= found and time.monotonic() < end:
        found |= changes.wait(0.05) or set()
    return found == wanted


def test_a_file_that_grows_and_one_that_comes_are_named(watched: Changes, tmp_path: Path) -> None:
    with (tmp_path / "below/old").open("a") as file:
        file.write("2")
    assert until(watched, tmp_path / "below/old")
    (tmp_path / "below/further/new").write_text("1")
    (tmp_path / "below/.hidden").write_text("1")
    assert until(watched, tmp_path / "below/further/new")


def test_files_in_new_folders_are_named(watched: Changes, tmp_path: Path) -> None:
    deep = tmp_path / "a/b/c"
    deep.mkdir(parents=True)
    (deep / "one").write_text("1")
    assert until(watched, deep / "one")
    (deep / "two").write_text("1")
    assert until(watched, deep / "two")


def test_a_file_that_is_put_in_its_place_is_named(watched: Changes, tmp_path: Path) -> None:
    (tmp_path / ".unfinished").write_text("other")
    os.replace(tmp_path / ".unfinished", tmp_path / "below/old")
    assert until(watched, tmp_path / "below/old")


def test_nothing_is_named_while_nothing_changes(watched: Changes) -> None:
    assert watched.wait(0.05) == set()


@pytest.mark.parametrize("kind", KINDS)
def test_the_neighbors_of_a_file_that_was_named_do_not_matter(kind: Callable[[list[Path]], Inotify | Polling], tmp_path: Path) -> None:
    for name in ("mine", "other"):
        (tmp_path / name).write_text("1")
    changes = kind([tmp_path / "mine"])
    for name in ("other", "mine"):
        (tmp_path / name).write_text("22")
    assert until(changes, tmp_path / "mine")
    changes.close()


def test_places_that_come_are_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hansard.importing.changes.POLL_SECONDS", 0.01)
    places = [tmp_path / "a", tmp_path / "b"]
    places[0].mkdir()
    changes = PlaceChanges(lambda: [place for place in places if place.exists()])
    assert changes.wait(0.05) == set()
    places[1].mkdir()
    assert changes.wait(0.05) is None, "any file may be new"
    (places[1] / "file").write_text("1")
    assert until(changes, places[1] / "file")


def test_of_many_files_only_the_one_that_grew_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, other = project(tmp_path, turn(1)), project(tmp_path, turn(1), session="99999999-2222-4333-8444-555555555555")
    looks: list[Path] = []
    opened: list[str] = []
    run = session.SessionImport.run

    def look() -> Discovery:
        looks.append(path)
        return discover([path.parent], None)

    def watched_run(self: session.SessionImport, closed: bool = False, quiet: float = 0) -> ImportResult:
        opened.append(self.job.streams[0].path)
        return run(self, closed, quiet)

    outcomes = watch(tmp_path / "store", look, 600, changes=PlaceChanges(lambda: [path.parent]))
    assert [next(outcomes).state for _ in range(2)] == ["added", "added"]
    monkeypatch.setattr(session.SessionImport, "run", watched_run)
    with path.open("ab") as file:
        file.write(turn(2))
    stop = threading.Timer(PATIENCE, lambda: other.write_bytes(turn(1) + turn(3)))  # so that a failure is not a wait without end
    stop.start()
    outcome = next(outcomes)
    stop.cancel()
    assert (outcome.session_id, outcome.state) == (f"claude-{SESSION}", "updated")
    assert (set(opened), looks) == ({str(path)}, [path])
    assert original(tmp_path / "store", outcome.session_id) == turn(1) + turn(2)
