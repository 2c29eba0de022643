"""Rewrite the generated pages of docs/: what is true of the recordings, and the vocabulary. `make docs`.

``--check`` writes nothing and exits 1 if a page is stale.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from hansard.adapters import formats
from hansard.events import TYPES, ErrorCode, ErrorInfo, Event, PermissionOption, PlanEntry, RawReason, TurnStatus, Usage, Workspace
from hansard.events.codec import encode
from hansard.events.content import BLOCKS
from hansard.testing import facts
from hansard.testing.truth import STORIES
from tests.recorded import losses, losses_in, medium_of, normalize_recording, recordings, streams
from tests.stories import endings
from tools.cli_page import command_line
from tools.code_drawing import drawing as code_drawing
from tools.features import NOTICE, drops, features, table
from tools.growth import growth
from tools.performance import performance
from tools.projections import projections
from tools.readme import agents_page, readme
from tools.reliability import reliability
from tools.tools_page import tools

DOCS = Path(__file__).parent.parent / "docs"
KINDS = {
    "user": "user",
    "text": "text",
    "thinking": "thinking",
    "refusal": "refusals",
    "block": "other blocks",
    "tool_call": "tool calls",
    "tool_result": "results",
    "permission": "permissions",
    "interrupt": "interrupts",
    "usage": "usage",
    "end": "ends",
    "error_code": "error codes",
}
EXAMPLE = 600
"""Longer examples show nothing that a shorter one does not."""
AROUND = 4
"""Fields of the envelope in an example's first line."""
LONG_TEXT, LONG_LIST, LONG_OBJECT = 120, 2, 8
"""Characters of a text, values of a list, fields of an object that an example shows."""


# --------------------------------------------------------------------------------------------------------------------
# docs/truth.md


def truth() -> str:
    """What was really said, and how much of it is in typed events, format by format."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    shown: dict[str, Counter[str]] = defaultdict(Counter)
    runs: Counter[str] = Counter()
    for recording in recordings():
        for format in dict.fromkeys(stream.format for stream in recording.streams if stream.format in formats()):
            events, wire = normalize_recording(recording, format)
            runs[format] += 1
            lost = losses(recording, format)
            for fact in facts(events, recording.truth, wire, medium_of(recording, format)):
                if any(loss.covers(fact) for loss in lost):
                    continue
                shown[format][fact.kind] += 1
                found[format][fact.kind] += fact.found
    rows: list[list[str]] = []
    for format in sorted(runs):
        cells = [share(found[format][kind], shown[format][kind]) for kind in KINDS]
        rows.append([f"`{format}`", str(runs[format]), *cells, f"**{found[format].total()} / {shown[format].total()}**"])
    lost = [
        [f"`{folder.name}`", f"`{loss.format}`", ", ".join(loss.scenarios), KINDS[loss.kind], loss.reason]
        for folder in sorted({recording.path.parent for recording in recordings()})
        for loss in losses_in(folder)
    ]
    return "".join(
        [
            NOTICE + TRUTH + table(["format", "recordings", *KINDS.values(), "all"], rows),
            ENDINGS + endings_table(),
            LOSSES + table(["program", "format", "scenarios", "facts", "what the program does"], lost),
        ]
    )


TRUTH = """# What was really said

Every recording in `tests/recordings` was made by running the real program against a scripted model. So we know what user and model
really said, whatever the program made of it. A fact counts if the wire shows it at all; it is found if a typed event says exactly that,
in order, in the right turn and under the right parent. `make test` fails when one is missing.

Each cell is facts found / facts shown.

"""


LOSSES = """
## What the programs themselves lose

These facts are on the script of a recording and cannot be found on its wire, or not as they were. They are not counted above; each is
declared in the `losses.toml` of its folder, and a declared loss that explains nothing fails the tests.

"""


ENDINGS = """
## How turns end

The status of a turn says how the turn ended. A denied or failed call is a fact about that call: if the agent answers after it, the turn is
completed. Each story has one status for every agent, whether its wire or its files are read. The numbers are formats and
recordings. `make test` fails when a turn ends otherwise and no reason is declared.

