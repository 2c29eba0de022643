"""docs/code.svg: the way from an agent's stdout to the page, drawn from the list of steps in docs/code.md."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parents[1] / "docs" / "code.md"
STATIC = "projections/page/static/"
CARRIED = {1: "bytes", 3: "frames", 4: "events", 6: "lines", 7: "lines", 8: "JSON", 10: "events", 12: "elements"}
"""The unit that leaves a step, where it is another than before."""
WIDTH, BOX_WIDTH, BOX_HEIGHT, GAP = 720, 290, 52, 26
LEFT_X, RIGHT_X = 20, WIDTH - 20 - BOX_WIDTH
TOP = 16
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f1d1a }
.name { font-weight: 600 }
.file { font: 11.5px ui-monospace, Menlo, Consolas, monospace; fill: #45413b }
.carried { font-size: 11px; fill: #6b665d }
.number { font-size: 12px; fill: #1c5d8c; font-weight: 600 }
rect { fill: #fffefb; stroke: #d8d2c4 }
.end rect { fill: #e3edf4; stroke: #1c5d8c }
path { fill: none; stroke: #6b665d; stroke-width: 1.5 }
.head { fill: #6b665d; stroke: none }
.back { stroke-dasharray: 4 4 }
@media (prefers-color-scheme: dark) {
  text { fill: #e8e4db }
  .file { fill: #c6c1b6 }
  .carried { fill: #9a958a }
  .number { fill: #82b8dd }
  rect { fill: #212224; stroke: #45464a }
  .end rect { fill: #1f3140; stroke: #82b8dd }
  path { stroke: #9a958a }
  .head { fill: #9a958a }
}
"""


class Step(NamedTuple):
    """An item of the list: its number, its name, its file below src/hansard, its function."""

    number: int
    name: str
    file: str
    function: str


def steps(page: str) -> list[Step]:
    """The steps that a page lists."""
    items = re.findall(r"^(\d+)\. \*\*([^*]+)\*\*, `([^`]+)`\s+in\s+`([^`]+)`", page, re.MULTILINE)
    return [Step(int(number), name, file, function) for number, name, function, file in items]


def drawing() -> str:
    """The drawing: the first half of the steps down on the left, the log below, the second half up on the right."""
    found = steps(PAGE.read_text())
    half = len(found) // 2
    floor = TOP + (half + 1) * (BOX_HEIGHT + GAP)
    height = floor + BOX_HEIGHT + TOP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
        "<title>From an agent's stdout to the page</title>",
        f"<style>{STYLE}</style>",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="head" d="M0 0 8 4 0 8z"/></marker></defs>',
        _end(LEFT_X, TOP, BOX_WIDTH, "The agent", "stdout"),
        _end(RIGHT_X, TOP, BOX_WIDTH, "Your browser", "the DOM"),
        _end(LEFT_X, floor, WIDTH - 2 * LEFT_X, "The log", "events.jsonl: one event per line, only ever appended to"),
        _arrow(f"M{RIGHT_X} {TOP + BOX_HEIGHT / 2:g}H{LEFT_X + BOX_WIDTH + 3}", "back"),
        f'<text class="carried" x="{WIDTH / 2:g}" y="{TOP + BOX_HEIGHT / 2 - 8:g}" text-anchor="middle">commands</text>',
    ]
    for place, step in enumerate(found[:half], 1):
        y = TOP + place * (BOX_HEIGHT + GAP)
        parts += [_arrow(f"M{LEFT_X + 40} {y - GAP}V{y - 3}"), _step(LEFT_X, y, step)]
        parts += _carried(LEFT_X, y + BOX_HEIGHT, step)
    parts.append(_arrow(f"M{LEFT_X + 40} {floor - GAP}V{floor - 3}"))
    for place, step in enumerate(found[half:]):
        y = floor - (place + 1) * (BOX_HEIGHT + GAP)
        parts += [_arrow(f"M{RIGHT_X + 40} {y + BOX_HEIGHT + GAP}V{y + BOX_HEIGHT + 3}"), _step(RIGHT_X, y, step)]
        parts += _carried(RIGHT_X, y - GAP, step)
    parts.append(_arrow(f"M{RIGHT_X + 40} {TOP + BOX_HEIGHT + GAP}V{TOP + BOX_HEIGHT + 3}"))
    return "\n".join([*parts, "</svg>\n"])


def _step(x: int, y: int, step: Step) -> str:
    return (
        f'<g><rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>'
        f'<text class="number" x="{x + 26}" y="{y + 31}" text-anchor="end">{step.number}</text>'
        f'<text class="name" x="{x + 40}" y="{y + 22}">{escape(step.name)}</text>'
        f'<text class="file" x="{x + 40}" y="{y + 40}">{escape(step.file.removeprefix(STATIC))}</text></g>'
    )


def _end(x: int, y: int, width: int, name: str, what: str) -> str:
    return (
        f'<g class="end"><rect x="{x}" y="{y}" width="{width}" height="{BOX_HEIGHT}" rx="6"/>'
        f'<text class="name" x="{x + 40}" y="{y + 22}">{name}</text><text class="file" x="{x + 40}" y="{y + 40}">{what}</text></g>'
    )


def _carried(x: int, y: int, step: Step) -> list[str]:
    if step.number not in CARRIED:
        return []
    return [f'<text class="carried" x="{x + 50}" y="{y + GAP / 2 + 4:g}">{CARRIED[step.number]}</text>']


def _arrow(way: str, kind: str = "") -> str:
    return f'<path{f" class={kind!r}" if kind else ""} d="{way}" marker-end="url(#arrow)"/>'
