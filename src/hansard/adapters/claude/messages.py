"""Provider messages while they arrive (whole blocks, pieces of blocks, or both), and the events of their blocks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

import msgspec

from hansard import events as ev
from hansard.adapters.authors import Author
from hansard.adapters.background import is_launch
from hansard.adapters.blocks import raw_block
from hansard.adapters.claude import blocks, wire
from hansard.adapters.claude.fields import usage_of
from hansard.adapters.claude.plan import Plan
from hansard.adapters.claude.team import Team
from hansard.adapters.claude.wire import Tokens
from hansard.adapters.fields import mcp_server, tag_of, text_between
from hansard.events.lenient import as_object
from hansard.events.structs import prepare

SYNTHETIC = "<synthetic>"
"""The model's name on messages that Claude Code itself wrote."""
_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d+)")


class Streamed(msgspec.Struct, gc=False):
    """A block of a message that is being streamed."""

    kind: str = ""
    index: int = 0
    done: bool = False
    item: Any = None
    tool_id: str | None = None
    tool_name: str | None = None
    input: list[str] = []
    received: int = 0
    """So many characters of the input."""
    signature: str | None = None
    citations: list[Any] = []


class Message:
    """One provider message: its blocks come one frame each, or in pieces, or both."""

    def __init__(self) -> None:
        self.blocks: dict[int, Streamed] = {}
        self.model: str | None = None
        self.tokens: Tokens | None = None
        self.counted = False
        self._unfinished: dict[str, dict[int, Streamed]] = {}
        """The blocks that are not done, by kind, the oldest first: a message may have thousands of blocks."""
        self._next_index = 0

    def start(self, index: int, block: Any, item: Any) -> Streamed:
        started = self._add(index, Streamed(kind_of(block), item=item))
        if isinstance(block, blocks.CALLS):
            started.tool_id, started.tool_name = block.id, block.name
        return started

    def block(self, index: int) -> Streamed:
        found = self.blocks.get(index)
        return self._add(index, Streamed()) if found is None else found

    def take(self, block: Any) -> int:
        """The index of a whole block: that of the piece-wise block it completes, else the next one."""
        kind = kind_of(block)
        waiting = self._unfinished.get(kind) or self._unfinished.get("")
        taken = next(iter(waiting.values())) if waiting else self._add(self._next_index, Streamed(kind))
        self.finish(taken)
        return taken.index

    def finish(self, block: Streamed) -> None:
        """Nothing more completes this block."""
        block.done = True
        self._unfinished[block.kind].pop(block.index, None)

    def _add(self, index: int, block: Streamed) -> Streamed:
        before = self.blocks.get(index)
        if before is not None:
            self.finish(before)
        block.index = index
        self.blocks[index] = block
        self._unfinished.setdefault(block.kind, {})[index] = block
        self._next_index = max(self._next_index, index + 1)
        return block


def kind_of(block: Any) -> str:
    """The type word of a block that was read, or nothing for one that nobody knows."""
    return "" if block is None else tag_of(type(block))  # pyright: ignore[reportUnknownArgumentType]


class Messages:
    """The messages of a conversation, with the plan and the team that their tool calls speak of."""

    def __init__(self) -> None:
        self.known: dict[str | None, Message] = {}
        self.plan = Plan()
        self.team = Team()
        self.budget: int | None = None
        """The tokens that the model may think with, if something says how many."""

    def get(self, message_id: str | None) -> Message:
        """Return the message with this id, a new one if there is none."""
        found = self.known.get(message_id)
        if found is None:
            found = self.known[message_id] = Message()
        return found

    def block(
        self, block: Any, item: Any, parent: str | None, phase: str | None, cut_off: bool = False, duration_ms: int | None = None
    ) -> Iterable[ev.Event]:
        """Return the events of a block that came whole. ``parent`` is the call that started the agent."""
        match block:
            case blocks.Text():
                said = ev.AssistantDonePayload(text=block.text, interrupted=cut_off, phase=phase, citations=block.citations)
                return (ev.AssistantDone(payload=said),)
            case blocks.Thinking():
                thought = ev.ThinkingDonePayload(
                    text=block.thinking,
                    signature=block.signature,
                    budget_tokens=block.budget_tokens or self.budget,
                    interrupted=cut_off,
                    duration_ms=duration_ms,
                )
                return (ev.ThinkingDone(payload=thought),)
            case blocks.RedactedThinking():
                return (ev.ThinkingDone(payload=ev.ThinkingDonePayload(text="", redacted=block.data)),)
            case blocks.ToolUse() | blocks.ServerToolUse():
                return (
                    tool_call(block.id, block.name, block.input),
                    *self.plan.called(block.name, block.input),
                    *self.team.called(block.id, block.name, block.input, parent),
                )
            case blocks.McpToolUse():
                return (tool_call(block.id, block.name, block.input, block.server_name),)
            case None:
                return (ev.content_block(block=raw_block(item)),)
            case blocks.Image() | blocks.Document() | blocks.Resource():
                return (ev.ContentBlock(payload=ev.ContentBlockPayload(cast("Any", blocks.to_block(item)))),)
            case _:  # the result of a server tool: the API ran it inside the assistant's own message
                return (tool_result(block, None, None),)

    def usage(self, message_id: str | None, message: Message, final: bool) -> Sequence[ev.Event]:
        """The usage of one provider message, once. Until the stream says otherwise `output_tokens` is a placeholder: left out."""
        if message.tokens is None or message.counted:
            return ()
        message.counted = True
        return (ev.UsageEvent(payload=ev.UsagePayload("message", usage_of(message.tokens, final), message.model), response_id=message_id),)

    def forget_counted(self) -> None:
        """Forget the messages whose usage is known: nothing more comes of them after the turn."""
        self.known = {key: message for key, message in self.known.items() if not message.counted}


