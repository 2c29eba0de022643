"""``hansard demo``: recordings that come with the package, replayed at their own pace into a log and shown as they are written.

One side appends, the other follows the log: what is on the screen has been through framing, adapter, store and cursor.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from hansard.store import Store

FORMAT = "claude-control"
SCENES = {
    "permission_ok": "A tool asks for permission, and gets it",
    "subagent_forward": "A sub-agent works inside a call",
    "interrupt": "The user interrupts, and goes on",
}
LONGEST_PAUSE = 0.25


@click.command("demo")
@click.option("--speed", type=click.FloatRange(min=0), default=1.0, show_default=True, help="Times as fast as it happened; 0: at once.")
@click.option("--keep", type=click.Path(file_okay=False), metavar="DIR", help="Keep the logs in this folder instead of removing them.")
def command(speed: float, keep: str | None) -> None:
    """Replay recorded sessions through the whole road, in the terminal; needs no agent and no account."""
    from hansard.cli.show import print_lines
    from hansard.store import open_store
    from hansard.transcript import Line

    with _folder(keep) as folder:
        store = open_store(folder)
        try:
            for name, what in SCENES.items():
                print_lines([Line(f"━━ {what} ━━", "rule")], raw=False)
                asyncio.run(_scene(store, name, speed))
        finally:
            store.close()
        told = f"{len(SCENES)} sessions, all of it in {Path(folder)}" if keep else f"{len(SCENES)} sessions; --keep DIR keeps their logs"
        click.echo(f"{told}. Your own: hansard import", err=not sys.stdout.isatty())


async def _scene(store: Store, name: str, speed: float) -> None:
    """Write the recording on one thread, follow the log on this one, until the log says that it is closed."""
    from hansard.cli.show import print_lines
    from hansard.events import SessionLifecycle
    from hansard.transcript import Transcript

    session = f"demo-{name}".replace("_", "-")
    store.create(session, format=FORMAT, title=SCENES[name])
    writer = threading.Thread(target=_replay, args=(store, session, name, speed))
    writer.start()
    shown = Transcript(fold=10)
    async for event in store.follow(session):
        if isinstance(event, SessionLifecycle) and event.payload.subtype == "closed":
            break
        print_lines(shown.lines(event), raw=False)
    writer.join()


def _replay(store: Store, session: str, name: str, speed: float) -> None:
    from hansard.adapter import Context
    from hansard.adapters import adapter_for
    from hansard.events import session_lifecycle
    from hansard.framing import frames

    adapter = adapter_for(FORMAT)(Context(source=session))
    before: int | None = None
    try:
        for frame in frames([_recording(name)], adapter.framer()):
            if speed and before is not None and frame.time is not None:
                time.sleep(min((frame.time - before) / 1000 / speed, LONGEST_PAUSE))
            before = frame.time
            store.append(session, adapter.feed(frame))
        store.append(session, adapter.finish())
    finally:
        store.append(session, [session_lifecycle(subtype="closed")])


def _recording(name: str) -> bytes:
    return resources.files("hansard.demo").joinpath(f"{name}.jsonl").read_bytes()


@contextmanager
def _folder(keep: str | None) -> Generator[str]:
    if keep is not None:
        yield keep
        return
    with TemporaryDirectory(prefix="hansard-demo-") as folder:
        yield folder
