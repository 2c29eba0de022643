"""Audit: every frame of a stream accounted for. What each wire type became, and which fields live only in the original.

The structs of an adapter's wire say what it reads; whatever else a frame holds is counted here, path by path. Forgetting is visible.
"""

from __future__ import annotations

import ast
import json
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module, resources
from typing import Any, cast

from msgspec import Struct, field, inspect

from hansard.adapters.base import MAX_FRAME, Adapter, Wire, is_closing_event
from hansard.adapters.framing import Frame, Framer
from hansard.adapters.stream_comparison import StreamReport
from hansard.errors import UsageError
from hansard.events import ContentBlock, Event, RawEvent, ToolResult, UserMessage, lenient, originals
from hansard.events.content import AnyBlock, RawBlock

REVIEWED = "only-in-original.txt"
"""In each adapter folder: the paths that were looked at and left in the original on purpose."""

SAMPLE = 120
"""How much of a value is shown."""


class WireType(Struct, rename="camel"):
    """One type of message on the wire: how often it came, how often our side sent it, and what became of it."""

    count: int = 0
    sent: int = 0
    events: dict[str, int] = field(default_factory=dict[str, int])


class Path(Struct, rename="camel"):
    """A field that no event has: it is in the original alone."""

    count: int
    sample: str
    reviewed: bool


class Audit(Struct, rename="camel"):
    """What an audit found. `is_complete` is the promise; the rest is what there is to know."""

    format: str
    frames: int = 0
    bytes: int = 0
    events: int = 0
    types: dict[str, WireType] = field(default_factory=dict[str, WireType])
    """By the words that name a message: ``assistant``, ``system/init``."""
    parts: dict[str, dict[str, int]] = field(default_factory=dict[str, "dict[str, int]"])
    """The types of what is inside messages, by where it is: blocks, deltas, requests."""
    unknown_types: dict[str, int] = field(default_factory=dict[str, int])
    """Messages nobody knows."""
    unknown_blocks: dict[str, int] = field(default_factory=dict[str, int])
    """Content blocks nobody knows."""
    raw: dict[str, dict[str, int]] = field(default_factory=dict[str, "dict[str, int]"])
    """Everything else that became ``raw``: reason, then kind."""
    only_in_original: dict[str, Path] = field(default_factory=dict[str, Path])
    unaccounted: list[int] = field(default_factory=list[int])
    """Frames (counted from 1) that no event points to."""
    altered: list[int] = field(default_factory=list[int])
    """Frames whose original does not give the bytes back."""
    streams: dict[str, StreamReport] = field(default_factory=dict[str, StreamReport])
    """What each stream of a session reports alone, if it has several. The other fields are about the streams of `format`."""

    @property
    def is_complete(self) -> bool:
        """Whether every frame is in the events, byte for byte."""
        return not self.unaccounted and not self.altered

    @property
    def new_paths(self) -> list[str]:
        """Fields in the original alone that nobody has reviewed."""
        return [path for path, found in self.only_in_original.items() if not found.reviewed]


