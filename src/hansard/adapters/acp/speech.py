"""Messages in progress: the chunks of the agent and its subagents, and of the user.

ACP does not mark the end of a message. Chunks of one kind are one message until another kind, a tool call, the end of a model response, or
the end of the turn comes. An agent that names its messages (``messageId``) decides itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct

from hansard import events as ev
from hansard.adapters.acp import wire
from hansard.adapters.acp.blocks import to_block, to_blocks
from hansard.adapters.acp.fields import as_synthetic, is_list
from hansard.adapters.authors import Author, author_of
from hansard.adapters.base import ChunkDraft
from hansard.adapters.blocks import text_of
from hansard.adapters.fields import place_in_message
from hansard.adapters.open_items import OpenItems
from hansard.events.lenient import as_list
from hansard.events.structs import prepare


class OpenMessage(Struct, gc=False):
    """A block of text or thinking in progress."""

    thinking: bool
    message_id: str | None
    phase: str | None
    response_id: str
    index: int
    chunks: int = 0


class OpenUserMessage(Struct):
    """A user message that arrives in chunks."""

    message_id: str | None
    parent: str | None
    content: list[Any] = []


class Speech:
    """The messages in progress, by speaker: the agent itself (``mine``), or the call that started a subagent."""

    def __init__(self, mine: str | None, open_items: OpenItems, new_id: Callable[[], str]) -> None:
        self.mine = mine
        self.open_items = open_items
        self.new_id = new_id
        self.messages: dict[str | None, OpenMessage] = {}
        self.user: OpenUserMessage | None = None
        self.prompts: list[list[Any]] = []
        """The prompts whose echo may still come."""
        self.notices: tuple[str, ...] = ()
        """How the messages begin, each in one chunk, in which the agent itself reports what went wrong."""
        self.only_chunk: str | None = None
        """The text of the last message, if it came in one chunk."""
        self._next_index: dict[str, int] = {}
        self._texts: dict[str, str] = {}
        self._uncounted: dict[str | None, str] = {}

    # ---- the agent

    def chunk(
        self, speaker: str | None, content: Any, text: str | None, message_id: str | None, thinking: bool, phase: str | None
    ) -> Iterable[ev.Event]:
        """Add a chunk to the speaker's message, or a block that is not text."""
        message = self.messages.get(speaker)
        before: list[ev.Event] = []
        if message is not None and (message.thinking != thinking or message.message_id != message_id or message.phase != phase):
            before, message = self.end(speaker), None
        if text is None:
            response_id = self._response_id(message_id) if message is None else message.response_id
            return [*before, *self.end(speaker), self._placed(ev.content_block(block=to_block(content)), response_id)]
        if message is None:
            response_id = self._response_id(message_id)
            message = self.messages[speaker] = OpenMessage(thinking, message_id, phase, response_id, self._index(response_id))
        message.chunks += 1
        kind = ev.ThinkingChunk if thinking else ev.AssistantChunk
        draft = ChunkDraft(kind, ev.TextPayload(text), message.response_id, message.index)
        return [*before, *draft] if before else draft

    def end(self, speaker: str | None) -> list[ev.Event]:
        """End the speaker's message."""
        message = self.messages.pop(speaker, None)
        if message is None:
            return []
        self._uncounted[speaker] = message.response_id
        text = self.open_items.text(message.response_id, message.index)
        if message.message_id is not None:
            self._texts[message.message_id] = self._texts.get(message.message_id, "") + text
        if message.thinking:
            done: ev.Event = ev.ThinkingDone(payload=ev.ThinkingDonePayload(text=text), parent_tool_call_id=speaker)
        else:
            self.only_chunk = text if message.chunks == 1 else None
            phase = "error" if message.chunks == 1 and text.startswith(self.notices) else message.phase
            done = ev.AssistantDone(payload=ev.AssistantDonePayload(text=text, phase=phase), parent_tool_call_id=speaker)
        return [as_synthetic(place_in_message(done, message.response_id, message.index))]

    def mark_error(self, speaker: str | None, error: ev.ErrorInfo) -> bool:
        """Mark the speaker's open message as the text of an error. Returns whether it is that text.

        The error repeats it, or the provider refused the key: then no model answered.
        """
        message = self.messages.get(speaker)
        if message is None or message.thinking:
            return False
        if error.code != "provider_auth" and self.open_items.text(message.response_id, message.index) not in error.message:
            return False
        message.phase = "error"
        return True

    def end_unnamed(self, speaker: str | None) -> list[ev.Event]:
        """End the speaker's message after a model response, unless the agent names its messages."""
        message = self.messages.get(speaker)
        return self.end(speaker) if message is not None and message.message_id is None else []

    def whole(self, speaker: str | None, message: wire.AgentMessage | wire.AgentThought) -> Iterator[ev.Event]:
        """Take a whole message (version 2). It replaces its chunks; text that the chunks had is not repeated."""
        if not is_list(message.content):
            yield ev.status_change(status="agent_message", detail={"messageId": message.message_id})
            return
        blocks = to_blocks(as_list(message.content))
        text = "".join(block.text for block in blocks if isinstance(block, ev.TextBlock))
        current = self.messages.get(speaker)
        if current is not None and current.message_id != message.message_id:
            current = None
        if current is not None and self.open_items.text(current.response_id, current.index) == text:
            yield from self.end(speaker)
        elif current is None and self._texts.get(message.message_id) == text:
            yield ev.status_change(status="agent_message_echo", detail={"messageId": message.message_id})
        else:
            if current is not None:
                del self.messages[speaker]
            self._texts[message.message_id] = text
            self._next_index.setdefault(message.message_id, 1)
            thought = isinstance(message, wire.AgentThought)
            done = ev.thinking_done(text=text) if thought else ev.assistant_done(text=text)
            yield place_in_message(done, message.message_id, 0 if current is None else current.index)
        for block in blocks:
            if not isinstance(block, ev.TextBlock):
                yield self._placed(ev.content_block(block=block), message.message_id)

    def take_uncounted(self, speaker: str | None) -> str:
        """Return the id of the last message without usage. A response without text gets an id of its own."""
        return self._uncounted.pop(speaker, None) or self.new_id()

    def end_turn(self, prompts: list[list[Any]]) -> None:
        """Forget the messages of a turn, except those that a subagent continues. ``prompts`` are still queued."""
        unfinished = {message.response_id for message in self.messages.values()}
        self._next_index = {name: index for name, index in self._next_index.items() if name in unfinished}
        self._texts = {}
        self.only_chunk = None
        self._uncounted.pop(self.mine, None)
        self.prompts = prompts

    def _response_id(self, message_id: str | None) -> str:
        return self.new_id() if message_id is None else message_id

    def _placed(self, event: ev.Event, response_id: str) -> ev.Event:
        return place_in_message(event, response_id, self._index(response_id))

    def _index(self, response_id: str) -> int:
        index = self._next_index.get(response_id, 0)
        self._next_index[response_id] = index + 1
        return index

    # ---- the user

    def user_chunk(self, speaker: str | None, chunk: wire.UserMessageChunk) -> list[ev.Event]:
        """Add a chunk to the user message."""
        same = self.user is not None and (self.user.message_id, self.user.parent) == (chunk.message_id, speaker)
        before = [] if same else self.end_user()
        if self.user is None:
            self.user = OpenUserMessage(chunk.message_id, speaker)
        self.user.content.append(chunk.content)
        detail = None if chunk.message_id is None else {"messageId": chunk.message_id}
        return [*before, ev.status_change(status="user_message_chunk", detail=detail)]

    def end_user(self) -> list[ev.Event]:
        """End the user message."""
        message, self.user = self.user, None
        if message is None:
            return []
        event = as_synthetic(self.user_message(message.content, message.message_id, message.parent))
        event.parent_tool_call_id = message.parent
        return [event]

    def user_message(self, content: list[Any], message_id: str | None, speaker: str | None) -> ev.Event:
        """Return the event for a user message that the agent reports: an echo of a prompt, or a message of its own."""
        if content in self.prompts:
            self.prompts.remove(content)
            return ev.status_change(status="user_message_echo", detail={"messageId": message_id})
        blocks = to_blocks(content)
        return user_event(blocks, message_id, author_of(text_of(blocks), nested=speaker is not None))


def user_event(blocks: list[ev.AnyBlock], message_id: str | None, author: Author = "human", queued: bool = False) -> ev.Event:
    """Return the event for a user message."""
    text = text_of(blocks)
    plain = len(blocks) == 1 and isinstance(blocks[0], ev.TextBlock)
    return ev.user_message(text=text, content=None if plain else blocks, author=author, message_id=message_id, queued=queued)


prepare(globals())
