"""Redaction: events with the secrets in them masked, wherever they stand, also when they come in pieces. The log itself keeps them.

What a secret looks like is said once, as pieces in a row. From it come two patterns: one that finds secrets, and one that finds what may be
the beginning of one at the end of a text, so that of a stream no more is held back than that. Both work on plain text and on JSON as it is
written, and never take half an escape, so that JSON stays JSON. Known limits: in base64 only secrets with a long mark are found wherever
they stand (`INSIDE`), the others where they begin it; of base64 in lines, only the line.

Nearly everything that is said holds no secret and nothing like one. So many events are looked at together first: where none of a few words
occurs they go on as they are, and only where one does is it worth looking at fewer, and at last at each.
"""

from __future__ import annotations

import re
from base64 import b64encode
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from operator import attrgetter
from string import ascii_uppercase
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import Raw, Struct

from hansard.codec import decode, encode
from hansard.errors import UsageError
from hansard.events import (
    AssistantChunk,
    AssistantDone,
    Event,
    SessionLifecycle,
    ThinkingChunk,
    ThinkingDone,
    ToolCall,
    ToolInputChunk,
    ToolOutputChunk,
    ToolResult,
    TurnEnd,
    Unknown,
)
from hansard.loose import as_object
from hansard.originals import BASE64, BLOB, TEXT, WRAPPERS, BlobReference, reference, unwrap, wrap

Chunk = AssistantChunk | ThinkingChunk | ToolInputChunk | ToolOutputChunk
Key = tuple[Any, ...]
"""The stream that a chunk is of: what kind of chunk, for which call, and what else tells one stream from another."""

Masked = dict[str, dict[str, int]]
"""Kind of secret, where it stood, and how often."""

# --------------------------------------------------------------------------------------------------------------------
# What secrets look like


class Piece(NamedTuple):
    """A part of a pattern, and what of it may stand at the end of a text that goes on."""

    whole: str
    begun: str = ""


SECRET = Piece("\0")
"""Where the secret itself begins and ends; what stands around it is not masked."""

_ESCAPES = {"-": "2[dD]", "_": "5[fF]", ":": "3[aA]", "=": "3[dD]", "@": "40"}
_HALF_ESCAPE = r"(?:\\+(?:u[0-9a-fA-F]{0,4})?|%[0-9a-fA-F]?)?"


def word(text: str, any_case: bool = False) -> list[Piece]:
    """These characters; marks may be written as JSON or as an address escapes them."""
    return [_character(char, any_case) for char in text]


def _character(char: str, any_case: bool) -> Piece:
    if char in _ESCAPES:
        code = _ESCAPES[char]
        return Piece(rf"(?:{re.escape(char)}|\\+u00{code}|%{code})", _HALF_ESCAPE)
    return Piece(f"[{char.lower()}{char.upper()}]" if any_case and char.isalpha() else re.escape(char))


def run(kind: str, least: int, most: int | None = None) -> Piece:
    """Several characters of a kind. It takes all there are: what follows is looked at once."""
    end = "" if most is None else most
    return Piece(f"{kind}{{{least},{end}}}+", rf"{kind}{{0,{end}}}+\\*")


def one_of(*words: str, any_case: bool = False) -> Piece:
    """One of these words."""
    longest = max(map(len, words))
    return Piece(f"(?{'ai' if any_case else ''}:{'|'.join(words)})", f"[A-Za-z_-]{{0,{longest}}}")


WORDY = "[A-Za-z0-9_-]"
VALUE = r"[^\s\"'`\\$<>(){}\[\],;&|\x00-\x1f\x7f]"
USER = r"[^\s/:@\"'\\<>]"
PASSWORD = r"[^\s/:@\"'\\<>{}$\[\]]"  # noqa: S105 (what one may look like)  # nosec B105
KEY_TEXT = r"(?:[^\"'<>{}\\]|\\+[nrt])"
KEY_NAME = Piece("[A-Z0-9 ]{0,24}?", "[A-Z0-9 ]{0,24}")
KEY_BLOCK = Piece("(?: BLOCK)?", "[ BLOCK]{0,6}")
KEY_BODY = Piece(rf"(?:(?!-----END ){KEY_TEXT})*+(?:-----END [A-Z0-9 ]{{0,40}}-----)?", rf"{KEY_TEXT}*+\\*")
QUOTE = Piece(r"(?:\\*[\"'])?", r"\\*[\"']?")
SPACE = Piece(" {0,4}+", " {0,4}+")
NOT_CODE = Piece(r"(?![\[(])")
IS = [QUOTE, SPACE, Piece("[:=]"), SPACE, QUOTE]
NAMES = ("PASSWORD", "PASSWD", "SECRET", "TOKEN", "API_?KEY", "ACCESS_?KEY", "PRIVATE_?KEY", "CREDENTIALS?")
HEADER_NAMES = ("password", "passwd", "client[_-]?secret", "api[_-]?key", "access[_-]?token", "auth[_-]?token", "refresh[_-]?token")
DIGIT_IN = Piece(r"(?=[^\s\"'`\\]{0,200}[0-9])")