class Auditor:
    """Adds frames and their events to an audit, one by one."""

    def __init__(self, adapter: type[Adapter], format: str) -> None:
        self.adapter = adapter
        self.audit = Audit(format=format)
        self._reviewed = reviewed_paths(adapter, format)
        self.message_path = ""

    def add(self, frame: Frame, events: Iterable[Event], number: int | None = None) -> None:
        """Count one frame with the events that were made of it. ``number``: which frame it is, if it is not simply the next."""
        self.audit.frames += 1
        self.audit.bytes += len(frame.verbatim)
        number = self.audit.frames if number is None else number
        mine = [event for event in events if event.frame == number]
        self.audit.events += len(mine)
        if not mine:
            self.audit.unaccounted.append(number)
        elif not _gives_back(mine, frame):
            self.audit.altered.append(number)
        for word in self._walk(frame):
            self._count(word, mine)
        self.add_unknown(mine)

    def read(self, frames: Iterable[Frame], adapter: Adapter) -> Audit:
        """Count a whole stream, read by this adapter."""
        for frame in frames:
            self.add(frame, adapter.feed(frame))
        last = adapter.finish()
        self.audit.events += len(last)
        self.add_unknown(last)
        return self.audit

    def add_unknown(self, events: Iterable[Event]) -> None:
        """Count what these events say nobody knows."""
        for event in events:
            if isinstance(event, RawEvent):
                kind = event.payload.kind or "?"
                if event.payload.reason == "unknown_type":
                    _add(self.audit.unknown_types, kind)
                else:
                    _add(self.audit.raw.setdefault(event.payload.reason, {}), kind)
            for block in _blocks(event):
                if isinstance(block, RawBlock):
                    _add(self.audit.unknown_blocks, block.raw_type or "?")

    def _count(self, word: str, events: list[Event]) -> None:
        seen = self.audit.types.setdefault(word, WireType())
        seen.count += 1
        seen.sent += any(event.direction == "out" for event in events)
        for event in events:
            _add(seen.events, event.type)

    # ---- walking a frame along the wire's structs

    def _walk(self, frame: Frame) -> Iterator[str]:
        """The words that name the messages of a frame; their fields are counted on the way."""
        if frame.noise is not None or not frame.data.strip():
            yield f"({frame.noise or 'blank'})"
            return
        try:
            if len(frame.data) > MAX_FRAME:
                raise ValueError("too large")
            found = lenient.split_documents(frame.data.decode())
        except (ValueError, RecursionError):
            yield "(no JSON)"
            return
        for document in found:
            for message in cast("list[Any]", document) if isinstance(document, list) else [document]:
                yield self._message(message, frame)

    def _message(self, message: Any, frame: Frame) -> str:
        if not isinstance(message, dict):
            return "(no object)"
        fields = cast("dict[str, Any]", message)
        wire = self.adapter.sent_wire if frame.out and self.adapter.sent_wire is not None else self.adapter.wire
        words: list[str] = []
        tags: list[str] = []
        while wire is not None:
            struct = pick(wire_shape(wire), fields)
            if struct is None:
                return self._undeclared(words, "subtype" if words else self.adapter.tag, fields, "?")
            if struct.tag_field is not None:
                words.append(str(struct.tag))
                tags.append(struct.tag_field)
            if (refined := _refined(cast("type[Wire]", struct.cls), fields)) is None:
                self.message_path = "/".join(words) or struct.cls.__name__
                self._struct(struct, fields, self.message_path, tags)
                break
            tags += [entry.encode_name for entry in struct.fields]
            wire = refined
        if not words:  # no struct has a tag: the adapter looks at the word itself
            return self._undeclared([], self.adapter.tag, fields, self.adapter.source)
        word = "/".join(words)
        self.saw_type("", word, fields, declared=True)
        return word

    def _undeclared(self, words: list[str], tag: str, fields: dict[str, Any], default: str) -> str:
        """The name of a message that no struct has as its tag."""
        word = "/".join([*words, str(fields.get(tag, default))])
        if isinstance(fields.get(tag), str):
            self.saw_type("", word, fields, declared=False)
        return word

    def _struct(self, struct: inspect.StructType, fields: dict[str, Any], path: str, tags: list[str]) -> None:
        known = {entry.encode_name: entry.type for entry in struct.fields}
        for name, value in fields.items():
            if name in known:
                self.saw_field(f"{path}.{name}", value, known=True)
                self._value(known[name], value, f"{path}.{name}")
            elif name not in tags:
                self._unread(f"{path}.{name}", value)

    def _value(self, declared: inspect.Type, value: Any, path: str) -> None:
        """Follow a field that is read. What is carried whole needs no following."""
        if isinstance(declared, inspect.Metadata):
            reads = cast("dict[str, Any]", declared.extra or {})  # pyright: ignore[reportUnknownMemberType] (msgspec says `dict`)
            if "reads" not in reads:
                self._value(declared.type, value, path)
            elif isinstance(reads["reads"], dict):
                told_apart = (
                    types for name, types in cast("dict[str, Any]", reads["reads"]).items() if isinstance(value, dict) and name in value
                )
                if (types := next(told_apart, None)) is not None:
                    self._read_later(wire_shape(types), value, path)
            elif reads.get("having") is None or (isinstance(value, dict) and reads["having"] in value):
                self._read_later(wire_shape(reads["reads"]), value, path)
            return
        if isinstance(value, list):
            if isinstance(declared, inspect.UnionType):
                declared = next((one for one in declared.types if isinstance(one, inspect.ListType)), declared)
            if isinstance(declared, inspect.ListType):
                for item in cast("list[Any]", value):
                    self._value(declared.item_type, item, f"{path}[]")
        elif isinstance(value, dict):
            self._part(declared, cast("dict[str, Any]", value), path)

    def _read_later(self, types: inspect.Type, value: Any, path: str) -> None:
        if isinstance(value, list):
            for item in cast("list[Any]", value):
                self._read_later(types, item, f"{path}[]")
        elif isinstance(value, dict):
            self._part(types, cast("dict[str, Any]", value), path)

    def _part(self, declared: inspect.Type, fields: dict[str, Any], path: str) -> None:
        tag_field = next((one.tag_field for one in structs(declared) if one.tag_field is not None), None)
        if tag_field is not None:
            _add(self.audit.parts.setdefault(path, {}), str(fields.get(tag_field, "?")))
        struct = pick(declared, fields)
        if tag_field is not None and isinstance(fields.get(tag_field), str):
            self.saw_type(path, fields[tag_field], fields, declared=struct is not None)
        if struct is not None:
            self._struct(struct, fields, path, [struct.tag_field] if struct.tag_field else [])

    def _unread(self, path: str, value: Any) -> None:
        found = self.audit.only_in_original.get(path)
        if found is None:
            seen = path in self._reviewed or "*" + path.removeprefix(self.message_path) in self._reviewed
            found = self.audit.only_in_original[path] = Path(1, sample(value), seen)
        else:
            found.count += 1
            if found.sample == "null":
                found.sample = sample(value)
        self.saw_field(path, value, known=found.reviewed)

    # ---- for whoever wants to know more than an audit says

    def saw_type(self, where: str, word: str, fields: dict[str, Any], declared: bool) -> None:
        """A message (``where`` is empty) or a part of one, and the word that names it. ``declared``: whether a struct has that word."""

    def saw_field(self, path: str, value: Any, known: bool) -> None:
        """A field of a message or part that is declared. ``known``: whether it is read, or was left in the original on purpose."""


