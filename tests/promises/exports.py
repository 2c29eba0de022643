"""What holds for the exports of each stream."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import hansard
from hansard.adapters.normalize import normalize
from hansard.events import Event
from hansard.events.content import RefusalBlock, SlashCommandBlock, TextBlock
from hansard.events.replays import without_replays
from hansard.projections import Projected, Shape, project, projection_for
from hansard.projections.output import written
from hansard.projections.text import block_text
from tests.projections.differences import facts_of, out_of_order, unexplained
from tests.projections.markdown_referee import markdown_is_a_page
from tests.projections.referees import REFEREES
from tests.recorded import Normalized


def projected(form: str, events: list[Event]) -> tuple[list[Any], Projected[Any]]:
    """The pieces of an export, and its report."""
    made = Projected(projection_for(form)(), events)
    return list(made), made


def is_valid(one: Normalized, form: str) -> None:
    """Its referee accepts the export, every event is accounted for, and the same events give the same bytes."""
    pieces, made = projected(form, one.events)
    data = b"".join(written(pieces, projection_for(form).output))
    REFEREES[form](pieces, data)
    assert made.report.events == len(one.events)
    assert 0 <= made.report.used <= len(one.events)
    assert data == b"".join(written(projected(form, one.events)[0], projection_for(form).output))


# --------------------------------------------------------------------------------------------------------------------
# Read back

FORMS: dict[str, Shape] = {"openai-messages": "array", "anthropic-messages": "array", "atif": "document"}


def export_bytes(form: str, events: list[Event]) -> bytes:
    return b"".join(written(hansard.project(events, form), FORMS[form]))


def talk(events: list[Event]) -> Counter[str]:
    """What was said, called and given back, each with how often: ATIF moves a late result to its call."""
    found: Counter[str] = Counter()
    for event in events:
        match event.type:
            case "user_message" | "assistant_done" | "thinking_done":
                found[f"{event.type} {event.payload.text}"] += 1
            case "tool_call":
                found[f"call {event.payload.tool_call_id} {event.payload.tool_name} {json.dumps(event.payload.args, sort_keys=True)}"] += 1
            case "tool_result":
                found[f"result {event.payload.tool_call_id} {json.dumps(event.payload.result)}"] += 1
            case _:
                pass
    return found


def a_document_read_back_and_written_again_is_the_same(one: Normalized) -> None:
    for form in FORMS:
        data = export_bytes(form, one.events)
        back = list(normalize(data, form))
        assert data == b"[]\n" or not [event for event in back if event.type == "raw"]
        again = list(normalize(export_bytes(form, back), form))
        assert talk(back) == talk(again), form


def what_is_read_back_differs_only_as_the_table_says(one: Normalized) -> None:
    before = facts_of(list(without_replays(one.events)))
    for form in FORMS:
        after = facts_of(list(normalize(export_bytes(form, one.events), form)))
        assert unexplained(form, before, after)[0] == []
        assert out_of_order(form, before, after) == []


# --------------------------------------------------------------------------------------------------------------------
# Markdown


def page(events: list[Event]) -> str:
    """A session as a page of Markdown."""
    text = "".join(project(events, "markdown"))
    markdown_is_a_page([text], text.encode("utf-8", "backslashreplace"))
    return text


def text_blocks(events: list[Event]) -> list[str]:
    """Every text of the conversation. Context of the harness is procedure, and a slash command is shown as it was typed."""
    texts: list[str] = []
    for event in events:
        if event.type in ("assistant_done", "thinking_done"):
            texts.append(event.payload.text)
        elif event.type == "user_message" and event.payload.author != "harness":
            content = event.payload.content or []
            typed = not content or any(isinstance(block, SlashCommandBlock) for block in content)
            texts += [event.payload.text] if typed else [block.text for block in content if isinstance(block, TextBlock)]
    return texts


def letters(text: str) -> str:
    return re.sub(r"[^\w]|_", "", text)


def every_text_is_on_the_page(one: Normalized) -> None:
    there = letters(page(one.events))
    for text in text_blocks(list(without_replays(one.events))):
        assert letters(text) in there


# --------------------------------------------------------------------------------------------------------------------
# The timeline


def every_call_and_every_message_is_a_row(one: Normalized) -> None:
    made, events = list(project(one.events, "timeline")), list(without_replays(one.events))
    for kind in ("user_message", "assistant_done", "thinking_done", "content_block", "error", "raw"):
        assert sum(row.what == kind for row in made) == sum(event.type == kind for event in events)
    called = {event.payload.tool_call_id for event in events if event.type in ("tool_call", "tool_result")}
    assert {row.tool_call_id for row in made if row.what == "tool"} == called
    assert sum(row.what == "turn" for row in made) == sum(event.type == "turn_end" for event in events)


# --------------------------------------------------------------------------------------------------------------------
# ACP

READ_OTHERWISE = {
    "copilot-json/thinking": "the whole is not what its pieces said, and version 1 of the protocol has no word to correct them",
    "openai-chat-completions/n2": "two answers come at once, piece by piece: a reader takes each change of message for an end",
    "qwen015-acp/subagent": "the agent itself gives the pieces to one speaker and the whole to another",
}
"""Recordings whose conversation a reader of the protocol sees otherwise, and why."""

Said = tuple[str, ...]


def speech(events: list[Event], but: frozenset[str] | set[str] = frozenset()) -> dict[str | None, list[Said]]:
    """What was said and called, by whom, in the order in which each began."""
    lanes: dict[str | None, dict[Any, Said]] = {}
    for event in events:
        payload, block = event.payload, (event.response_id, event.block_index, event.type.partition("_")[0])
        lane = lanes.setdefault(event.parent_tool_call_id, {})
        match event.type:
            case "user_message":
                lane[event.id] = ("user", payload.text)
            case "assistant_chunk" | "thinking_chunk":
                lane.setdefault(block, ())
            case "assistant_done" | "thinking_done":
                lane[block] = (event.type, payload.text)
            case "content_block" if isinstance(payload.block, RefusalBlock | TextBlock):
                lane[event.id] = ("assistant_done", block_text(payload.block))
            case "tool_call" if payload.tool_call_id not in but:
                lane[event.id] = ("call", payload.tool_call_id, payload.tool_name, repr(payload.args))
            case _:
                pass
    return {name: said for name, lane in lanes.items() if (said := [words for words in lane.values() if words])}


def _results(events: list[Event]) -> list[tuple[str, bool]]:
    return sorted((event.payload.tool_call_id, bool(event.payload.is_error)) for event in events if event.type == "tool_result")


def _calls(events: list[Event]) -> set[str]:
    return {event.payload.tool_call_id for event in events if event.type == "tool_call"}


def a_client_of_acp_reads_the_same_conversation(one: Normalized) -> None:
    if not one.stream.main or one.stream.recording.id in READ_OTHERWISE:
        return
    events = list(without_replays(one.events))
    read = list(normalize(b"".join(written(project(one.events, "acp"), "lines")), "acp"))
    assert _results(read) == _results(events)
    told = {name for name in _calls(read) if name not in _calls(events)}  # a result without a call is told with one
    assert speech(read, but=told) == speech(events)
