"""Who wrote a message to an agent: every prompt of the truth is a person's, and nothing else is, live and on disk."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import pytest

from hansard.adapters.authors import BEGINNINGS, ELEMENTS, author_of, split_blocks
from hansard.adapters.normalize import normalize
from hansard.events import Event
from hansard.events.content import ImageBlock, TextBlock
from hansard.events.replays import without_replays
from hansard.events.state import State
from tests.recorded import Recording, recordings

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


def read_events(recording: Recording) -> dict[str, list[Event]]:
    """Returns the messages to the main agent by format: those of the wire, and those of the files that the program keeps."""
    found: dict[str, list[Event]] = defaultdict(list)
    for stream in recording.streams:
        events = without_replays(normalize(stream.data, stream.format, stream.context))
        found[stream.format] += [event for event in events if event.type == "user_message" and event.parent_tool_call_id is None]
    return found


def letters(text: str) -> str:
    return re.sub(r"\s", "", text)


def is_said(text: str, prompt: str) -> bool:
    """Returns whether a message is a prompt, or a part of one, or begins with one. `opencode run` puts it in quotation marks."""
    return text.lstrip('"').startswith(prompt) or (text != "" and text in prompt)


WITH_TRUTH = [recording for recording in recordings() if (recording.path / "truth.json").exists() and "long" not in recording.path.name]


@pytest.mark.parametrize("folder", sorted({recording.path.parent.name for recording in WITH_TRUTH}))
def test_each_prompt_of_the_truth_is_a_persons_and_nothing_else_is(folder: str) -> None:
    for recording in (recording for recording in WITH_TRUTH if recording.path.parent.name == folder):
        wanted = [letters(text) for text in prompts(recording)]
        arguments = [letters(turn["user"]) for turn in recording.truth["turns"] if "command" in turn]  # OpenCode keeps the command's text
        for format, messages in read_events(recording).items():
            for event in messages:
                text = letters(event.payload.text)
                known = any(is_said(text, prompt) for prompt in wanted) or any(argument in text for argument in arguments)
                if event.payload.author == "human":
                    assert known or not text, (recording.id, format, event.payload.text[:200])
                else:
                    assert text not in wanted, (recording.id, format, event.payload.text[:200])


@pytest.mark.parametrize("folder", sorted({recording.path.parent.name for recording in WITH_TRUTH}))
def test_a_title_is_the_first_prompt_and_never_a_command_or_context(folder: str) -> None:
    for recording in (recording for recording in WITH_TRUTH if recording.path.parent.name == folder):
        wanted = [letters(text) for text in prompts(recording) if not COMMAND.match(text)]
        for stream in recording.streams:
            title = State.from_events(normalize(stream.data, stream.format, stream.context)).summary.first_message
            assert title is None or any(is_said(letters(title), prompt) for prompt in wanted), (stream.id, title)


@pytest.mark.parametrize("name", [name for names in ELEMENTS.values() for name in names])
def test_an_element_of_a_harness_is_the_harnesss_and_a_prompt_after_it_a_persons(name: str) -> None:
    element = f"<{name}>now, as `</{name}>` says</{name}>"
    assert author_of(element) == author_of(f"\n{element}\n<{name} kind='a'>cut off") == author_of(element, nested=True) == "harness"
    assert author_of(f"{element}\n\nWhy?") == author_of(f"What is {element}?") == author_of(f"<{name}s>?") == "human"
    before, own, after = split_blocks([TextBlock(f"{element}\n\nWhy?"), ImageBlock(url="x"), TextBlock(element)])
    assert (before, own, after) == ([TextBlock(f"{element}\n\n")], [TextBlock("Why?"), ImageBlock(url="x")], [TextBlock(element)])


@pytest.mark.parametrize("beginning", [text for texts in BEGINNINGS.values() for text in texts])
def test_a_text_that_begins_as_those_of_a_harness_is_the_harnesss(beginning: str) -> None:
    assert author_of(f"{beginning} and so on") == "harness"
    assert author_of(f"It printed: {beginning}") == "human"


def test_what_the_wire_says_counts_more_than_the_text() -> None:
    assert author_of("<system-reminder>pasted</system-reminder>", wire="human") == "human"
    assert author_of("Why?", role="developer") == "harness"
    assert author_of("Why?", nested=True) == "agent"
    assert author_of("") == "human"  # a picture may be all of a message
