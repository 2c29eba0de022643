"""What each item of the Responses API means, in the model's output as in a request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, get_args

from hansard.adapters.openai import items, parts
from hansard.adapters.openai.provider import OpenAI
from hansard.adapters.openai.words import arguments, fingerprint, told
from hansard.content import AnyBlock, DiffBlock, ImageBlock, RefusalBlock, TextBlock
from hansard.events import (
    AssistantDone,
    AssistantDonePayload,
    Event,
    PermissionOption,
    ThinkingDone,
    ThinkingDonePayload,
    ToolCall,
    ToolCallPayload,
    ToolKind,
    configuration_change,
    content_block,
    mcp_status,
    permission_request,
    permission_response,
    session_lifecycle,
    status_change,
    tool_progress,
    tool_result,
)
from hansard.loose import as_int, as_list, as_object
from hansard.words import at

_OPTIONS = [PermissionOption("approve", "Approve", "allow_once"), PermissionOption("deny", "Deny", "reject_once")]

# Tools of the API are named as a request asks for them. Those that the client runs keep the name of their item, because a client often
# has a function of the short name as well (the recordings have one called `shell`).
_NAMES = {
    "web_search_call": "web_search",
    "file_search_call": "file_search",
    "code_interpreter_call": "code_interpreter",
    "image_generation_call": "image_generation",
    "tool_search_call": "tool_search",
}
_KINDS: dict[str, ToolKind] = {
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
    """The place of one item: the blocks of its parts, and what its pieces have said so far."""

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

    def put(self, event: Event, kind: str = "item", index: int = 0) -> Event:
        """The event, at the place of its part."""
        return at(event, self.response_id, self.block(kind, index))

    def add(self, piece: str) -> int:
        """Where this piece of the input begins."""
        offset = self.length
        self.pieces.append(piece)
        self.length += len(piece)
        return offset


class Items(OpenAI):
    """Items to events."""

    def item(self, item: Any, value: Any, slot: Slot) -> Iterable[Event]:
        """The events of a whole item; ``value`` is the item as the wire has it."""
        match item:
            case items.FunctionCall():
                return (slot.put(self.call(item)),)
            case items.FunctionCallOutput():
                return self.give(item.call_id or self.open_call(item.name) or str(item.id), item.output)
            case _:
                return self.other_item(item, value, slot)

    def other_item(self, item: Any, value: Any, slot: Slot) -> Iterator[Event]:
        match item:
            case items.Message(role="assistant"):
                yield from self.message(item, slot)
            case items.Message():
                yield self.say(item.role, parts.to_blocks(item.content), item.id)
            case items.Reasoning():
                yield from self.reasoning(item, slot)
            case items.McpListTools():
                state = "listed" if item.error is None else "failed"
                yield slot.put(mcp_status(server=item.server_label, state=state, detail=told(item, "id", "server_label")))
            case items.McpApprovalRequest():
                yield slot.put(self.may_i(item))
            case items.McpApprovalResponse():
                yield permission_response(
                    request_id=item.approval_request_id,
                    decision="allow" if item.approve else "deny",
                    option_id="approve" if item.approve else "deny",
                    message=item.reason,
                )
            case items.AdditionalTools() | items.ConfigurationUpdate():
                yield configuration_change(subtype=_type(item), options=told(item, "id"))
            case items.Compaction():
                yield slot.put(session_lifecycle(subtype="compacted", message_id=item.id, detail=told(item, "id")))
            case items.CompactionTrigger() | items.ItemReference():
                yield status_change(status=_type(item), detail=told(item))
            case None:
                yield slot.put(self.unknown_block(value))
            case _ if isinstance(item, items.HostedCall):
                yield slot.put(self.call(item))
                yield slot.put(self.hosted_result(item))
            case _ if isinstance(item, items.Output):
                yield from self.output(item)
            case _:
                yield from self.client_call(item, slot)

    # ---- what the model says

    def message(self, item: items.Message, slot: Slot) -> Iterator[Event]:
        for index, block in enumerate(parts.to_blocks(item.content)):
            if isinstance(block, TextBlock):
                payload = AssistantDonePayload(text=block.text, phase=item.phase, citations=block.citations)
                yield slot.put(AssistantDone(payload=payload), "part", index)
            else:
                yield slot.put(content_block(block=block), "part", index)

    def reasoning(self, item: items.Reasoning, slot: Slot) -> Iterator[Event]:
        """A block per part; the sealed form of the whole goes with the last."""
        said = [("summary", index, _words(part)) for index, part in enumerate(item.summary or [])]
        said += [("reasoning", index, _words(part)) for index, part in enumerate(item.content or [])]
        if not said and item.encrypted_content is not None:
            said = [("sealed", 0, "")]
        for position, (kind, index, text) in enumerate(said):
            sealed = item.encrypted_content if position == len(said) - 1 else None
            payload = ThinkingDonePayload(text=text, redacted=sealed, summary=kind == "summary")
            yield slot.put(ThinkingDone(payload=payload), kind, index)
        if not said:
            yield slot.put(status_change(status="reasoning", detail={"id": item.id}))

    # ---- calls

    def call(self, item: Any) -> Event:
        """The call that an item is."""
        name, kind, server = call_name(item), _KINDS.get(_type(item), "other"), None
        caller = as_object(item.caller).get("caller_id") if type(item) in _CALLED_BY_PROGRAM else None
        match item:
            case items.FunctionCall() | items.CustomToolCall():
                server = item.namespace
            case items.McpCall():
                server = item.server_label
            case items.WebSearchCall() if as_object(item.action).get("type") in _PAGES:
                kind = "fetch"
            case _:
                pass
        payload = ToolCallPayload(tool_call_id=call_id(item), tool_name=name, args=_args(item), kind=kind, server=server)
        return ToolCall(payload=payload, parent_tool_call_id=caller if isinstance(caller, str) else None)

    def client_call(self, item: Any, slot: Slot) -> Iterator[Event]:
        yield slot.put(self.call(item))
        if isinstance(item, items.ApplyPatchCall):
            change = as_object(item.operation)
            if isinstance(change.get("path"), str):
                diff = change.get("diff")
                block = DiffBlock(path=change["path"], diff=diff if isinstance(diff, str) else None)
                yield slot.put(tool_progress(tool_call_id=item.call_id, status=str(change.get("type")), content=[block]))
        if isinstance(item, items.ComputerCall) and item.pending_safety_checks:
            messages = [as_object(check).get("message") for check in item.pending_safety_checks]
            yield slot.put(
                permission_request(
                    request_id=item.call_id,
                    options=_OPTIONS,
                    input_hash=fingerprint(_args(item)),
                    tool_call_id=item.call_id,
                    tool_name=call_name(item),
                    input=_args(item),
                    description="; ".join(text for text in messages if isinstance(text, str)),
                    suggestions=item.pending_safety_checks,
                )
            )

    def may_i(self, item: items.McpApprovalRequest) -> Event:
        shown = arguments(item.arguments)
        return permission_request(
            request_id=str(item.id),
            options=_OPTIONS,
            input_hash=fingerprint(shown),
            tool_name=item.name,
            input=shown,
            description=item.server_label,
        )

    def hosted_result(self, item: Any) -> Event:
        """What a tool of the API gave back: it is in the same item as the call."""
        failed = item.status in _FAILED
        result: Any = None
        content: list[AnyBlock] | None = None
        error: str | None = None
        match item:
            case items.WebSearchCall():
                result = as_object(item.action).get("sources")
            case items.FileSearchCall():
                result = item.results
            case items.CodeInterpreterCall():
                result = item.outputs
                content = [_code_output(output) for output in item.outputs or []]
            case items.ImageGenerationCall():
                result = told(item, "id", "result", "error")
                media_type = None if item.output_format is None else f"image/{item.output_format}"
                content = None if item.result is None else [ImageBlock(media_type=media_type, data=item.result)]
                error = _error_text(item.error)
            case _:
                result = item.error if item.output is None else item.output
                error = _error_text(item.error)
        return tool_result(tool_call_id=call_id(item), result=result, content=content, is_error=failed or error is not None, error=error)

    # ---- results

    def output(self, item: Any) -> Iterator[Event]:
        match item:
            case items.CustomToolCallOutput():
                yield from self.give(item.call_id, item.output)
            case items.ComputerCallOutput():
                if item.acknowledged_safety_checks:
                    yield permission_response(request_id=item.call_id, decision="allow", option_id="approve")
                yield from self.give(item.call_id, item.output, content=parts.to_blocks(item.output))
            case items.LocalShellCallOutput():
                failed = True if item.status == "incomplete" else None
                yield from self.give(item.call_id or str(item.id), item.output, is_error=failed)
            case items.ShellCallOutput():
                yield from self.shell_output(item)
            case items.ApplyPatchCallOutput():
                yield from self.give(item.call_id, item.output, is_error=item.status == "failed")
            case items.ToolSearchOutput():
                call = item.call_id or self.open_call("tool_search") or str(item.id)
                yield from self.give(call, item.tools, content=None)
            case _:
                yield from self.give(item.call_id, item.result, is_error=item.status == "incomplete")

    def shell_output(self, item: items.ShellCallOutput) -> Iterator[Event]:
        """One entry per command; the exit code of the last stands for the call."""
        outcomes = [as_object(as_object(entry).get("outcome")) for entry in as_list(item.output)]
        codes = [outcome.get("exit_code") for outcome in outcomes]
        last = codes[-1] if codes else None
        failed = any(code not in (0, None) or outcome.get("type") == "timeout" for code, outcome in zip(codes, outcomes, strict=True))
        yield from self.give(item.call_id, item.output, content=None, is_error=failed, exit_code=as_int(last))

    def open_call(self, name: str | None) -> str | None:
        """The oldest call of that name that has no result yet, for results without an id."""
        return next((call_id for call_id, call in self.open.tools.items() if call.payload.tool_name == name), None)


def call_id(item: Any) -> str:
    """The id under which a call is answered; a tool of the API is known by its item."""
    answered_by = getattr(item, "call_id", None)
    return str(item.id) if answered_by is None else answered_by


def call_name(item: Any) -> str:
    """The tool's name; a built-in tool has none but its item's type."""
    name = getattr(item, "name", None)
    return _NAMES.get(_type(item), _type(item)) if name is None else name


def is_call(item: Any) -> bool:
    """Whether an item is a call."""
    return type(item) in _CALLS


_CALLS = frozenset(get_args(items.ClientCall | items.HostedCall))
_CALLED_BY_PROGRAM = frozenset(get_args(items.CalledByProgram))


def has_input(item: Any, text: str) -> None:
    """Give a call that was cut off what its pieces have said of its input."""
    for name in ("arguments", "input", "code"):
        if text and isinstance(getattr(item, name, None), str):
            setattr(item, name, text)


def _type(item: Any) -> str:
    return str(item.__struct_config__.tag)


def _args(item: Any) -> Any:
    match item:
        case items.FunctionCall() | items.McpCall():
            return arguments(item.arguments)
        case items.CustomToolCall():
            return item.input
        case items.ToolSearchCall():
            return item.arguments
        case items.ApplyPatchCall():
            return item.operation
        case items.WebSearchCall():
            return {key: value for key, value in as_object(item.action).items() if key != "sources"}
        case items.FileSearchCall():
            return {"queries": item.queries}
        case items.ImageGenerationCall():
            return told(item, "id", "status", "result", "error")
        case items.CodeInterpreterCall():
            return told(item, "id", "status", "outputs")
        case items.Program():
            return {"code": item.code}
        case items.ComputerCall():
            return item.action if item.actions is None else {"actions": item.actions}
        case _:
            return item.action


def _words(part: Any) -> str:
    block = parts.to_block(part)
    text = getattr(block, "text", None)
    return text if isinstance(text, str) else ""


def _code_output(output: Any) -> AnyBlock:
    fields = as_object(output)
    match fields:
        case {"type": "logs", "logs": str(text)}:
            return TextBlock(text=text)
        case {"type": "image", "url": str(url)}:
            return parts.image(url)
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
    words = parts.text_of(parts.to_blocks(fields.get("content")))
    return words if words != "" else str(fields.get("type"))


def refusal(event: Event) -> bool:
    """Whether the event is a refusal."""
    return isinstance(getattr(event.payload, "block", None), RefusalBlock)
