"""How children behave, and what is done about it: every case of bad-input/subprocess, each with a small real program."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hansard.agents import pump
from hansard.agents.base import Agent
from hansard.agents.process import MAX_UNSENT_BYTES, Command, Process
from hansard.agents.session import Session
from hansard.agents.transport import Exited, Output
from hansard.errors import AgentGone, AgentNotStarted
from hansard.events import Event
from hansard.events.originals import unwrap
from hansard.store import JsonlStore
from tests.driving.puppet import child
from tests.driving.surroundings import PATIENCE, until
from tests.proof import SEED, Figures, amount, proves

pytestmark = pytest.mark.anyio

CASES = {case["id"]: case for case in map(json.loads, (Path(__file__).parents[1] / "bad-input/subprocess.jsonl").read_text().splitlines())}
SLEEP = "import time; time.sleep(600)"


class Play:
    """A store with a session whose agent is a program."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = JsonlStore(folder / "store")

    async def session(self, source: str) -> Session:
        agent, options = child(textwrap.dedent(source))
        options.cwd = str(self.folder)
        return await Session.create(self.store, agent, options)

    async def run(self, source: str) -> list[Event]:
        """The log of a session whose agent runs to its end by itself."""
        session = await self.session(source)
        await session.start()
        await ends(session)
        return list(self.store[session.id].read())

    def log(self, session: Session) -> list[Event]:
        return list(self.store[session.id].read())


async def ends(session: Session) -> None:
    async with asyncio.timeout(PATIENCE):
        while session.running:
            await asyncio.sleep(0.01)


def the_exit(events: list[Event]) -> Event:
    [exited] = [event for event in events if event.type == "process" and event.payload.event == "exited"]
    return exited


def frames_written(events: list[Event]) -> list[bytes]:
    """The frames the agent wrote, as they were."""
    return [unwrap(event.original) for event in events if event.original is not None and event.stream is None and event.direction is None]


def complaints(events: list[Event]) -> str:
    return "".join(event.payload.text for event in events if event.type == "process" and event.payload.event == "stderr")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


