"""Gemini, Qwen and Copilot: the live wire, the ACP wire and the file of the same run tell the same conversation.

What the program itself tells differently is listed with the reason; a difference that is not listed, or one that is gone, fails.
"""

from __future__ import annotations

from pathlib import Path

from tests import conversations
from tests.recorded import Case, glob

FILES = {
    "gemini": ("gemini-chat", "disk/gemini/tmp/*/chats/session-*.jsonl"),
    "qwen": ("qwen-chat", "disk/qwen/projects/*/chats/*.jsonl"),
    "copilot": ("copilot-session", "disk/copilot/session-state/*/events.jsonl"),
}
"""The format and the place of what each program writes down."""

COMPARED = {
    "gemini-stream-json": {"prompts", "texts", "calls", "results", "plans", "ends"},  # thoughts are in the file only
    "qwen-stream-json": {"texts", "thinking", "calls", "results", "plans", "ends"},  # prompts are in the file only
    "qwen-stream-json-io": {"prompts", "texts", "thinking", "calls", "results", "plans", "ends"},
    "copilot-json": {"prompts", "texts", "thinking", "calls", "results", "plans", "ends"},
    "acp": {"prompts", "texts", "ends"},  # calls have titles there, and ids of their own
}
"""What a wire can tell at all."""

TRIMMED = "the file has texts without the blanks at their ends"
TAKEN_BACK = "the file does not say why a prompt was taken back"
UNFINISHED = "an answer is written down when it is over; this one was cut off"
NOT_CALLED = "a call is written down when it is over; the process was killed before"
OWN_FILE = "what a sub-agent did is in a file of its own"
FINISH = "finish reasons are in the file only"
AGAIN = "session/load says the history once more"
JOINED = "live, an answer that is asked for again goes on in the same text"

DIFFERENCES: dict[str, dict[str, str]] = {
    "gemini-stream-json/err_auth": {"ends": TAKEN_BACK},
    "gemini-stream-json/err_context": {"ends": TAKEN_BACK},
    "gemini-stream-json/err_overloaded": {"ends": TAKEN_BACK},
    "gemini-stream-json/err_rate_limit": {"ends": TAKEN_BACK},
    "gemini-stream-json/err_server": {"ends": TAKEN_BACK},
    "gemini-stream-json/interrupt": {"texts": UNFINISHED},
    "gemini-stream-json/interrupt_tool": {
        "calls": NOT_CALLED,
        "results": NOT_CALLED,
        "ends": "without the call, the file looks as if the turn were over",
    },
    "gemini-stream-json/long": {"texts": TRIMMED},
    "gemini-stream-json/loop_detected": {"texts": "an answer that is stopped for repeating itself is not written down"},
    "gemini-stream-json/parallel_tools": {"texts": TRIMMED},
    "gemini-stream-json/text": {"texts": "the file has texts without zero-width joiners and without the blanks at their ends"},
    "gemini-acp/err_auth": {"ends": TAKEN_BACK},
    "gemini-acp/err_context": {"ends": TAKEN_BACK},
    "gemini-acp/err_overloaded": {"ends": TAKEN_BACK},
    "gemini-acp/err_rate_limit": {"ends": TAKEN_BACK},
    "gemini-acp/err_server": {"ends": TAKEN_BACK},
    "gemini-acp/image_input": {"prompts": "the file has the text of attached files in the prompt"},
    "gemini-acp/interrupt": {"texts": UNFINISHED, "ends": TAKEN_BACK},
    "gemini-acp/long": dict.fromkeys(("prompts", "texts", "ends"), "of this session only the header was written"),
    "gemini-acp/loop_detected": {"texts": "an answer that is stopped for repeating itself is not written down"},
    "gemini-acp/multi_turn": {"prompts": AGAIN, "texts": AGAIN},
    "gemini-acp/parallel_tools": {"texts": TRIMMED},
    "gemini-acp/resume_same_minute": dict.fromkeys(
        ("prompts", "ends"), "a prompt to a session that could not be loaded is written nowhere"
    ),
    "gemini-acp/slash_config": dict.fromkeys(("prompts", "texts", "ends"), "slash commands are not written down"),
    "gemini-acp/text": {"texts": "the file has texts without zero-width joiners and without the blanks at their ends"},
    "qwen-stream-json/interrupt": {"ends": "SIGINT ends the stream without a word"},
    "qwen-stream-json/max_tokens": {"texts": JOINED},
    "qwen-stream-json/subagent": {"calls": OWN_FILE, "results": OWN_FILE},
    "qwen-stream-json/thinking": {"thinking": TRIMMED},
    "qwen-stream-json-io/compaction": dict.fromkeys(("prompts", "texts", "ends"), "of /compress the file has only what came of it"),
    "qwen-stream-json-io/subagent": {"prompts": OWN_FILE, "calls": OWN_FILE, "results": OWN_FILE},
    "qwen-stream-json-io/thinking": {"thinking": TRIMMED},
    "qwen-acp/compaction": {"texts": "on the wire the output of a command has no line breaks between its parts"},
    "qwen-acp/max_tokens": {"texts": JOINED},
    "qwen-acp/multi_turn": {"prompts": AGAIN, "texts": AGAIN},
    "qwen-acp/slash_config": {"texts": "on the wire the output of a command is Markdown"},
    "qwen-acp/subagent": {"texts": OWN_FILE},
    "qwen015-stream-json/interrupt": {"texts": TRIMMED},
    "qwen015-stream-json/parallel_tools": {"texts": TRIMMED},
    "qwen015-stream-json/text": {"texts": TRIMMED},
    "qwen015-stream-json/thinking": {"thinking": TRIMMED},
    "qwen015-acp/compaction": {"texts": TRIMMED},
    "qwen015-acp/interrupt": {"texts": TRIMMED, "ends": "a stopped request is written down as if it were over, without its tokens"},
    "qwen015-acp/long": {"texts": TRIMMED},
    "qwen015-acp/max_tokens": {"texts": JOINED},
    "qwen015-acp/multi_turn": {"prompts": AGAIN, "texts": AGAIN},
    "qwen015-acp/parallel_tools": {"texts": TRIMMED},
    "qwen015-acp/slash_config": {"texts": "on the wire the output of a command is Markdown"},
    "qwen015-acp/text": {"texts": TRIMMED},
    "copilot-json/interrupt": {"texts": "deltas are not kept, and this answer never became a message"},
    "copilot-json/max_tokens": {"texts": "deltas are not kept, and two answers that hit the limit never became messages", "ends": FINISH},
    "copilot-json/refusal": {"ends": FINISH},
    "copilot-json/thinking": {"thinking": TRIMMED},
    "copilot-acp/image_input": {"prompts": "the file has links of the prompt as words"},
    "copilot-acp/interrupt": {"texts": UNFINISHED},
    "copilot-acp/max_tokens": {"texts": UNFINISHED, "ends": FINISH},
    "copilot-acp/multi_turn": {"prompts": AGAIN, "texts": AGAIN},
    "copilot-acp/refusal": {"ends": FINISH},
    "copilot-acp/subagent": {"prompts": "ACP does not tell a sub-agent's prompt"},
}