KINDS: dict[str, list[list[Piece]]] = {
    "anthropic": [[*word("sk-ant-"), run(WORDY, 12)]],
    "openrouter": [[*word("sk-or-"), run(WORDY, 16)]],
    "openai": [[*word("sk-"), one_of("proj", "svcacct", "admin"), *word("-"), run(WORDY, 16)], [*word("sk-"), run("[A-Za-z0-9]", 32)]],
    "github": [[*word("gh"), Piece("[pousr]"), *word("_"), run("[A-Za-z0-9]", 30)]],
    "github-fine": [[*word("github_pat_"), run("[A-Za-z0-9_]", 22)]],
    "gitlab": [[*word("glpat-"), run(WORDY, 20)]],
    "aws-id": [[one_of("AKIA", "ASIA"), run("[A-Z0-9]", 16, 16), Piece("(?![A-Za-z0-9])")]],
    "aws-secret": [[*word("aws_secret_access_key", any_case=True), *IS, SECRET, run("[A-Za-z0-9/+=]", 16)]],
    "google": [[*word("AIza"), run(WORDY, 35)]],
    "slack": [[*word("xox"), Piece("[abeoprs]"), *word("-"), run(WORDY, 16)]],
    "stripe": [
        [*word("whsec_"), run("[A-Za-z0-9+/=]", 24)],
        [Piece("[sr]"), *word("k_"), one_of("live", "test"), *word("_"), run(WORDY, 16)],
    ],
    "hf": [[*word("hf_"), run("[A-Za-z0-9]", 30)]],
    "npm": [[*word("npm_"), run("[A-Za-z0-9]", 36)]],
    "pypi": [[*word("pypi-"), run(WORDY, 50)]],
    "jwt": [[*word("eyJ"), run(WORDY, 5), Piece(r"\."), *word("eyJ"), run("[A-Za-z0-9_.-]", 5)]],
    "bearer": [
        [*word("authorization", any_case=True), *IS, one_of("bearer", "basic", "token", any_case=True), Piece(" "), SECRET, run(VALUE, 6)],
        [*word("bearer", any_case=True), Piece(" "), SECRET, DIGIT_IN, run("[A-Za-z0-9._~+/=-]", 20)],
    ],
    "basic-url": [
        [run("[A-Za-z0-9+.-]", 2, 20), *word("://"), run(USER, 0, 100), *word(":"), SECRET, run(PASSWORD, 3, 300), SECRET, *word("@")]
    ],
    "pem": [[*word("-----BEGIN "), KEY_NAME, *word("PRIVATE KEY"), KEY_BLOCK, *word("-----"), KEY_BODY]],
    "telegram": [[run("[0-9]", 8, 10), *word(":AA"), run(WORDY, 30)]],
    "env-line": [
        [Piece("[A-Z0-9_]{0,40}?", "[A-Z0-9_]{0,40}"), one_of(*NAMES), run("[A-Z0-9_]", 0, 40), *IS, SECRET, run(VALUE, 6), NOT_CODE],
        [
            Piece("[a-z0-9_-]{0,40}?", "[a-z0-9_-]{0,40}"),
            one_of(*HEADER_NAMES, any_case=True),
            *IS,
            SECRET,
            DIGIT_IN,
            run(VALUE, 8),
            NOT_CODE,
        ],
    ],
    "cookie": [[*word("cookie", any_case=True), *IS, run(r"[\w.-]", 1, 100), *word("="), SECRET, run(r"[^\r\n\"'\\\x00-\x1f]", 8)]],
    "base64": [[one_of("c2stYW50L", "c2stcHJvai", "c2stb3It", "Z2hwX", "Z2l0aHViX3BhdF"), run("[A-Za-z0-9+/=_-]", 12)]],
}
"""Kind of secret, and the rows of pieces that it may consist of."""


