"""Message lists that others made: every block of the two SDKs is an event or is said to be in the original alone, and a list can grow."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import pytest

from hansard.adapters import adapter_for
from hansard.adapters.audit import Audit, audit
from hansard.adapters.detection import detect
from hansard.adapters.framing import frames
from hansard.adapters.normalize import normalize
from hansard.events import Event

TEXT = {"type": "text", "text": "words"}
PICTURE = {"type": "base64", "media_type": "image/png", "data": "AAAA"}

ANTHROPIC: dict[str, tuple[dict[str, Any], str]] = {
    "text": (TEXT | {"cache_control": {"type": "ephemeral"}, "citations": [{"type": "char_location"}]}, "assistant_done"),
    "image": ({"type": "image", "source": PICTURE}, "content_block image"),
    "document": ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}}, "content_block document"),
    "search_result": ({"type": "search_result", "source": "https://x", "title": "t", "content": [TEXT]}, "content_block resource"),
    "thinking": ({"type": "thinking", "thinking": "hm", "signature": "s"}, "thinking_done"),
    "redacted_thinking": ({"type": "redacted_thinking", "data": "sealed"}, "thinking_done"),
    "tool_use": ({"type": "tool_use", "id": "a", "name": "run", "input": {"n": 1}}, "tool_call"),
    "tool_result": ({"type": "tool_result", "tool_use_id": "a", "content": [TEXT], "is_error": True}, "tool_result"),
    "server_tool_use": ({"type": "server_tool_use", "id": "b", "name": "web_search", "input": {}}, "tool_call"),
    "web_search_tool_result": ({"type": "web_search_tool_result", "tool_use_id": "b", "content": []}, "tool_result"),
    "web_fetch_tool_result": ({"type": "web_fetch_tool_result", "tool_use_id": "b", "content": {}}, "tool_result"),
    "advisor_tool_result": ({"type": "advisor_tool_result", "tool_use_id": "b", "content": {}}, "tool_result"),
    "code_execution_tool_result": ({"type": "code_execution_tool_result", "tool_use_id": "b", "content": {}}, "tool_result"),
    "bash_code_execution_tool_result": ({"type": "bash_code_execution_tool_result", "tool_use_id": "b", "content": {}}, "tool_result"),
    "text_editor_code_execution_tool_result": (
        {"type": "text_editor_code_execution_tool_result", "tool_use_id": "b", "content": {}},
        "tool_result",
    ),
    "tool_search_tool_result": ({"type": "tool_search_tool_result", "tool_use_id": "b", "content": {}}, "tool_result"),
    "mcp_tool_use": ({"type": "mcp_tool_use", "id": "c", "name": "n", "server_name": "s", "input": {}}, "tool_call"),
    "mcp_tool_result": ({"type": "mcp_tool_result", "tool_use_id": "c", "content": "x", "is_error": False}, "tool_result"),
    "container_upload": ({"type": "container_upload", "file_id": "f"}, "content_block file"),
    "compaction": ({"type": "compaction", "content": "in short"}, "content_block raw"),
    "tool_addition": ({"type": "tool_addition", "tool": {}}, "content_block raw"),
    "tool_removal": ({"type": "tool_removal", "tool": {}}, "content_block raw"),
    "mcp_tool_listing": ({"type": "mcp_tool_listing", "tools": []}, "content_block raw"),
    "fallback": ({"type": "fallback"}, "content_block raw"),
    "sculpture": ({"type": "sculpture", "clay": 1}, "content_block raw"),
}
"""A block of each type, and what an answer with it becomes. The last is of no type there is."""

OPENAI: dict[str, dict[str, Any]] = {
    "text": TEXT,
    "image_url": {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
    "input_audio": {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    "file": {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
    "refusal": {"type": "refusal", "refusal": "no"},
}


def audited(messages: Any, format: str) -> tuple[list[Event], Audit]:
    data = json.dumps(messages).encode()
    adapter = adapter_for(format)
    found = audit(frames([data], adapter.framer()), adapter(), format)
    assert found.is_complete
    return list(normalize(data, format)), found


def word(event: Event) -> str:
    return f"content_block {event.payload.block.__struct_config__.tag}" if event.type == "content_block" else event.type


def types_of(union: Any) -> set[str]:
    """The type words of a union of the SDK's dictionaries."""
    kinds = [get_args(one)[0] if hasattr(one, "__metadata__") else one for one in get_args(union)]
    nested = [types_of(kind) for kind in kinds if get_args(kind)]
    hints = [str(kind.__annotations__["type"]) for kind in kinds if not get_args(kind)]
    return set().union(*nested, (re.findall(r"Literal\[['\"](\w+)", hint)[0] for hint in hints))


