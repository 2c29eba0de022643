"""The events of each item of the Responses API, in the model's output as in a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hansard import events as ev
from hansard.adapters.blocks import image_at, text_of
from hansard.adapters.fields import declared_fields, input_hash, parse_arguments, place_in_message, tag_of
from hansard.adapters.openai import items_wire, parts
from hansard.events.lenient import as_int, as_list, as_object

_OPTIONS = [ev.PermissionOption("approve", "Approve", "allow_once"), ev.PermissionOption("deny", "Deny", "reject_once")]

# Tools of the API are named as a request asks for them. Those that the client runs keep the name of their item, because a client often
# has a function of the short name as well (the recordings have one called `shell`).
_NAMES = {
    "web_search_call": "web_search",
    "file_search_call": "file_search",
    "code_interpreter_call": "code_interpreter",
    "image_generation_call": "image_generation",
    "tool_search_call": "tool_search",
}
_KINDS: dict[str, ev.ToolKind] = {
    "web_search_call": "search",
    "file_search_call": "search",
    "tool_search_call": "search",
    "code_interpreter_call": "execute",
    "local_shell_call": "execute",
    "shell_call": "execute",
    "program": "execute",
    "apply_patch_call": "edit",
    "mcp_call": "mcp",
}
_FAILED = ("failed", "incomplete")
_PAGES = ("open_page", "find_in_page")


class Slot:
    """The place of one item: the blocks of its parts, and the pieces that have come so far."""

    def __init__(self, response_id: str | None, next_block: Callable[[], int]) -> None:
        self.response_id = response_id
        self._next_block = next_block
        self.blocks: dict[tuple[str, int], int] = {}
        self.item: Any = None
        self.pieces: list[str] = []
        self.length = 0
        self.printed = 0
        self.refusals: dict[int, list[str]] = {}
        self.done = False

    def block(self, kind: str = "item", index: int = 0) -> int:
        """The place of a part of this item."""
        place = self.blocks.get((kind, index))
        if place is None:
            place = self.blocks[kind, index] = self._next_block()
        return place

    def put(self, event: ev.Event, kind: str = "item", index: int = 0) -> ev.Event:
        """The event, at the place of its part."""
        return place_in_message(event, self.response_id, self.block(kind, index))

    def add(self, piece: str) -> int:
        """Where this piece of the input begins."""
        offset = self.length
        self.pieces.append(piece)
        self.length += len(piece)
        return offset


# ---- what the model says


def message(item: items_wire.Message, slot: Slot) -> Iterator[ev.Event]:
    """Yield the parts of a message of the model."""
    for index, block in enumerate(parts.to_blocks(item.content)):
        if isinstance(block, ev.TextBlock):
            payload = ev.AssistantDonePayload(text=block.text, phase=item.phase, citations=block.citations)
            yield slot.put(ev.AssistantDone(payload=payload), "part", index)
        else:
            yield slot.put(ev.content_block(block=block), "part", index)


def reasoning(item: items_wire.Reasoning, slot: Slot) -> Iterator[ev.Event]:
    """Yield a block per part; the sealed data of the whole goes with the last."""
    texts = [("summary", index, _words(part)) for index, part in enumerate(item.summary or [])]
    texts += [("reasoning", index, _words(part)) for index, part in enumerate(item.content or [])]
    if not texts and item.encrypted_content is not None:
        texts = [("sealed", 0, "")]
    for position, (kind, index, text) in enumerate(texts):
        sealed = item.encrypted_content if position == len(texts) - 1 else None
        payload = ev.ThinkingDonePayload(text=text, redacted=sealed, summary=kind == "summary")
        yield slot.put(ev.ThinkingDone(payload=payload), kind, index)
    if not texts:
        yield slot.put(ev.status_change(status="reasoning", detail={"id": item.id}))


# ---- calls


def call(item: Any) -> ev.Event:
    """Return the call that an item is."""
    tag = tag_of(item.__class__)
    kind, server, caller = _KINDS.get(tag, "other"), None, None
    if isinstance(item, items_wire.CalledByProgram):
        caller = as_object(item.caller).get("caller_id")
    match item:
        case items_wire.FunctionCall() | items_wire.CustomToolCall():
            server = item.namespace
        case items_wire.McpCall():
            server = item.server_label
        case items_wire.WebSearchCall() if as_object(item.action).get("type") in _PAGES:
            kind = "fetch"
        case _:
            pass
    payload = ev.ToolCallPayload(tool_call_id=call_id(item), tool_name=call_name(item), args=_args(item), kind=kind, server=server)
    return ev.ToolCall(payload=payload, parent_tool_call_id=caller if isinstance(caller, str) else None)


def client_call(item: Any, slot: Slot) -> Iterator[ev.Event]:
    """Yield a call that the client runs, with the change or the permission request in it."""
    yield slot.put(call(item))
    if isinstance(item, items_wire.ApplyPatchCall):
        change = as_object(item.operation)
        if isinstance(change.get("path"), str):
            diff = change.get("diff")
            block = ev.DiffBlock(path=change["path"], diff=diff if isinstance(diff, str) else None)
            yield slot.put(ev.tool_progress(tool_call_id=item.call_id, status=str(change.get("type")), content=[block]))
    if isinstance(item, items_wire.ComputerCall) and item.pending_safety_checks:
        messages = [as_object(check).get("message") for check in item.pending_safety_checks]
        yield slot.put(
            ev.permission_request(
                request_id=item.call_id,
                options=_OPTIONS,
                input_hash=input_hash(_args(item)),
                tool_call_id=item.call_id,
                tool_name=call_name(item),
                input=_args(item),
                description="; ".join(text for text in messages if isinstance(text, str)),
                suggestions=item.pending_safety_checks,
            )
        )


def mcp_permission(item: items_wire.McpApprovalRequest) -> ev.Event:
    """Return the permission request for a call to an MCP server."""
    shown = parse_arguments(item.arguments)
    return ev.permission_request(
        request_id=str(item.id),
        options=_OPTIONS,
        input_hash=input_hash(shown),
        tool_name=item.name,
        input=shown,
        description=item.server_label,
    )


def hosted_result(item: Any) -> ev.Event:
    """Return the result of a tool that the API runs: it is in the same item as the call."""
    failed = item.status in _FAILED
    result: Any = None
    content: list[ev.AnyBlock] | None = None
    error: str | None = None
    match item:
        case items_wire.WebSearchCall():
            result = as_object(item.action).get("sources")
        case items_wire.FileSearchCall():
            result = item.results
        case items_wire.CodeInterpreterCall():
            result = item.outputs
            content = [_code_output(output) for output in item.outputs or []]
        case items_wire.ImageGenerationCall():
            result = declared_fields(item, "id", "result", "error")
            media_type = None if item.output_format is None else f"image/{item.output_format}"
            content = None if item.result is None else [ev.ImageBlock(media_type=media_type, data=item.result)]
            error = _error_text(item.error)
        case _:
            result = item.error if item.output is None else item.output
            error = _error_text(item.error)
    return ev.tool_result(tool_call_id=call_id(item), result=result, content=content, is_error=failed or error is not None, error=error)


def shell_outcome(output: Any) -> dict[str, Any]:
    """Return what a shell's output says of the call. It has an entry per command; the call has the exit code of the last."""
    outcomes = [as_object(as_object(entry).get("outcome")) for entry in as_list(output)]
    codes = [outcome.get("exit_code") for outcome in outcomes]
    failed = any(code not in (0, None) or outcome.get("type") == "timeout" for code, outcome in zip(codes, outcomes, strict=True))
    return {"is_error": failed, "exit_code": as_int(codes[-1] if codes else None)}


