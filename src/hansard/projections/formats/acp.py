"""The Agent Client Protocol, version 1: a session as the ``session/update`` notifications that an agent sends when it loads one.

Every event becomes one update or more, and the last of them carries the event itself in ``_meta.hansard``, all but its verbatim frame.
What the protocol has no word for rides on a ``session_info_update`` that changes nothing. Nothing is asked again: permissions and questions
of the past are such updates too. ``_meta`` also says what clients already look for there: the tool's name, the call a sub-agent works for,
the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hansard import events as ev
from hansard.projections.base import EXTENSION_KEY, Projection
from hansard.projections.block_streams import BlockStreams, Done
from hansard.projections.omissions import skip_except
from hansard.projections.text import block_text, callback_text, event_json, present_fields, result_text

Update = dict[str, Any]

_KINDS = ("read", "edit", "search", "execute", "think", "fetch", "other")
_STATUSES = ("pending", "in_progress", "completed")
_PRIORITIES = ("high", "medium", "low")


class Acp(Projection[Update]):
    """JSON-RPC, a notification a line."""

    handled = frozenset(ev.TYPES)
    skipped = skip_except(handled, {})
    leaves_unknown = None

    def __init__(self, session_id: str | None = None) -> None:
        super().__init__()
        self._session = session_id
        self._speaking = BlockStreams()
        self._open: set[str] = set()
        """Calls without a result."""

    def handle(self, event: ev.Event) -> list[Update]:
        """The notifications of an event. The last carries the event."""
        self._session = self._session or event.session_id or "session"
        updates = list(self._updates(event)) or [{"sessionUpdate": "session_info_update"}]
        meta = _meta(event)
        for update in updates:
            update["_meta"] = {**update["_meta"], **meta} if "_meta" in update else meta.copy()
        updates[-1]["_meta"][EXTENSION_KEY] = event_json(event)
        return [
            {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": self._session, "update": update}} for update in updates
        ]

    def _updates(self, event: ev.Event) -> Iterable[Update]:
        if isinstance(event, ev.AssistantChunk | ev.ThinkingChunk):  # most events are
            block = self._speaking.piece(event)
            return (_chunk(_speech(block.thinking), _text(event.payload.text), block.id),)
        return self._rarer(event)

    def _rarer(self, event: ev.Event) -> Iterator[Update]:
        match event:
            case ev.UserMessage(payload=said):
                for content in _user(said):
                    yield _chunk("user_message_chunk", content, event.id or None)
            case ev.UserAudio(payload=spoken):
                yield _chunk("user_message_chunk", _text(spoken.transcription), event.id or None)
            case ev.AgentCallback(payload=back) if not back.as_result:
                yield _chunk("user_message_chunk", _text(callback_text(back)), event.id or None)
            case ev.AssistantDone() | ev.ThinkingDone():
                yield from self._done(event)
            case ev.ContentBlock(payload=said) if not isinstance(said.block, ev.RawBlock):
                yield _chunk("agent_message_chunk", _content(said.block), event.id or None)
            case ev.ToolCall() | ev.ToolOutputChunk() | ev.ToolProgress() | ev.ToolResult():
                yield from self._tool(event)
            case ev.TurnEnd():
                self._speaking.cut_off(everywhere=True)
            case _:
                yield from _surroundings(event)

    def _done(self, event: Done) -> Iterator[Update]:
        """What its pieces have not said of a block."""
        end = self._speaking.done(event)
        if end.differs:
            self.report.note("a text that is not what its pieces said: the whole of it is in _meta")
        elif end.rest or not end.block.pieces:
            yield _chunk(_speech(end.block.thinking), _text(end.rest), end.block.id)

    def _tool(self, event: ev.ToolCall | ev.ToolOutputChunk | ev.ToolProgress | ev.ToolResult) -> Iterator[Update]:
        name = event.payload.tool_call_id
        match event:
            case ev.ToolCall(payload=call) if name not in self._open:
                self._open.add(name)
                kind = call.kind if call.kind in _KINDS else "other"
                head = {"sessionUpdate": "tool_call", "toolCallId": name, "title": call.title or call.tool_name, "name": call.tool_name}
                meta = present_fields(toolName=call.tool_name, serverId=call.server)
                yield {**head, "kind": kind, "status": "in_progress", "rawInput": call.args, "_meta": meta}
            case ev.ToolOutputChunk(payload=printed) if name in self._open:
                yield {**_more(name), "_meta": {"terminal_output": {"terminal_id": name, "data": printed.chunk}}}
            case ev.ToolProgress(payload=step) if name in self._open:
                shown = [_tool_content(block) for block in step.content or []]
                yield {**_more(name), **present_fields(title=step.title, content=shown or None)}
            case ev.ToolResult(payload=payload):
                if name not in self._open:
                    self.report.note("a result whose call is not open: the call is told without its input")
                    yield {"sessionUpdate": "tool_call", "toolCallId": name, "title": payload.tool_name or name, "status": "in_progress"}
                self._open.discard(name)
                yield {**_more(name), **_ended(payload)}
            case _:
                pass


def _surroundings(event: ev.Event) -> Iterator[Update]:
    """Plan, settings, title and context: what the protocol has words for beside the conversation."""
    match event:
        case ev.PlanUpdate(payload=plan):
            entries = [
                {
                    "content": entry.content,
                    "status": entry.status if entry.status in _STATUSES else "pending",
                    "priority": entry.priority if entry.priority in _PRIORITIES else "medium",
                }
                for entry in plan.entries
            ]
            yield {"sessionUpdate": "plan", "entries": entries}
        case ev.ConfigurationChange(payload=change) if change.commands is not None and all(_is_command(item) for item in change.commands):
            commands = [{"name": item["name"], "description": item["description"]} for item in change.commands]
            yield {"sessionUpdate": "available_commands_update", "availableCommands": commands}
        case ev.ConfigurationChange(payload=change) if mode := change.mode_id or change.permission_mode:
            yield {"sessionUpdate": "current_mode_update", "currentModeId": mode}
        case ev.SessionLifecycle(payload=life) if life.subtype == "renamed" and life.title is not None:
            yield {"sessionUpdate": "session_info_update", "title": life.title}
        case ev.UsageEvent(payload=used) if (
            used.scope == "context" and (used.usage.total_tokens or 0) >= 0 and used.context_window is not None and used.context_window >= 0
        ):
            cost = None if used.cost_usd is None else {"amount": used.cost_usd, "currency": "USD"}
            yield {
                "sessionUpdate": "usage_update",
                "used": used.usage.total_tokens or 0,
                "size": used.context_window,
                **present_fields(cost=cost),
            }
        case _:
            pass


def _meta(event: ev.Event) -> Update:
    meta: Update = {} if event.parent_tool_call_id is None else {"parentToolCallId": event.parent_tool_call_id}
    if event.timestamp >= 0:
        meta["timestamp"] = event.timestamp
    return meta


def _user(said: ev.UserMessagePayload) -> Iterator[Update]:
    """A user's message. A command that was recognised in its text is said by the text."""
    blocks = [block for block in said.content or [] if not isinstance(block, ev.SlashCommandBlock)]
    texts = [block for block in blocks if isinstance(block, ev.TextBlock)]
    if len(texts) in (0, len(blocks)):
        yield _text(said.text)
    yield from (_content(block) for block in blocks if len(texts) < len(blocks))


