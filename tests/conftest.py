"""What all tests share."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests.postgres import Database, Server, fresh
from tests.proof import LESS, LONG, SEED, Figures, amount, collect_results, keep, together

# In CI the examples are the same each time, so that a failure is about the change; `make soak` looks further, with fresh ones.
settings.register_profile(
    "hansard",
    deadline=None,
    max_examples=int(os.environ.get("HANSARD_EXAMPLES") or amount(100, 2_000, quick=25)),
    derandomize=not LONG and "CI" in os.environ,
)
settings.load_profile("hansard")


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background, and what we start would inherit it: deaf to Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio, which is what we run on."""
    return "asyncio"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server, one for each worker, started when the first test asks for it."""
    with Server() as server:
        yield server


@pytest.fixture
def database(postgres: Server) -> Iterator[Database]:
    """An empty store on PostgreSQL; see tests/postgres.py."""
    with fresh(postgres) as made:
        yield made


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Figures:
    """Tells what a proof counted: ``figure("kills", 200)``."""
    return Figures(proved(request.node))


def proved(item: pytest.Item) -> list[str]:
    """The ids of what a test proves."""
    return [name for mark in item.iter_markers("proves") for name in mark.args]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    ids = proved(item)
    if ids and call.when == "call":
        figures = getattr(item, "funcargs", {}).get("figure")
        item.user_properties.append(("proof", json.dumps([ids, figures.told if isinstance(figures, Figures) else []])))
    return (yield)


def pytest_report_header() -> str:
    """What repeats this run."""
    return f"{'long' if LONG else 'short'} form, HANSARD_SEED={SEED}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands its amounts to the process that prints the summary."""
    output: dict[str, Any] = getattr(session.config, "workeroutput", {})
    output["less"] = {file: sorted(amounts) for file, amounts in LESS.items()}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    for file, amounts in getattr(node, "workeroutput", {}).get("less", {}).items():
        LESS[file].update(map(tuple, amounts))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The checks that were left out, and the figures by promise."""
    skipped = terminalreporter.stats.get("skipped", [])
    left_out = sum(value for report in skipped for name, value in getattr(report, "user_properties", ()) if name == "left out")
    if left_out:
        terminalreporter.write_line(f"{left_out} checks of other people's collections were left out: see HANSARD_SHARED in CONTRIBUTING.md")
    if LESS:
        terminalreporter.section("less than in make soak")
        for file, amounts in sorted(LESS.items()):
            terminalreporter.write_line(f"{file}: " + ", ".join(f"{done:,} for {long:,}" for done, long in sorted(amounts)))
    results = collect_results(report for reports in terminalreporter.stats.values() for report in reports)
    if not results:
        return
    terminalreporter.section(f"figures, {'long' if LONG else 'short'} form")
    for name, files in results.items():
        terminalreporter.write_line(f"{name:6} {together(files).summary()}")
    if LONG:
        keep(results)
