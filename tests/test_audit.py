"""The audit: forgetting is visible."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard.adapters import adapter_for, formats
from hansard.adapters.audit import Auditor, LogAuditor, audit, package_of, reviewed_paths, unread_fields
from hansard.adapters.base import Adapter, Wire
from hansard.adapters.framing import Frame, frames
from hansard.adapters.normalize import normalize
from hansard.events import Event
from hansard.events.originals import unwrap
from tests.recorded import streams


def audited(data: bytes, name: str = "claude-stream-json"):
    adapter = adapter_for(name)()
    return audit(frames([data], adapter.framer()), adapter, name)


def frame(**fields: Any) -> bytes:
    return json.dumps({"session_id": "s", "uuid": "u", **fields}).encode() + b"\n"


def test_an_invented_type_block_and_field_are_all_shown():
    message = {"id": "m", "content": [{"type": "text", "text": "hi"}, {"type": "sculpture", "clay": 1}], "mood": "good"}
    found = audited(frame(type="telepathy", thought=1) + frame(type="assistant", message=message, aura={"colour": "blue"}))
    assert found.unknown_types == {"telepathy": 1}
    assert found.unknown_blocks == {"sculpture": 1}
    assert found.new_paths == ["assistant.message.mood", "assistant.aura"]
    assert found.only_in_original["assistant.aura"].sample == '{"colour":"blue"}'
    assert found.parts["assistant.message.content[]"] == {"text": 1, "sculpture": 1}
    assert found.is_complete


def test_a_type_named_by_two_words_is_counted_under_both():
    found = audited(frame(type="system", subtype="init", model="m", surprise=1) + frame(type="system", subtype="telepathy"))
    assert found.types["system/init"].events == {"turn_start": 1, "session_init": 1}
    assert found.new_paths == ["system/init.surprise"]
    assert found.unknown_types == {"system/telepathy": 1}


def test_a_permission_question_is_followed_into_its_input_and_no_further():
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"any": {"thing": 1}}, "novelty": 1}
    found = audited(frame(type="control_request", request_id="r", request=request))
    assert found.new_paths == ["control_request.request.novelty"]
    assert found.parts == {"control_request.request": {"can_use_tool": 1}}


def test_parameters_that_no_tag_tells_apart_are_known_by_a_field():
    tool = {"toolCallId": "c", "novelty": 1}
    permission = {"sessionId": "s", "options": [], "toolCall": tool}
    told = {"jsonrpc": "2.0", "method": "_other/notify", "params": {"any": {"thing": 1}}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": permission}
    found = audited(b"".join(json.dumps(message).encode() + b"\n" for message in (asked, told)), "acp")
    assert found.new_paths == ["Message.params.toolCall.novelty"]
    assert set(found.types) == {"session/request_permission", "_other/notify"}


def test_what_a_message_is_may_depend_on_the_message():
    delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "x", "sequence_number": 1, "aura": 1}
    body = {"object": "response", "id": "r", "aura": 1}
    found = audited(frame(**delta) + frame(**body) + frame(type="response.telepathy"), "openai-responses")
    assert list(found.types) == ["response.output_text.delta", "openai", "response.telepathy"]
    new = [path for path in found.new_paths if path.endswith("aura")]
    assert new == ["response.output_text.delta.aura", "Response.aura"]
    assert found.only_in_original["response.output_text.delta.sequence_number"].reviewed  # `*` is the whole name of a type, dots included
    assert found.is_complete


def test_what_a_part_is_may_depend_on_whether_it_has_a_tag():
    head = {"id": "ses_1", "title": "t", "aura": 1}
    answer = {"info": {"id": "msg_1", "role": "assistant", "sessionID": "ses_1", "mood": 1}, "parts": []}
    found = audited(json.dumps({"info": head, "messages": [answer]}).encode(), "opencode-session")
    assert found.new_paths == ["StoredRecord.info.aura", "StoredRecord.info.mood"]
    assert found.is_complete


def test_noise_is_accounted_for():
    found = audited(b"not json\n\n" + frame(type="keep_alive") + b"\xff\xfe\n{broken\n")
    assert found.frames == 5
    assert found.is_complete
    assert set(found.raw) == {"noise", "invalid_utf8", "invalid_json"}


class Forgetful(Adapter):
    """Says nothing about every second frame."""

    source = "forgetful"
    wire = Wire

    def feed(self, frame: Frame) -> list[Event]:
        events = super().feed(frame)
        return events if self.frames % 2 else []


def test_a_frame_that_no_event_points_to_is_unaccounted_for():
    adapter = Forgetful()
    found = audit(frames([b'{"a":1}\n' * 5], adapter.framer()), adapter, "x")
    assert found.unaccounted == [2, 4]
    assert not found.is_complete


def test_an_original_that_does_not_give_the_bytes_back_is_noticed():
    auditor = Auditor(adapter_for("claude-stream-json"), "claude-stream-json")
    event = next(normalize(frame(type="keep_alive"), "claude-stream-json"))
    auditor.add(Frame(b'{"type":"something else"}'), [event])
    assert auditor.audit.altered == [1]


def test_a_log_that_lost_a_frame_is_not_complete():
    data = b"".join(frame(type="keep_alive", n=number) for number in range(3))
    events = list(normalize(data, "claude-stream-json"))
    for kept, complete in [(events, True), (events[:1] + events[2:], False)]:
        assert audited_log(kept, "claude-stream-json").is_complete is complete


def audited_log(events: list[Event], name: str):
    auditor = LogAuditor(Auditor(adapter_for(name), name))
    for event in events:
        auditor.saw(event, None if event.original is None else unwrap(event.original))
    return auditor.done()


@pytest.mark.parametrize("name", sorted({stream.format for stream in streams()}))
def test_the_audit_of_a_log_is_the_audit_of_its_file(name: str):
    for stream in [stream for stream in streams() if stream.format == name][::5]:
        assert audited_log(list(normalize(stream.data, name)), name) == audited(stream.data, name), stream.id


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("opencode-sse", b': hello\n\ndata: {"type":"server.connected","properties":{}}\n\ndata: {"type":"telepathy"}\r\n\r\ndata: {"ty'),
        ("openai-responses", b'\n\nevent: response.telepathy\ndata: {"type":"response.telepathy","sequence_number":1}\n\ndata: [DONE]\n\n'),
        ("opencode-session", b'{\n"info": {"id": "ses_1", "aura": 1},\n"messages": [\n{"info": {"id": "m"}, "parts": []}\n]\n}\n'),
        ("gemini-chat", b'{\n"sessionId": "s", "projectHash": "p", "startTime": "t", "aura": 1,\n"messages": []\n}\n'),
        ("claude-stream-json", b'\n \n{"type":"keep_alive"}\r\nnoise\n{"type":"tele'),
    ],
)
def test_a_log_is_cut_into_frames_as_its_file_was(name: str, data: bytes):
    events = list(normalize(data, name))
    assert audited_log(events, name) == audited(data, name)
    without = [event for event in events if event.frame != 1]
    assert audited_log(without, name).unaccounted == ([1] if without else [])


@pytest.mark.parametrize("package", sorted({package_of(adapter) for adapter in formats().values()}))
def test_every_field_that_an_adapter_declares_is_read(package):
    assert unread_fields(package) == []


def test_the_reviewed_list_may_speak_of_one_format_alone():
    adapter = adapter_for("claude-session")
    assert "user.mcpMeta" in reviewed_paths(adapter, "claude-session")
    assert "user.mcpMeta" not in reviewed_paths(adapter, "claude-stream-json")
