"""Anthropic's Messages API, captured: requests and responses, streamed or whole, of Claude Code or any other client.

Each request repeats its conversation, so only what is new in it becomes events. Claude Code has several conversations at a time: its own,
those of its subagents, and questions of the harness (titles). Wire notes: README-api.md.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from hansard import events as ev
from hansard.adapters.authors import split_blocks
from hansard.adapters.base import Adapter, Context
from hansard.adapters.blocks import text_of
from hansard.adapters.claude import api_wire, blocks, wire
from hansard.adapters.claude.message_pieces import MessagePieces
from hansard.adapters.claude.messages import Message, Messages, split_results, tool_result, user_message
from hansard.adapters.claude.outcomes import end_of, error_of
from hansard.adapters.fields import declared_fields, input_hash, place_in_message, session_of_user
from hansard.adapters.framing import DetectingFramer, Frame
from hansard.events.lenient import as_list, as_object, as_text

_OPEN = ("tool_use", "pause_turn")
"""The reasons to stop after which the same turn continues."""
_SUBAGENT = "cc_is_subagent=true"
"""What Claude Code writes into the system prompt of a subagent's requests."""

_INTERRUPTED = "[Request interrupted by user"
_FILLER = "No response requested."
"""What Claude Code puts in place of a response that there is none of."""
_CUT = ev.ErrorInfo(code="api_error", message="the stream ended before the answer did", error_source="transport")


class Conversation:
    """A conversation that requests repeat."""

    def __init__(self, parent: str | None) -> None:
        self.parent = parent
        """The call that started its agent; of a question of the harness, a name of ours. None: the session itself."""
        self.answered = False
        """Whether the response to its last request was captured."""
        self.system: str | None = None
        self._stated: list[str] = []
        self._seen: Counter[str] = Counter()

    def continues(self, messages: list[Any]) -> bool:
        """Whether a request with these messages can belong to it: it begins with the same one."""
        return bool(messages and self._stated) and _digest(messages[0]) == self._stated[0]

    def news(self, messages: list[Any]) -> list[Any]:
        """Returns the messages that no earlier request had. The copy of a response that was captured is none of them."""
        digests = [_digest(message) for message in messages]
        same = next((place for place, pair in enumerate(zip(digests, self._stated, strict=False)) if pair[0] != pair[1]), None)
        same = min(len(digests), len(self._stated)) if same is None else same
        again, new = Counter(digests[:same]), list[Any]()
        rewritten, answered = same < len(self._stated), self.answered
        self._stated, self.answered = digests, False
        for message, digest in zip(messages[same:], digests[same:], strict=True):
            again[digest] += 1
            if (rewritten and again[digest] <= self._seen[digest]) or (answered and not new and _is_answer(message)):
                continue
            self._seen[digest] += 1
            new.append(message)
        return new