async def gone(pid: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while alive(pid):
            await asyncio.sleep(0.02)


# --------------------------------------------------------------------------------------------------------------------
# One function per case


async def clean_exit(play: Play) -> None:
    events = await play.run("print('a line')")
    assert the_exit(events).payload.exit_code == 0
    assert frames_written(events) == [b"a line"]
    assert not [event for event in events if event.type == "error"]


async def exit_nonzero(play: Play) -> None:
    events = await play.run("import sys; print('a line'); sys.stderr.write('x' * 10_000 + 'the end'); sys.exit(3)")
    assert the_exit(events).payload.exit_code == 3
    [trouble] = [event for event in events if event.type == "error"]
    assert trouble.payload.details["stderr"].endswith("the end")
    assert complaints(events) == "x" * 10_000 + "the end"


async def not_found(play: Play) -> None:
    await not_started(play, str(play.folder / "nothing"))


async def not_executable(play: Play) -> None:
    program = play.folder / "program"
    program.write_text("#!/bin/sh\n")
    await not_started(play, str(program))


async def not_started(play: Play, program: str) -> None:
    session = await play.session("")
    session._launch.options.program = program
    find, session.agent.__class__.find = session.agent.__class__.find, Agent.find
    try:
        with pytest.raises(AgentNotStarted, match="program"):
            await session.start()
    finally:
        session.agent.__class__.find = find
    assert play.log(session)[-1].type == "error"
    with pytest.raises(AgentNotStarted):
        await Process.start(Command(argv=[program], cwd=str(play.folder), env={}))


async def killed(play: Play) -> None:
    session = await play.session("import os, sys; sys.stdin.readline(); os.kill(os.getpid(), 9)")
    await session.send("hello")
    await ends(session)
    events = play.log(session)
    assert the_exit(events).payload.signal == 9
    assert [event.payload.status for event in events if event.type == "turn_end"] == ["error"]


async def stdout_flood_stdin_block(play: Play) -> None:
    session = await play.session("import sys; print('x' * 128_000, flush=True); print(len(sys.stdin.readline()))")
    await session.send("y" * 128_000)
    await ends(session)
    first, second = frames_written(play.log(session))
    assert len(first) == 128_000
    assert int(second) > 128_000


async def stderr_flood(play: Play) -> None:
    events = await play.run("import sys; sys.stderr.write('x' * 50_000_000)")
    assert len(complaints(events)) == 50_000_000


async def never_reads_stdin(play: Play) -> None:
    stuck, other = await play.session(SLEEP), await play.session("import sys; print(len(sys.stdin.readline()))")
    await stuck.send("y" * (MAX_UNSENT_BYTES - 100_000))
    with pytest.raises(AgentGone, match="does not read"):
        await stuck._running_pump.send(_message("y" * 200_000))
    await other.send("hello")
    await ends(other)
    assert len(frames_written(play.log(other))) == 1
    await stuck.stop()


def _message(text: str) -> Event:
    from hansard.events import user_message

    return user_message(text=text)


async def closes_stdout(play: Play) -> None:
    before, pump.EXIT_SECONDS = pump.EXIT_SECONDS, 0.1
    try:
        events = await play.run(f"import os; print('last', flush=True); os.close(1); {SLEEP}")
    finally:
        pump.EXIT_SECONDS = before
    assert frames_written(events) == [b"last"]
    assert the_exit(events).payload.signal == signal.SIGTERM


async def grandchild_holds_pipe(play: Play) -> None:
    events = await play.run(f"import os\npid = os.fork()\nif pid == 0:\n    {SLEEP}\nprint(pid, flush=True)")
    assert the_exit(events).payload.exit_code == 0
    assert "1 processes" in the_exit(events).payload.text
    await gone(int(frames_written(events)[0]))


async def ignores_sigterm(play: Play) -> None:
    session = await play.session(f"import signal; [signal.signal(n, signal.SIG_IGN) for n in (2, 15)]; print('deaf', flush=True); {SLEEP}")
    await session.start()
    await until(session, lambda past: past.frames > 0)
    await session.stop()
    assert the_exit(play.log(session)).payload.signal == signal.SIGKILL


async def double_fork(play: Play) -> None:
    source = f"""
        import os, sys
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                print(os.getpid(), flush=True)
                {SLEEP}
            os._exit(0)
        sys.stdin.readline()
        """
    session = await play.session(source)
    await session.start()
    await until(session, lambda past: past.frames > 0)
    await session.stop()
    events = play.log(session)
    assert "1 processes" in the_exit(events).payload.text
    await gone(int(frames_written(events)[0]))


STARTS = """
from pathlib import Path
from tests.driving.test_processes import Play, start_and_stop

asyncio.run(start_and_stop(Play(Path(sys.argv[1])), int(sys.argv[2])))
"""


@proves("R-01", "R-02")
@pytest.mark.slow
async def test_many_starts_and_ends_leave_nothing(tmp_path: Path, figure: Figures) -> None:
    """In a process of its own: what other tests leave behind is not counted."""
    program = tmp_path / "starts.py"
    program.write_text(f"import asyncio, sys\nsys.path.insert(0, {str(Path(__file__).parents[2])!r})\n" + STARTS)
    runs = amount(60, 500)
    done = await asyncio.to_thread(subprocess.run, [sys.executable, program, tmp_path, str(runs)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    figure("starts", runs)
    for name, value in found.items():
        figure(name, value)


async def start_and_stop(play: Play, runs: int) -> None:
    """Many agents, one after the other; what they leave behind is told."""
    await play.run("print(1)")
    gc.collect()
    descriptors, memory = len(os.listdir("/proc/self/fd")), resident()
    for _ in range(runs):
        session = await play.session("print(1)")
        await session.start()
        await ends(session)
        play.store[session.id].release()
    for _ in range(100):  # the event loop closes the pipes of the last process when it has time
        gc.collect()
        if len(os.listdir("/proc/self/fd")) <= descriptors:
            break
        await asyncio.sleep(0.05)
    zombies = len([pid for pid in children() if state_of(pid) == "Z"])
    left = {"zombies": zombies, "descriptors more": len(os.listdir("/proc/self/fd")) - descriptors, "kB more": resident() - memory}
    print(json.dumps(left))


def resident() -> int:
    return next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))


def children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def state_of(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except OSError:
        return ""


async def cancel_during_start(play: Play) -> None:
    before = set(children())
    for after in (0, 0.005, 0.02, 0.05, 0.1):
        session = await play.session(SLEEP)
        starting = asyncio.create_task(session.start())
        await asyncio.sleep(after)
        starting.cancel()
        await asyncio.wait([starting])
        await session.stop()
    assert set(children()) <= before  # one of another test may have ended meanwhile


@proves("R-03")
async def test_whenever_a_start_is_cancelled_nobody_is_left(tmp_path: Path, figure: Figures) -> None:
    """Also when whoever started it never stops it, and when the agent has a child of its own."""
    play, chance = Play(tmp_path), random.Random(SEED)
    source = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}]); {SLEEP}"
    whole = 0.0
    for _ in range(2):  # the first one takes longer
        session, began = await play.session(source), time.monotonic()
        await session.start()
        whole = time.monotonic() - began
        await session.stop()
    cancels, begun = amount(20, 200), 0
    for _ in range(cancels):
        session = await play.session(source)
        starting = asyncio.create_task(session.start())
        await asyncio.sleep(chance.uniform(0, 1.5 * whole))
        if starting.done():
            begun += 1
            await session.stop()
        starting.cancel()
        await asyncio.wait([starting])
        play.store[session.id].release()
        await all_gone(tmp_path)
    figure("cancelled", cancels - begun)
    figure("too late", begun)
    figure("orphans", 0)


