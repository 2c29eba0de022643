"""A model of a log, and the log: whatever is done to them, they agree."""

import asyncio
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from hansard.events import Event, RawEvent, assistant_chunk, turn_end, user_message
from hansard.events.codec import encode_lines
from hansard.store import JsonlStore
from hansard.store.lines import decode_record as line_event
from tests.proof import Figures, amount, proves

STEPS = amount(40, 100)
EXAMPLES = amount(90, 3700)
texts = st.text(max_size=20) | st.sampled_from(["x" * 3000, "\u2028", "\n", '{"text":', "\ud83d"])


def text_of(event: Event) -> str | None:
    return event.payload.text if event.type in ("assistant_chunk", "user_message") else None


class LogMachine(RuleBasedStateMachine):
    """Appends, crashes, damages and reads. The model is the list of texts by seq, and how many lines are damaged."""

    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.store = JsonlStore(self.root)
        self.model: dict[int, str] = {}
        self.damaged = 0
        self.torn = False

    @property
    def log(self) -> Path:
        return self.root / "s" / "events.jsonl"

    @rule(words=st.lists(texts, min_size=1, max_size=5), speak=st.booleans(), end=st.booleans())
    def append(self, words: list[str], speak: bool, end: bool) -> None:
        events: list[Event] = [(user_message if speak else assistant_chunk)(text=word) for word in words]
        stamped = self.store["s"].append([*events, turn_end(status="completed")] if end else events)
        self.model |= {event.seq: text for event in stamped if (text := text_of(event)) is not None}
        self.damaged += self.torn
        self.torn = False

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store = JsonlStore(self.root)

    @precondition(lambda self: self.model)
    @rule(undo=st.booleans())
    def compress(self, undo: bool) -> None:
        """The log changes its form; what is in it does not."""
        self.store.close()
        self.store["s"].expand() if undo else self.store["s"].compress()

    @precondition(lambda self: self.model and not self.torn)
    @rule(part=st.binary(min_size=1, max_size=30).map(lambda data: b"{" + data.replace(b"\n", b"")))
    def tear(self, part: bytes) -> None:
        """A writer dies in the middle of a line."""
        self.store.close()
        self.store["s"].expand()
        with self.log.open("ab") as file:
            file.write(part)
        self.torn = True

    @precondition(lambda self: self.model and not self.torn)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        """The disk forgets a record."""
        self.store.close()
        self.store["s"].expand()
        seq = data.draw(st.sampled_from(sorted(self.model)))
        lines = self.log.read_bytes().split(b"\n")
        at = next(number for number, line in enumerate(lines) if f'"seq":{seq},'.encode() in line)
        if at == len(lines) - 2:  # a lost last record is a torn tail
            return
        lines[at] = b"\0" * len(lines[at])
        self.log.write_bytes(b"\n".join(lines))
        del self.model[seq]
        self.damaged += 1

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def read_on(self, data: st.DataObject) -> None:
        after = data.draw(st.integers(0, self.store["s"].head().seq))
        found = {event.seq: text for event in self.store["s"].read(after) if (text := text_of(event)) is not None}
        assert found == {seq: text for seq, text in self.model.items() if seq > after}

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def follow(self, data: st.DataObject) -> None:
        head = self.store["s"].head().seq
        after = data.draw(st.integers(0, head - 1))

        async def run() -> list[int]:
            found: list[int] = []
            async for record in self.store["s"].follow_records(after):
                found.append(record.seq)
                if record.seq == head:
                    break
            return found

        found = [seq for seq in asyncio.run(asyncio.wait_for(run(), 10)) if seq]
        assert found == sorted(set(found)) and set(self.model) & set(range(after + 1, head + 1)) <= set(found)

    @precondition(lambda self: self.model)
    @invariant()
    def log_and_model_agree(self) -> None:
        LogMachine.steps += 1
        events = list(self.store["s"].read())
        assert encode_lines(event for block, _ in self.store["s"].read_blocks(300) for event in block) == encode_lines(events)
        assert encode_lines(map(line_event, self.store["s"].records())) == encode_lines(events)
        assert {event.seq: text for event in events if (text := text_of(event)) is not None} == self.model
        assert sum(isinstance(event, RawEvent) for event in events) == self.damaged + self.torn
        seqs = [event.seq for event in events if event.seq]
        assert seqs == sorted(set(seqs))
        assert bool(self.store["s"].verify()) == bool(self.damaged or self.torn)

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.root)


@proves("D-17")
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_log_agrees_with_its_model(figure: Figures) -> None:
    LogMachine.steps = 0
    run_state_machine_as_test(LogMachine, settings=settings(max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None))
    figure("steps", LogMachine.steps)
