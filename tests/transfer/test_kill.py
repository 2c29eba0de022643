"""kill -9 at any moment of copying, shipping and retiring: it goes on where it was, and nothing is there twice, or nowhere."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hansard.store import open_store
from hansard.store.transfer.copy import digest
from tests.postgres import Server, fresh
from tests.proof import SEED, Figures, amount, proves
from tests.transfer import kill


def killed(mode: str, source: str, target: str, kills: int, figure: Figures) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).with_name("kill.py")), mode, source, target, str(kills), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, env=kill.environment())
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    figure("kills", result["kills"])
    figure("sessions", result["sessions"])
    assert result["kills"] == kills
    assert result["damaged"] == 0, result
    return result


@proves("M-02")
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_killed_copy_goes_on_where_it_was(places, figure):
    result = killed("copy", places.source, places.target, amount(10, 150), figure)
    assert (result["other"], result["failed"], result["same"]) == (0, 0, result["sessions"]), result
    assert result["partial"] > 0, "no kill was in the middle"


@proves("M-02", "M-04")
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_what_is_shipped_with_many_interruptions_is_there_once(places, figure):
    result = killed("ship", places.source, places.target, amount(8, 100), figure)
    assert (result["other"], result["failed"], result["same"]) == (0, 0, result["sessions"]), result
    assert result["sessions"] > 5 and result["partial"] > 0


@proves("M-02", "M-04")
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_what_is_shipped_to_a_database_that_comes_and_goes_is_there_once(tmp_path, figure):
    """Who ships is killed, the database is killed and stopped, the source grows all the while."""
    chance = random.Random(SEED)
    source, errors = str(tmp_path / "source"), tmp_path / "errors"
    with Server() as server, fresh(server) as database, errors.open("ab") as said:

        def start(work: str) -> subprocess.Popen[bytes]:
            code = f"from tests.transfer import kill; kill.moving.LINES = 40; kill.{work}(*{[source, database.address]})"
            return subprocess.Popen([sys.executable, "-c", code], stdout=said, stderr=said, env=kill.environment())

        writer, shipping = start("write"), start("ship")
        for _ in range(amount(8, 100)):
            time.sleep(1 + chance.random())
            assert shipping.poll() is None, errors.read_text()
            if chance.random() < 0.4:
                shipping.kill()
                shipping.wait()
                shipping = start("ship")
                figure("kills", 1)
            else:
                chance.choice((server.kill, server.kill, server.stop))()
                figure("databases gone", 1)
                time.sleep(chance.random())
                server.start()
        writer.terminate()
        assert writer.wait() == 0, errors.read_text()
        shipping.kill()
        shipping.wait()
        kill.copy(source, database.address)
        with open_store(source) as here, open_store(database.address) as there:
            names = {info.id for info in here.sessions()}
            assert names == {info.id for info in there.sessions()}
            for name in names:
                assert digest(here, name) == digest(there, name)
                assert there[name].verify() == here[name].verify()
            figure("sessions", len(names))


@proves("M-05")
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_killed_retirement_loses_nothing_and_says_what_it_did(place, tmp_path, figure):
    result = killed("retire", place, str(tmp_path / "archive"), amount(10, 150), figure)
    assert (result["lost"], result["unsaid"], result["left"]) == (0, 0, 0), result
    assert result["gone"] == result["archive"] == result["sessions"], result
