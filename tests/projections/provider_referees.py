"""What the providers accept: their own SDKs' types, and the rules those types cannot say."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from pydantic import TypeAdapter

ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
TAG = re.compile(r"<(/?)(conversation|user|assistant|tool_call|tool_result)\b([^\n>]*)>")


@cache
def chat() -> TypeAdapter[Any]:
    from openai.types.chat import ChatCompletionMessageParam

    return TypeAdapter(list[ChatCompletionMessageParam])


@cache
def responses() -> TypeAdapter[Any]:
    from openai.types.responses import ResponseInputParam

    return TypeAdapter(ResponseInputParam)


@cache
def anthropic() -> TypeAdapter[Any]:
    from anthropic.types import MessageParam

    return TypeAdapter(list[MessageParam])


def openai_accepts(messages: list[dict[str, Any]], data: bytes) -> None:
    """Each call is answered directly after its message, no answer is without a call; ids and names are short and plain."""
    assert json.loads(data) == messages
    chat().validate_json(data, strict=True)
    open_calls: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
        else:
            assert not open_calls
        calls = message.get("tool_calls", [])
        assert all(ID.fullmatch(call["function"]["name"]) and ID.fullmatch(call["id"]) and len(call["id"]) <= 40 for call in calls)
        assert all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in calls)
        open_calls |= {call["id"] for call in calls}
        assert len(open_calls) >= len(calls)
        assert message["content"] is not None or calls or message.get("refusal")
    assert not open_calls


def responses_accept(items: list[dict[str, Any]], data: bytes) -> None:
    """Each call has one output, which comes before anybody else speaks."""
    assert json.loads(data) == items
    responses().validate_json(data, strict=True)
    calls_and_outputs(items)


def calls_and_outputs(items: list[dict[str, Any]]) -> None:
    """A call is answered before the next message, once."""
    open_calls: set[str] = set()
    for item in items:
        match item["type"]:
            case "function_call":
                assert item["call_id"] not in open_calls and ID.fullmatch(item["call_id"]) and ID.fullmatch(item["name"])
                open_calls.add(item["call_id"])
            case "function_call_output":
                open_calls.remove(item["call_id"])
            case _:
                assert not open_calls
    assert not open_calls


def anthropic_accepts(messages: list[dict[str, Any]], data: bytes) -> None:
    """Roles take turns and the user begins; results stand first in the message after their calls; no text is empty; no thinking is last."""
    assert json.loads(data) == messages
    anthropic().validate_json(data, strict=True)
    turns(messages)


def turns(messages: list[dict[str, Any]]) -> None:
    """The rules of a conversation with Claude."""
    ids: set[str] = set()
    asked: list[str] = []
    for index, message in enumerate(messages):
        content = message["content"]
        assert message["role"] == ("assistant" if index % 2 else "user")
        assert content and all(block["type"] != "text" or block["text"].strip() for block in content)
        results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        assert sorted(results) == sorted(asked)
        assert all(block["type"] == "tool_result" for block in content[: len(results)])
        asked = [block["id"] for block in content if block["type"] == "tool_use"]
        assert not ids & set(asked) and len(set(asked)) == len(asked)
        assert all(ID.fullmatch(block["id"]) and ID.fullmatch(block["name"]) for block in content if block["type"] == "tool_use")
        assert message["role"] == "user" or content[-1]["type"] not in ("thinking", "redacted_thinking")
        ids |= set(asked)
    assert not asked


def prompt_is_whole(pieces: list[str], data: bytes) -> None:
    """Every tag is closed, none is inside another of its kind, and each result names a call."""
    text = data.decode()
    assert text == "".join(pieces)
    inside: list[str] = []
    calls: list[str] = []
    for closing, tag, attributes in TAG.findall(text):
        if closing:
            assert inside.pop() == tag
            continue
        assert inside == ([] if tag == "conversation" else ["conversation"])
        inside.append(tag)
        name = re.search(r'id="([^"]+)"', attributes)
        if tag == "tool_call":
            assert name
            calls.append(name.group(1))
        elif tag == "tool_result":
            assert name
            calls.remove(name.group(1))
    assert not inside and not calls


def claude_session_is_whole(lines: list[dict[str, Any]], data: bytes) -> None:
    """One line follows the other, all of one session, and the messages are ones that the API accepts."""
    assert [json.loads(line) for line in data.split(b"\n")[:-1]] == lines
    assert [line["parentUuid"] for line in lines] == [None, *(line["uuid"] for line in lines)][: len(lines)]
    assert len({line["sessionId"] for line in lines}) <= 1
    messages = [{"role": line["message"]["role"], "content": line["message"]["content"]} for line in lines]
    anthropic_accepts(messages, json.dumps(messages).encode())


def codex_rollout_is_whole(lines: list[dict[str, Any]], data: bytes) -> None:
    """It begins with who it is, and the items are ones that the API accepts."""
    assert [json.loads(line) for line in data.split(b"\n")[:-1]] == lines
    assert [line["type"] for line in lines].count("session_meta") == bool(lines)
    assert not lines or lines[0]["type"] == "session_meta"
    items = [line["payload"] for line in lines if line["type"] == "response_item"]
    items = [item | {"content": item["content"][0]["text"]} if item.get("role") == "assistant" else item for item in items]
    responses_accept(items, json.dumps(items).encode())


def bytes_are_bytes(pieces: list[bytes], data: bytes) -> None:
    """The pieces are the file; that they are the agent's own bytes is held to the recordings in test_native.py."""
    assert b"".join(pieces) == data


def recording_is_read_back(pieces: list[Any], data: bytes) -> None:
    """Each line is a recorded frame."""
    lines = [json.loads(line) for line in data.split(b"\n")[:-1]]
    assert [(line["t"], line["dir"], line["line"]) for line in lines] == [(piece.t, piece.dir, piece.line) for piece in pieces]
