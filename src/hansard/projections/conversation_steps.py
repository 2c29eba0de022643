"""The first step in which two conversations differ: a prompt, an answer, or a call of a tool."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any, Literal

import msgspec
from msgspec import Struct

from hansard import events as ev
from hansard.events import tool_inputs as tools
from hansard.events.replays import without_replays

StepKind = Literal["prompt", "answer", "call"]


class Step(Struct, rename="camel", omit_defaults=True):
    """One step of a conversation. ``seq`` is that of its event; steps are equal if kind and ``text`` are."""

    kind: StepKind
    text: str
    """The message, or the call as JSON, with paths as seen from the working directory."""
    title: str
    """The same for people."""
    seq: int
    turn: int

    def is_like(self, other: Step | None) -> bool:
        """Returns whether another conversation has the same step."""
        return other is not None and (self.kind, self.text) == (other.kind, other.text)


class Difference(Struct, rename="camel", omit_defaults=True):
    """Where two conversations differ first. A side is None where its conversation ends."""

    same_steps: int
    """How many steps before it are equal."""
    left: Step | None
    right: Step | None


def conversation_steps(events: Iterable[ev.Event], exact: bool = False) -> Iterator[Step]:
    """Yields the steps of the main agent's conversation.

    A call is what it asks for in the words that all agents share. With ``exact``, it is its tool and all of its arguments.
    """
    cwd: str | None = None
    turn = 0
    for event in without_replays(events):
        match event:
            case ev.TurnStart() if ev.is_main_agent(event):
                turn += 1
            case ev.SessionInit(payload=init) if ev.is_main_agent(event):
                cwd = init.cwd or cwd
            case ev.SessionLifecycle(payload=life) if life.workspace is not None:
                cwd = life.workspace.cwd or cwd
            case ev.UserMessage(payload=said) if said.author == "human" and ev.is_main_agent(event):
                yield Step("prompt", _from(cwd, said.text.strip()), said.text.strip(), event.seq, turn)
            case ev.AssistantDone(payload=said) if said.text.strip() and ev.is_main_agent(event):
                yield Step("answer", _from(cwd, said.text.strip()), said.text.strip(), event.seq, turn)
            case ev.ToolCall(payload=call) if ev.is_main_agent(event):
                yield Step("call", _from(cwd, _call_text(call, exact)), _from(cwd, tools.tool_title(call)), event.seq, turn)
            case _:
                pass


def _call_text(call: ev.ToolCallPayload, exact: bool) -> str:
    asked = None if exact else tools.tool_input(call)
    value: Any = {"tool": call.tool_name, "args": call.args} if asked is None else msgspec.to_builtins(asked)
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _from(cwd: str | None, text: str) -> str:
    """The text with paths as seen from the working directory: two runs may have worked in different folders."""
    if not cwd or cwd == "/":
        return text
    return text.replace(f"{cwd.rstrip('/')}/", "").replace(cwd, ".")


def first_difference(left: Iterable[ev.Event], right: Iterable[ev.Event], exact: bool = False) -> Difference | None:
    """Returns where two conversations differ first; None if they have the same steps to the end."""
    pairs = zip_longest(conversation_steps(left, exact), conversation_steps(right, exact))
    for number, (one, other) in enumerate(pairs):
        if one is None or not one.is_like(other):
            return Difference(number, one, other)
    return None
