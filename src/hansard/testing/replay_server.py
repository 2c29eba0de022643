"""A recorded model on loopback: it answers each request of an agent with the next answer on the record."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any, cast

from hansard.events.lenient import as_list, as_object
from hansard.testing.model_api import Step, Text, conversation, is_conversation
from hansard.testing.model_server import ModelServer
from hansard.testing.recorded_model import RecordedModel

BESIDE_TEXT = "Replay"
"""The answer to requests that are not part of the conversation."""
NO_MORE = "The record has no other answer of the model for this turn."


class ReplayServer(ModelServer):
    """Serves the answers of a session, turn by turn."""

    def __init__(self, model: RecordedModel, without_tools: bool = False) -> None:
        super().__init__()
        self.served = 0
        """How many answers of the record were given."""
        self.beside = 0
        """How many requests were not part of the conversation."""
        self.surplus = 0
        """How many requests the record has no answer to."""
        self._model = model
        self._without_tools = without_tools
        self._lock = threading.Lock()
        self._turn: list[Step] = model.turns[0].steps if model.in_one else []
        self._position = 0
        self._subagents = [(subagent, iter(subagent.steps)) for subagent in model.subagents]

    def begin(self, turn: int) -> None:
        """Serves the answers of this turn from now on."""
        with self._lock:
            self.hanging.clear()
            if not self._model.in_one:
                self._turn = self._model.turns[turn].steps if turn < len(self._model.turns) else []
                self._position = 0

    def step(self, request: dict[str, Any]) -> Step:
        """Returns the next answer."""
        with self._lock:
            if not is_conversation(request, self._without_tools):
                self.beside += 1
                return Step([Text(BESIDE_TEXT)], tokens=(1, 1))
            subagent = self._subagent(request)
            step = self._next() if subagent is None else next(subagent, None)
            if step is None:
                self.surplus += 1
                return Step(status=400, message=NO_MORE)
            self.served += 1
            return step

    def _next(self) -> Step | None:
        if self._position >= len(self._turn):
            return None
        step = self._turn[self._position]
        self._position += not step.stays
        return step

    def _subagent(self, request: dict[str, Any]) -> Iterator[Step] | None:
        """Returns the answers to the subagent that asks, whose conversation begins with the prompt of its call; None for the main agent."""
        said = "\n".join(first_texts(conversation(request)))
        found = [(subagent.prompt.strip(), steps) for subagent, steps in self._subagents]
        known = [("", None), *((prompt.strip(), None) for prompt in self._model.prompts), *found]
        return max((one for one in known if one[0] in said), key=lambda one: len(one[0]))[1]


def first_texts(messages: Any) -> Iterator[str]:
    """Yields the texts before the first answer of the model."""
    for message in [{"content": messages}] if isinstance(messages, str) else map(as_object, as_list(messages)):
        if message.get("role") in ("assistant", "model") or message.get("type") in ("function_call", "reasoning"):
            return
        yield from _texts(message.get("content", message.get("parts")))


def _texts(content: Any) -> Iterable[str]:
    if isinstance(content, str):
        return [content]
    return [text for part in cast("list[Any]", content or []) if isinstance(text := as_object(part).get("text"), str)]
