"""What the events of real programs say, type by type: one fact each, held against a recording whose truth is known."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

import hansard
from hansard.events import Event
from hansard.events.state import State
from hansard.store import JsonlStore
from tests.recorded import Recording, normalize_recording, recordings


@cache
def recording(name: str) -> Recording:
    return next(one for one in recordings() if one.id == name)


def recorded_events(name: str) -> list[Event]:
    """The events of the stream that a recording is about."""
    one = recording(name)
    return normalize_recording(one, next(stream.format for stream in one.streams if stream.main))[0]


def events_of(events: list[Event], *types: str) -> list[Any]:
    return [event for event in events if event.type in types]


def frames(format: str, *messages: dict[str, Any]) -> list[Event]:
    return list(hansard.normalize(b"".join(json.dumps(message).encode() + b"\n" for message in messages), format))


# ---- the envelope


def test_each_event_of_an_answer_has_the_providers_name_of_it() -> None:
    events = recorded_events("claude-control/text")
    named = {event.response_id for event in events_of(events, "assistant_chunk", "assistant_done", "usage") if event.response_id}
    said = [json.loads(line)["line"] for line in recording("claude-control/text").streams[0].data.splitlines()]
    wire = {json.loads(line)["message"]["id"] for line in said if json.loads(line).get("type") == "assistant"}
    assert named == wire


@pytest.mark.parametrize(
    "name", ["claude-control/tool_ok", "codex-app-server/tool_stream", "opencode-sse/tool_stream", "copilot-json/tool_ok"]
)
def test_a_call_has_the_agents_own_id_in_all_that_is_about_it(name: str) -> None:
    events = recorded_events(name)
    (call,) = {event.payload.tool_call_id for event in events_of(events, "tool_call")}
    assert {event.payload.tool_call_id for event in events if hasattr(event.payload, "tool_call_id")} == {call}
    assert json.dumps(call).encode()[1:-1] in recording(name).streams[0].data


def test_blocks_of_one_message_are_told_apart_by_their_place() -> None:
    done = events_of(recorded_events("claude-control/parallel_tools"), "assistant_done", "tool_call")
    places = [(event.response_id, event.block_index) for event in done]
    assert len(set(places)) == len(places) > len({name for name, _ in places})


def test_a_session_says_format_agent_and_version_and_each_frame_its_adapter(tmp_path: Any) -> None:
    events = list(hansard.normalize(recording("claude-control/text").streams[0].data, "claude-control"))
    with JsonlStore(tmp_path) as store:
        head = store.create(format="claude-control")
        store[head.session_id].append(events)
        (info,) = store.sessions()
        kept = list(store[head.session_id].read())
    assert (info.format, info.agent) == ("claude-control", "claude")
    assert {event.payload.agent_version for event in events_of(kept, "session_init")} == {"2.1.325"}
    assert {event.source for event in kept if event.original is not None} == {"claude"}


# ---- turns and what is said


def test_a_turn_says_who_set_it_off() -> None:
    assert [event.payload.trigger for event in events_of(recorded_events("claude-control/background_bash"), "turn_start")] == [
        "user",
        "system",
    ]


@pytest.mark.parametrize(
    "name",
    [
        f"{folder}/thinking"
        for folder in (
            *("claude-control", "claude-agent-sdk", "claude-acp", "codex-app-server", "opencode-sse", "gemini-acp", "copilot-json"),
            *("qwen-stream-json", "qwen-stream-json-io", "openai-responses", "openai-chat-completions"),
        )
    ],
)
def test_thinking_is_thinking_for_every_provider(name: str) -> None:
    events = recorded_events(name)
    chunks, done = (events_of(events, f"thinking_{kind}") for kind in ("chunk", "done"))
    thought = "".join(event.payload.text for event in done)
    assert "".join(event.payload.text for event in chunks) == thought
    spoken = "".join(event.payload.text for event in events_of(events, "assistant_done"))
    facts = [part["thinking"] for turn in recording(name).truth["turns"] for part in turn["model"] if part.get("thinking")]
    for fact in facts:
        words = fact.split()[-1]
        assert words in thought
        assert words not in spoken


def test_a_thought_keeps_its_signature() -> None:
    (thought,) = events_of(recorded_events("claude-control/thinking"), "thinking_done")
    assert thought.payload.signature == "RXhhbXBsZVNpZ25hdHVyZQ=="


def test_an_answer_keeps_what_it_cites() -> None:
    (said,) = events_of(recorded_events("openai-chat-completions/annotations_nonstream"), "assistant_done")
    assert [cited["url_citation"]["url"] for cited in said.payload.citations] == ["https://example.org/tides-91"]


def test_every_kind_of_content_of_acp_is_a_block_of_its_own() -> None:
    blocks = [event.payload.block for event in events_of(recorded_events("sdkagent-acp/content_kinds"), "content_block")]
    image, audio, link, embedded = blocks
    assert (image.media_type, bool(image.data), image.url) == ("image/png", True, "file:///home/user/demo/out.png")
    assert (audio.media_type, bool(audio.data)) == ("audio/wav", True)
    assert (link.uri, link.name, link.title, link.size) == ("file:///home/user/demo/log.txt", "log.txt", "The log", 12)
    assert (embedded.uri, embedded.text) == ("file:///home/user/demo/note.md", "embedded-resource-text-5")


# ---- tools


def test_arguments_come_in_pieces_that_say_where_they_belong() -> None:
    events = recorded_events("claude-control/tool_ok")
    (call,), text = events_of(events, "tool_call"), ""
    for piece in events_of(events, "tool_input_chunk"):
        assert piece.payload.offset == len(text)
        text += piece.payload.chunk
    assert json.loads(text) == call.payload.args


def test_a_call_says_that_it_waits_runs_and_for_how_long() -> None:
    steps = [event.payload for event in events_of(recorded_events("claude-control/tool_progress"), "tool_progress")]
    assert [step.status for step in steps] == ["pending", "started", "running", "completed"]
    assert (steps[1].title, steps[2].elapsed_ms) == ("Wait", 30_000)


# ---- what an agent says of itself


def test_an_agent_introduces_itself_with_all_it_can_do() -> None:
    told = events_of(recorded_events("claude-control/mcp_tool"), "session_init")[-1].payload
    assert (told.agent_id, told.agent_version, told.model, told.cwd) == ("claude", "2.1.325", "claude-opus-5-5", "/home/user/demo")
    assert any(tool.startswith("mcp__demo__") for tool in told.tools)
    assert told.mcp_servers == [{"name": "demo", "status": "connected", "source": "dynamic"}]
    assert None not in (told.provider_session_id, told.permission_mode, told.api_key_source)
    plain = events_of(recorded_events("claude-control/text"), "session_init")[-1].payload
    assert ("compact" in plain.commands, bool(plain.skills), bool(plain.agents)) == (True, True, True)
    acp = events_of(recorded_events("gemini-acp/text"), "session_init")[0].payload
    assert (bool(acp.auth_methods), bool(acp.capabilities)) == (True, True)


def test_a_status_is_the_agents_own_word() -> None:
    said = [event.payload.status for event in events_of(recorded_events("claude-control/session_state"), "status_change")]
    assert [word for word in said if word in ("running", "idle", "requires_action")][:3] == ["running", "requires_action", "running"]
    hooks = events_of(recorded_events("claude-control/hooks"), "status_change")
    begun = [event.payload.detail["hookName"] for event in hooks if event.payload.status == "hook_started"]
    assert begun == ["UserPromptSubmit", "PreToolUse:Bash", "PostToolUse:Bash", "Stop"]


def test_a_result_has_everything_the_agent_reports() -> None:
    (said,) = events_of(recorded_events("claude-control/text"), "result")
    told = said.payload
    assert (told.status, told.subtype, told.num_turns, told.stop_reason) == ("completed", "success", 1, "end_turn")
    assert (told.usage.total_tokens, told.usage.cache_read_input_tokens) == (378, 1200)
    assert told.cost_usd == pytest.approx(0.002834)
    assert told.model_usage["claude-opus-5-5"]["contextWindow"] == 1_000_000
    assert told.duration_ms and told.duration_api_ms and told.text
    assert (told.lines_added, told.error) == (None, None)


def test_tokens_are_told_by_message_turn_and_session_with_their_price() -> None:
    told = {event.payload.scope: event.payload for event in events_of(recorded_events("opencode-sse/text"), "usage")}
    assert {scope: (used.usage.total_tokens, used.cost_usd) for scope, used in told.items()} == dict.fromkeys(
        ("message", "turn", "session"), (558, 0.0037902)
    )
    assert told["message"].model == "scripted/scripted-model"


def test_a_step_begins_and_ends() -> None:
    steps = [
        event.payload
        for event in events_of(recorded_events("opencode-sse/tool_ok"), "status_change")
        if event.payload.status.startswith("step_")
    ]
    assert [step.status for step in steps] == ["step_start", "step_finish"] * 2


def test_a_limit_says_its_window_its_share_and_when_it_begins_anew() -> None:
    (limit,) = events_of(recorded_events("claude-control/rate_limit_event"), "rate_limit")
    told = limit.payload
    assert (told.status, told.window, told.used, told.resets_at) == ("allowed_warning", "five_hour", 0.91, 1_894_790_000_000)
    failed = events_of(recorded_events("claude-control/err_retry_ok"), "error")[0].payload
    assert (failed.retryable, failed.retry_after_ms, failed.status) == (True, 523, 529)


def test_a_compaction_is_told_with_the_summary_that_goes_on() -> None:
    events = recorded_events("claude-control/compaction")
    (compacted,) = (event for event in events_of(events, "session_lifecycle") if event.payload.subtype == "compacted")
    assert (compacted.payload.detail["trigger"], compacted.payload.detail["pre_tokens"]) == ("manual", 4012)
    after = [event.payload for event in events_of(events, "user_message") if event.seq > compacted.seq]
    assert after[0].text.startswith("This session is being continued") and after[0].author == "harness"


def test_tool_servers_say_whether_they_are_there_and_what_they_offer() -> None:
    assert [event.payload.state for event in events_of(recorded_events("codex-app-server/mcp_tool"), "mcp_status")] == ["starting", "ready"]
    loaded = events_of(recorded_events("copilot-json/mcp_tool"), "mcp_status")[0].payload
    assert (loaded.state, loaded.detail["toolCount"]) == ("tools_loaded", 3)
    offered = events_of(recorded_events("openai-responses/builtin_mcp"), "mcp_status")[-1].payload
    assert (offered.server, offered.detail["tools"][0]["name"]) == ("harbour", "berth")
    params = {"threadId": "t", "name": "demo", "status": "failed", "error": "no such program"}
    (failed,) = frames("codex-app-server", {"method": "mcpServer/startupStatus/updated", "params": params})
    assert (failed.payload.server, failed.payload.state, failed.payload.detail["error"]) == ("demo", "failed", "no such program")


def test_the_output_of_a_command_belongs_to_the_command() -> None:
    events = recorded_events("claude-control/slash")
    asked = {event.payload.text: event for event in events_of(events, "user_message") if event.payload.author == "human"}
    answers = {event.turn_id: event.payload.text for event in events_of(events, "assistant_done")}
    assert answers[asked["/context"].turn_id].startswith("## Context Usage")
    assert answers[asked["/cost"].turn_id].startswith("Total cost:")
    assert answers[asked["/nonsense-lynx-slash"].turn_id] == "No such lynx-slash command."
    done = [
        event.payload.detail["commandUuid"] for event in events_of(events, "status_change") if event.payload.status == "command_completed"
    ]
    assert done == [event.payload.message_id for event in asked.values()]


def test_a_team_says_who_is_in_it_what_they_say_and_whose_task_is_whose() -> None:
    events = recorded_events("claude-control/team")
    said = [(event.payload.member_id, event.payload.detail["to"], event.payload.text) for event in events_of(events, "team_message")]
    assert said == [(None, "scout", "lead asks about the lynx-team"), ("scout", "main", "scout saw the lynx-team")]
    state = State()
    for event in events:
        state.apply(event)
    team = state.snapshot().teams[""]
    assert {name: one.status for name, one in team.members.items()} == {"scout": "completed"}
    assert {name: (one.member_id, one.status) for name, one in team.tasks.items()} == {"1": ("scout", "in_progress")}
    assert team.messages == 2


SEVEN = {
    "created": {"type": "session.created", "properties": {"sessionID": "s", "info": {"id": "s", "title": "t"}}},
    "updated": {"type": "session.updated", "properties": {"sessionID": "s", "info": {"id": "s", "title": "t"}}},
    "deleted": {"type": "session.deleted", "properties": {"sessionID": "s", "info": {"id": "s", "title": "t"}}},
    "compacted": {"type": "session.compacted", "properties": {"sessionID": "s"}},
    "diff": {"type": "session.diff", "properties": {"sessionID": "s", "diff": [{"file": "a.py", "additions": 1, "deletions": 0}]}},
    "message_removed": {"type": "message.removed", "properties": {"sessionID": "s", "messageID": "m"}},
    "part_removed": {"type": "message.part.removed", "properties": {"sessionID": "s", "messageID": "m", "partID": "p"}},
}


@pytest.mark.parametrize("subtype", SEVEN)
def test_what_becomes_of_a_session_is_on_the_record(subtype: str) -> None:
    events = frames("opencode-sse", SEVEN["created"], SEVEN[subtype])
    told = [event.payload.subtype for event in events_of(events, "session_lifecycle") if event.frame == 2]
    assert told[0] == subtype


# ---- questions


ASKING = [
    "claude-control",
    "claude-agent-sdk",
    "claude-acp",
    "codex-app-server",
    "opencode-sse",
    "gemini-acp",
    "qwen-acp",
    "qwen-stream-json-io",
]


@pytest.mark.parametrize("folder", ASKING)
def test_a_permission_question_says_what_for_and_offers_a_yes_and_a_no(folder: str) -> None:
    events = recorded_events(f"{folder}/permission_ok")
    asked = events_of(events, "permission_request")[0].payload
    assert asked.tool_name and asked.input is not None and asked.input_hash
    assert {option.kind.partition("_")[0] for option in asked.options} == {"allow", "reject"}
    answered = events_of(events, "permission_response")[0].payload
    assert (answered.request_id, answered.decision) == (asked.request_id, "allow")
    assert answered.option_id is None or answered.option_id in [option.option_id for option in asked.options]