def _speech(thinking: bool) -> str:
    return "agent_thought_chunk" if thinking else "agent_message_chunk"


def _chunk(kind: str, content: Update, message_id: str | None) -> Update:
    chunk: Update = {"sessionUpdate": kind, "content": content}
    if message_id is not None:
        chunk["messageId"] = message_id
    return chunk


def _more(name: str) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": name}


def _ended(payload: ev.ToolResultPayload) -> Update:
    """A result: its data, and what is shown of it."""
    shown = [_tool_content(block) for block in payload.content or []]
    if not shown and (text := result_text(payload)):
        shown = [{"type": "content", "content": _text(text)}]
    output = payload.result if payload.result is not None else payload.error
    return {"status": "failed" if payload.is_error else "completed", "content": shown, **present_fields(rawOutput=output)}


def _is_command(item: Any) -> bool:
    return isinstance(item, dict) and all(isinstance(item.get(key), str) for key in ("name", "description"))  # pyright: ignore[reportUnknownMemberType]


def _tool_content(block: ev.AnyBlock) -> Update:
    match block:
        case ev.DiffBlock(new_text=str(text)):
            return {"type": "diff", "path": block.path, "newText": text, **present_fields(oldText=block.old_text)}
        case ev.TerminalBlock():
            return {"type": "terminal", "terminalId": block.terminal_id}
        case _:
            return {"type": "content", "content": _content(block)}


def _uri(place: str | None, name: str | None) -> str:
    """An address; a path is one too, and so is a mere name."""
    if place is None:
        return f"{EXTENSION_KEY}:{name or 'unnamed'}"
    return place if ":" in place else f"file://{place}"


def _text(text: str) -> Update:
    return {"type": "text", "text": text}


def _content(block: ev.AnyBlock) -> Update:
    """A block in their words; what they have none for, as text."""
    match block:
        case ev.ImageBlock(data=str(data)):
            return {"type": "image", "data": data, "mimeType": block.media_type or "image/png", **present_fields(uri=block.url)}
        case ev.AudioBlock(data=str(data)):
            return {"type": "audio", "data": data, "mimeType": block.media_type or "audio/wav"}
        case ev.ResourceBlock(text=str(text)):
            return {"type": "resource", "resource": {"uri": block.uri, "text": text, **present_fields(mimeType=block.media_type)}}
        case ev.ResourceBlock(data=str(data)):
            return {"type": "resource", "resource": {"uri": block.uri, "blob": data, **present_fields(mimeType=block.media_type)}}
        case ev.DocumentBlock(text=str(text)):
            return {
                "type": "resource",
                "resource": {"uri": _uri(block.url, block.title), "text": text, **present_fields(mimeType=block.media_type)},
            }
        case ev.DocumentBlock(title=name, url=place) | ev.FileBlock(name=name, url=str(place)) | ev.FileBlock(name=name, path=place):
            uri = _uri(place, name)
            return {"type": "resource_link", "uri": uri, "name": name or uri, **present_fields(mimeType=block.media_type)}
        case ev.ImageBlock(url=str(place)) | ev.ImageBlock(path=str(place)):
            return {"type": "resource_link", "uri": _uri(place, None), "name": place, **present_fields(mimeType=block.media_type)}
        case ev.ResourceBlock():
            about = present_fields(title=block.title, description=block.description, mimeType=block.media_type, size=block.size)
            return {"type": "resource_link", "uri": block.uri, "name": block.name or block.uri, **about}
        case _:
            return _text(block_text(block))
