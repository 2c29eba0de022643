"""The OpenAI formats: quirks of the wire, declared types that no recording shows, requests that repeat what was said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hansard.adapters import adapter_for
from hansard.adapters.framing import DetectingFramer, frames
from hansard.adapters.normalize import normalize
from hansard.adapters.openai import items_wire as items
from hansard.adapters.openai import responses_wire
from hansard.errors import CannotEncode
from hansard.events import Event, user_message
from hansard.events.content import DiffBlock, ImageBlock, RawBlock, RefusalBlock
from hansard.events.originals import unwrap
from tests import recorded

CHAT, RESPONSES = "openai-chat-completions", "openai-responses"
RECORDINGS = [path.parent for path in recorded.glob("openai-*/*/wire.jsonl")]


def received(*messages: Any) -> list[bytes]:
    return [json.dumps({"t": 1, "dir": "recv", "line": json.dumps(message)}).encode() + b"\n" for message in messages]


def sent(*messages: Any) -> list[bytes]:
    return [json.dumps({"t": 1, "dir": "send", "line": json.dumps(message)}).encode() + b"\n" for message in messages]


def read(lines: list[bytes], format: str) -> list[Event]:
    return list(normalize(b"".join(lines), format))


def payloads(events: list[Event], kind: str) -> list[Any]:
    return [event.payload for event in events if event.type == kind]


def texts(events: list[Event], kind: str) -> list[str]:
    return [payload.text for payload in payloads(events, kind)]


def end(events: list[Event]) -> tuple[str, str | None]:
    last = payloads(events, "turn_end")[-1]
    return last.status, None if last.error is None else last.error.code


@pytest.mark.parametrize(
    ("output", "code"),
    [('{"exit_code": 7, "stderr": "no"}', 7), ('{"exit_code": 0}', 0), ('{"exit_code": true}', None), ("exit_code: 7", None), ("", None)],
)
def test_a_tool_that_says_its_exit_code_has_it(output: str, code: int | None) -> None:
    call = {"id": "t1", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
    said = [{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": [call]}]
    chat = sent({"model": "m", "messages": [*said, {"role": "tool", "tool_call_id": "t1", "content": output}]})
    asked = {"type": "function_call", "call_id": "t1", "name": "shell", "arguments": "{}"}
    response = sent({"model": "m", "input": [asked, {"type": "function_call_output", "call_id": "t1", "output": output}]})
    for lines, format in ((chat, CHAT), (response, RESPONSES)):
        (result,) = payloads(read(lines, format), "tool_result")
        assert (result.result, result.exit_code) == (output, code)


# ---- chat


def chunk(delta: Any = None, finish: str | None = None, index: int = 0, **more: Any) -> dict[str, Any]:
    choice = {"index": index, "delta": delta or {}, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1760000000, "model": "m", "choices": [choice], **more}


def body(message: dict[str, Any], finish: str | None = "stop", answer_id: str = "c1") -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {
        "id": answer_id,
        "object": "chat.completion",
        "model": "m",
        "choices": [choice],
        "usage": {"prompt_tokens": 2, "completion_tokens": 3},
    }


def request(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), "stream": True, "stream_options": {"include_usage": True}, **more}


def call(index: int | None, call_id: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}]}


@pytest.mark.parametrize(
    ("finish", "status", "code"),
    [
        ("stop", "completed", None),
        ("length", "max_tokens", "output_length"),
        ("content_filter", "refused", None),
        ("insufficient_system_resource", "error", "api_error"),
        ("error", "error", "api_error"),
        ("a_word_of_tomorrow", "completed", None),
    ],
)
def test_every_finish_reason_of_chat_ends_the_turn(finish: str, status: str, code: str | None) -> None:
    events = read(received(chunk({"content": "hi"}), chunk(finish=finish)), CHAT)
    assert end(events) == (status, code)
    assert payloads(events, "turn_end")[0].stop_reason == finish


@pytest.mark.parametrize(
    ("error", "status", "code", "retryable"),
    [
        ({"message": "no", "code": "invalid_api_key"}, 401, "provider_auth", False),
        ({"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}, 429, "rate_limit", True),
        ({"message": "pay", "type": "insufficient_quota", "code": "insufficient_quota"}, 429, "rate_limit", False),
        ({"message": "long", "code": "context_length_exceeded"}, 400, "context_overflow", False),
        ({"message": "This model's maximum context length is 5 tokens", "code": 400}, 400, "context_overflow", False),
        ({"message": "ouch", "type": "server_error"}, 500, "api_error", True),
        ("plain text", 418, "api_error", False),
    ],
)
def test_error_bodies_have_a_canonical_code(error: Any, status: int, code: str, retryable: bool) -> None:
    line = {"t": 1, "dir": "recv", "status": status, "exception": "APIStatusError", "line": json.dumps({"error": error})}
    for format in (CHAT, RESPONSES):
        events = read([*sent({"model": "m", "messages": [], "input": "hi"}), json.dumps(line).encode()], format)
        (failure,) = payloads(events, "error")
        assert (failure.code, failure.status, failure.retryable) == (code, status, retryable)
        assert end(events) == ("error", code)


def test_an_error_for_policy_is_a_refusal() -> None:
    events = read(received({"error": {"message": "filtered", "code": "content_filter"}}), CHAT)
    assert end(events) == ("refused", "api_error")


def test_choices_do_not_overwrite_each_other() -> None:
    events = read(received(chunk({"content": "a"}), chunk({"content": "b"}, index=1), chunk(finish="stop"), chunk(None, "length", 1)), CHAT)
    done = [event for event in events if event.type == "assistant_done"]
    assert [(event.block_index, event.payload.text, event.payload.phase) for event in done] == [(0, "a", None), (1, "b", "choice 1")]
    assert end(events) == ("completed", None)


def test_interleaved_calls_come_apart() -> None:
    pieces = [call(0, "x", "f", '{"a"'), call(1, "y", "g", '{"b"'), call(0, None, None, ":1}"), call(1, None, None, ":2}")]
    events = read(received(*map(chunk, pieces), chunk(finish="tool_calls")), CHAT)
    assert [(c.tool_call_id, c.tool_name, c.args) for c in payloads(events, "tool_call")] == [("x", "f", {"a": 1}), ("y", "g", {"b": 2})]
    assert [c.offset for c in payloads(events, "tool_input_chunk")] == [0, 0, 4, 4]


@pytest.mark.parametrize("index", [0, None])
def test_calls_without_an_index_of_their_own_are_told_apart_by_id(index: int | None) -> None:
    events = read(received(chunk(call(index, "x", "f", "{}")), chunk(call(index, "y", "g", "[]")), chunk(finish="tool_calls")), CHAT)
    assert [c.tool_call_id for c in payloads(events, "tool_call")] == ["x", "y"]


def test_a_custom_tools_input_stays_text() -> None:
    custom = {"tool_calls": [{"index": 0, "id": "x", "type": "custom", "custom": {"name": "f", "input": "{}"}}]}
    assert payloads(read(received(chunk(custom), chunk(finish="tool_calls")), CHAT), "tool_call")[0].args == "{}"


def test_a_turn_waits_for_its_tools_and_continues_with_their_results() -> None:
    asked = {"role": "user", "content": "go"}
    said = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }
    events = read(
        [
            *sent(request(asked)),
            *received(body({"tool_calls": said["tool_calls"]}, "tool_calls")),
            *sent(request(asked, said, {"role": "tool", "tool_call_id": "x", "content": [{"type": "text", "text": "ok"}]})),
            *received(body({"content": "done"}, answer_id="c2")),
        ],
        CHAT,
    )
    kinds = [e.type for e in events if e.type in ("turn_start", "user_message", "tool_call", "tool_result", "assistant_done", "turn_end")]
    assert kinds == ["turn_start", "user_message", "tool_call", "tool_result", "assistant_done", "turn_end"]
    (turn,) = [payload for payload in payloads(events, "usage") if payload.scope == "turn"]
    assert (turn.usage.input_tokens, turn.usage.output_tokens, turn.usage.total_tokens) == (4, 6, 10)


def test_a_user_who_speaks_instead_of_giving_results_begins_a_new_turn() -> None:
    asked = {"role": "user", "content": "go"}
    calls = {"tool_calls": [{"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}
    answer = {"role": "assistant", **calls}
    stop = {"role": "user", "content": "never mind"}
    events = read([*sent(request(asked)), *received(body(calls, "tool_calls")), *sent(request(asked, answer, stop))], CHAT)
    assert len(payloads(events, "turn_start")) == 2
    assert payloads(events, "tool_result")[0].error == "no result on the wire"


def test_each_message_of_a_request_is_said_once() -> None:
    system, hello, yes = {"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}, {"role": "user", "content": "yes"}
    first, second = {"role": "assistant", "content": "?"}, {"role": "assistant", "content": "??"}
    events = read(
        [
            *sent(request(system, hello)),
            *received(body({"content": "?"})),
            *sent(request(system, hello, first, yes)),
            *sent(request(system, hello, first, yes)),  # tried again
            *received(body({"content": "??"}, answer_id="c2")),
            *sent(request(system, hello, first, yes, second, yes)),  # the same word, and yet news
        ],
        CHAT,
    )
    assert texts(events, "user_message") == ["be brief", "hello", "yes", "yes"]
    assert [payload.author for payload in payloads(events, "user_message")] == ["harness", "human", "human", "human"]
    assert texts(events, "assistant_done") == ["?", "??"]


def test_a_shortened_history_says_nothing_twice() -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    events = read([*sent(request(*messages)), *sent(request({"role": "system", "content": "summary"}, *messages[2:]))], CHAT)
    assert texts(events, "user_message") == ["a", "c", "summary"]
    assert texts(events, "assistant_done") == ["b"]


def test_a_changing_system_message_does_not_repeat_the_answer() -> None:
    def clock(time: str) -> dict[str, Any]:
        return {"role": "system", "content": f"it is {time}"}

    hello, answer = {"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}
    events = read([*sent(request(clock("1"), hello)), *received(body({"content": "hi"})), *sent(request(clock("2"), hello, answer))], CHAT)
    assert texts(events, "assistant_done") == ["hi"]
    assert texts(events, "user_message") == ["it is 1", "hello", "it is 2"]


def test_pictures_and_files_of_a_user_are_blocks() -> None:
    content = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_id": "f1"}},
        {"type": "hologram", "x": 1},
    ]
    (said,) = payloads(read(sent(request({"role": "user", "content": content})), CHAT), "user_message")
    assert said.text == "look"
    assert said.content[1] == ImageBlock(media_type="image/png", data="AAAA")
    assert said.content[2].file_id == "f1"
    assert said.content[3] == RawBlock(raw={"type": "hologram", "x": 1}, raw_type="hologram")


def test_the_opening_piece_of_nothing_is_not_a_block() -> None:
    events = read(received(chunk({"role": "assistant", "content": ""}), chunk(call(0, "x", "f", "{}")), chunk(finish="tool_calls")), CHAT)
    assert texts(events, "assistant_done") == []


def test_an_empty_answer_is_an_answer() -> None:
    events = read(received(chunk({"role": "assistant", "content": ""}), chunk(finish="stop")), CHAT)
    assert texts(events, "assistant_done") == [""]


def test_a_piece_of_one_space_is_speech() -> None:
    events = read(received(chunk({"content": " "}), chunk(finish="stop")), CHAT)
    assert texts(events, "assistant_chunk") == texts(events, "assistant_done") == [" "]


def test_thinking_between_texts_keeps_its_place() -> None:
    pieces = [{"reasoning": "t1"}, {"content": "a"}, {"reasoning_content": "t2"}, {"content": "b"}]
    events = read(received(*map(chunk, pieces), chunk(finish="stop")), CHAT)
    done = [(e.block_index, e.payload.text) for e in events if e.type in ("assistant_done", "thinking_done")]
    assert done == [(0, "t1"), (1, "a"), (2, "t2"), (3, "b")]


def test_list_shaped_content_is_read_part_by_part() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "ok"}, {"type": "hologram"}]
    for events in (read(received(chunk({"content": parts}), chunk(finish="stop")), CHAT), read(received(body({"content": parts})), CHAT)):
        assert texts(events, "thinking_done") == ["hm"]
        assert texts(events, "assistant_done") == ["ok"]
        assert payloads(events, "content_block")[0].block.raw_type == "hologram"


def test_the_refusal_of_a_cut_stream_is_kept() -> None:
    events = read(received(chunk({"refusal": "I ca"})), CHAT)
    assert payloads(events, "content_block")[0].block == RefusalBlock(text="I ca")
    assert end(events) == ("error", "api_error")


def test_a_stream_that_says_done_without_a_reason_is_complete() -> None:
    lines = f"data: {json.dumps(chunk({'content': 'hi'}))}\n\ndata: [DONE]\n\n"
    events = list(normalize(lines.encode(), CHAT))
    assert end(events) == ("completed", None)
    assert [payload.status for payload in payloads(events, "status_change")] == ["done", "finish_reason"]


def test_done_on_a_line_of_its_own_stays_verbatim() -> None:
    (event, *_) = read([b"[DONE]\n"], CHAT)
    assert event.original is not None and unwrap(event.original) == b"[DONE]"


def test_usage_in_every_chunk_is_counted_once() -> None:
    used = {"prompt_tokens": 1, "completion_tokens": 2}
    events = read(
        received(chunk({"content": "a"}, usage=used), chunk({"content": "b"}, usage=used), chunk(finish="stop", usage=used)), CHAT
    )
    assert [payload.scope for payload in payloads(events, "usage")] == ["message", "turn"]


def test_log_probabilities_stand_beside_the_text() -> None:
    choice = {"index": 0, "delta": {"content": "hi"}, "logprobs": {"content": [{"token": "hi", "logprob": -0.1}]}}
    events = read(received({"id": "c1", "object": "chat.completion.chunk", "choices": [choice]}), CHAT)
    assert [p.detail for p in payloads(events, "status_change") if p.status == "logprobs"] == [choice["logprobs"]]


def test_what_a_filter_found_in_a_piece_stands_beside_it() -> None:
    found = {"hate": {"filtered": False, "severity": "safe"}}
    choices = [
        {"index": 0, "delta": {"content": "hi"}, "content_filter_results": found},
        {"index": 0, "delta": {}, "finish_reason": "stop"},
    ]
    events = read(received(*({"id": "c1", "object": "chat.completion.chunk", "choices": [choice]} for choice in choices)), CHAT)
    assert [p.detail for p in payloads(events, "status_change") if p.status == "content_filter_results"] == [found]


def test_the_same_answer_id_twice_gives_blocks_of_their_own() -> None:
    events = read(received(body({"content": "a"}), body({"content": "b"})), CHAT)
    assert [(e.response_id, e.block_index) for e in events if e.type == "assistant_done"] == [("c1", 0), ("c1", 1)]


# ---- responses


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "sequence_number": 0, **fields}


def response(status: str = "completed", output: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"id": "r1", "object": "response", "status": status, "model": "m", "output": output or [], **more}


def text_item(text: str) -> dict[str, Any]:
    return {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}


@pytest.mark.parametrize(
    ("status", "more", "expected"),
    [
        ("completed", {}, ("completed", None)),
        ("incomplete", {"incomplete_details": {"reason": "max_output_tokens"}}, ("max_tokens", "output_length")),
        ("incomplete", {"incomplete_details": {"reason": "content_filter"}}, ("refused", None)),
        ("incomplete", {"incomplete_details": {"reason": "max_messages"}}, ("error", "max_turns")),
        ("incomplete", {"incomplete_details": {"reason": "a_word_of_tomorrow"}}, ("error", "api_error")),
        ("failed", {"error": {"code": "rate_limit_exceeded", "message": "slow"}}, ("error", "rate_limit")),
        ("failed", {"error": {"code": "bio_policy", "message": "no"}}, ("refused", "api_error")),
        ("cancelled", {}, ("interrupted", "aborted")),
    ],
)
def test_every_end_of_a_response_ends_the_turn(status: str, more: dict[str, Any], expected: tuple[str, str | None]) -> None:
    whole = response(status, [text_item("hi")], **more)
    for messages in ([whole], [event("created", response=response("in_progress")), event(status, response=whole)]):
        events = read(received(*messages), RESPONSES)
        assert end(events) == expected
        assert texts(events, "assistant_done") == ["hi"]


def test_a_refusal_is_a_block_and_ends_the_turn_refused() -> None:
    item = {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}
    events = read(received(response(output=[item])), RESPONSES)
    assert payloads(events, "content_block")[0].block == RefusalBlock(text="no")
    assert end(events) == ("refused", None)


def test_a_background_response_is_said_once_however_often_it_is_fetched() -> None:
    whole = response(output=[text_item("hi")])
    events = read(received(response("queued"), response("in_progress"), whole, whole), RESPONSES)
    assert texts(events, "assistant_done") == ["hi"]
    assert len(payloads(events, "turn_end")) == 1


def test_a_stream_taken_up_in_the_middle_has_a_turn() -> None:
    delta = event("output_text.delta", item_id="m1", output_index=0, content_index=0, delta="hi", logprobs=[])
    events = read(received(delta, event("completed", response=response(output=[text_item("hi")]))), RESPONSES)
    assert all(e.turn_id is not None for e in events if e.type == "assistant_chunk")
    assert texts(events, "assistant_done") == ["hi"]


def test_a_call_of_a_cut_stream_has_what_was_said_of_its_arguments() -> None:
    item = {"type": "function_call", "id": "f1", "call_id": "x", "name": "f", "arguments": ""}
    messages = [event("output_item.added", output_index=0, item=item), event("function_call_arguments.delta", output_index=0, delta='{"a')]
    events = read(received(*messages), RESPONSES)
    assert payloads(events, "tool_call")[0].args == '{"a'
    assert payloads(events, "tool_result")[0].is_error


def test_history_without_storage_says_nothing_twice() -> None:
    asked = {"role": "user", "content": "go"}
    output = [
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "sealed"},
        {"type": "function_call", "id": "f1", "call_id": "x", "name": "f", "arguments": "{}"},
    ]
    result = {"type": "function_call_output", "call_id": "x", "output": "ok"}
    events = read(
        [
            *sent({"model": "m", "instructions": "be brief", "input": [asked], "store": False}),
            *received(response(output=output)),
            *sent({"model": "m", "instructions": "be brief", "input": [asked, *output, result], "store": False}),
            *received(response(output=[text_item("done")]) | {"id": "r2"}),
            *sent({"model": "m", "instructions": "be brief", "input": [asked, *output, result, text_item("done"), asked], "store": False}),
        ],
        RESPONSES,
    )
    assert texts(events, "user_message") == ["be brief", "go", "go"]
    assert [payload.redacted for payload in payloads(events, "thinking_done")] == ["sealed"]
    assert len(payloads(events, "tool_call")) == len(payloads(events, "tool_result")) == 1
    assert texts(events, "assistant_done") == ["done"]


def test_an_approval_is_asked_and_answered_in_one_turn() -> None:
    asks = {"type": "mcp_approval_request", "id": "a1", "name": "pay", "server_label": "bank", "arguments": '{"eur": 1}'}
    says = {"type": "mcp_approval_response", "approval_request_id": "a1", "approve": False, "reason": "too much"}
    events = read(
        [
            *sent({"model": "m", "input": "go"}),
            *received(response(output=[asks])),
            *sent({"model": "m", "input": [says], "previous_response_id": "r1"}),
            *received(response(output=[text_item("ok")]) | {"id": "r2"}),
        ],
        RESPONSES,
    )
    (asked,), (answered,) = payloads(events, "permission_request"), payloads(events, "permission_response")
    assert (asked.request_id, asked.tool_name, asked.input) == ("a1", "pay", {"eur": 1})
    assert (answered.request_id, answered.decision, answered.message) == ("a1", "deny", "too much")
    assert len(payloads(events, "turn_end")) == 1


ITEMS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    (
        {"type": "web_search_call", "id": "i", "status": "completed", "action": {"type": "open_page", "url": "u"}},
        "tool_call",
        {"kind": "fetch"},
    ),
    (
        {"type": "code_interpreter_call", "id": "i", "outputs": [{"type": "image", "url": "u"}]},
        "tool_result",
        {"content": [ImageBlock(url="u")]},
    ),
    (
        {"type": "image_generation_call", "id": "i", "status": "failed", "error": {"message": "no"}},
        "tool_result",
        {"is_error": True, "error": "no"},
    ),
    (
        {"type": "mcp_call", "id": "i", "name": "f", "arguments": "{}", "error": {"type": "http_error", "message": "x"}},
        "tool_result",
        {"error": "x"},
    ),
    ({"type": "mcp_list_tools", "id": "i", "server_label": "s", "error": "gone"}, "mcp_status", {"server": "s", "state": "failed"}),
    (
        {"type": "shell_call", "id": "i", "call_id": "x", "action": {"commands": ["ls"]}},
        "tool_call",
        {"tool_call_id": "x", "kind": "execute"},
    ),
    (
        {"type": "apply_patch_call", "id": "i", "call_id": "x", "operation": {"type": "delete_file", "path": "p"}},
        "tool_progress",
        {"content": [DiffBlock(path="p")]},
    ),
    (
        {"type": "computer_call", "id": "i", "call_id": "x", "action": {}, "pending_safety_checks": [{"id": "s", "message": "sure?"}]},
        "permission_request",
        {"request_id": "x", "description": "sure?"},
    ),
    (
        {"type": "tool_search_call", "id": "i", "arguments": {"q": 1}, "execution": "server"},
        "tool_call",
        {"tool_call_id": "i", "args": {"q": 1}},
    ),
    ({"type": "program", "id": "i", "call_id": "x", "code": "f()"}, "tool_call", {"args": {"code": "f()"}}),
    ({"type": "additional_tools", "id": "i", "role": "developer", "tools": []}, "configuration_change", {"subtype": "additional_tools"}),
    ({"type": "compaction", "id": "i", "encrypted_content": "s"}, "session_lifecycle", {"subtype": "compacted"}),
    ({"type": "reasoning", "id": "i", "summary": [], "encrypted_content": "s"}, "thinking_done", {"text": "", "redacted": "s"}),
]


@pytest.mark.parametrize(("item", "kind", "fields"), ITEMS, ids=[f"{item['type']} is {kind}" for item, kind, _ in ITEMS])
def test_items(item: dict[str, Any], kind: str, fields: dict[str, Any]) -> None:
    payload = payloads(read(received(response(output=[item])), RESPONSES), kind)[0]
    assert {name: getattr(payload, name) for name in fields} == fields


OUTPUTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "function_call_output", "call_id": "x", "output": "ok"}, {"result": "ok"}),
    ({"type": "custom_tool_call_output", "call_id": "x", "output": "ok"}, {"result": "ok"}),
    (
        {
            "type": "computer_call_output",
            "call_id": "x",
            "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA"},
        },
        {"content": [ImageBlock(media_type="image/png", data="AA")]},
    ),
    ({"type": "local_shell_call_output", "id": "x", "output": "ok"}, {"result": "ok"}),
    (
        {
            "type": "shell_call_output",
            "call_id": "x",
            "output": [{"stdout": "", "stderr": "e", "outcome": {"type": "exit", "exit_code": 3}}],
        },
        {"exit_code": 3, "is_error": True},
    ),
    ({"type": "apply_patch_call_output", "call_id": "x", "status": "failed", "output": "no"}, {"is_error": True}),
    ({"type": "tool_search_output", "call_id": "x", "tools": [{"name": "f"}]}, {"result": [{"name": "f"}], "content": None}),
    ({"type": "program_output", "call_id": "x", "result": "1", "status": "completed"}, {"result": "1", "is_error": False}),
]


@pytest.mark.parametrize(("item", "fields"), OUTPUTS, ids=[item["type"] for item, _ in OUTPUTS])
def test_outputs_are_results(item: dict[str, Any], fields: dict[str, Any]) -> None:
    payload = payloads(read(sent({"model": "m", "input": [item]}), RESPONSES), "tool_result")[0]
    assert payload.tool_call_id == "x"
    assert {name: getattr(payload, name) for name in fields} == fields


def test_a_call_made_by_a_program_nests_under_it() -> None:
    item = {"type": "function_call", "call_id": "x", "name": "f", "arguments": "{}", "caller": {"type": "program", "caller_id": "p"}}
    (call_event,) = [e for e in read(received(response(output=[item])), RESPONSES) if e.type == "tool_call"]
    assert call_event.parent_tool_call_id == "p"


def test_sound_arrives_in_pieces_with_its_transcript() -> None:
    messages = [
        event("audio.delta", delta="AAAA"),
        event("audio.transcript.delta", delta="Ahoy "),
        event("audio.delta", delta="BBBB"),
        event("audio.transcript.delta", delta="there"),
        event("audio.done"),
        event("audio.transcript.done"),
        event("completed", response=response()),
    ]
    events = read(received(*messages), RESPONSES)
    assert [(payload.seq, payload.data) for payload in payloads(events, "audio_chunk")] == [(0, "AAAA"), (1, "BBBB")]
    assert [payload.transcript for payload in payloads(events, "audio_done")] == ["Ahoy there"]


def test_shell_output_streams_under_the_call_it_belongs_to() -> None:
    item = {"type": "shell_call_output", "id": "o", "call_id": "x", "output": []}
    messages = [
        event("output_item.added", output_index=1, item=item),
        event("shell_call_output_content.delta", item_id="o", output_index=1, command_index=0, delta={"stdout": "a"}),
        event("shell_call_output_content.delta", item_id="o", output_index=1, command_index=0, delta={"stderr": "b"}),
    ]
    chunks = payloads(read(received(*messages), RESPONSES), "tool_output_chunk")
    assert [(c.tool_call_id, c.stream, c.chunk, c.offset) for c in chunks] == [("x", "stdout", "a", 0), ("x", "stderr", "b", 1)]


def test_a_steered_response_is_followed_by_another_in_the_same_turn() -> None:
    steered = response("incomplete", incomplete_details={"reason": "steered"})
    events = read(
        [
            *sent({"type": "response.create", "model": "m", "input": "go"}),
            *received(event("created", response=response("in_progress"))),
            *sent({"type": "response.steer", "previous_response_id": "r1", "input": "left"}),
            *received(event("steer.accepted", steer={"id": "s1", "previous_response_id": "r1"})),
            *received(event("incomplete", response=steered), event("completed", response=response() | {"id": "r2"})),
        ],
        RESPONSES,
    )
    assert [(payload.text, payload.queued) for payload in payloads(events, "user_message")] == [("go", False), ("left", True)]
    assert payloads(events, "queue_update")[0].action == "steered"
    assert len(payloads(events, "turn_end")) == 1


PLACE: dict[str, Any] = {"item_id": "i", "output_index": 0, "content_index": 0, "summary_index": 0, "command_index": 0, "delta": "d"}
FIELDS: dict[str, Any] = PLACE | {"response": response(), "item": text_item("x"), "part": {"type": "output_text", "text": ""}, "steer": {}}
DECLARED = [str(kind.__struct_config__.tag) for kind in responses_wire.AnyEvent.__args__]


@pytest.mark.parametrize("kind", DECLARED)
def test_every_declared_event_type_becomes_typed_events(kind: str) -> None:
    events = read(received({"type": kind, "sequence_number": 0, **FIELDS, "partial_image_b64": "AA", "message": "m"}), RESPONSES)
    assert "raw" not in [e.type for e in events]


@pytest.mark.parametrize("kind", [str(item.__struct_config__.tag) for item in items.Item.__args__])
def test_every_declared_item_type_becomes_typed_events(kind: str) -> None:
    fields = {"id": "i", "call_id": "x", "name": "f", "server_label": "s", "role": "assistant", "approval_request_id": "a", "approve": True}
    events = read(received(response(output=[{"type": kind, "content": [], **fields}])), RESPONSES)
    assert not {"raw", "content_block"} & {e.type for e in events}
    assert len(payloads(events, "turn_end")) == 1


# ---- both


@pytest.mark.parametrize("format", [CHAT, RESPONSES])
def test_a_command_has_no_frame_of_its_own(format: str) -> None:
    with pytest.raises(CannotEncode, match="whole conversation"):
        adapter_for(format)().encode(user_message(text="hi"))


@pytest.mark.parametrize(
    ("format", "first"),
    [(CHAT, chunk()), (CHAT, body({})), (RESPONSES, event("created", response=response())), (RESPONSES, response())],
)
def test_a_stream_is_recognised_by_its_first_message(format: str, first: dict[str, Any]) -> None:
    assert [name for name in (CHAT, RESPONSES) if adapter_for(name).detects(first)] == [format]


def test_a_request_alone_may_be_of_this_format_or_a_list_of_messages():
    assert [name for name in (CHAT, RESPONSES) if adapter_for(name).may_detect(request())] == [CHAT]
    assert not adapter_for(CHAT).detects(request())


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
        (b'{\n  "a": 1\n}\n', [b'{\n  "a": 1\n}']),
        (b"[\r\n1]", [b"[\r\n1]"]),
        (b"data: 1\n\ndata: 2\n\n", [b"1", b"2"]),
        (b"\n: comment\n\ndata: 1\n\n", [b"", b"1"]),
        (b"event: x\ndata: 1\n\n", [b"1"]),
        (b"\xef\xbb\xbfdata:1\n\n", [b"1"]),
        (b"database is down\n", [b"database is down"]),
        (b"{", [b"{"]),
        (b"", []),
    ],
)
def test_the_first_bytes_say_how_a_stream_is_cut(data: bytes, expected: list[bytes]) -> None:
    for chunks in ([data], [data[i : i + 1] for i in range(len(data))]):
        found = list(frames(chunks, DetectingFramer()))
        assert [frame.data for frame in found] == expected
        assert b"".join(frame.verbatim for frame in found) == data


def test_a_body_over_many_lines_is_one_message() -> None:
    events = list(normalize(json.dumps(body({"content": "hi"}), indent=2).encode(), CHAT))
    assert texts(events, "assistant_done") == ["hi"]
    assert {e.frame for e in events} == {1}


# ---- recordings


def facts(events: list[Event]) -> list[Any]:
    kinds = ("assistant_done", "thinking_done", "tool_call", "content_block", "audio_done", "permission_request")
    return [(e.type, e.response_id, e.block_index, e.payload) for e in events if e.type in kinds]


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_a_recording_reads_the_same_from_both_sides_from_one_and_as_a_raw_stream(folder: Path) -> None:
    format = folder.parent.name
    both_ways = facts(list(normalize(recorded.read(folder / "wire.jsonl"), format)))
    assert facts(list(normalize(recorded.read(folder / "stdout.jsonl"), format))) == both_ways
    streams = sorted(recorded.glob("events*.sse", folder), key=lambda path: (len(path.name), path.name))
    if streams:
        assert facts([e for path in streams for e in normalize(recorded.read(path), format)]) == both_ways


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_turns_of_a_recording_end_as_they_did(folder: Path) -> None:
    turns = json.loads(recorded.read(folder / "truth.json"))["turns"]
    events = list(normalize(recorded.read(folder / "wire.jsonl"), folder.parent.name))
    expected = [(turn["end"], turn.get("error_code")) for turn in turns]
    if folder.name == "interrupt":  # a closed connection looks the same from either side
        expected = [("error", "api_error")]
    ends = [(p.status, None if p.error is None else p.error.code) for p in payloads(events, "turn_end")]
    assert ends == expected
