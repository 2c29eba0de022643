"""A session as a conversation: events in, lines for a terminal out. Pure; every type is either shown or skipped on purpose."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from difflib import unified_diff
from typing import Any, Literal, NamedTuple, cast

from hansard import events as ev
from hansard.events.lenient import as_list, as_object
from hansard.events.tool_inputs import EditFile, tool_input

Tone = Literal["", "user", "agent", "dim", "tool", "good", "bad", "rule"]
"""What a line is, so that whoever prints it can choose a colour."""

RULE = 72
ARGUMENTS = 400
"""How much of a call's arguments is shown when results are folded."""

ASKED = 1_000
"""So much of the beginning, and of the end, is shown of what a person is asked to allow."""
COMPARED = 5_000
"""Texts of more lines are not compared."""

_MARKS = {"completed": "✓", "done": "✓", "in_progress": "▸", "pending": "·"}
_QUIET = {"checkpoint", "attached", "launched"}


class Line(NamedTuple):
    """A line of the transcript. The text may hold anything an agent said: make it visible before a terminal sees it."""

    text: str
    tone: Tone = ""
    depth: int = 0


class Transcript:
    """Turns events into lines, one by one. ``fold``: so many lines of a tool's result are shown, 0 for all."""

    def __init__(self, fold: int = 10, zone: tzinfo = UTC) -> None:
        self._fold = fold
        self._zone = zone
        self._turns = 0
        self._agent = "agent"
        self._result: ev.ResultPayload | None = None
        self._depths: dict[str, int] = {}
        self._called: str | None = None

    def lines(self, event: ev.Event) -> Iterator[Line]:
        """The lines of one event: none for what is only bookkeeping."""
        show = SHOWN.get(type(event))
        if show is None:
            return
        depth = self._depth(event)
        for line in show(self, event):
            for text in line.text.split("\n"):
                yield Line(text, line.tone, depth)

    def _depth(self, event: ev.Event) -> int:
        """A sub-agent's words stand under the call that started it, however deep that is."""
        parent = event.parent_tool_call_id
        depth = 0 if parent is None else self._depths.get(parent, 0) + 1
        if isinstance(event, ev.ToolCall):
            self._depths[event.payload.tool_call_id] = depth
        return depth

    # ---- turns and messages

    def turn_start(self, event: ev.TurnStart) -> Iterator[Line]:
        """A rule with the number of the turn."""
        if event.parent_tool_call_id is not None:
            return
        self._turns += 1
        by = "" if event.payload.trigger == "user" else f" · {event.payload.trigger}"
        yield Line("")
        yield Line(_rule(f"turn {self._turns}{by}{self._time(event)}"), "rule")

    def turn_end(self, event: ev.TurnEnd) -> Iterator[Line]:
        """How it ended, and what it took."""
        if event.parent_tool_call_id is not None:
            return
        end = event.payload
        words = [end.status]
        if end.stop_reason and end.stop_reason != end.status:
            words.append(end.stop_reason)
        if end.error is not None:
            words.append(f"{end.error.code}: {end.error.message}")
        words += _costs(self._result)
        self._result = None
        yield Line(_rule(" · ".join(words)), "rule" if end.status == "completed" else "bad")

    def user(self, event: ev.UserMessage) -> Iterator[Line]:
        """What was said to the agent, and by whom."""
        said = event.payload
        who = "user" if said.author == "human" else said.author
        yield Line(f"{who}{' (queued)' if said.queued else ''}:", "user" if said.author == "human" else "dim")
        text = said.text if said.author == "human" else _folded(said.text, self._fold)
        if text:
            yield Line(indented(text), "" if said.author == "human" else "dim")
        for block in said.content or []:
            if not isinstance(block, ev.TextBlock | ev.SlashCommandBlock):
                yield Line(indented(block_text(block)), "dim")

    def assistant(self, event: ev.AssistantDone) -> Iterator[Line]:
        """An answer."""
        said = event.payload
        notes = [word for word in (said.phase, "cut off" if said.interrupted else None) if word]
        yield Line(self._agent + (f" ({', '.join(notes)})" if notes else "") + ":", "agent")
        yield Line(indented(said.text))

    def thinking(self, event: ev.ThinkingDone) -> Iterator[Line]:
        """Reasoning, dimmed."""
        said = event.payload
        if said.text:
            yield Line(indented(said.text), "dim")
        elif said.redacted is not None:
            yield Line(indented("(thinking, sealed by the provider)"), "dim")

    def block(self, event: ev.ContentBlock) -> Iterator[Line]:
        """Anything else an agent said."""
        block = event.payload.block
        yield Line(f"{self._agent}:", "agent")
        yield Line(indented(block_text(block)), "bad" if isinstance(block, ev.RefusalBlock) else "")

    def user_audio(self, event: ev.UserAudio) -> Iterator[Line]:
        """Spoken input."""
        yield Line("user (spoken):", "user")
        yield Line(indented(event.payload.transcription))

    def audio(self, event: ev.AudioDone) -> Iterator[Line]:
        """Spoken output."""
        yield Line(f"{self._agent} (spoken):", "agent")
        yield Line(indented(event.payload.transcript or "(sound)"))

    # ---- tools

    def tool_call(self, event: ev.ToolCall) -> Iterator[Line]:
        """A call with its arguments."""
        call = event.payload
        self._called = call.tool_call_id
        if (edit := _edit(call.tool_name, call.args)) is not None:
            yield Line(f"▸ {call.title or call.tool_name}  {edit.path}{' (everywhere)' if edit.everywhere else ''}", "tool")
            yield from _changes(_folded(_compared(edit.old, edit.new), self._fold))
            return
        arguments = _arguments(call.args)
        if self._fold and len(arguments) > ARGUMENTS:
            arguments = f"{arguments[:ARGUMENTS]}… ({len(arguments):,} characters)"
        yield Line(f"▸ {call.title or call.tool_name}" + (f"  {arguments}" if "\n" not in arguments else ""), "tool")
        if "\n" in arguments:
            yield Line(indented(_folded(arguments, self._fold)), "tool")

    def tool_result(self, event: ev.ToolResult) -> Iterator[Line]:
        """What it gave back, folded."""
        got = event.payload
        bad = bool(got.is_error) or bool(got.exit_code)
        notes = [word for word in (f"exit {got.exit_code}" if got.exit_code else None, got.error) if word]
        text = "\n".join(block_text(block) for block in got.content) if got.content else _plain(got.result)
        shown = _folded(text, self._fold)
        if got.tool_call_id != self._called and not bad:  # other things were said since it was called
            yield Line(f"  ◂ {got.tool_name or 'tool'}", "tool")
        self._called = None
        if notes or bad:
            yield Line(f"  ✗ {got.tool_name or 'tool'}{': ' + ', '.join(notes) if notes else ' failed'}", "bad")
        if shown:
            yield Line("\n".join(f"  │ {line}" for line in shown.split("\n")), "bad" if bad else "dim")

    def tool_summary(self, event: ev.ToolUseSummary) -> Iterator[Line]:
        """Several calls in a sentence."""
        yield Line(f"  {event.payload.summary}", "dim")

    # ---- questions

    def permission_request(self, event: ev.PermissionRequest) -> Iterator[Line]:
        """May I?"""
        asked = event.payload
        if (edit := _edit(asked.tool_name, asked.input)) is not None:
            yield Line(f"? may it use {asked.tool_name}  {_ends(edit.path)}{' (everywhere)' if edit.everywhere else ''}", "tool")
            yield from _changes(_ends(_compared(edit.old, edit.new)))
            return
        yield Line(f"? may it use {asked.tool_name or 'this'}  {_ends(_arguments(asked.input))}", "tool")

    def permission_response(self, event: ev.PermissionResponse) -> Iterator[Line]:
        """The answer."""
        said = event.payload
        words = [said.decision, said.by and f"by {said.by}", said.message]
        yield Line("  " + ", ".join(word for word in words if word), "good" if event.allowed else "bad")

    def permission_cancelled(self, event: ev.PermissionCancelled) -> Iterator[Line]:
        """Nobody needs to answer."""
        yield Line(f"  question withdrawn: {event.payload.reason}", "dim")

    def question(self, event: ev.Question) -> Iterator[Line]:
        """A question to the user."""
        asked = event.payload
        questions = as_list(asked.questions)
        if asked.message or not questions:
            yield Line(f"? {asked.message or _plain(asked.schema)}", "tool")
        for one in map(as_object, questions):
            yield Line(f"? {_plain(one.get('question'))}", "tool")
            for option in map(as_object, as_list(one.get("options"))):
                yield Line(f"    {_plain(option.get('label'))}  {_plain(option.get('description'))}".rstrip(), "dim")

    def answer(self, event: ev.Answer) -> Iterator[Line]:
        """Its answer."""
        said = event.payload
        yield Line(f"  {said.action or 'answered'}{'' if said.values is None else ': ' + _plain(said.values)}", "good")

    # ---- the rest

    def error(self, event: ev.Error) -> Iterator[Line]:
        """Something failed."""
        failed = event.payload
        extra = [str(word) for word in (failed.provider_code, failed.status, "retried" if failed.retryable else None) if word]
        yield Line(f"✗ {failed.code}: {failed.message}" + (f" ({', '.join(extra)})" if extra else ""), "bad")

    def interrupt(self, event: ev.Interrupt) -> Iterator[Line]:
        """Somebody stopped it."""
        yield Line(f"■ interrupted: {event.payload.reason}{' by ' + event.payload.by if event.payload.by else ''}", "bad")

    def init(self, event: ev.SessionInit) -> Iterator[Line]:
        """Who is there."""
        here = event.payload
        self._agent = here.agent_id
        words = [here.agent_id, here.agent_version, here.model, here.cwd, here.permission_mode]
        yield Line(" · ".join(word for word in words if word), "dim")

    def result(self, event: ev.Result) -> Iterator[Line]:
        """Remembered for the end of the turn."""
        self._result = event.payload
        yield from ()

    def plan(self, event: ev.PlanUpdate) -> Iterator[Line]:
        """The plan as it is now."""
        yield Line("plan:", "dim")
        for entry in event.payload.entries:
            yield Line(f"  {_MARKS.get(entry.status, entry.status)} {entry.content}", "dim")

    def lifecycle(self, event: ev.SessionLifecycle) -> Iterator[Line]:
        """The life of the session."""
        life = event.payload
        if life.subtype in _QUIET:
            return
        words = [life.subtype, life.title, life.format, life.reason, life.text]
        yield Line("session " + " · ".join(word for word in words if word), "dim")

    def configuration(self, event: ev.ConfigurationChange) -> Iterator[Line]:
        """A setting."""
        change = event.payload
        words = [change.model, change.permission_mode, change.mode_id]
        if any(words):
            yield Line(f"{change.subtype}: {' · '.join(word for word in words if word)}", "dim")

    def agent_message(self, event: ev.AgentMessage) -> Iterator[Line]:
        """From this agent to another."""
        yield Line(f"→ {event.payload.target_agent_id}: {event.payload.message}", "agent")

    def agent_callback(self, event: ev.AgentCallback) -> Iterator[Line]:
        """The other agent's answer."""
        answered = event.payload
        why = "" if answered.error is None else f"no answer: {answered.error} "
        said = "" if answered.result is None else _plain(answered.result)
        yield Line(f"← {answered.from_agent_id or 'agent'}: {why}{said}".rstrip(), "agent")

    def agent_switch(self, event: ev.AgentSwitch) -> Iterator[Line]:
        """Another agent goes on."""
        self._agent = event.payload.to_agent_id
        yield Line(f"from here on: {event.payload.to_agent_id}", "dim")

    def team(self, event: ev.TeamMessage | ev.TeamTaskUpdate | ev.TeamStateChange) -> Iterator[Line]:
        """Something in a team."""
        said = event.payload
        words = [said.member_id, said.task_id, said.status, said.text]
        yield Line(f"{event.type}: {' · '.join(word for word in words if word)}", "dim")

    def queue(self, event: ev.QueueUpdate) -> Iterator[Line]:
        """A message that waits."""
        if event.payload.text:
            yield Line(f"{event.payload.action}: {event.payload.text}", "dim")

    def auth(self, event: ev.AuthStatus) -> Iterator[Line]:
        """Signing in."""
        state = event.payload
        yield Line(f"signing in{': ' + state.error if state.error else ''}", "bad" if state.error else "dim")

    def mcp(self, event: ev.McpStatus) -> Iterator[Line]:
        """A tool server."""
        yield Line(f"{event.payload.server}: {event.payload.state}", "dim")

    def limit(self, event: ev.RateLimit) -> Iterator[Line]:
        """The provider's limit, when it says something."""
        limit = event.payload
        used = None if limit.used is None else f"{limit.used:.0%} used"
        yield Line("rate limit: " + " · ".join(word for word in (limit.status, limit.window, used) if word), "dim")

    def process(self, event: ev.Process) -> Iterator[Line]:
        """The agent's process."""
        said = event.payload
        words = [
            said.event,
            None if said.exit_code is None else f"exit {said.exit_code}",
            None if said.signal is None else f"signal {said.signal}",
        ]
        yield Line("process " + " · ".join(word for word in words if word) + (f": {said.text}" if said.text else ""), "dim")

    def raw(self, event: ev.RawEvent) -> Iterator[Line]:
        """What nobody knows."""
        yield Line(f"(not understood: {event.payload.kind or 'a frame'}, {event.payload.reason})", "dim")

    def unknown(self, event: ev.Unknown) -> Iterator[Line]:
        """An event of a newer version."""
        yield Line(f"({event.type}, an event of a newer version)", "dim")

    def _time(self, event: ev.Event) -> str:
        if event.timestamp < ev.EARLIEST_CALENDAR_MS:  # counted from the start of a recording
            return ""
        return f" · {datetime.fromtimestamp(event.timestamp / 1000, self._zone):%Y-%m-%d %H:%M:%S}"