"""


def endings_table() -> str:
    """The status of each story, in how many formats and recordings it was seen, and which formats tell something else."""
    rows: list[list[str]] = []
    for story, (status, code) in STORIES.items():
        told = [ending for ending in endings() if ending.story == story]
        right = [ending for ending in told if ending.status == status]
        others = sorted({f"`{ending.format}`: {ending.status}" for ending in told if ending.status != status})
        seen = f"{len({ending.format for ending in right})} formats, {len(right)} recordings"
        rows.append([story, f"`{status}`", "" if code is None else f"`{code}`", seen, ", ".join(others)])
    return table(["story", "status", "error code", "seen in", "where the program does not say so"], rows)


def share(found: int, shown: int) -> str:
    """found / shown, or a dash for what this format's recordings never show."""
    return f"{found} / {shown}" if shown else "–"


# --------------------------------------------------------------------------------------------------------------------
# docs/events.md


def vocabulary() -> str:
    """Every event and block, with its fields, and an example from a recording where there is one."""
    parts = [NOTICE + EVENTS, "## The envelope\n\n", envelope_table(), "\n## Events\n\n"]
    for name, event in TYPES.items():
        payload = payload_of(event)
        parts += [f"### `{name}`\n\n{one_line(event.__doc__)}\n\n", f"{one_line(payload.__doc__)}\n\n", fields_table(payload)]
        parts.append(f"\n```json\n{examples()[name]}\n```\n" if name in examples() else "\nNo recording has one.\n")
        parts.append("\n")
    parts.append("## Content blocks\n\n")
    for name, block in BLOCKS.items():
        parts += [f"### `{name}`\n\n{one_line(block.__doc__)}\n\n", fields_table(block), "\n"]
    parts.append("## Parts of payloads\n\n")
    for part in (Usage, ErrorInfo, PermissionOption, PlanEntry, Workspace):
        parts += [f"### {part.__name__}\n\n{one_line(part.__doc__)}\n\n", fields_table(part), "\n"]
    parts.append("## Words\n\n")
    for title, words in {"Error codes": ErrorCode, "Turn status": TurnStatus, "Reasons of `raw`": RawReason}.items():
        parts.append(f"{title}: {' '.join(f'`{word}`' for word in get_args(words))}\n\n")
    return "".join(parts).rstrip() + "\n"


EVENTS = """# Events

One JSON object per line. Keys are camelCase, absent means unknown. Types, fields and blocks that a reader does not know survive it
unchanged. The examples are from recordings, without `original`; where a text or a list is long, `…` stands for the rest.

"""
ENVELOPE = {
    "type": "what happened: one of the types below, or one that a newer writer knows",
    "id": "a UUID; live ones are ordered by time, imported ones are made of source and position",
    "seq": "1, 2, 3 … per session, no gap: the only order and the only cursor",
    "timestamp": "ms since the epoch when it happened: the wire's own time where it has one",
    "receivedAt": "ms since the epoch when it arrived, where that is not the same",
    "sessionId": "ours; the provider's own is in `session_init`",
    "turnId": "groups user input → … → final answer",
    "responseId": "groups what belongs to one message of the assistant: the provider's message id where there is one",
    "blockIndex": "position of the block in that message",
    "parentToolCallId": "the tool call that started the sub-agent who said this",
    "source": "the adapter that made it; absent when hansard itself did",
    "synthetic": "true when no frame says this literally",
    "replay": "true when this repeats what the log already has; views and exports leave it out",
    "sameAs": "the `id` of the event that it repeats, which another stream reported first",
    "after": "the `id` of the event that it follows in the conversation, if it was recorded later",
    "frame": "number of the frame it came from",
    "stream": "which stream of the session, when it has several",
    "direction": "`out` when our side sent the frame",
    "commandId": "the client's own id of the command that this is",
    "payload": "by type",
    "original": "the frame verbatim, on its first event",
    "eol": "its line end, when that is not LF",
}


def envelope_table() -> str:
    """What every event has around its payload."""
    names = ["type", *(field.encode_name for field in msgspec.structs.fields(Event) if field.encode_name != "$extra")]
    if set(names) != set(ENVELOPE):
        raise SystemExit(f"say what these mean: {set(names) ^ set(ENVELOPE)}")
    return table(["field", "meaning"], [[f"`{name}`", ENVELOPE[name]] for name in ENVELOPE])


def fields_table(struct: Any) -> str:
    """The fields of a struct: name on the wire, type, whether it may be absent."""
    rows = [
        [f"`{field.encode_name}`", spell(field.type), "" if field.required else "may be absent"] for field in msgspec.structs.fields(struct)
    ]
    return table(["field", "type", ""], rows) if rows else ""


