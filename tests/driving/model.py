"""A scripted model on loopback, for real agents to talk to: it says what the script says, in whichever API, and keeps what it was sent.

A request with tools is a step of the conversation and takes the next step of the script; what agents ask beside it (titles, summaries)
gets a filler. `hansard.testing.model_api` has the APIs.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hansard.testing.model_api import Call as Call
from hansard.testing.model_api import Step as Step
from hansard.testing.model_api import Text as Text
from hansard.testing.model_api import Thinking as Thinking
from hansard.testing.model_api import conversation as conversation
from hansard.testing.model_api import is_conversation as asks_with_tools
from hansard.testing.model_server import ModelServer, serving

FILLER = "A filler"
SOON = {"retry-after": "1", "retry-after-ms": "100"}
"""Headers of an error that let an agent ask again soon: some do it a few times before they give up, and then not after minutes."""


def request_text(request: dict[str, Any]) -> str:
    """What the model was shown of the conversation, as text."""
    return json.dumps(conversation(request), ensure_ascii=False)


def is_conversation(request: dict[str, Any]) -> bool:
    """Whether a request is about the conversation; the models that are asked without tools are called so."""
    return asks_with_tools(request, without_tools=request.get("model") == "scripted")


def says(text: str) -> Step:
    """A step that is only text."""
    return Step([Text(text)])


def calls(name: str, args: dict[str, Any], id: str = "") -> Step:
    """A step that is only a tool call."""
    return Step([Call(name, args, id)])


class Model(ModelServer):
    """Runs the script."""

    def __init__(self, script: list[Step], is_step: Callable[[dict[str, Any]], bool] | None = None) -> None:
        super().__init__()
        self.script = script
        self.taken = 0
        self.asked: list[dict[str, Any]] = []
        """The requests that were steps of the conversation, as they were sent."""
        self.beside: list[dict[str, Any]] = []
        self.fillers: list[Step] = []
        """What was answered to those beside. A step that is kept has an address, and thereby a response id, of its own."""
        self.keys: list[str | None] = []
        """The keys that came with all requests."""
        self.said: list[str] = []
        """The streams, piece by piece, as they were sent."""
        self.is_step = is_step or (lambda request: bool(request.get("tools")))
        self.lock = threading.Lock()

    def note_key(self, key: str | None) -> None:
        self.keys.append(key)

    def note_event(self, event: str) -> None:
        self.said.append(event)

    def step(self, request: dict[str, Any]) -> Step:
        """What to answer to a request."""
        with self.lock:
            if not self.is_step(request):
                self.beside.append(request)
                self.fillers.append(says(FILLER))
                return self.fillers[-1]
            self.asked.append(request)
            self.taken += 1
            assert self.taken <= len(self.script), "the agent asks more often than the script expects"
            step = self.script[self.taken - 1]
            for index, item in enumerate(step.items):
                if isinstance(item, Call) and not item.id:
                    item.id = f"call_{self.taken}_{index}"
            return step


@contextmanager
def model(*script: Step, is_step: Callable[[dict[str, Any]], bool] | None = None) -> Iterator[Model]:
    """A model that is there as long as it is looked at."""
    with serving(Model(list(script), is_step)) as server:
        yield server