SHOWN: dict[type[ev.Event], Callable[[Transcript, Any], Iterable[Line]]] = {
    ev.TurnStart: Transcript.turn_start,
    ev.TurnEnd: Transcript.turn_end,
    ev.UserMessage: Transcript.user,
    ev.UserAudio: Transcript.user_audio,
    ev.AssistantDone: Transcript.assistant,
    ev.ThinkingDone: Transcript.thinking,
    ev.ContentBlock: Transcript.block,
    ev.ToolCall: Transcript.tool_call,
    ev.ToolResult: Transcript.tool_result,
    ev.ToolUseSummary: Transcript.tool_summary,
    ev.AgentMessage: Transcript.agent_message,
    ev.AgentCallback: Transcript.agent_callback,
    ev.AgentSwitch: Transcript.agent_switch,
    ev.Interrupt: Transcript.interrupt,
    ev.Error: Transcript.error,
    ev.AudioDone: Transcript.audio,
    ev.SessionInit: Transcript.init,
    ev.Result: Transcript.result,
    ev.PermissionRequest: Transcript.permission_request,
    ev.PermissionResponse: Transcript.permission_response,
    ev.PermissionCancelled: Transcript.permission_cancelled,
    ev.Question: Transcript.question,
    ev.Answer: Transcript.answer,
    ev.ConfigurationChange: Transcript.configuration,
    ev.SessionLifecycle: Transcript.lifecycle,
    ev.PlanUpdate: Transcript.plan,
    ev.TeamMessage: Transcript.team,
    ev.TeamTaskUpdate: Transcript.team,
    ev.TeamStateChange: Transcript.team,
    ev.QueueUpdate: Transcript.queue,
    ev.AuthStatus: Transcript.auth,
    ev.McpStatus: Transcript.mcp,
    ev.RateLimit: Transcript.limit,
    ev.Process: Transcript.process,
    ev.RawEvent: Transcript.raw,
    ev.Unknown: Transcript.unknown,
}

