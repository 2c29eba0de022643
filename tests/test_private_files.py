"""Whatever the umask, and whoever writes: files 0600, folders 0700, from the moment they exist."""

from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from hansard.agents.handoff import write_handoff_file
from hansard.events import assistant_done, user_message
from hansard.projections.formats.claude_session import ClaudeSession
from hansard.projections.formats.codex_rollout import CodexRollout
from tests.proof import Figures, proves
from tests.server.served import Process
from tests.sessions import project, turn

pytestmark = [pytest.mark.slow, proves("S-08")]


@pytest.fixture(params=[0o000, 0o077], ids=["umask 000", "umask 077"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """Of this process, and of all that it starts."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


class Watch:
    """Looks at a folder all the time: a file that is open to others for a moment only is seen, too, if luck has it."""

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self._over = threading.Event()
        self.seen: dict[str, set[int]] = {}
        self._looking = threading.Thread(target=self._look)

    def __enter__(self) -> Watch:
        self._looking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._looking.join()
        self._once()

    def _look(self) -> None:
        while not self._over.wait(0.002):
            self._once()

    def _once(self) -> None:
        for folder in self._folders:
            below = (Path(place) / name for place, folders, files in os.walk(folder) for name in (*folders, *files))
            for path in (folder, *below):  # not by rglob: it fails where a folder goes meanwhile
                try:
                    mode = path.lstat().st_mode
                except OSError:
                    continue
                if not stat.S_ISLNK(mode):
                    self.seen.setdefault(str(path), set()).add(mode)

    def loose(self) -> dict[str, str]:
        """What was ever open to others. To a socket nobody gets whose folder is closed."""
        return {path: oct(mode) for path, modes in self.seen.items() for mode in modes if mode & 0o077 and not stat.S_ISSOCK(mode)}


def test_of_a_server_its_store_uploads_sessions_agents_and_token(umask: int, tmp_path: Path, figure: Figures) -> None:
    store, temporary, work = tmp_path / "store", tmp_path / "temporary", tmp_path / "work"
    temporary.mkdir(0o700)
    work.mkdir(0o700)
    token = tmp_path / "token"
    with pytest.MonkeyPatch.context() as patch, Watch(store, temporary, token) as watch:
        patch.setenv("TMPDIR", str(temporary))
        server = Process(store, "--token-file", str(token))
        try:
            with httpx.Client(base_url=server.address, headers=server.headers(), timeout=30, trust_env=False) as http:
                wanted = {"agent": "demo", "options": {"cwd": str(work), "talk": True}, "prompt": "say hi"}
                session = http.post("/api/sessions", json=wanted).json()["id"]
                data = base64.b64encode(b"some bytes").decode()
                assert http.post(f"/api/sessions/{session}/uploads", json={"data": data}).status_code == 201
                while http.get(f"/api/sessions/{session}").json().get("status") != "completed":
                    pass
                assert http.post(f"/api/sessions/{session}/fork", json={}).status_code == 201
                assert http.patch(f"/api/sessions/{session}", json={"title": "x"}).status_code == 200
                assert http.get(f"/api/sessions/{session}/export?to=html").status_code == 200
        finally:
            server.stop()
    assert watch.loose() == {}
    assert any(path.endswith("/blobs") for path in watch.seen) and str(token) in watch.seen
    assert any(str(temporary) in path and path != str(temporary) for path in watch.seen), "an agent that talks has a ticket"
    figure("files and folders", len(watch.seen))


def test_of_the_command_line(umask: int, tmp_path: Path, figure: Figures) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    out.mkdir(0o700)
    wire = project(tmp_path, turn(1), turn(2))

    def run(*arguments: object) -> str:
        command = [sys.executable, "-m", "hansard", *map(str, arguments), "--store", str(store)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    with Watch(store, out) as watch:
        run("import", wire, "--closed")
        (session,) = json.loads(run("sessions", "--json"))
        for form in ("html", "native", "claude-session"):
            run("export", session["id"], "--to", form, "-o", out / form, "--report", out / f"{form}.json")
        run("run", "demo", "say hi")
    assert watch.loose() == {}
    assert len(list(out.iterdir())) == 6
    figure("files and folders", len(watch.seen))


@pytest.mark.parametrize("form", [ClaudeSession, CodexRollout])
def test_of_the_session_files_that_an_agent_takes_over(umask: int, form: type[ClaudeSession] | type[CodexRollout], tmp_path: Path) -> None:
    home = tmp_path / "home"
    made = form("/work", "01a1e2a3-0000-7000-8000-000000000000")
    assert write_handoff_file(made, [user_message(text="a secret"), assistant_done(text="kept")], home)
    found = [home, *home.rglob("*")]
    assert len(found) >= 3
    assert {oct(path.stat().st_mode & 0o777) for path in found if path.is_dir()} == {"0o700"}
    assert {oct(path.stat().st_mode & 0o777) for path in found if path.is_file()} == {"0o600"}


def test_an_export_over_a_file_that_is_there_leaves_its_rights(tmp_path: Path) -> None:
    """Whoever made it for others may have them read it."""
    wire, there = project(tmp_path, turn(1)), tmp_path / "there"
    there.touch(0o644)
    subprocess.run([sys.executable, "-m", "hansard", "export", wire, "--to", "markdown", "-o", there], check=True, capture_output=True)
    assert there.stat().st_mode & 0o777 == 0o644
