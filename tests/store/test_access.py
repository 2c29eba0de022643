"""Who may write, and who may look: one writer, private files, clear errors where the system says no."""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hansard.errors import LogLocked, StoreError
from hansard.events import Event
from hansard.store import JsonlStore, Store, open_store
from hansard.store.files import paths
from hansard.store.files.lock import WriterLock, is_held
from tests.proof import Figures, proves

Say = Callable[..., list[Event]]

WRITE_AND_WAIT = """
import sys, time
from hansard.events import assistant_chunk
from hansard.store import open_store
store = open_store(sys.argv[1])
store["s"].append([assistant_chunk(text="theirs")])
print("ready", flush=True)
time.sleep(60)
"""


def another_writer(root: Path | str) -> subprocess.Popen[str]:
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    writer = subprocess.Popen([sys.executable, "-c", WRITE_AND_WAIT, str(root)], stdout=subprocess.PIPE, text=True, env=env)
    assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
    return writer


@proves("D-08")
def test_a_second_process_is_refused_and_told_who_writes(either: Store, place: str, say: Say) -> None:
    with another_writer(place) as writer:
        with pytest.raises(LogLocked, match=str(writer.pid)) as refused:
            either["s"].append(say(1))
        assert refused.value.pid == writer.pid
        assert len(list(either["s"].read())) == 2
        writer.kill()


@proves("D-08")
def test_the_lock_of_a_dead_writer_is_taken_over(store: JsonlStore, say: Say) -> None:
    with another_writer(store.root) as writer:
        writer.kill()
        writer.wait()
        assert (store.root / "s" / "lock").read_text() == f"{writer.pid}\n"
        assert store["s"].append(say(1))[0].seq == 3


def test_a_lock_is_let_go_although_a_process_that_is_just_being_started_has_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, open_file = list[int](), paths.open_file
    monkeypatch.setattr(paths, "open_file", lambda *given: opened.append(open_file(*given)) or opened[-1])
    lock = WriterLock(tmp_path)
    copy = os.dup(opened[0])
    lock.release()
    WriterLock(tmp_path).release()
    os.close(copy)


@proves("D-08")
def test_a_second_writer_in_the_same_process_is_refused_too(either: Store, place: str, say: Say) -> None:
    store = either
    store["s"].append(say(1))
    with open_store(place) as other:
        with pytest.raises(LogLocked, match=str(os.getpid())):
            other["s"].append(say(1))
        with pytest.raises(LogLocked):
            other.delete("s")
        store["s"].release()  # which takes a checkpoint
        assert other["s"].append(say(1))[0].seq == 4


@proves("D-08")
def test_of_many_threads_with_stores_of_their_own_one_writes_at_a_time(place: str, say: Say, figure: Figures) -> None:
    refused, written = [], []

    def work(name: str) -> None:
        for number in range(30):
            with open_store(place) as mine:
                try:
                    written.extend(event.id for event in mine["s"].append(say(f"{name}{number}")))
                except LogLocked as problem:
                    refused.append(problem.pid)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open_store(place) as store:
        said = [event for event in store["s"].read() if event.type == "assistant_chunk"]
        assert sorted(event.id for event in said) == sorted(written)
        assert [event.seq for event in store["s"].read()] == list(range(1, store["s"].head().seq + 1))
        assert set(refused) <= {os.getpid(), None} and store["s"].verify() == []
    figure("appends of rivals", len(written))
    figure("refused", len(refused))


@proves("D-08")
def test_a_pid_in_the_lock_file_locks_nothing_by_itself(store: JsonlStore, say: Say) -> None:
    store["s"].append(say(1))
    store["s"].release()
    (store.root / "s" / "lock").write_text(f"{os.getpid()}\n")
    assert not is_held(store.root / "s")
    store["s"].append(say(1))
    assert is_held(store.root / "s")


def test_a_look_at_the_lock_does_not_get_in_a_writers_way(store: JsonlStore, say: Say) -> None:
    import fcntl

    store["s"].append(say(1))
    store["s"].release()
    with (store.root / "s" / "lock").open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        looked = threading.Timer(0.3, lambda: fcntl.flock(looking, fcntl.LOCK_UN))  # as long as a busy machine may make it
        looked.start()
        store["s"].append(say(1))
        looked.join()  # before the file is closed


@proves("S-08")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_files_are_private_whatever_the_umask(umask: int, root: Path, say: Say) -> None:
    before = os.umask(umask)
    try:
        with JsonlStore(root, inline_limit=10) as store:
            store["s"].append(say(1))
            store["s"].put_blob(b"x" * 100)
    finally:
        os.umask(before)
    for path in [root, *root.rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


@proves("S-08")
def test_a_log_that_others_can_read_is_closed_to_them(store: JsonlStore, say: Say, log: Path) -> None:
    store["s"].append(say(1))
    store.close()
    log.chmod(0o644)
    store["s"].append(say(1))
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.fixture
def as_nobody() -> Callable[[Callable[[], None]], None]:
    """Runs a function in a child without root's rights, for which permissions would mean nothing."""

    def run(act: Callable[[], None]) -> None:
        child = os.fork()
        if child == 0:
            try:
                if os.geteuid() == 0:
                    os.seteuid(65534)
                act()
                os._exit(0)
            except BaseException:
                import traceback

                traceback.print_exc()
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0

    return run


@pytest.fixture
def give_away() -> Callable[..., None]:
    """Makes paths nobody's, and lets nobody through to them, as far up as temporary files go."""
    top = Path(tempfile.gettempdir())

    def give(*paths: Path) -> None:
        if os.geteuid() != 0:
            return
        for path in paths:
            os.chown(path, 65534, 65534)
        for parent in paths[0].parents:
            if parent != top and parent.is_relative_to(top):
                parent.chmod(parent.stat().st_mode | 0o011)

    return give


@proves("D-07")
def test_a_read_only_log_can_be_read_and_appending_is_a_clear_error(
    store: JsonlStore, say: Say, log: Path, as_nobody: Callable[..., None], give_away: Callable[..., None]
) -> None:
    store["s"].append(say(3))
    store.close()
    give_away(store.root, log.parent, log, log.parent / "lock")
    log.chmod(0o400)
    before = log.read_bytes()

    def act() -> None:
        assert len(list(store["s"].read())) == 5
        with pytest.raises(StoreError, match="Permission denied"):
            store["s"].append(say(1))

    as_nobody(act)
    assert log.read_bytes() == before


@proves("D-07")
def test_in_a_read_only_folder_logs_can_be_read_and_creating_is_a_clear_error(
    store: JsonlStore, say: Say, log: Path, as_nobody: Callable[..., None], give_away: Callable[..., None]
) -> None:
    store["s"].append(say(3))
    store.close()
    give_away(store.root, log.parent, log, log.parent / "lock")
    store.root.chmod(0o500)

    def act() -> None:
        assert len(list(store["s"].read())) == 5
        with pytest.raises(StoreError, match="Permission denied"):
            store["new"].append(say(1))

    as_nobody(act)
    store.root.chmod(0o700)
    assert [path.name for path in store.root.iterdir()] == ["s"]
