"""The control protocol that Claude Code defined and Qwen Code adopted: requests and responses in both directions."""

from __future__ import annotations

from typing import Any

from hansard import events as ev
from hansard.adapters.fields import json_line
from hansard.events.lenient import as_object


def parameters(request: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a request."""
    return {key: value for key, value in request.items() if key != "subtype"}


def sent_request(request_id: str, request: dict[str, Any], settings: tuple[str, ...]) -> ev.Event:
    """Return the event of a request that our side sent. ``settings`` are the methods that change the configuration."""
    method, params = str(request.get("subtype")), parameters(request)
    if method == "interrupt":
        return ev.interrupt(reason="user_cancel")
    if method not in settings:
        return ev.control_request(request_id=request_id, method=method, params=params)
    model, mode = params.get("model"), params.get("mode")
    return ev.configuration_change(
        subtype=method,
        model=model if method == "set_model" and isinstance(model, str) else None,
        permission_mode=mode if method == "set_permission_mode" and isinstance(mode, str) else None,
        options=params,
    )


def setting(change: ev.ConfigurationChangePayload) -> dict[str, Any]:
    """Return the request that changes a setting."""
    params = {"subtype": change.subtype, **as_object(change.options)}
    if change.model is not None:
        params["model"] = change.model
    if change.permission_mode is not None:
        params["mode"] = change.permission_mode
    return params


def request_line(request_id: str, request: dict[str, Any]) -> bytes:
    """Return the frame of a request."""
    return json_line(type="control_request", request_id=request_id, request=request)


def response_line(request_id: str | None, response: Any) -> bytes:
    """Return the frame of a response to a request that succeeded."""
    return json_line(type="control_response", response={"subtype": "success", "request_id": request_id, "response": response})


def error_line(request_id: str | None, error: Any) -> bytes:
    """Return the frame of a response to a request that failed."""
    return json_line(type="control_response", response={"subtype": "error", "request_id": request_id, "error": error})
