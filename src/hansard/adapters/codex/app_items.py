"""The items of a thread as ``codex app-server`` tells them: messages, thoughts, calls, and whose they are. Wire notes: README.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from hansard.adapter import Context
from hansard.adapters.codex import app_wire as wire
from hansard.adapters.codex import blocks, outcomes, responses
from hansard.adapters.codex.conversation import Conversation
from hansard.adapters.codex.words import command_arguments, spoken, told, tool_kind
from hansard.content import ImageBlock
from hansard.events import Event, queue_update, session_lifecycle, status_change, tool_output_chunk, tool_progress
from hansard.loose import as_list, as_object
from hansard.words import at

_SPAWNS = ("spawnAgent", "resumeAgent")


class AppServerItems(Conversation):
    """Items that start and complete, in the main thread and in those of sub-agents."""

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.main: str | None = None
        self.wire_turn: str | None = None
        self.parents: dict[str, str] = {}
        self.last_spawn: str | None = None
        self.introduced: set[str] = set()
        self.sent_messages: dict[str, Any] = {}
        self.queued: set[str] = set()
        self.written: dict[str, int] = {}
        self.compacted: set[str | None] = set()

    # ---- threads

    def belongs(self, thread_id: str | None) -> None:
        """Whose frame this is: ours, or that of another thread, whose events hang below the call that started it."""
        self.parent = self.context.parent_tool_call_id
        if thread_id is None:
            return
        if self.main is None:
            self.main = thread_id
        if thread_id != self.main and (thread_id not in self.introduced or self.turn is not None):
            self.parent = self.parents.get(thread_id) or self.last_spawn or thread_id

    @property
    def ours(self) -> bool:
        """Whether the frame is about the main thread."""
        return self.parent == self.context.parent_tool_call_id

    # ---- items

    def item_started(self, item: Any) -> Iterable[Event]:
        match item:
            case wire.CommandExecution():
                return self.tool_call(item)
            case wire.UserMessage():
                return self.user_said(item)
            case wire.AgentMessage() | wire.Plan() | wire.Reasoning() | wire.HookPrompt() | wire.FunctionCallOutput():
                return (at(status_change(status="item_started", detail={"type": str(item.__struct_config__.tag)}), item.id),)
            case wire.ContextCompaction():
                return (at(status_change(status="compacting"), item.id),)
            case wire.EnteredReviewMode() | wire.ExitedReviewMode():
                return (at(status_change(status=str(item.__struct_config__.tag), detail={"review": item.review}), item.id),)
            case wire.WebSearch() | wire.ImageGeneration():  # what is searched for or drawn comes when it is over
                return (tool_progress(tool_call_id=item.id, tool_name=str(item.__struct_config__.tag), status="pending"),)
            case wire.SubAgentActivity() if item.kind != "started":
                return (self.activity(item),)
            case _:
                return self.tool_call(item)

    def item_completed(self, item: Any) -> Iterable[Event]:
        if isinstance(item, wire.CommandExecution) and item.id in self.calls:  # as most of them
            return self.outcome(item.id, self.tool_outcome(item))
        return self.other_completed(item)

    def other_completed(self, item: Any) -> Iterator[Event]:
        match item:
            case wire.AgentMessage():
                citations = as_list(as_object(item.memory_citation).get("entries"))
                yield from self.assistant(item.id, item.text, item.phase, citations)
            case wire.Plan():
                yield from self.assistant(item.id, item.text, "plan")
            case wire.Reasoning():
                yield from self.thought(item.id, item.summary or [], item.content or [])
                if not item.summary and not item.content:
                    yield at(status_change(status="item_completed", detail={"type": "reasoning"}), item.id)
            case wire.UserMessage():
                yield from self.user_said(item)
            case wire.HookPrompt():
                yield self.user(blocks.fragments(item.fragments), "harness", item.id)
            case wire.FunctionCallOutput():
                if item.id not in self.calls:
                    yield from self.call(item.id, item.name, None, tool_kind(item.name, item.namespace))
                yield from self.outcome(item.id, outcomes.output(item.output))
            case wire.ContextCompaction():
                yield self.compaction(self.wire_turn, item.id)
            case wire.EnteredReviewMode() | wire.ExitedReviewMode():
                yield at(status_change(status=f"{item.__struct_config__.tag}_completed"), item.id)
            case wire.WebSearch():
                yield from self.searched(item.id, item.query, item.action, item.results)
            case wire.ImageGeneration():
                outcome = outcomes.image(item.result, item.status, item.saved_path, item.file_id)
                yield from self.pictured(item.id, item.revised_prompt, outcome)
            case wire.SubAgentActivity() if item.kind != "started":
                yield self.activity(item)
            case _:
                if item.id not in self.calls:
                    yield from self.tool_call(item)
                self.spawned(item)
                yield from self.outcome(item.id, self.tool_outcome(item))

    def tool_call(self, item: Any) -> tuple[Event]:
        match item:
            case wire.CommandExecution():
                args = command_arguments(item.command, item.cwd, source=item.source)
                return self.call(item.id, "commandExecution", args, "execute")
            case wire.FileChange():
                return self.call(item.id, "fileChange", {"changes": item.changes}, "edit")
            case wire.McpToolCall():
                return self.call(item.id, item.tool, item.arguments, "mcp", item.server)
            case wire.DynamicToolCall():
                return self.call(item.id, item.tool, item.arguments, "other", item.namespace)
            case wire.CollabAgentToolCall():
                if item.tool in _SPAWNS and self.ours:
                    self.last_spawn = item.id
                args = spoken(item, "id", "type", "tool", "status", "agentsStates")
                return self.call(item.id, item.tool, args, "agent")
            case wire.SubAgentActivity():
                self.parents[item.agent_thread_id] = self.last_spawn = item.id
                return self.call(item.id, "subAgentActivity", spoken(item, "id", "type"), "agent")
            case wire.ImageView():
                return self.call(item.id, "imageView", {"path": item.path}, "read")
            case _:  # wire.Sleep
                return self.call(item.id, "sleep", spoken(item, "id", "type"), "other")

    def tool_outcome(self, item: Any) -> outcomes.Outcome:
        match item:
            case wire.CommandExecution():
                return outcomes.command(item.aggregated_output, item.exit_code, item.status, item.duration_ms)
            case wire.FileChange():
                return outcomes.patch(item.changes, item.status)
            case wire.McpToolCall():
                return outcomes.mcp(item.result, item.error, item.status, item.duration_ms)
            case wire.DynamicToolCall():
                return outcomes.dynamic(item.content_items, item.success, item.status, item.duration_ms)
            case wire.CollabAgentToolCall():
                result = {"receiverThreadIds": item.receiver_thread_ids, "agentsStates": item.agents_states}
                return outcomes.other(result, item.status)
            case wire.ImageView():
                return outcomes.other({"path": item.path}, content=[ImageBlock(path=item.path)])
            case wire.Sleep():
                return outcomes.other(None, duration_ms=item.duration_ms)
            case _:
                return outcomes.other(spoken(item, "id", "type"))

    def spawned(self, item: Any) -> None:
        """Which call started which thread."""
        if isinstance(item, wire.CollabAgentToolCall) and item.tool in _SPAWNS:
            for thread_id in item.receiver_thread_ids or []:
                self.parents.setdefault(thread_id, item.id)

    def activity(self, item: wire.SubAgentActivity) -> Event:
        """What a sub-agent does later: progress of the call that started it."""
        call = self.parents.get(item.agent_thread_id)
        detail = spoken(item, "type")
        if call is None:
            return status_change(status=f"subagent_{item.kind}", detail=detail)
        return tool_progress(tool_call_id=call, status=item.kind, detail=detail)

    def compaction(self, turn_id: str | None, item_id: str | None) -> Event:
        """An item tells of it, and an older notification may tell of it again."""
        if item_id is None and turn_id in self.compacted:
            return status_change(status="compacted", detail={"turnId": turn_id})
        self.compacted.add(turn_id)
        return at(session_lifecycle(subtype="compacted"), item_id)

    def user_item(self, item: responses.Message) -> Iterator[Event]:
        """What the user said is said by its own item."""
        kinds = item.passthrough.content_item_kinds if item.passthrough is not None else None
        if any(str(kind).startswith("user.") for kind in kinds or []):
            yield self.echo(item)
        else:
            yield from super().user_item(item)

    def user_said(self, item: wire.UserMessage) -> Iterator[Event]:
        """What our side sent comes back as an item, twice: known by the client's id, or by its content where there was none."""
        key = item.client_id or item.id
        echo = {"id": item.id, "clientId": item.client_id}
        if key in self.queued:
            self.queued.discard(key)
            yield queue_update(action="sent", item_id=key)
        if item.id in self.said or self.sent(item):
            self.said.add(item.id)
            yield status_change(status="user_message_echo", detail=told(echo))
            return
        self.said.add(item.id)
        author = "human" if self.ours else "agent"
        yield self.user(blocks.to_blocks(item.content), author, key)

    def sent(self, item: wire.UserMessage) -> bool:
        if item.client_id is not None:
            return self.sent_messages.pop(item.client_id, None) is not None
        content = plain(item.content)
        for key, said in self.sent_messages.items():
            if key.startswith("#") and said == content:
                del self.sent_messages[key]
                return True
        return False

    def output(self, params: wire.DeltaParams) -> Event:
        offset = self.written.get(params.item_id, 0)
        self.written[params.item_id] = offset + len(params.delta)
        return tool_output_chunk(tool_call_id=params.item_id, chunk=params.delta, offset=offset)


def plain(content: list[Any]) -> list[Any]:
    """Input without the fields that one side leaves out."""
    dropped = {"text_elements", "detail"}
    return [{key: value for key, value in as_object(part).items() if key not in dropped} for part in msgspec.to_builtins(content)]
