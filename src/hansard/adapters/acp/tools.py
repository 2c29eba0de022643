"""Tool calls, their output, and their terminals.

A call is announced once, when its input is complete, and has one result. ACP does not mark a complete input: it is complete when the call
moves on, or when the agent does.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import UNSET

from hansard import events as ev
from hansard.adapters.acp import wire
from hansard.adapters.acp.blocks import tool_blocks
from hansard.adapters.acp.fields import as_synthetic, is_list, present
from hansard.adapters.acp.speech import Speech
from hansard.adapters.acp.tool_calls import ENDED, Call, Terminal
from hansard.adapters.base import ChunkDraft
from hansard.adapters.blocks import only_text
from hansard.events.lenient import as_list, as_object

MAX_PAST_CALLS = 256
"""How many calls of earlier turns are remembered, for updates that come late."""


class Tools:
    """The tool calls of a stream. ``speech``: when a call ends, so does the message of the subagent that it started."""

    def __init__(self, mine: str | None, speech: Speech) -> None:
        self.mine = mine
        self.speech = speech
        self.calls: dict[str, Call] = {}
        self.unannounced: dict[str, Call] = {}
        self.due: dict[str, Call] = {}
        """Calls that have ended and whose result waits one frame for its content."""
        self._terminals: dict[str, Terminal] = {}
        self._past: list[str] = []

    def start(self, call_id: str, parent: str | None) -> Call:
        """Return a new call."""
        call = self.calls[call_id] = self.unannounced[call_id] = Call(call_id, parent)
        return call

    def update(self, parent: str | None, update: Any, meta: wire.Meta, first: bool) -> Iterable[ev.Event]:
        """Take a ``tool_call`` (``first``) or a ``tool_call_update``."""
        call = self.calls.get(update.tool_call_id)
        if call is None and not isinstance(update, wire.ToolCall) and update.tool_call_id in self._past:
            call = Call.past(update.tool_call_id, parent)
        elif call is None or (first and call.done):
            call = self.start(update.tool_call_id, parent)
        changed = call.merge(update, meta)
        if call.terminals:
            self.link(call)
        status = None if update.status is UNSET else update.status
        # The input is complete if the call is under way, or if this update no longer has a new one.
        complete = status not in (None, "pending") or (call.has_input and (first or not changed))
        before = [self.announce(call)] if complete and not call.announced else []
        if call.done:
            step = _progress(call, update, changed)
        elif status in ENDED or call.due:
            return self._ended(call, update, before)
        elif not before:
            step = self._moved(call, update, meta, changed, first)
        elif as_list(update.content) or as_list(update.locations) or status not in (None, "pending"):
            step = _progress(call, update, False)
        else:
            return before
        return [*before, *step] if before else step

    def _ended(self, call: Call, update: Any, before: list[ev.Event]) -> Iterator[ev.Event]:
        """An empty result waits one frame for its content (codex-acp's history, Claude's /compact)."""
        yield from before
        if call.has_output or is_list(update.content) or call.terminals or call.due:
            yield from self._finish(call)
        else:
            call.due = True
            self.due[call.id] = call
            yield from _progress(call, update, False)

    def _moved(self, call: Call, update: Any, meta: wire.Meta, changed: bool, first: bool) -> ChunkDraft:
        """An update between the call and its result: output so far, or a step."""
        if meta.terminal_output is not None:
            if meta.terminal_output.terminal_id is not None:
                self._terminal(meta.terminal_output.terminal_id).text += meta.terminal_output.data
            return _output(call, call.printed + meta.terminal_output.data)
        if call.announced and not first and not changed and meta.claude_code is None and is_list(update.content) and not call.is_agent:
            shown = tool_blocks(update.content)
            if shown and only_text(shown):  # all of the output so far
                return _output(call, "".join([block.text for block in shown if isinstance(block, ev.TextBlock)]))
        return _progress(call, update, changed)

    def content_chunk(self, parent: str | None, update: wire.ToolCallContentChunk) -> ev.Event:
        """Add an item to a call's content (version 2)."""
        call = self.calls.get(update.tool_call_id) or self.start(update.tool_call_id, parent)
        call.content = [*as_list(call.content), update.content]
        if as_object(update.content).get("type") == "terminal":
            call.terminals.append(str(as_object(update.content).get("terminalId")))
            self.link(call)
        return ev.tool_progress(
            tool_call_id=call.id, tool_name=call.tool_name, status=call.status or "pending", content=tool_blocks([update.content])
        )

    def running_agents(self) -> list[Call]:
        """Return the calls that have started a subagent and wait for it."""
        return [call for call in self.calls.values() if call.announced and not call.done and call.is_agent]

    # ---- calls and results as events

    def announce(self, call: Call) -> ev.Event:
        """Return the event for a call."""
        call.announced = True
        self.unannounced.pop(call.id, None)
        return ev.ToolCall(payload=call.call_payload(), parent_tool_call_id=call.parent)

    def announce_ready(self, parent: str | None) -> list[ev.Event]:
        """Announce the calls that have an input: the agent has moved on."""
        if not self.unannounced:
            return []
        return [self.announce(call) for call in list(self.unannounced.values()) if call.has_input and call.parent == parent]

    def flush_results(self, but: str | None = None) -> Iterator[ev.Event]:
        """Return the results that waited for their content."""
        for call in list(self.due.values()):
            if call.id != but:
                yield from self._finish(call)

    def end_turn(self) -> Iterator[ev.Event]:
        """Announce every call of the agent itself, and return the results of those that ended without a status."""
        yield from self.flush_results()
        for call in list(self.calls.values()):
            if not call.announced and call.parent == self.mine:
                yield as_synthetic(self.announce(call))
            if not call.done and call.response is not UNSET and call.parent == self.mine:
                call.status = "completed"
                yield as_synthetic(self._result(call))
        unfinished = {call.id: call for call in self.calls.values() if not call.done and call.parent != self.mine}
        self._past = [*self._past, *(name for name in self.calls if name not in unfinished)][-MAX_PAST_CALLS:]
        self.calls = unfinished
        self._terminals = {name: terminal for name, terminal in self._terminals.items() if terminal.call in self.calls}

    def _finish(self, call: Call) -> Iterator[ev.Event]:
        yield from self.speech.end(call.id)
        yield self._result(call)
        if call.name == "compact" and call.status == "completed":  # claude-agent-acp, if the client does not support compaction updates
            yield ev.session_lifecycle(subtype="compacted")

    def _result(self, call: Call) -> ev.Event:
        call.done, call.due = True, False
        self.due.pop(call.id, None)
        event = ev.ToolResult(payload=call.result_payload(self._terminals), parent_tool_call_id=call.parent)
        call.args = call.asked = call.content = call.output = call.response = UNSET
        call.printed = ""
        return event

    # ---- terminals

    def link(self, call: Call) -> None:
        """Note which call shows its terminals."""
        for name in call.terminals:
            self._terminal(name).call = call.id

    def _terminal(self, name: str) -> Terminal:
        return self._terminals.setdefault(name, Terminal())

    def terminal_update(self, update: wire.TerminalUpdate) -> Iterator[ev.Event]:
        """Take the state of a terminal (version 2). Output is all of it."""
        terminal = self._terminal(update.terminal_id)
        if update.exit_status is not None:
            terminal.exit_code = update.exit_status.exit_code
        if update.output is not None:
            yield self._terminal_output(update.terminal_id, _bytes(update.output.data).decode("utf-8", "replace"))
        detail = present(
            terminalId=update.terminal_id,
            command=update.command,
            cwd=update.cwd,
            size=update.size,
            exitCode=terminal.exit_code if update.exit_status is not None else None,
            signal=None if update.exit_status is None else update.exit_status.signal,
        )
        if update.output is None or update.exit_status is not None:
            status = "running" if update.exit_status is None else "exited"
            if terminal.call is None:
                yield ev.status_change(status=f"terminal_{status}", detail=detail)
            else:
                yield ev.tool_progress(tool_call_id=terminal.call, status=status, detail=detail)

    def terminal_chunk(self, update: wire.TerminalOutputChunk) -> ev.Event:
        """Add to the output of a terminal (version 2)."""
        terminal = self._terminal(update.terminal_id)
        return self._terminal_output(update.terminal_id, terminal.text + terminal.bytes(_bytes(update.data)))

    def terminal_answer(self, name: str, output: str | None, exit_status: wire.ExitStatus | None) -> Iterator[ev.Event]:
        """Take our answer about a command that we run for the agent: its output, how it ended, or both."""
        terminal = self._terminal(name)
        if exit_status is not None:
            terminal.exit_code = exit_status.exit_code
        if output is not None and output != terminal.text:
            yield self._terminal_output(name, output)

    def _terminal_output(self, name: str, text: str) -> ev.Event:
        """Return what is new in a terminal's output. A terminal that no call shows has its own id as call id."""
        terminal = self._terminal(name)
        chunk, offset = terminal.snapshot(text)
        return ev.tool_output_chunk(tool_call_id=terminal.call or name, chunk=chunk, offset=offset)


