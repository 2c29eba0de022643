"""Recordings, changed in a few places: most things about them are still right, which is where a reader trusts too much."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.recorded import Stream


class Recorded:
    """The lines of a recorded stream, taken out of the two-way form, and put back into it."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.lines = [line for line in stream.data.split(b"\n") if line]
        self.two_way = stream.name.startswith("wire")
        if self.two_way:
            self.envelopes = [json.loads(line) for line in self.lines]
            self.lines = [envelope["line"].encode("utf-8", "surrogateescape") for envelope in self.envelopes]

    def joined(self, changes: dict[int, list[bytes]]) -> bytes:
        """The stream with other lines in the place of some."""
        said = [(place, line) for place, old in enumerate(self.lines) for line in changes.get(place, [old])]
        if not self.two_way:
            return b"".join(line + b"\n" for _, line in said)
        # what is no UTF-8 can be told in a two-way recording; a line end inside a line cannot
        texts = [(place, line.replace(b"\n", b" ").decode("utf-8", "surrogateescape")) for place, line in said]
        return b"".join(json.dumps(self.envelopes[place] | {"line": text}).encode() + b"\n" for place, text in texts)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a JSON value."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found.append((value, key))
        found += places(item)
    return found


ODD: list[Any] = [None, True, 0, -1, 2**70, 1.5, "", " ", "\ud83d", "\u2028", "x" * 3000, [], {}, [None], {"type": None}, [[[]]], {"": {}}]


def change_type(place: tuple[Any, Any], chance: random.Random, copy: Any) -> None:
    container, key = place
    container[key] = chance.choice(ODD)


def drop(place: tuple[Any, Any], chance: random.Random, copy: Any) -> None:
    container, key = place
    del container[key]


def add(place: tuple[Any, Any], chance: random.Random, copy: Any) -> None:
    container, _ = place
    if isinstance(container, dict):
        container[chance.choice(["new", "type", "id", "content", "text", "index", "usage"])] = chance.choice(ODD)
    else:
        container.append(chance.choice(ODD))


def rename(place: tuple[Any, Any], chance: random.Random, copy: Any) -> None:
    container, key = place
    if isinstance(container, dict):
        container[f"{key}_renamed"] = container.pop(key)
    elif isinstance(container[key], str):
        container[key] += "_renamed"


def transplant(place: tuple[Any, Any], chance: random.Random, copy: Any) -> None:
    container, key = place
    source, source_key = chance.choice(places(copy))
    container[key] = source[source_key]


def structured(line: bytes, chance: random.Random) -> bytes | None:
    """The line with one of its JSON values changed."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    found = places(value)
    if not found:
        return None
    if chance.random() < 0.15:
        # the same key once more, with another value: JSON allows it, and readers disagree
        return line[:-1] + b',"%s":%s}' % (str(chance.choice(list(value))).encode(), json.dumps(chance.choice(ODD)).encode())
    operation = chance.choice([change_type, drop, add, rename, transplant])
    operation(chance.choice(found), chance, json.loads(line))
    text = json.dumps(value, ensure_ascii=chance.random() < 0.5)
    return text.replace(" 1.5", chance.choice([" 1.5", " 1e400", " 1.50", " " + "9" * 5000])).encode("utf-8", "surrogatepass")


def cut(line: bytes, chance: random.Random) -> bytes:
    return line[: chance.randrange(len(line) + 1)]


def insert(line: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(line) + 1)
    return (
        line[:place] + chance.choice([b"\0", b"\xff", b"\x1b[31m", b"\r", b"\\ud800", b'"', b"}", b"{", b"\xe2\x80", b"NaN"]) + line[place:]
    )


def mutate(recorded: Recorded, place: int, chance: random.Random) -> list[bytes]:
    """The lines that stand in the place of one."""
    line = recorded.lines[place]
    other = chance.choice(recorded.lines)
    way = chance.random()
    if way < 0.65:
        return [structured(line, chance) or insert(line, chance)]
    if way < 0.75:
        return [cut(line, chance)]
    if way < 0.85:
        return [insert(line, chance)]
    if way < 0.89:
        return [line + other]
    if way < 0.92:
        return [cut(line, chance) + other]
    if way < 0.95:
        return [other, line]
    return [line, line] if way < 0.98 else []
