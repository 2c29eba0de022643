"""What holds for each stream of a recording by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from tempfile import TemporaryDirectory
from typing import Any, cast

from msgspec.structs import replace

import hansard
from hansard.adapters.normalize import normalize
from hansard.events import ToolCallPayload
from hansard.events.codec import encode
from hansard.events.originals import embed
from hansard.events.replays import without_replays
from hansard.events.tool_inputs import tool_input
from hansard.projections import project
from hansard.projections.redaction.redact import redact
from hansard.store import JsonlStore
from hansard.store.search_text import SEARCHED_TYPES, byte_hints
from hansard.store.tables import COLUMNS
from hansard.testing import check_adapter
from hansard.testing.promises import recorded_lines
from hansard.testing.recordings import check_golden
from tests.recorded import Normalized, Stream
from tests.renormalized import check_again


def the_events_are_those_of_the_golden_file(one: Normalized) -> None:
    check_golden(one.stream, one.events)


def the_adapter_keeps_every_promise(one: Normalized) -> None:
    check_adapter(one.stream.format, one.data, one.stream.context)


def the_agents_own_bytes_come_back(one: Normalized) -> None:
    """Through a store whose limit is so low that many frames become blobs."""
    with TemporaryDirectory() as folder, JsonlStore(folder, inline_limit=2000) as store:
        store.create("s")
        store["s"].append(one.again())
        events = list(store["s"].read())
        for event in events:
            event.original = event.original and embed(event.original, store["s"].get_blob)
    two_way = recorded_lines(one.data)
    if two_way is None:
        only_theirs = all(event.direction is None for event in events)
        native = b"".join(project(events, "native", direction="in" if only_theirs else "both"))
        assert sha256(native).digest() == sha256(one.data).digest()
        return
    assert b"".join(project(events, "native")).split(b"\n")[:-1] == [line for sent, line in two_way if not sent]
    assert b"".join(project(events, "native", direction="out")).split(b"\n")[:-1] == [line for sent, line in two_way if sent]
    again = [(frame.dir == "send", frame.line.encode("utf-8", "surrogateescape")) for frame in project(events, "recording")]
    assert again == two_way


def the_same_adapters_make_the_same_log_again(one: Normalized) -> None:
    with TemporaryDirectory() as folder, JsonlStore(folder) as store:
        put_on_record(store, one.stream)
        check_again(store, "old")


def put_on_record(store: JsonlStore, stream: Stream, session: str = "old") -> None:
    """Put a recording on the record, as it would be imported."""
    name = "sub" if stream.context.parent_tool_call_id is not None else None
    context = replace(stream.context, source=session if name is None else f"{session}/{name}", stream=name, recorded=False)
    store.create(session, format=stream.format)
    store[session].append(list(normalize(stream.data, stream.format, context)))


def nothing_is_taken_for_a_secret(one: Normalized) -> None:
    assert [encode(event) for event in redact(one.events)] == [encode(event) for event in one.events]


def the_table_has_a_row_for_each_event(one: Normalized) -> None:
    table, events = hansard.frame(one.events).to_arrow(), list(without_replays(one.events))
    assert table.column_names == list(COLUMNS)
    assert table.column("seq").to_pylist() == [event.seq for event in events]
    assert table.column("type").to_pylist() == [event.type for event in events]
    for event, payload in zip(events, table.column("payload").to_pylist(), strict=True):
        assert json.loads(payload) == hansard.to_builtins(event)["payload"]


def a_search_passes_over_no_line_that_has_the_word(one: Normalized) -> None:
    """The quick look at a line never contradicts the slow one at its event."""
    for event in one.events:
        if event.type in SEARCHED_TYPES:
            line = encode(event)
            for word in " ".join(_strings(hansard.to_builtins(event)["payload"])).lower().split()[:50]:
                assert all(hint in line.lower() for hint in byte_hints([word])), word


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for part in cast("dict[str, Any]", value).values():
                yield from _strings(part)
        case list():
            for part in cast("list[Any]", value):
                yield from _strings(part)
        case _:
            pass


# --------------------------------------------------------------------------------------------------------------------
# Inputs of tools

KNOWN = ("execute", "read", "edit", "search", "fetch", "agent", "mcp")
"""Kinds of tools whose input has a type, but for what is listed below."""

ANOTHER_AGENT = "speaks to a sub-agent that is there already, or about it"
NOT_TYPED: dict[tuple[str, str], str] = {
    ("claude", "SendMessage"): ANOTHER_AGENT,
    ("codex", "closeAgent"): ANOTHER_AGENT,
    ("codex", "close_agent"): ANOTHER_AGENT,
    ("codex", "list_agents"): ANOTHER_AGENT,
    ("codex", "subAgentActivity"): ANOTHER_AGENT,
    ("codex", "wait"): ANOTHER_AGENT,
    ("codex", "wait_agent"): ANOTHER_AGENT,
    ("codex", "exec"): "a program of Codex's own, as text without a field to name it",
    ("codex", "write_stdin"): "keys for a command that runs already",
    ("cursor", "editToolCall"): "a text that may be the whole file or a part of it",
    ("openai", "file_search"): "several queries to a store of files",
    ("openai", "shell_call"): "several commands at once",
}


def shown_only(call: ToolCallPayload) -> bool:
    """ACP agents that send no arguments: in their place stands what they show of the call."""
    return (
        call.kind != "mcp" and isinstance(call.args, dict) and "title" in call.args and set(call.args) <= {"title", "locations", "content"}
    )


def broken(call: ToolCallPayload) -> bool:
    """No arguments, text that was to be JSON, or a number in the place of a command: what the scripted model said wrongly."""
    return call.kind != "mcp" and (
        call.args is None or (isinstance(call.args, str) and call.kind == "execute") or not isinstance(command_of(call), str | list)
    )


def command_of(call: ToolCallPayload) -> Any:
    return call.args.get("command", "") if call.kind == "execute" and isinstance(call.args, dict) else ""


def every_call_of_a_known_kind_is_typed_or_listed(one: Normalized) -> None:
    for event in one.events:
        if event.type != "tool_call" or event.payload.kind not in KNOWN:
            continue
        call = event.payload
        excused = (event.source, call.tool_name) in NOT_TYPED or shown_only(call) or broken(call)
        assert (tool_input(call) is None) == excused, (event.source, call)
