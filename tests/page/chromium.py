"""A real browser for tests: Debian's Chromium, driven by Playwright in a thread of its own, and what it complained about."""

from __future__ import annotations

import functools
import mimetypes
import shutil
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from hansard.server.auth import HEADERS

STATIC = Path(__file__).resolve().parents[2] / "src" / "hansard" / "projections" / "page" / "static"
OURS = Path(__file__).parent
NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60_000
"""Milliseconds that anything in a page may take: other browsers may use the machine, too."""
T = TypeVar("T")


def chromium() -> str | None:
    """The browser of this machine; no test downloads one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Chromium:
    """One browser. Playwright's synchronous interface runs an event loop, so it has a thread where it disturbs nobody."""

    def __init__(self, path: str) -> None:
        self._thread = ThreadPoolExecutor(1, "chromium")
        self._playwright: Playwright
        self._browser: Browser
        self.do(self._start, path)

    def do(self, work: Callable[..., T], *args: Any) -> T:
        """Do something where the browser is."""
        return self._thread.submit(work, *args).result()

    def _start(self, path: str) -> None:
        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage", "--js-flags=--expose-gc"]
        )

    def open(self, url: str, **options: Any) -> Watched:
        """A page of its own, watched from its beginning."""
        return self.do(self._open, url, options)

    def _open(self, url: str, options: dict[str, Any]) -> Watched:
        context = self._browser.new_context(**options)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        watched = Watched(self, page, url)
        page.goto(url)
        return watched

    def close(self) -> None:
        """Nothing of it stays."""
        self.do(self._browser.close)
        self.do(self._playwright.stop)
        self._thread.shutdown()


class Watched:
    """A page, and everything that must not happen in it: errors on the console, dialogs, requests to anybody else."""

    def __init__(self, browser: Chromium, page: Page, url: str) -> None:
        self._browser = browser
        self.page = page
        self.complaints: list[str] = []
        home = url.split("/", 3)[2]
        page.on(
            "console",
            lambda said: self.complaints.append(f"console {said.type}: {said.text}") if said.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", self._dialog)
        page.on("request", lambda asked: self._check_request(asked.url, home))

    def _dialog(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _check_request(self, url: str, home: str) -> None:
        if not url.startswith(("data:", "blob:")) and url.split("/", 3)[2] != home:
            self.complaints.append(f"request: {url}")

    def run(self, script: str, value: Any = None) -> Any:
        """What a function of the page gives."""
        return self._browser.do(self.page.evaluate, script, value)

    def do(self, work: Callable[[Page], T]) -> T:
        """Something else with the page."""
        return self._browser.do(work, self.page)

    def close(self) -> None:
        """It is looked at no more."""
        self._browser.do(self.page.context.close)


class Files(BaseHTTPRequestHandler):
    """The page's own files, and the tests', with the headers that the server gives."""

    def do_GET(self) -> None:
        """One of them."""
        name = self.path.split("?")[0].lstrip("/")
        path = (OURS / name.removeprefix("tests/")) if name.startswith("tests/") else STATIC / name
        data = path.read_bytes() if path.is_file() else b"nothing here"
        self.send_response(200 if path.is_file() else 404)
        for header, value in HEADERS.items():
            self.send_header(header, value)
        self.send_header("content-type", (mimetypes.guess_type(path.name)[0] or "application/octet-stream") + "; charset=utf-8")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Silence."""


@contextmanager
def serving() -> Generator[str]:
    """The address under which the files are."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Files)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@functools.cache
def needed() -> str:
    """The browser, or the test is skipped: `make test` sees to it that there is one."""
    path = chromium()
    if path is None:
        pytest.skip("no Chromium on this machine; `make test` installs it")
    return path
