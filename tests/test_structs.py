"""Structs are made ready where they are defined, so that no two threads do it at once."""

from __future__ import annotations

import gc
import importlib
import inspect
import pkgutil
import subprocess
import sys
from types import ModuleType
from typing import get_args

import msgspec
import pytest

import hansard.adapters
from hansard.adapters.base import Wire, declare
from hansard.events.structs import respell, union_of

FIRST = """
import sys, threading
from hansard.events import codec

sys.setswitchinterval(1e-6)
line = b'{"type":"assistant_chunk","id":"a","seq":7,"timestamp":1,"sessionId":"s","payload":{"text":"Hel"}}'
ready = threading.Barrier(3)


def read():
    ready.wait()
    for _ in range(20):
        assert codec.decode(line).payload.text == "Hel"


threads = [threading.Thread(target=read) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.mark.slow
def test_the_first_events_can_be_read_on_several_threads() -> None:
    """Without `hansard.events.decoder` about one run in thirty was the last thing the process did."""
    running = [subprocess.Popen([sys.executable, "-c", FIRST], stderr=subprocess.PIPE) for _ in range(10)]
    assert [(process.communicate()[1], process.returncode) for process in running] == [(b"", 0)] * len(running)


def modules() -> list[ModuleType]:
    """Every module of the adapters that has structs of its own."""
    names = [module.name for module in pkgutil.walk_packages(hansard.adapters.__path__, "hansard.adapters.") if module.name.count(".") > 2]
    found = map(importlib.import_module, names)
    return [module for module in found if any(is_struct_of(module, value) for value in vars(module).values())]


def is_struct_of(module: ModuleType, value: object) -> bool:
    return isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__module__ == module.__name__


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__.removeprefix("hansard.adapters."))
def test_a_wire_is_made_ready_when_it_is_imported(module: ModuleType) -> None:
    assert inspect.getsource(module).rstrip().endswith("\nprepare(globals())")


class Size(msgspec.Struct):
    in_bytes: int | None = None


class _Item(msgspec.Struct, tag_field="type", kw_only=True):
    item_id: str


class Plain(_Item, tag="plain", kw_only=True):
    file_size: Size | None = None


class Special(Plain, tag="special"):
    pass


def test_a_respelled_struct_reads_another_spelling_of_the_same_message() -> None:
    other = respell(Plain, rename="camel", tag="Plain")
    read = msgspec.json.decode(b'{"type":"Plain","itemId":"a","fileSize":{"inBytes":3}}', type=other)
    assert isinstance(read, Plain)
    assert isinstance(read.file_size, Size)
    assert (read.item_id, read.file_size.in_bytes) == ("a", 3)


def test_single_fields_can_be_respelled() -> None:
    other = respell(Plain, rename={"item_id": "call_id"}, tag="end")
    assert msgspec.json.decode(b'{"type":"end","call_id":"a","file_size":{"in_bytes":3}}', type=other).file_size == Size(3)


def test_a_union_has_all_structs_that_are_derived_but_not_the_abstract_ones() -> None:
    class Lone(msgspec.Struct, tag_field="type", tag="lone"):
        pass

    assert {"Plain", "Special", "Lone"} <= {kind.__name__ for kind in get_args(union_of(_Item, Lone))}
    assert _Item not in get_args(union_of(_Item))


def test_declared_structs_are_kept_until_a_union_is_made_of_them() -> None:
    class _Notice(Wire, tag_field="type"): ...

    declare(_Notice, {"one_thing": {"name": str}, "another": {}})
    gc.collect()
    union = union_of(_Notice)
    assert {member.__name__ for member in get_args(union)} == {"OneThing", "Another"}
    assert msgspec.json.decode(b'{"type":"one_thing","name":"n"}', type=union).name == "n"
