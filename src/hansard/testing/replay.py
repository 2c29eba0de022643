"""An agent once more with the same prompts and the same answers of its model, in a copy of its work tree: what it does otherwise.

result = replay(store, session_id, agent="claude")
assert result.divergence is None, report(result)
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Literal, cast

from msgspec import Struct, field
from msgspec.structs import replace

from hansard import events as ev
from hansard.adapters import adapter_for
from hansard.agents import agent_for, agents
from hansard.agents.base import Options
from hansard.agents.session import SETTINGS, Session
from hansard.agents.session_state import Launch, SessionState
from hansard.agents.workspace import GIT
from hansard.errors import AgentError, Refused, UsageError
from hansard.events import is_main_agent
from hansard.events.agent_family import agent_family
from hansard.events.replays import without_handoff, without_replays
from hansard.events.summary import LAUNCHED_SUBTYPE, AgentSession
from hansard.importing.discovery import FileList, discover_sessions, homes, list_files
from hansard.importing.job import adapter_context, read_frames
from hansard.projections.call_text import DENIALS
from hansard.projections.divergence import Comparison, Divergence, Fact, compare
from hansard.store import JsonlStore, Store
from hansard.testing.model_server import serving
from hansard.testing.recorded_model import Details, RecordedModel, moved, prompts, recorded_model
from hansard.testing.replay_agents import ReplaySetup, set_up
from hansard.testing.replay_server import ReplayServer

TURN_SECONDS = 600.0
"""How long a turn may take."""
STOP_SECONDS = 10.0
"""How long an agent that took too long has to end its turn."""
MAX_PAUSE_SECONDS = 5.0
"""The longest pause before an interrupt that is made again."""
POLL_SECONDS = 0.02
"""How often the moment of an interrupt is checked."""
SHOWN_CHARACTERS = 2000
"""How much of a fact a report shows."""
_OWN = {"created", "checkpoint", "log_recovered", "closed", LAUNCHED_SUBTYPE}
"""Lifecycle events about a log, or about the process that wrote it."""


class ReplayOptions(Struct, kw_only=True):
    """How to replay."""

    agent: str | None = None
    """Another agent than the recorded one."""
    model: str | None = None
    from_seq: int | None = None
    """Replay from the first prompt at or after this event. The agent gets the conversation before it handed off."""
    workspace: Path | None = None
    """A folder that the agent gets a copy of, instead of the commit on the record."""
    keep: Path | None = None
    """A new folder for the log of the replay, the work tree, and the agent's home. Without one, nothing is kept."""
    agent_home: Path | None = None
    """The home folder of the recorded agent, where its own session files are. The default is the user's."""
    program: str | None = None
    arguments: list[str] = field(default_factory=list[str])
    permission_mode: str | None = None
    env: dict[str, str] = field(default_factory=dict[str, str])
    timeout: float = TURN_SECONDS
    edit: Callable[[RecordedModel], RecordedModel] | None = None
    """Changes the answers of the model before they are served: what does the agent do then?"""


class ReplayResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """The outcome of a replay."""

    session_id: str
    agent: str
    prompts: int
    """How many prompts the agent got."""
    answers: int
    """How many recorded answers of the model it asked for."""
    surplus_requests: int
    """How often it asked for an answer that is not on the record."""
    compared: int
    """How many facts are equal."""
    divergence: Divergence | None
    replay: str
    """The session of the replay. Its log is kept only if that was asked for."""


def replay(store: Store, session_id: str, options: ReplayOptions | None = None, **given: Any) -> ReplayResult:
    """Runs the agent of a session again and compares what it does. ``given``: fields of `ReplayOptions`."""
    chosen = ReplayOptions(**given) if options is None else options
    folder = Path(mkdtemp(prefix="hansard-replay-")) if chosen.keep is None else _new_folder(chosen.keep)
    try:
        return _Replay(store, session_id, chosen, folder.resolve()).run()
    finally:
        if chosen.keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def _new_folder(folder: Path) -> Path:
    try:
        folder.mkdir(0o700, parents=True)
    except FileExistsError:
        raise UsageError(f"{folder} exists; name a new folder for the replay") from None
    return folder