def test_every_block_of_the_sdks_is_here():
    # Imported here because they take longer than all other modules of tests together, and each worker imports all of those.
    import anthropic.types as anthropic
    import anthropic.types.beta as beta
    import openai.types.chat as openai

    assert types_of(anthropic.ContentBlockParam) | types_of(beta.BetaContentBlockParam) == set(ANTHROPIC) - {"sculpture"}
    assert types_of(openai.ChatCompletionContentPartParam) == set(OPENAI) - {"refusal"}  # which only an answer has


@pytest.mark.parametrize("name", ANTHROPIC)
def test_a_block_of_an_answer_is_an_event_and_none_is_lost(name: str):
    block, becomes = ANTHROPIC[name]
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": [TEXT, block, TEXT]}]
    events, found = audited(messages, "anthropic-messages")
    said = [word(event) for event in events if event.response_id is not None]
    assert said[:3] == ["assistant_done", becomes, "assistant_done"]
    assert found.unknown_blocks == ({name: 1} if becomes == "content_block raw" else {})


@pytest.mark.parametrize("name", ANTHROPIC)
def test_a_block_that_a_user_sends_or_a_tool_gives_back_is_there_whole(name: str):
    block, becomes = ANTHROPIC[name]
    result = {"type": "tool_result", "tool_use_id": "z", "content": [block]}
    events, found = audited([{"role": "user", "content": [result, block, TEXT]}], "anthropic-messages")
    given = [event.payload for event in events if event.type == "tool_result"]
    assert given[0].result == [block] and len(given[0].content) == 1
    (heard,) = [event.payload for event in events if event.type == "user_message"]
    assert heard.text == ("words\nwords" if name == "text" else "words")
    assert len(given) + len(heard.content or [TEXT]) == 3
    assert found.unknown_blocks == ({name: 2} if becomes == "content_block raw" or name == "mcp_tool_use" else {})


def test_what_is_in_no_event_is_said_to_be_in_the_original_alone():
    cached = TEXT | {"cache_control": {"type": "ephemeral"}}
    document = {"type": "document", "source": {"type": "content", "content": [TEXT]}}
    _, found = audited([{"role": "user", "content": [cached, document], "mood": 1}], "anthropic-messages")
    assert set(found.only_in_original) >= {"Message.content[].cache_control", "Message.content[].source.content", "Message.mood"}
    assert found.unknown_blocks == {"document": 1}
    spoken = {"role": "assistant", "content": None, "audio": {"id": "a"}}
    _, found = audited([{"role": "user", "content": [OPENAI["image_url"]]}, spoken], "openai-messages")
    assert set(found.only_in_original) == {"Message.content[].image_url.detail", "Message.audio"}


def test_every_role_and_every_part_of_openai():
    call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": '{"n": 1}'}}
    patch = {"id": "p", "type": "custom", "custom": {"name": "patch", "input": "***"}}
    messages = [
        {"role": "developer", "content": "be kind"},
        {"role": "system", "content": [TEXT]},
        {"role": "user", "content": list(OPENAI.values()), "name": "ann"},
        {"role": "assistant", "content": [TEXT, OPENAI["refusal"]], "refusal": "never", "tool_calls": [call, patch]},
        {"role": "tool", "tool_call_id": "c", "content": [TEXT]},
        {"role": "tool", "tool_call_id": "p", "content": "done"},
        {"role": "assistant", "content": None, "function_call": {"name": "old", "arguments": "{broken"}},
        {"role": "function", "name": "old", "content": "way"},
        {"role": "oracle", "content": "?"},
        "no message",
    ]
    events, found = audited(messages, "openai-messages")
    heard = [event.payload for event in events if event.type == "user_message"]
    assert [payload.author for payload in heard] == ["harness", "harness", "human"]
    kinds = [block.__struct_config__.tag for block in heard[2].content]
    assert kinds == ["text", "image", "audio", "file", "refusal"]
    said = [word(event) for event in events if event.response_id is not None and event.type != "tool_result"]
    assert said == ["assistant_done", *["content_block refusal"] * 2, *["tool_call"] * 3]
    calls = {event.payload.tool_call_id: event.payload.args for event in events if event.type == "tool_call"}
    assert list(calls.values()) == [{"n": 1}, "***", "{broken"]
    results = {event.payload.tool_call_id: event.payload.result for event in events if event.type == "tool_result"}
    assert results == dict(zip(calls, [[TEXT], "done", "way"], strict=True))
    assert found.unknown_types == {"oracle": 1} and found.raw == {"wrong_shape": {"None": 1}}


