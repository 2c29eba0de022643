"""The events that close what somebody left open and cannot close any more: a block, a request, a tool call, a turn."""

from __future__ import annotations

from hansard.events.types import (
    Event,
    PermissionRequest,
    answer,
    assistant_done,
    permission_cancelled,
    thinking_done,
    tool_result,
    turn_end,
)


def close_block(text: str, *, thinking: bool, parent: str | None, response_id: str | None, block_index: int | None) -> Event:
    """Returns the block as far as it got."""
    event = thinking_done(text=text, interrupted=True) if thinking else assistant_done(text=text, interrupted=True)
    event.response_id, event.block_index = response_id, block_index
    return _synthetic(event, parent)


def close_request(request: Event, reason: str) -> Event:
    """Returns the cancellation of a permission request or question."""
    request_id = request.payload.request_id
    if isinstance(request, PermissionRequest):
        return _synthetic(permission_cancelled(request_id=request_id, reason=reason), request.parent_tool_call_id)
    return _synthetic(answer(request_id=request_id, values=None, action="cancelled"), request.parent_tool_call_id)


def close_call(tool_call_id: str, parent: str | None, reason: str) -> Event:
    """Returns a failed result for a tool call that has none."""
    return _synthetic(tool_result(tool_call_id=tool_call_id, result=None, is_error=True, error=reason), parent)


def close_turn(turn_id: str | None, reason: str) -> Event:
    """Returns the end of a turn that was lost."""
    event = turn_end(status="lost", stop_reason=reason)
    event.turn_id = turn_id
    return _synthetic(event)


def _synthetic(event: Event, parent: str | None = None) -> Event:
    event.synthetic, event.parent_tool_call_id = True, parent
    return event