def in_base64(text: str) -> list[str]:
    """What base64 makes of these characters wherever they stand: one spelling for each of the three places in a group of three bytes."""
    spellings: list[str] = []
    for before in range(3):
        spelled = b64encode(b"\0" * before + text.encode()).decode()
        spellings.append(spelled[-(-8 * before // 6) : 8 * (before + len(text)) // 6])
    return spellings


MARKS = [spelling for mark in ("sk-ant-", "sk-proj-", "github_pat_", "PRIVATE KEY-----") for spelling in in_base64(mark)]
"""Long enough never to stand in other base64 by chance: eight characters or more."""

INSIDE: dict[str, list[list[Piece]]] = {"base64": [[*word(mark), run("[A-Za-z0-9+/=_-]", 12)] for mark in MARKS]}
"""Rows that are found in the middle of a word as well."""

# fmt: off
EXACT = (
    b"-----BEGIN", b"CREDENTIAL", b"PRIVATE", b"TOKEN", b"AKIA", b"ASIA", b"AIza", b"eyJ", b":AA", b"Z2hwX", b"Z2l0aHViX",
    b"c2stb3It", *(mark.encode() for mark in MARKS),
)
# fmt: on
LOWER = (b"authorization", b"bearer", b"secret")
"""In lower case, as are the signs."""
SIGNS = (
    re.compile(rb"xox[abeoprs]"),
    re.compile(rb"p(?:assw|at-(?<=glpat-)|i-(?<=pypi-))"),
    re.compile(rb"_(?:(?<=gh[pousr]_)|(?<=hf_)|(?<=npm_)|(?<=whsec_)|pat(?<=github_pat))"),
    re.compile(
        rb"k(?:-(?<=sk-)|ie(?<=cookie)|_live|_test|ey(?:(?<=api[_-]key)|(?<=apikey)|(?<=access_key)|(?<=accesskey))"
        rb"|en(?:(?<=access[_-]token)|(?<=accesstoken)|(?<=auth[_-]token)|(?<=authtoken)|(?<=refresh[_-]token)|(?<=refreshtoken)))"
    ),
)
ESCAPED = {ord("%"): re.compile(rb"%(?:2d|5f|3|40)"), ord("\\"): re.compile(rb"\\u00(?:2d|5f|3|40)")}
"""A text that has none of these words and signs and no address with a name in it has no secret.

Most texts have none, so what counts is how fast that is seen. Python finds one character at once, and a long word or what begins with one
certain character much faster than one of many."""

RARE = ascii_uppercase.encode() + b"z"
_COMMON = bytes(set(range(256)) - set(RARE))


def trace(data: bytes) -> bytes:
    """What is left of a text without its common characters. It is short, and a word can only be in the text if its trace is in this."""
    return data.translate(None, _COMMON)


TRACES = [(trace(word), word) for word in EXACT]

_STARTS = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4})|(?<=%[0-9a-fA-F]{2}))"
BEFORE = 8
"""So much of a text that is done with still decides whether a secret may begin behind it."""

TAIL = 1024
"""What is longer than this and goes on at the end of a text is found as a secret already."""


def _whole(kind: str, pieces: Sequence[Piece]) -> str:
    marks = [index for index, piece in enumerate(pieces) if piece is SECRET]
    first, last = (marks[0] if marks else 0), (marks[1] if len(marks) == 2 else len(pieces))
    parts = ["".join(piece.whole for piece in part if piece is not SECRET) for part in (pieces[:first], pieces[first:last], pieces[last:])]
    return f"{parts[0]}(?P<{kind}>{parts[1]}){parts[2]}"


def _begun(pieces: Sequence[Piece]) -> str:
    pattern = "(?!)"
    for piece in reversed([piece for piece in pieces if piece is not SECRET]):
        pattern = f"(?:{piece.begun}\\Z|{piece.whole}{pattern})" if not piece.whole.startswith("(?=") else pattern
    return pattern


def _at_starts(patterns: Sequence[str], inside: Sequence[str]) -> str:
    """Any of these: the first where a word starts, the others anywhere."""
    return f"{_STARTS}(?:{'|'.join(patterns)})|{'|'.join(inside)}"


class Found(NamedTuple):
    """A secret in a text: from where to where the match goes, and the part of it to mask."""

    start: int
    end: int
    first: int
    last: int
    kind: str


