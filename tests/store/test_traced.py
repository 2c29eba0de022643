"""The system calls of a session, as the kernel sees them: what must not be lost is on the disk before anybody hears that it is written."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.proof import Figures, proves

SESSION = """
import os, sys
from hansard.events import *
from hansard.store import JsonlStore
store = JsonlStore(sys.argv[1], sys.argv[2])
def say(name, *events):
    store["s"].append(events)
    os.write(2, f"ack {name}\\n".encode())
store.create("s")
os.write(2, b"ack synced created\\n")
for number in range(3):
    say("synced user", user_message(text="?"))
    say("streamed chunk", assistant_chunk(text="."))
    say("streamed stderr", process(event="stderr", text="."))
    say("synced question", permission_request(request_id="1", options=[], input_hash=""))
    say("synced answer", permission_response(request_id="1", decision="allow"))
    say("synced setting", configuration_change(subtype="set_model"))
    say("streamed batch", *[assistant_chunk(text=".")] * 50)
    say("synced batch", assistant_chunk(text="."), user_message(text="!"), assistant_chunk(text="."))
    say("synced end", turn_end(status="completed"))
say("synced exit", process(event="exited"))
say("synced kill", process(event="killed"))
say("synced closed", session_lifecycle(subtype="closed"))
store.close()
os.write(2, b"ack synced all\\n")
"""


def traced(root: Path, fsync: str, out: Path) -> list[str]:
    """The calls that matter, in order, with the files they are about."""
    command = ["strace", "-f", "-y", "-e", "trace=write,fsync,fdatasync", "-s", "60", "-o", str(out)]
    done = subprocess.run([*command, sys.executable, "-c", SESSION, str(root), fsync], capture_output=True, text=True)
    if "ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    return list(whole_calls(out.read_text().split("\n")))


def whole_calls(lines: list[str]) -> Iterator[str]:
    """The calls, each when it was done: one that another thread's call came into is in two lines."""
    begun: dict[str, str] = {}
    for line in lines:
        thread = line.partition(" ")[0]
        if line.endswith("<unfinished ...>"):
            begun[thread] = line.removesuffix("<unfinished ...>")
        elif "resumed>" in line:
            yield begun.pop(thread) + line.partition("resumed>")[2]
        elif "(" in line:
            yield line


@proves("D-15")
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="there is no strace; test_sync.py watches the same calls from within")
@pytest.mark.parametrize("fsync", ["default", "always"])
def test_what_must_not_be_lost_is_synced_before_it_is_acknowledged(fsync: str, tmp_path: Path, figure: Figures) -> None:
    dirty = folder_synced = above_synced = False
    acknowledged = 0
    for line in traced(tmp_path / "store", fsync, tmp_path / "calls"):
        if "write(" in line and "/s/events.jsonl>" in line:
            dirty = True
        elif "fdatasync(" in line and "/s/events.jsonl>" in line and "= 0" in line:
            dirty = False
        elif "fsync(" in line and line.rstrip().endswith("= 0"):
            folder_synced = folder_synced or "/store/s>" in line
            above_synced = above_synced or "/store>" in line
        elif "ack synced" in line or ("ack" in line and fsync == "always"):
            acknowledged += 1
            assert not dirty, line
            assert folder_synced and above_synced, "a new log is synced with the folders it is in"
    assert acknowledged == (23 if fsync == "default" else 32)
    figure("acknowledgements traced", acknowledged)
