"""What holds for a recording as a whole: what user and model really said, as the script of the recording knows it, is in the events."""

from __future__ import annotations

from typing import Any

from hansard.projections import project
from hansard.testing import check_truth
from tests.recorded import Case, losses, medium_of


def what_was_really_said_is_in_typed_events_in_order(case: Case) -> None:
    for format in case.formats:
        events, wire = case.conversation(format)
        check_truth(events, case.recording.truth, wire, medium_of(case.recording, format), losses(case.recording, format))


TOLD_LESS = {
    ("acp", "claude-acp/background_bash"): "what a background task sets off has no count of its own",
    ("acp", "claude-acp/subagent_background"): "what a background task sets off has no count of its own",
    ("acp", "gemini-acp/subagent"): "what its sub-agent used is not said",
    ("acp", "opencode-acp/*"): "only one message of a turn has a count on this wire",
    ("acp", "qwen-acp/max_tokens"): "only one of the five answers has a count",
    ("acp", "qwen015-acp/max_tokens"): "only one of the five answers has a count",
    ("claude-control", "claude-control/requests"): "the turn in which no user speaks is not shown",
    ("claude-session", "claude-control/requests"): "the turn in which no user speaks is not shown",
    ("opencode-session", "opencode-sse/session_ops"): "messages were deleted",
    ("qwen-chat", "qwen015-acp/subagent"): "what its sub-agent used is not said",
}
"""Format and recording of which the wire tells less than was used, and what it is silent about."""
ASKED_MORE = {"anthropic-api/compaction", "copilot-acp/slash_config", "gemini-stream-json/compaction", "qwen-stream-json-io/compaction"}
"""The agent asked the model for something that the script does not count, such as a summary."""
COUNTED_AHEAD = {("claude-stream-json", "claude-stream-json/subagent_background")}
"""A turn's totals have an answer of the next turn already, among the tokens that no response accounts for."""


def the_turns_together_used_what_the_model_was_asked_for(case: Case) -> None:
    turns: list[dict[str, Any]] = case.recording.truth["turns"]
    for format in case.formats:
        (found,) = project(case.conversation(format)[0], "usage")
        for name in ("input_tokens", "output_tokens"):
            _check_tokens(case, format, turns, found, name)


def _check_tokens(case: Case, format: str, turns: list[dict[str, Any]], found: Any, name: str) -> None:
    inside = any("inside_subagent" in item for turn in turns for item in turn["model"])
    parts = [turn.main for turn in found.turns] + ([found.subagents] if inside and found.subagents else [])
    known = [number for part in parts if (number := getattr(part, name)) is not None]
    if not known or not any(turn.get("usage") for turn in turns):  # of a document nobody knows what its model was asked for
        return
    wanted = sum(turn.get("usage", {}).get(name, 0) for turn in turns)
    thought = sum(turn.get("usage", {}).get("thinking_tokens", 0) for turn in turns) if name == "output_tokens" else 0
    silent = (format, case.recording.id) in TOLD_LESS
    stopped = any(turn["end"] in ("interrupted", "error") for turn in turns) or (format, f"{case.folder}/*") in TOLD_LESS
    if case.recording.id in ASKED_MORE:
        assert sum(known) >= wanted, (format, name)
    elif (format, case.recording.id) in COUNTED_AHEAD:
        assert sum(known) <= wanted <= sum(getattr(turn.total, name) or 0 for turn in found.turns), (format, name)
    elif silent:
        assert sum(known) < wanted, (format, name)
    elif stopped:
        assert sum(known) <= wanted + thought, (format, name)
    else:
        assert sum(known) in {wanted, wanted + thought}, (format, name)