class LogAuditor:
    """Audits a log instead of a stream: the frames are its originals, the events those that are in it."""

    def __init__(self, auditor: Auditor) -> None:
        self._auditor = auditor
        self._streams: dict[str | None, _LoggedStream] = {}

    def saw(self, event: Event, original: bytes | None) -> None:
        """Take one event of the log, in order; ``original``: the bytes of its frame, if it holds them."""
        if event.frame is None:
            return
        if is_closing_event(event):
            self._auditor.audit.events += 1
            self._auditor.add_unknown([event])
            return
        if event.stream not in self._streams:
            self._streams[event.stream] = _LoggedStream(self._auditor)
        stream = self._streams[event.stream]
        if original is not None:
            stream.begin(Frame(original, eol="\n" if event.eol is None else event.eol, out=event.direction == "out"))
        stream.take(event)

    def done(self) -> Audit:
        """Everything was seen."""
        for stream in self._streams.values():
            stream.end()
        return self._auditor.audit


class _LoggedStream:
    """One stream of a log. Its originals are the bytes it was, so the framer that cut them cuts them again."""

    def __init__(self, auditor: Auditor) -> None:
        self._auditor = auditor
        self._framer: Framer | None = auditor.adapter.framer()
        self._cut: deque[Frame] = deque()
        self._waiting: deque[tuple[Frame, list[Event]]] = deque()
        self._number = 0

    def begin(self, told: Frame) -> None:
        """A frame, as bytes. What our side sent never went through the framer."""
        self._count()
        self._waiting.append((told, []))
        if self._framer is not None and not told.out:
            self._cut += self._framer.feed(told.verbatim)

    def take(self, event: Event) -> None:
        """An event of the frame that began last."""
        if self._waiting:
            self._waiting[-1][1].append(event)

    def end(self) -> None:
        """Nothing more will come."""
        if self._framer is not None:
            self._cut += self._framer.end()
            self._framer = None
        self._count()

    def _count(self) -> None:
        """Count the frames that are cut by now."""
        while self._waiting:
            told, events = self._waiting[0]
            if self._framer is not None and not told.out and not self._cut:
                return
            self._waiting.popleft()
            self._add(self._as_cut(told), events)

    def _as_cut(self, told: Frame) -> Frame:
        """The frame as the framer cuts it. If that gives other bytes, some of the stream are missing, and from here on bytes must do."""
        if told.out or not self._cut:
            return told
        cut = self._cut.popleft()
        if cut.verbatim == told.verbatim:
            return cut
        self._framer = None
        self._cut.clear()
        return told

    def _add(self, frame: Frame, events: list[Event]) -> None:
        number = events[0].frame or 0
        self._auditor.audit.unaccounted += range(self._number + 1, number)
        self._number = number
        self._auditor.add(frame, events, number)


def audit(frames: Iterable[Frame], adapter: Adapter, format: str) -> Audit:
    """The audit of a whole stream, read by this adapter."""
    return Auditor(type(adapter), format).read(frames, adapter)


# --------------------------------------------------------------------------------------------------------------------
# Shapes of the wire