SKIPPED = {
    "assistant_chunk",  # its done event has the text
    "thinking_chunk",
    "audio_chunk",
    "tool_input_chunk",
    "tool_output_chunk",
    "tool_progress",
    "status_change",
    "usage",
    "heartbeat",
    "control_request",
    "control_response",
}
"""Types that are bookkeeping, or pieces of what comes whole later."""


def block_text(block: ev.AnyBlock) -> str:
    """A block in words."""
    match block:
        case ev.TextBlock() | ev.ThinkingBlock():
            return block.text
        case ev.ToolUseBlock():
            return f"▸ {block.name} {_plain(block.input)}"
        case ev.ToolResultBlock():
            return _plain(block.content)
        case ev.ImageBlock():
            return _named("image", block.path or block.url, block.media_type, block.data)
        case ev.FileBlock():
            return _named("file", block.name or block.path or block.url, block.media_type, block.data)
        case ev.DocumentBlock():
            return _named("document", block.title or block.url, block.media_type, block.data) + (f"\n{block.text}" if block.text else "")
        case ev.CodeBlock():
            return block.code
        case ev.DiffBlock():
            return f"diff of {block.path}" + (f"\n{difference}" if (difference := _difference(block)) else "")
        case ev.TerminalBlock():
            return block.output or f"terminal {block.terminal_id}"
        case ev.ResourceBlock():
            return _named("resource", block.uri, block.media_type, block.data) + (f"\n{block.text}" if block.text else "")
        case ev.AudioBlock():
            return _named("audio", None, block.media_type, block.data)
        case ev.RefusalBlock():
            return f"(declined) {block.text or block.explanation or ''}".rstrip()
        case ev.SlashCommandBlock():
            return f"/{block.name} {block.args or ''}".rstrip()
        case ev.RawBlock():
            return f"(a block nobody knows: {block.raw_type or '?'})"


