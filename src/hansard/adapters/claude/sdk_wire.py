"""The objects of the Claude Agent SDK for Python (claude-agent-sdk 0.2.182), as `record.py` writes them down.

A line is ``{"type": class name, "fields": {…}}``; a dataclass inside another has its name in ``__type__``. A field named here is a
field we read.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, cast

from msgspec import UNSET

from hansard.adapters.base import Wire, declare, nested
from hansard.adapters.claude import wire
from hansard.adapters.fields import camel_case
from hansard.events.lenient import as_list, as_object
from hansard.events.structs import prepare, union_of

# ---- blocks


class _Block(Wire, tag_field="__type__"):
    pass


_CALL = {"id": str, "name": str, "input": Any}

declare(
    _Block,
    {
        "TextBlock": {"text": str},
        "ThinkingBlock": {"thinking": str, "signature": str},
        "ToolUseBlock": _CALL,
        "ToolResultBlock": {"tool_use_id": str, "content": Any, "is_error": bool},
        # Declared, in no recording. The SDK makes a ServerToolResultBlock of ``advisor_tool_result`` alone (message_parser.py).
        "ServerToolUseBlock": _CALL,
        "ServerToolResultBlock": {"tool_use_id": str, "content": Any},
    },
)

AnyBlock = union_of(_Block)

_WORDS = {"ServerToolResultBlock": "advisor_tool_result"}
_HUMP = re.compile(r"(?<!^)(?=[A-Z])")


def api_content(content: Any) -> Any:
    """The content of a message with its blocks as the API spells them."""
    return [api_block(item) for item in cast("list[Any]", content)] if isinstance(content, list) else content


def api_block(block: Any) -> Any:
    """``TextBlock`` → ``text``, and so on by the same rule for classes that a later SDK may have."""
    name = as_object(block).get("__type__")
    if not isinstance(name, str):
        return block
    word = _WORDS.get(name) or _HUMP.sub("_", name.removesuffix("Block")).lower()
    return {"type": word, **{key: value for key, value in block.items() if key != "__type__"}}


# ---- messages


class _Object(Wire, tag_field="type", kw_only=True):
    t: float | None = None
    """Milliseconds, since the epoch or since the recording began."""
    turn: int | None = None
    """Which of the user's turns this belongs to, counted from 1, if the recorder counted."""


class AssistantFields(Wire, kw_only=True):
    content: Annotated[Any, nested(AnyBlock)] = None
    model: str | None = None
    parent_tool_use_id: str | None = None
    error: str | None = None
    usage: wire.Tokens | None = None
    message_id: str | None = None
    stop_reason: str | None = None


class AssistantMessage(_Object, tag="AssistantMessage"):
    """One per content block, as on the wire below."""

    fields: AssistantFields


class UserFields(Wire, kw_only=True):
    content: Annotated[Any, nested(AnyBlock)] = None
    uuid: str | None = None
    parent_tool_use_id: str | None = None
    tool_use_result: Any = None
    origin: Any = None


class UserMessage(_Object, tag="UserMessage"):
    """Tool results, the harness's nudges, a subagent's prompt; seldom the user."""

    fields: UserFields


class ResultMessage(_Object, tag="ResultMessage"):
    fields: wire.ResultFields


class StreamEvent(_Object, tag="StreamEvent"):
    """With ``include_partial_messages``: the API's own stream, passed on."""

    fields: wire.StreamFields


class SystemFields(Wire, kw_only=True):
    """``data`` is the wire's frame whole; the other fields of the subclasses say parts of it again."""

    subtype: str | None = None
    data: Annotated[Any, nested(wire.AnySystem)] = None


class _System(_Object, kw_only=True):
    fields: Annotated[Any, nested(SystemFields)]


declare(
    _System,
    {
        "SystemMessage": {},  # any ``system`` frame without a class of its own
        "TaskStartedMessage": {},
        "TaskProgressMessage": {},
        "TaskUpdatedMessage": {},
        "TaskNotificationMessage": {},
        # Declared, in no recording. HookEventMessage comes with ``include_hook_events``; MirrorErrorMessage when a session store fails.
        "HookEventMessage": {},
        "MirrorErrorMessage": {},
    },
)


class RateLimitInfo(Wire, kw_only=True):
    said_whole = True
    status: str | None = None
    resets_at: float | None = None
    rate_limit_type: str | None = None
    utilization: float | None = None
    overage_status: str | None = None
    overage_resets_at: float | None = None
    overage_disabled_reason: str | None = None
    raw: wire.RateLimitInfo | None = None


class RateLimitFields(Wire, kw_only=True):
    rate_limit_info: RateLimitInfo


class RateLimitEvent(_Object, tag="RateLimitEvent"):
    fields: RateLimitFields


class ConversationResetMessage(_Object, tag="ConversationResetMessage"):
    fields: wire.ResetFields


# ---- what is no message: callbacks, calls, exceptions


class ServerInfo(_Object, tag="server_info"):
    """What ``get_server_info()`` gave: the answer to the handshake."""

    fields: Any = None


class ToolPermissionContext(Wire, kw_only=True):
    suggestions: list[Any] | None = None
    tool_use_id: str | None = None
    agent_id: str | None = None
    description: str | None = None
    title: str | None = None


