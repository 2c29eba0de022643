"""What docs/deployment.md tells an operator to do, done: roles, TLS, backups, parts; on a PostgreSQL of its own, with psql and pg_dump."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import yaml

from hansard.errors import StoreError
from hansard.events import assistant_chunk, user_message
from hansard.store import Store, open_store
from tests.postgres import USER, Server, binaries
from tests.server.served import process

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
PASSWORDS = {"owner": "owner-secret", "server": "server-secret", "reader": "reader-secret"}
OPENSSL = shutil.which("openssl")


def openssl(folder: Path, name: str) -> Path:
    """A certificate that signed itself, for `localhost`, beside its key."""
    assert OPENSSL
    command = [OPENSSL, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    made = folder / f"{name}.crt"
    alternative = ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command, *alternative, "-keyout", folder / f"{name}.key", "-out", made], check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server with TLS."""
    settings = {} if OPENSSL is None else {"ssl": "on", "ssl_cert_file": "server.crt", "ssl_key_file": "server.key"}
    server = Server(**settings)
    if OPENSSL is not None:
        openssl(server.data, "server")
        for name in ("server.crt", "server.key"):
            shutil.chown(server.data / name, server.data.stat().st_uid, server.data.stat().st_gid)
            (server.data / name).chmod(0o600)
    with server:
        yield server


class Place:
    """A database of its own, set up as the guide says."""

    def __init__(self, server: Server, name: str) -> None:
        self.server, self.name = server, name
        self.admin = server.address(name)
        with psycopg.connect(server.address(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())

    def address_for(self, role: str, **options: str) -> str:
        """The address for a role."""
        words = "&".join(f"{key}={value}" for key, value in options.items())
        return f"postgresql://hansard_{role}:{PASSWORDS[role]}@localhost:{self.server.port}/{self.name}" + (f"?{words}" if words else "")

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.admin, autocommit=True) as connection:
            connection.execute("SET search_path TO hansard, public")
            return connection.execute(text.encode()).fetchall()


def psql(address: str, file: Path) -> None:
    given = [word for role, password in PASSWORDS.items() for word in ("-v", f"{role}_password={password}")]
    run(binaries() / "psql", "--no-psqlrc", "--quiet", *given, "-f", file, address)


def run(*command: Any) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def verb(*words: str) -> str:
    """A verb of the command line, in a process of its own."""
    return run(sys.executable, "-m", "hansard", *words)


