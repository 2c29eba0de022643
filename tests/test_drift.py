"""The drift radar: what nobody has seen before is reported, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hansard.adapters import adapter_for, formats
from hansard.adapters.audit import package_of
from hansard.adapters.drift import MESSAGE, SEEN, Difference, Survey, Surveyor, drift, is_choice, seen, seen_lines
from hansard.adapters.framing import Frame, frames
from tests.recorded import streams
from tools.generate_seen import MADE_UP, folder_of, survey

FORMATS = sorted({adapter.formats[0] for adapter in formats().values()})


def surveyed(name: str, told: list[Frame]) -> Survey:
    adapter, found = adapter_for(name), Survey()
    Surveyor(adapter, name, found).read(told, adapter())
    return found


def recorded(name: str) -> Iterator[list[Frame]]:
    """The recordings of a format in which nothing was made up, as frames."""
    for stream in streams():
        if adapter_for(stream.format) is adapter_for(name) and MADE_UP.search(stream.recording.id) is None:
            yield list(frames([stream.data], adapter_for(name).framer()))


def new(name: str, told: list[Frame]) -> list[Difference]:
    return drift(surveyed(name, told), adapter_for(name), name)


def changed(told: list[Frame], change: Callable[[dict[str, Any]], bool]) -> bool:
    """Change messages in place; whether one was."""
    found = False
    for frame in told:
        try:
            message = json.loads(frame.data)
        except ValueError:
            continue
        if frame.noise is None and not frame.out and isinstance(message, dict) and change(message):
            frame.data, found = json.dumps(message).encode(), True
    return found


def with_value(place: Any, name: str, words: frozenset[str]) -> bool:
    """Put an invented word where a field of that name has one of these."""
    found = False
    for key, value in place.items() if isinstance(place, dict) else enumerate(place) if isinstance(place, list) else ():
        if key == name and isinstance(value, str) and value in words:
            place[key], found = "telepathic", True
        else:
            found = with_value(value, name, words) or found
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_what_recordings_showed_is_written_down_and_nothing_in_them_is_new(name: str):
    adapter, shown = adapter_for(name), survey(name)
    folder = folder_of(package_of(adapter))
    written = [line for line in (folder / SEEN).read_text("utf-8").splitlines() if line.startswith(f"{name}: ")]
    assert written == seen_lines(shown, name), "run `make seen` and look at the diff"
    assert drift(shown, adapter, name) == []


@pytest.mark.parametrize("name", FORMATS)
def test_an_invented_field_is_reported(name: str):
    told = next(recorded(name))

    def add(message: dict[str, Any]) -> bool:
        message["aura"] = {"colour": "blue"}
        return True

    assert changed(told, add)
    found = [one for one in new(name, told) if one.where.endswith("aura")]
    assert found
    assert {(one.kind, one.sample) for one in found} == {("field", '{"colour":"blue"}')}


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "opencode-session"])  # whose pieces have no types
def test_an_invented_type_is_reported(name: str):
    tag = adapter_for(name).tag
    times = 0

    def rename(message: dict[str, Any]) -> bool:
        nonlocal times
        if tag not in message:
            return False
        message[tag] = "telepathy"
        times += 1
        return True

    told = next(told for told in recorded(name) if changed(told, rename))
    found = [one for one in new(name, told) if one.kind == "type" and one.where == MESSAGE]
    assert [(one.word.split("/")[0], one.times) for one in found if one.word] == [("telepathy", times)]
    assert "telepathy" in found[0].sample or len(found[0].sample) == 48


@pytest.mark.parametrize("name", [name for name in FORMATS if any(place != MESSAGE for place in seen(adapter_for(name)))])
def test_an_invented_value_is_reported_wherever_there_is_a_fixed_set(name: str):
    places = {place: words for place, words in seen(adapter_for(name)).items() if is_choice(place)}
    place, words = max(places.items(), key=lambda item: (len(item[1]), item[0]))
    field = place.rpartition(".")[2]
    for told in recorded(name):
        if changed(told, lambda message: with_value(message, field, words)) and (found := in_values(name, told, place)):
            assert found[0].times >= 1
            assert found[0].sample == '"telepathic"'
            return
    pytest.fail(f"no recording of {name} has {place}")


def in_values(name: str, told: list[Frame], place: str) -> list[Difference]:
    return [one for one in new(name, told) if one.kind == "value" and one.where == place and one.word == "telepathic"]


def lines(*messages: dict[str, Any]) -> list[Frame]:
    return [Frame(json.dumps(message).encode()) for message in messages]


def result(**fields: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "session_id": "s", "uuid": "u", **fields}


def test_a_new_word_is_counted():
    found = new("claude-stream-json", lines(result(stop_reason="boredom"), result(stop_reason="boredom"), result(stop_reason="end_turn")))
    assert [(one.kind, one.where, one.word, one.times) for one in found] == [("value", "result.stop_reason", "boredom", 2)]


def test_text_is_no_word_and_a_word_of_another_field_of_that_name_is_known():
    said = result(stop_reason="because I was bored")
    elsewhere = {"type": "system", "subtype": "status", "permissionMode": "plan", "status": None}
    assert new("claude-stream-json", lines(said, elsewhere)) == []


def test_a_word_that_the_code_asks_for_is_known_without_a_recording():
    word = "error_max_structured_output_retries"
    assert not any(word in words for words in seen(adapter_for("claude-stream-json")).values())
    assert new("claude-stream-json", lines(result(subtype=word))) == []
    assert new("claude-stream-json", lines(result(subtype="error_max_yawns"))) != []


def test_a_new_block_and_what_is_below_a_new_field_are_told_once():
    message = {"id": "m", "content": [{"type": "sculpture", "clay": 1}], "mood": {"type": "good"}}
    found = new("claude-stream-json", lines({"type": "assistant", "session_id": "s", "message": message}))
    assert [(one.kind, one.where, one.word) for one in found] == [
        ("type", "assistant.message.content[]", "sculpture"),
        ("field", "assistant.message.mood", None),
    ]


def test_samples_are_short():
    found = new("claude-stream-json", lines(result(confession="a long story " * 100)))
    assert len(found[0].sample) == 48


def test_against_another_recording_everything_that_it_did_not_show_is_new():
    adapter = adapter_for("claude-stream-json")
    before = surveyed("claude-stream-json", lines(result(stop_reason="end_turn")))
    after = surveyed("claude-stream-json", lines(result(stop_reason="tool_use", num_turns=1, aura=1), {"type": "keep_alive", "aura": 1}))
    found = [(one.kind, one.where, one.word, one.known) for one in drift(after, adapter, "claude-stream-json", before)]
    assert found == [
        ("type", MESSAGE, "keep_alive", True),
        ("field", "result.num_turns", None, True),
        ("field", "result.aura", None, False),
        ("value", "result.stop_reason", "tool_use", True),
    ]
    assert drift(before, adapter, "claude-stream-json", before) == []


@pytest.mark.parametrize(
    ("path", "choice"),
    [
        ("result.stop_reason", True),
        ("x.stopReason", True),
        ("a.b[].__type__", True),
        ("status", True),
        ("system/init.model", False),
        ("user.subagent_type", False),
        ("x.mimeType", False),
        ("x.123", False),
    ],
)
def test_fields_that_hold_one_of_a_few_words_are_known_by_name(path: str, choice: bool):
    assert is_choice(path) is choice
