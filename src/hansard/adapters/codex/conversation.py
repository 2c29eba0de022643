"""What the Codex formats share: a conversation in which nothing is said twice, although every wire repeats itself.

A call, a result, a message or a thought is said when it is first seen; its echo (the same id, or the same words where there is no id)
becomes a note.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, cast

from hansard.adapter import Adapter, Context
from hansard.adapters.codex import blocks, outcomes, responses
from hansard.adapters.codex.outcomes import Outcome
from hansard.adapters.codex.words import RAW_REASONING, arguments, command_arguments, tool_kind, tool_server
from hansard.content import AnyBlock, TextBlock
from hansard.events import (
    AssistantDone,
    AssistantDonePayload,
    Event,
    ToolCall,
    ToolCallPayload,
    ToolKind,
    configuration_change,
    content_block,
    status_change,
    thinking_done,
    tool_progress,
    user_message,
)
from hansard.loose import as_list, as_object
from hansard.words import at

SEALED = 2 * RAW_REASONING
"""Block index of the sealed part of a thought."""


class Conversation(Adapter):
    """Calls, results, messages and thoughts, each said once."""

    source: ClassVar[str] = "codex"

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.calls: set[str] = set()
        self.results: set[str] = set()
        self.known: dict[str, Outcome] = {}
        self.said: set[str] = set()
        self.unmatched: dict[str, str | None] = {}
        self.nameless: int = 0

    # ---- tools

    def call(
        self, call_id: str, name: str, args: Any, kind: ToolKind, server: str | None = None, title: str | None = None
    ) -> Iterator[Event]:
        """A call; if it is known already, that it runs."""
        if call_id in self.calls:
            yield tool_progress(tool_call_id=call_id, tool_name=name, status="running", title=title)
            return
        self.calls.add(call_id)
        yield ToolCall(payload=ToolCallPayload(call_id, name, args, kind, title, server))

    def outcome(self, call_id: str, outcome: Outcome) -> Iterator[Event]:
        """The result of a call; if it has one already, what became of it afterwards."""
        if call_id in self.results:
            yield outcome.afterwards(call_id)
            return
        self.results.add(call_id)
        self.known.pop(call_id, None)
        yield outcome.event(call_id)

    def settle(self) -> Iterator[Event]:
        """The results of calls that are known as data and were never shown to the model."""
        for call_id, outcome in list(self.known.items()):
            yield from self.outcome(call_id, outcome)

    # ---- messages and thoughts

    def is_echo(self, message_id: str | None, text: str) -> bool:
        """Whether this was said before: under the same id, or in the same words if either time there was no id."""
        first = self.unmatched.get(text, "")
        if message_id is not None and message_id in self.said:
            self.unmatched.pop(text, None)
            return True
        if first == "" or not (first is None or message_id is None):
            return False
        del self.unmatched[text]
        if message_id is not None:
            self.said.add(message_id)
        return True

    def remember(self, message_id: str | None, text: str) -> None:
        """This is said now."""
        if message_id is not None:
            self.said.add(message_id)
        self.unmatched[text] = message_id

    def name(self, message_id: str | None) -> str:
        """The message's id, or one made of the turn and a count."""
        if message_id is not None:
            return message_id
        self.nameless += 1
        return f"{self.turn or 'no turn'}/{self.nameless}"

    def assistant(self, message_id: str | None, text: str, phase: str | None = None, citations: list[Any] | None = None) -> Iterator[Event]:
        """A message of the model."""
        self.remember(message_id, text)
        done = AssistantDone(payload=AssistantDonePayload(text=text, phase=phase, citations=citations or None))
        yield at(done, self.name(message_id), 0)

    def thought(self, message_id: str | None, summary: list[Any], raw_parts: list[Any]) -> Iterator[Event]:
        """A thought: its summary parts, then its raw parts, each in a block of its own."""
        name = self.name(message_id)
        if message_id is not None:
            self.said.add(message_id)
        for index, part in enumerate(summary):
            yield from self._part(name, index, part, summary=True, nameless=message_id is None)
        for index, part in enumerate(raw_parts):
            yield from self._part(name, RAW_REASONING + index, part, summary=False, nameless=message_id is None)

    def _part(self, name: str, index: int, part: Any, summary: bool, nameless: bool) -> Iterator[Event]:
        text = as_object(part).get("text", part)
        if not isinstance(text, str):
            yield at(self.unknown_block(part), name, index)
            return
        if nameless:
            if self.is_echo(None, text):
                return
            self.unmatched[text] = None
        yield at(thinking_done(text=text, summary=summary), name, index)

    def user(
        self,
        content: list[AnyBlock],
        author: str = "human",
        message_id: str | None = None,
        queued: bool = False,
        sender: str | None = None,
        role: str | None = None,
    ) -> Event:
        """Something was said to the agent."""
        return user_message(
            text=blocks.text_of(content),
            content=None if blocks.is_plain(content) else content,
            author=cast("Any", author),
            message_id=message_id,
            queued=queued,
            from_agent_id=sender,
            role=role,
        )

    # ---- items of the Responses API

    def response_item(self, item: Any) -> Iterator[Event]:
        """The events of an item as the model or the harness said it."""
        match item:
            case responses.Message(role="assistant"):
                yield from self.assistant_item(item)
            case responses.Message(role="user"):
                yield from self.user_item(item)
            case responses.Message():
                yield self.user(blocks.to_blocks(item.content), "harness", item.id, role=item.role)
            case responses.AgentMessage():
                yield self.user(blocks.to_blocks(item.content), "agent", item.id, sender=item.author)
            case responses.Reasoning():
                yield from self.reasoning_item(item)
            case responses.FunctionCall():
                args = arguments(item.arguments)
                yield from self.called(item.call_id, item.name, args, item.namespace)
            case responses.CustomToolCall():
                yield from self.called(item.call_id, item.name, item.input, item.namespace)
            case responses.LocalShellCall():
                call_id = item.call_id or self.name(item.id)
                action = as_object(item.action)
                args = command_arguments(action.get("command"), action.get("working_directory"), timeout_ms=action.get("timeout_ms"))
                yield from self.called(call_id, "local_shell", args, None)
            case responses.ToolSearchCall():
                yield from self.called(item.call_id or self.name(item.id), "tool_search", item.arguments, None)
            case responses.FunctionCallOutput() | responses.CustomToolCallOutput():
                yield from self.returned(item.call_id or self.name(item.id), item.output, item.name)
            case responses.ToolSearchOutput():
                yield from self.returned(item.call_id or self.name(item.id), item.tools, "tool_search")
            case responses.WebSearchCall():
                yield from self.search_item(item)
            case responses.ImageGenerationCall():
                yield from self.image_item(item)
            case responses.AdditionalTools():
                yield configuration_change(subtype="additional_tools", options={"tools": item.tools})
            case responses.ConfigurationUpdate():
                yield at(configuration_change(subtype="configuration_update", options={"reasoning": item.reasoning}), item.id)
            case responses.GhostSnapshot():
                yield at(status_change(status="ghost_snapshot", detail={"ghostCommit": item.ghost_commit}), item.id)
            case responses.Compaction() | responses.ContextCompaction():
                yield at(status_change(status="compaction_item", detail={"encryptedContent": item.encrypted_content}), item.id)
            case _:
                yield self.echo(item)

    def echo(self, item: Any) -> Event:
        """A note that an item was seen which says nothing new."""
        return at(status_change(status="response_item", detail={"type": str(item.__struct_config__.tag)}), item.id)

    def assistant_item(self, item: responses.Message) -> Iterator[Event]:
        content = blocks.to_blocks(item.content)
        texts = [block for block in content if isinstance(block, TextBlock)]
        text = "".join(block.text for block in texts)
        if texts and self.is_echo(item.id, text):
            yield self.echo(item)
        elif texts:
            citations = [citation for block in texts for citation in block.citations or []]
            yield from self.assistant(item.id, text, item.phase, citations)
        for index, block in enumerate(content):
            if not isinstance(block, TextBlock):
                yield at(content_block(block=block), self.name(item.id), index + 1)
        if not content:
            yield self.echo(item)

    def user_item(self, item: responses.Message) -> Iterator[Event]:
        """Context that the harness says in the user's name; what the user said is said by another frame."""
        yield self.user(blocks.to_blocks(item.content), "harness", item.id)

    def reasoning_item(self, item: responses.Reasoning) -> Iterator[Event]:
        new = item.id is None or item.id not in self.said
        name = self.name(item.id)
        if new:
            yield from self.thought(item.id, item.summary or [], item.content or [])
        if item.encrypted_content is not None:
            yield at(thinking_done(text="", redacted=item.encrypted_content), name, SEALED)
        else:
            yield self.echo(item)

    def called(self, call_id: str, name: str, args: Any, namespace: str | None) -> Iterator[Event]:
        yield from self.call(call_id, name, args, tool_kind(name, namespace), tool_server(namespace))

    def returned(self, call_id: str, said: Any, name: str | None) -> Iterator[Event]:
        if call_id in self.results:
            yield tool_progress(tool_call_id=call_id, status="shown", tool_name=name)
            return
        if call_id not in self.calls:  # a result without its call: the file begins in the middle
            tool = name or "function_call"
            yield from self.call(call_id, tool, None, tool_kind(tool))
        yield from self.outcome(call_id, outcomes.merged(self.known.get(call_id), outcomes.output(said)))

    def search_item(self, item: responses.WebSearchCall) -> Iterator[Event]:
        """A search is said by its own event, which comes first; here is its echo, in files of 0.137 without an id."""
        key = repr(item.action)
        if item.id in self.calls or self.is_echo(None, key):
            yield self.echo(item)
        else:
            yield from self.searched(self.name(item.id), None, item.action, None, item.status)

    def searched(self, call_id: str, query: str | None, action: Any, results: Any, status: str | None = None) -> Iterator[Event]:
        args = {"query": query, "action": action}
        self.unmatched[repr(action)] = None
        yield from self.call(call_id, "web_search", {key: value for key, value in args.items() if value is not None}, "search")
        yield from self.outcome(call_id, outcomes.other(results, status))

    def image_item(self, item: responses.ImageGenerationCall) -> Iterator[Event]:
        if item.id in self.calls:
            yield self.echo(item)
        else:
            yield from self.pictured(self.name(item.id), item.revised_prompt, outcomes.image(item.result, item.status, None))

    def pictured(self, call_id: str, prompt: str | None, outcome: Outcome) -> Iterator[Event]:
        args = {} if prompt is None else {"revised_prompt": prompt}
        yield from self.call(call_id, "image_generation", args, "other")
        yield from self.outcome(call_id, outcome)


def plan_steps(plan: Any) -> list[tuple[str, str]]:
    """Steps and states of a plan from the arguments of ``update_plan``."""
    steps = [as_object(step) for step in as_list(as_object(plan).get("plan"))]
    return [(step["step"], str(step.get("status", "unknown"))) for step in steps if isinstance(step.get("step"), str)]