def _output(call: Call, text: str) -> ChunkDraft:
    """Return what is new in the output of a call."""
    known = len(call.printed) if text.startswith(call.printed) else 0
    call.printed = text
    return ChunkDraft(ev.ToolOutputChunk, ev.ToolOutputChunkPayload(call.id, text[known:], known))


def _progress(call: Call, update: Any, changed: bool) -> ChunkDraft:
    """Return a step of a call, with the fields of its update."""
    detail: dict[str, Any] = {}
    if update.locations:
        detail["locations"] = update.locations
    if (changed or not call.announced) and update.raw_input not in (None, UNSET):
        detail["rawInput"] = update.raw_input
    if call.done and update.raw_output not in (None, UNSET):
        detail["rawOutput"] = update.raw_output
    if update.meta is not None and (own := _unread_meta(update.meta)):
        detail["meta"] = own
    payload = ev.ToolProgressPayload(
        tool_call_id=call.id,
        tool_name=call.tool_name,
        status=call.status or "pending",
        title=None if update.title is UNSET else update.title,
        content=tool_blocks(update.content) or None,
        detail=detail or None,
    )
    return ChunkDraft(ev.ToolProgress, payload)


_READ = frozenset(("claudeCode", "terminal_output", "terminal_exit", "terminal_info", "toolName", "parentToolCallId", "timestamp"))
_READ_CLAUDE = frozenset(("toolName", "parentToolUseId", "toolResponse", "nonExecutionKind"))


def _unread_meta(meta: Any) -> dict[str, Any]:
    """Return the fields of ``_meta`` that the adapter does not read."""
    fields = as_object(meta)
    claude = as_object(fields.get("claudeCode"))
    rest = {key: fields[key] for key in fields if key not in _READ}
    if not claude.keys() <= _READ_CLAUDE:
        rest["claudeCode"] = {key: claude[key] for key in claude if key not in _READ_CLAUDE}
    return rest


def _bytes(data: str) -> bytes:
    try:
        return base64.b64decode(data)
    except (ValueError, binascii.Error):
        return data.encode("utf-8", "surrogatepass")
