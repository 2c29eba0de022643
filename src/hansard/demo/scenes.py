"""The recordings that come with hansard, as their wires spoke, and how one is played into a log at its own pace."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from importlib import resources

from msgspec import Struct

from hansard.adapter import Context
from hansard.adapters import adapter_for
from hansard.events import Event, session_lifecycle
from hansard.framing import Frame, frames
from hansard.store import Store
from hansard.store.ids import now_ms

LONGEST_PAUSE = 0.25
"""Seconds; nobody waits for what an agent waited for."""
STEP = 0.02
"""The pause before a frame of a recording that does not say when it was spoken."""


class Scene(Struct, frozen=True):
    """One recorded session."""

    name: str
    title: str
    format: str
    file: str

    @property
    def session(self) -> str:
        """The name of its log."""
        return f"demo-{self.name}"

    def begin(self, store: Store) -> None:
        """Its log."""
        store.create(self.session, format=self.format, title=self.title)

    def recording(self) -> bytes:
        """What was spoken."""
        return gzip.decompress(resources.files("hansard.demo").joinpath(self.file).read_bytes())


SCENES = (
    Scene("claude-permission", "A tool asks for permission, and gets it", "claude-control", "claude_permission.jsonl.gz"),
    Scene("claude-subagent", "A sub-agent works inside a call", "claude-control", "claude_subagent.jsonl.gz"),
    Scene("claude-interrupt", "The user interrupts, and goes on", "claude-control", "claude_interrupt.jsonl.gz"),
    Scene("codex-plan", "A plan, and a command that is part of it", "codex-app-server", "codex_plan.jsonl.gz"),
    Scene("opencode-edit", "A file is written, then improved", "opencode-sse", "opencode_edit.sse.gz"),
    Scene("gemini-permission", "May it write this file?", "acp", "gemini_permission.jsonl.gz"),
)


def play(store: Store, scene: Scene, speed: float = 1.0) -> None:
    """Write the scene into its log, frame by frame, as fast as it was spoken; 0: at once. The log says when it is over."""
    adapter = adapter_for(scene.format)(Context(source=scene.session))
    try:
        for frame in _paced(list(frames([scene.recording()], adapter.framer())), speed):
            store.append(scene.session, adapter.feed(frame))
        store.append(scene.session, adapter.finish())
    finally:
        store.append(scene.session, _over(scene))
        store.release(scene.session)


def _paced(recorded: list[Frame], speed: float) -> Iterator[Frame]:
    """The frames, each when its time has come; the time it was spoken is moved to today, and the time between two stays."""
    first = next((frame.time for frame in recorded if frame.time is not None), None)
    moved = now_ms() - (first or 0)
    before: int | None = None
    for frame in recorded:
        if speed:
            passed = STEP if before is None or frame.time is None else (frame.time - before) / 1000
            time.sleep(min(passed / speed, LONGEST_PAUSE))
        before = frame.time
        frame.time = None if before is None else before + moved
        yield frame


def _over(scene: Scene) -> list[Event]:
    """Some agents give their sessions names of their own."""
    return [session_lifecycle(subtype="renamed", title=scene.title), session_lifecycle(subtype="closed")]
