"""Databases as OpenCode makes them: from a recording's rows, or row by row."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

TABLES = {
    "session": "id text PRIMARY KEY, parent_id text, title text, directory text, time_created integer, time_updated integer",
    "message": "id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text",
    "part": "id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer, data text",
    "event": "id text PRIMARY KEY, aggregate_id text, seq integer, type text, data text",
    "todo": "session_id text, content text, status text, priority text, position integer, time_updated integer",
    "credential": "id text PRIMARY KEY, value text",
    "session_share": "session_id text PRIMARY KEY, secret text",
}


class Writer:
    """A program that has the database open, as OpenCode has it: with a log of changes beside it."""

    def __init__(self, path: Path, tables: tuple[str, ...] = tuple(TABLES)) -> None:
        self.path = path
        self.now = 1_790_000_000_000
        path.parent.mkdir(parents=True, exist_ok=True)
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = wal")
        for table in tables:
            self.connection.execute(f"CREATE TABLE {table} ({TABLES[table]})")

    def close(self) -> None:
        """End as a program does: SQLite takes the changes into the file."""
        self.connection.close()

    def put(self, table: str, **row: Any) -> None:
        """Write a row, or write it again."""
        marks = ", ".join("?" * len(row))
        self.connection.execute(f"INSERT OR REPLACE INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))

    def session(self, id: str, parent: str | None = None, title: str = "a title") -> None:
        self.now += 1
        self.put("session", id=id, parent_id=parent, title=title, directory="/w", time_created=self.now, time_updated=self.now)

    def message(self, id: str, session: str, **data: Any) -> None:
        self.now += 1
        info = {"time": {"created": self.now}, **data}
        self.put("message", id=id, session_id=session, time_created=self.now, time_updated=self.now, data=json.dumps(info))

    def part(self, id: str, message: str, session: str, **data: Any) -> None:
        self.now += 1
        row = {"message_id": message, "session_id": session, "time_created": self.now, "time_updated": self.now}
        self.put("part", id=id, **row, data=json.dumps(data))

    def event(self, seq: int, session: str, kind: str, **data: Any) -> None:
        self.now += 1
        row = {"id": f"evt_{self.now}", "aggregate_id": session, "seq": seq, "type": f"{kind}.1"}
        self.put("event", **row, data=json.dumps({"sessionID": session, **data}))

    def turn(self, number: int, session: str, question: str = "why?", answer: str = "because") -> None:
        """A question and its answer, as rows alone say it."""
        asked, said = f"msg_{number}a", f"msg_{number}b"
        self.message(asked, session, role="user")
        self.part(f"prt_{number}a", asked, session, type="text", text=question)
        done = {"finish": "stop", "time": {"created": self.now, "completed": self.now + 1}}
        self.message(said, session, role="assistant", parentID=asked, **done)
        self.part(f"prt_{number}b", said, session, type="text", text=answer)


def from_rows(path: Path, rows: bytes, schema: str | None = None) -> Path:
    """The database that a recording's rows were taken from: with the recorded schema, else with the columns that the rows show."""
    told = [json.loads(line) for line in rows.split(b"\n") if line]
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(_as_sql(told) if schema is None else schema)
    for one in told:
        row = one["row"]
        connection.execute(f"INSERT INTO {one['table']} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()))
    connection.close()
    return path


def _as_sql(told: list[dict[str, Any]]) -> str:
    columns: dict[str, dict[str, None]] = {}
    for one in told:
        columns.setdefault(one["table"], {}).update(dict.fromkeys(one["row"]))
    return "".join(f"CREATE TABLE {table} ({', '.join(names)});" for table, names in columns.items())
