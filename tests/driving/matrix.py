"""The stories of the matrix: what a user and a scripted model do, turn by turn, the same with every real agent."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

import hansard
from hansard.agents import agent_for
from hansard.agents.base import Agent, Options
from hansard.agents.execute import ExecuteResult, ExecutionStream
from hansard.agents.hub import Hub
from hansard.agents.session import Session
from hansard.events import AssistantChunk, Event, PermissionRequest
from hansard.events.originals import embed
from hansard.projections import project
from hansard.testing.truth import STORIES
from tests.driving.model import SOON, Model, Step, Text, Thinking, calls, is_conversation, model, says
from tests.driving.real_agents import (
    AGENTS,
    BY_TOOL,
    FAMILIES,
    IN_EVERY_RUN,
    MODELS,
    SILENT,
    STOPS_AT_DENIAL,
    TOLD_WHY,
    execute_options,
    message_call,
    shell_call,
)
from tests.driving.surroundings import PATIENCE, Surroundings, idle
from tests.driving.witness import Witness

LONG = "A long story, told in no hurry at all. " * 8
ODD = "--help  How is the day? $(touch no) `touch no`\n/quit"
"""A prompt that a program would take for something else if it were an argument, a line, or a command."""
DENIAL = "Rather not, said the owl."
"""Why something is denied."""
CALLBACK = "I thought about it: **yes**."
"""What the demo agent answers to `think`."""


class Point(Struct):
    """The structured output that is asked for."""

    x: int


class Turn(Struct, kw_only=True):
    """A prompt, what the model answers, what the user does meanwhile, and how it must end."""

    prompt: str
    script: list[Step]
    again: list[Step] | None = None
    """What the model answers when hansard asks it for another shape."""
    story: str = "text"
    """How the turn ends: a row of `STORIES`."""
    agent: str | None = None
    """Another agent than before."""
    decisions: list[Literal["allow", "deny"]] = field(default_factory=list[Any])
    always: bool = False
    reason: str | None = None
    """Why something is denied, for an agent whose model is told."""
    hand_off: bool = False
    """Whether an agent that cannot resume its session gets the conversation."""
    results: list[bool] = field(default_factory=list[bool])
    """Of each call, whether it fails."""
    stop: Literal["interrupt", "timeout"] | None = None
    data: Any = None
    """The structured output, where some is asked for."""
    shape: type | None = None
    wrong: str | None = None
    """The last answer, if it has the wrong shape to the end."""


Make = Callable[["Cell"], list[Turn]]


class Story(Struct, frozen=True, kw_only=True):
    """A row of the matrix."""

    make: Make
    needs: tuple[str, ...] = ()
    """The capabilities, as drivers declare them, without which an agent cannot have it."""
    tools: bool = False
    shows: tuple[str, ...] = ()
    """The capabilities that it shows, as docs/agents.md has them."""
    often: tuple[str, ...]
    """The agents with which `make test` plays it; `make test-agents` takes all."""
    by_message: bool = False
    """Whether the agent messages another one, through a hub."""


class Cell:
    """A story with an agent: where it happens, and afterwards everything that is known of it."""

    def __init__(self, story: str, agent: str, folder: Path) -> None:
        self.name, self.agent, self.around = story, agent, Surroundings(folder)
        self.story = MATRIX[story]
        self.turns = self.story.make(self)
        self.results: list[ExecuteResult] = []
        self.served: Model
        self.session: Session
        self.witness: Witness | None = None
        """Of an agent whose wire is the pipes of its program."""

    def options(self, agent: str) -> dict[str, Any]:
        """How an agent is asked here."""
        given = execute_options(agent, self.served, self.around)
        if type(agent_for(agent)).connect is Agent.connect and not any(turn.agent for turn in self.turns):
            self.witness = self.witness or Witness(given["program"], self.around.home.parent)
            given["program"] = self.witness.program
        return given

    def shell(self, command: str) -> Step:
        """The model calls the shell."""
        return Step([shell_call(self.agent, command)])

    @property
    def events(self) -> list[Event]:
        """The log, with every original in its place."""
        log = self.around.store[self.session.id]
        found = list(log.read())
        for event in found:
            event.original = event.original and embed(event.original, log.get_blob)
        return found

    @property
    def wire(self) -> bytes:
        """Everything that was said in both directions."""
        events = self.events
        return b"\n".join(b"".join(project(events, "native", direction=side)) for side in ("in", "out"))

    @property
    def truth(self) -> dict[str, Any]:
        """What the user and the model did, in the form of the recordings' truth.json."""
        return {"turns": [turn for each in self.turns for turn in _truth(each)]}


