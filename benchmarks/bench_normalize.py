"""Normalising, from bytes to the lines of a log with originals, beside `orjson.loads` of the same messages and beside the vendors' SDKs.

Every `long` recording, each session again and again until 50 MB have gone by, by turns with the others, in processor time. Of a two-way
recording the messages count, as they were on the wire, not the recording around them. The SDKs are installed into build/peers.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import ClassVar

import orjson
from msgspec import Struct

from benchmarks.scorecard.peer import FromPyPI, NotInstalled
from benchmarks.scorecard.peers.claude_agent_sdk import ClaudeAgentSdk
from benchmarks.table import Row, cost, cpu, interleaved, main, speed
from hansard.adapters import adapter_for
from hansard.adapters.framing import Frame, Lines, frames
from hansard.adapters.normalize import normalize
from hansard.events import Event
from hansard.events.codec import encode_lines
from tests.recorded import Stream, recordings

SIZE = 50_000_000
ROUND = 1_000_000
"""So many bytes at once: shorter rounds are all overhead, longer ones leave room for the neighbours."""
BATCH = 256
GOALS = {"claude-stream-json": 2.2}
GOAL = 3.5


class Wire(Struct, frozen=True):
    """A recorded session as it was on the wire."""

    name: str
    format: str
    data: bytes
    messages: list[bytes]
    sent: list[bool] | None = None
    """Which lines our side said, if both spoke."""

    @property
    def times(self) -> int:
        """How often this session is read in one round."""
        return max(1, ROUND // len(self.data))

    def events(self) -> Iterator[Event]:
        """What we make of it."""
        if self.sent is None:
            return normalize(self.data, self.format)
        return both_ways(self.data, self.format, self.sent)


def both_ways(data: bytes, format: str, sent: list[bool]) -> Iterator[Event]:
    """The events of lines that both sides said."""
    adapter = adapter_for(format)()
    for frame, out in zip(Lines().feed(data), sent, strict=True):
        frame.out = out
        yield from adapter.feed(frame)
    yield from adapter.finish()


def wires() -> Iterator[Wire]:
    """Every stream of every `long` recording that is more than a few lines."""
    for recording in recordings():
        for stream in recording.streams if recording.path.name == "long" else []:
            wire = wire_of(stream)
            if len(wire.messages) > 10:
                yield wire


def wire_of(stream: Stream) -> Wire:
    """A stream as it was on the wire: a recording of both directions is unpacked."""
    data = stream.data
    found = list(frames([data], adapter_for(stream.format).framer()))
    messages = [frame.data for frame in found if is_json(frame)]
    name = f"{stream.recording.path.parent.name}: {stream.format}" + (" export" if stream.name.endswith("export.json") else "")
    if not data.startswith((b'{"t":', b'{"dir":')):
        return Wire(name, stream.format, data, messages)
    return Wire(name, stream.format, b"".join(frame.data + b"\n" for frame in found), messages, [frame.out for frame in found])


def is_json(frame: Frame) -> bool:
    """Whether orjson has anything to read there."""
    try:
        orjson.loads(frame.data)
    except orjson.JSONDecodeError:
        return False
    return True


def written(events: Iterator[Event]) -> None:
    """Events as lines of a log, by the batch."""
    while batch := list(islice(events, BATCH)):
        encode_lines(batch)


def ours(wire: Wire) -> Callable[[], float]:
    """Processor time of a round of ours."""

    def work() -> None:
        for _ in range(wire.times):
            written(wire.events())

    return lambda: cpu(work)


def bare(wire: Wire) -> Callable[[], float]:
    """Processor time of `orjson.loads` of the same messages; nothing is kept."""

    def work() -> None:
        for _ in range(wire.times):
            for message in wire.messages:
                orjson.loads(message)

    return lambda: cpu(work)


# --------------------------------------------------------------------------------------------------------------------
# The SDKs, each in a process of its own with its own packages


WORKER = """
import gc, sys, time
{prepare}
lines = open(sys.argv[1], "rb").read().splitlines()
def work():
    for line in lines:
        parse(line)
work()
print("ready", flush=True)
for _ in sys.stdin:
    gc.collect()
    begin = time.process_time()
    work()
    print(time.process_time() - begin, flush=True)
