"""The pictures of the documentation, made from the demo: ``python tools/screenshots.py``. Needs Playwright and a Chromium."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

HERE = Path(__file__).resolve().parents[1] / "docs" / "screenshots"
MOST = 200_000
"""Bytes of a picture."""
WIDE, PHONE = {"width": 1360, "height": 850}, {"width": 390, "height": 844}
PATIENCE = 20_000


def main() -> None:
    """Every picture."""
    HERE.mkdir(parents=True, exist_ok=True)
    with demo() as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = visit(browser, link, WIDE)
        _conversation(page)
        _save(page, "desktop")
        _inspector(page)
        _permission(page)
        _save(visit(browser, link, WIDE, color_scheme="dark"), "dark")
        phone = visit(browser, link, PHONE, device_scale_factor=2, has_touch=True, is_mobile=True)
        _save(phone, "phone")
        browser.close()


def _conversation(page: Page) -> None:
    """Something to look at: a command that is allowed, a thought, a plan, a change of a file."""
    say(page, "run")
    _allow(page)
    say(page, "think")
    say(page, "make a plan")
    page.wait_for_selector("text=The plan is done.")
    say(page, "edit")
    _allow(page)
    page.wait_for_selector("text=Now it is 42.")
    page.wait_for_selector(".send:has-text('Send')")
    page.locator(".tool-call summary").last.click()
    page.wait_for_selector(".transcript .diff-row")
    page.keyboard.press("End")


def _inspector(page: Page) -> None:
    page.click("[data-session-id='demo-claude-subagent']")
    page.wait_for_selector(".reader[data-live]")
    page.click("header [aria-label=Inspector]")
    page.click(".inspector-row:has-text('tool_call') >> nth=0")
    page.wait_for_timeout(400)
    _save(page, "inspector")
    page.click("header [aria-label=Inspector]")


def _permission(page: Page) -> None:
    page.click("[data-session-id='demo-talk']")
    page.wait_for_selector(".reader[data-live]")
    say(page, "edit")
    page.wait_for_selector(".card .diff-row")
    page.wait_for_timeout(500)
    _save(page, "permission")


def say(page: Page, text: str) -> None:
    """Send a message."""
    page.wait_for_selector(".send:has-text('Send')")
    page.fill("textarea.message", text)
    page.press("textarea.message", "Enter")


def _allow(page: Page) -> None:
    page.wait_for_selector(".card .choice")
    page.wait_for_timeout(500)
    page.click(".card .choice >> nth=0")
    page.wait_for_selector(".card", state="hidden")


def _save(page: Page, name: str) -> None:
    page.mouse.move(0, 0)
    page.wait_for_timeout(300)
    path = HERE / f"{name}.png"
    path.write_bytes(_packed(page.screenshot(animations="disabled")))
    size = path.stat().st_size
    print(f"{path.relative_to(HERE.parents[1])}: {size:,} bytes")
    if size > MOST:
        raise SystemExit(f"{path.name} has more than {MOST:,} bytes")


def _packed(png: bytes) -> bytes:
    """The same picture in fewer bytes: the browser packs in haste."""
    kept, packed, at = b"", b"", 8
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        kind = png[at + 4 : at + 8]
        if kind == b"IDAT":
            packed += png[at + 8 : at + 8 + length]
        elif kind != b"IEND":
            kept += png[at : at + 12 + length]
        at += 12 + length
    data = zlib.compress(zlib.decompress(packed), 9)
    return png[:8] + kept + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def visit(browser: Browser, link: str, viewport: dict[str, int], **options: object) -> Page:
    """The page, once it is live."""
    page = browser.new_context(viewport=viewport, **options).new_page()  # pyright: ignore[reportArgumentType]
    page.set_default_timeout(PATIENCE)
    page.goto(link)
    page.wait_for_selector(".reader[data-live]")
    page.wait_for_selector("text=I am the demo agent")
    return page


@contextmanager
def demo() -> Generator[str]:
    """The link of a demo that runs, with its scenes played."""
    command = [sys.executable, "-m", "hansard", "demo", "--no-open", "--speed", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http\S+", process.stdout.readline())
            assert found is not None
            time.sleep(2)  # until the scenes are played
            yield found[0]
        finally:
            process.terminate()


def chromium() -> str:
    """The browser of this machine."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        raise SystemExit("there is no Chromium on this machine")
    return found


if __name__ == "__main__":
    main()
