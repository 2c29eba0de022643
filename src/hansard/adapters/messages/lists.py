"""Message lists: what is sent to OpenAI's or Anthropic's API as history. Wire notes: README.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Literal, cast

from hansard import events as ev
from hansard.adapters.base import Adapter, Context
from hansard.adapters.blocks import image_at, raw_block, split_data_url
from hansard.adapters.fields import parse_arguments, place_in_message, session_of_user
from hansard.adapters.framing import DocumentOrLines
from hansard.adapters.messages import lists_wire as wire
from hansard.adapters.messages.turns import Turns
from hansard.events.lenient import as_list, as_object

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
OPENAI_FIELDS = {"tool_calls", "tool_call_id", "function_call", "refusal", "audio", "reasoning_content"}
OPENAI_PARTS = {"image_url", "input_audio", "file", "refusal"}


class Lists(Adapter):
    """Reads the messages of both: a list of one API that was taken for the other's loses nothing.

    An array, or the body of a request, states the whole history so far. Of a second one only the new messages become events.
    """

    framer = DocumentOrLines
    wire = wire.Head
    reads_arrays = True
    tag = "role"

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.turns = Turns(self)
        self._count = 0
        self._stated: list[bytes] = []
        """The messages of the last statement, by digest."""
        self._system: bytes | None = None
        self._budget: int | None = None
        self._model: str | None = None
        self._functions: dict[str, str] = {}
        """The calls of functions, which have no ids, by name."""

    def translate(self, message: wire.Message | wire.Body) -> Iterator[ev.Event]:
        return self.body(message) if isinstance(message, wire.Body) else self.message(message)

    def translate_array(self, items: list[Any]) -> Iterator[ev.Event]:
        """A list of messages."""
        return self.statement(items)

    def end_of_stream(self) -> Iterator[ev.Event]:
        """The last turn ends with the document."""
        return self.turns.settle()

    def body(self, body: wire.Body) -> Iterator[ev.Event]:
        """Yield a request: its model and its system prompt when they change, then its messages."""
        if body.model is not None and body.model != self._model:
            first, self._model = self._model is None, body.model
            session = body.metadata and session_of_user(body.metadata.user_id)
            agent = self.source if session is None else "claude"
            yield (
                ev.session_init(agent_id=agent, model=body.model, provider_session_id=session)
                if first
                else ev.configuration_change(subtype="model", model=body.model)
            )
        self._budget = None if body.thinking is None else body.thinking.budget_tokens
        if body.system is not None and (system := _digest({"content": body.system})) != self._system:
            self._system = system
            yield from self.turns.prompt(self.blocks(body.system), "system")
        yield from self.statement(body.messages)

    def statement(self, values: list[Any]) -> Iterator[ev.Event]:
        """Yield the messages that are new. A history that continues from an earlier message was rewound."""
        digests = [_digest(value) for value in values]
        kept = next((place for place, (one, other) in enumerate(zip(digests, self._stated, strict=False)) if one != other), None)
        kept = min(len(digests), len(self._stated)) if kept is None else kept
        if kept < len(self._stated):
            yield from self.turns.settle()
            yield ev.session_lifecycle(subtype="rewound", detail={"kept": kept, "of": len(self._stated)})
        elif kept == len(values):
            yield ev.status_change(status="repeated" if values else "empty")
        self._stated = digests
        for value in values[kept:]:
            message = self.read(value, wire.Message)
            if message is None:
                yield ev.raw(kind=str(as_object(value).get("role")), reason="wrong_shape", detail="not a message")
            else:
                yield from self.message(message)

    def message(self, message: wire.Message) -> Iterator[ev.Event]:
        """One message."""
        self._count += 1
        match message.role:
            case "assistant":
                yield from self.assistant(message)
            case "tool" | "function" if (call := self.call_of(message)) is not None:
                yield from self.need_turn()
                yield self.result(call, message.content, None, message.name)
            case "system" | "developer":
                yield from self.turns.prompt(self.blocks(message.content), message.role)
            case "user":
                yield from self.user(message.content)
            case _:
                yield ev.raw(kind=message.role, reason="unknown_type")

    def call_of(self, message: wire.Message) -> str | None:
        """The call that a message is the result of. Functions have names alone."""
        if message.tool_call_id is not None or message.name is None:
            return message.tool_call_id
        return self._functions.pop(message.name, message.name)

    def user(self, content: Any) -> Iterator[ev.Event]:
        """Yield a message of the user; the results of Anthropic's tools are in it."""
        said: list[Any] = []
        for block in _listed(content):
            read = self.read(block, wire.ToolResult) if as_object(block).get("type") == "tool_result" else None
            if read is None:
                said.append(block)
            else:
                yield from self.need_turn()
                yield self.result(read.tool_use_id, read.content, read.is_error)
        if said or content in ("", []):
            yield from self.turns.prompt(self.blocks(said))

    def result(self, call: str, content: Any, is_error: bool | None, name: str | None = None) -> ev.Event:
        """What a tool gave back: text or blocks; the API's own tools give back data."""
        self.turns.answered = False
        blocks = self.blocks(content) if isinstance(content, list) else None
        return ev.tool_result(tool_call_id=call, result=content, content=blocks, is_error=is_error, tool_name=name)

    def assistant(self, message: wire.Message) -> Iterator[ev.Event]:
        """An answer, block by block."""
        yield from self.need_turn()
        name = message.id or f"message-{self._count}"
        waiting: set[str] = set()
        said = list(self.answer(message, name)) or [ev.status_change(status="empty")]
        for index, event in enumerate(said):
            if isinstance(event, ev.ToolCall):
                waiting.add(event.payload.tool_call_id)
            elif isinstance(event, ev.ToolResult):  # of a tool that the API runs
                waiting.discard(event.payload.tool_call_id)
            yield place_in_message(event, name, index)
        self.turns.answered = not waiting

    def answer(self, message: wire.Message, name: str) -> Iterator[ev.Event]:
        """What an answer consists of, in order."""
        if message.reasoning_content is not None:
            yield ev.thinking_done(text=message.reasoning_content)
        for value in _listed(message.content):
            yield self.answer_block(value)
        if message.refusal is not None:
            yield ev.content_block(block=ev.RefusalBlock(text=message.refusal))
        for call in message.tool_calls or []:
            if call.function is not None:
                yield ev.tool_call(tool_call_id=call.id, tool_name=call.function.name, args=parse_arguments(call.function.arguments))
            elif call.custom is not None:
                yield ev.tool_call(tool_call_id=call.id, tool_name=call.custom.name, args=call.custom.input)
            else:
                yield ev.raw(kind="tool_calls", reason="unknown_type")
        if (function := message.function_call) is not None:
            call = self._functions[function.name] = f"{name}:function_call"
            yield ev.tool_call(tool_call_id=call, tool_name=function.name, args=parse_arguments(function.arguments))

    def answer_block(self, value: Any) -> ev.Event:
        """A block of an answer."""
        block = self.read(value, wire.Blocks)
        match block:
            case wire.Text():
                return ev.assistant_done(text=block.text, citations=block.citations)
            case wire.Thinking():
                return ev.thinking_done(text=block.thinking, signature=block.signature, budget_tokens=self._budget)
            case wire.RedactedThinking(data=data):
                return ev.thinking_done(text="", redacted=data)
            case wire.ToolUse():
                return ev.tool_call(tool_call_id=block.id, tool_name=block.name, args=block.input)
            case wire.McpToolUse():
                return ev.tool_call(tool_call_id=block.id, tool_name=block.name, args=block.input, server=block.server_name)
            case None:
                return self.unknown_block(value)
            case wire.ToolResult() | wire.McpToolResult():
                return self.result(block.tool_use_id, block.content, block.is_error)
            case wire.Result():
                return ev.tool_result(tool_call_id=block.tool_use_id, result=block.content, is_error=block.is_error)
            case _:
                return ev.content_block(block=self.block(value))

    def blocks(self, content: Any) -> list[ev.AnyBlock]:
        """Content as blocks of ours."""
        return [self.block(value) for value in _listed(content)]

    def block(self, value: Any) -> ev.AnyBlock:
        """A block of either API as one of ours."""
        block = self.read(value, wire.Blocks)
        match block:
            case wire.Text():
                return ev.TextBlock(block.text, block.citations)
            case wire.Refusal(refusal=text):
                return ev.RefusalBlock(text=text)
            case wire.ImagePart(image_url=image):
                return image_at(image.url)
            case wire.FilePart(file=file):
                media_type, data = split_data_url(file.file_data or "") or (None, file.file_data)
                return ev.FileBlock(name=file.filename, media_type=media_type, data=data, file_id=file.file_id)
            case wire.AudioPart(input_audio=audio):
                return ev.AudioBlock(media_type=audio.format and f"audio/{audio.format}", data=audio.data)
            case wire.Image(source=source):
                return ev.ImageBlock(media_type=source.media_type, data=source.data, url=source.url, file_id=source.file_id)
            case wire.Document() if block.source.type != "content":  # blocks in a document are told whole
                return _document(block)
            case wire.SearchResult():
                texts = [as_object(part).get("text") for part in as_list(block.content)]
                return ev.ResourceBlock(
                    uri=block.source, title=block.title, text="\n".join(text for text in texts if isinstance(text, str))
                )
            case wire.ContainerUpload(file_id=file_id):
                return ev.FileBlock(file_id=file_id)
            case wire.Thinking():
                return ev.ThinkingBlock(block.thinking, block.signature)
            case wire.RedactedThinking(data=data):
                return ev.ThinkingBlock(redacted=data)
            case wire.ToolUse():
                return ev.ToolUseBlock(block.id, block.name, block.input)
            case wire.Result():
                return ev.ToolResultBlock(block.tool_use_id, block.content, block.is_error)
            case _:
                return raw_block(value)

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """A message that only this API has, or a request with one."""
        messages = _messages(message)
        prompted = "anthropic" if messages and "system" in message else None
        return cls.source in (prompted, *map(_whose, messages))

    @classmethod
    def may_detect(cls, message: dict[str, Any]) -> bool:
        """A message that both have, or a request with such messages alone."""
        return any(cls.source == _likely(one) for one in _messages(message)[:1])


