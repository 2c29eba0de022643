"""The scripted model: how its answers end, in each API's own word."""

from __future__ import annotations

import json

import pytest

from hansard.testing.model_api import DIALECTS, Call, Step, Text, Thinking, chat, gemini, messages, responses, whole_message

WORDS = {
    messages: {None: "end_turn", "max_tokens": "max_tokens", "refusal": "refusal"},
    responses: {None: "response.completed", "max_tokens": "max_output_tokens", "refusal": "content_filter"},
    chat: {None: "stop", "max_tokens": "length", "refusal": "content_filter"},
    gemini: {None: "STOP", "max_tokens": "MAX_TOKENS", "refusal": "SAFETY"},
}


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.stream.__name__)
@pytest.mark.parametrize("stop", [None, "max_tokens", "refusal"])
def test_an_answer_ends_with_the_word_of_its_api(dialect, stop):
    said = json.dumps(list(dialect.stream(Step([Text("There was once a")], stop=stop))))
    assert [reason for reason, word in WORDS[dialect.stream].items() if json.dumps(word) in said] == [stop]


def test_an_answer_that_calls_a_tool_ends_with_that_unless_it_was_stopped():
    assert '"tool_use"' in json.dumps(list(messages(Step([Call("read", {}, "c")])))[-2])
    assert '"length"' in json.dumps(list(chat(Step([Call("read", {}, "c")], stop="max_tokens"))))


def test_an_answer_that_is_not_streamed_ends_with_the_same_word():
    assert whole_message(Step([Text("There was")], stop="max_tokens"))["stop_reason"] == "max_tokens"


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.stream.__name__)
def test_a_whole_answer_has_what_a_streamed_one_has(dialect):
    step = Step([Thinking("Let me see."), Text("I read it."), Call("read", {"path": "a.txt"}, "call_1")], tokens=(70, 7), id="answer_1")
    whole = json.dumps(dialect.whole(step))
    for part in ("Let me see.", "I read it.", '"read"', "a.txt", '"call_1"', "70", "answer_1"):
        assert part in whole