def report(result: ReplayResult) -> str:
    """Returns the outcome as text."""
    if result.divergence is None:
        return f"0 divergences, {result.compared} events compared\n"
    sides = (("expected", result.divergence.expected), ("replayed", result.divergence.actual))
    lines = [f"1 divergence after {result.compared} equal events", *(_side(name, fact) for name, fact in sides)]
    if result.surplus_requests:
        lines.append(f"The agent asked its model {result.surplus_requests} times more than the record has answers.")
    return "\n".join(lines) + "\n"


def _side(name: str, fact: Fact | None) -> str:
    if fact is None:
        return f"  {name}  nothing more"
    value = json.dumps(fact.value, ensure_ascii=False)
    return f"  {name}  §{fact.seq}  {fact.kind}  {value if len(value) <= SHOWN_CHARACTERS else value[:SHOWN_CHARACTERS] + '…'}"


# --------------------------------------------------------------------------------------------------------------------
# What was recorded


class _Turn(Struct):
    """A prompt, and what a person did until the next one."""

    prompt: ev.UserMessage
    before: list[ev.ConfigurationChange] = field(default_factory=list[ev.ConfigurationChange])
    """Changes of settings before it."""
    during: list[_Intervention] = field(default_factory=list["_Intervention"])


class _Intervention(Struct):
    """A steering message or an interrupt, and when it came."""

    event: ev.UserMessage | ev.Interrupt
    calls: int
    """The number of calls before it."""
    steps: int
    """How often the last call was reported to make progress before it."""
    seconds: float
    """How long nothing else had happened."""


class _Record:
    """A session as it was recorded, from a prompt on."""

    def __init__(self, store: Store, session_id: str, from_seq: int | None) -> None:
        self.events = list(store[session_id].conversation())
        self.state = SessionState()
        for event in self.events:
            self.state.apply(event)
        self.live = any(event.direction == "out" for event in self.events)
        said = prompts(self.events)
        if not said:
            raise UsageError(f"session {session_id} has no prompts to replay")
        begins = [event for event in said if not event.payload.steer and (from_seq is None or event.seq >= from_seq)]
        if not begins:
            raise UsageError(f"session {session_id} has no prompt at or after event {from_seq}")
        at = self.events.index(begins[0])
        while at > 0 and isinstance(self.events[at - 1], ev.TurnStart):
            at -= 1
        self.before = self.events[:at] if begins[0] is not said[0] else []
        self.rest = self.events[at:]
        self.turns = list(_turns(self.rest))

    @property
    def cwd(self) -> str | None:
        """The folder in which the agent worked."""
        launch, init, place = self.launch, self.state.init, self.state.summary.workspace
        return launch.options.cwd if launch is not None else (init and init.cwd) or (place and place.cwd)

    @property
    def launch(self) -> Launch | None:
        """How hansard started the agent first."""
        found = (event for event in self.events if isinstance(event, ev.SessionLifecycle) and event.payload.subtype == LAUNCHED_SUBTYPE)
        detail = next((event.payload.detail for event in found if event.source is None), None)
        return None if detail is None else self.state.decode_launch(detail)

    @property
    def workspace(self) -> ev.Workspace | None:
        """The work tree as it was when the replayed part began, with the commit that was noted last."""
        place = self.state.summary.workspace
        before, after = _commits(self.before), _commits(self.events)
        commit = before[-1] if before else after[0] if after else None
        return None if place is None else replace(place, commit=commit or place.commit)

    @property
    def agent_sessions(self) -> list[AgentSession]:
        return self.state.summary.agent_sessions


def _commits(events: Iterable[ev.Event]) -> list[str]:
    noted = (event.payload.workspace for event in events if isinstance(event, ev.SessionLifecycle | ev.SessionInit) and not event.replay)
    return [place.commit for place in noted if place is not None and place.commit]


