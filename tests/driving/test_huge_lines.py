"""A line that does not end holds up nobody else, and when it ends it is kept."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from hansard.agents.session import Session
from hansard.events import TurnEnd
from hansard.store import JsonlStore
from tests.driving.puppet import child
from tests.driving.surroundings import idle, until
from tests.proof import Figures, amount, proves

SIZE = amount(24, 100) * 1024 * 1024

_FLOOD = """
import os, sys, time
size, go = int(sys.argv[1]), sys.argv[2]
def say(data):
    while data:
        data = data[os.write(1, data):]
say(b'{"type":"assistant","text":"')
for _ in range(size // 2 // 65536):
    say(b"x" * 65536)
os.write(2, b"half of it")
while not os.path.exists(go):
    time.sleep(0.01)
for _ in range(size // 2 // 65536):
    say(b"x" * 65536)
say(b'"}\\n')
sys.stdin.buffer.read()
"""
_TALKER = """
import json, sys
for line in sys.stdin.buffer:
    print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "Yes.", "session_id": "s"}), flush=True)
"""


async def turns(session: Session, count: int) -> int:
    """So many turns more; how many there were."""
    for _ in range(count):
        await session.send("And?")
        await idle(session)
    return sum(isinstance(event, TurnEnd) and event.payload.status == "completed" for event in session.recorder.log.read())


@pytest.mark.anyio
@proves("P-04")
async def test_a_huge_line_is_kept_and_other_sessions_go_on(tmp_path: Path, figure: Figures) -> None:
    with JsonlStore(tmp_path / "store") as store:
        flood, other = [
            await Session.create(store, *child(source, str(SIZE), str(tmp_path / "go"))) for source in (_FLOOD, _TALKER)
        ]  # both in the folder the tests run in; they write nothing
        await flood.start()
        await until(flood, lambda past: any("half of it" in (e.payload.text or "") for e in store[flood.id].read(types=["process"])))
        assert await turns(other, 3) == 3
        (tmp_path / "go").touch()
        await until(flood, lambda past: past.frames == 1)
        assert await turns(other, 3) == 6
        [line] = [event for event in store[flood.id].read() if event.frame == 1 and event.original is not None]
        kept = store[flood.id].original(line)
        assert kept is not None and len(kept) == SIZE + 30
        assert sha256(kept).digest() == sha256(b'{"type":"assistant","text":"' + b"x" * SIZE + b'"}').digest()
        await flood.close()
        await other.close()
        assert not store[flood.id].verify()
        figure("bytes", len(kept))