@pytest.mark.parametrize(
    ("data", "format"),
    [
        ('[{"role":"user","content":"a"}]', "openai-messages"),
        ('[{"role":"user","content":[{"type":"text","text":"a"}]}]', "anthropic-messages"),
        ('{"role":"system","content":"a"}\n{"role":"user","content":"a"}\n', "openai-messages"),
        ('{"role":"user","content":"a"}\n{"role":"assistant","content":[{"type":"thinking","thinking":""}]}\n', "anthropic-messages"),
        ('{"role":"user","content":"a"}\n{"role":"assistant","tool_calls":[]}\n', "openai-messages"),
        ('{"model":"m","messages":[{"role":"user","content":"a"}]}', "openai-messages"),
        ('{\n  "model": "m",\n  "system": "s",\n  "messages": [{"role": "user", "content": "a"}]\n}', "anthropic-messages"),
        ('{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{}}]}]}', "anthropic-messages"),
    ],
)
def test_whose_it_is_is_told_by_what_only_one_of_them_has(data: str, format: str):
    assert detect(data.encode()) == format
    events = list(normalize(data.encode(), format))
    assert [event.payload.text for event in events if event.type == "user_message"][-1] == "a"
    assert not [event for event in events if event.type == "raw"]


def body(*texts: str, **fields: Any) -> str:
    """A request with these texts, each said by the other side than the one before; the mark of the cache is on the last."""
    messages: list[dict[str, Any]] = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    messages[-1]["content"] = [{"type": "text", "text": texts[-1], "cache_control": {"type": "ephemeral"}}]
    return json.dumps({"model": "m", "messages": messages} | fields)


def texts_of(*bodies: str) -> list[str]:
    """What the bodies say, one after the other."""
    found: list[str] = []
    for event in normalize("\n".join(bodies).encode() + b"\n", "anthropic-messages"):
        match event.type:
            case "user_message" | "assistant_done":
                found.append(event.payload.text)
            case "session_lifecycle" | "configuration_change":
                found.append(event.payload.subtype)
            case "status_change":
                found.append(event.payload.status)
            case _:
                pass
    return found


def test_of_requests_that_repeat_the_history_each_message_is_told_once():
    assert texts_of(body("a"), body("a", "b", "c"), body("a", "b", "c", "d", "a")) == ["a", "b", "c", "d", "a"]


def test_a_request_that_says_nothing_new_says_so():
    assert texts_of(body("a"), body("a")) == ["a", "repeated"]


def test_a_history_that_goes_on_from_an_earlier_place_was_rewound():
    assert texts_of(body("a", "b", "c"), body("a", "b", "other")) == ["a", "b", "c", "rewound", "other"]


def test_the_system_prompt_and_the_model_are_told_when_they_change():
    assert texts_of(body("a", system="s"), body("a", "b", "c", system="s"), body("a", "b", "c", system="t", model="n")) == [
        *("s", "a", "b", "c"),
        *("model", "t", "repeated"),
    ]


def test_thinking_has_the_budget_of_its_request():
    said = {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]}
    request = {"model": "m", "thinking": {"type": "enabled", "budget_tokens": 2048}, "messages": [{"role": "user", "content": "go"}, said]}
    (thought,) = [event for event in normalize(json.dumps(request).encode(), "anthropic-messages") if event.type == "thinking_done"]
    assert thought.payload.budget_tokens == 2048
