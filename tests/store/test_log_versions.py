"""Logs of other versions: every one that was ever written stays readable, and a later one is carried without being understood."""

import json
import shutil
from pathlib import Path

import pytest

from hansard.events import turn_end
from hansard.events.codec import encode
from hansard.store import JsonlStore, migrate_store, open_store
from hansard.store.postgres import schema
from hansard.store.postgres.connection import connect, parse_address
from tests.postgres import Database
from tests.proof import Figures, proves

LOGS = Path(__file__).with_name("logs")
KEPT = sorted(LOGS.glob("1-*"))
"""One for each way a release of ours has written logs. Never changed: the next way is one more file."""


def put(root: Path, kept: Path) -> JsonlStore:
    (root / "kept").mkdir(parents=True)
    shutil.copyfile(kept, root / "kept" / ("events.jsonl" + (".zst" if kept.suffix == ".zst" else "")))
    return JsonlStore(root)


@proves("D-16")
@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.name)
def test_logs_of_every_version_are_read_and_gone_on_with(kept: Path, root: Path, figure: Figures) -> None:
    store = put(root, kept)
    before = b"".join(record.line + b"\n" for record in store["kept"].records())
    events = list(store["kept"].read())
    assert b"".join(encode(event) + b"\n" for event in events) == before
    assert [event.seq for event in events] == list(range(1, len(events) + 1)) and len(events) >= 14
    assert not [finding for finding in store["kept"].verify() if finding.is_damage]
    [info] = store.sessions()
    assert (info.title, info.format, info.status) == ("A session of an earlier release", "claude-stream-json", "completed")
    with store:
        store["kept"].append([turn_end(status="completed")])
    assert (root / "kept" / "events.jsonl").read_bytes().startswith(before)
    assert store["kept"].verify() == []
    figure("logs of earlier versions", 1)
    figure("records", len(events))


@proves("D-16")
def test_a_log_of_a_later_version_is_carried_and_said_to_be_one(root: Path) -> None:
    store = put(root, LOGS / "later.jsonl")
    before = (LOGS / "later.jsonl").read_bytes()
    assert b"".join(record.line + b"\n" for record in store["kept"].records()) == before
    events = list(store["kept"].read())
    assert [json.loads(encode(event)) for event in events] == [json.loads(line) for line in before.split(b"\n")[:-1]]
    assert [event.seq for event in events] == list(range(1, 11))
    findings = store["kept"].verify()
    assert {finding.kind for finding in findings if finding.kind != "unsealed"} == {"newer-version"}
    assert {finding.seq for finding in findings} >= {1, 4} and not any(finding.is_damage for finding in findings)
    with store:
        store["kept"].append([turn_end(status="completed")])
    assert (root / "kept" / "events.jsonl").read_bytes().startswith(before)
    store["kept"].compress()
    assert b"".join(record.line + b"\n" for record in store["kept"].records()).startswith(before)


@proves("D-16")
@pytest.mark.slow
def test_the_rows_of_the_first_release_are_opened_and_gone_on_with(database: Database) -> None:
    """Written by SQL, as 0.1 left them: three migrations, the lines of a log, and the session's row with its state as JSON."""
    address = parse_address(database.address)
    with connect(address) as connection:
        assert schema.migrate(connection, address, to=3) == 3
    lines = (LOGS / "1-sealed.jsonl").read_bytes().split(b"\n")[:-1]
    state = (LOGS / "row-of-1-sealed.json").read_bytes().strip()
    row = json.loads(state)
    start = 0
    for seq, line in enumerate(lines, 1):
        event = json.loads(line)
        database.execute(
            "INSERT INTO event (session_id, seq, start, time, type, id, line, said) VALUES ('kept', %s, %s, %s, %s, %s, %s, NULL)",
            [seq, start, event["timestamp"], event["type"], event["id"], line],
        )
        start += len(line) + 1
    database.execute(
        "INSERT INTO session (id, epoch, copying, log_id, seq, bytes, damaged, title, format, archived, created, updated, status, state)"
        " VALUES ('kept', 1, false, %s, %s, %s, 0, %s, %s, false, %s, %s, %s, %s)",
        [row["log_id"], len(lines), start, row["renamed"], row["format"], row["created"], row["said"], row["status"], state],
    )
    migrate_store(database.address)
    with open_store(database.address) as store:
        assert [record.line for record in store["kept"].records()] == lines
        assert not [finding for finding in store["kept"].verify() if finding.is_damage]
        [before] = store.sessions()
        store["kept"].append([turn_end(status="completed")])
        store["kept"].release()
        [after] = store.sessions()
        assert store["kept"].verify() == []
        assert (before.title, before.created) == (after.title, after.created) == ("A session of an earlier release", row["created"])
    [(kept,)] = database.execute("SELECT state FROM session WHERE id = 'kept'")
    unchanged = {name: value for name, value in row.items() if name not in ("said", "checkpoint", "last_id")}
    assert {name: json.loads(bytes(kept))[name] for name in unchanged} == unchanged