async def all_gone(folder: Path) -> None:
    """Waits until no process works in a folder. git, which is asked about the folder, ends by itself; an agent that is left would not."""
    async with asyncio.timeout(10):
        while [pid for pid in working_in(folder) if alive(pid)]:
            await asyncio.sleep(0.01)


def working_in(folder: Path) -> list[int]:
    """The processes that were started in a folder, whoever is their parent by now."""

    def place(pid: str) -> str | None:
        try:
            return os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            return None

    return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and place(pid) == str(folder)]


@proves("R-03")
async def test_a_start_that_is_cancelled_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even while the agent has to be made to end: this keeper takes as long as the test wants."""
    keeper, begun, go = tmp_path / "keeper.py", tmp_path / "begun", tmp_path / "go"
    keeper.write_text(_SLOW_KEEPER.format(begun=str(begun), go=str(go)))
    monkeypatch.setattr("hansard.agents.process.KEEPER", keeper)
    starting = asyncio.create_task(Process.start(Command(argv=["agent"], cwd=str(tmp_path), env=dict(os.environ))))
    async with asyncio.timeout(PATIENCE):
        while not begun.exists():
            await asyncio.sleep(0.01)
    starting.cancel()
    for _ in range(20):
        await asyncio.sleep(0.01)
    assert not starting.done()
    go.touch()
    await asyncio.wait([starting])
    assert starting.cancelled()
    assert not working_in(tmp_path)


_SLOW_KEEPER = """
import os, pathlib, sys, time
pathlib.Path({begun!r}).touch()
os.read(int(sys.argv[1]), 1)
while not os.path.exists({go!r}):
    time.sleep(0.01)
"""


@proves("R-01", "R-04")
async def test_when_hansard_is_killed_its_agents_go_too(tmp_path: Path, figure: Figures) -> None:
    """Ten agents, each with a child that ignores SIGTERM, and whoever runs them is killed: none is left, and the next start closes the
    sessions with the reason."""
    for number in range(amount(1, 10)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with (play := Play(folder)).store:
            began = await _killed_with_ten(play)
            figure("agents", 10)
            figure("seconds until all were gone", time.monotonic() - began)
            assert len(play.store.sessions()) == 10
            for info in play.store.sessions():
                session = await Session.open(play.store, info.id)
                events = play.log(session)
                assert [event.payload.status for event in events if event.type == "turn_end"] == ["lost"]
                killed = [event.payload.text for event in events if event.type == "process" and event.payload.event == "killed"]
                assert killed == ["hansard was restarted"]


async def _killed_with_ten(play: Play) -> float:
    program = play.folder / "server.py"
    program.write_text(
        _SERVER.format(tests=str(Path(__file__).parents[2]), store=str(play.store.root), folder=str(play.folder), source=_WITH_A_DEAF_CHILD)
    )
    server = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    pids = [int(pid) for pid in server.stdout.readline().split()]
    assert len(pids) == 20
    assert all(map(alive, pids))
    server.kill()
    server.wait()
    server.stdout.close()
    began = time.monotonic()
    for pid in pids:
        await gone(pid)
    assert not [pid for pid in working_in(play.folder) if alive(pid) and pid in pids]
    return began


_WITH_A_DEAF_CHILD = f"""
import os, signal, sys
if (child := os.fork()) == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    {SLEEP}
print(child, flush=True)
{SLEEP}
"""


_SERVER = """
import asyncio, sys
sys.path.insert(0, {tests!r})
from hansard.events.originals import unwrap
from hansard.agents.session import Session
from hansard.store import JsonlStore
from tests.driving.puppet import child

