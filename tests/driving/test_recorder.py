"""The recorder: order, callers that go away, a full disk, a store that is away, and a log that another process takes over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from hansard.agents.recorder import Recorder, take_over
from hansard.errors import AppendFailed, Fenced, LogLocked, Refused, StoreUnavailable
from hansard.events import Event, permission_request, turn_end, user_message
from hansard.store import FolderLog, JsonlStore
from tests.loop_guard import BlockingCallError, LoopGuard

pytestmark = pytest.mark.anyio


class Trouble:
    """A log whose next appends fail, before or after they are written."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.before: Exception | None = None
        self.after: Exception | None = None
        self.given: list[list[Event]] = []
        self._written: dict[int, list[Event]] = {}
        append = FolderLog.append

        def troubled(log: FolderLog, events: Iterable[Event]) -> list[Event]:
            batch = list(events)
            self.given.append(batch)
            if self.before is not None:
                raise self.before
            key = id(batch[0]) if batch else 0
            stamped = self._written.get(key) or append(log, batch)  # as an engine does that knows the batch again
            if self.after is not None:
                self._written[key] = stamped
                raise self.after
            return stamped

        patch.setattr(FolderLog, "append", troubled)


@pytest.fixture
def trouble(monkeypatch: pytest.MonkeyPatch) -> Trouble:
    return Trouble(monkeypatch)


@pytest.fixture
async def recorder(trouble: Trouble, tmp_path: Path) -> Recorder:
    store = JsonlStore(tmp_path / "store")
    store.create("s")
    return await Recorder.open(store["s"])


def says(text: str) -> list[Event]:
    return [user_message(text=text)]


def texts(recorder: Recorder) -> list[Any]:
    return [event.payload.text for event in recorder.log.read(types=["user_message"])]


async def test_log_order_is_the_order_of_puts_of_the_fold_and_of_subscribers(recorder: Recorder) -> None:
    seen: list[tuple[int, int]] = []
    recorder.subscribe(lambda event: seen.append((event.seq, recorder.state.seq)))
    written = await asyncio.gather(*(recorder.put(says(str(number))) for number in range(200)))
    assert [batch[0].payload.text for batch in written] == texts(recorder) == [str(number) for number in range(200)]
    assert seen == [(event.seq, event.seq) for [event] in written]


async def test_a_caller_that_goes_away_loses_the_result_and_not_the_write(recorder: Recorder) -> None:
    caller = asyncio.create_task(recorder.put(says("hello")))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait([caller])
    await recorder.put(says("after"))
    assert texts(recorder) == ["hello", "after"] and recorder.state.seq == 3


async def test_without_room_a_patient_batch_waits_and_any_other_is_refused(recorder: Recorder, trouble: Trouble) -> None:
    trouble.before = AppendFailed("no space left")
    patient = asyncio.create_task(recorder.put(says("patient"), patient=True))
    with pytest.raises(AppendFailed):
        await recorder.put(says("not patient"))
    await recorder.settled()
    assert not patient.done() and recorder.state.messages == 0  # the state has nothing that is not in the log
    trouble.before = None
    await patient
    assert texts(recorder) == ["patient"] and recorder.state.messages == 1


async def test_a_batch_that_may_be_in_the_log_is_given_again_and_never_refused(recorder: Recorder, trouble: Trouble) -> None:
    opened = len(trouble.given)
    trouble.after = StoreUnavailable("the connection was lost before the answer came")
    batch = says("hello")
    caller = asyncio.create_task(recorder.put(batch))
    async with asyncio.timeout(60):
        while len(trouble.given) < opened + 3:
            await asyncio.sleep(0.01)
    assert texts(recorder) == ["hello"] and recorder.state.seq == 1  # visible, and not folded yet
    trouble.after = None
    await recorder.settled()
    assert (await caller)[0].seq == 2 and recorder.state.seq == 2
    assert {given is not batch and given[0] is batch[0] for given in trouble.given[opened:]} == {True}
    assert texts(recorder) == ["hello"]


async def test_a_batch_whose_fate_is_unknown_at_the_end_loses_the_log(recorder: Recorder, trouble: Trouble) -> None:
    lost: list[bool] = []
    recorder.on_lost.append(lambda: lost.append(True))
    trouble.before = StoreUnavailable("away")
    waiting = [asyncio.create_task(recorder.put(says(text))) for text in ("first", "second")]
    await asyncio.sleep(0.05)
    recorder.hurry = True
    for task in waiting:
        with pytest.raises(StoreUnavailable):
            await task
    trouble.before = None
    with pytest.raises(StoreUnavailable):
        await recorder.put(says("third"))
    assert lost == [True] and not texts(recorder)


async def test_a_log_that_another_process_takes_over_fails_everything_that_waits(recorder: Recorder, trouble: Trouble) -> None:
    lost: list[bool] = []
    recorder.on_lost.append(lambda: lost.append(True))
    trouble.before = Fenced("another process writes it")
    results = await asyncio.gather(*(recorder.put(says(str(number)), patient=True) for number in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [Fenced] * 3
    with pytest.raises(LogLocked):
        await recorder.put(says("more"))
    assert lost == [True] and len(trouble.given) == 2  # the first is that of `open`


async def test_a_check_is_made_when_everything_before_is_folded(recorder: Recorder) -> None:
    def check() -> None:
        if "p1" in recorder.state.asked:
            raise Refused("taken", "it is asked already")

    asked = [permission_request(request_id="p1", tool_name="Bash", input={}, options=[], input_hash="0")]
    first, second = await asyncio.gather(recorder.put(asked, check=check), recorder.put(says("no"), check=check), return_exceptions=True)
    assert not isinstance(first, BaseException) and isinstance(second, Refused)


async def test_a_subscriber_that_fails_keeps_nothing_from_going_on(recorder: Recorder) -> None:
    problems: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context["exception"]))
    seen: list[Event] = []
    recorder.subscribe(lambda event: 1 / 0)
    recorder.subscribe(seen.append)
    await recorder.put(says("hello"))
    asyncio.get_running_loop().set_exception_handler(None)
    assert [type(problem) for problem in problems] == [ZeroDivisionError] and [event.seq for event in seen] == [2]


async def test_after_the_end_nothing_is_written(recorder: Recorder, tmp_path: Path) -> None:
    await recorder.close(turn_end(status="completed"))
    await recorder.close()
    with pytest.raises(Refused, match="closed"):
        await recorder.put(says("more"))
    JsonlStore(tmp_path / "store")["s"].append([])  # it is free


async def test_code_on_the_loop_that_calls_the_synchronous_store_is_found(recorder: Recorder, loop_guard: LoopGuard) -> None:
    with pytest.raises(BlockingCallError, match="acquire"):
        take_over(recorder.log, "a test")
    assert len(loop_guard.found) == 1
    loop_guard.found.clear()
