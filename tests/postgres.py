"""A real PostgreSQL for tests: started from the machine's own binaries, in a folder of its own, gone with the test run.

    def test_something(database: Database) -> None:       # the fixture of tests/conftest.py: an empty store, new for every test
        with hansard.open(database.address) as store: ...
        database.execute("SELECT …")                      # ask behind the store's back; its tables are found without a schema's name
        database.tcp                                      # the same over TCP with a password, for what stands between (a proxy)
        database.server.kill(); database.server.start()   # kill -9, and recovery; other tests of the worker do not run meanwhile

The server is one for each worker of pytest; a store is a schema in it. `Server` can also be used alone, as a context.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Any, Self

import psycopg

from tests.ports import stable_port

USER = "hansard"
PASSWORD = token_hex(8)
_numbers = count(1)


def binaries() -> Path:
    """The folder of the server's programs."""
    asked = shutil.which("pg_config")
    told = [subprocess.run([asked, "--bindir"], capture_output=True, text=True).stdout.strip()] if asked else []
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -float(path.parent.name))
    found = shutil.which("initdb")
    for folder in [*map(Path, told), *debian, *([Path(found).parent] if found else [])]:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise RuntimeError("no PostgreSQL server on this machine; `make postgresql` installs Debian's")


class Server:
    """One server. It listens on a socket file, where everybody is trusted, and on loopback, where the password is asked for."""

    def __init__(self, **settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="hansard-pg-"))
        self.data = self.folder / "data"
        self.port = stable_port()
        self._programs = binaries()
        self._user = _other_user()
        self._process: subprocess.Popen[Any] | None = None
        self._starter = ThreadPoolExecutor(1, "postgres")
        """The thread that starts the server, which ends with it (see `_end_with_parent`): no thread of a test may be that one."""
        self._settings = {
            "fsync": "off",
            "full_page_writes": "off",
            "shared_buffers": "32MB",
            "max_connections": "200",
            "autovacuum": "off",
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self.folder),
            "logging_collector": "off",
        } | settings
        self._make()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    @property
    def pid(self) -> int:
        """Of the process that all others of the server come from."""
        assert self._process is not None
        return self._process.pid

    def address(self, database: str = "postgres", schema: str | None = None) -> str:
        """Of a database, over the socket file."""
        return f"postgresql://{USER}@/{database}?host={self.folder}&port={self.port}" + (f"&schema={schema}" if schema else "")

    def tcp(self, database: str = "postgres", schema: str | None = None, port: int | None = None, password: str = PASSWORD) -> str:
        """Of a database, over TCP."""
        return f"postgresql://{USER}:{password}@127.0.0.1:{port or self.port}/{database}" + (f"?schema={schema}" if schema else "")

    def start(self) -> None:
        """Start it, also after a kill, and wait until it answers."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            self._process = self._run("postgres", "-D", str(self.data), "-p", str(self.port), log=self.folder / "log")
            while self._process.poll() is None and time.monotonic() < end:
                try:
                    psycopg.connect(self.address(), connect_timeout=2).close()
                    return
                except psycopg.OperationalError:
                    time.sleep(0.02)
            time.sleep(0.1)  # what is left of a killed server has not let go of its memory yet
        raise RuntimeError(f"PostgreSQL does not start:\n{(self.folder / 'log').read_text()}")

    def stop(self) -> None:
        """Stop it as an operator does who does not wait for anybody."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """``kill -9``, the server and all its processes: as if the power went, but for the disk's own memory."""
        if self._process is not None and self._process.poll() is None:
            children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.pid)], capture_output=True, text=True).stdout.split()
            for pid in [self.pid, *map(int, children)]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self._end(signal.SIGKILL)

    def remove(self) -> None:
        """Stop it, and leave nothing."""
        self._end(signal.SIGQUIT)
        self._starter.shutdown()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(30)
            self._process = None

    def _make(self) -> None:
        if self._user is not None:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        password = self.folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        auth = ["--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={password}"]
        made = self._run(
            "initdb", "-D", str(self.data), "-U", USER, "-E", "UTF8", "--locale=C", "--no-sync", *auth, log=self.folder / "log"
        )
        if made.wait(120):
            raise RuntimeError((self.folder / "log").read_text())
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in self._settings.items())

    def _run(self, program: str, *arguments: str, log: Path) -> subprocess.Popen[Any]:
        ids: dict[str, Any] = {} if self._user is None else {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": ()}
        with log.open("ab") as out:
            command = [str(self._programs / program), *arguments]
            options: dict[str, Any] = {"stdout": out, "stderr": out, "cwd": self.folder, "preexec_fn": _end_with_parent} | ids
            return self._starter.submit(subprocess.Popen[Any], command, **options).result()


def _other_user() -> pwd.struct_passwd | None:
    """As root PostgreSQL does not run: somebody else must."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            pass
    raise RuntimeError("PostgreSQL does not run as root, and there is neither postgres nor nobody")


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(
        1, signal.SIGQUIT
    )  # PR_SET_PDEATHSIG: a test run that is killed leaves no server; it counts for the thread that started it


class Database:
    """An empty store: a schema of its own, which the first connection sets up."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.schema = f"t{os.getpid()}_{next(_numbers)}"
        self.address = server.address(schema=self.schema)
        self.tcp = server.tcp(schema=self.schema)

    def execute(self, text: str, values: list[Any] | None = None) -> list[tuple[Any, ...]]:
        """Ask, or change something, behind the store's back."""
        with psycopg.connect(self.server.address(), autocommit=True) as connection:
            connection.execute(f"SET search_path TO {self.schema}, public".encode())
            cursor = connection.execute(text.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def drop(self) -> None:
        """Remove it."""
        self.execute(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")


@contextmanager
def fresh(server: Server) -> Iterator[Database]:
    """A store for a while."""
    database = Database(server)
    try:
        yield database
    finally:
        database.drop()