async def main():
    store, pids = JsonlStore({store!r}), []
    for number in range(10):
        agent, options = child({source!r})
        options.cwd = {folder!r}
        session = await Session.create(store, agent, options)
        await session.send("hello")
        await session.until(lambda past: past.frames > 1)
        said = [int(unwrap(event.original)) for event in store[session.id].read(types=["raw"]) if event.direction is None]
        pids += [session.state.process_id, *said]
    print(*pids, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@proves("R-06")
@pytest.mark.slow
async def test_one_that_ignores_everything_goes_with_all_its_descendants(tmp_path: Path, figure: Figures) -> None:
    """Thirty of them, down and beside, in groups and sessions of their own, and all as deaf as it is."""
    for number in range(amount(1, 10)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with (play := Play(folder)).store:
            session = await play.session(_DEAF_FAMILY)
            await session.start()
            await until(session, lambda past: past.frames >= 31)
            family = [int(line) for line in frames_written(play.log(session))]
            assert len(family) == 31 and all(map(alive, family))
            began = time.monotonic()
            await session.stop()
            figure("seconds until all were gone", time.monotonic() - began)
            assert not [pid for pid in family if alive(pid)]
            assert the_exit(play.log(session)).payload.signal == signal.SIGKILL
            figure("descendants", 30)


_DEAF_FAMILY = f"""
import os, signal
for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(each, signal.SIG_IGN)
for number in range(30):
    if os.fork() == 0:
        if number % 3 == 1:
            os.setsid()
        if number % 3 == 0:
            continue  # the next one is its child
        os.write(1, b"%d\\n" % os.getpid())
        {SLEEP}
    elif number % 3 == 0:
        break
os.write(1, b"%d\\n" % os.getpid())
{SLEEP}
"""


async def silent(play: Play) -> None:
    """No clock ends a process that says nothing, so a second is as good as ten minutes."""
    events = await play.run("import time; time.sleep(1); print('after all')")
    assert frames_written(events) == [b"after all"]


async def slow_drip(play: Play) -> None:
    events = await play.run("import sys, time\nfor c in 'a slow line\\n':\n    print(c, end='', flush=True); time.sleep(0.01)")
    assert frames_written(events) == [b"a slow line"]


async def huge_line_then_normal(play: Play) -> None:
    session = await play.session("print('x' * 20_000_000); print('short')")
    await session.start()
    await ends(session)
    events = [event for event in play.log(session) if event.frame is not None]
    assert [play.store[session.id].original(event) for event in events if event.original is not None] == [b"x" * 20_000_000, b"short"]


async def reads_env(play: Play) -> None:
    os.environ["HANSARD_TOKEN"] = "secret of the server"
    try:
        other = await play.session(SLEEP)
        other._launch.options.env = {"API_KEY": "secret of another session"}
        await other.start()
        events = await play.run("import os; print(dict(os.environ))")
        await other.stop()
    finally:
        del os.environ["HANSARD_TOKEN"]
    assert b"PATH" in frames_written(events)[0]
    assert b"secret" not in frames_written(events)[0]
    assert not [line for line in (play.store.root / other.id / "events.jsonl").read_bytes().splitlines() if b"secret" in line]


async def inherits_fds(play: Play) -> None:
    events = await play.run(
        "import os; print(sorted(int(fd) for fd in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + fd)))"
    )
    assert frames_written(events) == [b"[0, 1, 2]"]


async def writes_outside_utf8(play: Play) -> None:
    events = await play.run("import sys; sys.stdout.buffer.write(bytes(range(0x80, 0x100)) + b'\\n')")
    assert frames_written(events) == [bytes(range(0x80, 0x100))]
    assert [event.payload.reason for event in events if event.type == "raw"] == ["invalid_utf8"]


async def tty_check(play: Play) -> None:
    assert frames_written(await play.run("import os; print([os.isatty(n) for n in (0, 1, 2)])")) == [b"[False, False, False]"]


async def signals_parent_group(play: Play) -> None:
    events = await play.run(f"import os; os.kill(0, 15); {SLEEP}")
    assert the_exit(events).payload.signal == signal.SIGTERM


async def fork_bomb_small(play: Play) -> None:
    source = f"""
        import os, sys
        for _ in range(200):
            if os.fork() == 0:
                {SLEEP}
        print('done', flush=True)
        sys.stdin.readline()
        """
    session = await play.session(source)
    await session.start()
    await until(session, lambda past: past.frames > 0)
    other = await play.run("print('unaffected')")
    assert frames_written(other) == [b"unaffected"]
    await session.send("enough")
    await ends(session)
    assert "200 processes" in the_exit(play.log(session)).payload.text


async def stop_twice(play: Play) -> None:
    session = await play.session(SLEEP)
    await session.start()
    await asyncio.gather(session.stop(), session.stop())
    await session.stop()
    the_exit(play.log(session))


async def stdin_eof_on_first_result(play: Play) -> None:
    source = """
        import json, sys
        sys.stdin.readline()
        print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "first"}), flush=True)
        asks = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}
        print(json.dumps({"type": "control_request", "request_id": "p1", "request": asks}), flush=True)
        reply = json.loads(sys.stdin.readline())["response"]["response"]
        print(json.dumps({"type": "system", "subtype": "status", "status": reply["behavior"]}))
        """
    session = await play.session(source)
    await session.send("hello")
    await until(session, lambda past: "p1" in past.asked)
    await session.decide("p1", "allow")
    await ends(session)
    assert [event.payload.status for event in play.log(session) if event.type == "status_change"][-1:] == ["allow"]


ALONE = {"zombie-check", "server-killed"}
"""These have a test of their own above, which counts."""
FLOODS = {"stdout-flood-stdin-block", "stderr-flood"}
PLAYS: dict[str, Callable[[Play], Awaitable[None]]] = {name: globals()[name.replace("-", "_")] for name in CASES.keys() - ALONE}


@proves("R-01")
@pytest.mark.parametrize("name", sorted(PLAYS.keys() - FLOODS))
@pytest.mark.slow
async def test_child(name: str, tmp_path: Path, figure: Figures) -> None:
    with (play := Play(tmp_path)).store:
        await PLAYS[name](play)
    figure("children", 1)


@proves("R-01", "R-05")
@pytest.mark.parametrize("name", sorted(FLOODS))
async def test_nobody_waits_for_the_other_for_ever(name: str, tmp_path: Path, figure: Figures) -> None:
    began = time.monotonic()
    with (play := Play(tmp_path)).store:
        await PLAYS[name](play)
    figure(f"seconds, {name}", time.monotonic() - began)


async def test_a_process_is_told_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWD", "/somewhere/else")
    events = await Play(tmp_path).run("import os; print(os.environ['PWD'] == os.getcwd())")
    assert frames_written(events) == [b"True"]


async def test_what_a_process_says_is_all_read_however_slowly(tmp_path: Path) -> None:
    source = "import sys; sys.stdout.write('x' * 3_000_000)"
    process = await Process.start(Command(argv=[sys.executable, "-c", source], cwd=str(tmp_path), env=dict(os.environ)))
    size, ended = 0, None
    async for piece in process:
        await asyncio.sleep(0.01)
        if isinstance(piece, Output):
            size += len(piece.data)
        ended = piece
    assert size == 3_000_000
    assert ended == Exited(0, None)
