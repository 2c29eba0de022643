"""Who judges the forms for web pages and editors: the Python models of AG-UI here, the rest in Node (tests/node/referees.mjs)."""

from __future__ import annotations

import json
from typing import Any

from ag_ui.core import Event
from pydantic import TypeAdapter

from hansard.projections.formats.vercel_ui_messages import Folded
from hansard.projections.output import encode
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


def vercel_accepts(chunks: list[dict[str, Any]], data: bytes) -> None:
    """The SDK reads the stream without an error, and reads from it what the list of messages holds."""
    answer = judge("vercel-ui", data)
    if answer:
        assert as_in_javascript(answer["messages"]) == as_in_javascript(folded_messages(chunks))


def as_in_javascript(value: Any) -> Any:
    """With numbers as JavaScript has them."""
    return json.loads(encode(value), parse_int=float)


def folded_messages(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for chunk in chunks:
        if chunk["type"] == "start":
            folded = Folded(chunk)
            made.append(folded.message)
        else:
            folded.add(chunk)
    return made


def vercel_messages_accept(messages: list[dict[str, Any]], data: bytes) -> None:
    assert len({message["id"] for message in messages}) == len(messages)
    judge("vercel-ui-messages", data)


def acp_accepts(messages: list[dict[str, Any]], data: bytes) -> None:
    """By the schema; and the events are all in it, in order."""
    carried = [message["params"]["update"]["_meta"]["hansard"] for message in messages if "hansard" in message["params"]["update"]["_meta"]]
    seqs = [event["seq"] for event in carried if event.get("seq")]  # a damaged line has none
    assert seqs == sorted(seqs)
    judge("acp", data)
