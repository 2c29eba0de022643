"""Whatever value a wire has in a field, the session is listed, found, counted, shown and exported, and so are all others."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import hansard
from hansard.adapters.normalize import normalize
from hansard.cli import main
from hansard.events import EARLIEST_CALENDAR_MS, Result, UsageEvent, result, usage
from hansard.events.bounds import MAX_NUMBER, bound
from hansard.events.times import MAX_TIME_MS, to_datetime
from hansard.events.types import Usage
from hansard.projections import FORMATS
from tests.mutants import Recorded, places
from tests.proof import Figures, amount, proves
from tests.recorded import streams
from tests.test_bad_input import cases

LONGEST = 20_000
VALUES = [
    wire
    for case in cases("hostile-values")
    if "wire" in case and len(wire := "".join(part if isinstance(part, str) else part[0] * part[1] for part in case["wire"])) <= LONGEST
]
STREAM_OF = {stream.format: stream for stream in reversed(streams()) if len(stream.data) < 60_000}
HOLE = "a hole for a value"


def with_value(line: bytes, value: str, chance: random.Random) -> bytes | None:
    """The line with this JSON text in one of its fields; not every line is JSON."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    found = places(message)
    if not found:
        return None
    container, key = chance.choice(found)
    container[key] = HOLE
    return json.dumps(message).replace(json.dumps(HOLE), value).encode("utf-8", "surrogatepass").replace(b"\n", b" ")


def mutant(recorded: Recorded, value: str, chance: random.Random) -> bytes:
    place = chance.randrange(len(recorded.lines))
    changed = with_value(recorded.lines[place], value, chance)
    return recorded.joined({} if changed is None else {place: [changed]})


@proves("P-05")
@pytest.mark.parametrize("format_name", sorted(STREAM_OF))
def test_a_hostile_value_in_any_field_breaks_nothing(
    format_name: str, tmp_path: Path, figure: Figures, capfd: pytest.CaptureFixture[str]
) -> None:
    recorded, chance = Recorded(STREAM_OF[format_name]), random.Random(f"hostile {format_name}")
    number = amount(25, 2_000, quick=5)
    with hansard.open(tmp_path / "store") as store:
        for index in range(number):
            data = mutant(recorded, chance.choice(VALUES), chance)
            session = f"s{index:05}"
            store.create(session, format=format_name)
            store[session].append(list(normalize(data, format_name)))
    where = ["--store", str(tmp_path / "store")]
    for command in (["sessions"], ["sessions", "--json"], ["search", "a"], ["search", "a", "--json"], ["usage"], ["usage", "--json"]):
        assert main([*command, *where]) in (0, 1), command
    assert "Traceback" not in capfd.readouterr().err
    for index in range(number):
        session, form = f"s{index:05}", sorted(FORMATS)[index % len(FORMATS)]
        for command in (["show", session], ["export", session, "--to", form, "-o", str(tmp_path / "out")]):
            assert main([*command, *where]) in (0, 1), command
    assert "Traceback" not in capfd.readouterr().err
    figure("sessions", number)


@pytest.mark.parametrize("time", [-(10**400), -1, 0, MAX_TIME_MS, MAX_TIME_MS + 1, 10**18, 10**400, float("nan"), float("inf")])
def test_every_number_is_some_time(time: Any) -> None:
    for zone in (hansard_utc(), None):
        assert f"{to_datetime(time, zone):%Y-%m-%d %H:%M}"


def hansard_utc() -> Any:
    from datetime import UTC

    return UTC


def test_a_time_of_the_wire_that_no_calendar_has_is_not_taken() -> None:
    line = {
        "type": "user",
        "message": {"role": "user", "content": "hello"},
        "session_id": "s",
        "timestamp": "9999-12-31T23:59:59.999-23:00",
    }
    events = list(normalize(json.dumps(line).encode(), "claude-stream-json"))
    assert all(event.timestamp < EARLIEST_CALENDAR_MS for event in events)


@pytest.mark.parametrize("number", [10**400, -(10**400), MAX_NUMBER + 1, float("inf"), float("nan")])
def test_a_number_that_is_too_large_is_left_to_the_original(number: Any) -> None:
    event = usage(scope="message", usage=Usage(input_tokens=number, output_tokens=5), cost_usd=number)
    bound(event)
    assert isinstance(event, UsageEvent)
    assert event.payload.usage == Usage(output_tokens=5) and event.payload.cost_usd is None
    end = result(status="completed", cost_usd=0.5, duration_ms=number, num_turns=3)
    bound(end)
    assert isinstance(end, Result) and (end.payload.duration_ms, end.payload.num_turns, end.payload.cost_usd) == (None, 3, 0.5)