class Patterns:
    """What to look for: the kinds above, and secrets that the caller knows."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        own = [[Piece(re.escape(char)) for char in secret] for secret in secrets if secret]
        rows = [("own", row) for row in own] + [(kind, row) for kind, rows in KINDS.items() for row in rows]
        inside = [(kind, row) for kind, rows in INSIDE.items() for row in rows]
        self._own = tuple(secret.encode("utf-8", "surrogatepass") for secret in secrets if secret)
        self.spaced = any(len(secret.split(None, 1)) > 1 or secret != secret.strip() for secret in secrets)
        self._kinds = {f"k{index}": kind for index, (kind, _) in enumerate(rows + inside)}
        whole = [_whole(f"k{index}", row) for index, (_, row) in enumerate(rows + inside)]
        begun = [_begun(row) for _, row in rows + inside]
        self._secret = re.compile(_at_starts(whole[: len(rows)], ["(?!)"]))
        self._everywhere = re.compile(_at_starts(whole[: len(rows)], whole[len(rows) :]))
        self._begun = re.compile(_at_starts(begun[: len(rows)], begun[len(rows) :]))

    def possible(self, text: str | bytes) -> bool:
        """Whether it is worth looking closer."""
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        lower, rare = data.lower(), trace(data)
        return (
            (rare and any(few in rare and word in data for few, word in TRACES))
            or any(map(lower.__contains__, LOWER))
            or any(sign.search(lower) for sign in SIGNS)
            or any(char in data and sign.search(lower) for char, sign in ESCAPED.items())
            or (b"@" in data and b"://" in data)
            or any(map(data.__contains__, self._own))
        )

    def find(self, text: str, start: int = 0) -> list[Found]:
        """The secrets of a text, from a place on."""
        found: list[Found] = []
        pattern = (
            self._everywhere if any(map(text.__contains__, MARKS)) else self._secret
        )  # looking in the middle of words takes twice as long
        for match in pattern.finditer(text, start):
            group = cast("str", match.lastgroup)
            found.append(Found(*match.span(), *match.span(group), self._kinds[group]))
        return found

    def undecided(self, text: str, start: int, found: Sequence[Found], likely: bool) -> int:
        """Where at the end of a text something begins that may become a secret, or a longer one.

        Whatever goes on behind a space has one of these words in front of it; else (not ``likely``) only the last word can begin one.
        """
        start = max(start, len(text) - TAIL)
        if not likely:
            start = max(start, last_word(text))
        begun = self._begun.search(text, start)
        hold = len(text) if begun is None else begun.start()
        return min([hold, *(one.start for one in found if one.end > hold or one.end == len(text))])


_patterns = cache(Patterns)


MASK = "[redacted:"


def last_word(text: str) -> int:
    """Where the last word of a text begins; its end if that is a space."""
    return len(text) if not text or text[-1].isspace() else len(text) - len(text.rsplit(None, 1)[-1])


def mask(kind: str) -> str:
    """What stands in the place of a secret."""
    return f"{MASK}{kind}]"


# --------------------------------------------------------------------------------------------------------------------
# Events

HELD_EVENTS = 4096
HELD_TEXT = 64 * 1024
"""No more is held back than this. What is let go then is still remembered, and what comes after it is masked."""

REMEMBERED = 256

BLOCK = 128
FEW = 8
"""So many events are looked at together; fewer than these, one by one."""


class Slot(Struct, eq=False):
    """An event on its way, and for how many undecided texts it waits."""

    event: Event
    waits: int = 0


class Waiting(Struct):
    """A chunk whose text is not decided: its slot, that of its frame's bytes, and where it stands in the text of its stream."""

    slot: Slot
    frame: Slot | None
    start: int
    end: int


class Stream:
    """The text of one stream, as far as it is not decided."""

    def __init__(self) -> None:
        self.text = ""
        self.scan = 0
        """From here on secrets are looked for."""
        self.sent = 0
        """What stands before this was given out."""
        self.waiting: list[Waiting] = []
        self.moved = 0
        """How much longer the stream is by what was put in it."""


