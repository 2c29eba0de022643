"""The message forms as JSON Schema, written from the interfaces that people's programs declare for them."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator


def record(required: dict[str, Any], optional: dict[str, Any] | None = None, closed: bool = True) -> dict[str, Any]:
    properties = required | (optional or {})
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": not closed}


def one_of_types(*blocks: dict[str, Any]) -> dict[str, Any]:
    """A block by its ``type``, so that a failure names the field that is wrong."""
    names = [block["properties"]["type"]["const"] for block in blocks]
    rules = [{"if": {"properties": {"type": {"const": name}}}, "then": block} for name, block in zip(names, blocks, strict=True)]
    return {"type": "object", "required": ["type"], "properties": {"type": {"enum": names}}, "allOf": rules}


def nullable(kind: str) -> dict[str, Any]:
    return {"type": [kind, "null"]}


def block(kind: str, **fields: Any) -> dict[str, Any]:
    return record({"type": {"const": kind}, **fields}, closed=False)


STRING, NUMBER, ANY = {"type": "string"}, {"type": "number"}, {}
TEXT = block("text", text=STRING)
THINKING = block("thinking", thinking=STRING)
TOOL_USE = block("tool_use", id=STRING, name=STRING, input=ANY)
TOOL_RESULT = block("tool_result", tool_use_id=STRING, content=ANY)
IMAGE = block("image", source=record({"type": STRING, "media_type": STRING, "data": STRING}, closed=False))
FILE = block("file", filename=STRING, mimeType=STRING, size=NUMBER, storagePath=STRING)
RAW = block("raw", raw={"type": "object"})

STANDARD = record(
    {
        "id": {"type": "string", "minLength": 1},
        "role": {"enum": ["user", "assistant"]},
        "timestamp": NUMBER,
        "content": {"type": "array", "items": one_of_types(TEXT, THINKING, TOOL_USE, TOOL_RESULT)},
        "metadata": record(
            {"source": STRING}, {"model": STRING, "sessionId": STRING, "cliVersion": STRING, "stop_reason": STRING, "stop_sequence": STRING}
        ),
        "_original": {"type": "array", "minItems": 1},
    },
    {
        "usage": record(
            {"input_tokens": NUMBER, "output_tokens": NUMBER, "total_tokens": NUMBER},
            {"cache_creation_input_tokens": NUMBER, "cache_read_input_tokens": NUMBER, "service_tier": STRING},
        ),
        "error": record({"code": STRING, "message": STRING}, {"details": ANY}),
    },
)
CONTENT = {"type": "array", "items": one_of_types(TEXT, THINKING, TOOL_USE, TOOL_RESULT, IMAGE, FILE, RAW)}
PARSED = record(
    {
        "id": {"type": "string", "minLength": 1},
        "sessionId": STRING,
        "role": {"enum": ["user", "assistant"]},
        "content": STRING,
        "sequence": {"type": "integer", "minimum": 1},
        "createdAt": nullable("string"),
        "parsed": CONTENT,
    }
)

TOKENS = (
    *("input_tokens", "output_tokens", "total_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "reasoning_tokens"),
    "hour_cache_creation_input_tokens",
)
USAGE = record({name: nullable("integer") for name in TOKENS} | {"service_tier": nullable("string")})
MAYBE_USAGE = {"anyOf": [USAGE, {"type": "null"}]}
FAILURE = {"error_code": nullable("string"), "error_message": nullable("string"), "error_source": nullable("string")}
ENVELOPE = {
    "type": STRING,
    "id": STRING,
    "seq": {"type": "integer"},
    "session_id": nullable("string"),
    "timestamp": {"type": "integer", "minimum": 0},
    "turn_id": nullable("string"),
    "parent_tool_use_id": nullable("string"),
}
RESULT_DATA = record(
    {
        "subtype": nullable("string"),
        "status": STRING,
        "is_error": {"type": "boolean"},
        "result": nullable("string"),
        "structured_output": ANY,
        "errors": nullable("array"),
        "duration_ms": nullable("integer"),
        "duration_api_ms": nullable("integer"),
        "num_turns": nullable("integer"),
        "total_cost_usd": nullable("number"),
        "stop_reason": nullable("string"),
        "usage": MAYBE_USAGE,
        "modelUsage": ANY,
        "context_window": nullable("integer"),
        "context_percent": nullable("number"),
        "permission_denials": nullable("array"),
        "total_lines_added": nullable("integer"),
        "total_lines_removed": nullable("integer"),
        "error_details": nullable("object"),
        **FAILURE,
    }
)
ASSISTANT = record(
    {
        "id": STRING,
        "type": {"const": "message"},
        "role": {"const": "assistant"},
        "model": nullable("string"),
        "content": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["type"]}},
        "stop_reason": nullable("string"),
        "usage": MAYBE_USAGE,
    }
)
CONSUMER: dict[str, dict[str, Any]] = {
    "assistant": {"message": ASSISTANT},
    "stream_event": {"event": record({"type": STRING}, closed=False)},
    "result": {"data": RESULT_DATA},
    "session_init": {"session": record({"session_id": nullable("string")}, closed=False)},
    "permission_request": {"request": record({"request_id": STRING, "tool_use_id": nullable("string"), "timestamp": NUMBER}, closed=False)},
    "permission_cancelled": {"request_id": STRING, "reason": STRING},
    "tool_progress": {"tool_use_id": STRING, "status": STRING, "elapsed_time_seconds": nullable("number")},
    "tool_use_summary": {"summary": STRING, "tool_use_ids": {"type": "array"}},
    "tool_result": {"tool_use_id": STRING, "content": ANY, "is_error": nullable("boolean"), "error_message": nullable("string")},
    "status_change": {"status": STRING},
    "auth_status": {"is_authenticating": {"type": "boolean"}, **FAILURE},
    "error": FAILURE | {"error_code": STRING, "error_message": STRING},
    "turn_end": {"status": STRING, **FAILURE},
    "user_message": {"text": STRING, "content": {"type": "array", "items": {"type": "object", "required": ["type"]}}},
    "configuration_change": {"subtype": STRING},
    "session_lifecycle": {"subtype": STRING},
    "usage": {"scope": STRING, "usage": USAGE, "context_percent": nullable("number")},
    "raw": {"reason": STRING, "original": ANY},
    "unknown": {"event": {"type": "object"}},
}

is_standard = Draft202012Validator(STANDARD)
is_parsed = Draft202012Validator(PARSED)
is_content = Draft202012Validator(CONTENT)
is_consumer = {kind: Draft202012Validator(record(ENVELOPE | fields, closed=False)) for kind, fields in CONSUMER.items()}
is_other_consumer = Draft202012Validator(record(ENVELOPE, closed=False))