class AnthropicApi(Adapter):
    """``POST /v1/messages``."""

    formats = ("anthropic-api",)
    source = "anthropic"
    framer = DetectingFramer
    wire = api_wire.Message
    sent_wire = api_wire.Message

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.messages = Messages()
        self.pieces = MessagePieces(self.messages, self.read, self.open)
        self.status: int | None = None
        self.model: str | None = None
        self.tools: list[str] | None = None
        self.settings: dict[str, Any] = {}
        self.introduced = False
        self.ending: tuple[ev.TurnStatus, str | None, ev.ErrorInfo | None] | None = None
        """How the turn ends if no request continues it: Claude Code asks again after an error, a refusal, or a limit."""
        self.main = self.current = Conversation(self.context.parent_tool_call_id)
        self.others: dict[str, Conversation] = {}
        """The conversations of subagents, and those of the harness, by how they begin."""
        self.waiting: deque[Conversation] = deque()
        """Those whose response is to come, in the order of the requests."""
        self.agents: dict[str, str] = {}
        """The prompts of subagents, with the calls that have them."""
        self.arriving = False
        """Whether a response has begun and not ended."""
        self.stop: wire.Delta | None = None
        self.recalled = 0

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """A response, or the first event of one. A capture may have nothing but errors."""
        if message.get("type") == "error" and "request_id" in message:
            return {"type", "message"} <= as_object(message.get("error")).keys()
        told = as_object(message.get("message")) if message.get("type") == "message_start" else message
        return told.get("type") == "message" and told.get("role") == "assistant" and {"id", "model", "content", "usage"} <= told.keys()

    def feed(self, frame: Frame) -> list[ev.Event]:
        """The events of one frame; the HTTP status of a response goes into its error."""
        self.status = frame.status
        return super().feed(frame)

    # ---- responses

    def translate(self, message: Any) -> Iterable[ev.Event]:
        if isinstance(message, api_wire.Request):
            return self.request(message)
        if isinstance(message, wire.MessageStart | api_wire.Response) or (isinstance(message, wire.StreamError) and self.waiting):
            return chain(self.cut(), self.begun(message))
        return self.translate_piece(message)

    def begun(self, message: Any) -> Iterator[ev.Event]:
        """The first event of a response, or all of it."""
        self.current = self.waiting.popleft() if self.waiting else self.current
        self.current.answered = not isinstance(message, wire.StreamError)
        self.arriving = isinstance(message, wire.MessageStart)
        self.ending = None if self.current is self.main else self.ending
        yield from self.translate_piece(message)

    def translate_piece(self, message: Any) -> Iterable[ev.Event]:
        self.parent = self.current.parent
        made = self.response(message) if isinstance(message, api_wire.Response) else self.streamed(message)
        return map(self.note_agent, made) if self.parent == self.main.parent else made

    def cut(self) -> Iterator[ev.Event]:
        """A response that did not end: whether the server stopped it or the client, the wire does not say."""
        if self.arriving:
            self.arriving, self.parent = False, self.current.parent
            yield self.fail(_CUT)

    def fail(self, failure: ev.ErrorInfo) -> ev.Event:
        """An error. It ends the turn if no request follows."""
        if self.parent == self.main.parent:
            self.ending = "error", None, failure
        return ev.Error(payload=failure)

    def note_agent(self, event: ev.Event) -> ev.Event:
        """Note a call that starts a subagent: its conversation begins with the prompt of the call."""
        if isinstance(event, ev.ToolCall) and event.payload.kind == "agent":
            prompt = as_object(event.payload.args).get("prompt")
            if isinstance(prompt, str) and prompt:
                self.agents[prompt] = event.payload.tool_call_id
        return event

    def response(self, message: api_wire.Response) -> Iterator[ev.Event]:
        yield from self.need_own_turn()
        kept = self.messages.get(message.id)
        kept.model, kept.tokens = message.model, message.usage
        yield from self.whole_blocks(message.id, kept, message.content)
        detail = declared_fields(message, "content", "id", "model", "usage")
        yield ev.StatusChange(payload=ev.StatusChangePayload("message", detail), response_id=message.id)
        yield from self.messages.usage(message.id, kept, final=True)
        yield from self.ended(wire.Delta(message.stop_reason, message.stop_sequence, message.stop_details))

    def whole_blocks(self, message_id: str | None, message: Message, content: Any) -> Iterator[ev.Event]:
        """The blocks of a message that came whole."""
        for item in blocks.items_of(content):
            block = blocks.Text(item) if isinstance(item, str) else self.read(item, blocks.Block)
            index = message.take(block)
            for event in self.messages.block(block, item, self.parent, None):
                yield place_in_message(event, message_id, index)

    def streamed(self, message: Any) -> Iterable[ev.Event]:
        """A piece of a response."""
        events = self.piece(message)
        return chain(self.need_turn(), events) if self.turn is None and self.parent is None else events

    def piece(self, message: Any) -> Iterable[ev.Event]:
        match message:
            case wire.StreamError():
                told, self.arriving = as_object(message.error), False
                return (self.fail(error_of(str(told.get("type")), self.status, str(told.get("message", message.error)))),)
            case wire.MessageDelta():
                self.stop = message.delta
            case wire.MessageStop():
                stop, self.stop, self.arriving = self.stop, None, False
                return chain(self.pieces.events(wire.StreamFields(event=message), self.parent), self.ended(stop))
            case _:
                pass
        return self.pieces.events(wire.StreamFields(event=message), self.parent)

    def ended(self, stop: wire.Delta | None) -> Iterator[ev.Event]:
        """Yields the events of the end of a response, and of the turn if this was its last one."""
        reason = None if stop is None else stop.stop_reason
        if reason == "refusal":
            told = as_object(None if stop is None else stop.stop_details)
            block = blocks.refusal(None, as_text(told.get("category")), as_text(told.get("explanation")))
            yield ev.content_block(block=block)
        if self.parent != self.main.parent or self.turn is None or reason in _OPEN:
            return
        status, error = end_of(subtype=None, is_error=False, terminal_reason=None, stop_reason=reason, status=None, text=None, failure=None)
        self.ending = status, reason, error
        if status == "completed":
            yield from self.settle()

    # ---- requests

    def request(self, message: api_wire.Request) -> Iterator[ev.Event]:
        yield from self.cut()
        session = message.metadata and session_of_user(message.metadata.user_id)
        self.current = conversation = self.conversation_of(message, session is not None)
        self.waiting.append(conversation)
        self.parent = conversation.parent
        if conversation is self.main:
            yield from self.introduce(message, session)
        if (system := blocks.to_blocks(message.system or [])) and text_of(system) != conversation.system:
            conversation.system = text_of(system)
            yield self.add_message(system, "system")
        new = conversation.news(message.messages)
        yield from self.translate_messages(new)
        yield from self.need_own_turn()
        detail = {"messages": len(message.messages), "new": len(new), "stream": message.stream is True}
        yield ev.status_change(status="request", detail=detail)

    def conversation_of(self, message: api_wire.Request, of_claude_code: bool) -> Conversation:
        """The conversation that a request continues or begins."""
        if self.main.continues(message.messages):
            return self.main
        opening = next((_own_text(said) for said in map(as_object, message.messages) if said.get("role") == "user"), "")
        started = next((call for prompt, call in self.agents.items() if prompt in opening), None)
        is_subagent = _SUBAGENT in text_of(blocks.to_blocks(message.system or []))
        if started is None and not is_subagent and (_tool_names(message.tools) or not of_claude_code):
            return self.main
        beginning = started or input_hash([message.system, opening])
        return self.others.setdefault(beginning, Conversation(started or f"request-{self.frames}"))

    def introduce(self, message: api_wire.Request, session: str | None) -> Iterator[ev.Event]:
        """Who speaks, once, and what changes afterwards."""
        tools = _tool_names(message.tools)
        if not self.introduced:
            self.introduced, self.model, self.tools = True, message.model, tools
            agent = self.source if session is None else "claude"
            yield ev.session_init(agent_id=agent, model=message.model, tools=tools, provider_session_id=session)
        if message.model is not None and message.model != self.model:
            self.model = message.model
            yield ev.configuration_change(subtype="set_model", model=message.model)
        if tools != self.tools:
            self.tools = tools
            yield ev.configuration_change(subtype="set_tools", options={"tools": tools})
        settings = declared_fields(message, "messages", "model", "system", "tools", "metadata", "stream")
        if settings != self.settings:
            self.settings = settings
            yield ev.configuration_change(subtype="parameters", options=settings)

    def translate_messages(self, messages: list[Any]) -> Iterator[ev.Event]:
        """The new messages of a request."""
        for value in messages:
            said = self.read(value, api_wire.Said)
            if said is None:
                yield ev.raw(kind=str(as_object(value).get("role")), reason="wrong_shape", detail="not a message")
            elif said.role == "assistant":
                yield from self.recall(said.content)
            elif said.role == "user":
                yield from self.translate_content(said.content)
            else:
                yield from self.need_own_turn()
                yield self.add_message(blocks.to_blocks(said.content), said.role)

    def recall(self, content: Any) -> Iterator[ev.Event]:
        """A response that is known from a later request alone."""
        yield from self.need_own_turn()
        if text_of(said := blocks.to_blocks(content)) == _FILLER:
            yield self.add_message(said, "assistant")
            return
        self.recalled += 1
        made = self.whole_blocks(f"{self.turn}:recalled-{self.recalled}", Message(), content)
        yield from map(self.note_agent, made) if self.parent == self.main.parent else made

    def translate_content(self, content: Any) -> Iterator[ev.Event]:
        """A message in the user's role: results of tools, what the harness adds, and what a person says, which begins a turn."""
        results, rest = split_results(blocks.items_of(content), self.read)
        for block in results:
            yield from self.need_own_turn()
            yield tool_result(block, None, None)
        before, own, after = split_blocks(blocks.to_blocks(rest)) if rest else ([], [], [])
        main = self.parent == self.main.parent
        if main and self.turn is not None and any(text_of([block]).startswith(_INTERRUPTED) for block in before):
            self.ending = "interrupted", None, None
            yield ev.interrupt(reason="user_cancel")
        if own and main:
            yield from self.settle()
            yield from self.start_turn("user")
        yield from self.need_own_turn()
        if before:
            yield self.add_message(before)
        for part in _apart(own):
            author = "harness" if blocks.slash_command(text_of(part)) else "human" if main else "agent"
            yield user_message(part, text_of(part), author, None, queued=False)
        if after:
            yield self.add_message(after)

    def add_message(self, said: list[ev.AnyBlock], role: str | None = None) -> ev.Event:
        """A message of the harness. ``role`` is not the user's."""
        plain = len(said) == 1 and isinstance(said[0], ev.TextBlock)
        return ev.user_message(text=text_of(said), content=None if plain else said, author="harness", role=role)

    def need_own_turn(self) -> Iterator[ev.Event]:
        """Begin a turn unless one is open, or the conversation is another than the session's: only this one has turns."""
        return self.need_turn() if self.parent == self.main.parent else iter(())

    def settle(self) -> Iterator[ev.Event]:
        """End the turn as its last response says."""
        ending, self.ending = self.ending, None
        if self.turn is not None and ending is not None:
            status, reason, error = ending
            yield from self.end_turn(status, stop_reason=reason, error=error)
            self.messages.forget_counted()

    def end_of_stream(self) -> Iterator[ev.Event]:
        """Ends the turns of requests that have no answer."""
        yield from self.cut()
        self.parent = self.main.parent
        yield from self.settle()


