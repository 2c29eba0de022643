"""A log too long to be read whole: the page begins near its end, says so, and goes back as far as one likes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from hansard.events import Event, assistant_chunk, assistant_done, permission_request, session_lifecycle, turn_end, turn_start, user_message
from hansard.store import JsonlStore
from tests.page.talking import Person, store_of
from tests.proof import LONG, Figures, amount, proves
from tests.server.served import Process

pytestmark = pytest.mark.slow

Visit = Callable[..., Person]
EVENTS = amount(160_000, 1_400_000)
PIECES = 96
HEAP = """async () => performance.memory.usedJSHeapSize / 1e6"""


def turns(count: int) -> Iterator[Event]:
    """Turns of a hundred events."""
    for number in range(count):
        said = [f"{number}.{piece} {'words ' * 60}" for piece in range(PIECES)]
        for event in (
            turn_start(trigger="user"),
            user_message(text=f"question {number}"),
            *(assistant_chunk(text=text) for text in said),
            assistant_done(text="".join(said)),
            turn_end(status="completed"),
        ):
            event.turn_id, event.response_id, event.block_index = f"t{number}", f"r{number}", 0
            yield event


@proves("B-04")
def test_the_page_reads_a_long_log_from_near_its_end(visit: Visit, server: Process, figure: Figures) -> None:
    with JsonlStore(store_of(server)) as store:
        session = store.create(title="Long").session_id
        early = permission_request(request_id="early", options=[], input_hash="", input={"command": "ls"})
        store[session].append([session_lifecycle(subtype="launched", detail={"agent": "demo"}), early])
        for _ in range(0, EVENTS, 10_000):
            store[session].append(turns(100))
        head = store[session].head()
        asked = next(store[session].read(after=head.seq - 120_000, types=["user_message"])).seq
        store[session].release()
    began = time.perf_counter()
    person = visit(session)
    figure("page, ms", (time.perf_counter() - began) * 1000)
    figure("page, log MB", head.bytes / 1e6)
    figure("page, heap MB", float(person.run(HEAP)))
    person.reads("question 99")
    person.sees(f"section[aria-label='Turn {EVENTS // 100}']")
    person.sees(f".before:has-text('§{head.seq - 50_000:,}')")
    person.presses("/")
    person.do(lambda page: page.fill(".find-bar input", "ferry"))
    assert person.text(".find-bar [role=status]") == "No matches in what is loaded"
    person.presses("Escape")
    person.sees("textarea.message:not(:disabled)")  # it knows from the state that an agent can be asked
    person.sees(".card[data-request-id=early]")  # and what was asked before
    person.clicks(".before button:has-text('50,000 more')")
    person.sees(f".before:has-text('§{head.seq - 100_000:,}')")
    person.do(lambda page: page.evaluate("(hash) => { location.hash = hash; }", f"{session}/{asked}"))
    person.sees(f".before:has-text('§{asked - 500:,}')")
    person.sees(".selected:has-text('question')")
    if not LONG:  # a million are read too, but that takes longer than anybody waits
        person.clicks(".before button:has-text('all of it')")
        person.sees(f".reader[data-live][data-seq='{head.seq}']")
        person.sees_no(".before")
