"""``hansard doctor``: what is here. It only looks, unless it is asked to remove files, and it never fails because something is missing."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import click

from hansard._version import __version__
from hansard.cli.agent_versions import VERSION, compare
from hansard.cli.options import json_option, store_option, store_place

if TYPE_CHECKING:
    from hansard.agents.base import Agent
    from hansard.store import StoreLocation

PATIENCE = 10.0
"""How many seconds a program has to say its version."""

COMPARED = {"newer": "newer than tested", "same": "tested", "older": "older than tested"}
ADVICE = "newer than tested: run `hansard audit --against` on a session, it says what is new on the wire"


@click.command("doctor")
@click.option(
    "--remove-handoffs", is_flag=True, help="Remove the session files that hansard wrote for hand-offs and no agent has continued."
)
@store_option
@json_option
def command(store: str | None, as_json: bool, remove_handoffs: bool) -> None:
    """Check installed agents, versions, and the store.

    Also lists the session files that hansard wrote into agents' folders, for agents that took over a conversation.
    """
    found = examine(store_place(store), remove_handoffs)
    if as_json:
        from hansard.cli.tables import print_json

        print_json(found)
    else:
        show(found)


def examine(store: StoreLocation, remove_handoffs: bool = False) -> dict[str, Any]:
    """Everything the doctor looks at."""
    from hansard.adapters import formats

    versions = tested_versions()
    looked_for = programs(versions)
    with ThreadPoolExecutor(len(looked_for)) as pool:
        agents = list(pool.map(look_for, looked_for, [versions[name] for name in looked_for]))
    return {
        "hansard": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "store": look_at(store),
        "handoffs": handoffs(store, remove_handoffs),
        "agents": agents,
        "driven": driven({agent["path"]: agent["version"] for agent in agents if agent["path"]}),
        "formats": sorted(formats()),
        "tested": versions,
        "plugins": plugged_in(),
    }


def handoffs(store: StoreLocation, remove: bool) -> list[dict[str, Any]]:
    """The session files that hansard wrote for agents that took over."""
    import msgspec

    from hansard.agents.handoff_files import find_handoff_files, remove_handoff_files
    from hansard.errors import HansardError
    from hansard.store import open_store

    if not isinstance(store, str) and not store.is_dir():
        return []
    try:
        with open_store(store) as opened:
            return [msgspec.to_builtins(file) for file in (remove_handoff_files if remove else find_handoff_files)(opened)]
    except (HansardError, OSError):
        return []  # the line about the store says why


def plugged_in() -> list[dict[str, Any]]:
    """What other packages add, and what is wrong with it."""
    import msgspec

    from hansard import adapters, agents, projections, store

    kinds = (adapters.PLUGINS, agents.PLUGINS, projections.PLUGINS, store.STORE_PLUGINS)
    return [msgspec.to_builtins(plugin) for kind in kinds for plugin in kind.report()]


def tested_versions() -> dict[str, str]:
    """By program: the versions that any adapter was tested with."""
    from hansard.adapters import tested

    found: dict[str, list[str]] = {}
    for programs in tested().values():
        for program, version in programs.items():
            found.setdefault(program, []).append(version)
    return {program: ", ".join(dict.fromkeys(versions)) for program, versions in found.items()}


def programs(versions: dict[str, str]) -> list[str]:
    """What is looked for on the PATH: everything tested that is a program. What is none says so: ``openai (Python SDK)``."""
    return sorted(name for name in versions if " (" not in name)


def look_for(name: str, tested: str) -> dict[str, Any]:
    """A program: where it is, what it says its version is, and whether that is newer than what was tested."""
    path = shutil.which(name)
    found: dict[str, Any] = {"agent": name, "path": path, "version": None, "tested": tested, "compared": None, "problem": None}
    if path is None:
        return found
    try:
        said = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False, start_new_session=True
        )
    except subprocess.TimeoutExpired:
        found["problem"] = f"no answer within {PATIENCE:.0f} seconds"
    except OSError as problem:
        found["problem"] = problem.strerror
    else:
        text = (said.stdout or said.stderr).decode("utf-8", "replace")
        version = VERSION.search(text)
        found["version"] = version.group() if version else text.strip()[:80] or None
        found["compared"] = compare(found["version"], tested)
        if said.returncode != 0:
            found["problem"] = f"--version ended with exit code {said.returncode}"
    return found


def driven(versions: dict[str, str | None]) -> list[dict[str, Any]]:
    """Every agent that `hansard run` can talk to: whether it is here, and what it can do."""
    from hansard.agents import agents

    return [_driven(agent, versions) for _, agent in sorted(agents().items())]


def _driven(agent: Agent, versions: dict[str, str | None]) -> dict[str, Any]:
    import msgspec

    from hansard.agents.base import Options
    from hansard.errors import HansardError

    program, problem = None, None
    try:
        program = agent.find(Options())
    except HansardError as missing:
        problem = str(missing)
    about = {"agent": agent.name, "title": agent.title, "format": agent.format, "program": program, "problem": problem}
    return about | {"version": versions.get(program or ""), "can": msgspec.to_builtins(agent.capabilities)}


def look_at(store: StoreLocation) -> dict[str, Any]:
    """The store: whether it is there, can be written, and what is in it. Integrity is what `verify` is for."""
    if isinstance(store, str):
        return look_at_database(store)
    found: dict[str, Any] = {"path": str(store), "exists": store.is_dir(), "writable": None, "sessions": 0, "bytes": 0, "problems": []}
    if not found["exists"]:
        found["problems"] = [f"{store} is a file, not a folder"] if store.exists() else []
        return found
    from hansard.store import open_store

    found["writable"] = os.access(store, os.W_OK | os.X_OK)
    try:
        sessions = open_store(store).sessions()
    except OSError as problem:
        found["problems"] = [problem.strerror or str(problem)]
        return found
    found["sessions"], found["bytes"] = len(sessions), sum(info.bytes for info in sessions)
    found["free"] = shutil.disk_usage(store).free
    found["problems"] = [f"{info.id}: {info.problem}" for info in sessions if info.problem]
    if not found["writable"]:
        found["problems"].insert(0, "it cannot be written")
    return found


def look_at_database(store: str) -> dict[str, Any]:
    """The same of a store in a database."""
    from hansard.errors import HansardError
    from hansard.store import display_location, open_store

    found: dict[str, Any] = {"path": display_location(store), "exists": True, "writable": None, "sessions": 0, "bytes": 0, "problems": []}
    try:
        with open_store(store) as opened:
            sessions = opened.sessions()
    except HansardError as problem:
        return found | {"problems": [str(problem)]}
    return found | {"sessions": len(sessions), "bytes": sum(info.bytes for info in sessions)}


def show(found: dict[str, Any]) -> None:
    """The same for people."""
    from hansard.cli.tables import print_list, print_table, print_wrapped, sized, style
    from hansard.projections.terminal_text import visible_line

    print_wrapped(f"hansard {found['hansard']}, Python {found['python']}, {found['platform']}")
    store = found["store"]
    if store["exists"]:
        free = f", {sized(store['free'])} free" if "free" in store else ""
        print_list("store", [f"{store['path']}: {store['sessions']} sessions, {sized(store['bytes'])}{free}"])
    else:
        print_list("store", [f"{store['path']}: not there yet, the first import makes it"])
    for problem in store["problems"]:
        click.echo(style(f"        {visible_line(problem)}", fg="red"))
    for file in found["handoffs"]:
        click.echo(visible_line(f"handoff {file['path']}: {file['state']}, for session {file['sessionId']}"))
    click.echo()
    rows = [
        (
            agent["agent"],
            agent["version"] or ("?" if agent["path"] else "–"),
            agent["tested"] or "–",
            COMPARED.get(agent["compared"], ""),
            agent["problem"] or agent["path"] or "not on the PATH",
        )
        for agent in found["agents"]
    ]
    print_table(("AGENT", "HERE", "TESTED", "", ""), rows, flexible=2)
    click.echo()
    print_list("run", (agent["agent"] for agent in found["driven"] if agent["program"]), "  (hansard run AGENT)")
    if missing := [agent["agent"] for agent in found["driven"] if not agent["program"]]:
        print_list("missing", missing)
    click.echo()
    if newer := [agent["agent"] for agent in found["agents"] if agent["compared"] == "newer"]:
        click.echo(style(f"{', '.join(newer)}: {ADVICE}", fg="yellow"))
        click.echo()
    print_list("formats", found["formats"])
    show_plugins(found["plugins"])


def show_plugins(found: list[dict[str, Any]]) -> None:
    """What each package adds, and what of it is of no use."""
    from hansard.cli.tables import style
    from hansard.projections.terminal_text import visible_line

    packages: dict[str, list[str]] = {}
    for plugin in found:
        what = packages.setdefault(f"{plugin['package']} {plugin['version']}", [])
        if plugin["problem"] is None:
            what.append(f"{plugin['kind'].removesuffix('s')} {plugin['name']}")
    if packages:
        click.echo()
    for number, (package, what) in enumerate(packages.items()):
        click.echo(("        " if number else "plugins ") + visible_line(f"{package}: {', '.join(what) or 'nothing that can be used'}"))
    for plugin in found:
        if plugin["problem"] is not None:
            click.echo(style(f"        {visible_line(plugin['problem'])}", fg="red"))