class OpenAIMessages(Lists):
    """Chat messages."""

    formats = ("openai-messages",)
    source = "openai"


class AnthropicMessages(Lists):
    """Messages whose content is blocks."""

    formats = ("anthropic-messages",)
    source = "anthropic"


Api = Literal["openai", "anthropic"]


def _messages(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The message itself, or those of a request."""
    values = as_list(message["messages"]) if "messages" in message else [message]
    return [one for one in map(as_object, values) if _is_message(one)]


def _is_message(message: dict[str, Any]) -> bool:
    said = "content" in message or "tool_calls" in message or "function_call" in message
    return message.get("role") in ROLES and said and not message.keys() & {"type", "choices", "parts", "timestamp"}


def _whose(message: dict[str, Any]) -> Api | None:
    """Which API has such a message; None if both have."""
    blocks = [as_object(block) for block in _listed(message.get("content"))]
    kinds = {str(block.get("type")) for block in blocks}
    if message["role"] in ("developer", "tool", "function") or message.keys() & OPENAI_FIELDS or kinds & OPENAI_PARTS:
        return "openai"
    return "anthropic" if kinds - {"text"} or any("cache_control" in block for block in blocks) else None


def _likely(message: dict[str, Any]) -> Api:
    """Which API has more such messages: text alone is more often OpenAI's, blocks are more often Anthropic's."""
    spoken = message["role"] in ("user", "assistant")
    return "anthropic" if spoken and isinstance(message.get("content"), list) else "openai"


def _digest(message: Any) -> bytes:
    """Return a hash that is the same for the same message, wherever it has a cache mark, and whether its text is in a block or not."""
    fields = {name: value for name, value in as_object(message).items() if value is not None and name != "content"}
    blocks = [
        {name: item for name, item in as_object(block).items() if name != "cache_control"} or block
        for block in _listed(as_object(message).get("content"))
    ]
    return sha256(json.dumps([fields, blocks] if fields or blocks else message, sort_keys=True).encode()).digest()


def _listed(content: Any) -> list[Any]:
    """Return content as a list of blocks: text alone is one block, null is none."""
    if content is None:
        return []
    if isinstance(content, list):
        return cast("list[Any]", content)
    return [{"type": "text", "text": content} if isinstance(content, str) else content]


def _document(document: wire.Document) -> ev.DocumentBlock:
    source = document.source
    plain = source.media_type == "text/plain"
    return ev.DocumentBlock(
        title=document.title,
        media_type=source.media_type,
        text=source.data if plain else None,
        data=None if plain else source.data,
        url=source.url,
        file_id=source.file_id,
        context=document.context,
        citations=document.citations,
    )
