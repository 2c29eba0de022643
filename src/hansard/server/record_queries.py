"""Questions to the record over HTTP: the filters of a request, and the pages that answer. All of it reads: call it in a thread."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from starlette.requests import Request

from hansard.server import protocol
from hansard.server.openapi import query
from hansard.store import Store
from hansard.store.failures import count_causes, find_failures
from hansard.store.filters import REPEATABLE_FILTERS, SessionFilter, parse_filter, select_sessions
from hansard.store.row_tables import ROW_TABLES
from hansard.store.tool_use import find_commands, find_files
from hansard.store.usage import load_prices
from hansard.store.usage_groups import report_usage

TEXT = {"type": "string"}
FILTERS = tuple(
    query(parameter, {"type": "array", "items": TEXT} if name in REPEATABLE_FILTERS else TEXT)
    for name, parameter in protocol.FILTER_PARAMETERS.items()
)
"""The filters as parameters of an operation."""
QUERY_TABLES = ("sessions", *ROW_TABLES, "usage")
"""The tables that can be read over HTTP. Events have their own paths, and the files of imports are the server's own."""


def requested_filter(request: Request) -> SessionFilter:
    """Returns the filter of a request. A relative path has no meaning here."""
    given = {name: request.query_params.getlist(parameter) for name, parameter in protocol.FILTER_PARAMETERS.items()}
    return parse_filter(given, datetime.now().astimezone())


def filtered_sessions(store: Store, wanted: SessionFilter) -> set[str]:
    """Returns the ids of the sessions that a filter means, those included that are not read yet."""
    return {info.id for info in (*select_sessions(store, wanted), *filter(wanted.matches_captured, store.captured()))}


def list_failures(store: Store, wanted: SessionFilter, limit: int, offset: int) -> protocol.FailureList:
    """Returns a page of the turns that failed."""
    found = find_failures(store, wanted)
    return protocol.FailureList(found[offset : offset + limit], count_causes(found), len(found), _next(found, limit, offset))


def list_commands(store: Store, wanted: SessionFilter, only_failed: bool, limit: int, offset: int) -> protocol.CommandList:
    """Returns a page of the commands that agents ran."""
    found = find_commands(store, wanted, only_failed)
    return protocol.CommandList(found[offset : offset + limit], len(found), _next(found, limit, offset))


def list_files(store: Store, wanted: SessionFilter, by_turn: bool, only_changed: bool, limit: int, offset: int) -> protocol.FileList:
    """Returns a page of the files that agents read and changed."""
    found = find_files(store, wanted, by_turn, only_changed)
    return protocol.FileList(found[offset : offset + limit], len(found), _next(found, limit, offset))


def add_up_usage(store: Store, wanted: SessionFilter, by: str) -> protocol.UsageReport:
    """Returns what the sessions used, in groups."""
    report = report_usage(store, wanted, by, load_prices(getattr(store, "root", None)))
    groups = [protocol.UsageGroup(**msgspec.structs.asdict(part), name=name) for name, part in report.groups]
    counted = {row.session_id for row in report.rows}
    incomplete = [note for name, note in report.ledger.notes.items() if note.missing and name in counted]
    return protocol.UsageReport(by, groups, report.total, incomplete)


def read_table(store: Store, table: str, limit: int, offset: int) -> protocol.TablePage:
    """Returns a page of a table."""
    found = store.query(f"SELECT * FROM {table} LIMIT ? OFFSET ?", (limit + 1, offset))  # noqa: S608  # nosec B608
    rows = [list(row) for row in found]
    return protocol.TablePage(found.columns, rows[:limit], offset + limit if len(rows) > limit else None)


def _next(found: Sequence[Any], limit: int, offset: int) -> int | None:
    return offset + limit if offset + limit < len(found) else None