"""


class Acp(FromPyPI):
    """The Agent Client Protocol's SDK: validates what an agent says."""

    name, version, home = "agent-client-protocol", "0.12.1", "https://github.com/agentclientprotocol/python-sdk"


class OpenAi(FromPyPI):
    """OpenAI's SDK: builds an object for each chunk, without validating it."""

    name, version, home = "openai", "3.49.0", "https://github.com/openai/openai-python"


class Sdk(Struct, frozen=True):
    """An SDK, the wire that it reads, and how it does that."""

    peer: type[FromPyPI]
    wire: str
    what: str
    goal: float
    prepare: str
    only: bytes = b""
    """Messages with this in them; of others the SDK makes nothing."""

    ALL: ClassVar[list[Sdk]]


Sdk.ALL = [
    Sdk(
        ClaudeAgentSdk,
        "claude-stream-json-partial: claude-stream-json",
        "claude-agent-sdk's parse",
        2.5,
        """
import json
from claude_agent_sdk._internal.message_parser import parse_message
parse = lambda line: parse_message(json.loads(line))
""",
    ),
    Sdk(
        Acp,
        "claude-acp: acp",
        "agent-client-protocol's validation",
        3,
        """
import json
from acp.schema import SessionNotification
parse = lambda line: SessionNotification.model_validate(json.loads(line)["params"])
""",
        b'"session/update"',
    ),
    Sdk(
        OpenAi,
        "openai-chat-completions: openai-chat-completions",
        "openai's chunk objects",
        20,
        """
import json
from openai._models import construct_type
from openai.types.chat import ChatCompletionChunk
parse = lambda line: construct_type(type_=ChatCompletionChunk, value=json.loads(line))
""",
        b'"chat.completion.chunk"',
    ),
]


def beside_sdk(sdk: Sdk, found: list[Wire], rounds: int) -> Iterator[Row]:
    """How many times as fast we are as an SDK, on the messages that it reads."""
    peer = sdk.peer()
    whole = next(wire for wire in found if wire.name == sdk.wire)
    messages = [message for message in whole.messages if sdk.only in message]
    wire = Wire(whole.name, whole.format, b"".join(message + b"\n" for message in messages), messages)
    try:
        peer.install()
    except NotInstalled as problem:
        print(f"skipped {peer.name} {peer.version}: it does not install here: {problem}", file=sys.stderr)
        return
    with Worker([peer.python, "-c", WORKER.format(prepare=sdk.prepare)], wire.data) as worker:
        taken = interleaved(rounds, {"ours": lambda: cpu(lambda: written(wire.events())), "theirs": worker.round})
    yield speed(f"normalise {whole.name}", f"{sdk.what} ({peer.version})", taken["ours"], taken["theirs"], at_least=sdk.goal)


class Worker:
    """A process that reads the same lines each time it is told to, and says what that took."""

    def __init__(self, command: list[str], data: bytes) -> None:
        self._command, self._data = command, data

    def __enter__(self) -> Worker:
        self._file = tempfile.NamedTemporaryFile()
        self._file.write(self._data)
        self._file.flush()
        command = [*self._command, self._file.name]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        if self._read_line() != "ready":
            raise RuntimeError(f"{self._command[0]} did not come up")
        return self

    def __exit__(self, *problem: object) -> None:
        self._process.communicate()
        self._file.close()

    def round(self) -> float:
        """Processor seconds of one round."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        return float(self._read_line())

    def _read_line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


# --------------------------------------------------------------------------------------------------------------------


def rows(short: bool) -> Iterable[Row]:
    """Every format beside orjson, then three of them beside the SDKs that read them."""
    found = list(wires())[: 1 if short else None]
    for wire in found:
        rounds = 2 if short else max(5, SIZE // (wire.times * len(wire.data)))
        taken = interleaved(rounds, {"ours": ours(wire), "bare": bare(wire)})
        yield cost(f"normalise {wire.name}", "orjson.loads", taken["ours"], taken["bare"], at_most=GOALS.get(wire.format, GOAL))
    for sdk in [] if short else Sdk.ALL:
        yield from beside_sdk(sdk, found, 15)


if __name__ == "__main__":
    main(rows)
