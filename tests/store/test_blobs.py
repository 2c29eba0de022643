"""Large things beside the log: all their bytes come back, and nothing but the right bytes does."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hansard.errors import BlobDamaged, UnknownSession, UsageError
from hansard.events import Event, assistant_chunk, user_audio
from hansard.events.originals import reference, wrap
from hansard.store import JsonlStore, Store
from tests.store.conftest import opened

Say = Callable[..., list[Event]]

LIMIT = 1000


@pytest.fixture
def store(request: pytest.FixtureRequest, root: Path) -> Iterator[Store]:
    with opened(request, root, inline_limit=LIMIT) as made:
        yield made


def with_original(data: bytes) -> Event:
    event = assistant_chunk(text="")
    event.original = wrap(data)
    return event


FRAMES = {
    "json": b'{"a":"' + b"x" * 5000 + b'"}',
    "text": b"x" * 5000,
    "bytes": bytes(range(256)) * 20,
    "like a wrapper": b'{"text":"' + b"x" * 5000 + b'"}',
}


@pytest.mark.parametrize("data", FRAMES.values(), ids=FRAMES.keys())
def test_a_large_original_becomes_a_blob_and_comes_back(data: bytes, store: JsonlStore, root: Path) -> None:
    [stored] = store["s"].append([with_original(data)])
    [read] = store["s"].read(1)
    for event in (stored, read):
        found = reference(event.original)
        assert found is not None and found.size == len(data)
        assert store["s"].original(event) == data
        assert (root / "s" / "blobs" / found.blob).read_bytes() == data
    assert store["s"].verify() == []


@pytest.mark.parametrize("size", [LIMIT - 1, LIMIT, LIMIT + 1])
def test_the_limit_is_where_it_is_said_to_be(size: int, store: Store) -> None:
    data = b'"' + b"x" * (size - 2) + b'"'
    [event] = store["s"].append([with_original(data)])
    assert (reference(event.original) is not None) == (size > LIMIT)
    assert store["s"].original(event) == data


def test_a_reference_shows_how_the_frame_begins_and_ends(store: Store) -> None:
    [event] = store["s"].append([with_original(b"BEGIN" + "é\u2028".encode() * 1000 + b"END")])
    found = reference(event.original)
    assert found is not None and found.head.startswith("BEGIN") and found.tail.endswith("END")


def test_the_same_bytes_are_stored_once(store: JsonlStore, root: Path) -> None:
    store["s"].append([with_original(b"x" * 5000), with_original(b"x" * 5000)])
    assert len(list((root / "s" / "blobs").iterdir())) == 1


def test_put_and_get(store: Store, say: Say) -> None:
    store["s"].append(say(1))
    for data in (b"", b"x", b"\0" * 100_000):
        assert store["s"].get_blob(store["s"].put_blob(data)) == data


def test_a_changed_blob_is_not_served(store: JsonlStore, root: Path) -> None:
    [event] = store["s"].append([with_original(b"x" * 5000)])
    [blob] = (root / "s" / "blobs").iterdir()
    blob.write_bytes(b"y" * 5000)
    with pytest.raises(BlobDamaged):
        store["s"].original(event)
    assert [finding.kind for finding in store["s"].verify()] == ["blob-damaged"]


def test_a_missing_blob_is_said_to_be_missing(store: JsonlStore, root: Path) -> None:
    [event] = store["s"].append([with_original(b"x" * 5000), user_audio(transcription="", audio="0" * 64)])[:1]
    [blob] = (root / "s" / "blobs").iterdir()
    blob.unlink()
    with pytest.raises(BlobDamaged, match="missing"):
        store["s"].original(event)
    assert [finding.kind for finding in store["s"].verify()] == ["blob-missing", "blob-missing"]


def test_a_half_written_blob_is_written_again(store: JsonlStore, root: Path, say: Say) -> None:
    store["s"].append(say(1))
    name = store["s"].put_blob(b"whole")
    (root / "s" / "blobs" / name).write_bytes(b"who")
    assert store["s"].put_blob(b"whole") == name
    assert store["s"].get_blob(name) == b"whole"


@pytest.mark.parametrize("name", ["", "../events.jsonl", "0" * 63, "A" * 64, "0" * 64 + "\n"])
def test_a_blob_is_only_found_by_its_hash(name: str, store: Store, say: Say) -> None:
    store["s"].append(say(1))
    with pytest.raises(UsageError):
        store["s"].get_blob(name)


def test_a_blob_needs_a_session(store: Store) -> None:
    with pytest.raises(UnknownSession):
        store["s"].put_blob(b"x")


def test_an_event_without_an_original_says_so(store: Store, say: Say) -> None:
    [event] = store["s"].append(say(1))
    with pytest.raises(UsageError, match="no original"):
        store["s"].original(event)
