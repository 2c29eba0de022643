"""Repetitions by agents that resume a session. They stay in the log, marked by the adapter (`Event.replay`), and nothing counts them.

A log of version 0.1 has only the two ends of a replay. `find_unmarked` finds the events between them, and `Log.read` marks those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy

from hansard.events.content import AnyBlock, ResourceBlock, TextBlock
from hansard.events.summary import is_launch
from hansard.events.types import (
    AgentCallback,
    AgentMessage,
    AssistantChunk,
    AssistantDone,
    AudioChunk,
    AudioDone,
    ContentBlock,
    Event,
    PlanUpdate,
    Result,
    SessionLifecycle,
    StatusChange,
    TeamMessage,
    TeamStateChange,
    TeamTaskUpdate,
    ThinkingChunk,
    ThinkingDone,
    ToolCall,
    ToolInputChunk,
    ToolOutputChunk,
    ToolProgress,
    ToolResult,
    ToolUseSummary,
    TurnEnd,
    TurnStart,
    UsageEvent,
    UserAudio,
    UserMessage,
    is_main_agent,
)

MAX_SEQ = 2**63 - 1
"""Where a replay ends that was cut off, until the next launch."""
HANDOFF_URI = "hansard:conversation"
"""The resource by which version 0.1 sent the conversation before it along with a message to an ACP agent that took over."""
HANDOFF_BEGINNING = "A conversation between a user and you, the assistant, as far as it has got. Go on where it ends.\n\n<conversation>\n"
"""How the text begins that tells an agent that takes over the conversation before it. It is sent along with a message."""
REPLAY_STARTED, REPLAY_ENDED = "replay_started", "replay_ended"

REPEATED: frozenset[type[Event]] = frozenset(
    (
        *(TurnStart, TurnEnd, UserMessage, UserAudio, AssistantChunk, AssistantDone, ThinkingChunk, ThinkingDone, ContentBlock),
        *(ToolCall, ToolInputChunk, ToolOutputChunk, ToolProgress, ToolResult, ToolUseSummary, AgentMessage, AgentCallback),
        *(AudioChunk, AudioDone, PlanUpdate, Result, StatusChange, UsageEvent, TeamMessage, TeamTaskUpdate, TeamStateChange),
    )
)
"""The types that are a repetition within a replay. Settings and requests hold now, and an error in a replay is new."""
REPEATED_TYPES = frozenset(str(kind.__struct_config__.tag) for kind in REPEATED)
_CONVERSATION = (TurnStart, UserMessage, UserAudio, AssistantDone)
BOUNDARY_TYPES = frozenset(str(kind.__struct_config__.tag) for kind in (SessionLifecycle, *_CONVERSATION))
"""The types that `find_unmarked` needs."""


def without_replays(events: Iterable[Event]) -> Iterator[Event]:
    """Yields the events that are not a repetition."""
    return (without_handoff(event) for event in events if not event.replay)


def without_handoff(event: Event) -> Event:
    """Returns the event; of a message, without the conversation that was sent along with it at a hand-off."""
    if type(event) is not UserMessage or not event.payload.content or not any(map(_is_handoff, event.payload.content)):
        return event
    event = copy(event)
    event.payload = copy(event.payload)
    event.payload.content = [block for block in event.payload.content or [] if not _is_handoff(block)]
    return event


def _is_handoff(block: AnyBlock) -> bool:
    match block:
        case ResourceBlock(uri=address):
            return address == HANDOFF_URI
        case TextBlock(text=text):
            return text.startswith(HANDOFF_BEGINNING)
        case _:
            return False


def is_conversation(event: Event) -> bool:
    """Returns whether the event is part of the main agent's conversation: a replay after it is a repetition."""
    return isinstance(event, _CONVERSATION) and is_main_agent(event)


def has_marks(header: Event | None) -> bool:
    """Returns whether a log that begins with this event has marks. One of version 0.1 has only the ends of each replay."""
    return isinstance(header, SessionLifecycle) and not (header.payload.writer_version or "0.1.").startswith("0.1.")


def find_unmarked(events: Iterable[Event]) -> list[range]:
    """Returns the seqs between the ends of each replay. The only copy of a conversation is not a repetition."""
    found: list[range] = []
    recorded = replaying = False
    for event in events:
        recorded = recorded or is_conversation(event)
        before, replaying = replaying, _is_replaying(event, replaying, recorded)
        if replaying and not before:
            found.append(range(event.seq, MAX_SEQ))
        elif before and not replaying:
            found[-1] = range(found[-1].start, event.seq)
    return found


def mark_all(events: Iterable[Event]) -> Iterator[Event]:
    """Yields all events of a log from its beginning, with marks, also if it is of version 0.1."""
    rest = iter(events)
    header = next(rest, None)
    if header is None:
        return
    yield header
    if has_marks(header):
        yield from rest
        return
    recorded = replaying = False
    for event in rest:
        recorded = recorded or is_conversation(event)
        replaying = _is_replaying(event, replaying, recorded)
        event.replay = event.replay or (replaying and type(event) in REPEATED)
        yield event


def _is_replaying(event: Event, before: bool, recorded: bool) -> bool:
    """Returns whether an agent repeats the conversation after this event. A launch ends a replay whose agent was killed."""
    if not isinstance(event, SessionLifecycle):
        return before
    match event.payload.subtype:
        case "replay_started":
            return recorded
        case "replay_ended":
            return False
        case _:
            return before and not is_launch(event)


def mark(event: Event, unmarked: Sequence[range]) -> Event:
    """Marks an event of a log of version 0.1 if it is a repetition, and returns it."""
    if type(event) in REPEATED and in_replay(event.seq, unmarked):
        event.replay = True
    return event


def in_replay(seq: int, unmarked: Sequence[range]) -> bool:
    """Returns whether an event with this seq is in one of the replays."""
    return any(seq in replay for replay in unmarked)
