"""StandardMessage, stored messages and ConsumerMessage: what no schema says of them."""

from __future__ import annotations

from typing import Any

import pytest

import hansard
from hansard import events as e
from hansard.adapters.normalize import normalize
from hansard.events import Event
from hansard.events.content import CodeBlock, ImageBlock, RawBlock, RefusalBlock, ToolResultBlock
from hansard.projections.formats.standard_messages import filter_system_messages, tool_results
from tests.recorded import Stream, streams


def project_as(form: str, events: list[Event]) -> Any:
    return hansard.project(events, form)


def placed(*events: Event, **fields: Any) -> list[Event]:
    """Events of one session, in order."""
    for seq, event in enumerate(events, 1):
        event.id, event.seq, event.session_id, event.timestamp = f"e{seq}", seq, "s", 1000 + seq
        for name, value in fields.items():
            setattr(event, name, value)
    return list(events)


def answer(*events: Event) -> list[Event]:
    return placed(*events, response_id="m1", source="claude")


def consumer(*events: Event) -> list[dict[str, Any]]:
    return list(project_as("consumer-messages", placed(*events, source="claude")))


USAGE = e.Usage(input_tokens=3, output_tokens=4, total_tokens=99, cache_read_input_tokens=50, service_tier="standard")


def test_tokens_are_told_once_for_a_message_and_cache_is_apart():
    events = answer(e.thinking_done("hm"), e.assistant_done("Hi"), e.usage("message", USAGE, model="opus"))
    (message,) = project_as("standard-messages", events)
    assert [block["type"] for block in message["content"]] == ["thinking", "text"]
    assert message.get("usage") == {
        "input_tokens": 3,
        "output_tokens": 4,
        "total_tokens": 7,
        "cache_read_input_tokens": 50,
        "service_tier": "standard",
    }
    assert message["metadata"] == {"source": "claude", "sessionId": "s", "model": "opus"}


def test_a_standard_message_has_these_fields_and_no_others():
    fields = {"id", "role", "timestamp", "content", "usage", "metadata", "error", "_original"}
    about = {"source", "model", "sessionId", "cliVersion", "stop_reason", "stop_sequence"}
    seen: set[str] = set()
    for stream in streams():
        if stream.main and stream.recording.path.name in ("text", "tool_fail", "err_auth", "interrupt"):
            for message in project_as("standard-messages", list(normalize(stream.data, stream.format, stream.context))):
                seen |= message.keys()
                assert message.keys() >= {"id", "role", "timestamp", "content", "metadata", "_original"}
                assert message["metadata"].keys() <= about
                assert isinstance(message["content"], list)
                assert all(isinstance(block, dict) for block in message["content"])
                assert message.get("error", {}).keys() <= {"code", "message", "details"}
    assert seen == fields
    (said,) = project_as("standard-messages", placed(e.user_message("hello")))
    assert said["content"] == [{"type": "text", "text": "hello"}]


def test_an_unknown_count_is_not_zero():
    projected = project_as("standard-messages", answer(e.assistant_done("Hi"), e.usage("message", e.Usage(input_tokens=3))))
    (message,) = projected
    assert "usage" not in message
    assert message["_original"][1]["payload"]["usage"] == {"inputTokens": 3}
    assert projected.report.notes


def test_an_error_is_on_the_last_message_and_has_one_of_its_own_where_nothing_was_said():
    error = e.ErrorInfo(code="rate_limit", message="slow down", status=429)
    end = e.turn_end("error", stop_reason="refusal", error=error)
    said = list(project_as("standard-messages", placed(e.assistant_done("Hi"), end)))
    silent = list(project_as("standard-messages", placed(e.user_message("Hi"), e.turn_end("error", error=error))))
    assert [message.get("error", {}).get("details") for message in said] == [{"status": 429}]
    assert said[0]["metadata"].get("stop_reason") == "refusal"
    assert [(message["role"], message["content"], "error" in message) for message in silent][1] == ("assistant", [], True)


def test_other_blocks_are_told_in_words_and_kept_in_the_original():
    (message,) = project_as("standard-messages", placed(e.content_block(ImageBlock(media_type="image/png", data="AA=="))))
    assert message["content"] == [{"type": "text", "text": "[image image/png]"}]
    assert message["_original"][0]["payload"]["block"]["data"] == "AA=="


def test_a_call_without_arguments_is_still_a_call():
    events = placed(e.tool_call("t", "Read", None), e.user_message("", [ToolResultBlock("t")]))
    call, result = (message["content"] for message in project_as("standard-messages", events))
    assert call == [{"type": "tool_use", "id": "t", "name": "Read", "input": None}]
    assert result == [{"type": "tool_result", "tool_use_id": "t", "content": None}]
    assert [message["parsed"] for message in project_as("messages-parsed", events)] == [call, result]


def test_the_harness_text_is_filtered_and_results_are_found_by_their_call():
    texts = ["<command-name>/x</command-name>", " <warmup/>", "a <system-reminder>b", "Hello"]
    result = e.tool_result("t1", {"a": 1}, is_error=True)
    messages = list(project_as("standard-messages", placed(*map(e.user_message, texts), result)))
    assert [block.get("text") for message in filter_system_messages(messages) for block in message["content"]] == ["Hello", None]
    assert tool_results(messages) == {"t1": {"content": {"a": 1}, "is_error": True}}


