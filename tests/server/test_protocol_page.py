"""docs/protocol.md and hansard.server.protocol say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import fields

from hansard.agents.commands import CommandKind
from hansard.agents.session import Session
from hansard.server import protocol

PAGE = (Path(__file__).parents[2] / "docs/protocol.md").read_text()


def test_every_limit_is_in_the_table():
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \| ([\d, ]+) \|", PAGE.partition("## Limits")[2], re.MULTILINE)
    said = {name: number for names, numbers in rows for name, number in zip(re.findall("[a-z_]+", names), numbers.split(", "), strict=True)}
    assert {name: int(number.replace(",", "")) for name, number in said.items()} == {
        field.name: field.default for field in fields(protocol.Limits)
    }


@pytest.mark.parametrize("kind", [*protocol.AnySaid.__args__, *protocol.AnyHeard.__args__], ids=lambda kind: kind.__name__)
def test_every_message_of_the_socket_is_on_the_page_with_its_fields(kind: type):
    said = re.findall(r"`(\{[^`]*\"type\": \"" + str(kind.__struct_config__.tag) + r"\"[^`]*\})`", PAGE)
    assert said, kind
    named = {word for example in said for word in re.findall(r'"(\w+)"\??:', example)}
    assert {field.encode_name for field in fields(kind)} <= named


def test_every_command_is_in_the_table_with_its_fields():
    rows = PAGE.partition("| event | payload | |\n|---|---|---|\n")[2].partition("\n\n")[0].splitlines()
    assert rows == [row(kind) for kind in Session.commands.kinds]


def row(kind: CommandKind) -> str:
    """A command as a row of the table."""
    names = {field.name: field.encode_name for field in fields(kind.payload_struct())}
    where = [f'`{kind.where[0]}: "{kind.where[1]}"`'] if kind.where else []
    payload = [*where, *(f"`{names[name]}`" for name in kind.required.split()), *(f"`{names[name]}?`" for name in kind.optional.split())]
    return f"| `{kind.type}` | {', '.join(payload)} | {kind.summary} |"


@pytest.mark.parametrize(
    ("kind", "where"), [(protocol.Listed, "A session in the list"), (protocol.SessionOptions, "`options` of a new session")]
)
def test_lists_of_fields(kind: type, where: str):
    text = where + PAGE.partition(where)[2].partition("\n\n")[0]
    assert {field.encode_name for field in fields(kind)} <= set(re.findall(r"`(\w+)`", text))