def indented(text: str) -> str:
    """Two columns to the right."""
    return "\n".join(f"  {line}" if line else line for line in text.split("\n"))


def _named(kind: str, name: str | None, media_type: str | None, data: str | None) -> str:
    size = f"{len(data) * 3 // 4:,} bytes" if data else None
    return f"[{' · '.join(word for word in (kind, name, media_type, size) if word)}]"


def _folded(text: str, limit: int) -> str:
    lines = text.rstrip("\n").split("\n")
    if not limit or len(lines) <= limit + 1:
        return "\n".join(lines)
    return "\n".join(lines[:limit]) + f"\n… {len(lines) - limit:,} more lines"


def _difference(block: ev.DiffBlock) -> str | None:
    """The lines that changed."""
    if block.diff is not None or block.new_text is None:
        return block.diff
    return _compared(block.old_text or "", block.new_text)


def _compared(before: str, after: str) -> str:
    old, new = before.split("\n"), after.split("\n")
    if len(old) + len(new) > COMPARED:
        return f"({len(old):,} lines became {len(new):,})"
    return "\n".join(list(unified_diff(old, new, lineterm="", n=2))[2:])


_TONES: dict[str, Tone] = {"+": "good", "-": "bad"}


def _changes(difference: str) -> Iterator[Line]:
    """What goes and what comes, line by line."""
    for line in difference.split("\n"):
        yield Line(f"  {line}", _TONES.get(line[:1], "dim"))


