"""A wire that breaks when it is told to: a proxy in front of a server, for what no server does by itself at the right moment."""

from __future__ import annotations

import socket
import threading
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
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.down()
        self._listener.close()

    def cut(self, when: When, words: str, stay_down: bool = False) -> None:
        """Cut the connection on which this is said next; ``stay_down``: from then on nobody gets through."""
        self._when, self._words, self._stay_down = when, words.encode(), stay_down

    def down(self) -> None:
        """Nobody gets through."""
        with self._guard:
            self._down = True
            for pair in self._pairs:
                _close(*pair)

    def up(self) -> None:
        """Everything is well again."""
        self._down = False

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
                lost = threading.Event()
                threading.Thread(target=self._ask, args=(client, server, lost), daemon=True).start()
                threading.Thread(target=self._answer, args=(server, client, lost), daemon=True).start()

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
        _close(client, server)

    def _answer(self, server: socket.socket, client: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 20):
                if lost.is_set():
                    self._break()
                    break
                client.sendall(data)
        _close(client, server)

    def _break(self) -> None:
        if self._stay_down:
            self.down()


def _close(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            one.close()