def _truth(turn: Turn) -> Iterator[dict[str, Any]]:
    status, code = STORIES[turn.story]
    for number, script in enumerate([turn.script] if turn.again is None else [turn.script, turn.again]):
        done = [step for step in script if step.status == 200 and not step.hang]
        yield {
            "user": turn.prompt if number == 0 else None,
            "model": [item for step in done for item in _items(step)],
            "usage": {"input_tokens": 10 * len(done), "output_tokens": 5 * len(done)} if turn.stop is None else {},
            "end": status,
            "error_code": code,
            "permission_answers": turn.decisions,
        }


def _items(step: Step) -> Iterator[dict[str, Any]]:
    for item in step.items:
        match item:
            case Text(text=text):
                yield {"text": text}
            case Thinking(text=text):
                yield {"thinking": text}
            case call:
                yield {"tool_call": {"name": call.name, "args": call.args}}


# --------------------------------------------------------------------------------------------------------------------
# The table


def _denied(cell: Cell) -> list[Turn]:
    stops = cell.agent in STOPS_AT_DENIAL
    story = "tool denied, and stopped" if stops else "tool denied, then answered"
    script = [cell.shell(MAKE), *([] if stops else [says("Not then.")])]
    reason = DENIAL if cell.agent in TOLD_WHY else None
    return [Turn(prompt="Make a folder.", script=script, story=story, decisions=["deny"], reason=reason, results=[True])]


def _decided(cell: Cell, times: int = 1) -> list[Literal["allow", "deny"]]:
    """The answers to an agent that asks."""
    return ["allow"] * times if agent_for(cell.agent).capabilities.permissions else []


def _fails(story: str, status: int) -> Make:
    """An error of the API; some agents ask again a few times before they give up."""

    def make(cell: Cell) -> list[Turn]:
        told = "HTTP 500" if cell.agent in VAGUE else story
        return [Turn(prompt="Hello?", script=[Step(status=status, headers=SOON)] * 15, story=told)]

    return make


def _answer(cell: Cell, x: Any) -> Step:
    """The structured output, by the way that the agent has for it."""
    return calls("StructuredOutput", {"x": x}) if cell.agent in BY_TOOL else says(json.dumps({"x": x}))


def _structured(cell: Cell, *answers: Any) -> list[Turn]:
    """The answers of the model, of which the last counts. Claude Code asks again by itself; other agents do not look at the shape."""
    checks, steps = FAMILIES[cell.agent] == "claude" and cell.agent in BY_TOOL, [_answer(cell, x) for x in answers]
    script, again = (steps, None) if checks or len(steps) == 1 else (steps[:1], steps[1:])
    failed = [checks and not isinstance(x, int) for x in answers] if cell.agent in BY_TOOL else []
    return [Turn(prompt="Where is x?", script=script, again=again, shape=Point, data=Point(4), results=failed)]


def _wrong(cell: Cell) -> list[Turn]:
    """Hansard asks once more, and Claude Code itself once in each turn."""
    if cell.agent == "opencode":
        script, again = ([_answer(cell, "four")] for _ in range(2))
        return [Turn(prompt="Where is x?", script=script, again=again, shape=Point, wrong='{"x":"four"}', results=[False, False])]
    times = 2 if FAMILIES[cell.agent] == "claude" and cell.agent in BY_TOOL else 1
    script, again = ([says('{"x": "four"}') for _ in range(times)] for _ in range(2))
    return [Turn(prompt="Where is x?", script=script, again=again, shape=Point, wrong='{"x": "four"}')]


def _numbered(number: int, agent: str | None = None) -> Turn:
    return Turn(prompt=f"What is the question of turn {number}?", script=[says(f"This is the answer of turn {number}.")], agent=agent)


