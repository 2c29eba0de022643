"""The browser and the renderer's page, one of each for all tests."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.page.chromium import Chromium, Watched, needed, serving
from tests.page.talking import Person
from tests.server.served import Process


@pytest.fixture(scope="session")
def browser() -> Generator[Chromium]:
    """One browser."""
    browser = Chromium(needed())
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def address(browser: Chromium) -> Generator[str]:
    """Where the page's files are."""
    with serving() as url:
        yield url


@pytest.fixture(scope="session")
def rendered_page(browser: Chromium, address: str) -> Generator[Watched]:
    """A page with the renderer and nothing else: harness.js."""
    page = browser.open(f"{address}/tests/harness.html")
    page.do(lambda one: one.wait_for_function("globalThis.ready"))
    yield page
    page.close()


@pytest.fixture
def renderer(rendered_page: Watched) -> Generator[Watched]:
    """The page, which must have nothing to complain of when the test is over."""
    rendered_page.complaints.clear()
    yield rendered_page
    assert rendered_page.complaints == []


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which agents work."""
    folder = tmp_path_factory.mktemp("work")
    (folder / "poem.txt").write_text("rain\non\nthe roof\n")
    return folder


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Process]:
    """A real server, in a process of its own; its demo agent speaks fast."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEMO_AGENT_PACE", "0.01")
        server = Process(tmp_path_factory.mktemp("store"))
    yield server
    assert "Traceback" not in server.stop()


@pytest.fixture
def visit(browser: Chromium, server: Process) -> Generator[Callable[..., Person]]:
    """People who come to the page. When the test is over their pages had nothing to complain of."""
    people: list[Person] = []

    def come(session: str = "", role: str = "participant", **options: object) -> Person:
        people.append(Person(browser, server, session, role, **options))
        return people[-1]

    yield come
    for person in people:
        person.leaves()
