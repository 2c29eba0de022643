"""Who judges the forms for web pages and editors: the Python models of AG-UI here, the rest in Node (tests/node/referees.mjs)."""

from __future__ import annotations

import json
from typing import Any

from ag_ui.core import Event
from pydantic import TypeAdapter

from tests.projections.node import judge

_ag_ui = TypeAdapter(Event)


def ag_ui_accepts(events: list[dict[str, Any]], data: bytes) -> None:
    sent = [json.loads(line[len("data: ") :]) for line in data.decode().split("\n") if line.startswith("data: ")]
    assert len(sent) == len(events)
    for event in sent:
        read = _ag_ui.validate_python(event, strict=False)
        assert not _unknown_fields(read), f"{event['type']} has {_unknown_fields(read)}"
    judge("ag-ui", data)


def _unknown_fields(model: Any) -> dict[str, Any]:
    return model.model_extra or {}
