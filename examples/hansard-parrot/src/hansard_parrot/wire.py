"""The wire of ``parrot --json``, as it spells it. A field that is declared is a field that the adapter reads."""

from __future__ import annotations

from typing import Annotated, Any

from hansard import Wire, nested


class Text(Wire, tag_field="type", tag="text"):
    """Something said."""

    text: str


class Thought(Wire, tag_field="type", tag="thought"):
    """Something thought."""

    text: str


Block = Text | Thought


class Hello(Wire, tag_field="kind", tag="hello"):
    """The first line."""

    version: str
    model: str | None = None
    perch: str | None = None


class Say(Wire, tag_field="kind", tag="say"):
    """A message of the parrot's."""

    id: str
    blocks: Annotated[list[Any], nested(Block)]


class Use(Wire, tag_field="kind", tag="use"):
    """It wants to use its beak."""

    id: str
    tool: str
    input: Any = None


class Ask(Wire, tag_field="kind", tag="ask"):
    """May it? ``use`` is the id of what it wants to do."""

    id: str
    use: str
    why: str | None = None


class Did(Wire, tag_field="kind", tag="did"):
    """What came of it."""

    id: str
    output: Any = None
    failed: bool | None = None


class Seeds(Wire):
    """Words heard and said: what others call tokens."""

    heard: int | None = None
    said: int | None = None


class Bye(Wire, tag_field="kind", tag="bye"):
    """The end of a turn."""

    code: str
    seeds: Seeds | None = None


class Prompt(Wire, tag_field="kind", tag="prompt"):
    """What our side says."""

    text: str


class Answer(Wire, tag_field="kind", tag="answer"):
    """Our answer to an `Ask`."""

    id: str
    yes: bool


class Stop(Wire, tag_field="kind", tag="stop"):
    """Our side wants it to stop."""


Received = Hello | Say | Use | Ask | Did | Bye
Sent = Prompt | Answer | Stop
