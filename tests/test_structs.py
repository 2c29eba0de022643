"""Structs are made ready where they are defined, so that no two threads do it at once."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys
from types import ModuleType

import msgspec
import pytest

import hansard.adapters

FIRST = """
import sys, threading
from hansard import codec

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
    """Without `hansard.strict` about one run in thirty was the last thing the process did."""
    running = [subprocess.Popen([sys.executable, "-c", FIRST], stderr=subprocess.PIPE) for _ in range(10)]
    assert [(process.communicate()[1], process.returncode) for process in running] == [(b"", 0)] * len(running)


def modules() -> list[ModuleType]:
    """Every module of the adapters that has structs of its own."""
    names = [module.name for module in pkgutil.walk_packages(hansard.adapters.__path__, "hansard.adapters.")]
    found = map(importlib.import_module, names)
    return [module for module in found if any(is_struct_of(module, value) for value in vars(module).values())]


def is_struct_of(module: ModuleType, value: object) -> bool:
    return isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__module__ == module.__name__


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__.removeprefix("hansard.adapters."))
def test_a_wire_is_made_ready_when_it_is_imported(module: ModuleType) -> None:
    assert inspect.getsource(module).rstrip().endswith("\nprepare(globals())")