def _turns(events: list[ev.Event]) -> Iterator[_Turn]:
    said = {id(event) for event in prompts(events)}
    turn, waiting, calls, steps, last = None, list[ev.ConfigurationChange](), 0, 0, 0
    for event in events:
        match event:
            case ev.UserMessage() if id(event) in said and not event.payload.steer:
                if turn is not None:
                    yield turn
                turn, waiting, calls, steps = _Turn(event, waiting), [], 0, 0
            case ev.UserMessage() | ev.Interrupt() if turn is not None and _intervenes(event):
                turn.during.append(_Intervention(event, calls, steps, max(0, event.timestamp - last) / 1000))
            case ev.ConfigurationChange() if turn is not None and event.direction == "out" and event.payload.subtype in SETTINGS:
                waiting.append(event)
            case ev.ToolCall() if is_main_agent(event) and not event.replay:
                calls, steps = calls + 1, 0
            case ev.ToolProgress():
                steps += 1
            case _:
                pass
        last = event.timestamp
    if turn is not None:
        yield turn


def _intervenes(event: ev.UserMessage | ev.Interrupt) -> bool:
    return event.direction == "out" and (isinstance(event, ev.Interrupt) or event.payload.steer)


# --------------------------------------------------------------------------------------------------------------------
# The replay


class _Replay:
    """One replay, from its folders to the comparison."""

    def __init__(self, store: Store, session_id: str, options: ReplayOptions, folder: Path) -> None:
        self._id, self._given, self._folder = session_id, options, folder
        self._record = _Record(store, session_id, options.from_seq)
        self._agent = options.agent or _recorded_agent(self._record)
        self._home, self._cwd = folder / "home", folder / "work"
        self._home.mkdir()
        self._store = JsonlStore(folder / "store")
        self._begin_seq = 0
        """The last event that the replay began with."""

    def run(self) -> ReplayResult:
        """Replays, and compares."""
        self._cwd = copy_work_tree(self._folder / "work", self._record.workspace, self._record.cwd, self._given.workspace)
        model = recorded_model(self._record.rest, self._details())
        if self._record.cwd is not None:
            model = moved(model, {self._record.cwd: str(self._cwd)})
        if self._given.edit is not None:
            model = self._given.edit(model)
        server = ReplayServer(model, without_tools=agent_for(self._agent).composes)
        with serving(server), self._store:
            options = self._options(server.url, model)
            begin = None if not self._record.before else self._copy_before()
            session_id = asyncio.run(_play(self._store, self._agent, options, begin, self._record, server, self._given.timeout))
        found = self._compare(session_id)
        return ReplayResult(
            session_id=self._id,
            agent=self._agent,
            prompts=len(self._record.turns),
            answers=server.served,
            surplus_requests=server.surplus,
            compared=found.compared,
            divergence=found.divergence,
            replay=session_id,
        )

    def _options(self, url: str, model: RecordedModel) -> Options:
        """The recorded options with what was chosen for the replay, for the model at this address."""
        launch, given = self._record.launch, self._given
        same = launch is not None and launch.agent == self._agent
        options = replace(launch.options, resume=None) if launch is not None and same else Options()
        program = given.program or (options.program if options.program and os.access(options.program, os.X_OK) else None)
        init = self._record.state.init
        mode = options.permission_mode or (None if self._record.live or init is None or not same else init.permission_mode)
        chosen: dict[str, Any] = {"model": given.model, "permission_mode": given.permission_mode or mode}
        options = replace(options, program=program, cwd=str(self._cwd), env=dict(given.env), messaging=False)
        options = replace(options, **{name: value for name, value in chosen.items() if value is not None})
        options.arguments = [*options.arguments, *given.arguments]
        asking = {event.payload.tool_name for event in self._record.rest if isinstance(event, ev.PermissionRequest)}
        setup = ReplaySetup(url, self._home, _retries(model), self._model_name(), sorted(filter(None, asking)))
        options = set_up(self._agent, options, setup)
        agent_for(self._agent).require(options)
        return options

    def _model_name(self) -> str | None:
        models = self._record.state.summary.models
        return self._given.model or (models[0] if models else None)

    def _copy_before(self) -> str:
        """Copies the conversation before the replay into a session of its own, which the agent takes over."""
        head = self._store.create()
        copied = [_unnumbered(event) for event in self._record.before if not _is_own(event)]
        self._begin_seq = max(event.seq for event in self._store[head.session_id].append([*copied]))
        self._store[head.session_id].release()
        return head.session_id

    def _details(self) -> Details:
        """The calls as the model made them, where the agent's own session files have them."""
        home = self._given.agent_home or Path.home()
        return details(files_of_sessions(home, self._record.agent_sessions))

    def _compare(self, session_id: str) -> Comparison:
        there = list(self._store[session_id].read(after=self._begin_seq))
        if not self._record.live:
            there = list(self._own_file(there)) or there
        places = {str(self._cwd): "<work>", str(self._home): "<home>"}
        recorded = {self._record.cwd: "<work>"} if self._record.cwd else {}
        recorded |= {str(self._given.agent_home or Path.home()): "<home>"}
        return compare(self._record.rest, there, expected_places=recorded, actual_places=places)

    def _own_file(self, there: list[ev.Event]) -> Iterator[ev.Event]:
        """Yields what the agent wrote into its own session file: an imported session is compared with the same kind of file."""
        state = SessionState()
        for event in there:
            state.apply(event)
        for seq, event in enumerate(files_of_sessions(self._home, state.summary.agent_sessions), 1):
            event.seq = seq
            yield event