class Said:
    """What came to one stream in a block: its text, that from before included, and where in the block the chunks stand."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.parts = [stream.text]
        self.places: list[int] = []

    def undecided(self, floor: int) -> int | None:
        """The place of the first chunk of the last word, from ``floor`` on: 0 if one from before the block waits. None if there is none."""
        text = "".join(self.parts)
        left = len(text) - last_word(text)
        first = len(self.places)
        while left > 0 and first > 0 and self.places[first - 1] >= floor:
            left -= len(self.parts[first])
            first -= 1
        if left > 0 and floor == 0 and self.stream.waiting:
            return 0
        return self.places[first] if first < len(self.places) else None

    def remember(self, cut: int) -> None:
        """The stream as it is when the chunks in front of ``cut`` are given out: of what is decided only the end is needed."""
        before = "".join(self.parts[: 1 + bisect_left(self.places, cut)])
        word = max(last_word(before), len(before) - TAIL)
        start = max(0, word - BEFORE)
        stream = self.stream
        stream.text, stream.scan, stream.sent, stream.waiting = before[start:], word - start, len(before) - start, []


class Glance:
    """A block of events, as far as it takes to see that there is no secret in it. It changes nothing before `remember`."""

    def __init__(self, streams: dict[Key, Stream]) -> None:
        self._streams = streams
        self._said: dict[Key, Said] = {}
        """The streams that this block says something in, and that are open."""
        self._over: set[Key] = set()
        """The streams from before that end in this block."""
        self._texts: list[str] = []
        self._data: list[bytes] = []
        self._floor = 0
        """Behind the last event that decides all that came before it."""

    def see(self, block: Sequence[Event]) -> bool:
        """Look at the events; false if one must be looked at alone."""
        whole: list[Event] = []
        for place, event in enumerate(block):
            kind = type(event)
            if stream_of := _STREAM_OF.get(kind):
                key = stream_of(event)
                said = self._said.get(key) or self._begin(key)
                said.places.append(place)
                said.parts.append(event.payload.text if kind in _SPOKEN else event.payload.chunk)
                continue
            whole.append(event)
            if kind in _ENDS:
                self._end(event)
            elif kind is TurnEnd or kind is SessionLifecycle:
                self._floor = place + 1
        return self._see_whole(whole) and self._see_frames(block) and not any(said.stream.moved for said in self._said.values())

    def _see_whole(self, events: Sequence[Event]) -> bool:
        """What the events themselves say, but for their frames; false if one is of another make."""
        if any(map(_EXTRA, events)) or Unknown in map(type, events):
            return False
        self._texts += filter(None, chain.from_iterable(set(map(_NAMES_OF, events))))
        self._texts += [event.id for event in events]
        try:
            self._data.append(_encode([event.payload for event in events]))
        except UnicodeEncodeError:
            return False
        return True

    def _see_frames(self, events: Iterable[Event]) -> bool:
        """The frames of the events; false if one is of a kind that cannot be read as it is."""
        frames = [event.original for event in events if event.original is not None]
        data = b"\n".join([b"", *frames])
        if any(wrapper in data for wrapper in _WRAPPED):
            try:
                data = b"\n".join(map(_readable, frames))
            except UsageError:
                return False
        self._data.append(data)
        return True

    def _begin(self, key: Key) -> Said:
        stream = None if key in self._over else self._streams.get(key)
        said = self._said[key] = Said(stream or Stream())
        return said

    def _end(self, event: Event) -> None:
        for key in _ended(event, self._said) if self._said else ():
            self._texts.append("".join(self._said.pop(key).parts))
            self._over.add(key)
        for key in _ended(event, self._streams) if self._streams else ():
            if key not in self._over:
                self._texts.append(self._streams[key].text)
                self._over.add(key)

    def text(self) -> bytes:
        """All that was seen. A line end stands between what does not belong together: it is in no word of a secret."""
        said = ["".join(said.parts) for said in self._said.values()]
        return b"\n".join([*self._data, "\n".join([*self._texts, *said]).encode("utf-8", "surrogatepass")])

    def decided(self, block: Sequence[Event]) -> int:
        """How many of the events can be given out, and all from before: 0 if something waits that this block does not decide."""
        cut = len(block)
        for key, stream in self._streams.items():
            if key in self._over:
                if stream.moved:
                    return 0
            elif stream.waiting and key not in self._said:
                return 0
        for said in self._said.values():
            place = said.undecided(self._floor)
            if place is not None:
                cut = min(cut, place)
        frame = block[-1 if cut == len(block) else cut].frame
        while cut and frame is not None and block[cut - 1].frame == frame:  # the first of a frame has the bytes of all
            cut -= 1
        return cut

    def remember(self, cut: int) -> None:
        """Go on from here: the events in front of ``cut`` are given out."""
        for key in self._over:
            self._streams.pop(key, None)
        for key, said in self._said.items():
            said.remember(cut)
            self._streams[key] = said.stream


class Redacted:
    """Events with their secrets masked: iterate over it once, then ask what was ``masked``."""

    def __init__(self, events: Iterable[Event], secrets: Iterable[str] = ()) -> None:
        self.masked: Masked = {}
        self._events = events
        self._secrets = tuple(secrets)
        self._patterns = _patterns(self._secrets)
        self._queue: deque[Slot] = deque()
        self._streams: dict[Key, Stream] = {}
        self._frame: Slot | None = None
        """Where the bytes of the frame are that is being read."""

    def __iter__(self) -> Iterator[Event]:
        if isinstance(self._events, Sequence):
            for start in range(0, len(self._events), BLOCK):
                yield from self.take(self._events[start : start + BLOCK])
        else:  # somebody may be waiting for each
            for event in self._events:
                if isinstance(event, SessionLifecycle):
                    self._learn(event)
                yield from self._one(event)
        yield from self.finish()

    def take(self, block: Sequence[Event]) -> list[Event]:
        """What is decided when these events have come, in order. Many at once are less work than each alone."""
        for event in block:
            if type(event) is SessionLifecycle:
                self._learn(event)
        if len(block) <= FEW:
            return [ready for event in block for ready in self._one(event)]
        passed = self._pass(block)
        if passed is not None:
            return passed
        some = -(-len(block) // 4)
        return [ready for start in range(0, len(block), some) for ready in self.take(block[start : start + some])]

    def blocks(self, blocks: Iterable[Sequence[Event]]) -> Iterator[list[Event]]:
        """Blocks of events, masked. Where the blocks of the result begin and end is another matter."""
        yield from map(self.take, blocks)
        yield self.finish()

    def finish(self) -> list[Event]:
        """The events that were held back: nothing more comes."""
        self._decide_all()
        rest = [slot.event for slot in self._queue]
        self._queue.clear()
        return rest

    def _learn(self, launch: SessionLifecycle) -> None:
        """A session says at its launch what it gives to MCP servers: from there on that is a secret, whatever it looks like."""
        if new := set(_given(launch)).difference(self._secrets):
            self._secrets += tuple(sorted(new))
            self._patterns = _patterns(self._secrets)

    def _one(self, event: Event) -> Iterator[Event]:
        if isinstance(event, Chunk):
            self._chunk(event)
        else:
            self._decide(event)
            self._add(Slot(self._clean(event)))
        return self._ready(event)

    # Many events

    def _pass(self, block: Sequence[Event]) -> list[Event] | None:
        """The events as they are, if nothing of them can be a secret; what may begin one at their end is held back as ever."""
        glance = Glance(self._streams)
        if not glance.see(block) or self._patterns.spaced or self._patterns.possible(glance.text()):
            return None
        cut = glance.decided(block)
        if cut == 0 or (self._queue and self._queue[-1].event.frame == block[0].frame is not None):
            return None
        glance.remember(cut)
        passed = [slot.event for slot in self._queue]
        passed += block[:cut]
        self._queue.clear()
        self._frame = None
        for event in block[cut:]:
            passed += self._one(event)
        return passed

    def _add(self, slot: Slot) -> None:
        self._queue.append(slot)
        if slot.event.original is not None or (self._frame is not None and slot.event.frame != self._frame.event.frame):
            self._frame = slot if slot.event.original is not None else None

    def _ready(self, newest: Event) -> Iterator[Event]:
        """What is decided, in order. A frame's first event has its bytes, so it waits for the others of the frame."""
        if len(self._queue) > HELD_EVENTS:
            self._decide_all()
        while self._queue and not self._queue[0].waits and (newest.frame is None or self._queue[0].event.frame != newest.frame):
            yield self._queue.popleft().event

    # Texts in pieces

    def _chunk(self, event: Chunk) -> None:
        slot = Slot(self._clean_original(event))
        self._add(slot)
        stream = self._streams.setdefault(_STREAM_OF[type(event)](event), Stream())
        start = len(stream.text)
        stream.text += _text(event)
        stream.waiting.append(Waiting(slot, self._frame, start, len(stream.text)))
        for held in _slots(slot, self._frame):
            held.waits += 1
        self._settle(stream, len(stream.text) - stream.sent > HELD_TEXT)

    def _decide(self, event: Event) -> None:
        """Nothing more comes to the streams that this event ends."""
        if isinstance(event, TurnEnd | SessionLifecycle):
            self._decide_all()
        else:
            for key in _ended(event, self._streams):
                self._settle(self._streams.pop(key), True)

    def _decide_all(self) -> None:
        for stream in self._streams.values():
            self._settle(stream, True)

    def _settle(self, stream: Stream, now: bool) -> None:
        """Give the chunks their texts, as far as no further text can change them; ``now``: all of them."""
        likely = self._patterns.possible(stream.text)
        found = self._patterns.find(stream.text, stream.scan) if likely else []
        hold = self._patterns.undecided(stream.text, stream.scan, found, likely or self._patterns.spaced)
        decided = len(stream.text) if now else hold
        kept = list(stream.waiting)
        while kept and kept[0].end <= decided:
            self._give(stream, kept.pop(0), found)
        stream.waiting = kept
        stream.sent = kept[0].start if kept else len(stream.text)
        crossing = [one.start for one in found if one.start < stream.sent < one.end]
        self._forget(stream, min([hold, stream.sent, *crossing]))

    def _give(self, stream: Stream, chunk: Waiting, found: Sequence[Found]) -> None:
        """The text of a chunk without what is secret. The mask stands where the secret begins, in one chunk of several."""
        parts: list[str] = []
        position = chunk.start
        event = cast("Chunk", chunk.slot.event)
        for one in found:
            if one.last <= chunk.start or one.first >= chunk.end:
                continue
            parts.append(stream.text[position : max(position, one.first)])
            if one.first >= chunk.start:
                parts.append(mask(one.kind))
                self._count(one.kind, event.type)
            position = min(one.last, chunk.end)
        before, after = stream.text[chunk.start : chunk.end], "".join(parts) + stream.text[position : chunk.end]
        for held in _slots(chunk.slot, chunk.frame):
            held.waits -= 1
            if before != after and held.event.original is not None:
                _put(held, original=self._respelled(held.event.original, before, after, event.type))
        if before != after or stream.moved:
            _put(chunk.slot, payload=_with_text(event, after, stream.moved))
        stream.moved += len(after) - len(before)

    def _respelled(self, original: Raw, before: str, after: str, kind: str) -> Raw:
        """The frame of a chunk with the chunk's text changed. If it says that text in a way of its own (encoded, or with what came before),
        and nothing in it was masked, nobody can say what of it is secret: then all of it is."""
        wrapped = bytes(original).startswith((TEXT, BASE64))
        text = (unwrap(original) if wrapped else bytes(original)).decode("utf-8", "surrogateescape")
        changed = _with_string(text, before, after)
        if changed == text and MASK not in text:
            self._count("frame", f"{kind}, its frame")
            changed = _JSON.sub(f'{{"masked":"{mask("frame")}"}}', text) if _JSON.search(text) else mask("frame")
        return wrap(changed.encode("utf-8", "surrogateescape"))

    def _forget(self, stream: Stream, upto: int) -> None:
        """What is decided and given out is not needed any more, but for what may still turn out to be the beginning of a secret."""
        if len(stream.text) - upto > HELD_TEXT and not stream.waiting:  # a very long one: its beginning is enough to know it by
            stream.text = stream.text[: upto + REMEMBERED]
            stream.sent = len(stream.text)
        cut = max(0, upto - BEFORE)
        stream.text, stream.scan, stream.sent = stream.text[cut:], upto - cut, stream.sent - cut
        for chunk in stream.waiting:
            chunk.start, chunk.end = chunk.start - cut, chunk.end - cut

    # Whole events

    def _clean(self, event: Event) -> Event:
        unreadable = event.original is not None and bytes(event.original).startswith(BASE64)
        if not unreadable and not self._patterns.possible(encode(event).decode()):
            return event
        event = self._clean_original(event)
        bare = msgspec.structs.replace(event, original=None)
        if isinstance(bare, Unknown):
            bare.fields = {name: value for name, value in bare.fields.items() if name != "original"}
        before = encode(bare).decode()
        after = self._masked(before, event.type)
        if after == before:
            return event
        cleaned = decode(after)
        cleaned.original = event.original
        return cleaned

    def _clean_original(self, event: Event) -> Event:
        """The event with its frame masked: the frame's own bytes, however they are kept."""
        if event.original is None:
            return event
        data = bytes(event.original)
        named = reference(event.original)
        if named is not None:  # the ends that it shows may be those of a secret
            return msgspec.structs.replace(event, original=Raw(msgspec.json.encode(BlobReference(named.blob, named.size))))
        where = f"{event.type}, its frame"
        try:
            text = (unwrap(event.original) if data.startswith((TEXT, BASE64)) else data).decode("utf-8", "surrogateescape")
        except UsageError:  # a damaged wrapper says what it says
            text = data.decode("utf-8", "surrogateescape")
        after = self._masked(text, where)
        if after == text:
            return event
        return msgspec.structs.replace(event, original=wrap(after.encode("utf-8", "surrogateescape")))

    def _masked(self, text: str, where: str) -> str:
        found = self._patterns.find(text) if self._patterns.possible(text) else []
        for one in found:
            self._count(one.kind, where)
        return _replaced(text, found)

    def _count(self, kind: str, where: str) -> None:
        places = self.masked.setdefault(kind, {})
        places[where] = places.get(where, 0) + 1


