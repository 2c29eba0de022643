"""The vocabulary: every type is there, every event survives JSON, and what a newer writer says survives an older reader."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

import hansard.events
from hansard.events import TYPES, AssistantChunk, AssistantDone, Event, Unknown, UserMessage, assistant_chunk, assistant_done
from hansard.events.codec import decode, encode, encode_lines, from_builtins, to_builtins
from hansard.events.content import BLOCKS

# As the design names them. A type that is renamed or lost is a broken log.
DESIGNED_TYPES = [
    "turn_start",
    "turn_end",
    "user_message",
    "user_audio",
    "assistant_chunk",
    "assistant_done",
    "thinking_chunk",
    "thinking_done",
    "content_block",
    "tool_call",
    "tool_input_chunk",
    "tool_output_chunk",
    "tool_progress",
    "tool_result",
    "tool_use_summary",
    "agent_message",
    "agent_callback",
    "agent_switch",
    "interrupt",
    "error",
    "audio_chunk",
    "audio_done",
    "session_init",
    "status_change",
    "result",
    "usage",
    "permission_request",
    "permission_response",
    "permission_cancelled",
    "question",
    "answer",
    "configuration_change",
    "session_lifecycle",
    "plan_update",
    "team_message",
    "team_task_update",
    "team_state_change",
    "queue_update",
    "auth_status",
    "mcp_status",
    "rate_limit",
    "heartbeat",
    "process",
    "control_request",
    "control_response",
    "raw",
]
DESIGNED_BLOCKS = [
    "text",
    "thinking",
    "tool_use",
    "tool_result",
    "image",
    "file",
    "document",
    "code",
    "diff",
    "terminal",
    "resource",
    "audio",
    "refusal",
    "slash_command",
    "raw",
]
ERROR_CODES = [
    "provider_auth",
    "api_error",
    "context_overflow",
    "output_length",
    "aborted",
    "rate_limit",
    "max_turns",
    "max_budget",
    "execution_error",
    "unknown",
]

every_type = pytest.mark.parametrize("name", sorted(TYPES))


def test_every_designed_type_exists_and_no_other() -> None:
    assert sorted(TYPES) == sorted(DESIGNED_TYPES)


def test_every_designed_block_exists_and_no_other() -> None:
    assert sorted(BLOCKS) == sorted(DESIGNED_BLOCKS)


def test_the_error_codes_are_the_closed_set() -> None:
    assert list(hansard.events.ErrorCode.__args__) == ERROR_CODES


def fields_of(struct: Any) -> dict[str, Any]:
    return {field.encode_name: field for field in msgspec.structs.fields(struct)}


def payload_of(name: str) -> Any:
    return next(field.type for field in msgspec.structs.fields(TYPES[name]) if field.name == "payload")


def example(name: str) -> Event:
    """An event with every field of its payload set to something."""
    payload = msgspec.json.decode(json.dumps(sample(msgspec.inspect.type_info(payload_of(name)))), type=payload_of(name))
    return TYPES[name](id="e", seq=1, timestamp=2, session_id="s", turn_id="t", payload=payload)


def sample(info: Any) -> Any:
    """A value of a type: the longest way to say something."""
    match info:
        case msgspec.inspect.StructType():
            tag = {info.tag_field: info.tag} if info.tag_field else {}
            return tag | {field.encode_name: sample(field.type) for field in info.fields}
        case msgspec.inspect.UnionType():
            return sample(next(one for one in info.types if not isinstance(one, msgspec.inspect.NoneType)))
        case msgspec.inspect.ListType():
            return [sample(info.item_type)]
        case msgspec.inspect.DictType():
            return {"some": sample(info.value_type)}
        case msgspec.inspect.LiteralType():
            return info.values[-1]
        case msgspec.inspect.StrType():
            return " two\u2028lines\ud83d\ude00 "
        case msgspec.inspect.BoolType():
            return True
        case msgspec.inspect.IntType():
            return 2**53 + 1
        case msgspec.inspect.FloatType():
            return 0.1
        case _:
            return {"any": [None, 0, "", {"type": "x"}]}


@every_type
def test_every_type_survives_json_and_plain_dicts(name: str) -> None:
    event = example(name)
    assert event.type == name
    assert decode(encode(event)) == event
    assert from_builtins(json.loads(encode(event))) == event
    assert from_builtins(to_builtins(event)) == event


@every_type
def test_every_type_has_a_maker_and_a_description(name: str) -> None:
    maker = getattr(hansard.events, name)
    event = maker(**msgspec.structs.asdict(example(name).payload))
    assert type(event) is TYPES[name]
    assert TYPES[name].__doc__
    assert payload_of(name).__doc__


@every_type
def test_keys_are_camel_case(name: str) -> None:
    assert [key for key in [*fields_of(TYPES[name]), *fields_of(payload_of(name))] if "_" in key] == []


@every_type
def test_a_field_from_the_future_survives(name: str) -> None:
    line = json.loads(encode(example(name)))
    line["newField"] = {"a": 1}
    line["payload"]["newField"] = [1, 2]
    again = decode(json.dumps(line))
    assert type(again) is TYPES[name]
    assert json.loads(encode(again)) == line
    assert decode(encode(again)) == again


@pytest.mark.parametrize("name", sorted(BLOCKS))
def test_every_block_survives_json(name: str) -> None:
    block = msgspec.json.decode(json.dumps(sample(msgspec.inspect.type_info(BLOCKS[name]))), type=BLOCKS[name])
    event = hansard.events.content_block(block=cast("Any", block))
    again = decode(encode(event))
    assert again == event
    assert again.payload.block == block


FROM_THE_FUTURE = {
    "a type": {"type": "hologram", "seq": 7, "id": "x", "payload": {"angle": 45}, "more": None},
    "a type without a payload": {"type": "hologram"},
    "no type": {"seq": 1, "x": [1]},
    "a type that is no word": {"type": 5, "payload": {}},
    "a known type in another shape": {"type": "assistant_chunk", "seq": 3, "payload": ["a"]},
    "a known type without its payload": {"type": "assistant_chunk", "seq": 3},
    "a status nobody knows": {"type": "turn_end", "seq": 1, "payload": {"status": "transcended"}},
    "a block nobody knows": {"type": "content_block", "payload": {"block": {"type": "hologram", "cube": [1]}}},
    "a block nobody knows among others": {
        "type": "user_message",
        "payload": {"text": "x", "content": [{"type": "text", "text": "x"}, {"type": "hologram"}]},
    },
    "a field in a block": {"type": "content_block", "payload": {"block": {"type": "code", "code": "x", "theme": "dark"}}},
    "a field on each level": {
        "type": "turn_end",
        "a/b": 1,
        "payload": {"status": "error", "error": {"code": "unknown", "message": "", "~": 2}},
    },
    "half a character": {"type": "assistant_chunk", "payload": {"text": "\ud83d"}, "new": "\ude00"},
}


@pytest.mark.parametrize("fields", FROM_THE_FUTURE.values(), ids=FROM_THE_FUTURE.keys())
def test_what_is_unknown_survives_reading_forwarding_and_writing(fields: dict[str, Any]) -> None:
    event = decode(json.dumps(fields))
    assert event.type == str(fields.get("type"))
    assert event.seq == fields.get("seq", 0)
    assert json.loads(encode(event)) == fields
    assert json.loads(encode(decode(encode(event)))) == fields
    assert to_builtins(event) == fields


def test_a_line_cannot_overwrite_its_own_fields_with_those_of_a_newer_writer() -> None:
    event = decode(b'{"type":"user_message","payload":{"text":"hi"},"$extra":{"/payload/text":"forged"}}')
    assert event.extra is None
    assert json.loads(encode(event))["payload"]["text"] == "hi"


def test_an_unknown_event_can_be_stamped() -> None:
    event = decode(b'{"type":"hologram","payload":{}}')
    assert isinstance(event, Unknown)
    event.seq, event.id, event.session_id, event.timestamp = 9, "e", "s", 1
    assert json.loads(encode(event)) == {"type": "hologram", "payload": {}, "seq": 9, "id": "e", "sessionId": "s", "timestamp": 1}


@pytest.mark.parametrize("line", [b"", b"5", b"[]", b"null", b'"x"', b"{", b'{"type":', b"\xff", b'{"type":"\xff"}'])
def test_only_what_is_no_object_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):
        decode(line)


@pytest.mark.parametrize("text", ["\ud83d", "x\ude00", "a\ud800b", "\ude00\ud83d"])
def test_half_a_character_is_text_too(text: str) -> None:
    event = assistant_done(text=text)
    line = encode(event)
    assert line.isascii()
    again = decode(line)
    assert isinstance(again, AssistantDone)
    assert again.payload.text == text
    assert encode(again) == line


@pytest.mark.parametrize("original", [b'{"b":1.10,"a":1E5,"a":2}', '{"é":"·"}'.encode(), b"[1e400]"])
def test_half_a_character_in_an_event_leaves_its_original_as_it_was_spelled(original: bytes) -> None:
    event = assistant_done(text="\ud83d")
    event.original = Raw(original)
    assert bytes(decode(encode(event)).original or b"") == original


@pytest.mark.parametrize("char", [chr(code) for code in (*range(0x20), 0x7F, 0x85, 0x2028, 0x2029, 0xFEFF)])
def test_a_line_is_one_line_for_every_reader(char: str) -> None:
    event = assistant_chunk(text=f"a{char}b")
    line = encode(event).decode()
    assert line.splitlines() == [line]
    assert line == line.strip()
    assert not any(ord(c) < 0x20 or 0x7F <= ord(c) <= 0x9F for c in line)
    again = decode(line)
    assert isinstance(again, AssistantChunk)
    assert again.payload.text == f"a{char}b"


def test_lines_end_in_lf() -> None:
    assert encode_lines([assistant_chunk(text="a"), assistant_chunk(text="b")]).split(b"\n")[-1] == b""


@pytest.mark.parametrize("number", [0, -1, 2**53 + 1, 2**63, 2**64, -(2**70), 10**40, 0.1, 1e-300, -0.0])
def test_numbers_in_arguments_are_exact(number: float) -> None:
    event = hansard.events.tool_call(tool_call_id="t", tool_name="n", args={"n": number})
    again = decode(encode(event))
    assert repr(again.payload.args["n"]) == repr(number)


def test_nothing_is_not_absence() -> None:
    """Empty text, 0, null and false are data."""
    event = hansard.events.tool_result(tool_call_id="", result=None, is_error=False, error="", exit_code=0)
    fields = json.loads(encode(event))["payload"]
    assert fields == {"toolCallId": "", "result": None, "isError": False, "error": "", "exitCode": 0}
    assert json.loads(encode(assistant_chunk(text="")))["payload"] == {"text": ""}


@given(st.text(alphabet=st.characters(codec=None)), st.text(alphabet=st.characters(codec=None)))
def test_any_text_comes_back(text: str, name: str) -> None:
    event = hansard.events.user_message(text=text)
    event.session_id = name
    again = decode(encode(event))
    assert isinstance(again, UserMessage)
    assert (again.payload.text, again.session_id) == (text, name)


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=8) | st.sampled_from(["type", "payload", "seq", "text", "block"]), any_json, max_size=5))
def test_any_object_is_an_event_and_is_written_back(fields: dict[str, Any]) -> None:
    line = encode(decode(json.dumps(fields)))
    assert json.loads(line) == fields
