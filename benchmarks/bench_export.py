"""Export: each form in a process of its own, secrets masked, beside one that reads every event of the log; processor time."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from msgspec import Raw

from benchmarks.table import Row, figure, interleaved, main, speed
from hansard.events import Event, Usage, assistant_chunk, assistant_done, tool_call, tool_result, turn_end, turn_start, usage, user_message
from hansard.projections import FORMATS
from hansard.store import JsonlStore

TURN = 20
"""So many events are one turn."""

PEAK = "print([line for line in open('/proc/self/status') if line.startswith('VmHWM')][0].split()[1], file=sys.stderr)"
READ = "import sys; from hansard.store import open_store\nfor _ in open_store(sys.argv[1])['s'].read(): pass\n" + PEAK
EXPORT = "import sys; from hansard.cli import main\nmain(['export', 's', '--store', *sys.argv[1:]])\n" + PEAK


def turn(number: int) -> list[Event]:
    """A question, an answer in pieces, a call and its result, as a live agent would give them."""
    call, words = f"toolu_{number}", [f" the quick brown fox {number} {index}" for index in range(12)]
    events = [
        turn_start(trigger="user"),
        user_message(text=f"Question {number}: what does the fox do?"),
        *(assistant_chunk(text=word) for word in words),
        assistant_done(text="".join(words)),
        tool_call(tool_call_id=call, tool_name="Bash", args={"command": f"ls /tmp/{number}"}),
        usage(scope="message", usage=Usage(input_tokens=10, output_tokens=20, total_tokens=30)),
        tool_result(tool_call_id=call, result="a\nb\nc\n" * 20),
        assistant_done(text=f"It jumps, for the {number}th time."),
        turn_end(status="completed"),
    ]
    for index, event in enumerate(events):
        event.turn_id, event.response_id, event.source = f"turn-{number}", f"msg_{number}_{index > 14}", "claude"
        event.frame = number * TURN + index
        event.original = Raw(b'{"type":"%s","uuid":"0f6e0c9c-1111-4e3d-a111-%012d"}' % (event.type.encode(), event.frame))
    return events


def write_log(root: Path, events: int) -> None:
    """A session ``s`` of so many events."""
    with JsonlStore(root) as store:
        store.create("s")
        for start in range(0, events // TURN, 50):
            numbers = range(start, min(start + 50, events // TURN))
            store["s"].append([event for number in numbers for event in turn(number)])


def measured(code: str, *arguments: str) -> tuple[float, int]:
    """Seconds of processor time and peak memory (kB) of a program. What else the machine does counts little that way."""
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime, int(run.stderr.split()[-1])


def rows(short: bool) -> Iterable[Row]:
    """Each form beside reading."""
    with tempfile.TemporaryDirectory() as folder:
        write_log(Path(folder), 100 if short else 100_000)
        forms = ["native", "markdown"] if short else sorted(FORMATS)
        taken = interleaved(
            1 if short else 3,
            {"": lambda: measured(READ, folder)} | {form: lambda form=form: measured(EXPORT, folder, "--to", form) for form in forms},
        )
    bare = [seconds for seconds, _ in taken[""]]
    for form in forms:
        yield speed(f"export `{form}`", "reading every event", [seconds for seconds, _ in taken[form]], bare, at_least=0.5)
    yield figure("export, any form: memory", [max(kilobytes for _, kilobytes in taken[form]) / 1024 for form in forms], "MB")


if __name__ == "__main__":
    main(rows)
