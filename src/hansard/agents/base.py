"""What an agent is to us: how it is started, what it can do, how it is greeted, and what it is told when it asks.

Its wire is the adapter's business; an agent here only puts commands together that the adapter spells.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from hansard.adapters.framing import Framer, Lines
from hansard.agents.environment import environment
from hansard.agents.handoff import Handoff
from hansard.agents.process import Command, Process
from hansard.agents.transport import Transport
from hansard.errors import AgentNotStarted, CannotEncode, Refused, UsageError
from hansard.events import ConfigurationChangePayload, ControlRequest, ControlResponsePayload, Event, UserMessage
from hansard.events.structs import prepare

MESSAGING_SERVER = "hansard"
"""By this name agents know the MCP server of the tools with which they message others."""


class Options(Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """How a session wants its agent. What an agent cannot do it refuses when it is started."""

    cwd: str = "."
    model: str | None = None
    permission_mode: str | None = None
    system_prompt: str | None = None
    """Instead of the agent's own."""
    append_system_prompt: str | None = None
    """After the agent's own."""
    allowed_tools: list[str] = field(default_factory=list[str])
    denied_tools: list[str] = field(default_factory=list[str])
    mcp_servers: dict[str, dict[str, Any]] = field(default_factory=dict[str, "dict[str, Any]"])
    env: dict[str, str] = field(default_factory=dict[str, str])
    base_url: str | None = None
    program: str | None = None
    """The full path of the agent's program, if it is not the one that is found by its name."""
    arguments: list[str] = field(default_factory=list[str])
    """More arguments, for what hansard has no word for. For an ACP agent of the user's own: the command itself."""
    services: list[Literal["read", "write", "terminal"]] = field(default_factory=lambda: ["read", "write"])
    """What the session does for an agent that asks for it: read and write files of its folder, run commands. The agent asks nobody else."""
    messaging: bool = field(default=False, name="talk")
    """Whether it may message other agents, and be messaged by them, with tools that hansard offers. ``talk`` is its name in the log."""
    resume: str | None = None
    """The agent's own id of the session to resume."""
    schema: dict[str, Any] | None = None
    """The JSON Schema of the answers. Like ``env`` it holds for this process alone."""


class Capabilities(Struct, frozen=True, kw_only=True, rename="camel"):
    """What an agent can do. What it cannot is refused, visibly, before it is asked."""

    interrupt: bool = True
    steer: bool = False
    """Whether it takes a message in the middle of a turn."""
    permissions: bool = True
    edits: bool = False
    """Whether what it asks for may be changed before it is allowed."""
    questions: bool = False
    images: bool = True
    files: bool = False
    resume: bool = True
    model: bool = True
    mode: bool = True
    """Whether model and mode can be changed while it runs."""
    system_prompt: bool = False
    tools: bool = False
    """Whether single tools can be allowed and denied."""
    mcp: bool = True
    one_shot: bool = False
    """Whether each turn is a process of its own: it is started with the prompt on its input, and a setting holds from the next start."""


class Handshake(Protocol):
    """What an agent may do with its session while it greets."""

    async def request(self, command: Event) -> Event:
        """Put a command on the record, then send it."""
        ...

    async def call(self, method: str, params: Any = None) -> ControlResponsePayload:
        """Send a request and wait for its answer. An answer that says no is raised as `Refused`."""
        ...


