"""Large logs: what is asked for is found without reading the rest, memory stays flat, and no offset is too large."""
# pyright: basic

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hansard.events import Event, assistant_chunk, session_lifecycle
from hansard.events.codec import encode
from hansard.store import JsonlStore
from tests.proof import LONG, Figures, amount, proves

SIZE = amount(20, 1000) * 1_000_000

WRITE = """
import sys
from hansard.events import assistant_chunk, turn_end
from hansard.store import JsonlStore
batch = [assistant_chunk(text=f"{number} " + "word " * 96) for number in range(1000)]
with JsonlStore(sys.argv[1]) as store:
    while store["s"].head().bytes < int(sys.argv[2]) if store["s"].append(batch) else False:
        store["s"].append([turn_end(status="completed")])
"""

LOOK = """
import json, os, re, sys, time
from hansard.store import JsonlStore
read = 0
real = os.pread
def pread(*args):
    global read
    data = real(*args)
    read += len(data)
    return data
os.pread = pread
store = JsonlStore(sys.argv[1])
list(store["s"].read(limit=10)), store.sessions()
def peak():
    # not ru_maxrss: that remembers the process which started this one
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
base = peak()
found = {}
def tell(name, act):
    global read
    read, started = 0, time.perf_counter()
    value = act()
    found[name] = [value, read, time.perf_counter() - started]
head = store["s"].head()
tell("list", lambda: JsonlStore(sys.argv[1]).sessions()[0].events)
tell("head", lambda: store["s"].head().seq)
tell("tail", lambda: [event.seq for event in store["s"].tail(100)][-1])
tell("place", lambda: next(store["s"].read(head.seq // 2 + 7)).seq)
tell("scan", lambda: sum(1 for _ in store["s"].records()))
tell("verify", lambda: len(store["s"].verify()))
tell("open", lambda: JsonlStore(sys.argv[1])["s"].append([]))
found["memory"] = peak() - base
print(json.dumps(found))
"""


def run(script: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of 20 MB, or of a gigabyte."""
    root = tmp_path_factory.mktemp("large")
    run(WRITE, root, SIZE)
    return root


@proves("D-12")
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="what a process took is read from /proc")
@pytest.mark.parametrize("form", ["plain", "compressed"])
def test_a_large_log_costs_what_is_asked_of_it(large: Path, form: str, figure: Figures) -> None:
    store = JsonlStore(large)
    head = store["s"].head()
    if form == "compressed":
        store["s"].compress()
    found = json.loads(run(LOOK, large))
    assert found["list"][0] == found["head"][0] == found["tail"][0] == head.seq
    assert found["place"][0] == head.seq // 2 + 8
    assert found["scan"][0] == head.seq and found["verify"][0] == 0
    for name in ("list", "head", "tail", "place"):
        assert found[name][1] < 2_000_000, f"{name} read {found[name][1]} bytes"
    if form == "plain":
        assert found["open"][1] < 40_000_000 and found["scan"][1] < 1.1 * head.bytes
    assert found["memory"] < 40_000_000
    figure(f"bytes of the log, {form}", head.bytes)
    figure(f"memory for all of it, {form}", f"{found['memory'] / 1e6:.1f} MB")
    for name in ("list", "tail", "place", "verify"):
        figure(f"ms: {name}, {form}", round(found[name][2] * 1000, 1))


MB = 1024 * 1024
HOLES = amount(4100, 8200)
"""Of one MiB each: past 4 GiB, or past 8."""


@pytest.fixture
def sparse(root: Path, log: Path) -> JsonlStore:
    """A log with a record at every MiB, and zeros between that take no room on the disk."""
    store = JsonlStore(root)
    store.create("s")
    store.close()
    with log.open("r+b") as file:
        for number in range(1, HOLES):
            file.seek(number * MB)
            event: Event = assistant_chunk(text=f"{number}")
            if number == HOLES - 1:  # else a writer would have to hash it all
                event = session_lifecycle(subtype="checkpoint", detail={"sha256": "", "since": 0})
            event.seq, event.session_id, event.id = number + 2, "s", f"{number}"
            file.write(b"\n" + encode(event) + b"\n")
    return store


@proves("D-14")
@pytest.mark.slow
def test_no_offset_is_too_large(sparse: JsonlStore, log: Path, figure: Figures) -> None:
    size = log.stat().st_size
    assert size > 2**32 and log.stat().st_blocks * 512 < 100 * MB
    for border in (2**31, 2**32):
        after = border // MB + 1
        found = [record for record in sparse["s"].records(after, 6) if record.seq]
        assert found[0].seq == after + 1
        assert any(record.offset > border for record in found)
    assert sparse["s"].head().seq == HOLES + 1 and sparse["s"].head().bytes == size
    assert sparse["s"].tail(1)[-1].seq == HOLES + 1
    with log.open("ab") as file:
        file.write(b'{"torn')
    [new] = sparse["s"].append([assistant_chunk(text="end")])
    notice, last = [event for event in sparse["s"].tail(2) if event.seq]
    assert notice.payload.detail["offset"] == size and last.id == new.id
    sparse.close()
    figure("bytes, nearly all of them holes", size)
    if LONG:
        assert {finding.kind for finding in sparse["s"].verify()} == {"nul", "torn-tail", "checksum"}
        before = [record.offset for record in sparse["s"].records(HOLES - 2) if record.seq]
        sparse["s"].compress()
        assert [record.offset for record in sparse["s"].records(HOLES - 2) if record.seq] == before
        assert before[0] > 2**32