@pytest.fixture
def place(server: Server, request: pytest.FixtureRequest) -> Iterator[Place]:
    """An empty store with the roles of the guide, migrated by its owner."""
    made = Place(server, re.sub(r"\W", "_", request.node.name)[:60].lower())
    psql(made.admin, DEPLOY / "roles.sql")
    verb("migrate", "--store", made.address_for("owner"))
    try:
        yield made
    finally:
        with psycopg.connect(server.address(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {made.name} WITH (FORCE)".encode())
            for role in PASSWORDS:
                connection.execute(f"DROP ROLE hansard_{role}".encode())


def fill(store: Store, sessions: int = 20) -> dict[str, list[bytes]]:
    """Sessions with events, a blob and a title; their lines, by session."""
    names = [store.create(title=f"number {number}").session_id for number in range(sessions)]
    for number, name in enumerate(names):
        store[name].append([user_message(text=f"hello {number}"), *(assistant_chunk(text=f"{word} ") for word in range(number))])
        store[name].put_blob(b"blob %d" % number)
    for name in names:
        store[name].release()
    return lines(store)


def lines(store: Store) -> dict[str, list[bytes]]:
    return {info.id: [record.line for record in store[info.id].records()] for info in store.sessions()}


def whole(store: Store) -> None:
    """Nothing is wrong with any log."""
    assert {info.id: store[info.id].verify() for info in store.sessions()} == {info.id: [] for info in store.sessions()}


async def follows(store: Store, name: str) -> None:
    """An event that is written while somebody follows arrives."""
    head = store[name].head().seq
    store[name].append([assistant_chunk(text="live")])
    async with asyncio.timeout(30):
        async for event in store[name].follow(head):
            assert event.seq == head + 1
            return


def everything(address: str, tmp_path: Path) -> None:
    """Every word of a store, and the verbs."""
    with open_store(tmp_path / "folder") as folder, open_store(address) as store:
        fill(folder, 3)
        for info in folder.sessions():
            store[info.id].ingest(folder[info.id].records())
        before = fill(store)
        name = next(iter(before))
        store[name].append([assistant_chunk(text="x" * 100) for _ in range(2_000)])
        assert store[name].tail(1)[0].payload.text == "x" * 100
        asyncio.run(follows(store, name))
        assert store[name].get_blob(store[name].put_blob(b"large")) == b"large"
        store[name].release()
        store[name].append([assistant_chunk(text="taken again")])
        store.delete(next(info.id for info in store.sessions() if info.id != name))
        assert store.abandoned() == []
        whole(store)
    for words in (["sessions"], ["search", "hello"], ["verify"], ["show", name]):
        assert verb(*words, "--store", address)


@pytest.mark.slow
def test_the_role_of_servers_can_do_everything_but_change_tables(place: Place, tmp_path: Path) -> None:
    everything(place.address_for("server"), tmp_path)
    with psycopg.connect(place.address_for("server"), autocommit=True) as connection:
        for forbidden in ("CREATE TABLE hansard.mine ()", "ALTER TABLE hansard.event ADD x int", "DROP TABLE hansard.event",
                          "TRUNCATE hansard.event", "CREATE INDEX ON hansard.event (type)", "CREATE SCHEMA mine"):  # fmt: skip
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(forbidden.encode())
    with psycopg.connect(place.address_for("reader"), autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM hansard.event").fetchone() != (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("DELETE FROM hansard.event")


@pytest.mark.slow
def test_a_server_serves_with_that_role(place: Place) -> None:
    with open_store(place.address_for("server")) as store:
        name = next(iter(fill(store, 1)))
    with process(place.address_for("server"), "--observer-link") as server:  # type: ignore[arg-type]
        listed = httpx.get(f"{server.address}/api/sessions", headers=server.headers(), trust_env=False).json()
        assert [info["id"] for info in listed["sessions"]] == [name]
        page = httpx.get(f"{server.address}/api/sessions/{name}/events", headers=server.headers(), trust_env=False).json()
        assert page["head"] == len(page["events"])


def test_tables_that_are_missing_are_the_owners_business(server: Server) -> None:
    """The role of servers cannot set an empty database up: it says which right is missing, and makes nothing."""
    made = Place(server, "not_migrated")
    psql(made.admin, DEPLOY / "roles.sql")
    try:
        with pytest.raises(StoreError, match="permission denied"), open_store(made.address_for("server")) as store:
            store.create()
        assert made.ask("SELECT count(*) FROM pg_class WHERE relnamespace = 'hansard'::regnamespace") == [(0,)]
    finally:
        with psycopg.connect(server.address(), autocommit=True) as connection:
            connection.execute("DROP DATABASE not_migrated WITH (FORCE)")
            for role in PASSWORDS:
                connection.execute(f"DROP ROLE hansard_{role}".encode())


@pytest.mark.skipif(OPENSSL is None, reason="no openssl here")
def test_tls_is_verified_in_full(place: Place, tmp_path: Path) -> None:
    root = tmp_path / "root.crt"
    root.write_bytes((place.server.data / "server.crt").read_bytes())
    with open_store(place.address_for("server", sslmode="verify-full", sslrootcert=str(root))) as store:
        store.create("s")
        encrypted = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'hansard'"
        assert place.ask(encrypted) == [(True,)]
    other = openssl(tmp_path, "other")
    wrong = [
        place.address_for("server", sslmode="verify-full", sslrootcert=str(other)),
        place.address_for("server", sslmode="verify-full", sslrootcert=str(root)).replace("localhost", "127.0.0.1"),
    ]
    for address in wrong:
        with pytest.raises(StoreError, match="certificate") as problem:
            open_store(address).sessions()
        assert PASSWORDS["server"] not in str(problem.value)


@pytest.mark.slow
def test_parts_by_the_hash_of_the_session(place: Place, tmp_path: Path) -> None:
    """Before and after there is the same in the tables; everything works, and a page of a log comes from one part."""
    with open_store(place.address_for("server")) as store:
        before = fill(store)
    indexes = "SELECT indexname FROM pg_indexes WHERE schemaname = 'hansard' AND tablename IN ('event', 'blob', 'damaged') ORDER BY 1"
    named = place.ask(indexes)
    psql(place.address_for("owner"), DEPLOY / "partition.sql")
    assert place.ask(indexes) == named
    with open_store(place.address_for("server")) as store:
        assert lines(store) == before
        whole(store)
    everything(place.address_for("server"), tmp_path)
    plan = place.ask("EXPLAIN SELECT line FROM event WHERE session_id = 'one' AND seq > 5 ORDER BY seq LIMIT 100")
    assert len({found for (text,) in plan for found in re.findall(r"\bevent_\d+\b", text)}) == 1
    assert len(place.ask("SELECT DISTINCT tableoid FROM event")) > 8  # 22 sessions, by chance in most of 16 parts


@pytest.mark.slow
def test_a_dump_is_restored_as_the_same_logs(place: Place, tmp_path: Path) -> None:
    with open_store(place.address_for("server")) as store:
        before = fill(store)
    run(binaries() / "pg_dump", "--format=custom", "--file", tmp_path / "dump", place.admin)
    other = Place(place.server, "restored")
    try:
        run(binaries() / "pg_restore", "--exit-on-error", "--dbname", other.admin, tmp_path / "dump")
        with open_store(other.address_for("server")) as store:
            assert lines(store) == before
            whole(store)
            store[next(iter(before))].append([assistant_chunk(text="and on")])
            whole(store)
    finally:
        with psycopg.connect(place.server.address(), autocommit=True) as connection:
            connection.execute("DROP DATABASE restored WITH (FORCE)")


@pytest.mark.slow
def test_a_point_in_time_is_restored() -> None:
    """A copy of the files, and the log of the database up to a moment: what was written before it is there, what came after is not."""
    keep = "mkdir -p ../archive && cp %p ../archive/%f"
    with Server(archive_mode="on", archive_command=keep, wal_level="replica") as live:
        made = live._run(
            "pg_basebackup", "-h", str(live.folder), "-p", str(live.port), "-U", USER, "-D", f"{live.folder}/copy", log=live.folder / "log"
        )
        assert made.wait(60) == 0, (live.folder / "log").read_text()
        with open_store(live.address()) as store:
            before = fill(store, 5)
            with psycopg.connect(live.address(), autocommit=True) as connection:
                connection.execute("SELECT pg_create_restore_point('before the mistake')")
            for name in before:
                store.delete(name)
            with psycopg.connect(live.address(), autocommit=True) as connection:
                connection.execute("SELECT pg_switch_wal()")
        live.stop()
        spare = Server()
        shutil.rmtree(spare.data)
        shutil.move(live.folder / "copy", spare.data)
        with (spare.data / "postgresql.conf").open("a") as file:
            file.write(f"restore_command = 'cp {live.folder}/archive/%f %p'\nrecovery_target_name = 'before the mistake'\n")
            file.write(f"recovery_target_action = 'promote'\narchive_mode = off\nunix_socket_directories = '{spare.folder}'\n")
        (spare.data / "recovery.signal").touch()
        with spare:
            with psycopg.connect(spare.address(), autocommit=True) as connection:
                while connection.execute("SELECT pg_is_in_recovery()").fetchone() == (True,):
                    pass
            with open_store(spare.address()) as store:
                assert lines(store) == before
                whole(store)


def test_the_compose_file_holds_no_password() -> None:
    """It can be read, and each service gets its secrets as files that are not in the repository."""
    told = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert set(told["services"]) == {"database", "migrate", "server"}
    for service in told["services"].values():
        assert set(service["secrets"]) <= set(told["secrets"])
        for name, value in service["environment"].items():
            assert "PASSWORD" not in name or name.endswith("_FILE")
            assert re.search(r"://[^@/]*:[^@/]*@", value) is None
    assert all(secret["file"].startswith("./secrets/") for secret in told["secrets"].values())
    assert "deploy/secrets/" in (ROOT / ".gitignore").read_text().splitlines()
    assert not os.path.exists(DEPLOY / "secrets") or not run("git", "-C", ROOT, "ls-files", "deploy/secrets")
