"""The pages about what the wires have: docs/features.md (which wire shows what) and docs/drops.md (what others drop)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from hansard.adapters import adapter_for
from hansard.adapters.audit import Auditor
from hansard.adapters.framing import Frame, frames
from hansard.events import Event
from hansard.events.content import RefusalBlock
from tests.drops import DROPS, frames_of
from tests.recorded import Stream, streams

ABSENT = "not on this wire"

Shows = Callable[[Event], bool]


def has_type(*types: str) -> Shows:
    """Events of these types."""
    return lambda event: event.type in types


def has_value(kind: str, field: str, *words: object) -> Shows:
    """Events of a type whose payload has one of these words in a field."""
    return lambda event: event.type == kind and getattr(event.payload, field) in words


def has(kind: str, field: str) -> Shows:
    """Events of a type whose payload has a field at all."""
    return lambda event: event.type == kind and getattr(event.payload, field) is not None


def image(event: Event) -> bool:
    """A picture, wherever it is."""
    content: list[Any] = list(getattr(event.payload, "content", None) or [])
    return "image" in {block_type(block) for block in [*content, getattr(event.payload, "block", None)]}


def block_type(block: Any) -> str | None:
    """What kind of block it is."""
    return type(block).__struct_config__.tag if hasattr(type(block), "__struct_config__") else None


def refusal(event: Event) -> bool:
    """A refusal: its block, or a turn that ended so."""
    return isinstance(getattr(event.payload, "block", None), RefusalBlock) or has_value("turn_end", "status", "refused")(event)


FEATURES: dict[str, Shows] = {
    "text, as it comes": has_type("assistant_chunk"),
    "text, whole": has_type("assistant_done"),
    "thinking": has_type("thinking_chunk", "thinking_done"),
    "tool: start": has_type("tool_call"),
    "tool: arguments as they come": has_type("tool_input_chunk"),
    "tool: pending": has_value("tool_progress", "status", "pending"),
    "tool: running": has_type("tool_output_chunk", "tool_progress"),
    "tool: done": has_type("tool_result"),
    "tool: failed": has_value("tool_result", "is_error", True),
    "permission": has_type("permission_request", "permission_response"),
    "question": has_type("question", "answer"),
    "interrupt": has_type("interrupt"),
    "error code": has("turn_end", "error"),
    "compaction": has_value("session_lifecycle", "subtype", "compacted"),
    "removal": has_value(
        "session_lifecycle", "subtype", "message_removed", "part_removed", "reverted", "revert_staged", "deleted", "cleared"
    ),
    "steps": has_value("status_change", "status", "step_start", "step_finish", "assistant.turn_start", "assistant.turn_end"),
    "commands": has("configuration_change", "commands"),
    "mode and settings": has_type("configuration_change"),
    "refusal": refusal,
    "usage": has_type("usage"),
    "images": image,
    "sub-agents": lambda event: event.parent_tool_call_id is not None,
    "plan": has_type("plan_update"),
    "auth": has_type("auth_status"),
    "teams": has_type("team_message", "team_task_update", "team_state_change"),
    "lifecycle": has_type("session_lifecycle"),
}


def features() -> str:
    """Which wire shows what, by the recordings: the wire's own words for it, and how many recordings have it."""
    runs: dict[tuple[str, str], set[str]] = defaultdict(set)
    words: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    columns: dict[str, list[str]] = defaultdict(list)
    for stream in streams():
        column = name_of(stream)
        if column not in columns[family(stream)]:
            columns[family(stream)].append(column)
        for frame, events in read(stream):
            for feature, shows in FEATURES.items():
                if any(shows(event) for event in events):
                    runs[column, feature].add(stream.recording.id)
                    if words[column, feature].total() < ENOUGH:
                        words[column, feature][word_of(stream.format, frame, events)] += 1
    parts = [NOTICE + FEATURES_HEAD]
    for name in sorted(columns):
        head = ["", *(f"`{column}`" for column in columns[name])]
        rows = [[feature, *(cell(words[column, feature], len(runs[column, feature])) for column in columns[name])] for feature in FEATURES]
        parts += [f"## {name}\n\n", table(head, rows), "\n"]
    return "".join(parts).rstrip() + "\n"


ENOUGH = 200
"""So many frames are looked at to say which words a wire has for something."""

FEATURES_HEAD = f"""# What each wire has

Made from the recordings in `tests/recordings`: for every format the wire's own words for a thing (the two most frequent) and the number of
recordings that show it. "{ABSENT}" means that no recording of the program shows it there.

"""


def cell(words: Counter[str], runs: int) -> str:
    """The wire's words for something, or that it has none."""
    return f"{', '.join(f'`{word}`' for word, _ in words.most_common(2))} ({runs})" if runs else ABSENT


def family(stream: Stream) -> str:
    """The folder of the adapter."""
    return adapter_for(stream.format).__module__.split(".")[2]


def name_of(stream: Stream) -> str:
    """The format; of ACP also who speaks it."""
    return f"acp ({stream.recording.path.parent.name.removesuffix('-acp')})" if stream.format == "acp" else stream.format


def read(stream: Stream) -> Iterator[tuple[Frame, list[Event]]]:
    """Each frame of a stream with its events."""
    adapter = adapter_for(stream.format)(stream.context)
    for frame in frames([stream.data], adapter.framer()):
        yield frame, adapter.feed(frame)


def word_of(format: str, frame: Frame, events: list[Event]) -> str:
    """The words that name a frame on its wire: its type, and the type of what is in it."""
    adapter = adapter_for(format)
    auditor = Auditor(adapter, format)
    auditor.add(frame, events, events[0].frame)
    word = next(iter(auditor.audit.types))
    inside = next(iter(auditor.audit.parts.values()), {})
    return " ".join(["answer" if word == adapter.source else word, *list(inside)[:1]])


def drops() -> str:
    """What other readers drop, and what becomes of it here."""
    rows: list[list[str]] = []
    for drop in DROPS:
        places = [place for place, _ in frames_of(drop)]
        shown = "by hand" if drop.data else f"{len(places)} frames of {len(set(places))} recordings"
        rows.append([drop.number, f"`{drop.format}`", drop.what, drop.elsewhere, f"`{drop.becomes}`", shown])
    return NOTICE + DROPS_HEAD + table(["#", "format", "what", "elsewhere it becomes", "here it becomes", "shown by"], rows)


DROPS_HEAD = """# What others drop

The silent drops that are known of readers of these wires. The first 25 are the inventory this project started from, by its numbers; the
others were found since. `tests/test_drops.py` holds every frame of every recording that says such a thing to the event named here, so the
inventory of what is dropped is empty.

"""
NOTICE = "<!-- Generated by `make docs`. Do not edit. -->\n\n"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)
