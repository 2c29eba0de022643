"""Ports of servers that are killed and started again at the same address."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_random = random.SystemRandom()


def stable_port() -> int:
    """Returns a free port that no client is given while the server is down.

    A port that the kernel chooses (port 0) is in the range of outgoing connections. While its server is down, a client may be given that
    port; one that tries to connect to it again and again may even be connected to itself. Then the server cannot come back.
    """
    while True:
        port = _random.randrange(10_000, _first_client_port())
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue


def _first_client_port() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        return 32768  # Linux's default; macOS begins higher
