"""``hansard demo``: the first thing a new user runs."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from hansard.demo.scenes import SCENES
from hansard.store import open_store
from tests.cli.conftest import Run


def test_the_demo_shows_every_scene(run: Run) -> None:
    ran = run("demo", "--terminal", "--speed", "0")
    assert ran.code == 0
    assert [scene.title for scene in SCENES if scene.title not in ran.out] == []
    assert "interrupted" in ran.out


def test_what_the_demo_keeps_is_a_healthy_store(run: Run, tmp_path: Path) -> None:
    ran = run("demo", "--terminal", "--speed", "0", "--keep", tmp_path / "kept")
    store = open_store(tmp_path / "kept")
    sessions = store.sessions()
    assert ran.code == 0
    assert sorted(info.title or "" for info in sessions) == sorted(scene.title for scene in SCENES)
    assert [finding for info in sessions for finding in store[info.id].verify()] == []


def test_the_demo_leaves_the_users_own_store_alone(run: Run, store: Path) -> None:
    run("demo", "--terminal", "--speed", "0")
    assert not store.exists()


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_a_scene_is_a_recording_of_the_tests(scene: Any) -> None:
    wires = {path for pattern in ("wire*", "events.sse*") for path in Path(__file__).parents[1].glob(f"recordings/*/*/{pattern}")}
    assert scene.recording() in {_plain(path) for path in wires}


@pytest.mark.slow
def test_the_demo_serves_its_scenes_and_an_agent_until_it_is_stopped(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hansard", "demo", "--speed", "0", "--no-open", "--keep", str(tmp_path / "kept")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as demo:
        try:
            assert demo.stdout is not None
            told = re.fullmatch(r"The demo is at (http://127\.0\.0\.1:\d+/)\?token=([\w-]+)#demo-talk\n", demo.stdout.readline())
            assert told is not None
            address, token = told.groups()
            sessions = _eventually(lambda: _settled(_get(f"{address}api/sessions", token)["sessions"]))
            said = _eventually(lambda: _answer_text(_get(f"{address}api/sessions/demo-talk/events?types=assistant_done", token)["events"]))
            demo.send_signal(signal.SIGINT)
            assert demo.wait(60) == 0
        finally:
            demo.kill()
    assert sorted(sessions) == sorted(["Talk to the demo agent", *(scene.title for scene in SCENES)])
    assert "I am the demo agent" in said


def _settled(sessions: list[dict[str, Any]]) -> list[str]:
    """Their titles, when no scene is still being played."""
    playing = [one for one in sessions if one["id"] != "demo-talk" and one.get("live")]
    return [one["title"] for one in sessions] if len(sessions) > len(SCENES) and not playing else []


def _answer_text(events: list[dict[str, Any]]) -> str:
    return "".join(event["payload"]["text"] for event in events if event["type"] == "assistant_done")


def _get(address: str, token: str) -> Any:
    with urllib.request.urlopen(urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"}), timeout=10) as answer:
        return json.load(answer)


def _eventually(found: Any) -> Any:
    until = time.monotonic() + 60
    while True:
        try:
            if value := found():
                return value
        except OSError:
            pass
        assert time.monotonic() < until
        time.sleep(0.1)


def _plain(path: Path) -> bytes:
    import gzip

    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data
