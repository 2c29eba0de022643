"""The recorded model on loopback: every API, streamed and whole, the turns, the subagents, and requests that are not on the record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from hansard.adapters.normalize import normalize
from hansard.events import AssistantDone, ToolCall
from hansard.testing.model_api import Call, Step, Text
from hansard.testing.model_server import serving
from hansard.testing.recorded_model import RecordedModel, RecordedSubagent, RecordedTurn
from hansard.testing.replay_server import BESIDE_TEXT, NO_MORE, ReplayServer

TOOLS = [{"name": "read"}]
HELLO = [{"role": "user", "content": "Hello."}]
APIS = {
    "messages": ("/v1/messages", "anthropic-api", {"messages": HELLO}),
    "responses": ("/v1/responses", "openai-responses", {"input": HELLO}),
    "chat": ("/v1/chat/completions", "openai-chat-completions", {"messages": HELLO}),
    "gemini": ("/v1beta/models/m:generateContent", None, {"contents": [{"role": "user", "parts": [{"text": "Hello."}]}]}),
}


def text(*texts: str) -> list[Step]:
    return [Step([Text(text)]) for text in texts]


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    call = Step([Text("I read it."), Call("read", {"path": "a.txt"}, "call_1")])
    failing = Step(status=429, message="Slow down.", stays=True)
    subagents = [RecordedSubagent("Look east.", text("East.")), RecordedSubagent("Look east. And west.", text("East and west."))]
    turns = [RecordedTurn([call, *text("Done.")]), RecordedTurn(text("Second.")), RecordedTurn([failing])]
    with serving(ReplayServer(RecordedModel(turns, subagents, prompts=["Hello.", "Ask a helper to look: Look east."]))) as served:
        yield served


def ask(server: ReplayServer, path: str, body: dict[str, Any]) -> bytes:
    request = Request(server.url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urlopen(request, timeout=20) as answer:
        return answer.read()


def ask_model(server: ReplayServer, *messages: str, tools: bool = True) -> str:
    """The text of the next answer to a conversation that begins with these messages."""
    body = {"messages": [{"role": "user", "content": message} for message in messages]} | ({"tools": TOOLS} if tools else {})
    return "".join(block.get("text", "") for block in json.loads(ask(server, "/v1/messages", body))["content"])


def refused(server: ReplayServer, message: str) -> tuple[int, str]:
    """The status and the body of the error that is the next answer."""
    with pytest.raises(HTTPError) as failed:
        ask_model(server, message)
    with failed.value as answer:
        return answer.code, answer.read().decode()


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_an_answer_is_given_in_every_api(server, api, streamed):
    path, format, body = APIS[api]
    server.begin(0)
    stream = {"stream": True} if streamed and api != "gemini" else {}
    answer = ask(server, path.replace(":g", ":streamG") if streamed else path, body | {"tools": TOOLS} | stream)
    if format is not None:
        events = list(normalize(answer, format))
        assert "".join(event.payload.text for event in events if isinstance(event, AssistantDone)) == "I read it."
        [called] = [event.payload for event in events if isinstance(event, ToolCall)]
        assert (called.tool_name, called.args, called.tool_call_id) == ("read", {"path": "a.txt"}, "call_1")
    else:
        lines = [json.loads(line.removeprefix(b"data: ")) for line in answer.splitlines() if line]
        parts = [part for line in lines for part in line["candidates"][0]["content"]["parts"]]
        assert "".join(part.get("text", "") for part in parts) == "I read it."
        assert {"functionCall": {"name": "read", "args": {"path": "a.txt"}, "id": "call_1"}} in parts


def test_each_prompt_begins_with_the_answers_of_its_turn(server):
    server.begin(0)
    assert ask_model(server, "Hello.") == "I read it."
    server.begin(1)
    assert ask_model(server, "Hello.") == "Second."
    assert server.served == 2


def test_subagents_are_known_by_their_prompts(server):
    server.begin(1)
    assert ask_model(server, "Look east.") == "East."
    assert ask_model(server, "<reminder>", "Look east. And west.") == "East and west."
    assert ask_model(server, "Ask a helper to look: Look east.") == "Second."


def test_a_request_that_is_not_part_of_the_conversation_takes_no_answer(server):
    server.begin(1)
    assert ask_model(server, "Write a title.", tools=False) == BESIDE_TEXT
    assert json.loads(ask(server, "/v1/messages/count_tokens", {}))["input_tokens"] == 1
    assert ask_model(server, "Hello.") == "Second."
    assert (server.served, server.beside) == (1, 1)


def test_a_request_without_an_answer_on_the_record_is_an_error_and_counted(server):
    server.begin(1)
    assert ask_model(server, "Hello.") == "Second."
    code, body = refused(server, "Hello.")
    assert code == 400 and NO_MORE in body
    assert server.surplus == 1


def test_the_error_that_ended_a_turn_comes_as_often_as_the_agent_asks(server):
    server.begin(2)
    for _ in range(3):
        code, body = refused(server, "Hello.")
        assert code == 429 and "Slow down." in body
    assert server.surplus == 0
