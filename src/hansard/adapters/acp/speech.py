"""What is said: chunks, the messages they make, and the end of a message that the wire does not mark.

Chunks of one kind are one message until another kind, a tool call, the end of a model response or the end of the turn comes; an agent that
names its messages (``messageId``) is believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from hansard.adapter import Context, Piece
from hansard.adapters.acp import blocks, quick, wire
from hansard.adapters.acp.tools import Tools
from hansard.adapters.acp.words import is_list, told
from hansard.content import AnyBlock, TextBlock
from hansard.events import (
    AssistantChunk,
    AssistantDone,
    AssistantDonePayload,
    Event,
    TextPayload,
    ThinkingChunk,
    ThinkingDone,
    ThinkingDonePayload,
    content_block,
    status_change,
    user_message,
)
from hansard.loose import as_list
from hansard.structs import prepare
from hansard.words import at


class Saying(Struct, gc=False):
    """A block of text or thinking that is going on."""

    thinking: bool
    message_id: str | None
    phase: str | None
    response_id: str
    index: int
    chunks: int = 0


class Heard:
    """A user's message that arrives in chunks."""

    def __init__(self, message_id: str | None, parent: str | None) -> None:
        self.message_id = message_id
        self.parent = parent
        self.content: list[Any] = []


class Speech(Tools):
    """The part of the adapter that follows messages."""

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.saying: dict[str | None, Saying] = {}
        self.indexes: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        self.heard: Heard | None = None
        self.last_said: str | None = None
        self.last_response: dict[str | None, str] = {}
        self.prompted: list[Any] = []

    # ---- the agent

    def say(self, content: Any, message_id: str | None, thinking: bool, phase: str | None) -> Iterable[Event]:
        """A chunk of a message, or a block in it that is no text."""
        block = content if type(content) is quick.Text else blocks.to_block(content)
        saying = self.saying.get(self.parent)
        before: list[Event] = []
        if saying is not None and (saying.thinking != thinking or saying.message_id != message_id or saying.phase != phase):
            before, saying = self.hush(), None
        if not isinstance(block, TextBlock | quick.Text):
            response_id = saying.response_id if saying is not None else self.response_id(message_id)
            return [*before, *self.hush(), at(content_block(block=block), response_id, self.next_index(response_id))]
        if saying is None:
            response_id = self.response_id(message_id)
            saying = Saying(thinking, message_id, phase, response_id, self.next_index(response_id))
            self.saying[self.parent] = saying
        saying.chunks += 1
        piece = Piece(ThinkingChunk if thinking else AssistantChunk, TextPayload(block.text), saying.response_id, saying.index)
        return [*before, *piece] if before else piece

    def response_id(self, message_id: str | None) -> str:
        """The agent's own id for the message, or one made of the place where it began."""
        return self._ids(self.frames, 0xFFFF) if message_id is None else message_id

    def spoken(self, parent: str | None) -> str:
        """The message whose usage comes now: what was said last and is not counted yet; a response without words has a place of its own."""
        return self.last_response.pop(parent, None) or self.response_id(None)

    def next_index(self, response_id: str) -> int:
        index = self.indexes.get(response_id, 0)
        self.indexes[response_id] = index + 1
        return index

    def hush(self) -> list[Event]:
        """The current speaker's message is over."""
        return self.hush_under(self.parent)

    def hush_under(self, parent: str | None) -> list[Event]:
        """The message of the agent whom that call started is over."""
        saying = self.saying.pop(parent, None)
        if saying is None:
            return []
        self.last_response[parent] = saying.response_id
        text = self.open.text(saying.response_id, saying.index)
        if saying.message_id is not None:
            self.texts[saying.message_id] = self.texts.get(saying.message_id, "") + text
        if saying.thinking:
            done: Event = ThinkingDone(payload=ThinkingDonePayload(text=text), parent_tool_call_id=parent)
        else:
            self.last_said = text if saying.chunks == 1 else None
            done = AssistantDone(payload=AssistantDonePayload(text=text, phase=saying.phase), parent_tool_call_id=parent)
        return [told(at(done, saying.response_id, saying.index))]

    def hush_unnamed(self) -> list[Event]:
        """A model response is over: an agent that does not name its messages begins another one."""
        saying = self.saying.get(self.parent)
        return self.hush() if saying is not None and saying.message_id is None else []

    def whole(self, message: wire.AgentMessage | wire.AgentThought) -> Iterator[Event]:
        """Version 2: a message as a whole. It replaces its chunks; what they said already is not said again."""
        if not is_list(message.content):
            yield status_change(status="agent_message", detail={"messageId": message.message_id})
            return
        said = blocks.to_blocks(as_list(message.content))
        text = "".join(block.text for block in said if isinstance(block, TextBlock))
        saying = self.saying.get(self.parent)
        current = saying if saying is not None and saying.message_id == message.message_id else None
        if current is not None and self.open.text(current.response_id, current.index) == text:
            yield from self.hush()
        elif current is None and self.texts.get(message.message_id) == text:
            yield status_change(status="agent_message_echo", detail={"messageId": message.message_id})
        else:
            index = 0 if current is None else current.index
            if current is not None:
                del self.saying[self.parent]
            self.texts[message.message_id] = text
            self.indexes.setdefault(message.message_id, 1)
            done: Event = AssistantDone(payload=AssistantDonePayload(text=text))
            if isinstance(message, wire.AgentThought):
                done = ThinkingDone(payload=ThinkingDonePayload(text=text))
            yield at(done, message.message_id, index)
        for block in said:
            if not isinstance(block, TextBlock):
                yield at(content_block(block=block), message.message_id, self.next_index(message.message_id))

    def forget_messages(self) -> None:
        """At the end of a turn: only what a sub-agent is still saying stays."""
        going_on = {saying.response_id for saying in self.saying.values()}
        self.indexes = {name: index for name, index in self.indexes.items() if name in going_on}
        self.texts = {}
        self.last_said = None
        self.last_response.pop(self.context.parent_tool_call_id, None)

    # ---- the user

    def hear(self, chunk: wire.UserMessageChunk) -> Iterator[Event]:
        """A piece of a user's message."""
        if self.heard is not None and (self.heard.message_id, self.heard.parent) != (chunk.message_id, self.parent):
            yield from self.heard_all()
        if self.heard is None:
            self.heard = Heard(chunk.message_id, self.parent)
        self.heard.content.append(chunk.content)
        yield status_change(status="user_message_chunk", detail={"messageId": chunk.message_id} if chunk.message_id is not None else None)

    def heard_all(self) -> list[Event]:
        """The user's message is complete."""
        heard, self.heard = self.heard, None
        if heard is None:
            return []
        event = told(self.user_said(heard.content, heard.message_id, heard.parent))
        event.parent_tool_call_id = heard.parent
        return [event]

    def user_said(self, content: list[Any], message_id: str | None, parent: str | None) -> Event:
        """A user's message that the agent tells us of: an echo of ours, or one we do not know."""
        if content in self.prompted:
            self.prompted.remove(content)
            return status_change(status="user_message_echo", detail={"messageId": message_id})
        said = blocks.to_blocks(content)
        return self.user(said, message_id, author="human" if parent is None else "agent")

    def user(self, said: list[AnyBlock], message_id: str | None, author: Any = "human", queued: bool = False) -> Event:
        text = blocks.text_of(said)
        # Gemini CLI 0.61.0 replays its own context and the tools' answers as the user's words.
        if text.startswith(("<session_context>", "[Function Response: ")):
            author = "harness"
        plain = len(said) == 1 and isinstance(said[0], TextBlock)
        return user_message(text=text, content=None if plain else said, author=author, message_id=message_id, queued=queued)


prepare(globals())