def _switched(cell: Cell) -> list[Turn]:
    """The agent hands over to each one after it in the list, and gets the conversation back: over all agents, every pair both ways."""
    known = AGENTS if "HANSARD_ALL_AGENTS" in os.environ else IN_EVERY_RUN
    others = known[known.index(cell.agent) + 1 :]
    tool = [] if cell.agent in MODELS else [cell.shell(MAKE)]
    first = Turn(prompt="Where is it?", script=[*tool, says("It is in the garden.")], decisions=_decided(cell), results=[False] * len(tool))
    order = [agent for other in others for agent in (other, cell.agent)]
    return [first, *(_numbered(number, agent) for number, agent in enumerate(order))]


def _messaged(wait: bool) -> Make:
    def make(cell: Cell) -> list[Turn]:
        arguments = {"to": "demo", "message": "think"} | ({} if wait else {"wait": False})
        script = [Step([message_call(cell.agent, arguments)]), says("I asked.")]
        decisions = _decided(cell) if FAMILIES[cell.agent] != "opencode" else []  # it lets MCP servers do what they like
        asking = Turn(prompt="Ask the demo agent.", script=script, decisions=decisions, results=[False])
        return [asking] if wait else [asking, Turn(prompt="", script=[says("It says yes.")])]

    return make


VAGUE = {"opencode-acp"}
"""Agents whose wire has the words of an error, not its status."""
RESUMES_ONCE = {"gemini"}
"""Agents that resume a session once: Gemini CLI 0.61.0 does not find a session again that it resumed."""
MAKE = "mkdir -vp made"
SLOW = "touch started && sleep 60"
MATRIX = {
    "text": Story(
        often=("claude", "codex-exec", "openai-chat"),
        make=lambda cell: [Turn(prompt=ODD, script=[Step([Thinking("Let me see."), Text("It is a fine day.")])])],
        shows=("text",),
    ),
    "tool allowed": Story(
        often=("codex-exec", "claude-oneshot"),
        make=lambda cell: [
            Turn(prompt="Make a folder.", script=[cell.shell(MAKE), says("There it is.")], decisions=_decided(cell), results=[False])
        ],
        tools=True,
        shows=("tools", "allowed"),
    ),
    "tool denied": Story(often=("claude", "codex"), make=_denied, needs=("permissions",), tools=True, shows=("denied",)),
    "always": Story(
        often=("claude", "codex"),
        make=lambda cell: [
            Turn(
                prompt="Make it twice.",
                script=[cell.shell(MAKE), cell.shell(MAKE), says("There it is.")],
                decisions=["allow"],
                always=True,
                results=[False, False],
            )
        ],
        needs=("permissions",),
        tools=True,
    ),
    "interrupted in text": Story(
        often=("claude", "codex-exec", "openai-responses"),
        make=lambda cell: [
            Turn(prompt="Tell me a story.", script=[Step([Text(LONG)], hang=True)], story="interrupted in text", stop="interrupt"),
            Turn(prompt="Are you there, somewhere?", script=[says("I am still here.")], hand_off=True),
        ],
        needs=("interrupt",),
        shows=("interrupt",),
    ),
    "interrupted in a tool": Story(
        often=("codex", "claude-oneshot"),
        make=lambda cell: [
            Turn(
                prompt="Take your time.",
                script=[cell.shell(SLOW)],
                story="interrupted in a tool",
                decisions=_decided(cell),
                results=[True],
                stop="interrupt",
            )
        ],
        needs=("interrupt",),
        tools=True,
    ),
    "HTTP 401": Story(often=("claude", "codex"), make=_fails("HTTP 401", 401), shows=("401",)),
    "HTTP 429": Story(often=("codex-exec", "openai-chat"), make=_fails("HTTP 429", 429), shows=("429",)),
    "HTTP 500": Story(often=("agent-sdk",), make=_fails("HTTP 500", 500)),
    "overloaded": Story(often=("claude-oneshot", "openai-responses"), make=_fails("overloaded", 529)),
    "timeout": Story(
        often=("agent-sdk", "openai-chat"),
        make=lambda cell: [
            Turn(prompt="Tell me a story.", script=[Step([Text(LONG)], hang=True)], story="interrupted in text", stop="timeout")
        ],
    ),
    "resume": Story(
        often=("codex", "codex-exec", "openai-responses"),
        make=lambda cell: [_numbered(number) for number in range(2 if cell.agent in RESUMES_ONCE else 4)],
        needs=("resume",),
        shows=("resume",),
    ),
    "switch": Story(often=("claude",), make=_switched),
    "structured output": Story(often=("agent-sdk", "codex", "openai-chat"), make=lambda cell: _structured(cell, 4)),
    "structured output, wrong at first": Story(often=("claude", "codex"), make=lambda cell: _structured(cell, "four", 4)),
    "structured output, wrong to the end": Story(often=("claude-oneshot", "openai-chat"), make=_wrong),
    "agent message waited for": Story(often=("claude",), make=_messaged(wait=True), needs=("mcp",), by_message=True),
    "agent message not waited for": Story(often=("codex",), make=_messaged(wait=False), needs=("mcp",), by_message=True),
}
"""Every story."""

