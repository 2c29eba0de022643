"""Events as a table: for pandas, polars, DuckDB and whatever else speaks Arrow. None of them is needed to import this.

df = hansard.frame("session.jsonl").to_pandas()
polars.DataFrame(hansard.frame("session.jsonl"))
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

from hansard.adapters.base import Context
from hansard.adapters.detection import HEAD, detect
from hansard.adapters.normalize import OWN_LOG, READ_SIZE, events_of_log, normalize
from hansard.errors import UsageError
from hansard.events import Error, Event, Result, ToolResult, UsageEvent
from hansard.events.codec import to_builtins
from hansard.events.lineage import without_copies
from hansard.events.replays import without_replays
from hansard.projections.output import encode
from hansard.projections.text import result_text
from hansard.store.files.compressed import decompress_stream
from hansard.store.interface import Store

COLUMNS: dict[str, str] = {
    "session_id": "string",
    "seq": "int64",
    "timestamp": "timestamp",
    "type": "string",
    "turn_id": "string",
    "response_id": "string",
    "block_index": "int64",
    "parent_tool_call_id": "string",
    "source": "string",
    "stream": "string",
    "role": "string",
    "author": "string",
    "text": "string",
    "tool_name": "string",
    "tool_call_id": "string",
    "is_error": "bool",
    "status": "string",
    "model": "string",
    "usage_scope": "string",
    "input_tokens": "int64",
    "output_tokens": "int64",
    "cost_usd": "double",
    "payload": "string",
}
"""Name and Arrow type. ``timestamp`` is UTC, to the millisecond; ``payload`` is JSON. Null is what an event does not say.
Usage comes in scopes that count the same tokens again: choose one by ``usage_scope`` before adding up."""
BATCH_ROWS = 8192
MAX_INT64 = 2**63 - 1

_SPOKEN = ("assistant_chunk", "assistant_done", "audio_chunk", "audio_done", "content_block", "thinking_chunk", "thinking_done")
_ROLES = {
    **dict.fromkeys(("user_message", "user_audio"), "user"),
    **dict.fromkeys((*_SPOKEN, "tool_call", "tool_input_chunk"), "assistant"),
    **dict.fromkeys(("tool_result", "tool_output_chunk"), "tool"),
}
_TEXTS = ("text", "transcription", "transcript", "chunk", "message", "summary")


class ArrowTable(ABC):
    """Rows with named columns. Anything that reads Arrow's C stream takes it as it is, batch by batch."""

    @property
    @abstractmethod
    def arrow_types(self) -> Mapping[str, str | None]:
        """The Arrow type of each column; None if it is that of the values."""

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows."""

    def reader(self) -> Any:
        """A `pyarrow.RecordBatchReader`: the rows as they are read, never all at once."""
        arrow = require_module("pyarrow", "frames")
        if None in self.arrow_types.values():
            return self._guess_types(arrow).to_reader()
        kinds = {"timestamp": arrow.timestamp("ms"), "double": arrow.float64(), "bool": arrow.bool_()}
        schema = arrow.schema([(name, kinds.get(kind or "") or getattr(arrow, kind or "")()) for name, kind in self.arrow_types.items()])
        return arrow.RecordBatchReader.from_batches(schema, self._batches(arrow, schema))

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`."""
        return self.reader().read_all()

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`; whole numbers stay whole where some are missing."""
        pandas = require_module("pandas", "frames")
        whole = {"int64": pandas.Int64Dtype(), "bool": pandas.BooleanDtype()}

        def kept(kind: Any) -> Any:
            return whole.get(str(kind))

        return self.to_arrow().to_pandas(types_mapper=kept)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Arrow's own interface between libraries."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def _batches(self, arrow: Any, schema: Any) -> Iterator[Any]:
        rows = iter(self)
        while batch := list(islice(rows, BATCH_ROWS)):
            columns = zip(*batch, strict=True)
            arrays = [arrow.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)]
            yield arrow.record_batch(arrays, schema=schema)

    def _guess_types(self, arrow: Any) -> Any:
        names, rows = list(self.arrow_types), list(self)
        return arrow.table([arrow.array([row[place] for row in rows]) for place in range(len(names))], names=names)


class EventTable(ArrowTable):
    """Events as rows of `COLUMNS`. Repetitions by an agent that resumed a session have no rows.

    It can be read again, unless it was given events that come once.
    """

    def __init__(self, events: Callable[[], Iterable[Event]]) -> None:
        self._events = events

    @property
    def arrow_types(self) -> Mapping[str, str | None]:
        """Those of `COLUMNS`."""
        return COLUMNS

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows."""
        return map(event_row, without_replays(self._events()))


def frame(source: Iterable[Event] | Store | str | os.PathLike[str], *sessions: str, table: str = "events") -> ArrowTable:
    """A table of events: those given, those of a file (a log or any known wire), or those of a store (all sessions, or the ones named).

    With ``table``, another table of a store: sessions, turns, tool_calls, edits, requests, usage, or files.
    """
    if table != "events":
        from hansard.store.table_query import table_rows  # it makes tables of this kind

        if not hasattr(source, "sessions"):
            raise UsageError(f"only a store has a table {table!r}")
        return table_rows(cast("Store", source), table, sessions)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return EventTable(lambda: read_path(path))
    if hasattr(source, "sessions"):
        return EventTable(lambda: read_store(cast("Store", source), sessions))
    events = cast("Iterable[Event]", source)
    return EventTable(lambda: events)


def read_store(store: Store, sessions: Iterable[str] = ()) -> Iterator[Event]:
    """The events of some sessions of a store, or of all that can be read, one after the other: then what a fork copied is left out."""
    if names := list(sessions):
        return chain.from_iterable(store[name].conversation() for name in names)
    infos = [info for info in store.sessions() if info.problem is None]
    logs = {info.id: info.log_id for info in infos}
    return chain.from_iterable(without_copies(store[info.id].conversation(), info.copies_of(logs)) for info in infos)


def read_path(path: Path) -> Iterator[Event]:
    """The events of a file: a log of ours as it is, anything else normalized under the file's name."""
    with path.open("rb") as raw, decompress_stream(raw) as file:
        head = file.read(HEAD)
        data = chain([head], iter(lambda: file.read(READ_SIZE), b""))
        if head.startswith(OWN_LOG):
            yield from events_of_log(data)
            return
        format = detect(head)
        if format is None:
            raise UsageError(f"{path}: no known format begins like this; use hansard.normalize with a format, and give its events to frame")
        for event in normalize(data, format, Context(source=str(path))):
            event.session_id = event.session_id or path.stem
            yield event


def event_row(event: Event) -> tuple[Any, ...]:
    """One event in the order of `COLUMNS`."""
    payload = event.payload
    usage = payload.usage if isinstance(event, UsageEvent) else None
    return (
        _text(event.session_id or None),
        event.seq,
        event.timestamp if 0 <= event.timestamp <= MAX_INT64 else None,
        _text(event.type),
        _text(event.turn_id),
        _text(event.response_id),
        _number(event.block_index),
        _text(event.parent_tool_call_id),
        _text(event.source),
        _text(event.stream),
        _text(getattr(payload, "role", None)) or _ROLES.get(event.type),
        _text(getattr(payload, "author", None)),
        _text(row_text(event)),
        _text(getattr(payload, "tool_name", None)),
        _text(getattr(payload, "tool_call_id", None)),
        payload.is_error if isinstance(event, ToolResult) else True if isinstance(event, Error) else None,
        _text(getattr(payload, "status", None)),
        _text(getattr(payload, "model", None)),
        payload.scope if isinstance(event, UsageEvent) else None,
        None if usage is None else _number(usage.input_tokens),
        None if usage is None else _number(usage.output_tokens),
        payload.cost_usd if isinstance(event, UsageEvent | Result) else None,
        encode(to_builtins(event).get("payload")).decode(),
    )


def row_text(event: Event) -> str | None:
    """What an event says in words."""
    if isinstance(event, ToolResult):
        return result_text(event.payload)
    for name in _TEXTS:
        text = getattr(event.payload, name, None)
        if isinstance(text, str):
            return text
    return None


def require_module(module: str, extra: str) -> Any:
    """A library that not everybody has."""
    try:
        return import_module(module)
    except ImportError as problem:
        raise UsageError(f"this needs {module}: pip install 'hansard[{extra}]'") from problem


def _text(value: Any) -> str | None:
    """Text that has bytes: half an emoji has none and is escaped. What is no text (an HTTP status) is not in a column of texts."""
    if not isinstance(value, str):
        return None
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()


def _number(value: int | None) -> int | None:
    return value if value is not None and abs(value) <= MAX_INT64 else None
