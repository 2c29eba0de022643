"""The page tells the truth: what Chromium draws of a recording is what user and model really said, each thing once."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hansard.events import Event
from tests.comparison import SHORT, Json, Session, Text, Told, letters
from tests.page.chromium import Watched
from tests.page.recorded import as_json, final_state
from tests.promises.exports import READ_OTHERWISE
from tests.promises.surfaces import COUNTED_AHEAD, SAID_AGAIN, sessions
from tests.proof import SEED, amount
from tests.recorded import Case, recordings

SCENARIOS = {"multi_turn", "permission_deny", "interrupt", "err_rate_limit", "err_server", "subagent", "subagent_background", "slash"}
"""What is drawn of every program, because it is told by several events or comes twice."""
ONE_IN = amount(12, 1)
"""The share of the other recordings of each program; `make soak` draws all."""
MAX_EVENTS = 400
"""Of a longer session, only the part that a reader sees is in the page."""
ENDS = {
    "Interrupted": "interrupted",
    "Ended with an error": "error",
    "The model refused": "refused",
    "Cut off": "max_tokens",
    "Ended after a permission was denied": "denied",
    "Lost": "lost",
}
"""How the page says that a turn did not complete."""

DRAWN = """([events, state]) => {
  const shown = fresh();
  shown.replayEvents(JSON.parse(events).map((event, at) => ({ ...event, seq: at + 1 })), JSON.parse(state)); // files count anew
  shown.log.querySelectorAll(".said .more").forEach((button) => button.click());
  const main = (what) => [...shown.log.querySelectorAll(what)].filter((one) => one.closest(".sub-agent") === null);
  const isUncalled = (tool) => tool.called === null && tool.lane !== null; // a subagent whose call is not on the record
  const uncalled = new Set([...shown.flow.tools.values()].filter(isUncalled).map((tool) => tool.id));
  const words = (from, what) => [...from.querySelectorAll(what)].map((one) => readable(one));
  const read = (element) => {
    const copy = element.cloneNode(true);
    copy.querySelectorAll(".cite, .cut, .about, .citations, button").forEach((one) => one.remove());
    return readable(copy);
  };
  const turn = (one) => ({
    notices: words(one, ".notice-words"),
    errors: words(one, ".notice[data-tone=bad] .notice-words"),
    codes: words(one, ".notice-text .code-word"),
    facts: words(one, ".turn-end .facts"),
    answers: words(one, ".assistant-text"),
  });
  return {
    turns: main(".turn").filter((one) => one.querySelector(".turn-end")).map(turn),
    prompts: main(".user-message.by-human .said").map(read),
    answers: main(".assistant-text").map(read),
    cut: main(".assistant-text:has(> .cut)").map(read),
    calls: main(".tool-call").map((one) => [one.dataset.toolCallId, one.dataset.state]).filter(([id]) => !uncalled.has(id)),
  };
}"""


def chosen(folder: str) -> list[Session]:
    """The sessions of a program that are drawn: at least one of each format."""
    mine = [one for one in recordings() if one.path.parent.name == folder and one.id not in READ_OTHERWISE]
    drawn = [one for number, one in enumerate(mine) if one.path.name in SCENARIOS or number % ONE_IN == SEED % ONE_IN]
    formats = {stream.format for one in drawn for stream in one.streams}
    drawn += {stream.format: one for one in mine for stream in one.streams if stream.format not in formats}.values()
    found = [session for one in drawn for session in sessions(Case(one)) if session.name not in SAID_AGAIN | COUNTED_AHEAD]
    return [session for session in found if len(session.events) <= MAX_EVENTS]


def read_page(renderer: Watched, events: list[Event]) -> Told:
    """What the page says of some events, under the names that other surfaces have for it."""
    drawn: Any = renderer.run(DRAWN, [as_json(events), final_state(events)])
    turns = drawn["turns"]
    return {
        "prompts": Text("\n".join(drawn["prompts"])),
        "begun answers": Text("\n".join(drawn["answers"])),
        "cut count": len(drawn["cut"]),
        "called ids": sorted(name for name, _ in drawn["calls"]),
        "drawn failures": sum(state in ("error", "interrupted", "denied") for _, state in drawn["calls"]),
        "ends": [_end(turn) for turn in turns],
        "shown codes": [code for turn in turns for code in _last_code(turn)],
        "repeated errors": [text for turn in turns for text in _repeated(turn)],
        "page tokens": [_tokens(turn["facts"][-1]) for turn in turns],
        "page costs": [_cost(turn["facts"][-1]) for turn in turns],
    }


def _end(turn: Json) -> str:
    found = [status for words in turn["notices"] for start, status in ENDS.items() if words.startswith(start)]
    return found[-1] if found else "completed"


def _last_code(turn: Json) -> list[str]:
    return [turn["codes"][-1].split(" · ")[0]] if turn["codes"] and _end(turn) not in ("completed", "interrupted") else []


def _repeated(turn: Json) -> list[str]:
    """The texts that are in a notice and once more in another one, or in an answer."""
    said = [text for text in map(letters, turn["errors"]) if len(text) > SHORT]
    answers = [text for text in map(letters, turn["answers"]) if len(text) > SHORT]
    return [one for number, one in enumerate(said) if any(one in other or other in one for other in [*said[number + 1 :], *answers])]


def _tokens(facts: str) -> tuple[int, int] | None:
    found = re.search(r"([\d,]+) in, ([\d,]+) out tokens", facts)
    return None if found is None else (int(found[1].replace(",", "")), int(found[2].replace(",", "")))


def _cost(facts: str) -> str | None:
    found = re.search(r"\$[\d.]+", facts)
    return None if found is None else found[0]


@pytest.mark.parametrize("folder", sorted({recording.path.parent.name for recording in recordings()}))
def test_the_page_shows_what_was_really_said(renderer: Watched, folder: str) -> None:
    wrong = [false for session in chosen(folder) for false in session.false_statements(read_page(renderer, session.events))]
    assert not wrong, f"{len(wrong)} false statements:\n" + "\n".join(wrong[:5])