# --------------------------------------------------------------------------------------------------------------------
# How it is played


async def play(cell: Cell) -> None:
    """Lets the story happen. Afterwards the cell has the log, the results, and the requests to the model."""
    script = [step for turn in cell.turns for step in (*turn.script, *(turn.again or []))]
    with model(*script, is_step=is_conversation) as cell.served:
        await (_message(cell) if cell.story.by_message else _execute(cell))


async def _execute(cell: Cell) -> None:
    agent = cell.agent
    for turn in cell.turns:
        agent = turn.agent or agent
        how = cell.options(agent)
        how |= {"timeout": 10 * PATIENCE, "schema": turn.shape, "on_permission": "ask", "hand_off": turn.hand_off}
        if cell.results:
            how["session"] = cell.session.id
        async with hansard.stream(agent, turn.prompt, **how) as events:
            cell.session = events.session
            stopping = None if turn.stop is None else asyncio.create_task(_stop(cell, turn, events))
            async for event in events:
                if isinstance(event, PermissionRequest):
                    await _decide(events.session, turn, event)
            if stopping is not None:
                await stopping
        cell.results.append(events.result)


async def _decide(session: Session, turn: Turn, asked: PermissionRequest) -> None:
    kind = "allow_always" if turn.always else "allow_once"
    option = next((option.option_id for option in asked.payload.options if option.kind == kind), None)
    decision = turn.decisions[0]
    assert option is not None or decision == "deny"
    await session.decide(
        asked.payload.request_id,
        decision,
        option_id=option if decision == "allow" else None,
        input_hash=asked.payload.input_hash,
        message=turn.reason,
        by="somebody",
    )


async def _stop(cell: Cell, turn: Turn, events: ExecutionStream) -> None:
    """Stops the agent in the middle of its answer, or of its tool."""
    await _until(cell.served.hanging.is_set if turn.script[-1].hang else (cell.around.work / "started").exists)
    if turn.script[-1].hang and cell.agent not in SILENT:
        await _until(lambda: any(isinstance(event, AssistantChunk) for event in events.exchange.events))
    if turn.stop == "interrupt":
        await events.session.interrupt(by="somebody")
        return
    assert events.exchange.limit is not None
    events.exchange.limit.reschedule(asyncio.get_running_loop().time())


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.02)


async def _message(cell: Cell) -> None:
    (first, *_), chosen = cell.turns, cell.options(cell.agent)
    chosen["env"] |= {"DEMO_AGENT_PACE": "0"}
    async with Hub(chosen.pop("store")) as hub:
        cell.session = session = await hub.create(cell.agent, Options(messaging=True, **chosen))
        asked: list[asyncio.Task[None]] = []

        def allow(event: Event) -> None:
            if isinstance(event, PermissionRequest):
                asked.append(asyncio.create_task(_decide(session, first, event)))

        session.subscribe(allow)
        await session.send(first.prompt)
        await _until(lambda: session.state.turn_count == len(cell.turns))
        await idle(session)
        await session.close()
