"""Options and inputs that several verbs share."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from itertools import chain
from pathlib import Path
from stat import S_ISREG
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar, cast

import click

from hansard.cli.completers import formats
from hansard.errors import UsageError

if TYPE_CHECKING:
    from hansard.store import Store
    from hansard.store.filters import SessionFilter

F = TypeVar("F", bound=Callable[..., Any])

AUTO = "auto"


class Age(NamedTuple):
    """How long ago: as it was said, and in ms."""

    text: str
    ms: float


def age(value: str) -> Age:
    """A number of days, or one with its unit: ``30d``, ``12h``, ``8w``."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([hdw]?)", value)
    if found is None:
        raise click.BadParameter(f"{value!r} is no age; say it like 30d, 12h or 8w")
    number, unit = found.groups()
    return Age(f"{number}{unit or 'd'}", float(number) * _HOURS[unit] * 3_600_000)


_HOURS = {"h": 1, "d": 24, "": 24, "w": 7 * 24}


def store_option(function: F) -> F:
    """``--store PLACE``."""
    text = "Where the record is kept: a folder, or postgresql://…; $HANSARD_STORE or ~/.hansard if not said."
    return click.option("--store", metavar="PLACE", help=text)(function)


def json_option(function: F) -> F:
    """``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")(function)


def json_anyway_option(function: F) -> F:
    """``--json`` where the output is JSON in any case, so that a script can say it to every command."""
    return click.option("--json", is_flag=True, expose_value=False, help="JSON; it is never anything else.")(function)


def filter_options(*left_out: str) -> Callable[[F], F]:
    """The filters, which the command gets as one ``wanted``, without those that mean nothing to it."""

    def decorate(function: F) -> F:
        from hansard.store.filters import FILTER_WORDS, REPEATABLE_FILTERS

        names = [name for name in FILTER_WORDS if name not in left_out]

        @wraps(function)
        def command(**given: Any) -> Any:
            words = {name: given.pop(name) for name in names}
            return function(wanted=_filter(words), **given)

        for name in reversed(names):
            is_list = name in REPEATABLE_FILTERS
            metavar = {"touched": "PATH", "cost_over": "USD", "since": "TIME", "until": "TIME"}.get(name, name.upper())
            command = click.option(f"--{name.replace('_', '-')}", multiple=is_list, metavar=metavar, help=FILTER_WORDS[name])(command)
        return cast("F", command)

    return decorate


def _filter(words: dict[str, Any]) -> SessionFilter:
    from datetime import datetime

    from hansard.store.filters import parse_filter

    return parse_filter(words, datetime.now().astimezone(), os.getcwd())


def limit_option(default: int) -> Callable[[F], F]:
    """``--limit N``; with 0, there is none."""
    help = "How many to show; 0 shows all."
    return click.option("--limit", type=click.IntRange(0), default=default, show_default=True, metavar="N", help=help)


def open_option(function: F) -> F:
    """``--open``."""
    text = "Open the page in a browser. Default: if there is one, and this is a terminal."
    return click.option("--open/--no-open", "opens", default=None, help=text)(function)


def format_option(function: F) -> F:
    """``--from FORMAT``."""
    text = "The wire format, or auto to recognise it; `hansard doctor` lists them."
    return click.option("--from", "format", metavar="FORMAT", default=AUTO, show_default=True, help=text, shell_complete=formats)(function)


def no_original_option(function: F) -> F:
    """``--no-original``."""
    return click.option("--no-original", is_flag=True, help="Leave the verbatim frames out.")(function)


def variables(given: Sequence[str]) -> dict[str, str]:
    """Returns the values of ``--env NAME=VALUE``."""
    pairs = [text.partition("=") for text in given]
    if wrong := [name for name, sign, _ in pairs if not sign]:
        raise UsageError(f"--env wants NAME=VALUE, not {wrong[0]!r}")
    return {name: value for name, _, value in pairs}


def store_place(given: str | None) -> Path | str:
    """Where the store is: a folder, or the address of a database, which is a str."""
    from hansard.store import default_location, is_database

    if not given:
        return default_location()
    return given if is_database(given) else Path(given).expanduser()


def store_path(given: str | None) -> Path:
    """The folder of the store, for what needs one."""
    place = store_place(given)
    if isinstance(place, str):
        raise UsageError("this works on a store in a folder; a database keeps its logs by itself")
    return place


def note(message: str) -> None:
    """A remark beside the output: on stderr, on one line."""
    from hansard.cli.failures import masked, one_line

    click.echo(f"hansard: {one_line(masked(message))}", err=True)


def note_captured(store: Store) -> None:
    """Says how many sessions are left out because they are not read yet."""
    if waiting := len(store.captured()):
        note(f"{waiting} {'session is' if waiting == 1 else 'sessions are'} left out, not read yet; `hansard import --wait` reads them")


class Source:
    """A stream of bytes to read, from a file or from stdin, whose beginning can be looked at."""

    def __init__(self, name: str) -> None:
        from hansard.adapters.detection import HEAD

        self.name = name
        if name == "-" and sys.stdin.isatty():
            raise UsageError("nothing to read: name a file, or pipe something in")
        self._raw = cast("BinaryIO", sys.stdin.buffer if name == "-" else click.open_file(name, "rb"))
        self.file = _text(self._raw) if name.endswith(".zst") else self._raw
        command = click.get_current_context(silent=True)
        if command is not None and name != "-":
            command.call_on_close(self._close)
        self._size = HEAD
        self._head = b""
        self.advance: Callable[[int], object] | None = None
        """Told how many bytes were read, if somebody wants to know."""

    def _close(self) -> None:
        self.file.close()
        self._raw.close()

    @property
    def size(self) -> int:
        """How many bytes it is; 0 if nobody knows."""
        status = os.fstat(self.file.fileno()) if self.name != "-" and not self.name.endswith(".zst") else None
        return status.st_size if status is not None and S_ISREG(status.st_mode) else 0

    @property
    def path(self) -> Path | None:
        """The file, if it is one."""
        return None if self.name == "-" else Path(self.name)

    def head(self) -> bytes:
        """How the stream begins: as much as recognising takes, or all there is so far."""
        if not self._head:
            self._head = cast("IO[bytes]", self.file).read(self._size) if self.name != "-" else _first_lines(self.file, self._size)
        return self._head

    def chunks(self) -> Iterator[bytes]:
        """All of the stream."""
        from hansard.adapters.normalize import READ_SIZE

        read = cast("Callable[[int], bytes]", getattr(self.file, "read1", self.file.read))  # a pipe gives what it has
        for chunk in chain([self._head] if self._head else [], iter(lambda: read(READ_SIZE), b"")):
            if self.advance is not None:
                self.advance(len(chunk))
            yield chunk

    def format(self, given: str) -> str:
        """The format that was given, or the one the beginning shows."""
        if given != AUTO:
            return given
        from hansard.adapters.detection import detect

        found = detect(self.head())
        if not self.head():
            raise UsageError(f"{self.title} is empty: there is nothing to read")
        if found is None:
            raise UsageError(f"{self.title}: no known format begins like this; name one with --from (`hansard doctor` lists them)")
        note(f"{self.title}: read as {found}")
        return found

    @property
    def title(self) -> str:
        """What to call it in messages."""
        return "stdin" if self.name == "-" else self.name


def _text(file: BinaryIO) -> BinaryIO:
    from hansard.store.files.compressed import decompress_stream

    return decompress_stream(file)


def _first_lines(file: BinaryIO, size: int) -> bytes:
    """What a pipe says first, until there is enough to recognise: it may take its time, so we do not wait for more than we need."""
    from hansard.adapters.detection import detect

    read = cast("Callable[[int], bytes]", getattr(file, "read1", file.read))
    head = b""
    while len(head) < size and (chunk := read(size - len(head))):
        head += chunk
        if b"\n" in chunk and detect(head[: head.rindex(b"\n") + 1]) is not None:
            break
    return head


def session_name(name: str) -> str:
    """A session id made of a file name."""
    if name == "-":
        return "stdin"
    words = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(name).stem).strip("-_")
    return words[:64] or "session"
