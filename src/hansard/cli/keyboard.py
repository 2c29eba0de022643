"""What a person types: a line that can be edited when nothing else happens, plain lines while an agent works."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import threading
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

Typed = Callable[[str | None], object]


class Keyboard:
    """Tells ``typed`` every line, and None when there are no more. Use it as a context: the terminal is left as it was found."""

    def __init__(self, typed: Typed, words: Callable[[], list[str]]) -> None:
        self._typed = typed
        self._words = words
        self._loop = asyncio.get_running_loop()
        self._fd = sys.stdin.fileno()
        self._partial = b""
        self._editing = False

    def __enter__(self) -> Keyboard:
        self._before = termios.tcgetattr(self._fd)
        self._editor = _readline()
        if self._editor is not None:
            self._editor.set_completer_delims(" \t\n")
            self._editor.set_completer(self._complete)
            self._editor.parse_and_bind("tab: complete")
        self._loop.add_reader(self._fd, self._read)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.remove_reader(self._fd)
        with suppress(termios.error):
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def edit(self, prompt: str) -> None:
        """Let a line be typed with editing, history and completion; it is told when it is complete."""
        if not self._editing:
            self._editing = True
            self._loop.remove_reader(self._fd)
            threading.Thread(target=self._edit, args=[prompt], daemon=True).start()  # nothing can end a wait for a key

    def _edit(self, prompt: str) -> None:
        try:
            line = input(prompt)
        except (EOFError, OSError, UnicodeDecodeError):
            line = None
        with suppress(RuntimeError):  # the loop is gone, and so is everybody who wanted to know
            self._loop.call_soon_threadsafe(self._edited, line)

    def _edited(self, line: str | None) -> None:
        self._editing = False
        self._loop.add_reader(self._fd, self._read)
        self._typed(line)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, 64 * 1024)
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._fd)
            self._typed(None)
            return
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            self._typed(line.decode("utf-8", "replace"))

    def _complete(self, text: str, state: int) -> str | None:
        fitting = [word for word in self._words() if word.startswith(text)] if text.startswith("/") else []
        return fitting[state] if state < len(fitting) else None


def _readline() -> Any:
    """The module that edits lines, where Python has it."""
    try:
        import readline
    except ImportError:
        return None
    module: ModuleType = readline
    return module
