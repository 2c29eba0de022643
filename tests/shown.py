"""Golden files of `hansard show`: what a person sees of recordings of many formats. `make golden` rewrites them."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from hansard.cli import main
from tests.recorded import FOLDER as RECORDINGS
from tests.recorded import Recording

FOLDER = Path(__file__).parent / "shown"


class Shown(NamedTuple):
    """A recording, one of its formats, and what its golden file is an example of."""

    recording: str
    format: str
    example: str
    options: tuple[str, ...] = ()

    @property
    def golden(self) -> Path:
        """The file with what `hansard show` prints."""
        return FOLDER / f"{'-'.join([self.example, self.format, *(option.strip('-') for option in self.options)])}.txt"


SHOWN = [
    Shown("claude-control/permission_deny", "claude-control", "denied-command"),
    Shown("gemini-acp/permission_deny", "acp", "denied-edit"),
    Shown("copilot-json/permission_headless_deny", "copilot-json", "denied-by-policy"),
    Shown("codex-app-server/permission_file", "codex-app-server", "allowed-and-denied-edit"),
    Shown("claude-control/interrupt_tool", "claude-control", "interrupted-command"),
    Shown("claude-control/interrupt", "claude-session", "interrupted-answer"),
    Shown("claude-stream-json/err_auth", "claude-stream-json", "error-401"),
    Shown("opencode-sse/err_rate_limit", "opencode-sse", "error-429-and-retry"),
    Shown("openai-responses/err_rate_limit", "openai-responses", "error-429"),
    Shown("copilot-acp/subagent", "acp", "subagent"),
    Shown("pi-json/file_edit", "pi-json", "edit"),
    Shown("opencode-run-json/file_edit", "opencode-run-json", "edit-that-fails"),
    Shown("claude-agent-sdk/todo_plan", "agent-sdk", "plan"),
    Shown("codex-exec-json/parallel_tools", "codex-rollout", "parallel-calls"),
    Shown("claude-control/queued", "claude-control", "queue"),
    Shown("claude-control/queued", "claude-control", "queue", ("--all",)),
    Shown("qwen-stream-json/text", "qwen-stream-json", "emoji"),
    Shown("cursor-stream-json/all_tools", "cursor-stream-json", "every-tool"),
    Shown("opencode-sse/question", "opencode-sse", "question"),
]


def show(shown: Shown) -> bytes:
    """Returns what `hansard show` prints of a recording."""
    stream = next(stream for stream in Recording(RECORDINGS / shown.recording).streams if stream.format == shown.format)
    with TemporaryDirectory() as folder, utc():
        path = Path(folder) / "recording"
        path.write_bytes(stream.data)
        printed, before = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), sys.stdout
        sys.stdout = printed
        try:
            code = main(["show", str(path), "--from", shown.format, *shown.options])
        finally:
            sys.stdout = before
        assert code == 0
        printed.flush()
        return printed.buffer.getvalue()


@contextmanager
def utc() -> Iterator[None]:
    """Prints times in UTC, wherever the test runs."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        yield
    finally:
        os.environ.pop("TZ")
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()