def tool_call(call_id: str, name: str, args: Any, server: str | None = None) -> ev.ToolCall:
    """Return the event of a call."""
    if isinstance(args, dict) and "__unparsedToolInput" in args:  # Claude Code's wrapping of arguments that were no JSON
        unparsed = as_object(as_object(args)["__unparsedToolInput"])
        args = unparsed.get("raw", args)
    return ev.ToolCall(
        payload=ev.ToolCallPayload(
            tool_call_id=call_id,
            tool_name=name,
            args=args,
            kind=blocks.tool_kind(name),
            server=server or mcp_server(name),
        )
    )


def tool_result(block: Any, structured: Any, not_run: str | None) -> ev.Event:
    """``result`` is what the tool gave as data where the wire has it; ``content`` is what the model was shown."""
    content = block.content
    told_as_blocks = isinstance(content, list) or structured is not None
    text = content if isinstance(content, str) else ""
    exit_code = _EXIT_CODE.match(text) if block.is_error else None
    return ev.ToolResult(
        payload=ev.ToolResultPayload(
            tool_call_id=block.tool_use_id,
            result=content if structured is None else structured,
            content=blocks.to_blocks(content) if told_as_blocks and content is not None else None,
            is_error=block.is_error,
            error=not_run,
            exit_code=int(exit_code.group(1)) if exit_code else None,
            background=is_launch(structured),
        )
    )


def task_ended(text: str) -> Iterator[ev.Event]:
    """Yields how a background task ended, if a message of the harness tells it."""
    if not text.startswith("<task-notification>"):
        return
    call, status, summary = (text_between(text, f"<{tag}>", f"</{tag}>") for tag in ("tool-use-id", "status", "summary"))
    if call is not None and status is not None:
        yield ev.tool_progress(tool_call_id=call, status=status, title=summary)


def split_results(items: list[Any], read: Callable[[Any, Any], Any]) -> tuple[list[Any], list[Any]]:
    """Split the content of a user message into tool results, read as structs, and everything else."""
    results: list[Any] = []
    spoken: list[Any] = []
    for item in items:
        block = None if isinstance(item, str) else read(item, blocks.AnyToolResult)
        if block is None:
            spoken.append(item)
        else:
            results.append(block)
    return results, spoken


def user_message(said: list[Any], text: str, author: Author, message_id: str | None, queued: bool) -> ev.Event:
    """Return the event of a user message; a slash command in it becomes a block."""
    command = blocks.slash_command(text)
    plain = len(said) == 1 and isinstance(said[0], ev.TextBlock) and command is None
    content = None if plain else [*said, *([command] if isinstance(command, ev.SlashCommandBlock) else [])]
    return ev.user_message(text=text, content=content, author=author, message_id=message_id, queued=queued)


def context_usage(found: wire.ContextUsage | None) -> Iterator[ev.Event]:
    """How full the context window is, where a command says so."""
    if found is not None:
        taken = ev.Usage(total_tokens=found.total_tokens)
        yield ev.usage(scope="context", usage=taken, model=found.model, context_window=found.raw_max_tokens)


prepare(globals())