def spell(kind: Any) -> str:
    """A type in words."""
    if kind is Any:
        return "any JSON"
    if get_origin(kind) is Literal:
        return " \\| ".join(f"`{value}`" for value in get_args(kind))
    if get_origin(kind) is list:
        return f"list of {spell(get_args(kind)[0])}"
    if get_origin(kind) is dict:
        return "object"
    if set(get_args(kind)) >= set(BLOCKS.values()):
        return "block"
    if get_args(kind):
        return " \\| ".join(spell(one) for one in get_args(kind) if one is not type(None))
    words = {str: "text", int: "integer", float: "number", bool: "true or false", msgspec.Raw: "the frame, verbatim"}
    return words[kind] if kind in words else f"[{kind.__name__}](#{PAYLOADS.get(kind, kind.__name__.lower())})"


def payload_of(event: Any) -> Any:
    """The type of an event's payload."""
    return next(field.type for field in msgspec.structs.fields(event) if field.name == "payload")


PAYLOADS = {payload_of(event): name for name, event in TYPES.items()}
"""Payloads, and the type of the event each belongs to."""


@cache
def examples() -> dict[str, str]:
    """For each type the event of the recordings whose payload has the most fields, the shortest of those; a short one if there is any."""
    best: dict[str, tuple[bool, int, int, str]] = {}
    for format, recording in dict.fromkeys((stream.format, stream.recording) for stream in streams() if stream.format in formats()):
        for event in normalize_recording(recording, format)[0]:
            event.original = None
            line = encode(event).decode()
            rank = (len(line) > EXAMPLE, -len(json.loads(line)["payload"]), len(line), line)
            if event.type not in best or rank < best[event.type]:
                best[event.type] = rank
    return {name: example(json.loads(line)) for name, (_, _, _, line) in best.items()}


def example(event: dict[str, Any]) -> str:
    """An event as JSON that can be read: a line for what is around it, a line for each field of its payload."""
    payload = event.pop("payload")
    around = [f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in event.items()]
    first, then = ", ".join(around[:AROUND]), ", ".join(around[AROUND:])
    fields = [f"  {json.dumps(name)}: {json.dumps(shorter(value), ensure_ascii=False)}" for name, value in payload.items()]
    return f'{{{first},\n {then},\n "payload": {{\n' + ",\n".join(fields) + "}}"


def shorter(value: Any) -> Any:
    """A value with the rest of long texts and lists left out."""
    match value:
        case str() if len(value) > LONG_TEXT:
            return value[:LONG_TEXT] + "…"
        case list() if len(value) > LONG_LIST:
            return [*map(shorter, value[:LONG_LIST]), "…"]
        case list():
            return [shorter(one) for one in value]
        case dict() if len(value) > LONG_OBJECT:
            return {name: shorter(one) for name, one in list(value.items())[:LONG_OBJECT]} | {"…": "…"}
        case dict():
            return {name: shorter(one) for name, one in value.items()}
        case _:
            return value


PAGES = {
    "truth.md": truth,
    "events.md": vocabulary,
    "features.md": features,
    "drops.md": drops,
    "cli.md": command_line,
    "agents.md": agents_page,
    "projections.md": projections,
    "reliability.md": reliability,
    "tools.md": tools,
    "performance.md": performance,
    "../README.md": readme,
    "growth.svg": growth,
    "code.svg": code_drawing,
}


def code(text: str | None, absent: str) -> str:
    """Text as code."""
    return absent if text is None else f"`{text}`"


def one_line(text: str | None) -> str:
    """A docstring as a paragraph."""
    return " ".join((text or "").replace("``", "`").split())


def main() -> int:
    """Write or check every page."""
    check = "--check" in sys.argv[1:]
    stale = [name for name, page in PAGES.items() if not is_current(DOCS / name, page(), check)]
    for name in stale:
        print(("stale: " if check else "wrote: ") + f"docs/{name}")
    return 1 if check and stale else 0


def is_current(path: Path, wanted: str, check: bool) -> bool:
    """Whether the page says this; if not, and this is no check, now it does."""
    if path.exists() and path.read_text() == wanted:
        return True
    if not check:
        path.parent.mkdir(exist_ok=True)
        path.write_text(wanted)
    return False


if __name__ == "__main__":
    sys.exit(main())
