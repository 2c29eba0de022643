"""Who wrote a message to an agent: every prompt of the truth is a person's, and nothing else is, live and on disk."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from hansard.events import Event
from hansard.events.replays import without_replays
from hansard.events.state import State
from tests.recorded import Case, Recording

OTHER_PROMPTS = {
    "claude-acp/config_acp": "/model haiku",  # the adapter of claude-acp types it
    "claude-acp/slash": "/usage",  # what /cost is called in the file
    "codex-acp/compaction": "/compact",
    "opencode-acp/compaction": "/compact",
    "codex-app-server/review": "Review the tav code.",
    "codex-app-server/steer": "No, do it the other way: shin-steered.",
    "opencode-acp/config_change": "/greet lotus-argument",
    "sdkagent-acp/all_updates": "(echo of the user) Show every update kind.",
}
"""What a person said in a recording beside the prompts that its truth lists."""
COMMAND = re.compile(r"/[a-z][\w:-]*(\s|$)")


def prompts(recording: Recording) -> list[str]:
    """Returns what a person said, by the truth of a recording."""
    said = [turn.get(name) for turn in recording.truth["turns"] for name in ("user", "queued_user")]
    return [*(text for prompt in said for text in _texts(prompt)), *filter(None, [OTHER_PROMPTS.get(recording.id)])]


def _texts(prompt: Any) -> list[str]:
    match prompt:
        case str():
            return [prompt]
        case list():
            return [text for part in prompt for text in _texts(part)]
        case {"text": str() as text}:
            return [text]
        case _:
            return []


def messages_by_format(case: Case) -> dict[str, list[Event]]:
    """Returns the messages to the main agent: those of the wire, and those of the files that the program keeps."""
    found: dict[str, list[Event]] = defaultdict(list)
    for one in case.streams:
        events = without_replays(one.events)
        found[one.stream.format] += [event for event in events if event.type == "user_message" and event.parent_tool_call_id is None]
    return found


def letters(text: str) -> str:
    return re.sub(r"\s", "", text)


def is_said(text: str, prompt: str) -> bool:
    """Returns whether a message is a prompt, or a part of one, or begins with one. `opencode run` puts it in quotation marks."""
    return text.lstrip('"').startswith(prompt) or (text != "" and text in prompt)


def each_prompt_of_the_truth_is_a_persons_and_nothing_else_is(case: Case) -> None:
    wanted = [letters(text) for text in prompts(case.recording)]
    arguments = [letters(turn["user"]) for turn in case.recording.truth["turns"] if "command" in turn]  # OpenCode keeps the command's text
    for format, messages in messages_by_format(case).items():
        for event in messages:
            text = letters(event.payload.text)
            known = any(is_said(text, prompt) for prompt in wanted) or any(argument in text for argument in arguments)
            if event.payload.author == "human":
                assert known or not text, (format, event.payload.text[:200])
            else:
                assert text not in wanted, (format, event.payload.text[:200])


def a_title_is_the_first_prompt_and_never_a_command_or_context(case: Case) -> None:
    wanted = [letters(text) for text in prompts(case.recording) if not COMMAND.match(text)]
    for one in case.streams:
        title = State.from_events(one.events).summary.first_message
        assert title is None or any(is_said(letters(title), prompt) for prompt in wanted), (one.stream.id, title)
