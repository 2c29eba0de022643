"""Sessions on the record as transcripts of Inspect Scout, which scans them: ``pip install inspect-scout``.

    async with transcripts_db("./transcripts") as db:
        await db.insert(transcripts(hansard.open("~/.hansard")))

A source of Scout's is an async iterator of ``Transcript``; this is one, with the options of its own. A transcript has the messages of the
main agent, with what it thought and what it called. Sub-agents speak elsewhere: of them it has the call and its result. Secrets are masked.
"""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingModuleSource=false
# (Scout and what comes with it is 600 MB, and only in the environment of `make test-integrations`)

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hansard.events import Event, TurnEnd, is_main_agent
from hansard.events.times import to_datetime
from hansard.projections import project
from hansard.projections.formats.standard_messages import StandardMessage
from hansard.projections.redaction.redact import redact
from hansard.projections.text import json_text
from hansard.store import SessionInfo, Store

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage
    from inspect_scout import Transcript

SOURCE = "hansard"


async def transcripts(
    store: Store,
    session_id: str | None = None,
    from_time: datetime | None = None,
    to_time: datetime | None = None,
    limit: int | None = None,
) -> AsyncIterator[Transcript]:
    """Yields the sessions of a store that have messages, the one that changed last first. They are read in threads."""
    count = 0
    for info in await asyncio.to_thread(store.sessions):
        if info.problem is not None or not _wanted(info, session_id, from_time, to_time):
            continue
        if limit is not None and count >= limit:
            return
        made = await asyncio.to_thread(_read_transcript, store, info)
        if made.messages:
            count += 1
            yield made


def _read_transcript(store: Store, info: SessionInfo) -> Transcript:
    return transcript(info, store[info.id].conversation())


def transcript(info: SessionInfo, events: Iterable[Event]) -> Transcript:
    """One session."""
    from inspect_scout import Transcript

    kept = list(redact(events))
    main = [event for event in kept if is_main_agent(event)]
    messages = [said for message in project(main, "standard-messages") for said in _messages(message)]
    summary = next(iter(project(kept, "summary")))
    ended = next((event.payload for event in reversed(main) if isinstance(event, TurnEnd)), None)
    return Transcript(
        transcript_id=info.log_id or info.id,
        source_type=SOURCE,
        source_id=info.id,
        date=None if summary.created is None else to_datetime(summary.created).isoformat(),
        agent=summary.agent_id,
        model=summary.model,
        message_count=len(messages),
        total_tokens=summary.total_tokens,
        error=None if ended is None or ended.error is None else ended.error.message,
        metadata={
            "title": summary.title,
            "format": info.format,
            "status": summary.turn_status,
            "turns": summary.turns,
            "cost_usd": summary.cost_usd,
        },
        messages=messages,
    )


def _wanted(info: SessionInfo, session_id: str | None, from_time: datetime | None, to_time: datetime | None) -> bool:
    if session_id is not None and info.id != session_id:
        return False
    when = (info.updated or 0) / 1000
    return (from_time is None or when >= from_time.timestamp()) and (to_time is None or when < to_time.timestamp())


def _messages(message: StandardMessage) -> Iterator[ChatMessage]:
    from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ChatMessageUser, ContentReasoning, ContentText
    from inspect_ai.tool import ToolCall, ToolCallError

    said: list[Any] = []
    calls: list[Any] = []
    for number, block in enumerate(message["content"]):
        match block["type"]:
            case "thinking":
                said.append(ContentReasoning(reasoning=block["thinking"], signature=block.get("signature")))
            case "tool_use":
                given = block["input"]
                calls.append(
                    ToolCall(id=block["id"], function=block["name"], arguments=given if isinstance(given, dict) else {"input": given})
                )
            case "tool_result":
                problem = ToolCallError("unknown", _words(block)) if block.get("is_error") else None
                name = f"{message['id']}-{number}"
                yield ChatMessageTool(id=name, content=_words(block), tool_call_id=block["tool_use_id"], error=problem)
            case _:
                said.append(ContentText(text=block["text"]))
    if message["role"] == "assistant" and (said or calls):
        yield ChatMessageAssistant(id=message["id"], content=said, tool_calls=calls or None, model=message["metadata"].get("model"))
    elif said:
        yield ChatMessageUser(id=message["id"], content=said)


def _words(block: dict[str, Any]) -> str:
    """What a tool gave back, as text: its texts where it has blocks, else whatever JSON it is."""
    content = block.get("content")
    if isinstance(content, list) and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in content):
        return "\n".join(part["text"] for part in content)
    return "" if content is None else json_text(content)
