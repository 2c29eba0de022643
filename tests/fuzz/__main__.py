"""``python -m tests.fuzz DOOR [OPTION…]``: the options are those of libFuzzer; a file among them is tried, and nothing else."""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterable
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

atheris: Any = import_module("atheris")  # there is none for every system

with atheris.instrument_imports(include=["hansard"], exclude=["hansard.testing"]):
    door = import_module(f"tests.fuzz.{sys.argv[1]}")
    structured = import_module("tests.mutants").structured


def mutate(data: bytes, most: int, seed: int) -> bytes:
    """Every other time as bytes, else a value in the JSON of one of its lines."""
    chance = random.Random(seed)
    lines = data.split(b"\n")
    place = chance.randrange(len(lines))
    start = max(lines[place].find(b"{"), 0)  # a field of server-sent events, or what chooses a format, stands before it
    changed = structured(lines[place][start:], chance) if seed % 2 else None
    if changed is None:
        return atheris.Mutate(data, most)
    lines[place] = lines[place][:start] + changed
    return b"\n".join(lines)[:most]


def corpus(folder: str, seeds: Iterable[bytes]) -> str:
    for data in seeds:
        (Path(folder) / sha256(data).hexdigest()[:16]).write_bytes(data)
    return folder


with tempfile.TemporaryDirectory() as made:
    given = sys.argv[2:]
    start = [] if any(not option.startswith("-") for option in given) else [corpus(made, door.seeds())]
    atheris.Setup([sys.argv[0], *given, *start, "-max_len=16384"], door.check, custom_mutator=mutate)
    atheris.Fuzz()
