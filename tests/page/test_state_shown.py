"""What the page says around the transcript is the state that Python folds, for a log that is there and for one that grows."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from hansard.adapters.normalize import normalize
from hansard.events import (
    Event,
    PermissionRequest,
    PlanEntry,
    Question,
    Usage,
    permission_request,
    plan_update,
    question,
    queue_update,
    session_init,
    session_lifecycle,
    tool_call,
    turn_end,
    turn_start,
    usage,
    user_message,
)
from hansard.events.state import State
from hansard.projections.output import encode
from hansard.store import JsonlStore
from tests.page.chromium import PATIENCE
from tests.page.recorded import known
from tests.page.talking import Person, store_of
from tests.proof import SEED, amount
from tests.recorded import rank
from tests.server.served import Process

Visit = Callable[..., Person]
ONE_IN = amount(12, 1)
"""The share of the recordings of each format; `make soak` shows all."""
FOLDERS = sorted({stream.recording.path.parent.name for stream in known() if stream.main})

SHOWN = """() => {
  const all = (what) => [...document.querySelectorAll(what)];
  const text = (what) => document.querySelector(what)?.textContent ?? null;
  const visible = (what) => (document.querySelector(what)?.closest("[hidden]") ? null : document.querySelector(what));
  const card = document.querySelector(".asking .card");
  return {
    title: text(".header .title"),
    model: visible(".header [aria-label=Model] .clip")?.textContent ?? null,
    mode: visible(".header [aria-label=Mode] .clip")?.textContent ?? null,
    doing: text(".header .doing-word"),
    now: text(".transcript .now") || null,
    cost: text(".header .cost"),
    context: visible(".header .context")?.getAttribute("aria-label") ?? null,
    queue: all(".waiting-message .clip").map((one) => one.textContent),
    plan: all(".side-part:not([hidden]) .plan-steps li").map((one) => one.lastElementChild.textContent),
    done: all(".side-part:not([hidden]) .plan-steps .step.done").length,
    card: card && [card.classList.contains("permission") ? "permission_request" : "question", card.dataset.requestId],
    place: card?.querySelector(".card-head .small").textContent ?? null,
  };
}"""
TURNS = """() => [...document.querySelectorAll(".palette-list li")].map((one) => [one.querySelector(".number").textContent,
  one.querySelector(".clip").textContent, one.querySelector(".standing").className.replace("standing ", "")])"""
STANDING = {"completed": "done", "interrupted": "stopped", "denied": "stopped", "running": "running"}


def folded(events: list[Event]) -> dict[str, Any]:
    return json.loads(encode(State.from_events(events).snapshot()))


def expected(state: dict[str, Any]) -> dict[str, Any]:
    """What the page says about a state."""
    first, plan = next(iter(state["requests"]), None), state["plan"]
    work = words(state["running"])
    return {
        "title": (state["title"] or "").strip().split("\n")[0] or "Untitled",
        "model": state["model"],
        "mode": mode_name(state) if state["mode"] or state["permissionMode"] else None,
        "doing": work,
        "now": work,
        "cost": money(state["costUsd"]),
        "context": gauge(state["context"]),
        "queue": [text or "a message" for text in state["agentQueue"]]
        + [text if text is not None else "the answer of another agent" for text in state["queue"].values()],
        "plan": [entry["content"] for entry in plan],
        "done": sum(entry["status"] == "completed" for entry in plan),
        "card": first and [first["type"], first["requestId"]],
        "place": first and (f"1 of {len(state['requests'])} questions" if len(state["requests"]) > 1 else ""),
    }


def words(running: dict[str, Any] | None) -> str | None:
    if running is None:
        return None
    names = {"waiting": "waiting for your answer", "tool": f"running {running['toolName']}"}
    names["preparing"] = f"preparing {running['toolName'] or 'a call'}"
    if running["what"] == "retrying" and running["retryMs"] is not None:
        ms = running["retryMs"]
        return f"retrying in {round(ms)} ms" if ms < 950 else f"retrying in {float(f'{ms / 1000:.1f}'):g} s"
    return names.get(running["what"], running["what"])


def mode_name(state: dict[str, Any]) -> str:
    mode = state["mode"] or state["permissionMode"]
    found = next((one for one in state["modes"] or [] if isinstance(one, dict) and one.get("id") == mode), {})
    return found.get("name", mode)


def money(dollars: float | None) -> str:
    if dollars is None:
        return ""
    return "$0" if dollars == 0 else "< 1¢" if dollars < 0.005 else f"${dollars:.2f}"


def gauge(context: dict[str, Any] | None) -> str | None:
    if context is None or context["tokens"] is None:
        return None
    tokens, window = context["tokens"], context["window"]
    if not window:
        return f"{short(tokens)} tokens of context"
    return f"{int(100 * min(1, tokens / window) + 0.5)} % of the context is used: {short(tokens)} of {short(window)} tokens"


def short(count: int) -> str:
    if count < 1000:
        return str(count)
    value, unit = (count / 1000, "k") if count < 999_500 else (count / 1_000_000, "M")
    return f"{float(f'{value:.1f}'):g}{unit}" if value < 99.95 else f"{int(value + 0.5)}{unit}"


def halves(events: list[Event]) -> tuple[list[Event], list[Event]]:
    """The events up to the last question and the rest; without one, in the middle."""
    asked = [number for number, event in enumerate(events, 1) if isinstance(event, PermissionRequest | Question)]
    cut = asked[-1] if asked else max(1, len(events) // 2)
    return events[:cut], events[cut:]


class Reader:
    """A person who goes from session to session while they are written."""

    def __init__(self, person: Person, server: Process) -> None:
        self.person = person
        self.store = JsonlStore(store_of(server))

    def reads(self, *parts: list[Event]) -> None:
        """Opens a session after its first part is written; the others come while it is open."""
        session = self.store.create().session_id
        for number, events in enumerate(parts):
            if events:
                self.store[session].append(events)
            if number == 0:
                self.person.do(lambda page: page.evaluate("(hash) => { location.hash = hash; }", session))
            self.sees(list(self.store[session].read()))
        self.store[session].release()

    def sees(self, events: list[Event]) -> None:
        wanted, until = expected(folded(events)), time.monotonic() + PATIENCE / 1000
        self.person.has_read(events[-1].seq)
        while (found := self.person.run(SHOWN)) != wanted and time.monotonic() < until:
            time.sleep(0.02)
        assert found == wanted

    def sees_turns(self, events: list[Event]) -> None:
        self.person.presses("n")
        turns = folded(events)["turnList"]
        assert self.person.run(TURNS) == [[str(turn["number"]), turn["title"], STANDING.get(turn["status"], "failed")] for turn in turns]
        self.person.presses("Escape")


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_page_shows_the_state_of_each_recording(visit: Visit, server: Process, folder: str) -> None:
    reader = Reader(visit(), server)
    for stream in known():
        if stream.recording.path.parent.name == folder and stream.main and rank(stream)[0] % ONE_IN == SEED % ONE_IN:
            try:
                reader.reads(*halves(list(normalize(stream.data, stream.format, stream.context))))
            except AssertionError as problem:
                raise AssertionError(f"{stream.id}: {problem}") from None


def asked(name: str) -> PermissionRequest:
    return permission_request(request_id=name, options=[], input_hash=name, input={"command": name})


def story() -> list[list[Event]]:
    """Everything that the page says around a transcript, one after another."""
    start, end = turn_start(trigger="user"), turn_end(status="completed")
    context = usage(scope="context", usage=Usage(total_tokens=12_345), context_window=200_000, cost_usd=1.5)
    steps = [PlanEntry(content="look", status="completed"), PlanEntry(content="leap", status="pending")]
    parts: list[list[Event]] = [
        [session_init(agent_id="demo", model="m-1", permission_mode="plan"), start, user_message(text="Ferry times?")],
        [context, plan_update(entries=steps)],
        [tool_call(tool_call_id="c", tool_name="Bash", args={})],
        [asked("one"), question(request_id="two", message="Which harbor?")],
        [queue_update(action="queued", item_id="q", text="and then?")],
        [session_lifecycle(subtype="renamed", title="Ferries")],
        [end],
        [queue_update(action="sent", item_id="q", text="and then?")],
    ]
    for event in (event for part in parts for event in part):
        event.turn_id = "t1"
    return parts


def test_the_page_follows_the_state_step_by_step(visit: Visit, server: Process) -> None:
    reader, parts = Reader(visit(), server), story()
    reader.reads(*parts)
    reader.sees_turns([event for part in parts for event in part])


def test_nothing_is_said_that_is_not_known_yet(visit: Visit, server: Process) -> None:
    """The state is held back: the page shows the events, and around them nothing but what the list of sessions says."""
    reader = Reader(visit(), server)
    session = reader.store.create(title="Ferries").session_id
    reader.store[session].append([event for part in story()[:5] for event in part])
    person = reader.person
    person.run("""() => { const parse = JSON.parse;
        JSON.parse = (...given) => { const made = parse(...given); return made?.type === "state" ? {} : made; }; }""")
    person.run("(session) => { location.hash = session; }", session)
    person.reads("Ferry times?")
    person.sees_no(".reading")
    person.until("document.querySelector('.header .title').textContent === 'Ferries'")
    found = person.run(SHOWN)
    assert [found[name] for name in ("model", "mode", "doing", "now", "context", "card")] == [None] * 6
    assert (found["queue"], found["plan"], person.run("document.querySelector('.composer-why').hidden")) == ([], [], True)
