"""What became of a tool call, whichever of Codex's items tells it."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from hansard.adapters.codex import blocks
from hansard.content import AnyBlock, ImageBlock
from hansard.events import Event, tool_progress, tool_result
from hansard.loose import as_list, as_object
from hansard.structs import prepare

_BAD = ("failed", "declined", "interrupted", "errored")
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
_WALL_TIME = re.compile(r"^Wall time:? ([\d.]+) seconds$", re.MULTILINE)
# What Codex writes where a call never ran, or was stopped.
_NOT_RUN = re.compile(
    r"\w+ failed(?: for|:)|unsupported (?:custom tool )?call|failed to parse function arguments|apply_patch verification failed"
    r"|aborted(?: by user)?\b|Wall time: [\d.]+ seconds\naborted by user|Script failed|patch rejected"
    r"|(?:exec )?command rejected|approval policy is Never; reject"
)


class Outcome(Struct):
    """The end of a call."""

    result: Any = None
    content: list[AnyBlock] | None = None
    is_error: bool | None = None
    error: str | None = None
    exit_code: int | None = None
    duration_ms: int | None = None

    def event(self, call_id: str) -> Event:
        """The result of the call."""
        return tool_result(
            tool_call_id=call_id,
            result=self.result,
            content=self.content,
            is_error=self.is_error,
            error=self.error,
            exit_code=self.exit_code,
            duration_ms=self.duration_ms,
        )

    def afterwards(self, call_id: str) -> Event:
        """The same of a call that has its result already: a command that went on in the background."""
        detail = {"result": self.result, "exitCode": self.exit_code, "durationMs": self.duration_ms, "error": self.error}
        said = {key: value for key, value in detail.items() if value is not None}
        return tool_progress(tool_call_id=call_id, status="failed" if self.is_error else "completed", content=self.content, detail=said)


def command(output: str | None, exit_code: int | None, status: str | None, duration_ms: int | None = None) -> Outcome:
    """A command that ran, or was not allowed to."""
    return Outcome(output, None, _is_error(status), _why(status), exit_code, duration_ms)


def patch(changes: Any, status: str | None, said: str | None = None) -> Outcome:
    """Files that were changed; ``said`` is what the tool printed."""
    return Outcome(said if said is not None else status, blocks.diffs(changes), _is_error(status), _why(status))


def mcp(result: Any, error: Any, status: str | None, duration_ms: int | None = None) -> Outcome:
    """A tool of an MCP server."""
    content = blocks.to_blocks(as_object(result).get("content")) or None
    message = as_object(error).get("message", error)
    return Outcome(result, content, _is_error(status), message if isinstance(message, str) else None, None, duration_ms)


def dynamic(items: Any, success: bool | None, status: str | None, duration_ms: int | None = None) -> Outcome:
    """A tool of the client's own."""
    failed = _is_error(status) if success is None else not success
    return Outcome(items, blocks.to_blocks(items) or None, failed, _why(status), None, duration_ms)


def image(data: str | None, status: str | None, path: str | None, file_id: str | None = None) -> Outcome:
    """A picture that was made."""
    block = ImageBlock(data=data, path=path, file_id=file_id)
    return Outcome(status, [block], _is_error(status))


def other(result: Any, status: str | None = None, duration_ms: int | None = None, content: list[AnyBlock] | None = None) -> Outcome:
    """Anything else."""
    return Outcome(result, content, _is_error(status) if status is not None else None, _why(status), None, duration_ms)


def output(said: Any) -> Outcome:
    """What the model was shown: a text, or a list of parts."""
    parts = as_list(said)
    text = said if isinstance(said, str) else blocks.text_of(blocks.to_blocks(parts)) if parts else ""
    head = text.partition("\nOutput:\n")[0]
    exit_code = _EXIT_CODE.search(head)
    code = int(exit_code.group(1)) if exit_code else None
    wall = _WALL_TIME.search(head)
    return Outcome(
        result=said,
        content=blocks.to_blocks(parts) if parts else None,
        is_error=True if code not in (0, None) or _NOT_RUN.match(text) else None if code is None else False,
        exit_code=code,
        duration_ms=round(float(wall.group(1)) * 1000) if wall else None,
    )


def never_ran(said: Any) -> bool:
    """Whether what the model was shown says that the call did not run."""
    return isinstance(said, str) and _NOT_RUN.match(said) is not None


def rejected(said: Any) -> bool:
    """Whether it says that the user did not allow the call."""
    return never_ran(said) and "rejected by user" in said


def merged(known: Outcome | None, shown: Outcome) -> Outcome:
    """What the tool gave as data, with what the model was shown beside it where that says more."""
    if known is None:
        return shown
    if known.content is None and known.result != shown.result:
        known.content = blocks.to_blocks(shown.result) or None
    known.exit_code = shown.exit_code if known.exit_code is None else known.exit_code
    known.is_error = shown.is_error if known.is_error is None else known.is_error
    known.duration_ms = shown.duration_ms if known.duration_ms is None else known.duration_ms
    return known


def _is_error(status: str | None) -> bool | None:
    return None if status is None else status in _BAD


def _why(status: str | None) -> str | None:
    return status if status in ("declined", "interrupted") else None


prepare(globals())
