"""Masking beside that of an older version, run in turns: ``python -m benchmarks.compare_masking [COMMIT]``, by default the last of 0.1.

Prints for each sort of text the processor time per megabyte of both, and how many times faster it is now.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import hansard
from hansard.events import Event, assistant_chunk, assistant_done, tool_result
from hansard.projections.redaction import redact

ROOT = Path(__file__).parents[1]
VERSION_0_1 = "0a3f93d6"
FOLDER = "src/hansard/projections/redaction"
TURNS = 15
PIECE = 4000
"""Characters of a text: an answer, or what a tool printed."""


def redact_of(commit: str, folder: Path) -> Callable[[Sequence[Event]], Any]:
    """Returns the function of an older version, under a name of its own beside this one."""
    package = folder / "older_redaction"
    package.mkdir()
    names = subprocess.run(["git", "ls-tree", "--name-only", commit, f"{FOLDER}/"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in names.stdout.split():
        source = subprocess.run(["git", "show", f"{commit}:{name}"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        (package / Path(name).name).write_text(source.replace("hansard.projections.redaction", "older_redaction"))
    sys.path.insert(0, str(folder))
    return importlib.import_module("older_redaction").redact


def texts() -> dict[str, list[Event]]:
    """Returns prose and code of this repository as answers, as pieces of answers, and as outputs of tools, and the recorded events."""
    prose = "\n".join(file.read_text() for file in sorted(ROOT.glob("docs/*.md")))
    code = "\n".join(file.read_text() for file in sorted(ROOT.glob("src/hansard/**/*.py")))
    files = sorted(ROOT.glob("tests/recordings/claude-stream-json/*/stdout.jsonl"))
    events = [event for file in files for event in hansard.normalize(file.read_bytes(), "claude-stream-json")]
    return {
        "prose": [assistant_done(text=piece) for piece in _pieces(prose, PIECE)],
        "code": [tool_result(tool_call_id="c", result=piece) for piece in _pieces(code, PIECE)],
        "prose in chunks": [assistant_chunk(text=piece) for piece in _pieces(prose[:400_000], 12)],
        "recordings": events,
    }


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def seconds(masking: Callable[[Sequence[Event]], Any], events: Sequence[Event]) -> float:
    start = time.process_time()
    for _ in masking(events):
        pass
    return time.process_time() - start


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        older = redact_of(sys.argv[1] if len(sys.argv) > 1 else VERSION_0_1, Path(folder))
        for sort, events in texts().items():
            size = sum(len(str(event.payload)) for event in events) / 1e6
            pairs = [(seconds(older, events), seconds(redact, events)) for _ in range(TURNS)]
            then, now = (min(column) / size for column in zip(*pairs, strict=True))
            times = median(before / after for before, after in pairs)
            print(f"{sort:16} {size:5.1f} MB   before {then * 1000:6.1f} ms/MB   now {now * 1000:6.1f} ms/MB   {times:5.2f} times as fast")


if __name__ == "__main__":
    main()
