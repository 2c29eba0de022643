"""docs/growth.svg: how the cost of things grows with the work, drawn from the points in docs/bench.json. A panel for each."""

from __future__ import annotations

import math

from benchmarks.results import last
from benchmarks.table import Row

COLUMNS = 4
WIDE, HIGH = 190, 170
"""Of a panel, with what is around it."""
LEFT, TOP, SIDE = 34, 34, 120
"""Where the square of a panel is in it, and how large."""
BEYOND = 1.2
"""So far a line may leave its square."""
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.small { font-size: 10px; fill: #6e7781 }
.frame { fill: none; stroke: #d0d7de }
.linear { stroke: #8c959f; stroke-dasharray: 3 4 }
.cost { fill: none; stroke: #0969da; stroke-width: 2.5; stroke-linejoin: round; stroke-linecap: round }
.point { fill: #0969da }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .small { fill: #9198a1 }
  .frame { stroke: #3d444d }
  .linear { stroke: #656c76 }
  .cost { stroke: #4493f8 }
  .point { fill: #4493f8 }
}
"""


def growth() -> str:
    """The drawing."""
    found = last().get("growth")
    drawn = [row for row in found.rows if row.points] if found else []
    lines = math.ceil(len(drawn) / COLUMNS)
    width, height = COLUMNS * WIDE, lines * HIGH + 40
    panels = [_panel(row, index % COLUMNS * WIDE, index // COLUMNS * HIGH) for index, row in enumerate(drawn)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
            "<title>Cost at 1, 10 and 100 times the work</title>",
            f"<style>{STYLE}</style>",
            *panels,
            f'<text class="small" x="{LEFT}" y="{height - 14}">Across: 1, 10 and 100 times the work. Up: its cost in processor time, '
            "beside that at 1. Dashed: linear; below it, a unit becomes cheaper.</text>",
            "</svg>\n",
        ]
    )


def _panel(row: Row, x: float, y: float) -> str:
    """One of them: both axes by decades."""
    first = row.points[0][1]
    places = [(_at(work), SIDE - _at(cost / first)) for work, cost in row.points]
    line = " ".join(f"{across:.1f},{down:.1f}" for across, down in places)
    dots = "".join(f'<circle class="point" cx="{across:.1f}" cy="{down:.1f}" r="3.5"/>' for across, down in places)
    works = "".join(
        f'<text class="small" x="{_at(work):.0f}" y="{SIDE + 14}" text-anchor="middle">{work}</text>'
        f'<text class="small" x="-6" y="{SIDE - _at(work) + 4:.0f}" text-anchor="end">{work}</text>'
        for work in (1, 10, 100)
    )
    return (
        f'<g transform="translate({x + LEFT} {y + TOP})"><text x="0" y="-10">{row.what.partition(":")[0]}</text>'
        f'<rect class="frame" width="{SIDE}" height="{SIDE}" rx="3"/><line class="linear" x1="0" y1="{SIDE}" x2="{SIDE}" y2="0"/>'
        f'<polyline class="cost" points="{line}"/>{dots}{works}</g>'
    )


def _at(times: float) -> float:
    """Where a number of times is along an axis; what grows worse than the work leaves the square, and is cut above it."""
    return SIDE * min(BEYOND, max(0.0, math.log10(times) / 2)) if times > 0 else 0.0
