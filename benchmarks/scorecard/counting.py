"""What is looked for in a tool's output, and when it counts as found: the same for every tool, and generous, as any place will do.

A fact is something that the scripted model, the user or a tool really said in a recording. It counts only if the recording itself shows it
by this same search, so what the agent loses is held against nobody.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

KINDS = ("user", "text", "thinking", "tool_call", "tool_result", "error")
SHORTEST = 4
"""Shorter words are found anywhere."""
LONG_ENOUGH = 7
"""Of a call's arguments those texts count that are no mere flag or number."""


@dataclass(frozen=True)
class Fact:
    """Something that was said: every one of these texts has to be found."""

    kind: str
    texts: tuple[str, ...]


class Said:
    """What an output says. White space does not count, and neither does the writing of HTML."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = [html.unescape(text) for text in texts]
        self.squeezed = "\0".join(map(squeezed, self.texts))

    def __contains__(self, fact: Fact) -> bool:
        return all(squeezed(text) in self.squeezed for text in fact.texts)


def squeezed(text: str) -> str:
    """A text without its white space."""
    return "".join(text.split())


def values(value: Any) -> Iterator[str]:
    """Every text in a JSON value, also in JSON inside texts; not the names of fields, which say nothing about this run."""
    if isinstance(value, str):
        yield value
        if value[:1] in ("{", "["):
            try:
                yield from values(json.loads(value))
            except (ValueError, RecursionError):
                pass
    elif isinstance(value, dict):
        for item in value.values():
            yield from values(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from values(item)


def json_lines(data: bytes) -> Iterator[Any]:
    """The values of JSON lines; a line that is none is itself."""
    for line in data.split(b"\n"):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError:
                yield line.decode("utf-8", "replace")


# --------------------------------------------------------------------------------------------------------------------
# Facts


def facts(truth: dict[str, Any], on_disk: bool) -> list[Fact]:
    """What was said in a recording, by its truth.json, on this medium."""
    media = {"disk"} if on_disk else {"wire", "sent"}
    found = dict.fromkeys(fact for turn in truth["turns"] for fact in _of_turn(turn, media))  # what is said twice is found once
    return [fact for fact in found if fact.texts and all(len(squeezed(text)) >= SHORTEST for text in fact.texts)]


def _of_turn(turn: dict[str, Any], media: set[str]) -> Iterator[Fact]:
    said = turn["user"] if isinstance(turn["user"], list) else [turn["user"]]
    texts = [part if isinstance(part, str) else (part or {}).get("text", "") for part in said]
    yield Fact("user", tuple(piece for text in texts for piece in _command(text) if piece))
    for item in turn["model"]:
        yield from _of_item(item, media)


def _of_item(item: dict[str, Any], media: set[str]) -> Iterator[Fact]:
    if "seen_on" in item and not media & set(item["seen_on"]):
        return
    match item:
        case {"text": str(text)} | {"refusal": str(text)}:
            yield Fact("text", (text,))
        case {"thinking": str(text)}:
            yield Fact("thinking", (text,))
        case {"tool_call": {"args": args}}:
            texts = [text for text in values(args) if len(text) >= LONG_ENOUGH and not _is_json(text)]
            yield Fact("tool_call", tuple(piece for text in texts for piece in _patch(text)))
        case {"tool_result": {"contains": str(text)}}:
            yield Fact("tool_result", (text,))
        case {"http_error": {"message": str(text)}} | {"stream_error": {"message": str(text)}}:
            yield Fact("error", (text,))
        case {"subagent": {"model": list(inner)}}:
            for one in inner:
                yield from _of_item(one, media)
        case _:
            pass


def _command(text: str) -> list[str]:
    """A command by its parts, as tools show its name and its arguments apart."""
    return text.split(" ", 1) if text.startswith("/") else [text]


def _patch(text: str) -> list[str]:
    """A patch by its lines, as tools show it in a form of their own; any other text as it is."""
    if not text.startswith("*** Begin Patch"):
        return [text]
    lines = [line[1:] for line in text.splitlines() if line[:1] in ("+", "-", " ")]
    return [line for line in lines if len(squeezed(line)) >= SHORTEST]


def _is_json(text: str) -> bool:
    """Whether a text is an object or a list written down: a tool may keep what is in it, without its spelling."""
    try:
        return text[:1] in ("{", "[") and isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False


# --------------------------------------------------------------------------------------------------------------------
# Ends

CAUSES = {
    "rate_limit": r"rate.?limit|usage.?limit|too many requests|quota|\b429\b",
    "provider_auth": r"authenticat|unauthori[sz]ed|invalid.{0,9}key|key.{0,9}(in|not )valid|billing|credit balance|\b40[123]\b",
    "context_overflow": r"too long|context.?(window|length|limit|overflow)|maximum context|maximum number of tokens",
    "api_error": r"(api|server|internal).?error|overloaded|unavailable|disconnected|model.not.found|not exist|bad.?request|\b50[023]\b",
    "output_length": r"max.?(output.?)?tokens|output.?(length|token maximum|tokens? limit)|token.?limit|truncated",
    "aborted": r"interrupt|abort|cancel",
    "refused": r"refus|content.?filter|safety|safeguard|usage policy|violat",
    "denied": r"denied|\bden(y|ies)\b|reject|declin|not allowed|n.t granted|needs approval|requires approval",
    "max_turns": r"max.?turns|maximum number of turns|turn limit",
    "max_budget": r"budget",
}
"""The words that name a cause, any of them: regular expressions, upper and lower case alike."""


def causes(truth: dict[str, Any]) -> list[str]:
    """Why the turns of a run did not go well: what ended them, or that a tool was denied."""
    ends = {"interrupted": "aborted", "refused": "refused", "max_tokens": "output_length"}
    found = [
        "denied" if turn.get("story", "").startswith("tool denied") else ends.get(turn["end"]) or turn.get("error_code")
        for turn in truth["turns"]
    ]
    return [cause for cause in found if cause in CAUSES]


def names(cause: str, texts: Iterable[str], truth: dict[str, Any], background: frozenset[str] = frozenset()) -> bool:
    """Whether an output names the cause: one of its words, in what is left when everything is taken away that says nothing about this end.

    That is what was planted, as prompts talk about what is going to happen and agents make titles of them; and what the same output says of
    plain runs that completed, as agents print their instructions, which talk about everything.
    """
    rest = "\0".join(html.unescape(text) for text in texts if not _is_json(text) and usual(text) not in background)
    planted = {text for fact in facts(truth, True) + facts(truth, False) if fact.kind != "error" for text in fact.texts}
    for text in [*sorted(planted, key=len, reverse=True), truth.get("word", "")]:
        rest = rest.replace(text, " ") if text else rest
    return re.search(CAUSES[cause], rest, re.IGNORECASE) is not None


def usual(text: str) -> str:
    """A text without what differs from run to run: numbers, dates and ids."""
    return re.sub(r"[0-9a-f-]{6,}|\d+", "#", text)