@cache
def wire_shape(types: Any) -> inspect.Type:
    """The structs of a wire as data; those of a tuple are tried in order."""
    if isinstance(types, tuple):
        return inspect.UnionType(tuple(struct for one in cast("tuple[Any, ...]", types) for struct in structs(wire_shape(one))))
    return inspect.type_info(types)


def structs(declared: inspect.Type) -> list[inspect.StructType]:
    """Every struct that this type may be."""
    if isinstance(declared, inspect.StructType):
        return [declared]
    return [one for one in declared.types if isinstance(one, inspect.StructType)] if isinstance(declared, inspect.UnionType) else []


def pick(declared: inspect.Type, fields: dict[str, Any]) -> inspect.StructType | None:
    """The struct that reads this object, if one does."""
    for struct in structs(declared):
        if struct.tag_field is None or fields.get(struct.tag_field) == struct.tag:
            return struct
    return None


def _refined(struct: type[Wire], fields: dict[str, Any]) -> Any:
    """The second union to read a message with. Where it is a property, each message chooses."""
    if not isinstance(struct.refine, property):
        return struct.refine
    message, _ = lenient.convert_lenient(fields, struct)
    return message.refine


def _gives_back(events: list[Event], frame: Frame) -> bool:
    first = events[0]
    if first.original is None:
        return False
    if originals.reference(first.original) is not None:  # beside the log, under the name of its hash: `verify` looks after those
        return True
    try:
        data = originals.unwrap(first.original)
    except UsageError:
        return False
    return data + (first.eol if first.eol is not None else "\n").encode() == frame.verbatim


def _blocks(event: Event) -> list[AnyBlock]:
    """The blocks that an event is or has."""
    if isinstance(event, ContentBlock):
        return [event.payload.block]
    return (event.payload.content or []) if isinstance(event, UserMessage | ToolResult) else []


def _add(counts: dict[str, int], word: str) -> None:
    counts[word] = counts.get(word, 0) + 1


def sample(value: Any, size: int = SAMPLE) -> str:
    """A value as JSON, cut to a size that can be shown."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= size else text[: size - 1] + "…"


# --------------------------------------------------------------------------------------------------------------------
# What an adapter folder says about itself


@cache
def reviewed_paths(adapter: type[Adapter], format: str) -> frozenset[str]:
    """The paths that were looked at and left in the original on purpose. ``*.uuid`` means that field of every type."""
    listing = resources.files(package_of(adapter)) / REVIEWED
    if not listing.is_file():
        return frozenset()
    paths: set[str] = set()
    for line in listing.read_text("utf-8").splitlines():
        only_for, _, path = line.partition("#")[0].strip().rpartition(": ")
        if path and only_for in ("", format):
            paths.add(path)
    return frozenset(paths)


def package_of(adapter: type[Adapter]) -> str:
    """The folder of an adapter, as a package."""
    return import_module(adapter.__module__).__package__ or adapter.__module__


def unread_fields(package: str) -> list[str]:
    """Fields that a wire struct of this adapter folder declares and no code of the folder reads: a promise that is not kept."""
    read: set[str] = set()
    declared: set[type[Wire]] = set()
    for file in resources.files(package).iterdir():
        if not file.name.endswith(".py"):
            continue
        module = import_module(package if file.name == "__init__.py" else f"{package}.{file.name[:-3]}")
        declared |= {one for one in vars(module).values() if isinstance(one, type) and issubclass(one, Wire) and _is_of(one, package)}
        read |= _names_read(ast.parse(file.read_text("utf-8")))
    bases = {base for one in declared for base in one.__mro__ if base is not Wire and issubclass(base, Wire)}
    for shared in {base.__module__ for base in bases if not _is_of(base, package)}:  # what families share, read there
        parent, _, name = shared.rpartition(".")
        read |= _names_read(ast.parse((resources.files(parent) / f"{name}.py").read_text("utf-8")))
    by_name = [one for one in declared if not one.said_whole]
    return sorted(f"{one.__name__}.{name}" for one in by_name for name in one.__struct_fields__ if name not in read)


def _is_of(one: type, package: str) -> bool:
    return one.__module__ == package or one.__module__.startswith(package + ".")


def _names_read(tree: ast.AST) -> set[str]:
    """Every name after a dot, every field that a ``case`` takes apart, every key that is asked for with ``get``."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            names.add(node.attr)
        elif isinstance(node, ast.MatchClass):
            names.update(node.kwd_attrs)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            names.update(str(key.value) for key in node.args[:1] if isinstance(key, ast.Constant))
    return names
