"""Logs of other versions: every one that was ever written stays readable, and a later one is carried without being understood."""

import json
import shutil
from pathlib import Path

import pytest

from hansard.codec import encode
from hansard.events import turn_end
from hansard.store import JsonlStore
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
    before = b"".join(record.line + b"\n" for record in store.records("kept"))
    events = list(store.read("kept"))
    assert b"".join(encode(event) + b"\n" for event in events) == before
    assert [event.seq for event in events] == list(range(1, len(events) + 1)) and len(events) >= 14
    assert not [finding for finding in store.verify("kept") if finding.is_damage]
    [info] = store.sessions()
    assert (info.title, info.format, info.status) == ("A session of an earlier release", "claude-stream-json", "completed")
    with store:
        store.append("kept", [turn_end(status="completed")])
    assert (root / "kept" / "events.jsonl").read_bytes().startswith(before)
    assert store.verify("kept") == []
    figure("logs of earlier versions", 1)
    figure("records", len(events))


@proves("D-16")
def test_a_log_of_a_later_version_is_carried_and_said_to_be_one(root: Path) -> None:
    store = put(root, LOGS / "later.jsonl")
    before = (LOGS / "later.jsonl").read_bytes()
    assert b"".join(record.line + b"\n" for record in store.records("kept")) == before
    events = list(store.read("kept"))
    assert [json.loads(encode(event)) for event in events] == [json.loads(line) for line in before.split(b"\n")[:-1]]
    assert [event.seq for event in events] == list(range(1, 11))
    findings = store.verify("kept")
    assert {finding.kind for finding in findings if finding.kind != "unsealed"} == {"newer-version"}
    assert {finding.seq for finding in findings} >= {1, 4} and not any(finding.is_damage for finding in findings)
    with store:
        store.append("kept", [turn_end(status="completed")])
    assert (root / "kept" / "events.jsonl").read_bytes().startswith(before)
    store.compress("kept")
    assert b"".join(record.line + b"\n" for record in store.records("kept")).startswith(before)
