"""The catalog: derived from the logs, repaired from them, and never the truth."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hansard.errors import UnknownSession
from hansard.events import assistant_done, tool_call, user_message
from hansard.events.usage_totals import UsageFold
from hansard.store import JsonlStore, SeenFile, search
from hansard.store.files import catalog
from hansard.store.files.database import NAME, CatalogBusy
from hansard.store.files.reader import LogFiles
from hansard.store.search import SearchQuery
from tests.proof import SEED, Figures, amount, proves
from tests.recorded import streams
from tests.store.catalogs import rows
from tests.store.kill_catalog import talk

Hits = list[tuple[str, int]]


def hits(store: JsonlStore, query: str) -> Hits:
    return [(hit.session_id, hit.seq) for hit in SearchQuery(store, query)]


def streamed(store: JsonlStore, query: str) -> Hits:
    return [(hit.session_id, hit.seq) for hit in SearchQuery(store, query).stream() if hit is not None]


def scanned(store: JsonlStore, query: str) -> Hits:
    """The hits that reading all logs finds."""
    plain = JsonlStore(store.root)
    plain.search = None
    return hits(plain, query)


def filled(root: Path, sessions: int = 5, turns: int = 20) -> JsonlStore:
    chance, store = random.Random(SEED), JsonlStore(root)
    for number in range(sessions):
        store[f"s{number}"].append([event for _ in range(turns) for event in talk(chance)])
        store[f"s{number}"].release()
    store.update_index()
    return store


@proves("D-19")
def test_kill_9_at_any_moment_and_the_next_start_repairs_it(tmp_path: Path, figure: Figures) -> None:
    kills = amount(50, 500)
    command = [sys.executable, str(Path(__file__).with_name("kill_catalog.py")), str(tmp_path), str(kills), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    figure("kills while the catalog is written", result["kills"])
    assert result["kills"] >= kills and result["looks"] > 0 and result["different"] == 0


@pytest.mark.parametrize("max_blocks", [1, 3, 256])
def test_growing_step_by_step_gives_the_rows_of_reading_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_blocks: int) -> None:
    monkeypatch.setattr(catalog, "MAX_BLOCKS", max_blocks)
    chance = random.Random(SEED)
    with JsonlStore(tmp_path) as store, JsonlStore(tmp_path) as other:
        for step in range(60):
            store[f"s{chance.randrange(3)}"].append([event for _ in range(chance.randrange(1, 9)) for event in talk(chance)])
            if step % 7 == 0:
                store[f"s{chance.randrange(3)}"].release()
            other.update_index()
        store.close()
        other.update_index()
        grown = rows(other)
        other.catalog.database.drop()
        other.update_index()
        assert rows(other) == grown and len(grown["blocks"]) > 10


def test_search_finds_in_recordings_what_reading_everything_finds(tmp_path: Path) -> None:
    from hansard.adapters.normalize import normalize

    with JsonlStore(tmp_path) as store:
        for number, stream in enumerate(streams()[SEED % 7 :: amount(23, 3)]):
            store[f"s{number}"].append(normalize(stream.data, stream.format, stream.context))
            store[f"s{number}"].release()
        store.update_index()
        assert not store.catalog.database.in_memory
        for query in (
            "permit",
            "the",
            "e",
            "e.t",
            '"in the"',
            "README.md",
            '"-m"',
            "été",
            "the -in",
            "per*",
            "->",
            "zqzq",
            "日",
            "write file",
            "s-0",
            "_id",
            '"',
        ):
            assert hits(store, query) == scanned(store, query) == streamed(store, query), query


def test_a_stream_tells_what_the_index_knows_before_it_reads_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(catalog, "MAX_BLOCKS", 1)
    with JsonlStore(tmp_path) as store:
        store["known"].append([user_message(text="a lynx")])
        store["known"].release()
        store.update_index()
        with monkeypatch.context() as patch:
            patch.setattr(store.catalog, "update", lambda name: None)
            store["new"].append([user_message(text=f"{number} {'words ' * 2000}") for number in range(100)] + [user_message(text="a lynx")])
            store["new"].release()
        told = [hit and hit.session_id for hit in SearchQuery(store, "lynx").stream()]
    assert [name for name in told if name] == ["known", "new"]
    assert told[told.index("known") : told.index("new")].count(None) > 1  # the index is brought up to the log in steps


@pytest.mark.parametrize("busy", [False, True])
def test_a_search_does_not_need_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: bool) -> None:
    with JsonlStore(tmp_path) as store:
        store["s"].append([user_message(text="a lynx")])
        store["s"].release()

        def refuse(*_: object) -> None:
            raise CatalogBusy

        if busy:
            monkeypatch.setattr(store.catalog.database, "run", refuse)
        else:
            store.catalog.database.in_memory = True
        assert hits(store, "lynx") == streamed(store, "lynx") == [("s", 2)]


def test_two_that_read_a_log_at_once_leave_it_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with JsonlStore(tmp_path) as store, JsonlStore(tmp_path) as other:
        monkeypatch.setattr(store.catalog, "update", lambda name: None)
        store["s"].append([user_message(text="a lynx")])
        store["s"].release()
        scan = store.catalog._scan

        def overtaken(*given: Any) -> Any:
            found = scan(*given)
            other.update_index()
            return found

        monkeypatch.setattr(store.catalog, "_scan", overtaken)
        assert store.update_index()
        assert not store.catalog.candidates(["lynx"], ["user_message"]).unread


WORDS = {
    "the end of a word": ("capybara", "bara", True),
    "its beginning": ("capybara", "capy", True),
    "its middle": ("capybara", "pyba", True),
    "another case": ("CapyBARA", "cAPYb", True),
    "letters of several words": ("foo_bar-baz", "o_bar-b", True),
    "the other order": ("foo_bar-baz", "bar_foo", False),
    "no spaces between words": ("検索の言葉", "索の", True),
    "characters that are not in this order": ("検索の言葉", "の索", False),
    "an accent": ("façade", "ça", True),
    "an emoji": ("fine 👍🏽", "👍", True),
    "part of a long run": ("x" * 300 + "needle" + "y" * 300, "xneedley", True),
    "a word that is too long": ("z" * 500, "z" * 400, True),
    "its end only": ("z" * 500, "z" * 501, False),
    "a quotation mark": ('say "hi"', "'\"hi\"'", True),
    "half of a surrogate pair": ("cut \ud83d here", "cut", True),
}


@pytest.mark.parametrize(("text", "query", "found"), WORDS.values(), ids=WORDS)
def test_any_part_of_a_text_is_found(tmp_path: Path, text: str, query: str, found: bool) -> None:
    with JsonlStore(tmp_path) as store:
        store["s"].append([user_message(text=text), assistant_done(text="something else")])
        store["s"].release()
        store.update_index()
        assert hits(store, query) == scanned(store, query) == ([("s", 2)] if found else [])


DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted": lambda path: path.unlink(),
    "emptied": lambda path: path.write_bytes(b""),
    "no database": lambda path: path.write_bytes(b"not a database" * 1000),
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "a page of noise": lambda path: overwrite(path, 4096, b"\xa5" * 4096),
    "pages of noise": lambda path: overwrite(path, path.stat().st_size // 2, b"\xa5" * 4096 * 5),
    "a table is missing": lambda path: execute(path, "DROP TABLE scans"),
    "another version": lambda path: execute(path, "PRAGMA user_version = 1"),
    "a row that is none": lambda path: execute(path, "UPDATE sessions SET info = x'00'"),
    "a tally that is none": lambda path: execute(path, "UPDATE folds SET tally = x'00', used = x'00'"),
}


def overwrite(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def execute(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_catalog_is_rebuilt_and_nothing_is_lost(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    store = filled(tmp_path)
    before, infos, found = rows(store), store.sessions(), hits(store, "w7")
    store.close()
    damage(tmp_path / NAME)
    with JsonlStore(tmp_path) as other:
        other.update_index()
        other.catalog.used("s0")
        other.update_index()
        assert hits(other, "w7") == found and other.sessions() == infos
        rows(other)  # reads every page, and meets damage that no search came across
        other.update_index()
        assert rows(other) == before


def test_a_catalog_that_vanishes_under_a_store_is_rebuilt(tmp_path: Path) -> None:
    with filled(tmp_path) as store, JsonlStore(tmp_path) as other:
        infos, before = other.sessions(), rows(store)
        (tmp_path / NAME).unlink()
        assert store.update_index() and other.sessions() == infos == store.sessions()
        assert rows(store) == rows(other) == before


@pytest.mark.skipif(os.geteuid() == 0 and not hasattr(os, "seteuid"), reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with filled(tmp_path) as store:
        infos, found = store.sessions(), hits(store, "w7")
    for path in tmp_path.glob(f"{NAME}*"):
        path.unlink()

    def read_only(path: Path) -> int:
        raise PermissionError(30, "Read-only file system")

    monkeypatch.setattr("hansard.store.files.database._make_file", read_only)
    with JsonlStore(tmp_path) as other:
        assert [info.id for info in other.sessions()] == [info.id for info in infos]
        assert hits(other, "w7") == found and other.catalog.database.in_memory
        assert other.session("s0").title == store.session("s0").title
        assert not (tmp_path / NAME).exists()


def test_a_store_without_a_folder_has_nothing_to_search_and_stays_without_one(tmp_path: Path) -> None:
    with JsonlStore(tmp_path / "none") as store:
        assert hits(store, "w") == store.sessions() == [] and not store.root.exists()
        store["s"].append([user_message(text="capybara")])
        assert hits(store, "capybara") == [("s", 2)]


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path.parent / "elsewhere"
    (tmp_path / NAME).symlink_to(target)
    with filled(tmp_path) as store:
        assert len(store.sessions()) == 5 and store.catalog.database.in_memory and not target.exists()


@proves("D-20")
def test_writers_and_readers_at_once_lose_no_update(tmp_path: Path, figure: Figures) -> None:
    rounds = amount(15, 150)

    def work(writer: int) -> int:
        chance = random.Random(SEED * 100 + writer)
        for number in range(rounds):
            with JsonlStore(tmp_path) as store:
                if writer < 2:
                    store[f"w{writer}-{number % 4}"].append([*talk(chance), user_message(text=f"mark{writer}x{number}")])
                elif writer == 2:
                    store.update_index(0.01)
                else:
                    hits(store, f"w{chance.randrange(1000)}")
        return rounds

    with ThreadPoolExecutor(6) as pool:
        figure("steps of writers and readers", sum(pool.map(work, range(6))))
    with JsonlStore(tmp_path) as store:
        store.update_index()
        for writer in range(2):
            assert len(hits(store, f"mark{writer}x")) == rounds
        kept = rows(store)
        store.catalog.database.drop()
        store.update_index()
        assert rows(store) == kept


def test_a_hit_that_the_log_does_not_have_is_none(tmp_path: Path) -> None:
    """The index only says where to look."""
    with filled(tmp_path) as store:
        store["s"].append([user_message(text="original")])
        store["s"].release()
        store.update_index()
        path = store["s"].folder / "events.jsonl"
        status = path.stat()
        with path.open("r+b") as file:  # in its place, and with its old time: nothing shows it
            data = file.read()
            file.seek(data.index(b"original"))
            file.write(b"changed!")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert hits(store, "original") == []


def test_a_log_that_is_not_in_order_is_searched_completely(tmp_path: Path) -> None:
    with filled(tmp_path, 1) as store:
        path = store["s0"].folder / "events.jsonl"
        with path.open("ab") as file:
            file.write(b"damaged\n")
        store["s0"].append([user_message(text="capybara")])
        store["s0"].release()
        store.update_index()
        assert hits(store, "capybara") == scanned(store, "capybara") != []
        assert rows(store)["blocks"] == []


def test_a_session_of_another_log_is_read_from_its_start(tmp_path: Path) -> None:
    with filled(tmp_path, 2) as store:
        store.delete("s0")
        store["s0"].append([user_message(text="capybara"), *(tool_call(tool_call_id=f"t{n}", tool_name="ls", args={}) for n in range(999))])
        store["s0"].release()
        assert hits(store, "capybara") == [("s0", 2)] and store.session("s0").usage is None
        assert hits(store, "w") == [hit for hit in hits(store, "w") if hit[0] == "s1"] != []


def test_the_usage_of_the_list_is_that_of_the_log(tmp_path: Path) -> None:
    with JsonlStore(tmp_path) as store:
        chance = random.Random(SEED)
        for _ in range(5):
            store["s"].append(talk(chance))
            fold = UsageFold()
            for event in store["s"].read():
                fold.apply(event)
            assert store.session("s").usage == store.sessions()[0].usage == fold.session()


def test_one_session_is_found_without_looking_at_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with filled(tmp_path) as store:
        expected = {info.id: info for info in store.sessions()}
        opened: list[str] = []
        monkeypatch.setattr(LogFiles, "__init__", lambda log, folder: opened.append(folder.name))
        assert store.session("s1") == expected["s1"] and opened == []
        with pytest.raises(UnknownSession):
            store.session("none")


def test_files_of_a_session_that_is_gone_are_forgotten(tmp_path: Path) -> None:
    with filled(tmp_path, 2) as store:
        seen = [
            SeenFile("/a", "s0", "1", "imported", True),
            SeenFile("/b", "s1", "1", "imported", False),
            SeenFile("/c", "", "1", "other", True),
        ]
        store.catalog.note(seen)
        assert [*store.catalog.seen().values()] == [[one] for one in seen]
        store.delete("s0")
        assert set(store.catalog.seen()) == {"/b", "/c"}


def test_the_catalog_is_small_and_only_ours(tmp_path: Path) -> None:
    with filled(tmp_path, 20) as store:
        assert (tmp_path / NAME).stat().st_mode & 0o077 == 0
        assert len(store.sessions()) == 20
