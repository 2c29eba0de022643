"""Stands between hansard and an agent's process, so that nothing of it is ever left over. A program of its own; nothing is imported of us.

    python -I -S keeper.py CONTROL STATUS GRACE FOLDER -- PROGRAM ARGUMENT…

The agent has our standard input and outputs; the keeper has none of them. It hears commands on the descriptor CONTROL (a letter each: ``i``
interrupt, ``t`` terminate, ``k`` kill) and tells on STATUS, a line of JSON each, that the agent has started, failed to, or ended. When the
agent is gone, or when hansard is (CONTROL ends), every process that came of the agent is stopped: its group, and on Linux also those that
left it, because orphans become the keeper's children. FOLDER, if it is not empty, has files for the agent alone; it goes with the agent.
"""

import ctypes
import json
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def main() -> None:
    """Start the agent, keep it, and end when nothing of it is left."""
    control, status, grace, folder = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    for ours in (control, status):
        os.set_inheritable(ours, False)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    woken, wakes = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, woken_up)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # the keeper goes last
    agent = start(sys.argv[6:], status, folder)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    keep(agent, control, status, woken, grace, folder)


def woken_up(number: int, frame: object) -> None:
    """A signal only has to end the wait."""


def start(argv: list[str], status: int, folder: str) -> int:
    """The agent's process, in a session of its own. If it cannot be started, that is told, and there is nothing to keep."""
    failed, fails = os.pipe()
    agent = os.fork()
    if agent == 0:
        try:
            os.setsid()
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
                signal.signal(each, signal.SIG_DFL)
            os.execv(argv[0], argv)  # noqa: S606 (that is what a keeper is for)  # nosec B606
        except OSError as problem:
            os.write(fails, (problem.strerror or str(problem)).encode())
        finally:
            os._exit(127)
    os.close(fails)
    problem = os.read(failed, 4096)
    os.close(failed)
    if problem:
        os.waitpid(agent, 0)
        remove(folder)
        report(status, error=problem.decode())
        os._exit(127)
    report(status, pid=agent)
    return agent


def keep(agent: int, control: int, status: int, woken: int, grace: float, folder: str) -> None:
    """Pass commands on until the agent or hansard is gone."""
    deadline: float | None = None
    alone = False
    while True:
        code = reap(agent)
        if code is not None:
            left = stop_rest(agent)
            remove(folder)
            report(status, exit=code if code >= 0 else None, signal=-code if code < 0 else None, left=left)
            return
        if deadline is not None and time.monotonic() >= deadline:
            send(agent, signal.SIGKILL)
            deadline = None
        wait = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = select.select([woken] if alone else [woken, control], [], [], wait)[0]
        if woken in ready:
            os.read(woken, 512)
        if control in ready:
            commands = os.read(control, 64)
            alone = not commands
            for command in commands or b"t":
                if command == ord("i"):
                    send(agent, signal.SIGINT)
                elif command == ord("t"):
                    send(agent, signal.SIGTERM)
                    deadline = deadline or time.monotonic() + grace
                elif command == ord("k"):
                    send(agent, signal.SIGKILL)


def reap(agent: int) -> int | None:
    """The agent's exit code (a signal as a negative number), once it has ended; orphans that ended are taken in on the way."""
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == agent:
                return os.waitstatus_to_exitcode(status)
            if pid == 0:
                return None
    except ChildProcessError:
        return None


def stop_rest(agent: int) -> int:
    """Stop what the agent left behind, and count it. Each is asked once; whoever is still there after a moment is not asked."""
    asked = set(descendants())
    send(agent, signal.SIGTERM)
    for pid in asked:
        signal_process(pid, signal.SIGTERM)
    patience = time.monotonic() + 0.5
    while rest := descendants():
        for pid in rest:
            if time.monotonic() > patience:
                signal_process(pid, signal.SIGKILL)
            elif pid not in asked:
                asked.add(pid)
                signal_process(pid, signal.SIGTERM)
        reap(agent)
        time.sleep(0.02)
    send(agent, signal.SIGKILL)
    return len(asked)


def descendants() -> list[int]:
    """Every process that came of us, as the kernel lists them. Elsewhere than on Linux the group is all that is known."""
    parents: dict[int, list[int]] = {}
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    for name in names:
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b") ")[2].split()
        except OSError:
            continue
        if fields[0] not in (b"Z", b"X"):
            parents.setdefault(int(fields[1]), []).append(int(name))
    found: list[int] = []
    ask = [os.getpid()]
    while ask:
        children = parents.get(ask.pop(), [])
        found += children
        ask += children
    return found


def send(group: int, number: int) -> None:
    """Signal the agent's group."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass


def signal_process(pid: int, number: int) -> None:
    """Signal one process."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def remove(folder: str) -> None:
    """Remove the files that were for the agent alone."""
    try:
        for name in os.listdir(folder) if folder else ():
            os.unlink(os.path.join(folder, name))
        if folder:
            os.rmdir(folder)
    except OSError:
        pass


def report(status: int, **news: object) -> None:
    """A line for hansard, which may be gone."""
    try:
        os.write(status, json.dumps(news).encode() + b"\n")
    except OSError:
        pass


def prctl(option: int, value: int) -> None:
    """Ask the kernel for something only Linux has."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