def _recorded_agent(record: _Record) -> str:
    if record.launch is not None:
        return record.launch.agent
    family = agent_family(record.state.summary.agent or "")
    if family not in agents():
        raise UsageError("the record does not say which agent ran; choose one with --agent")
    return family


def _retries(model: RecordedModel) -> int:
    """Returns how often the agent asked again in a turn after an error."""
    return max((sum(step.status != 200 and not step.stays for step in turn.steps) for turn in model.turns), default=0)


def _is_own(event: ev.Event) -> bool:
    return isinstance(event, ev.SessionLifecycle) and event.source is None and event.payload.subtype in _OWN


def _unnumbered(event: ev.Event) -> ev.Event:
    return replace(event, session_id="", seq=0, original=None)


def copy_work_tree(target: Path, recorded: ev.Workspace | None, cwd: str | None, given: Path | None) -> Path:
    """Makes the folder in which the agent works: a copy of a folder, or the commit on the record, or an empty folder."""
    if given is not None:
        shutil.copytree(given, target, symlinks=True)
        return target
    if recorded is not None and recorded.repository and recorded.commit and _clone(recorded.repository, recorded.commit, target):
        inside = os.path.relpath(cwd or recorded.repository, recorded.repository)
        place = target if inside.startswith("..") else target / inside
        place.mkdir(parents=True, exist_ok=True)
        return place
    target.mkdir(exist_ok=True)
    return target


def _clone(repository: str, commit: str, target: Path) -> bool:
    """Clones a commit. Nothing is written into the repository."""
    commands = [
        [*GIT, "clone", "--quiet", "--shared", "--no-checkout", repository, str(target)],
        [*GIT, "-C", str(target), "checkout", "--quiet", "--detach", commit],
    ]
    try:
        done = all(subprocess.run(command, capture_output=True, check=False).returncode == 0 for command in commands)
    except OSError:
        return False
    if not done:
        shutil.rmtree(target, ignore_errors=True)
    return done


# --------------------------------------------------------------------------------------------------------------------
# The agent's own session files


