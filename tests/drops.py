"""What other readers of these wires are known to drop, and what becomes of it here. test_drops.py holds each row; `make docs` prints them.

The first 25 are the inventory of silent drops that this project started from, by its own numbers; the others were found since. A row shows
a frame that says it: recorded where a real program said it, else made by hand from the wire's own shapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from hansard.adapters.normalize import normalize
from hansard.events import Event, originals
from tests.recorded import streams


class Drop(NamedTuple):
    number: str
    format: str
    what: str
    elsewhere: str
    """What becomes of it in a reader that drops it."""
    becomes: str
    """The type of the event that says it here."""
    marker: str
    """What the frames that say it have in them: a regular expression."""
    data: bytes | None = None
    """A stream made by hand, where no recording has it."""
    says: str = ""
    """What the event must have in its payload."""


def line(*messages: Any) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def update(**fields: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": fields}}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"id": "m", "role": "assistant", "content": list(blocks)}, "session_id": "s", "uuid": "u"}


RESPONSE = line(
    {"object": "response", "id": "whole", "output": [{"type": "function_call", "call_id": "c", "name": "lookup", "arguments": "{}"}]}
)
CHOICES = line(
    {"object": "chat.completion", "choices": [{"index": n, "message": {"content": text}} for n, text in enumerate(("first", "second"))]}
)
OBJECT = line({"type": "AssistantMessage", "fields": {"content": [{"__type__": "HologramBlock", "shape": "cube"}], "model": "m"}})
SUBAGENT = r'"type":"assistant".*"content":\[\{"type":"text".*"parent_tool_use_id":"toolu'
"""What a sub-agent says in words."""

DROPS = [
    Drop("1", "claude-stream-json", "`keep_alive`", "nothing", "heartbeat", "keep_alive", line({"type": "keep_alive"})),
    Drop("2", "claude-stream-json", "`user` echo: the results of tools", "nothing", "tool_result", '"tool_result"'),
    Drop("3", "claude-stream-json", "a type nobody knows", "nothing", "raw", "telepathy", line({"type": "telepathy", "thought": "x"})),
    Drop(
        "4",
        "claude-stream-json",
        "a content block nobody knows",
        "empty text",
        "content_block",
        r'"content":\[\{"type":"hologram"',
        says="hologram",
    ),
    Drop(
        "5",
        "codex-app-server",
        "a notification nobody knows",
        "nothing",
        "raw",
        "hologram",
        line({"method": "thread/hologram", "params": {"threadId": "t"}}),
    ),
    Drop("6", "openai-responses", "`function_call` in a whole response", "nothing", "tool_call", "whole", RESPONSE, says="lookup"),
    Drop("6", "codex-rollout", "`function_call_output`", "nothing", "tool_result", '"function_call_output"'),
    Drop("7", "opencode-sse", "`server.heartbeat`", "nothing", "heartbeat", "server.heartbeat"),
    Drop("8", "opencode-sse", "`permission.replied`", "nothing", "permission_response", "permission.replied"),
    Drop("9", "opencode-sse", "`session.compacted`", "nothing", "session_lifecycle", "session.compacted"),
    Drop("10", "opencode-sse", "`session.created`", "nothing", "session_lifecycle", "session.created"),
    Drop("11", "opencode-sse", "`session.updated`", "nothing", "session_lifecycle", "session.updated"),
    Drop("12", "opencode-sse", "`session.deleted`", "nothing", "session_lifecycle", "session.deleted"),
    Drop("13", "opencode-sse", "`session.diff`", "nothing", "session_lifecycle", "session.diff"),
    Drop("14", "opencode-sse", "`message.removed`", "nothing", "session_lifecycle", "message.removed"),
    Drop("15", "opencode-sse", "`message.part.removed`", "nothing", "session_lifecycle", "message.part.removed"),
    Drop(
        "16", "opencode-sse", "an event nobody knows", "nothing", "raw", "telepathy", b'data: {"type":"telepathy","properties":{"x":1}}\n\n'
    ),
    Drop("17", "opencode-sse", "`step-start`", "nothing", "status_change", '"step-start"'),
    Drop("17", "opencode-sse", "`step-finish`", "nothing", "status_change", '"step-finish"'),
    Drop("18", "opencode-sse", "a tool that is `pending`", "nothing", "tool_progress", r'"state":\{"status":"pending"'),
    Drop("19", "acp", "an update nobody knows", "type `unknown`", "raw", "telepathy", line(update(sessionUpdate="telepathy", thought="x"))),
    Drop("20", "acp", "`fs/*` requests", "an error nobody sees", "control_request", '"fs/read_text_file"'),
    Drop("20", "acp", "`terminal/*` requests", "an error nobody sees", "control_request", '"terminal/create"'),
    Drop("21", "acp", "a change of mode", "no consumer hears of it", "configuration_change", "current_mode_update"),
    Drop("22", "agent-sdk", "a block nobody knows, from the SDK", "nothing", "content_block", "Hologram", OBJECT, says="cube"),
    Drop("23", "claude-control", "an interrupt sent by our side", "no way back", "interrupt", '"subtype": "interrupt"'),
    Drop("23", "claude-control", "a permission answered by our side", "no way back", "permission_response", '"behavior": "allow"'),
    Drop("24", "claude-stream-json", "noise between the lines", "no consumer hears of it", "raw", "npm", b"npm WARN deprecated\n"),
    Drop("25", "acp", "an image the agent shows", "empty text", "content_block", '"type":"image".*agent_message_chunk', says="image/png"),
    Drop(
        "26",
        "claude-stream-json",
        "thinking",
        "text of the answer",
        "thinking_done",
        '"thinking":"Hm."',
        line(assistant({"type": "thinking", "thinking": "Hm.", "signature": "x"})).replace(b": ", b":"),
    ),
    Drop(
        "27",
        "openai-responses",
        "a refusal",
        "text with a prefix",
        "content_block",
        '"output_item.done".*"refusal"|"refusal".*"response.output_item.done"',
        says="refusal",
    ),
    Drop(
        "28",
        "claude-stream-json",
        "a failed run whose `subtype` is `success`",
        "success",
        "turn_end",
        '"is_error":true.*"type":"result"',
        says="error",
    ),
    Drop(
        "29", "claude-stream-json", "what a sub-agent says", "text of the main agent", "assistant_done", SUBAGENT, says="parentToolCallId"
    ),
    Drop("30", "claude-stream-json-partial", "the arguments of a call as they come", "nothing", "tool_input_chunk", "input_json_delta"),
    Drop("31", "codex-app-server", "what a command prints as it runs", "nothing", "tool_output_chunk", "commandExecution/outputDelta"),
    Drop("32", "opencode-sse", "a provider that is asked again", "nothing", "error", '"type":"retry"'),
    Drop("33", "acp", "a plan", "nothing", "plan_update", '"sessionUpdate":"plan"'),
    Drop("34", "acp", "the commands that there are", "nothing", "configuration_change", "available_commands_update"),
    Drop("35", "openai-chat-completions", "every answer but the first", "nothing", "assistant_done", "second", CHOICES, says="second"),
    Drop("36", "claude-stream-json", "how full the rate limit is", "nothing", "rate_limit", "rate_limit_event"),
    Drop("37", "codex-app-server", "a setting that changed", "nothing", "configuration_change", "thread/settings/updated"),
    Drop(
        "38",
        "claude-session",
        "a picture that a tool returned",
        "text `[image]`",
        "tool_result",
        '"tool_use_id".*"type":"image"',
        says="base64",
    ),
]


def frames_of(drop: Drop) -> Iterator[tuple[str, list[Event]]]:
    """Every frame that says it: where it was recorded, and what it became."""
    format = drop.format.removesuffix("-partial")
    if drop.data is not None:
        yield from (("by hand", events) for events in by_frame(drop.data, format, drop.marker))
        return
    for stream in streams():
        if stream.format == format and re.search(drop.marker.encode(), stream.data.replace(b"\\", b"")):
            for events in by_frame(stream.data, format, drop.marker):
                yield stream.id, events


def by_frame(data: bytes, format: str, marker: str) -> Iterator[list[Event]]:
    found: list[Event] = []
    for event in normalize(data, format):
        if event.original is not None:
            if found:
                yield found
            found = []
            takes = re.search(marker.encode(), originals.unwrap(event.original), re.DOTALL) is not None
        if takes:
            found.append(event)
    if found:
        yield found
