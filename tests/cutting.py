"""A wire that breaks when it is told to: a proxy in front of a server, for what no server does by itself at the right moment."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, Self

When = Literal["request", "answer"]


class Wire:
    """Listens on a port of its own and passes everything on to another, until it is to be cut.

    ``cut("request", words)``: what a client says with these words in it does not arrive. ``cut("answer", words)``: it arrives, and is
    done; the answer gets lost.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._when: When | None = None
        self._words = b""
        self._stay_down = self._down = False
        self._guard = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self.cuts = 0
        self._start(self._accept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave no thread and no connection behind: the next test may count them."""
        self.down()
        _hang_up(self._listener)  # a thread that waits in `accept` does not notice a close
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def cut(self, when: When, words: str, stay_down: bool = False) -> None:
        """Cut the connection on which this is said next; ``stay_down``: from then on nobody gets through."""
        self._when, self._words, self._stay_down = when, words.encode(), stay_down

    def down(self) -> None:
        """Nobody gets through."""
        with self._guard:
            self._down = True
            for pair in self._pairs:
                _hang_up(*pair)

    def up(self) -> None:
        """Everything is well again."""
        self._down = False

    def _start(self, target: Callable[..., None], *args: object) -> threading.Thread:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with self._guard:  # none gets through that `down` does not see
                    if self._down:
                        client.close()
                        continue
                    server = socket.create_connection(("127.0.0.1", self._to))
                    self._pairs.append((client, server))
                self._start(self._pass, client, server)

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        """Close the two only when neither thread reads them any more: their numbers may be given to other files at once."""
        lost = threading.Event()
        answering = self._start(self._answer, server, client, lost)
        self._ask(client, server, lost)
        answering.join()
        with self._guard:
            self._pairs.remove((client, server))
        client.close()
        server.close()

    def _ask(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 20):
                if self._when is not None and self._words in data:
                    when, self._when = self._when, None
                    self.cuts += 1
                    if when == "request":
                        self._break()
                        break
                    lost.set()
                server.sendall(data)
        _hang_up(client, server)

    def _answer(self, server: socket.socket, client: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 20):
                if lost.is_set():
                    self._break()
                    break
                client.sendall(data)
        _hang_up(client, server)

    def _break(self) -> None:
        if self._stay_down:
            self.down()


def _hang_up(*sockets: socket.socket) -> None:
    """End both directions, which whoever waits there notices."""
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
