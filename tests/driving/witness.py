"""Stands between hansard and a real agent, keeps every byte of both sides, and then says whether the log has them too."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from hansard.adapters.open_items import OpenItems
from hansard.agents.base import Options
from hansard.agents.pump import STOPPED
from hansard.agents.session import Session
from hansard.agents.session_state import SessionState
from hansard.events import Event, Process, RawEvent, TurnEnd, TurnStart
from hansard.events.originals import embed
from hansard.projections import project
from tests.driving.surroundings import Surroundings

_TEE = """#!{python}
import os, signal, subprocess, sys, threading
for each in (signal.SIGINT, signal.SIGTERM):
    signal.signal(each, lambda *_: None)  # the agent hears it too, and what it still says is passed on
agent = subprocess.Popen([{program!r}, *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
def pass_on(source, target, name):
    with open(os.path.join({folder!r}, name), "ab", 0) as kept:
        while data := os.read(source, 65536):
            kept.write(data)
            try:
                while data:
                    data = data[os.write(target, data):]
            except OSError:
                break
def feed():
    pass_on(0, agent.stdin.fileno(), "out")
    agent.stdin.close()
threading.Thread(target=feed, daemon=True).start()
pass_on(agent.stdout.fileno(), 1, "in")
code = agent.wait()
os._exit(code if code >= 0 else 128 - code)
"""


class Witness:
    """One for all processes of a session."""

    def __init__(self, program: str, folder: Path) -> None:
        self._folder = folder / "witness"
        self._folder.mkdir()
        self.program = str(self._folder / os.path.basename(program))
        """To be run instead of the real one."""
        Path(self.program).write_text(_TEE.format(python=sys.executable, program=program, folder=str(self._folder)))
        Path(self.program).chmod(0o755)

    def confirms(self, session: Session) -> None:
        """The log has every byte of both sides, and nothing in it is left open or not understood. The session must be stopped."""
        for side in ("in", "out"):
            assert b"".join(project(with_blobs(session), "native", direction=side)) == self.saw(side)
        whole(session)
        assert not session.recorder.log.verify()

    def saw(self, side: str) -> bytes:
        """Everything that was said in one direction, ``in`` or ``out``."""
        return (self._folder / side).read_bytes()


class Around(Surroundings):
    """Surroundings in which somebody sees what is said."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._seen: list[tuple[Witness, Session]] = []

    async def witnessed(self, agent: str, options: Options) -> Session:
        """A session whose agent has a witness."""
        witness = Witness(str(options.program), self.home.parent)
        options.program = witness.program
        session = await self.session(agent, options)
        self._seen.append((witness, session))
        return session

    def confirm(self) -> None:
        """Every byte is on the record."""
        for witness, session in self._seen:
            witness.confirms(session)


def with_blobs(session: Session) -> Iterator[Event]:
    """The log with every frame in its place, also those that lie in blobs."""
    for event in session.recorder.log.read():
        if event.original is not None:
            event.original = embed(event.original, session.recorder.log.get_blob)
        yield event


def unknown(events: list[Event]) -> list[Event]:
    """The frames that no adapter understood, without those that were cut off when hansard stopped the program in the middle of a line."""
    return [event for event, after in zip_longest(events, events[1:]) if isinstance(event, RawEvent) and not _is_cut(event, after)]


def _is_cut(event: RawEvent, after: Event | None) -> bool:
    return event.payload.reason == "invalid_json" and isinstance(after, Process) and after.payload.text == STOPPED


def whole(session: Session) -> None:
    """Every turn began and ended once, every process was seen to end, and nothing waits or is unknown."""
    events = list(session.recorder.log.read())
    turns = [event for event in events if isinstance(event, TurnStart | TurnEnd)]
    assert [type(event) for event in turns] == [TurnStart, TurnEnd] * (len(turns) // 2)
    assert [event.turn_id for event in turns[::2]] == [event.turn_id for event in turns[1::2]]
    lives = [event.payload.event for event in events if isinstance(event, Process) and event.payload.event != "stderr"]
    assert lives == ["started", "exited"] * (len(lives) // 2)
    assert not unknown(events)
    past, items = SessionState.from_events(events), OpenItems()
    for event in events:
        items.apply(event)
    open_things = (
        items.blocks,
        items.tools,
        items.permissions,
        items.questions,
        past.asked,
        past.queue,
        past.turns,
    )
    assert not any(open_things)
    assert past.process_id is None
