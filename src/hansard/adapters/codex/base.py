"""What the formats of Codex share: messages, thoughts, and the items of the Responses API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from hansard import events as ev
from hansard.adapters.authors import Author
from hansard.adapters.base import Adapter, Context
from hansard.adapters.blocks import text_of
from hansard.adapters.codex import blocks, response_items, tools
from hansard.adapters.codex.deduplication import Deduplicator
from hansard.adapters.codex.fields import RAW_REASONING
from hansard.adapters.fields import parse_arguments, place_in_message, tag_of
from hansard.events.lenient import as_object

SEALED = 2 * RAW_REASONING
"""Block index of the sealed part of a thought."""


class Codex(Adapter):
    """A conversation with Codex."""

    source: ClassVar[str] = "codex"

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.seen = Deduplicator()

    # ---- messages and thoughts

    def name(self, message_id: str | None) -> str:
        """Return the message's id, or one made of the turn and a count."""
        if message_id is not None:
            return message_id
        self.seen.unnamed += 1
        return f"{self.turn or 'no turn'}/{self.seen.unnamed}"

    def assistant(self, message_id: str | None, text: str, phase: str | None = None, citations: list[Any] | None = None) -> tuple[ev.Event]:
        """Return a message of the model."""
        self.seen.remember(message_id, text)
        done = ev.AssistantDone(payload=ev.AssistantDonePayload(text=text, phase=phase, citations=citations or None))
        return (place_in_message(done, self.name(message_id), 0),)

    def thought(self, message_id: str | None, summary: list[Any], raw_parts: list[Any]) -> Iterator[ev.Event]:
        """Yield a thought: its summary parts, then its raw parts, each in a block of its own."""
        name = self.name(message_id)
        if message_id is not None:
            self.seen.messages.add(message_id)
        numbered = [*enumerate(summary), *enumerate(raw_parts, RAW_REASONING)]
        for index, part in numbered:
            text = as_object(part).get("text", part)
            if not isinstance(text, str):
                yield place_in_message(self.unknown_block(part), name, index)
                continue
            if message_id is None:
                if self.is_echo(None, text):
                    continue
                self.seen.unmatched[text] = None
            yield place_in_message(ev.thinking_done(text=text, summary=index < RAW_REASONING), name, index)

    def user(
        self,
        content: list[ev.AnyBlock],
        author: Author = "human",
        message_id: str | None = None,
        queued: bool = False,
        sender: str | None = None,
        role: str | None = None,
    ) -> ev.Event:
        """Return a message to the agent."""
        return ev.user_message(
            text=text_of(content),
            content=None if blocks.is_plain(content) else content,
            author=author,
            message_id=message_id,
            queued=queued,
            from_agent_id=sender,
            role=role,
        )

    # ---- items of the Responses API

    def response_item(self, item: Any) -> Iterable[ev.Event]:
        """Return the events of an item that went to or came from the model."""
        match item:
            case response_items.FunctionCall():
                return self.called(item.call_id, item.name, parse_arguments(item.arguments), item.namespace)
            case response_items.FunctionCallOutput():
                return self.returned(item.call_id or self.name(item.id), item.output, item.name)
            case response_items.Message(role="assistant"):
                return self.assistant_item(item)
            case response_items.Message(role="user"):
                return self.user_item(item)
            case response_items.Message():
                return (self.user(blocks.to_blocks(item.content), "harness", item.id, role=item.role),)
            case response_items.AgentMessage():
                return (self.user(blocks.to_blocks(item.content), "agent", item.id, sender=item.author),)
            case response_items.Reasoning():
                return self.reasoning_item(item)
            case response_items.CustomToolCall():
                return self.called(item.call_id, item.name, item.input, item.namespace)
            case response_items.LocalShellCall(action=action):
                return self.called(item.call_id or self.name(item.id), "local_shell", tools.local_shell_arguments(action), None)
            case response_items.ToolSearchCall():
                return self.called(item.call_id or self.name(item.id), "tool_search", item.arguments, None)
            case response_items.ToolSearchOutput():
                return self.returned(item.call_id or self.name(item.id), item.tools, "tool_search")
            case response_items.WebSearchCall():
                return self.search_item(item)
            case response_items.ImageGenerationCall():
                return self.image_item(item)
            case response_items.AdditionalTools():
                return (ev.configuration_change(subtype="additional_tools", options={"tools": item.tools}),)
            case response_items.ConfigurationUpdate():
                change = ev.configuration_change(subtype="configuration_update", options={"reasoning": item.reasoning})
                return (place_in_message(change, item.id),)
            case response_items.GhostSnapshot():
                return (place_in_message(ev.status_change(status="ghost_snapshot", detail={"ghostCommit": item.ghost_commit}), item.id),)
            case response_items.Compaction():
                detail = {"encryptedContent": item.encrypted_content}
                return (place_in_message(ev.status_change(status="compaction_item", detail=detail), item.id),)
            case _:
                return (self.echo(item),)

    def echo(self, item: Any) -> ev.Event:
        """Return the note that an item says nothing new."""
        return place_in_message(ev.status_change(status="response_item", detail={"type": tag_of(item.__class__)}), item.id)

    def assistant_item(self, item: response_items.Message) -> Iterator[ev.Event]:
        content = blocks.to_blocks(item.content)
        texts = [block for block in content if isinstance(block, ev.TextBlock)]
        text = "".join(block.text for block in texts)
        if texts and not self.is_echo(item.id, text):
            citations = [citation for block in texts for citation in block.citations or []]
            yield from self.assistant(item.id, text, item.phase, citations)
        elif texts or not content:
            yield self.echo(item)
        for index, block in enumerate(content):
            if not isinstance(block, ev.TextBlock):
                yield place_in_message(ev.content_block(block=block), self.name(item.id), index + 1)

    def is_echo(self, message_id: str | None, text: str) -> bool:
        """Tell whether a message of the model came before."""
        return self.seen.is_echo(message_id, text)

    def user_item(self, item: response_items.Message) -> Iterable[ev.Event]:
        """Return context that the harness adds in the user's name. The user's own message comes in another frame."""
        return (self.user(blocks.to_blocks(item.content), "harness", item.id),)

    def reasoning_item(self, item: response_items.Reasoning) -> Iterator[ev.Event]:
        new = item.id is None or item.id not in self.seen.messages
        name = self.name(item.id)
        if new:
            yield from self.thought(item.id, item.summary or [], item.content or [])
        if item.encrypted_content is not None:
            yield place_in_message(ev.thinking_done(text="", redacted=item.encrypted_content), name, SEALED)
        else:
            yield self.echo(item)

    # ---- tools

    def called(self, call_id: str, name: str, args: Any, namespace: str | None) -> Iterable[ev.Event]:
        """Return a call that the model made."""
        return self.seen.call(call_id, name, args, tools.tool_kind(name, namespace), tools.tool_server(namespace))

    def returned(self, call_id: str, output: Any, name: str | None) -> Iterable[ev.Event]:
        """Return the result of a call as the model was shown it. A file that begins in the middle has results without their calls."""
        if call_id in self.seen.results:
            return (ev.tool_progress(tool_call_id=call_id, status="shown", tool_name=name),)
        name = name or "function_call"
        call = () if call_id in self.seen.calls else self.seen.call(call_id, name, None, tools.tool_kind(name))
        return (*call, *self.seen.outcome(call_id, tools.merged(self.seen.known.get(call_id), tools.output(output))))

    def search_item(self, item: response_items.WebSearchCall) -> Iterable[ev.Event]:
        """A search has an event of its own, which comes first; in files of 0.137 this echo of it has no id."""
        if item.id in self.seen.calls or self.is_echo(None, repr(item.action)):
            return (self.echo(item),)
        return self.searched(self.name(item.id), None, item.action, None, item.status)

    def searched(self, call_id: str, query: str | None, action: Any, results: Any, status: str | None = None) -> Iterable[ev.Event]:
        """Return a search of the web: the call and its result."""
        args = {key: value for key, value in (("query", query), ("action", action)) if value is not None}
        self.seen.unmatched[repr(action)] = None
        call = self.seen.call(call_id, "web_search", args, "search")
        return (*call, *self.seen.outcome(call_id, tools.other(results, status)))

    def image_item(self, item: response_items.ImageGenerationCall) -> Iterable[ev.Event]:
        if item.id in self.seen.calls:
            return (self.echo(item),)
        return self.pictured(self.name(item.id), item.revised_prompt, tools.image(item.result, item.status))

    def pictured(self, call_id: str, prompt: str | None, outcome: tools.ToolOutcome) -> Iterable[ev.Event]:
        """Return an image that was generated: the call and its result."""
        call = self.seen.call(call_id, "image_generation", {} if prompt is None else {"revised_prompt": prompt}, "other")
        return (*call, *self.seen.outcome(call_id, outcome))
