"""Commands: the events that a client may send to a session, and which fields of them it may set. The table of them is in session.py.

Every other field is refused: it would not be done, or would forge the record.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType, NoneType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args

import msgspec
from msgspec import Meta, Struct, field

from hansard.agents.base import Options
from hansard.errors import Refused
from hansard.events import TITLE_CHARACTERS, Event, decoder
from hansard.events.lenient import as_object
from hansard.events.structs import prepare

CommandId = Annotated[str, Meta(min_length=1, max_length=128)]
Name = Annotated[str, Meta(min_length=1, max_length=128)]
Title = Annotated[str, Meta(min_length=1, max_length=TITLE_CHARACTERS)]

Needs = Literal["agent", "session", "log", "open session"]
"""What a command is done with: a running agent, which is started if it does not run; the session, which is opened; the log alone; or the
session if it is open, because otherwise there is nothing to do."""


class SessionOptions(Struct, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """What a client may choose when an agent is started. Which program runs, and in which environment, is not among it."""

    cwd: str | None = None
    model: str | None = None
    permission_mode: str | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    allowed_tools: list[str] | None = None
    denied_tools: list[str] | None = None
    messaging: bool | None = field(default=None, name="talk")
    """Whether it may message other agents. ``talk`` is its name on the wire."""
    resume: str | None = None

    def resolve(self) -> Options:
        """Returns the options for the agent. Raises `Refused` if there is no such folder."""
        options = Options(**{name: value for name, value in msgspec.structs.asdict(self).items() if value is not None})
        options.cwd = os.path.abspath(os.path.expanduser(options.cwd))
        if not os.path.isdir(options.cwd):
            raise Refused("bad_request", f"there is no folder {options.cwd}")
        return options


class CommandKind(NamedTuple):
    """A command: the event that it is, what does it, and the fields of the payload that a client may set."""

    event: type[Event]
    do: Callable[[Any, Any], Awaitable[Event | None]]
    """A method of `Session`. It returns the event as it is in the log; None if there was nothing to do."""
    summary: str
    required: str = ""
    """Names of fields, separated by spaces."""
    optional: str = ""
    types: Mapping[str, Any] = MappingProxyType({})
    """The types of fields that are narrower for clients than in the event."""
    where: tuple[str, str] | None = None
    """The field of the payload, and its value, that make this command of an event that several commands share."""
    needs: Needs = "session"

    @property
    def type(self) -> str:
        """The type of the event."""
        return str(self.event.__struct_config__.tag)

    def payload_struct(self) -> type[Struct]:
        """Returns the type that reads the payload of a client."""
        known = {one.name: one for one in msgspec.structs.fields(_payload(self.event))}
        fields: list[Any] = [(name, self.types.get(name) or _without_none(known[name].type)) for name in self.required.split()]
        fields += [(name, self.types.get(name, known[name].type), known[name].default) for name in self.optional.split()]
        tag_field, tag = self.where or (None, None)
        name = f"{self.event.__name__}{(tag or '').title()}Fields"
        return msgspec.defstruct(name, fields, rename="camel", forbid_unknown_fields=True, tag_field=tag_field, tag=tag)


class CommandTable:
    """Every command. What clients send is read by this table, and the OpenAPI document describes it."""

    def __init__(self, *kinds: CommandKind) -> None:
        self.kinds: list[CommandKind] = []
        self.add(*kinds)

    def add(self, *kinds: CommandKind) -> None:
        """Adds commands."""
        self.kinds += kinds
        self._by_struct = {kind.payload_struct(): kind for kind in self.kinds}
        self.type: Any = Union[tuple(self._event_struct(event) for event in dict.fromkeys(kind.event for kind in self.kinds))]  # noqa: UP007
        """The type of a command as a client sends it."""
        self._decoder = msgspec.json.Decoder(self.type)

    def _event_struct(self, event: type[Event]) -> type[Struct]:
        payload: Any = Union[tuple(struct for struct, kind in self._by_struct.items() if kind.event is event)]  # noqa: UP007
        fields: list[Any] = [("command_id", CommandId), ("payload", payload)]
        tag = str(event.__struct_config__.tag)
        return msgspec.defstruct(f"{event.__name__}Command", fields, rename="camel", forbid_unknown_fields=True, tag_field="type", tag=tag)

    def find(self, command: Event) -> CommandKind:
        """Returns the entry of a command. Raises `Refused` if the event is not a command."""
        for kind in self.kinds:
            if type(command) is kind.event and (kind.where is None or getattr(command.payload, kind.where[0]) == kind.where[1]):
                return kind
        raise Refused("bad_request", f"this {command.type} event is not a command")

    def read(self, data: bytes | msgspec.Raw) -> Event:
        """Reads the command of a client. Raises `Refused` if it has a field or a value that a client may not set."""
        try:
            given = self._decoder.decode(data)
        except msgspec.ValidationError as problem:
            raise Refused("bad_request", f"{problem}; {self._help(data)}") from problem
        kind = self._by_struct[type(given.payload)]
        fields = msgspec.structs.asdict(given.payload) | dict([kind.where] if kind.where else [])
        return kind.event(payload=_payload(kind.event)(**fields), command_id=given.command_id)

    def _help(self, data: bytes | msgspec.Raw) -> str:
        named = as_object(msgspec.json.decode(data)).get("type")
        kinds = [kind for kind in self.kinds if kind.type == named]
        if not kinds:
            return f"a client may send {', '.join(dict.fromkeys(kind.type for kind in self.kinds))}"
        structs = [struct for struct, kind in self._by_struct.items() if kind in kinds]
        names = dict.fromkeys(one.encode_name for struct in structs for one in msgspec.structs.fields(struct))
        where = dict.fromkeys(kind.where[0] for kind in kinds if kind.where is not None)
        return f"a client sends a {named} with commandId and payload, and may set in its payload: {', '.join([*where, *names])}"


def command_id_of(data: bytes | msgspec.Raw) -> str:
    """Returns the id of a command that may not be valid; "" if it has none."""
    found = as_object(msgspec.json.decode(data)).get("commandId")
    return found if isinstance(found, str) else ""


def _payload(event: type[Event]) -> type[Struct]:
    return next(one.type for one in msgspec.structs.fields(event) if one.name == "payload")


def _without_none(kind: Any) -> Any:
    """Returns the type of a field that must be set."""
    return Union[tuple(one for one in get_args(kind) if one is not NoneType)] if NoneType in get_args(kind) else kind  # noqa: UP007


prepare(globals(), decoder.decoder)
