"""``hansard demo``: the first thing a new user runs."""

from __future__ import annotations

from pathlib import Path

from hansard.cli.demo import SCENES
from hansard.store import open_store
from tests.cli.conftest import Run


def test_the_demo_shows_every_scene(run: Run) -> None:
    ran = run("demo", "--speed", "0")
    assert ran.code == 0
    assert [what for what in SCENES.values() if what not in ran.out] == []
    assert "interrupted" in ran.out


def test_what_the_demo_keeps_is_a_healthy_store(run: Run, tmp_path: Path) -> None:
    ran = run("demo", "--speed", "0", "--keep", tmp_path / "kept")
    store = open_store(tmp_path / "kept")
    sessions = store.sessions()
    assert ran.code == 0
    assert sorted(info.title or "" for info in sessions) == sorted(SCENES.values())
    assert [finding for info in sessions for finding in store.verify(info.id)] == []


def test_the_demo_leaves_the_users_own_store_alone(run: Run, store: Path) -> None:
    run("demo", "--speed", "0")
    assert not store.exists()
