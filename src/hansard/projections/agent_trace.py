"""Agent Trace records (agent-trace.dev, version 0.1.0): which lines of a file came from which conversation with which model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from hansard._version import __version__
from hansard.projections.blame import BlamedLine
from hansard.projections.edits import Edit

VERSION = "0.1.0"
METADATA_KEY = "hansard"


def agent_trace(path: str, lines: Sequence[BlamedLine], id: str, timestamp: str, revision: str | None = None) -> dict[str, Any]:
    """Returns the record of one file. Lines that no agent wrote, or perhaps none, are in no range."""
    conversations: dict[tuple[str, str | None], dict[str, Any]] = {}
    for edit, first, last in _ranges(lines):
        one = conversations.setdefault((edit.session, edit.model), _conversation(edit))
        one["ranges"].append({"start_line": first, "end_line": last})
        about = {"type": "tool_call", "url": f"hansard:{edit.session}#{edit.seq}"}
        if about not in one["related"]:
            one["related"].append(about)
    record: dict[str, Any] = {"version": VERSION, "id": id, "timestamp": timestamp}
    if revision is not None:
        record["vcs"] = {"type": "git", "revision": revision}
    record["tool"] = {"name": "hansard", "version": __version__}
    record["files"] = [{"path": path, "conversations": list(conversations.values())}]
    record["metadata"] = {METADATA_KEY: {"ranges": [_range(edit, first, last) for edit, first, last in _ranges(lines)]}}
    return record


def _ranges(lines: Iterable[BlamedLine]) -> Iterator[tuple[Edit, int, int]]:
    for _, group in groupby(lines, key=lambda line: None if line.edit is None else (line.verdict, line.edit.session, line.edit.seq)):
        same = list(group)
        if same[0].edit is not None and same[0].verdict == "agent":
            yield same[0].edit, same[0].number, same[-1].number


def _conversation(edit: Edit) -> dict[str, Any]:
    contributor = {"type": "ai"} | ({} if edit.model is None else {"model_id": edit.model})
    return {"url": f"hansard:{edit.session}", "contributor": contributor, "ranges": [], "related": []}


def _range(edit: Edit, first: int, last: int) -> dict[str, Any]:
    return {
        "start_line": first,
        "end_line": last,
        "session": edit.session,
        "seq": edit.seq,
        "turn": edit.turn,
        "agent": edit.agent,
        "permission": edit.permission.text,
    }
