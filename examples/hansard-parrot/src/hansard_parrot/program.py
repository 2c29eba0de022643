"""``parrot --json``: says what it heard. One JSON object a line, both ways; it needs no model, no account and no network.

Whoever speaks of a nut is asked whether the parrot may crack it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from itertools import count
from typing import Any

VERSION = "1.0.0"
numbers = count(1)


def main() -> None:
    """Read lines until there are no more."""
    if "--version" in sys.argv:
        print(f"parrot {VERSION}")
        return
    say(kind="hello", version=VERSION, model="polly-1", perch=os.getcwd())
    heard = lines()
    for message in heard:
        if message["kind"] == "prompt":
            turn(message["text"], heard)


def turn(text: str, heard: Iterator[dict[str, Any]]) -> None:
    """Answer one prompt."""
    seeds = {"heard": len(text.split()), "said": 2 * len(text.split())}
    say(kind="say", id=f"m{next(numbers)}", blocks=[{"type": "thought", "text": "Somebody talks to me."}])
    if "nut" in text:
        use, question = f"u{next(numbers)}", f"q{next(numbers)}"
        say(kind="use", id=use, tool="crack", input={"nut": text})
        say(kind="ask", id=question, use=use, why="It will be loud.")
        answer = next(heard, {"kind": "stop"})
        if answer["kind"] == "stop":
            say(kind="bye", code="stopped", seeds=seeds)
            return
        say(kind="did", id=use, output="a kernel" if answer["yes"] else "not allowed", failed=not answer["yes"])
    say(kind="say", id=f"m{next(numbers)}", blocks=[{"type": "text", "text": f"{text} {text}"}], mood="cheerful")
    say(kind="bye", code="done", seeds=seeds)


def lines() -> Iterator[dict[str, Any]]:
    """What our side is told."""
    for line in sys.stdin:
        yield json.loads(line)


def say(**fields: Any) -> None:
    """One line, at once."""
    print(json.dumps(fields, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