class CanUseToolFields(Wire, kw_only=True):
    tool_name: str
    input: Any = None
    context: ToolPermissionContext | None = None


class CanUseTool(_Object, tag="can_use_tool"):
    """The SDK called our ``can_use_tool``."""

    fields: CanUseToolFields


class PermissionResultFields(Wire, kw_only=True):
    behavior: str | None = None
    updated_input: Any = None
    updated_permissions: list[Any] | None = None
    message: str | None = None
    interrupt: bool = False
    request_id: str | None = None
    """Which request this answers, if whoever wrote it down knew; else the oldest one that is open."""


class CanUseToolAnswer(_Object, tag="can_use_tool_answer"):
    """What our ``can_use_tool`` returned: PermissionResultAllow or PermissionResultDeny."""

    fields: PermissionResultFields


class WithdrawnFields(Wire, kw_only=True):
    tool_use_id: str


class CanUseToolCancelled(_Object, tag="can_use_tool_cancelled"):
    """The SDK does not wait for the answer of our ``can_use_tool`` any more: it cancelled the call."""

    fields: WithdrawnFields


class HookFields(Wire, kw_only=True):
    input: Any = None
    tool_use_id: str | None = None


class Hook(_Object, tag="hook"):
    """The SDK called one of our hooks."""

    fields: HookFields


class HookAnswerFields(Wire, kw_only=True):
    output: Any = None
    request_id: str | None = None


class HookAnswer(_Object, tag="hook_answer"):
    """What our hook returned."""

    fields: HookAnswerFields


AnyObject = union_of(_Object)


class CallFields(Wire, kw_only=True):
    args: list[Any] | None = None
    kwargs: dict[str, Any] | None = None
    returns: Any = UNSET
    raises: str | None = None
    message: str | None = None


class _Open(Wire, kw_only=True):
    """An object of a family whose second word nobody can list."""

    type: str
    t: float | None = None
    turn: int | None = None


class Call(_Open, kw_only=True):
    """``call:set_model`` and so on: we called a method of ClaudeSDKClient."""

    fields: CallFields
    request_id: str | None = None
    """By this name what it returns comes later, if it is not here already."""


class ReturnedFields(Wire, kw_only=True):
    returns: Any = None
    raises: str | None = None
    message: str | None = None


class Returned(_Open, kw_only=True):
    """``returned:set_model`` and so on: what a call came to that was written down when it was made."""

    fields: ReturnedFields
    request_id: str


class RaisedFields(Wire, kw_only=True):
    """The message, and what ResultError and ProcessError carry beside it."""

    message: str = ""
    bases: list[str] | None = None
    subtype: str | None = None
    terminal_reason: str | None = None
    api_error_status: int | None = None
    result: str | None = None
    exit_code: int | None = None


class Raised(_Open, kw_only=True):
    """``raised:ResultError`` and so on: the SDK raised."""

    fields: RaisedFields


OPEN = {"call": Call, "returned": Returned, "raised": Raised}

# ClaudeSDKClient's methods: the control request each one sends, and the names of its arguments there (_internal/query.py).
METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
    "connect": ("initialize", ()),
    "interrupt": ("interrupt", ()),
    "set_permission_mode": ("set_permission_mode", ("mode",)),
    "set_model": ("set_model", ("model",)),
    "rewind_files": ("rewind_files", ("user_message_id",)),
    "reconnect_mcp_server": ("mcp_reconnect", ("serverName",)),
    "toggle_mcp_server": ("mcp_toggle", ("serverName", "enabled")),
    "stop_task": ("stop_task", ("task_id",)),
    "get_mcp_status": ("mcp_status", ()),
    "get_context_usage": ("get_context_usage", ()),
}


def request_of(method: str, call: CallFields) -> dict[str, Any]:
    """The control request that a call of the client amounts to."""
    subtype, names = METHODS.get(method, (method, ()))
    args = call.args or []
    named = {camel_case(key) if subtype.startswith("mcp_") else key: value for key, value in (call.kwargs or {}).items()}
    rest = {"args": args[len(names) :]} if len(args) > len(names) else {}
    return {"subtype": subtype, **dict(zip(names, args, strict=False)), **named, **rest}


def system_frame(message: Any) -> dict[str, Any]:
    """The ``system`` frame that a message was made of."""
    fields = as_object(message.fields)
    said = {key: value for key, value in fields.items() if key not in ("data", "__type__")}
    if "hook_event_name" in said:
        said["hook_event"] = said.pop("hook_event_name")
    return {**said, **as_object(fields.get("data"))}


def updates(suggestions: list[Any] | None) -> list[Any] | None:
    """PermissionUpdate objects as the control protocol spells them (PermissionUpdate.to_dict)."""
    return None if suggestions is None else [_update(one) for one in suggestions]


def _update(update: Any) -> Any:
    if not isinstance(update, dict):
        return update
    pairs = cast("dict[str, Any]", update).items()
    spelled = {camel_case(key): value for key, value in pairs if value is not None and key != "__type__"}
    if "rules" in spelled:
        spelled["rules"] = [_update(rule) for rule in as_list(spelled["rules"])]
    return spelled


prepare(globals())