class Agent:
    """One kind of agent. A file of this folder defines some and lists them in ``AGENTS``."""

    name: ClassVar[str]
    """As it is called on the command line."""
    title: ClassVar[str]
    format: ClassVar[str]
    """The wire it speaks."""
    programs: ClassVar[tuple[str, ...]] = ()
    """The names of its program, the first that is found counts."""
    install: ClassVar[str] = ""
    """What to do if it is not there."""
    capabilities: ClassVar[Capabilities] = Capabilities()
    composes: ClassVar[bool] = False
    """Whether `compose` makes the frame of each message from the log, because its wire carries the whole conversation each time."""
    keeps_asking: ClassVar[bool] = False
    """Whether it waits for the answers to its questions even after an interrupt."""
    reports_settings: ClassVar[bool] = False
    """Whether it reports its settings after each change of them. The report may come after the reply."""
    framer: ClassVar[type[Framer]] = Lines
    """How its live stream is cut. Not the adapter's own, which also takes recordings: an agent must not be able to play one to us."""

    # ---- what a subclass writes

    def argv(self, options: Options) -> list[str]:
        """The arguments after the program. Each is one argument, whatever is in it."""
        return []

    def private(self, options: Options) -> dict[str, str]:
        """What it reads from files that are for it alone, by the option that names the file: nothing secret has to be an argument."""
        return {}

    def variables(self, options: Options) -> dict[str, str]:
        """What it is told by its environment. The session's own variables count more."""
        return {}

    async def handshake(self, talk: Handshake, options: Options) -> None:
        """The handshake: after it the agent takes messages."""

    def reply(self, request: ControlRequest, options: Options) -> ControlResponsePayload | None:
        """The answer to a request of the agent's that is no question to a person; None if there is none: then it is told so."""
        return None

    def options_for_next_run(self, options: Options, change: ConfigurationChangePayload) -> Options:
        """The options of a one-shot agent after a change of its settings, or `Refused`."""
        if (change.mode_id, change.options) != (None, None):
            raise Refused("unsupported", f"{self.title} has no such setting")
        wanted = {"model": change.model, "permission_mode": change.permission_mode}
        after = replace(options, **{name: value for name, value in wanted.items() if value is not None})
        try:
            self.argv(after)
        except UsageError as problem:
            raise Refused("refused", str(problem)) from problem
        return after

    def options_after(self, options: Options, change: ConfigurationChangePayload) -> Options:
        """The options to start it with again after it took a change of its settings: that holds for the session, not the process."""
        wanted = {"model": change.model, "permission_mode": change.permission_mode}
        return replace(options, **{name: value for name, value in wanted.items() if value is not None})

    def native_schema(self, options: Options) -> dict[str, Any] | None:
        """Returns the schema of the answers as the agent's own option takes it; None if there is none, or the agent must get it as text."""
        return None

    def write_handoff(self, events: Iterable[Event], options: Options) -> Handoff:
        """Writes the conversation where the agent can resume it, if it can.

        It is called in a thread of its own, and ``events`` are read from the log as they are needed.
        """
        return Handoff(as_text=True)

    def compose(self, said: UserMessage, options: Options, events: Iterable[Event]) -> bytes:
        """Returns the frame of a message, for an agent that `composes`. Called in a thread; ``events`` are those of the log."""
        raise CannotEncode(f"{self.title} keeps its conversation itself")

    # ---- what everybody gets

    def check(self, options: Options) -> None:
        """Refuse what it cannot do, before it is started."""
        wanted = {
            "a system prompt": (options.system_prompt or options.append_system_prompt) is not None and not self.capabilities.system_prompt,
            "that single tools are allowed or denied": bool(options.allowed_tools or options.denied_tools) and not self.capabilities.tools,
            "MCP servers": bool(options.mcp_servers) and not self.capabilities.mcp,
            "to resume an earlier session": options.resume is not None and not self.capabilities.resume,
        }
        for what, refused in wanted.items():
            if refused:
                raise Refused("unsupported", f"{self.title} does not take {what}")

    async def connect(self, options: Options) -> Transport:
        """Start it."""
        return await Process.start(self.command(options), one_shot=self.capabilities.one_shot)

    async def set(self, talk: Handshake, change: Event) -> None:
        """Set something the agent must have before it begins."""
        try:
            await talk.request(change)
        except Refused as problem:
            raise AgentNotStarted(f"{self.title} does not take this {change.payload.subtype}: {problem}") from problem

    def require(self, options: Options) -> None:
        """Raises `AgentNotStarted` if the agent is not installed, so that nothing is created for it."""
        self.find(options, self._environment(options).get("PATH"))

    def _environment(self, options: Options) -> dict[str, str]:
        return environment(os.environ, self.variables(options) | options.env)

    def command(self, options: Options) -> Command:
        """What to run."""
        cwd = Path(options.cwd).absolute()
        if not cwd.is_dir():
            raise AgentNotStarted(f"there is no folder {cwd}")
        env = self._environment(options)
        argv = [self.find(options, env.get("PATH")), *self.argv(options), *options.arguments]
        return Command(argv=argv, cwd=str(cwd), env=env, private=self.private(options))

    def find(self, options: Options, path: str | None = None) -> str:
        """The full path of its program."""
        if options.program is not None:
            if not os.path.isabs(options.program):
                raise UsageError(f"{options.program!r} is no full path; a program is named by one, without arguments")
            if not os.access(options.program, os.X_OK) or os.path.isdir(options.program):
                raise AgentNotStarted(f"{options.program} is no program that can be run")
            return options.program
        if not self.programs:
            raise AgentNotStarted(f"{self.title} has no program of its own. {self.install}".rstrip())
        for name in self.programs:
            found = shutil.which(name, path=path)
            if found is not None:
                return os.path.abspath(found)
        raise AgentNotStarted(
            f"{self.title} is not installed: there is no `{' or '.join(self.programs)}` on the PATH. {self.install}".rstrip()
        )


def value(option: str, text: str) -> str:
    """``--option=text``: one argument, whatever the text begins with."""
    if "\0" in text:
        raise UsageError(f"{option} cannot have a NUL in it")
    return f"{option}={text}"


prepare(globals())