def redact(events: Iterable[Event], secrets: Iterable[str] = ()) -> Redacted:
    """Events with their secrets masked; ``secrets`` are further ones that you know. ``masked`` says what was found, never the secret."""
    return Redacted(events, secrets)


def masked(text: str, secrets: Iterable[str] = ()) -> str:
    """A text with its secrets masked: for what is said about a failure, which may name anything that somebody gave."""
    patterns = _patterns(tuple(secrets))
    return _replaced(text, patterns.find(text)) if patterns.possible(text) else text


def _replaced(text: str, found: Sequence[Found]) -> str:
    parts: list[str] = []
    position = 0
    for one in found:
        parts += text[position : one.first], mask(one.kind)
        position = one.last
    return "".join(parts) + text[position:] if parts else text


_ENDS: dict[type[Event], tuple[type[Event], ...]] = {
    AssistantDone: (AssistantChunk,),
    ThinkingDone: (ThinkingChunk,),
    ToolCall: (ToolInputChunk,),
    ToolResult: (ToolInputChunk, ToolOutputChunk),
}
_WRAPPED = [b"\n" + wrapper for wrapper in WRAPPERS]
_JSON = re.compile(r"\{.*\}", re.DOTALL)
_LIKE_A_KEY = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[^\s/]{8,}")
_SPEECH = attrgetter("__class__", "parent_tool_call_id", "stream", "response_id", "block_index")
_SPOKEN = (AssistantChunk, ThinkingChunk)
_STREAM_OF: dict[type[Event], Callable[[Any], Key]] = {
    AssistantChunk: _SPEECH,
    ThinkingChunk: _SPEECH,
    ToolInputChunk: attrgetter("__class__", "parent_tool_call_id", "payload.tool_call_id", "stream"),
    ToolOutputChunk: attrgetter("__class__", "parent_tool_call_id", "payload.tool_call_id", "stream", "payload.stream"),
}
_EXTRA = attrgetter("extra")
_NAMES_OF = attrgetter("session_id", "turn_id", "response_id", "parent_tool_call_id", "source", "stream", "command_id", "eol")
_encode = msgspec.json.Encoder().encode
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


