"""docs/reliability.md: what is promised, which tests keep it, and what the last long run found."""

from __future__ import annotations

from tests.proof import last, promises, proofs
from tools.features import NOTICE, table

SECTIONS = {
    "D": "The log",
    "L": "The stream",
    "P": "Parsers",
    "Z": "Nothing is lost",
    "S": "Doors",
    "R": "Processes",
    "B": "Load",
    "M": "Moving",
    "F": "Several servers",
}
"""What the letter of an id stands for."""

HEAD = """# Reliability

What is promised, the tests that keep it, and what they counted in the last long run, on two cores; a figure beyond its limit is marked as
missed. Tests fail at every limit except times, which depend on the hardware. `make test` runs every one in a short form and
prints its figures; `make soak` runs the long form, for hours, and writes them here. A seed is printed with each run, and
`HANSARD_SEED=… make soak ARGS=tests/…` repeats what it did.

"""


def reliability() -> str:
    """The page."""
    parts: list[str] = []
    for letter, title in SECTIONS.items():
        rows = [_row(name) for name in promises() if name.startswith(letter)]
        parts.append(f"## {title}\n\n" + table(["id", "what happens", "what must hold", "kept by", "last long run"], rows))
    return NOTICE + HEAD + "\n".join(parts)


def _row(name: str) -> list[str]:
    promise, found = promises()[name], last().get(name)
    kept = "<br>".join(f"`{test}`" for test in proofs().get(name, ())) or "**nothing yet**"
    must = "<br>".join([promise.must, *promise.limits])
    run = f"{found.summary(promise)} ({found.date}, seed {found.seed})" if found else "not yet"
    return [name, promise.what, must, kept, run]
