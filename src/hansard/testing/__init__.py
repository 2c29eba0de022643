"""The promises every adapter keeps, as plain functions that raise AssertionError. For our own tests, and for adapters from elsewhere.

``check_recordings("recordings/parrot")`` holds a folder of recordings to all of them (`hansard.testing.recordings` says what is in it);
``check_adapter("parrot-json", data)`` one stream; ``check_truth`` compares the events with what user and model really said, for streams
recorded against a scripted model. ``check_projection`` and ``check_store`` are for the other things that a package can add.
"""

from hansard.testing.assertions import RecordedConversation
from hansard.testing.plugins import check_projection, check_store
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
from hansard.testing.recordings import check_recording, check_recordings, recordings_in, write_golden
from hansard.testing.truth import Fact, Loss, check_truth, facts, unshown

__all__ = [
    "Fact",
    "Loss",
    "RecordedConversation",
    "check_adapter",
    "check_chunks",
    "check_closed",
    "check_events",
    "check_frames",
    "check_json",
    "check_order",
    "check_originals",
    "check_paths",
    "check_projection",
    "check_questions",
    "check_recording",
    "check_recordings",
    "check_splits",
    "check_store",
    "check_tools",
    "check_truth",
    "check_turns",
    "check_usage",
    "facts",
    "pieces",
    "recordings_in",
    "unshown",
    "verbatim",
    "write_golden",
]
