"""Tool calls, their output and their terminals, as events.

A call is said once, when its input is complete, and its result once. ACP has no word for "complete": an input is complete when the call
goes on to something else, or when the agent does.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from hansard.adapter import Adapter, Context, Piece
from hansard.adapters.acp import blocks, wire
from hansard.adapters.acp.calls import ENDED, NO_META, Call, Terminal
from hansard.adapters.acp.words import is_list, present, told
from hansard.content import TextBlock
from hansard.events import (
    Event,
    ToolCall,
    ToolOutputChunk,
    ToolOutputChunkPayload,
    ToolProgress,
    ToolProgressPayload,
    ToolResult,
    session_lifecycle,
    status_change,
    tool_output_chunk,
    tool_progress,
)
from hansard.loose import as_list, as_object, convert

KEPT = 256
"""How many calls of earlier turns are remembered, for updates that come late."""


class Tools(Adapter):
    """The part of the adapter that follows tool calls."""

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.calls: dict[str, Call] = {}
        self.terminals: dict[str, Terminal] = {}
        self.unsaid: dict[str, Call] = {}
        self.due: dict[str, Call] = {}
        self.past: list[str] = []

    def meta_of(self, value: Any) -> wire.Meta:
        """What we read of a ``_meta``. It is everybody's own: what is of another type than we know is simply something else."""
        if value is None:
            return NO_META
        try:
            return msgspec.convert(value, wire.Meta)
        except (ValueError, RecursionError):
            pass
        try:
            return convert(value, wire.Meta)[0]
        except (ValueError, RecursionError):
            return NO_META

    # ---- updates of a call

    def tool(self, update: Any, meta: wire.Meta, first: bool) -> Iterable[Event]:
        """A ``tool_call`` (``first``) or a ``tool_call_update``."""
        call = self.calls.get(update.tool_call_id)
        if call is None and not isinstance(update, wire.ToolCall) and update.tool_call_id in self.past:
            call = Call.past(update.tool_call_id, self.parent)
        elif call is None or (first and call.done):
            call = self.new_call(update.tool_call_id)
        changed = call.merge(update, meta)
        if call.terminals:
            self.link(call)
        status = None if update.status is UNSET else update.status
        said = [self.say_call(call)] if not call.told and self.is_complete(call, status, first, changed) else []
        if call.done:
            step = self.progress(call, update, changed)
        elif status in ENDED or call.due:
            return self.ended(call, update, said)
        elif not said:
            step = self.moved(call, update, meta, changed, first)
        elif as_list(update.content) or as_list(update.locations) or status not in (None, "pending"):
            step = self.progress(call, update, False)
        else:
            return said
        return [*said, *step] if said else step

    def new_call(self, call_id: str) -> Call:
        call = self.calls[call_id] = self.unsaid[call_id] = Call(call_id, self.parent)
        return call

    def is_complete(self, call: Call, status: str | None, first: bool, changed: bool) -> bool:
        """Whether the input is complete: the call is under way, or this update no longer speaks of the input."""
        if status not in (None, "pending"):
            return True
        return call.has_input and (first or not changed)

    def ended(self, call: Call, update: Any, said: list[Event]) -> Iterator[Event]:
        """The result; if there is nothing in it yet, it waits one frame for what may follow (codex-acp's history, Claude's /compact)."""
        yield from said
        if call.has_output or is_list(update.content) or call.terminals or call.due:
            yield from self.is_over(call)
        else:
            call.due = True
            self.due[call.id] = call
            yield from self.progress(call, update, False)

    def moved(self, call: Call, update: Any, meta: wire.Meta, changed: bool, first: bool) -> Piece:
        """Something between the call and its result: output so far, or a step."""
        if meta.terminal_output is not None:
            if meta.terminal_output.terminal_id is not None:
                self.terminal(meta.terminal_output.terminal_id).text += meta.terminal_output.data
            return self.printed(call, call.printed + meta.terminal_output.data)
        if call.told and not first and not changed and meta.claude_code is None and is_list(update.content):
            so_far = self.plain_text(update.content)
            if so_far is not None and not call.is_agent:
                return self.printed(call, so_far)
        return self.progress(call, update, changed)

    def plain_text(self, content: Any) -> str | None:
        """The content of a running call if it is nothing but text: the whole of what it printed so far."""
        shown = blocks.tool_blocks(content)
        texts = [block.text for block in shown if isinstance(block, TextBlock)]
        return "".join(texts) if shown and len(texts) == len(shown) else None

    def printed(self, call: Call, text: str) -> Piece:
        """What is new in the output of a call."""
        known = len(call.printed) if text.startswith(call.printed) else 0
        call.printed = text
        return Piece(ToolOutputChunk, ToolOutputChunkPayload(call.id, text[known:], known))

    def progress(self, call: Call, update: Any, changed: bool) -> Piece:
        """A step of a call, with what the update says of it."""
        detail: dict[str, Any] = {}
        if update.locations:
            detail["locations"] = update.locations
        if (changed or not call.told) and update.raw_input not in (None, UNSET):
            detail["rawInput"] = update.raw_input
        if call.done and update.raw_output not in (None, UNSET):
            detail["rawOutput"] = update.raw_output
        if update.meta is not None and (own := _own(update.meta)):
            detail["meta"] = own
        payload = ToolProgressPayload(
            tool_call_id=call.id,
            tool_name=call.tool_name,
            status=call.status or "pending",
            title=None if update.title is UNSET else update.title,
            content=blocks.tool_blocks(update.content) or None,
            detail=detail or None,
        )
        return Piece(ToolProgress, payload)

    # ---- saying it

    def say_call(self, call: Call) -> Event:
        call.told = True
        self.unsaid.pop(call.id, None)
        return ToolCall(payload=call.call_payload(), parent_tool_call_id=call.parent)

    def say_result(self, call: Call) -> Event:
        call.done, call.due = True, False
        self.due.pop(call.id, None)
        event = ToolResult(payload=call.result_payload(self.terminals), parent_tool_call_id=call.parent)
        call.args = call.asked = call.content = call.output = call.response = UNSET
        call.printed = ""
        return event

    def is_over(self, call: Call) -> Iterator[Event]:
        """The result of a call, after the last words of the agent it started."""
        yield from self.hush_under(call.id)
        yield self.say_result(call)
        if call.name == "compact" and call.status == "completed":  # claude-agent-acp's word for it, unless the client knows better
            yield session_lifecycle(subtype="compacted")

    def hush_under(self, parent: str | None) -> list[Event]:
        """What the agent whom that call started is saying is over."""
        raise NotImplementedError

    def settle(self) -> list[Event]:
        """The agent goes on: calls with an input are complete."""
        if not self.unsaid:
            return []
        return [self.say_call(call) for call in list(self.unsaid.values()) if call.has_input and call.parent == self.parent]

    def settle_results(self, but: str | None = None) -> Iterator[Event]:
        """Results that waited for more, and no more came."""
        for call in list(self.due.values()):
            if call.id != but:
                yield from self.is_over(call)

    def settle_all(self) -> Iterator[Event]:
        """The end of a turn: every call of the agent itself is said; whatever reported back without a word of its end has its result."""
        yield from self.settle_results()
        mine = self.context.parent_tool_call_id
        for call in list(self.calls.values()):
            if not call.told and call.parent == mine:
                yield told(self.say_call(call))
            if not call.done and call.response is not UNSET and call.parent == mine:
                call.status = "completed"
                yield told(self.say_result(call))
        going_on = {call.id: call for call in self.calls.values() if not call.done and call.parent != mine}
        self.past = [*self.past, *(name for name in self.calls if name not in going_on)][-KEPT:]
        self.calls = going_on
        self.terminals = {name: terminal for name, terminal in self.terminals.items() if terminal.call in self.calls}

    # ---- terminals

    def link(self, call: Call) -> None:
        for name in call.terminals:
            self.terminal(name).call = call.id

    def terminal(self, name: str) -> Terminal:
        return self.terminals.setdefault(name, Terminal())

    def terminal_update(self, update: wire.TerminalUpdate) -> Iterator[Event]:
        """Version 2: a terminal's state; output is all of it."""
        terminal = self.terminal(update.terminal_id)
        if update.exit_status is not None:
            terminal.exit_code = update.exit_status.exit_code
        if update.output is not None:
            yield self.terminal_text(update.terminal_id, _bytes(update.output.data).decode("utf-8", "replace"))
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
                yield status_change(status=f"terminal_{status}", detail=detail)
            else:
                yield tool_progress(tool_call_id=terminal.call, status=status, detail=detail)

    def terminal_chunk(self, update: wire.TerminalOutputChunk) -> Event:
        terminal = self.terminal(update.terminal_id)
        return self.terminal_text(update.terminal_id, terminal.text + terminal.bytes(_bytes(update.data)))

    def terminal_text(self, name: str, text: str) -> Event:
        """What is new in a terminal's output; a terminal that no call shows stands for itself."""
        terminal = self.terminal(name)
        chunk, offset = terminal.snapshot(text)
        return tool_output_chunk(tool_call_id=terminal.call or name, chunk=chunk, offset=offset)

    def content_chunk(self, update: wire.ToolCallContentChunk) -> Event:
        """Version 2: one more item of a call's content."""
        call = self.calls.get(update.tool_call_id) or self.new_call(update.tool_call_id)
        call.content = [*as_list(call.content), update.content]
        if as_object(update.content).get("type") == "terminal":
            call.terminals.append(str(as_object(update.content).get("terminalId")))
            self.link(call)
        return tool_progress(
            tool_call_id=call.id, tool_name=call.tool_name, status=call.status or "pending", content=blocks.tool_blocks([update.content])
        )


_READ = frozenset(("claudeCode", "terminal_output", "terminal_exit", "terminal_info", "toolName", "parentToolCallId", "timestamp"))
_READ_CLAUDE = frozenset(("toolName", "parentToolUseId", "toolResponse", "nonExecutionKind"))


def _own(meta: Any) -> dict[str, Any]:
    """What an agent put into ``_meta`` beyond what we read there."""
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
