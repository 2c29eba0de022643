"""What OpenCode says live and what it keeps of the same run, as an export and in its database, are the same conversation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hansard.events import Event
from hansard.events.lenient import as_object
from tests.recorded import Case, Stream

KINDS: tuple[str, ...] = ("user", "texts", "thinking", "calls", "results", "ends", "usage")
NOT_ON = {
    "acp": {"usage": "its usage is that of the last model response of a turn"},
    "opencode-run-json": {"user": "the prompt is an argument of the program, which keeps it in quotes"},
}
"""What a wire never says, so that there is nothing to compare."""

EXPORT, DATABASE = "disk/export.json", "disk/opencode.db.jsonl"
DIFFERENCES: dict[tuple[str, str], tuple[set[str], str]] = {
    ("opencode-acp/compaction", "disk"): ({"user"}, "the command is not kept, what it does is"),
    ("opencode-acp/config_change", "disk"): ({"user"}, "of a command, what it stands for is kept"),
    ("opencode-acp/err_stream_event", "disk"): (
        {"texts"},
        "over ACP nothing marks where the words before an error end and those after the retry begin",
    ),
    ("opencode-acp/max_tokens", "disk"): ({"ends"}, "over ACP the turn ends with end_turn"),
    ("opencode-acp/subagent", EXPORT): (
        {"texts"},
        "the export has the sub-agent's report in the call; over ACP it is part of the result alone",
    ),
    ("opencode-acp/subagent", DATABASE): ({"texts", "calls", "results"}, "the database has the sub-agent's own session"),
    ("opencode-acp/thinking", "disk"): ({"thinking"}, "thinking that is sealed and has no text is not sent over ACP"),
    ("opencode-run-json/interrupt", "disk"): (
        {"ends"},
        "a process that a signal ends writes nothing more; that it was a signal only the end of its output shows",
    ),
    ("opencode-run-json/subagent", DATABASE): ({"texts", "calls", "results", "usage"}, "the database has the sub-agent's own session"),
    ("opencode-sse/err_rate_limit_abort", "disk"): (
        {"ends"},
        "that the aborted wait was for a rate limit is said in a status, which is not kept",
    ),
    ("opencode-sse/session_ops", DATABASE): (
        {kind for kind in KINDS if kind != "thinking"},
        "a deleted session takes its rows with it; what is left is its fork",
    ),
    ("opencode-sse/subagent", EXPORT): ({"texts", "calls", "results", "usage"}, "the export has the parent's session alone"),
    ("opencode-sse-v2/permission_deny", DATABASE): ({"ends"}, "permission events are not kept, so the stop after a no looks like a loss"),
}
"""Where what OpenCode keeps differs from what it said: in which kinds, and why."""


def conversation(events: list[Event], over_acp: bool) -> dict[str, list[Any]]:
    """What was said, by kind; in no order, because parallel calls have none. ACP seals no thinking, and has words of its own for calls."""
    said: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    for event in news(events):
        for kind, fact in facts_of(event, over_acp):
            said[kind].append(json.dumps(fact, sort_keys=True))
    return {kind: sorted(facts) for kind, facts in said.items()}


def news(events: list[Event]) -> Iterator[Event]:
    """The events without the history that a new process replays."""
    replayed = False
    for event in events:
        subtype = event.payload.subtype if event.type == "session_lifecycle" else None
        replayed = subtype == "replay_started" or (replayed and subtype != "replay_ended")
        if not replayed:
            yield event


def facts_of(event: Event, over_acp: bool) -> Iterator[tuple[str, Any]]:
    payload: Any = event.payload
    match event.type:
        case "user_message" if event.parent_tool_call_id is None:
            yield "user", (payload.author, payload.text)
        case "assistant_done":
            yield "texts", (event.parent_tool_call_id, event.response_id, payload.text)
        case "thinking_done":
            yield "thinking", (event.parent_tool_call_id, payload.text, None if over_acp else (event.response_id, payload.signature))
        case "tool_call":
            args = {key: value for key, value in as_object(payload.args).items() if key != "cwd"} if over_acp else payload.args
            yield "calls", (event.parent_tool_call_id, payload.tool_call_id, payload.tool_name, args)
        case "tool_result":
            fields = as_object(payload.result)
            result = fields.get("output", fields.get("error", payload.result)) if over_acp else payload.result
            yield "results", (event.parent_tool_call_id, payload.tool_call_id, bool(payload.is_error), payload.exit_code, result)
        case "turn_end":
            yield "ends", (payload.status, payload.error and payload.error.code)
        case "usage" if payload.scope == "message":
            yield "usage", (event.response_id, payload.usage.input_tokens, payload.usage.output_tokens, payload.cost_usd)
        case _:
            pass


def is_empty(kept: Stream) -> bool:
    """An export of a session of the newer engine has no messages; its database has."""
    return kept.recording.path.parent.name == "opencode-sse-v2" and kept.name == EXPORT


def what_opencode_keeps_is_the_conversation_it_said(case: Case) -> None:
    wire = case.formats[0]
    kept = [one for one in case.streams if one.stream.format == "opencode-session"]
    live = conversation(case.conversation(wire)[0], wire == "acp") if kept else {}
    for one in kept:
        disk = conversation(one.events, wire == "acp")
        if is_empty(one.stream):
            assert not any(disk.values())
            continue
        name = case.recording.id
        different = {kind for kind in KINDS if live[kind] != disk[kind]} - NOT_ON.get(wire, {}).keys()
        declared, _ = DIFFERENCES.get((name, one.stream.name), DIFFERENCES.get((name, "disk"), (set(), "")))
        assert different == declared, one.stream.name
