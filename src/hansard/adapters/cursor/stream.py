"""Cursor's agent, live: ``cursor-agent -p --output-format stream-json``, with and without partial output. Wire notes: README.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from hansard import events as ev
from hansard.adapters.authors import author_of
from hansard.adapters.base import Adapter, Context
from hansard.adapters.blocks import raw_block
from hansard.adapters.cursor import tools, wire
from hansard.adapters.usage import make_usage

_CODES: list[tuple[re.Pattern[str], ev.ErrorCode]] = [
    (re.compile(r"not logged in|authentication|unauthori[sz]ed|api key", re.I), "provider_auth"),
    (re.compile(r"rate.?limit|usage limit|quota|too many requests|resource_exhausted", re.I), "rate_limit"),
    (re.compile(r"context (length|window)|prompt is too long", re.I), "context_overflow"),
    (re.compile(r"\babort(ed)?\b|cancell?ed", re.I), "aborted"),
]
_NO_RESULT = "the stream ended without a result"


class CursorStream(Adapter):
    """A running cursor-agent."""

    formats = ("cursor-stream-json",)
    source = "cursor"
    wire = wire.Line
    takes_text = True

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.model: str | None = None
        self.answers = 0
        self.blocks = 0
        self.speaking = False
        self.thinking = False
        self.asked = False
        self.called: set[str] = set()
        self.returned: set[str] = set()
        self.segments: set[tuple[str, str]] = set()

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """An init as this program writes it: ``permissionMode``, but no tools and no version."""
        init = message.get("type") == "system" and message.get("subtype") == "init"
        return init and "apiKeySource" in message and "tools" not in message

    def time_of(self, message: Any) -> int | None:
        """Pieces, thoughts and calls have a time."""
        return None if message.timestamp_ms is None else round(message.timestamp_ms)

    def translate(self, message: Any) -> Iterator[ev.Event]:
        match message:
            case wire.System(subtype="init"):
                self.model = message.model
                yield ev.session_init(
                    agent_id="cursor",
                    provider_session_id=message.session_id,
                    model=message.model,
                    cwd=message.cwd,
                    permission_mode=message.permission_mode,
                    api_key_source=message.api_key_source,
                )
            case wire.System():
                yield ev.raw(kind=f"system/{message.subtype}", reason="unknown_type")
            case wire.User():
                yield from self.user(message)
            case wire.Thinking():
                yield from self.thought(message)
            case wire.Assistant():
                yield from self.assistant(message)
            case wire.ToolCall():
                yield from self.call(message)
            case _:  # wire.Result
                yield from self.result(message)

    def end_of_stream(self) -> Iterator[ev.Event]:
        """The documentation says how a failure looks: the stream ends early, without a result; the message is on stderr."""
        if self.turn is not None:
            yield from self.end_turn("error", error=ev.ErrorInfo(code="unknown", message=_NO_RESULT, error_source="agent"))

    # ---- messages

    def user(self, line: wire.User) -> Iterator[ev.Event]:
        yield from self.silence()
        blocks = [self.block(item) for item in items(line.message.content)]
        text = "\n".join(block.text for block in blocks if isinstance(block, ev.TextBlock))
        if self.repeats_prompt(text):
            yield ev.status_change(status="prompt_echo")
            return
        queued = self.turn is not None
        yield from self.need_turn("user")
        plain = len(blocks) == 1 and isinstance(blocks[0], ev.TextBlock)
        yield ev.user_message(text=text, content=None if plain else blocks, author=author_of(text), queued=queued)

    def block(self, item: Any) -> ev.AnyBlock:
        text = wire.Text(item) if isinstance(item, str) else self.read(item, wire.Text)
        return raw_block(item) if text is None else ev.TextBlock(text=text.text)

    @property
    def place(self) -> tuple[str, int]:
        """The wire names an answer only when it is over, so the turn and a count do it."""
        return f"{self.turn}:{self.answers}", self.blocks

    def begin(self) -> Iterator[ev.Event]:
        yield from self.need_turn()
        if self.asked:  # what follows a result is another answer
            self.asked = False
            self.answers += 1
            self.blocks = 0

    def placed(self, event: ev.Event) -> ev.Event:
        event.response_id, event.block_index = self.place
        return event

    def thought(self, line: wire.Thinking) -> Iterator[ev.Event]:
        yield from self.begin()
        if line.subtype == "delta" and line.text is not None:
            yield from self.silence(thoughts=False)
            self.thinking = True
            yield self.placed(ev.thinking_chunk(text=line.text))
        elif line.subtype == "completed" and self.thinking:
            yield from self.silence()
        elif line.subtype == "completed":
            yield ev.status_change(status="thinking_completed")
        else:
            yield ev.raw(kind=f"thinking/{line.subtype}", reason="unknown_type")

    def assistant(self, line: wire.Assistant) -> Iterator[ev.Event]:
        yield from self.begin()
        if self.thinking:
            yield from self.silence()
        partial = line.timestamp_ms is not None and line.model_call_id is None
        for item in items(line.message.content):
            block = self.block(item)
            if not isinstance(block, ev.TextBlock):
                yield from self.silence()
                yield self.placed(self.unknown_block(item))
                self.blocks += 1
            elif partial:
                self.speaking = True
                yield self.placed(ev.assistant_chunk(text=block.text))
            else:
                yield from self.segment(block.text, line.model_call_id)
        if not items(line.message.content):
            yield ev.status_change(status="assistant", detail={"modelCallId": line.model_call_id})

    def segment(self, text: str, model_call_id: str | None) -> Iterator[ev.Event]:
        """A whole segment: after pieces it is their sum, said again."""
        if model_call_id is not None and (model_call_id, text) in self.segments:  # an echo, by identity
            yield ev.status_change(status="segment_repeated", detail={"modelCallId": model_call_id})
            return
        if self.speaking and self.open.text(*self.place) != text:
            yield from self.silence()
        self.speaking = False
        yield self.placed(ev.assistant_done(text=text))
        self.blocks += 1
        if model_call_id is not None:
            self.segments.add((model_call_id, text))

    def silence(self, thoughts: bool = True) -> Iterator[ev.Event]:
        """Close what came in pieces: something else begins."""
        if self.thinking and not thoughts:
            return
        if self.thinking or self.speaking:
            text = self.open.text(*self.place)
            done = self.placed(ev.thinking_done(text=text) if self.thinking else ev.assistant_done(text=text))
            done.synthetic = True
            self.thinking = self.speaking = False
            yield done
            self.blocks += 1

    # ---- tools

    def call(self, line: wire.ToolCall) -> Iterator[ev.Event]:
        yield from self.begin_call()
        tool = tools.tool_of(line.tool_call)
        if tool is None:
            yield ev.raw(kind=f"tool_call/{line.subtype}", reason="wrong_shape")
            return
        if line.call_id not in self.called:
            self.called.add(line.call_id)
            made = ev.tool_call(
                tool_call_id=line.call_id, tool_name=tool.name, args=tool.args, kind=tool.kind, title=tool.title, server=tool.server
            )
            yield self.placed(made)
            self.blocks += 1
        elif line.subtype != "completed":
            yield ev.tool_progress(tool_call_id=line.call_id, tool_name=tool.name, status=line.subtype)
        if tool.beside:
            yield ev.tool_progress(tool_call_id=line.call_id, tool_name=tool.name, status=line.subtype, detail=tool.beside)
        if line.subtype == "completed" and line.call_id not in self.returned:
            self.returned.add(line.call_id)
            yield from self.call_over(line, tool)
        elif line.subtype == "completed":
            yield ev.status_change(status="tool_call_repeated", detail={"toolCallId": line.call_id})

    def begin_call(self) -> Iterator[ev.Event]:
        yield from self.need_turn()
        yield from self.silence()

    def call_over(self, line: wire.ToolCall, tool: tools.Tool) -> Iterator[ev.Event]:
        self.asked = True
        if tools.outcome(tool.result)[0] == "rejected":  # nobody was asked: a tool that needs approval is refused by itself
            yield ev.permission_response(request_id=line.call_id, decision="deny", message=tools.message_of(tool.result))
        yield ev.tool_result(
            tool_call_id=line.call_id,
            result=tool.result,
            content=tools.result_blocks(tool),
            is_error=tools.is_error(tool.result),
            error=tools.message_of(tool.result),
            exit_code=tools.whole_number(tools.outcome(tool.result)[1].get("exitCode")),
            duration_ms=tools.duration(line.tool_call, tool.result),
        )
        entries = tools.plan(tool)
        if entries:
            yield ev.plan_update(entries=entries)

    # ---- the end

    def result(self, line: wire.Result) -> Iterator[ev.Event]:
        yield from self.need_turn("user")
        yield from self.silence()
        text = line.result if isinstance(line.result, str) else None
        failed = line.is_error or line.subtype != "success"
        error = error_of(str(line.subtype) if text is None else text, line.subtype) if failed else None
        status = "completed" if error is None else "interrupted" if error.code == "aborted" else "error"
        used = None if line.usage is None else usage_of(line.usage)
        yield ev.result(
            status=status,
            subtype=line.subtype,
            text=text,
            usage=used,
            duration_ms=tools.whole_number(line.duration_ms),
            duration_api_ms=tools.whole_number(line.duration_api_ms),
            error=error,
        )
        if error is not None:
            yield ev.Error(payload=error)
        if used is not None:
            yield ev.usage(scope="turn", usage=used, model=self.model)
        yield from self.end_turn(status, stop_reason=line.subtype, error=error)
        self.answers = self.blocks = 0
        self.asked = False


def items(content: Any) -> list[Any]:
    """The blocks of a message; a string is one."""
    if content is None:
        return []
    return cast("list[Any]", content) if isinstance(content, list) else [content]


def error_of(message: str, word: str | None) -> ev.ErrorInfo:
    """The error that a result speaks of; nothing but its words tells which."""
    found: list[ev.ErrorCode] = [code for pattern, code in _CODES if pattern.search(message)]
    code: ev.ErrorCode = found[0] if found else "unknown"
    return ev.ErrorInfo(code=code, message=message, provider_code=word, error_source="agent")


def usage_of(tokens: wire.Tokens) -> ev.Usage:
    """Tokens of a turn."""
    return make_usage(
        tokens.input_tokens, tokens.output_tokens, cache_creation=tokens.cache_write_tokens, cache_read=tokens.cache_read_tokens
    )
