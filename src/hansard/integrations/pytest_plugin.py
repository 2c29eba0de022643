"""For pytest: a store for a test, agents that are recorded while the code under test uses them, and recordings that stand in for agents.

    def test_the_bot_lists_the_files(fake_agent):
        agent = fake_agent("claude", "recordings/list_files.jsonl")     # a `claude` on the PATH that says what the recording says
        assert my_bot("What is here?") == "README.md"
        agent.conversation.assert_called("Bash", command="ls")

pytest loads this file wherever hansard is installed; nothing else of hansard is loaded before a test asks for it.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hansard.store import Store
    from hansard.testing.assertions import RecordedConversation
    from hansard.testing.replay import ReplayResult

PROGRAM = Path(__file__).with_name("stand_in.py")


class StandIn:
    """A program on the PATH in an agent's place; each time that it is started is a run."""

    def __init__(self, folder: Path, format: str) -> None:
        self.format = format
        self._folder = folder

    @property
    def runs(self) -> list[RecordedConversation]:
        """The events of every run."""
        from hansard.adapters.base import Context
        from hansard.adapters.normalize import normalize
        from hansard.testing.assertions import RecordedConversation

        return [RecordedConversation(normalize(path.read_bytes(), self.format, Context(source=path.stem))) for path in self._files("jsonl")]

    @property
    def conversation(self) -> RecordedConversation:
        """The events of all runs, one after the other."""
        from hansard.testing.assertions import RecordedConversation

        return RecordedConversation(event for run in self.runs for event in run)

    @property
    def argv(self) -> list[list[str]]:
        """The arguments of every run."""
        return [json.loads(path.read_bytes()) for path in self._files("argv")]

    @property
    def recordings(self) -> list[Path]:
        """The wire of every run, both ways: a file to keep, and to give to `fake_agent`."""
        return self._files("jsonl")

    def _files(self, ending: str) -> list[Path]:
        return sorted(self._folder.glob(f"*.{ending}"))


@pytest.fixture
def hansard_store(tmp_path: Path) -> Iterator[Store]:
    """A store of the test's own: ``hansard.execute("claude", …, store=hansard_store)`` is on the record there."""
    import hansard

    with hansard.open(tmp_path / "hansard") as store:
        yield store


@pytest.fixture
def record_agent(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], StandIn]:
    """``record_agent("claude", "claude-stream-json")``: whatever starts ``claude`` starts the real one, and what both say is recorded."""

    def make(program: str, format: str) -> StandIn:
        _check(format)
        real = shutil.which(program)
        if real is None:
            pytest.fail(f"there is no {program} on the PATH to be recorded", pytrace=False)
        return _put(tmp_path_factory.mktemp(program), monkeypatch, program, format, ["record"], [os.path.abspath(real)])

    return make


@pytest.fixture
def fake_agent(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Callable[..., StandIn]:
    """``fake_agent("claude", recording)``: whatever starts ``claude`` hears what the recording says.

    A recording is a file of an agent's wire, one way or both ways, or a log of hansard's. Where it has what the other side said, the
    stand-in waits for that, and calls things by the names that the other side gives them this time.
    """

    def make(program: str, recording: str | os.PathLike[str], format: str | None = None, exit_code: int = 0) -> StandIn:
        spoken, steps = steps_of(Path(recording).read_bytes(), format)
        folder = tmp_path_factory.mktemp(program)
        waits = any(step["dir"] == "send" for step in steps)
        (folder / "script.json").write_text(json.dumps({"steps": steps, "waits": waits, "exit_code": exit_code}))
        return _put(folder, monkeypatch, program, spoken, ["play"], [])

    return make


@pytest.fixture
def replay_session() -> Callable[..., ReplayResult]:
    """``replay_session(session_id, model="…")``: runs a recorded agent again, and fails with the first divergence.

    The options are those of `hansard.testing.replay.ReplayOptions`; ``store`` is where the session is, if not in the default store.
    """

    def go(session_id: str, store: Store | str | os.PathLike[str] | None = None, **options: Any) -> ReplayResult:
        import hansard
        from hansard.store import Store
        from hansard.testing.replay import replay, report

        if isinstance(store, Store):
            result = replay(store, session_id, **options)
        else:
            with hansard.open(store) as opened:
                result = replay(opened, session_id, **options)
        if result.divergence is not None:
            pytest.fail(report(result), pytrace=False)
        return result

    return go


def steps_of(data: bytes, format: str | None) -> tuple[str, list[dict[str, Any]]]:
    """The format of a recording, and what each side says in it, line by line."""
    from hansard.adapters.detection import detect
    from hansard.adapters.framing import frames
    from hansard.adapters.normalize import OWN_LOG, events_of_log
    from hansard.projections import project

    if data.startswith(OWN_LOG):
        events = list(events_of_log([data]))
        format = format or getattr(events[0].payload, "format", None)
        return _check(format), [{"dir": said.dir, "line": said.line} for said in project(events, "recording")]
    format = _check(format or detect(data))
    found = frames([data], _framer(format)())
    return format, [{"dir": "send" if one.out else "recv", "line": one.data.decode("utf-8", "surrogateescape")} for one in found]


def _check(format: str | None) -> str:
    """A format that a program can speak on its output."""
    from hansard.adapters.framing import Lines, TwoWay
    from hansard.errors import UsageError

    if format is None:
        raise UsageError("no known format begins like this recording; name it")
    if not issubclass(_framer(format), Lines | TwoWay):
        raise UsageError(f"{format} is not spoken line by line, so no program can stand in for who speaks it")
    return format


def _framer(format: str) -> Any:
    from hansard.adapters import adapter_for

    return adapter_for(format).framer


def _put(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str, format: str, mode: list[str], real: list[str]) -> StandIn:
    """Put the stand-in on the PATH, before everything else."""
    place = folder / "bin"
    place.mkdir()
    words = [sys.executable, "-I", str(PROGRAM), *mode, str(folder), *real]
    script = place / program
    script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ.get('PATH', '')}")
    return StandIn(folder, format)