def _tool_names(tools: list[Any] | None) -> list[str]:
    """Returns the names of the client's tools. Those that the API runs have a type."""
    return [str(tool.get("name")) for tool in map(as_object, tools or []) if tool.get("type") in (None, "custom")]


def _is_answer(message: Any) -> bool:
    return as_object(message).get("role") == "assistant"


def _own_text(message: dict[str, Any]) -> str:
    """Returns what a message says apart from what the harness added."""
    return text_of(split_blocks(blocks.to_blocks(message.get("content")))[1])


def _apart(said: list[ev.AnyBlock]) -> Iterator[list[ev.AnyBlock]]:
    """Yields the slash commands that the harness put before a message, each for itself; then the message."""
    rest: list[ev.AnyBlock] = []
    for block in said:
        if isinstance(block, ev.TextBlock) and blocks.slash_command(block.text) is not None:
            yield [block]
        else:
            rest.append(block)
    if rest:
        yield rest


def _digest(message: Any) -> str:
    """Returns a hash that is the same for the same message, wherever its cache marks are, and whether its text is in a block or not."""
    content = as_object(message).get("content")
    items = [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content)
    bare = [{name: value for name, value in as_object(item).items() if name != "cache_control"} or item for item in items]
    return input_hash([as_object(message).get("role"), bare])
