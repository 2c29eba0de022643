"""The recordings that come with hansard, as their wires spoke, and how one is played into a log at its own pace."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from importlib import resources

from msgspec import Struct

from hansard.adapters import adapter_for
from hansard.adapters.base import Context
from hansard.adapters.framing import Frame, frames
from hansard.events import Event, session_lifecycle
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


def play(store: Store, scene: Scene, speed: float = 1.0, stop: threading.Event | None = None) -> None:
    """Writes the scene into its log, frame by frame, at the recorded pace (at once if ``speed`` is 0), then closes the log.

    ``stop`` ends it early, before the next frame.
    """
    adapter = adapter_for(scene.format)(Context(source=scene.session))
    try:
        for frame in _paced(list(frames([scene.recording()], adapter.framer())), speed, stop or threading.Event()):
            store[scene.session].append(adapter.feed(frame))
        store[scene.session].append(adapter.finish())
    finally:
        store[scene.session].append(_over(scene))
        store[scene.session].release()


def _paced(recorded: list[Frame], speed: float, stop: threading.Event) -> Iterator[Frame]:
    """Yields each frame when it is due, until stopped. Frame times are moved to today; the time between two frames stays."""
    first = next((frame.time for frame in recorded if frame.time is not None), None)
    moved = now_ms() - (first or 0)
    before: int | None = None
    for frame in recorded:
        elapsed = STEP if before is None or frame.time is None else (frame.time - before) / 1000
        if stop.wait(min(elapsed / speed, LONGEST_PAUSE) if speed else 0):
            return
        before = frame.time
        frame.time = None if before is None else before + moved
        yield frame


def _over(scene: Scene) -> list[Event]:
    """Some agents give their sessions names of their own."""
    return [session_lifecycle(subtype="renamed", title=scene.title), session_lifecycle(subtype="closed")]
