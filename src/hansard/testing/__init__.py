"""The promises every adapter keeps, as plain functions that raise AssertionError. For our own tests, and for adapters from elsewhere.

``check_adapter("parrot-json", data)`` holds a recorded stream to all of them; ``check_truth`` compares the events with what user and model
really said, for streams recorded against a scripted model.
"""

from hansard.testing.promises import (
    check_adapter,
    check_chunks,
    check_closed,
    check_events,
    check_frames,
    check_json,
    check_order,
    check_originals,
    check_paths,
    check_questions,
    check_splits,
    check_tools,
    check_turns,
    check_usage,
    pieces,
    verbatim,
)
from hansard.testing.truth import Fact, Loss, check_truth, facts

__all__ = [
    "Fact",
    "Loss",
    "check_adapter",
    "check_chunks",
    "check_closed",
    "check_events",
    "check_frames",
    "check_json",
    "check_order",
    "check_originals",
    "check_paths",
    "check_questions",
    "check_splits",
    "check_tools",
    "check_truth",
    "check_turns",
    "check_usage",
    "facts",
    "pieces",
    "verbatim",
]