def files_of_sessions(home: Path, sessions: Iterable[AgentSession]) -> Iterator[ev.Event]:
    """Yields the events in the session files that agents wrote for these sessions below a home folder."""
    beginnings = [session.id[:8] for session in sessions]
    listed = list_files(place for place in homes(home, {}) if place.exists())
    mine = {path: file for path, file in listed.files.items() if any(begin in path for begin in beginnings)}
    for job in discover_sessions(FileList(files=mine, problems=[]), None).jobs:
        for stream in job.streams:
            adapter = adapter_for(job.format)(adapter_context(job.session_id, job.format, stream, stream.name))
            for frame in read_frames(stream, job.format):
                yield from adapter.feed(frame)
            yield from adapter.finish()


def details(events: Iterable[ev.Event]) -> Details:
    """Returns the calls in these events, by id. Of a call that was not allowed some agents only write that there was one."""
    return {event.payload.tool_call_id: event.payload for event in events if isinstance(event, ev.ToolCall) and not event.synthetic}


# --------------------------------------------------------------------------------------------------------------------
# The agent at work


async def _play(
    store: Store, agent: str, options: Options, begin: str | None, record: _Record, server: ReplayServer, seconds: float
) -> str:
    """Gives the agent everything that it was given, and returns the session."""
    if begin is None:
        session = await Session.create(store, agent, options)
    else:
        session = await Session.open(store, begin, env=options.env)
        await session.configure_agent(agent, hand_off=True, **{name: getattr(options, name) for name in Options.__struct_fields__})
    player = _Player(session, record, server, seconds)
    try:
        for number, turn in enumerate(record.turns):
            server.begin(number)
            try:
                if not await player.play(turn):
                    break
            except AgentError:
                if number == 0:
                    raise
                break  # the comparison shows what is missing
    finally:
        await session.close()
    return session.id