def _given(launch: SessionLifecycle) -> Iterator[str]:
    """The words in the variables and headers of MCP servers, but for paths and words that say something: an agent may say these, too."""
    options = as_object(as_object(launch.payload.detail).get("options"))
    for about in map(as_object, as_object(options.get("mcpServers")).values()):
        for value in (*as_object(about.get("env")).values(), *as_object(about.get("headers")).values()):
            yield from filter(_LIKE_A_KEY.fullmatch, str(value).split())


def _ended(event: Event, streams: Iterable[Key]) -> list[Key]:
    """The streams to which nothing more comes after this event."""
    ends = _ENDS.get(type(event))
    if ends is None:
        return []
    call = event.payload.tool_call_id if isinstance(event, ToolCall | ToolResult) else None
    return [key for key in streams if key[0] in ends and key[1] == event.parent_tool_call_id and (call is None or key[2] == call)]


def _readable(frame: Raw) -> bytes:
    """The bytes of a frame that is text; `UsageError` of any other."""
    if bytes(frame).startswith((BASE64, BLOB)):
        raise UsageError("not text")
    return unwrap(frame)


def _text(event: Chunk) -> str:
    return event.payload.text if isinstance(event, AssistantChunk | ThinkingChunk) else event.payload.chunk


def _with_text(event: Chunk, text: str, moved: int) -> object:
    if isinstance(event, AssistantChunk | ThinkingChunk):
        return msgspec.structs.replace(event.payload, text=text)
    return msgspec.structs.replace(event.payload, chunk=text, offset=max(0, event.payload.offset + moved))


def _slots(own: Slot, frame: Slot | None) -> list[Slot]:
    return [own] if frame is None or frame is own else [own, frame]


def _put(slot: Slot, **changes: object) -> None:
    slot.event = msgspec.structs.replace(slot.event, **changes)


def _with_string(text: str, before: str, after: str) -> str:
    """JSON with one string changed, however it is escaped there."""

    def change(string: re.Match[str]) -> str:
        try:
            said = msgspec.json.decode(string.group().encode("utf-8", "surrogateescape"))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return string.group()
        return msgspec.json.encode(after).decode() if said == before else string.group()

    return _STRING.sub(change, text)