def call_id(item: Any) -> str:
    """The id under which a call is answered; a tool of the API is known by its item."""
    answered_by = getattr(item, "call_id", None)
    return str(item.id) if answered_by is None else answered_by


def call_name(item: Any) -> str:
    """The tool's name; a built-in tool has none but its item's type."""
    name = getattr(item, "name", None)
    tag = tag_of(item.__class__)
    return _NAMES.get(tag, tag) if name is None else name


def is_call(item: Any) -> bool:
    """Tell whether an item is a call."""
    return isinstance(item, (items_wire.ClientCall, items_wire.HostedCall))


def has_input(item: Any, text: str) -> None:
    """Give a call that was cut off the input that its pieces add up to."""
    for name in ("arguments", "input", "code"):
        if text and isinstance(getattr(item, name, None), str):
            setattr(item, name, text)


def _args(item: Any) -> Any:
    match item:
        case items_wire.FunctionCall() | items_wire.McpCall():
            return parse_arguments(item.arguments)
        case items_wire.CustomToolCall():
            return item.input
        case items_wire.ToolSearchCall():
            return item.arguments
        case items_wire.ApplyPatchCall():
            return item.operation
        case items_wire.WebSearchCall():
            return {key: value for key, value in as_object(item.action).items() if key != "sources"}
        case items_wire.FileSearchCall():
            return {"queries": item.queries}
        case items_wire.ImageGenerationCall():
            return declared_fields(item, "id", "status", "result", "error")
        case items_wire.CodeInterpreterCall():
            return declared_fields(item, "id", "status", "outputs")
        case items_wire.Program():
            return {"code": item.code}
        case items_wire.ComputerCall():
            return item.action if item.actions is None else {"actions": item.actions}
        case _:
            return item.action


def _words(part: Any) -> str:
    block = parts.to_block(part)
    text = getattr(block, "text", None)
    return text if isinstance(text, str) else ""


def _code_output(output: Any) -> ev.AnyBlock:
    fields = as_object(output)
    match fields:
        case {"type": "logs", "logs": str(text)}:
            return ev.TextBlock(text=text)
        case {"type": "image", "url": str(url)}:
            return image_at(url)
        case _:
            return parts.to_block(output)


def _error_text(error: Any) -> str | None:
    """An error is text, or an object with a message, or (MCP) with content."""
    if error is None or isinstance(error, str):
        return error
    fields = as_object(error)
    message = fields.get("message")
    if isinstance(message, str):
        return message
    words = text_of(parts.to_blocks(fields.get("content")))
    return words if words != "" else str(fields.get("type"))


def refusal(event: ev.Event) -> bool:
    """Whether the event is a refusal."""
    return isinstance(getattr(event.payload, "block", None), ev.RefusalBlock)
