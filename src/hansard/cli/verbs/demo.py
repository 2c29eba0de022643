"""``hansard demo``: recordings that come with the package, replayed at their own pace into logs and shown as they are written.

One side appends, the other follows the log: what is on the screen has been through framing, adapter, store and cursor.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import aclosing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from hansard.cli.options import open_option

if TYPE_CHECKING:
    from hansard.demo.scenes import Scene
    from hansard.store import Store

TALK = "demo-talk"
"""The session with the demo agent."""
FILES = {
    "poem.txt": "The rain on the roof\nkeeps its own record of us\nand forgets nothing\n",
    "answer.py": "def answer():\n    return 41\n",
}
"""What the demo agent finds in its folder."""
APART = 0.6
"""Seconds between the beginnings of two scenes."""


@click.command("demo")
@click.option("--terminal", is_flag=True, help="Show the recordings here instead of serving the page.")
@click.option("--speed", type=click.FloatRange(min=0), default=1.0, show_default=True, help="Times as fast as it happened; 0: at once.")
@click.option("--keep", type=click.Path(file_okay=False), metavar="DIR", help="Keep the logs in this folder instead of removing them.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The page's port; any that is free if not said.")
@open_option
def command(terminal: bool, speed: float, keep: str | None, port: int, opens: bool | None) -> None:
    """Explore sample sessions and talk to a demo agent.

    Replays recorded sessions in your browser. No agent, account, or network is needed.
    """
    with _folder(keep) as folder:
        if terminal:
            _show(folder, speed, kept=keep is not None)
        else:
            _serve(folder, speed, port, opens)


# ---- the page


def _serve(folder: Path, speed: float, port: int, opens: bool | None) -> None:
    from hansard.cli.verbs.serve import wants_page
    from hansard.server.app import app
    from hansard.server.protocol import Limits
    from hansard.server.tokens import Token
    from hansard.server.uvicorn_protocols import Listener, bound, hosts_of
    from hansard.store import open_store

    listening = bound("127.0.0.1", port)
    port = listening.getsockname()[1]
    token = Token.make("participant")
    link = f"http://127.0.0.1:{port}/?token={token.secret}#{TALK}"
    with open_store(folder) as store:
        _invite(store, folder)
        made = app(store, [token], hosts_of("127.0.0.1", port))
        threading.Thread(target=_greet, args=(port, token.secret), daemon=True).start()

        def ready() -> None:
            click.echo(f"The demo is at {link}")
            click.echo("Ctrl-C ends it.", err=True)
            if wants_page(opens):
                click.launch(link)

        with _threads() as threads:
            threads.start(lambda: _play_all(store, speed, threads))
            Listener(made, Limits(), ready=ready).run(sockets=[listening])


def _invite(store: Store, folder: Path) -> None:
    """A session with the demo agent, in a folder with something in it."""
    from hansard.agents.base import Options
    from hansard.agents.session import Session
    from hansard.errors import SessionExists

    work = folder / "work"
    work.mkdir(exist_ok=True)
    for name, text in FILES.items():
        (work / name).write_text(text)
    try:
        asyncio.run(Session.create(store, "demo", Options(cwd=str(work)), TALK, "Talk to the demo agent"))
    except SessionExists:
        return  # it was kept
    store[TALK].release()


def _play_all(store: Store, speed: float, threads: _Threads) -> None:
    """Plays every scene, each on its own thread and starting a little after the one before."""
    from hansard.demo.scenes import SCENES

    known = {info.id for info in store.sessions()}
    for scene in SCENES:
        if scene.session not in known:
            threads.start(lambda scene=scene: _play(store, scene, speed, threads.stop))
            if threads.stop.wait(APART / speed if speed else 0):
                return


def _play(store: Store, scene: Scene, speed: float, stop: threading.Event) -> None:
    from hansard.demo.scenes import play
    from hansard.errors import HansardError

    try:
        scene.begin(store)
        play(store, scene, speed, stop)
    except HansardError as problem:
        click.echo(f"{scene.title}: {problem}", err=True)


def _greet(port: int, secret: str) -> None:
    """Sends the first message to the demo agent, through the server."""
    from hansard import events as ev
    from hansard.errors import HansardError
    from hansard.server.client import connect

    greeting = ev.UserMessage(payload=ev.UserMessagePayload("help"), command_id="demo-greeting")

    async def greet() -> None:
        async with connect(f"http://127.0.0.1:{port}", secret) as server:
            await server.do(TALK, greeting)  # a folder that is kept is greeted once

    try:
        asyncio.run(greet())
    except (HansardError, OSError) as problem:
        click.echo(f"the demo agent does not answer: {problem}", err=True)


# ---- the terminal


def _show(folder: Path, speed: float, kept: bool) -> None:
    from hansard.cli.verbs.show import print_lines
    from hansard.demo.scenes import SCENES
    from hansard.projections.transcript import Line
    from hansard.store import open_store

    with open_store(folder) as store:
        for scene in SCENES:
            print_lines([Line(f"━━ {scene.title} ━━", "rule")], raw=False)
            asyncio.run(_scene(store, scene, speed))
    told = f"{len(SCENES)} sessions, all of it in {folder}" if kept else f"{len(SCENES)} sessions; --keep DIR keeps their logs"
    click.echo(f"{told}. Your own: hansard import", err=not sys.stdout.isatty())


async def _scene(store: Store, scene: Scene, speed: float) -> None:
    """Write the recording on one thread, follow the log on this one, until the log says that it is closed."""
    from hansard.cli.verbs.show import print_lines
    from hansard.demo.scenes import play
    from hansard.events import SessionLifecycle
    from hansard.projections.transcript import Transcript

    scene.begin(store)
    shown = Transcript(fold=10)
    with _threads() as threads:
        threads.start(lambda: play(store, scene, speed, threads.stop))
        async with aclosing(store[scene.session].follow()) as events:
            async for event in events:
                if isinstance(event, SessionLifecycle) and event.payload.subtype == "closed":
                    break
                print_lines(shown.lines(event), raw=False)
    print_lines(shown.finish(), raw=False)


class _Threads:
    """Threads that write into the demo's logs."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._started: list[threading.Thread] = []

    def start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work)
        self._started.append(thread)
        thread.start()

    def join(self) -> None:
        for thread in self._started:  # a thread may start others before it ends
            thread.join()


@contextmanager
def _threads() -> Generator[_Threads]:
    """Stops the threads and waits for them, also on Ctrl-C: the folder they write to may be removed next."""
    threads = _Threads()
    try:
        yield threads
    finally:
        threads.stop.set()
        threads.join()


@contextmanager
def _folder(keep: str | None) -> Generator[Path]:
    if keep is not None:
        Path(keep).mkdir(parents=True, exist_ok=True, mode=0o700)
        yield Path(keep)
        return
    with TemporaryDirectory(prefix="hansard-demo-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