class _Player:
    """Does what a person did."""

    def __init__(self, session: Session, record: _Record, server: ReplayServer, seconds: float) -> None:
        self._session, self._server, self._seconds = session, server, seconds
        self._decisions = _Replies(record.rest)
        self._tasks: set[asyncio.Task[None]] = set()
        self._calls = self._steps = 0
        session.subscribe(self._react)

    async def play(self, turn: _Turn) -> bool:
        """Plays a turn. Returns False if the agent did not come to an end."""
        said: Any = without_handoff(turn.prompt)
        for change in turn.before:
            wanted = change.payload
            setting = SETTINGS[wanted.subtype]
            with suppress(Refused):  # another agent may not have it
                await self._session.configure(wanted.subtype, **cast("Any", {setting: getattr(wanted, setting)}))
        self._calls = self._steps = 0
        author: Literal["human", "harness"] = "harness" if said.payload.author == "harness" else "human"
        await self._session.send(said.payload.text, said.payload.content, author=author)
        meanwhile = asyncio.create_task(self._intervene(turn))
        try:
            async with asyncio.timeout(self._seconds):
                await self._session.idle()
        except TimeoutError:
            await self._stop()
            return False
        finally:
            meanwhile.cancel()
        return True

    async def _intervene(self, turn: _Turn) -> None:
        for given in turn.during:
            await self._until(given)
            event = given.event
            if isinstance(event, ev.Interrupt):
                await self._session.interrupt(by=event.payload.by)
            else:
                await self._session.send(event.payload.text, event.payload.content, steer=True)

    async def _until(self, given: _Intervention) -> None:
        """Waits for the moment of an interrupt or a message: after as many calls, and as much of the answer, as on the record."""
        while self._calls < given.calls:
            await asyncio.sleep(POLL_SECONDS)
        if isinstance(given.event, ev.Interrupt):
            while not self._server.hanging.is_set() and (not self._session.state.calls or self._session.state.asked):
                await asyncio.sleep(POLL_SECONDS)
        with suppress(TimeoutError):  # how often a call makes progress may depend on the time
            async with asyncio.timeout(MAX_PAUSE_SECONDS):
                while self._steps < given.steps:
                    await asyncio.sleep(POLL_SECONDS)
        await asyncio.sleep(min(given.seconds, MAX_PAUSE_SECONDS))

    async def _stop(self) -> None:
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._session.interrupt(reason="timeout")
                await self._session.idle()
        except (TimeoutError, AgentError):
            pass  # closing the session stops the agent

    def _react(self, event: ev.Event) -> None:
        match event:
            case ev.ToolCall() if is_main_agent(event) and not event.replay:
                self._calls, self._steps = self._calls + 1, 0
            case ev.ToolProgress():
                self._steps += 1
            case ev.PermissionRequest():
                self._later(self._decide(event))
            case ev.Question():
                self._later(self._answer(event))
            case _:
                pass

    def _later(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(_unless_void(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _decide(self, asked: ev.PermissionRequest) -> None:
        request = asked.payload
        given = self._decisions.decision(request)
        if given is None:
            return  # it was not answered, but interrupted
        option = next((option.option_id for option in request.options if option.kind == given.option), None)
        reply = given.reply
        await self._session.decide(
            request.request_id,
            reply.decision,
            option_id=option,
            input_hash=request.input_hash,
            updated_input=reply.updated_input,
            message=reply.message,
            by=reply.by,
        )

    async def _answer(self, asked: ev.Question) -> None:
        given = self._decisions.answer()
        values, action = (None, "cancel") if given is None else (given.values, given.action or "accept")
        await self._session.answer(asked.payload.request_id, values, action)


async def _unless_void(work: Awaitable[None]) -> None:
    try:
        await work
    except AgentError:
        pass  # it is not asked any more


class _Reply(Struct):
    """A decision, and the kind of the option that was chosen."""

    reply: ev.PermissionResponsePayload
    option: str | None


class _Replies:
    """What was decided and answered, each good once. Where no decision is on the record, the results tell what was denied."""

    def __init__(self, events: list[ev.Event]) -> None:
        mine = list(without_replays(events))
        asked: dict[str, ev.PermissionRequestPayload] = {}
        self._decided: list[tuple[ev.PermissionRequestPayload, _Reply]] = []
        self._unanswered: set[str | None] = set()
        for event in mine:  # each process of an agent may count its requests from the beginning
            if isinstance(event, ev.PermissionRequest):
                asked[event.payload.request_id] = event.payload
                self._unanswered.add(event.payload.tool_call_id)
            elif isinstance(event, ev.PermissionResponse) and (request := asked.get(event.payload.request_id)) is not None:
                kinds = {option.option_id: option.kind for option in request.options}
                self._decided.append((request, _Reply(event.payload, kinds.get(event.payload.option_id or ""))))
                self._unanswered.discard(request.tool_call_id)
        self._knows_decisions = bool(asked)
        results = [event.payload for event in mine if isinstance(event, ev.ToolResult)]
        self._denied = {result.tool_call_id for result in results if result.error in DENIALS}
        self._answers = [event.payload for event in mine if isinstance(event, ev.Answer)]

    def decision(self, request: ev.PermissionRequestPayload) -> _Reply | None:
        """Returns the decision about the same call, or else the next one about the same tool; None if that was never answered."""
        for matches in (_same_call, _same_tool):
            found = next((one for one in self._decided if matches(one[0], request)), None)
            if found is not None:
                self._decided.remove(found)
                return found[1]
        if request.tool_call_id in self._unanswered:
            return None
        decision = "deny" if self._knows_decisions or request.tool_call_id in self._denied else "allow"
        kind = "reject_once" if decision == "deny" else "allow_once"
        return _Reply(ev.PermissionResponsePayload(request.request_id, decision), kind)

    def answer(self) -> ev.AnswerPayload | None:
        """Returns the next answer to a question."""
        return self._answers.pop(0) if self._answers else None


def _same_call(one: ev.PermissionRequestPayload, other: ev.PermissionRequestPayload) -> bool:
    return one.tool_call_id is not None and (one.tool_call_id, one.tool_name) == (other.tool_call_id, other.tool_name)


def _same_tool(one: ev.PermissionRequestPayload, other: ev.PermissionRequestPayload) -> bool:
    return one.tool_name == other.tool_name
