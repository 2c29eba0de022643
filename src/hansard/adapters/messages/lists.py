"""Message lists: what is sent to OpenAI's or Anthropic's API as history. Wire notes: README.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from hansard.adapters.messages import lists_wire as wire
from hansard.adapters.messages.talk import Talk, image_at, loads
from hansard.content import AnyBlock, AudioBlock, DocumentBlock, FileBlock, ImageBlock, RawBlock, RefusalBlock, TextBlock
from hansard.events import Event, assistant_done, content_block, raw, thinking_done, tool_call, tool_result
from hansard.loose import as_object
from hansard.words import at

OPENAI_PARTS = {"image_url", "input_audio", "file", "refusal"}


class Lists(Talk):
    """Reads the messages of both: a list of one that was taken for the other loses nothing."""

    wire = wire.Message
    tag = "role"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._count = 0

    def translate(self, message: wire.Message) -> Iterator[Event]:
        self._count += 1
        match message.role:
            case "assistant":
                yield from self.assistant(message)
            case "tool" | "function" if message.tool_call_id is not None:
                yield from self.result(message.tool_call_id, message.content, None)
            case "system" | "developer":
                yield from self.hear(self.blocks(message.content), "harness")
            case "user":
                yield from self.user(message.content)
            case _:
                yield raw(kind=message.role, reason="unknown_type")

    def user(self, content: Any) -> Iterator[Event]:
        """What the user says; the results of Anthropic's tools come with it."""
        said: list[Any] = []
        for block in _listed(content):
            read = self.read(block, wire.ToolResult) if as_object(block).get("type") == "tool_result" else None
            if read is None:
                said.append(block)
            else:
                yield from self.result(read.tool_use_id, read.content, read.is_error)
        if said or content in ("", []):
            yield from self.hear(self.blocks(said), "human")

    def result(self, call: str, content: Any, is_error: bool | None) -> Iterator[Event]:
        """What a tool gave back."""
        self.answered = False
        blocks = None if isinstance(content, str) or content is None else self.blocks(content)
        yield from self.need_turn()
        yield tool_result(tool_call_id=call, result=content, content=blocks, is_error=is_error)

    def assistant(self, message: wire.Message) -> Iterator[Event]:
        """An answer, block by block."""
        yield from self.need_turn()
        calls = False
        for index, event in enumerate(self.said(message)):
            calls = calls or event.type == "tool_call"
            yield at(event, message.id or f"message-{self._count}", index)
        self.answered = not calls

    def said(self, message: wire.Message) -> Iterator[Event]:
        """What an answer consists of, in order."""
        if message.reasoning_content is not None:
            yield thinking_done(text=message.reasoning_content)
        for value in _listed(message.content):
            match self.read(value, wire.Blocks):
                case wire.Text() as text:
                    yield assistant_done(text=text.text, citations=text.citations)
                case wire.Thinking() as thought:
                    yield thinking_done(text=thought.thinking, signature=thought.signature)
                case wire.RedactedThinking(data=data):
                    yield thinking_done(text="", redacted=data)
                case wire.ToolUse() as call:
                    yield tool_call(tool_call_id=call.id, tool_name=call.name, args=call.input)
                case None:
                    yield self.unknown_block(value)
                case _:
                    yield content_block(block=self.block(value))
        if message.refusal is not None:
            yield content_block(block=RefusalBlock(text=message.refusal))
        for call in message.tool_calls or []:
            if call.function is not None:
                yield tool_call(tool_call_id=call.id, tool_name=call.function.name, args=loads(call.function.arguments))
            elif call.custom is not None:
                yield tool_call(tool_call_id=call.id, tool_name=call.custom.name, args=call.custom.input)
            else:
                yield raw(kind="tool_calls", reason="unknown_type")

    def blocks(self, content: Any) -> list[AnyBlock]:
        """Content as blocks of ours."""
        return [self.block(value) for value in _listed(content)]

    def block(self, value: Any) -> AnyBlock:
        """A block of either API as one of ours."""
        match self.read(value, wire.Blocks):
            case wire.Text() as text:
                return TextBlock(text.text, text.citations)
            case wire.Refusal(refusal=text):
                return RefusalBlock(text=text)
            case wire.ImagePart(image_url=image):
                return image_at(image.url)
            case wire.FilePart(file=file):
                kind = image_at(file.file_data or "")
                return FileBlock(name=file.filename, media_type=kind.media_type, data=kind.data or file.file_data, file_id=file.file_id)
            case wire.AudioPart(input_audio=audio):
                return AudioBlock(media_type=audio.format and f"audio/{audio.format}", data=audio.data)
            case wire.Image(source=source):
                return ImageBlock(media_type=source.media_type, data=source.data, url=source.url, file_id=source.file_id)
            case wire.Document() as document:
                return _document(document)
            case _:
                kind = as_object(value).get("type")
                return RawBlock(raw=value, raw_type=kind if isinstance(kind, str) else None)


class OpenAIMessages(Lists):
    """Chat messages."""

    formats = ("openai-messages",)
    source = "openai"

    @classmethod
    def recognises(cls, message: dict[str, Any]) -> bool:
        """A message whose content is text, or that has what only this API has."""
        return _is_message(message) and (
            not isinstance(message["content"], list)
            or message["role"] not in ("user", "assistant")
            or "tool_calls" in message
            or bool(_kinds(message) & OPENAI_PARTS)
        )


class AnthropicMessages(Lists):
    """Messages whose content is blocks."""

    formats = ("anthropic-messages",)
    source = "anthropic"

    @classmethod
    def recognises(cls, message: dict[str, Any]) -> bool:
        """A message of blocks."""
        return _is_message(message) and not OpenAIMessages.recognises(message)


def _is_message(message: dict[str, Any]) -> bool:
    roles = ("system", "developer", "user", "assistant", "tool")
    return message.get("role") in roles and "content" in message and not message.keys() & {"type", "choices", "parts", "timestamp"}


def _kinds(message: dict[str, Any]) -> set[Any]:
    return {str(as_object(block).get("type")) for block in _listed(message["content"])}


def _listed(content: Any) -> list[Any]:
    """Text alone is a block of text; nothing is no block."""
    if content is None:
        return []
    if isinstance(content, list):
        return cast("list[Any]", content)
    return [{"type": "text", "text": content} if isinstance(content, str) else content]


def _document(document: wire.Document) -> DocumentBlock:
    source = document.source
    plain = source.media_type == "text/plain"
    return DocumentBlock(
        title=document.title,
        media_type=source.media_type,
        text=source.data if plain else None,
        data=None if plain else source.data,
        url=source.url,
        file_id=source.file_id,
        context=document.context,
    )
