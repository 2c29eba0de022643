"""The site of docs/: every page is in its navigation, and it works from a folder without asking anybody."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.page.chromium import Chromium
from tools.site import FOLDERS, NAV, ROOT, navigation, sources


def pages_of(entry: object) -> list[str]:
    """The pages of an entry of the navigation, also those inside it."""
    match entry:
        case str():
            return [entry]
        case dict():
            return [page for inside in entry.values() for page in pages_of(inside)]
        case list():
            return [page for inside in entry for page in pages_of(inside)]
        case _:
            raise AssertionError(entry)


def test_every_page_is_in_the_navigation_once() -> None:
    found = pages_of(navigation(sources()))
    assert sorted(found) == sorted([*sources(), *(f"{folder}/index.md" for folder in FOLDERS)])


def test_a_page_that_nobody_listed_is_among_the_guides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NAV, "Operate", [page for page in NAV["Operate"] if page != "scale.md"])
    guides = next(entry for entry in navigation(sources()) if "Guides" in entry)
    assert pages_of(guides)[-1] == "scale.md"


def test_a_page_that_is_listed_and_missing_is_an_error() -> None:
    with pytest.raises(SystemExit, match=r"lists events\.md"):
        navigation([page for page in sources() if page != "events.md"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly."""
    folder = tmp_path_factory.mktemp("site")
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from pathlib import Path; from tools.site import make; make(Path({str(folder)!r}))"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    return folder


@pytest.mark.slow
def test_the_site_works_from_a_folder_and_asks_nobody(site: Path, browser: Chromium) -> None:
    page = browser.open(f"{site.as_uri()}/index.html")
    page.do(lambda one: one.click("text=See your own sessions >> nth=0"))
    page.do(lambda one: one.wait_for_selector("h1:has-text('See your own sessions')"))
    page.do(lambda one: one.click(".md-search__input"))
    page.do(lambda one: one.keyboard.type("torn tail"))
    page.do(lambda one: one.wait_for_selector(".md-search-result__item:has-text('The log')"))
    assert page.complaints == []
    page.close()
