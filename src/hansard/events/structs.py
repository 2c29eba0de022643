"""Structs that are read from JSON, made ready where they are defined.

msgspec looks at a struct when it is first read. If two threads do that at once, one of them may use what the other has not finished, and
the process is gone (0.22: a segmentation fault). A module is imported by one thread alone, and the others wait for it: so that is the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


def prepare(defined: dict[str, Any], *before: msgspec.json.Decoder[Any]) -> None:
    """Make the structs of a module ready to be read: ``prepare(globals())`` as its last line.

    If they hold events or parts of them, these come first: ``prepare(globals(), strict.decoder)``.
    """
    for value in list(defined.values()):
        if isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__module__ == defined["__name__"]:
            msgspec.json.Decoder(value)


def union_of(*structs: type[msgspec.Struct]) -> Any:
    """Return the union of these structs and of all structs that are derived from them, ready to be read.

    Type checkers cannot follow a union that is computed: where a field has this type, declare it as ``Any`` for them.
    """
    union = Union[tuple(member for struct in structs for member in members(struct))]  # noqa: UP007 (``|`` cannot join a list)
    msgspec.json.Decoder(union)
    return union


def members(struct: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    """Yield the struct and all that are derived from it, except those whose name begins with an underscore."""
    if not struct.__name__.startswith("_"):
        yield struct
    for derived in struct.__subclasses__():
        yield from members(derived)


def respell(struct: type[S], *, rename: Literal["camel"] | dict[str, str] | None = None, tag: str | None = None) -> type[S]:
    """Return a subclass of ``struct`` for a wire that spells the same message differently: other names of its fields, another ``type``.

    ``"camel"`` holds for the structs in its fields as well.
    """
    fields: list[Any] = []
    for field in msgspec.structs.fields(struct):
        kind = _respell_parts(field.type, rename) if isinstance(rename, str) else field.type
        fields.append((field.name, kind) if field.required else (field.name, kind, field.default))
    tag_field = None if tag is None else "type"
    made = msgspec.defstruct(
        tag or struct.__name__, fields, bases=(struct,), module=struct.__module__, tag_field=tag_field, tag=tag, rename=rename, kw_only=True
    )
    return cast("type[S]", made)


def _respell_parts(kind: Any, rename: Literal["camel"]) -> Any:
    """Return a field's type with the structs in it respelled."""
    if isinstance(kind, msgspec.StructMeta):
        return respell(cast("type[msgspec.Struct]", kind), rename=rename)
    if isinstance(kind, UnionType):
        return Union[tuple(_respell_parts(one, rename) for one in kind.__args__)]  # noqa: UP007 (``|`` cannot join a list)
    return kind
