"""``hansard schema``: the types of events and blocks as a JSON Schema. The types are the schema; this only spells them out."""

from __future__ import annotations

from typing import Any

import click

from hansard.cli.options import json_anyway_option

DIALECT = "https://json-schema.org/draft/2020-12/schema"


@click.command("schema")
@json_anyway_option
def command() -> None:
    """Print the JSON Schema of events.

    A log is one JSON object per line; each is valid against it. A newer writer may use types and fields that are not in it.
    """
    import json

    click.echo(json.dumps(schema(), indent=2, ensure_ascii=False))


def schema() -> dict[str, Any]:
    """The schema of a line of a log: every event type, every block, every payload."""
    import msgspec

    from hansard.events import SCHEMA_VERSION, TYPES
    from hansard.events.content import BLOCKS

    events = list(TYPES.values())
    _, parts = msgspec.json.schema_components([*events, *BLOCKS.values()], ref_template="#/$defs/{name}")
    for event in events:
        _open_original(parts[event.__name__])
    for part in parts.values():
        part.pop("additionalProperties", None)
    mapping = {str(event.__struct_config__.tag): f"#/$defs/{event.__name__}" for event in events}
    newer = {"description": "An event of a newer version.", "properties": {"type": {"type": "string", "not": {"enum": list(mapping)}}}}
    return {
        "$schema": DIALECT,
        "title": "hansard event",
        "description": f"One line of a hansard log, schema version {SCHEMA_VERSION}.",
        "type": "object",
        "discriminator": {"propertyName": "type", "mapping": mapping},
        "required": ["type", "payload"],
        "anyOf": [*({"$ref": place} for place in mapping.values()), newer],
        "$defs": dict(sorted(parts.items())),
    }


def _open_original(event: dict[str, Any]) -> None:
    """An original is any JSON at all. What `Event.extra` holds is written in its place, so a line has no such field."""
    properties = event["properties"]
    properties["original"] = {"description": "The wire frame, verbatim, or where it is."}
    properties.pop("$extra", None)