def test_blocks_of_every_kind_reach_the_consumer_intact():
    blocks = [CodeBlock("x = 1", "python"), ImageBlock(url="https://a/b.png"), RefusalBlock("No."), RawBlock(7, "odd")]
    events = [
        e.thinking_done("hm", budget_tokens=5),
        *map(e.content_block, blocks),
        e.tool_call("t", "Bash", {"command": "ls"}, kind="execute"),
    ]
    (message,) = consumer(*events)
    assert message["message"]["content"] == [
        {"type": "thinking", "thinking": "hm", "budget_tokens": 5},
        {"type": "code", "code": "x = 1", "language": "python"},
        {"type": "image", "source": {"type": "url", "url": "https://a/b.png"}},
        {"type": "refusal", "text": "No."},
        {"type": "raw", "raw": {"value": 7}, "raw_type": "odd"},
        {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}, "kind": "execute"},
    ]


def test_settings_lifecycle_and_unknown_types_reach_the_consumer():
    unknown = hansard.decode(b'{"type":"hologram","id":"h","payload":{"x":1}}')
    events = placed(e.configuration_change("set_model", model="opus"), e.session_lifecycle("compacted", reason="full"))
    projected = project_as("consumer-messages", [*events, unknown])
    change, life, other = projected
    assert (change["subtype"], change["model"], life["subtype"], life["reason"]) == ("set_model", "opus", "compacted", "full")
    assert (other["type"], other["event"]["payload"]) == ("unknown", {"x": 1})
    assert not projected.report.left_out


def test_a_result_says_null_where_the_agent_said_nothing():
    failed = e.result("error", error=e.ErrorInfo(code="max_turns", message="enough", error_source="agent", provider_code="error_max_turns"))
    (message,) = consumer(failed)
    data = message["data"]
    told = {name: value for name, value in data.items() if value is not None}
    assert told == {
        "status": "error",
        "is_error": True,
        "errors": ["enough"],
        "error_code": "max_turns",
        "error_message": "enough",
        "error_source": "agent",
        "error_details": {"provider_code": "error_max_turns"},
    }
    assert data["num_turns"] is None and data["total_cost_usd"] is None and data["usage"] is None


def test_the_context_window_and_its_share_are_in_the_result():
    usage = e.usage("context", e.Usage(total_tokens=50_000), context_window=200_000)
    *_, result = consumer(usage, e.result("completed", lines_added=3, lines_removed=2, model_usage={"opus": {"costUSD": 1}}))
    data = result["data"]
    assert (data["context_window"], data["context_percent"]) == (200_000, 25.0)
    assert (data["total_lines_added"], data["total_lines_removed"]) == (3, 2)
    assert data["modelUsage"] == {"opus": {"costUSD": 1}}


def test_a_message_keeps_its_place_among_the_others():
    ask = e.permission_request("r", [], "hash", tool_call_id="t")
    kinds = [message["type"] for message in consumer(e.tool_call("t", "Bash", {}), ask, e.tool_result("t", "ok"), e.assistant_done("Done"))]
    assert kinds == ["assistant", "permission_request", "tool_result", "assistant"]


# --------------------------------------------------------------------------------------------------------------------
# One key for each thing, whatever adapter it came from


EVERYWHERE = {"session_id", "tool_use_id", "error", "status", "model", "usage"}
SILENT = {
    "anthropic-messages": {"session_id", "usage", "error"},
    "atif": {"error"},
    "codex-exec-json": {"model"},
    "copilot-json": {"session_id"},
    "openai-chat-completions": {"session_id"},
    "openai-messages": {"session_id", "usage", "error"},
    "openai-responses": {"session_id"},
    "opencode-run-json": {"model"},
}
"""What a wire does not say of its session. Copilot's last line has the session's id, too late for the messages before it."""


def some_of_each_adapter() -> dict[str, list[Stream]]:
    found: dict[str, list[Stream]] = {}
    for stream in streams():
        found.setdefault(stream.format, []).append(stream)
    return found


def keys_shown(message: dict[str, Any], called: set[str]) -> set[str]:
    """Which of the things that have one key are told by this message."""
    inner = message.get({"assistant": "message", "session_init": "session", "result": "data"}.get(message["type"], ""), message)
    shown = {name for name in ("status", "model", "usage") if inner.get(name) is not None}
    shown |= {"session_id"} if message["session_id"] else set()
    shown |= {"error"} if inner.get("error_code") else set()
    return shown | ({"tool_use_id"} if message.get("tool_use_id") in called else set())


@pytest.mark.slow
@pytest.mark.parametrize("format", sorted(some_of_each_adapter()))
def test_one_key_for_each_thing_in_every_format(format: str) -> None:
    shown: set[str] = set()
    for stream in [stream for stream in some_of_each_adapter()[format] if len(stream.data) < 64 * 1024]:
        messages = list(project_as("consumer-messages", list(normalize(stream.data, stream.format, stream.context))))
        blocks = [block for message in messages if message["type"] == "assistant" for block in message["message"]["content"]]
        called = {block["id"] for block in blocks if block["type"] == "tool_use"}
        shown |= {key for message in messages for key in keys_shown(message, called)}
    assert shown == EVERYWHERE - SILENT.get(format, set())