def format_of(folder: str) -> str:
    return "acp" if folder.endswith("-acp") else folder.replace("qwen015", "qwen")


def written(recording: Path) -> conversations.Conversation:
    format, place = FILES[family_of(recording.parent.name)]
    return conversations.read_conversation(glob(place, recording), format)


def family_of(folder: str) -> str:
    return folder.partition("-")[0].replace("qwen015", "qwen")


def wire_and_file_tell_the_same_conversation(case: Case) -> None:
    if family_of(case.folder) not in FILES:
        return
    format, recording = format_of(case.folder), case.recording.path
    live = conversations.read_conversation([*glob("stdout*.jsonl", recording), *glob("wire*.jsonl", recording)], format)
    different = conversations.differing(live, written(recording)) & COMPARED[format]
    assert different == set(DIFFERENCES.get(case.recording.id, {}))


# ---- two versions of one program

VERSIONS: dict[str, dict[str, str]] = {
    "wire tool_fail": {"results": "0.15 calls every command that ran a success"},
    "file tool_fail": {"results": "0.15 calls every command that ran a success"},
    "file interrupt": {"texts": TRIMMED, "ends": "0.15 writes a stopped request down as if it were over, without its tokens"},
    "file parallel_tools": {"texts": TRIMMED},
    "file text": {"texts": TRIMMED},
}
"""What 0.15 tells differently from 0.24, by source and scenario. Blanks are lost in the files of 0.15 alone."""


def read_conversation(source: str, recording: Path) -> conversations.Conversation:
    live = source == "wire"
    found = conversations.read_conversation(glob("stdout*.jsonl", recording), "qwen-stream-json") if live else written(recording)
    return found | {"calls": [(under, call_id, name) for under, call_id, name, _ in found["calls"]]}  # the scripts differ in arguments


def two_versions_of_qwen_are_read_as_the_same_conversation(case: Case) -> None:
    newer = case.recording.path.parents[1] / "qwen-stream-json" / case.recording.path.name
    if case.folder != "qwen015-stream-json" or not newer.exists():
        return
    for source in ("wire", "file"):
        one, other = read_conversation(source, case.recording.path), read_conversation(source, newer)
        assert any(other[kind] for kind in ("texts", "calls", "ends"))
        assert conversations.differing(one, other) == set(VERSIONS.get(f"{source} {newer.name}", {}))
