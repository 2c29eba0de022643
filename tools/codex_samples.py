"""One message of every kind that Codex' app-server declares, made from its own schema, for tests/codex-app-server.jsonl.

codex app-server generate-json-schema --out DIR --experimental
python tools/codex_samples.py DIR > tests/codex-app-server.jsonl
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DEPTH = 12
"""Types that contain themselves are left out below this."""

Schema = dict[str, Any]


def messages(folder: Path) -> Iterator[Schema]:
    """Every notification, those about items once for each type of item, then every request."""
    for kind in ("ServerNotification", "ServerRequest"):
        whole = json.loads((folder / f"{kind}.json").read_bytes())
        make = Maker(whole["definitions"])
        for declared in whole["oneOf"]:
            message = make.value(declared)
            if message["method"] in ("item/started", "item/completed"):
                for item in whole["definitions"]["ThreadItem"]["oneOf"]:
                    yield message | {"params": message["params"] | {"item": make.value(item)}}
            else:
                yield message


class Maker:
    """Makes a value of a type, with every field that the type can have."""

    def __init__(self, definitions: Schema) -> None:
        self.definitions = definitions

    def value(self, schema: Any, depth: int = 0) -> Any:
        """A value: the first of what may be chosen, something rather than nothing."""
        if schema is True or depth > DEPTH:
            return None
        match schema:
            case {"$ref": str(name)}:
                return self.value(self.definitions[name.removeprefix("#/definitions/")], depth + 1)
            case {"const": value} | {"enum": [value, *_]}:
                return value
            case {"allOf": [one]}:
                return self.value(one, depth + 1)
            case {"properties": fields}:
                chosen = self.value({"anyOf": schema["anyOf"]}, depth) if "anyOf" in schema else {}
                return {name: self.value(field, depth + 1) for name, field in fields.items()} | chosen
            case {"oneOf": choices} | {"anyOf": choices}:
                return self.value(next((one for one in choices if one.get("type") != "null"), choices[0]), depth + 1)
            case {"type": [*types]}:
                return self.value(schema | {"type": next(one for one in types if one != "null")}, depth)
            case {"type": "array", "items": item}:
                return [self.value(item, depth + 1)]
            case _:
                return {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "object": {}, "array": []}.get(schema.get("type"))


if __name__ == "__main__":
    for one in messages(Path(sys.argv[1])):
        print(json.dumps(one))