def _edit(tool: str | None, args: Any) -> EditFile | None:
    """The input of a call if it replaces a text in a file, and says nothing else: whoever is asked must see all of it."""
    found = tool_input(ev.ToolCallPayload("", tool or "", args, kind="edit"))
    return found if isinstance(found, EditFile) and len(as_object(args)) == 3 + (found.everywhere is not None) else None


def _ends(text: str) -> str:
    """A long text by its beginning and its end: what is hidden in the middle is said to be there."""
    if len(text) <= 2 * ASKED:
        return text
    return f"{text[:ASKED]}\n  … {len(text) - 2 * ASKED:,} of {len(text):,} characters are not shown …\n{text[-ASKED:]}"


def _arguments(value: Any) -> str:
    """Arguments: the one that says it all alone, several as name and value."""
    if not isinstance(value, dict):
        return _plain(value)
    fields = cast("dict[str, Any]", value)
    if len(fields) == 1:
        return _plain(next(iter(fields.values())))
    return "  ".join(f"{name}={_plain(item)}" for name, item in fields.items())


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _costs(result: ev.ResultPayload | None) -> list[str]:
    if result is None:
        return []
    words: list[str] = []
    if result.usage is not None and result.usage.input_tokens is not None:
        words.append(f"{result.usage.input_tokens:,} in, {result.usage.output_tokens or 0:,} out")
    if result.cost_usd is not None:
        words.append(f"${result.cost_usd:.4f}")
    if result.duration_ms is not None:
        words.append(f"{result.duration_ms / 1000:.1f} s")
    return words


def _rule(text: str) -> str:
    return f"── {text} ".ljust(RULE, "─")
