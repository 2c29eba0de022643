"""A person at the page: what they do, and what they see. The page is the real one, the server too."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.page.chromium import Chromium, Watched
from tests.server.served import Client, Process

WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}

DRAWN = """() => {
  const parts = [];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) parts.push(node.nodeValue);
    if (node.nodeType !== Node.ELEMENT_NODE || node.classList.contains("spacer")) return;
    const names = [...node.attributes].filter((one) => one.name !== "style").map((one) => `${one.name}=${one.value}`).sort();
    parts.push(`<${node.localName} ${names.join(" ")}>`);
    node.childNodes.forEach(walk);
    parts.push("/");
  };
  const log = document.querySelector(".chat-log");
  log.normalize();
  walk(log);
  return parts.join("\\n");
}"""


class Person:
    """Somebody with a link."""

    def __init__(self, browser: Chromium, server: Client, session: str = "", role: str = "participant", **options: Any) -> None:
        link = f"{server.address}/?token={server.tokens[role]}#{session}"
        self.watched: Watched = browser.open(link, viewport=options.pop("viewport", WIDE), **options)
        self.sees("[data-connection=open]")
        if session:
            self.sees(".reader[data-live][data-state]")

    def do(self, work: Callable[[Page], Any]) -> Any:
        """Something with the page."""
        return self.watched.do(work)

    def run(self, script: str, value: Any = None) -> Any:
        """What a function of the page gives."""
        return self.watched.run(script, value)

    def sees(self, what: str, count: int | None = None) -> None:
        """Wait until something is there; ``count``: so often."""
        if count is None:
            self.do(lambda page: page.wait_for_selector(what, state="attached"))
        else:
            self.until(f"document.querySelectorAll({what!r}).length === {count}")

    def sees_no(self, what: str) -> None:
        """Wait until something is gone."""
        self.do(lambda page: page.wait_for_selector(what, state="hidden"))

    def reads(self, words: str) -> None:
        """Wait until the transcript says so."""
        self.do(
            lambda page: page.wait_for_function("(words) => document.querySelector('.chat-log')?.textContent.includes(words)", arg=words)
        )

    def until(self, holds: str) -> None:
        """Wait until an expression is true."""
        self.do(lambda page: page.wait_for_function(f"() => {holds}"))

    def text(self, what: str) -> str:
        """What something says."""
        return self.do(lambda page: page.inner_text(what))

    def clicks(self, what: str) -> None:
        """Click."""
        self.do(lambda page: page.click(what))

    def presses(self, *keys: str) -> None:
        """Press keys, one after another."""
        for key in keys:
            self.do(lambda page, key=key: page.keyboard.press(key))

    def writes(self, text: str) -> None:
        """Type a message, and do not send it."""
        self.do(lambda page: page.fill("textarea.message", text))

    def says(self, text: str) -> None:
        """Type a message, and send it."""
        self.writes(text)
        self.do(lambda page: page.press("textarea.message", "Enter"))

    def chooses(self, key: str) -> None:
        """Answer the card by its key, once it listens."""
        self.sees(".card")
        time.sleep(0.4)
        self.do(lambda page: page.focus(".card"))
        self.presses(key)
        self.sees_no(".card")

    def idle(self) -> None:
        """Wait for the end of the turn."""
        self.sees(".composer .send:has-text('Send')")

    def drawn(self) -> str:
        """The transcript as it is drawn, in a form that can be compared."""
        return self.run(DRAWN)

    def seq(self) -> int:
        """The last event that is shown."""
        return int(self.run("document.querySelector('.reader').dataset.seq ?? 0"))

    def has_read(self, seq: int) -> None:
        """Wait until the page is there."""
        self.until(f"document.querySelector('.reader').dataset.seq === '{seq}'")

    def session(self) -> str:
        """The session that is shown."""
        return self.do(lambda page: page.url).partition("#")[2].partition("/")[0]

    def begins(self, agent: str, message: str, folder: str = "") -> str:
        """A new session, by the dialog."""
        self.clicks(".sidebar-foot .primary")
        self.clicks(f".agent-row:has(input[value={agent!r}])")
        self.do(lambda page: page.fill("dialog [name=cwd]", folder))
        self.do(lambda page: page.fill("dialog [name=prompt]", message))
        self.clicks("dialog .primary")
        self.sees_no("dialog")
        self.sees(".reader[data-live][data-state]")
        return self.session()

    def leaves(self) -> None:
        """Close the page; it must have had nothing to complain of."""
        self.watched.close()
        assert not self.watched.complaints, self.watched.complaints


def store_of(server: Process) -> Path:
    """Where a server keeps its sessions."""
    arguments = server.process.args
    assert isinstance(arguments, list)
    return Path(str(arguments[arguments.index("--store") + 1]))
