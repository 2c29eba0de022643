"""The recordings of real agents that lie beside the repository: `HANSARD_SHARED`, or ``../shared``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hansard.adapter import Adapter
from hansard.adapters import adapter_for
from hansard.events import Event
from hansard.framing import Frame, TwoWay, frames

SHARED = Path(os.environ.get("HANSARD_SHARED") or Path(__file__).resolve().parents[1] / ".." / "shared")
CAPTURES = SHARED / "captures"


def recording(folder: str, scenario: str, name: str) -> bytes:
    """The bytes of a recording; the test is skipped where there are none."""
    path = CAPTURES / folder / scenario / name
    if not path.exists():
        pytest.skip(f"no recording {folder}/{scenario}/{name} under {SHARED}: set HANSARD_SHARED to the folder that has captures/")
    return path.read_bytes()


def scenarios(folder: str, name: str) -> list[str]:
    """Every scenario of a folder that has this file; one that is missing where there are no recordings at all."""
    return sorted(path.parent.name for path in (CAPTURES / folder).glob(f"*/{name}")) or ["(no recordings)"]


def frames_of(folder: str, scenario: str, name: str) -> Iterator[Frame]:
    """The frames of a recording."""
    return frames([recording(folder, scenario, name)], TwoWay())


def read(format: str, data: bytes) -> list[Event]:
    """Every event of a stream, the closing ones included."""
    adapter = adapter_for(format)()
    events = [event for frame in frames([data], adapter.framer()) for event in adapter.feed(frame)]
    return events + adapter.finish()


def say(adapter: Adapter, *messages: dict[str, Any], out: bool = False) -> list[Event]:
    """The events of these messages."""
    return [event for message in messages for event in adapter.feed(Frame(json.dumps(message).encode(), out=out))]


def only(events: list[Event], kind: str) -> list[Any]:
    """The payloads of the events of one type."""
    return [event.payload for event in events if event.type == kind]
