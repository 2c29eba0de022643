"""A session as one ATIF trajectory: a step for each message, results with the step that called, each sub-agent as a trajectory inside.

The version is the lowest that carries the content. Pictures and sound are named (``blobs/`` and their SHA-256), never inline.
What a fork or a resumed session says again is copied context: its steps say so, and the totals do not count it.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from hansard.events import Event, SessionLifecycle, UsageEvent, UsagePayload
from hansard.events.content import AnyBlock, AudioBlock, ImageBlock, TextBlock, ThinkingBlock, ToolUseBlock
from hansard.events.lineage import Lineage, recorded_lineage
from hansard.events.times import to_datetime
from hansard.projections.base import Projection
from hansard.projections.block_json import spelled
from hansard.projections.conversation import TYPES, AnyItem, Conversation, InputMessage, LateUsage, OutputMessage, ToolReturn, TurnEnded
from hansard.projections.media import PICTURES
from hansard.projections.omissions import BOOKKEEPING, STREAMING, skip_except
from hansard.projections.session_context import EventContext
from hansard.projections.text import block_text, prompt_tokens, result_text, whole_characters

Json = dict[str, Any]

VERSION = "ATIF-v1.7"
WITH_AUDIO = "ATIF-v1.8"
SOUNDS = frozenset(
    {"audio/wav", "audio/mpeg", "audio/mp4", "audio/aac", "audio/ogg", "audio/flac", "audio/webm", "audio/aiff"},
)
LAST_MOMENT = 253_402_300_799_999
"""The end of the year 9999: no later time has an ISO form."""
DEEPEST = 32
"""So many trajectories stand one inside the other: readers of JSON and of models follow no deeper than some hundred values."""
_PICTURE_ENDS = {"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}


class Lane(Struct):
    """The steps of one agent."""

    agent: Json
    steps: list[Json] = field(default_factory=list[Json])
    seqs: list[int] = field(default_factory=list[int])
    """The event that each step begins with."""
    ends: list[Json] = field(default_factory=list[Json])
    errors: list[Json] = field(default_factory=list[Json])


class Atif(Projection[Json]):
    """One document, made when the session is over: a late result belongs to an early step."""

    output = "document"
    handled = TYPES | {"error", "session_lifecycle"}
    skipped = skip_except(handled, STREAMING | BOOKKEEPING)

    def __init__(self) -> None:
        super().__init__()
        self._conversation = Conversation()
        self._around = EventContext()
        self._lanes: dict[str | None, Lane] = {}
        self._calls: dict[str, tuple[str | None, Json]] = {}
        """The lane and the step of each call."""
        self._answers: dict[tuple[str | None, str], Json] = {}
        """The steps by the message they were, for counts that come late."""
        self._session: str | None = None
        self._lineage: Lineage | None = None
        self._copied = False
        """Whether what is said now was said before, in the session that this one goes on from."""
        self._audio = False

    def handle(self, event: Event) -> Iterator[Json]:
        """Nothing yet."""
        self._around.see(event)
        self._session = self._session or self._around.session_id(event)
        if isinstance(event, UsageEvent) and event.payload.scope != "message":
            self.skip(event, "not the count of one message")
        elif isinstance(event, SessionLifecycle):
            self._life(event)
        elif event.type == "error":
            lane = self._lane(event)
            lane.errors.append({"after_step": len(lane.steps)} | spelled(event.payload))
        else:
            for item in self._conversation.feed(event):
                self._item(item)
        return iter(())

    def finish(self) -> Iterator[Json]:
        """The trajectory."""
        self._settle()
        main = self._lanes.setdefault(None, Lane({}))
        main.agent = self._agent()
        if not main.steps:
            self.report.note("a trajectory has steps: an empty one says that nothing was said")
            self._step(main, None, "system", "")
        documents = {name: self._trajectory(name, lane) for name, lane in self._lanes.items()}
        for name, above in self._placed():
            documents[above].setdefault("subagent_trajectories", []).append(documents[name])
        yield whole_characters(documents[None], self.report)

    # ---- steps

    def _life(self, event: SessionLifecycle) -> None:
        """What begins or ends here may be history that is said again."""
        word = event.payload.subtype
        self._lineage = recorded_lineage(event) or self._lineage
        if word not in ("replay_started", "replay_ended"):
            self.skip(event, BOOKKEEPING[event.type])
            return
        self._settle()
        self._copied = word == "replay_started"

    def _settle(self) -> None:
        """What is open is complete."""
        for item in self._conversation.close_all():
            self._item(item)

    def _item(self, item: AnyItem) -> None:
        lane = self._lane(item.first)
        match item:
            case InputMessage():
                self._step(lane, item.first, "system" if item.author == "harness" else "user", self._content(item.blocks))
            case OutputMessage():
                self._answer(lane, item)
            case ToolReturn():
                self._returned(lane, item)
            case LateUsage():
                self._spent(item)
            case TurnEnded(payload=end):
                lane.ends.append({"after_step": len(lane.steps)} | spelled(end))

    def _step(self, lane: Lane, event: Event | None, source: str, message: Any) -> Json:
        step: Json = {"step_id": len(lane.steps) + 1}
        if event is not None and 0 < event.timestamp <= LAST_MOMENT:
            step["timestamp"] = to_datetime(event.timestamp).isoformat(timespec="milliseconds")
        step |= {"source": source, "message": message}
        if self._copied:
            step["is_copied_context"] = True
        lane.steps.append(step)
        lane.seqs.append(0 if event is None else event.seq)
        return step

    def _answer(self, lane: Lane, answer: OutputMessage) -> None:
        thoughts = [block for block in answer.blocks if isinstance(block, ThinkingBlock)]
        calls = [block for block in answer.blocks if isinstance(block, ToolUseBlock)]
        said = [block for block in answer.blocks if not isinstance(block, ThinkingBlock | ToolUseBlock)]
        step = self._step(lane, answer.first, "agent", self._content(said))
        if answer.model is not None:
            step["model_name"] = answer.model
        if thoughts:
            step["reasoning_content"] = "\n\n".join(thought.text for thought in thoughts)
        if calls:
            step["tool_calls"] = [self._call(answer.lane, call, step) for call in calls]
        count = next((event.payload for event in answer.events if isinstance(event, UsageEvent)), None)
        if count is not None:
            step["metrics"] = _metrics(count, answer.first.source)
        step["llm_call_count"] = 1
        sealed = [spelled(thought) for thought in thoughts if thought.signature or thought.redacted]
        extra: Json = {"message_id": answer.id, "interrupted": bool(answer.interrupted), "sealed_reasoning": sealed}
        if kept := {name: value for name, value in extra.items() if value}:
            step["extra"] = kept
        if answer.id is not None:
            self._answers[answer.lane, answer.id] = step

    def _call(self, lane: str | None, call: ToolUseBlock, step: Json) -> Json:
        self._calls[call.id] = (lane, step)
        said: Json = {"tool_call_id": call.id, "function_name": call.name, "arguments": call.input}
        if not isinstance(call.input, dict):
            self.report.note("arguments that are no object are wrapped as {input: …}")
            said |= {"arguments": {"input": call.input}, "extra": {"wrapped": True}}
        return said

    def _returned(self, lane: Lane, item: ToolReturn) -> None:
        got = item.payload
        result: Json = {"source_call_id": got.tool_call_id, "content": self._content(got.content) if got.content else result_text(got)}
        about: Json = {"is_error": got.is_error, "exit_code": got.exit_code, "duration_ms": got.duration_ms}
        if extra := {name: value for name, value in about.items() if value is not None}:
            result["extra"] = extra
        _, step = self._calls.get(got.tool_call_id, (None, None))
        if step is None:
            self.report.note("a result of a call that nobody saw is a step of the system")
            step = self._step(lane, item.first, "system", "")
            del result["source_call_id"]
            result["extra"] = extra | {"source_call_id": got.tool_call_id}
        step.setdefault("observation", {"results": []})["results"].append(result)

    def _spent(self, item: LateUsage) -> None:
        event = item.first
        step = self._answers.get((event.parent_tool_call_id, event.response_id or ""))
        if step is None:
            step = self._step(self._lane(event), event, "agent", "") | {"llm_call_count": 1}
            self._lane(event).steps[-1] = step
        if "metrics" in step:
            self.skip(event, "its step has a count already")
        else:
            step["metrics"] = _metrics(item.payload, event.source)

    # ---- content

    def _content(self, blocks: Sequence[AnyBlock]) -> str | list[Json]:
        """Text alone is a string; several blocks are parts."""
        parts = [part for block in blocks for part in self._parts(block)]
        return "".join(part["text"] for part in parts) if not parts or [part["type"] for part in parts] == ["text"] else parts

    def _parts(self, block: AnyBlock) -> Iterator[Json]:
        match block:
            case ImageBlock() if (source := self._picture(block)) is not None:
                yield {"type": "image", "source": source}
            case AudioBlock() if block.media_type in SOUNDS and (path := self._place_of(block)) is not None:
                self._audio = True
                seconds = {} if block.duration_ms is None else {"duration_sec": max(0, block.duration_ms) / 1000}
                yield {"type": "audio", "source": {"media_type": block.media_type, "path": path} | seconds}
                if block.transcript is not None:
                    yield _text(block.transcript)
            case _:
                if not isinstance(block, TextBlock):
                    self.report.note("a block that is neither text, a picture nor sound is told in words")
                yield _text(block_text(block))

    def _picture(self, image: ImageBlock) -> Json | None:
        path = self._place_of(image) or image.url or image.path
        ending = (path or "").rpartition(".")[2].lower()
        kind = image.media_type or _PICTURE_ENDS.get(ending)
        return {"media_type": kind, "path": path} if path and kind in PICTURES and not path.startswith("data:") else None

    def _place_of(self, block: ImageBlock | AudioBlock) -> str | None:
        if block.blob is not None:
            return f"blobs/{block.blob}"
        if block.data is None:
            return None
        self.report.note("inline data is named by its SHA-256, not carried")
        return f"blobs/{sha256(_bytes(block.data)).hexdigest()}"

    # ---- the document

    def _lane(self, event: Event) -> Lane:
        name = event.parent_tool_call_id
        if name not in self._lanes:
            self._lanes[name] = Lane(self._agent())
        return self._lanes[name]

    def _agent(self) -> Json:
        agent: Json = {"name": self._around.agent or "unknown", "version": self._around.agent_version or "unknown"}
        return agent if self._around.model is None else agent | {"model_name": self._around.model}

    def _placed(self) -> Iterator[tuple[str, str | None]]:
        """Every sub-agent, and the lane in whose trajectory its own stands: that of its caller, if that is known and not too deep."""
        depths: dict[str | None, int] = {None: 0}
        for lane in self._lanes:
            path: list[str] = []
            on_path: set[str | None] = set()
            while lane is not None and lane not in depths and lane not in on_path:  # up to a lane that has its place, or around a ring
                path.append(lane)
                on_path.add(lane)
                lane = self._caller(lane)
            for name in reversed(path):
                above = self._place_for(name, depths)
                depths[name] = depths[above] + 1
                yield name, above

    def _place_for(self, name: str, depths: dict[str | None, int]) -> str | None:
        above = self._caller(name)
        if name not in self._calls or above not in depths:
            self.report.note("a sub-agent that nobody is known to have called stands in the main trajectory")
        elif depths[above] >= DEEPEST:
            self.report.note(f"a sub-agent more than {DEEPEST} levels down stands in the main trajectory")
        else:
            self._point_at(name)
            return above
        return None

    def _caller(self, name: str) -> str | None:
        """The lane of the call that started a sub-agent; the main one if nobody saw it."""
        return self._calls[name][0] if name in self._calls else None

    def _point_at(self, name: str) -> None:
        """The result of a call points at the trajectory of the sub-agent that it started."""
        results: list[Json] = self._calls[name][1].setdefault("observation", {"results": []})["results"]
        if all(result.get("source_call_id") != name for result in results):
            results.append({"source_call_id": name})
        result = next(result for result in results if result.get("source_call_id") == name)
        result["subagent_trajectory_ref"] = [{"trajectory_id": name}]

    def _trajectory(self, name: str | None, lane: Lane) -> Json:
        document: Json = {"schema_version": WITH_AUDIO if self._audio else VERSION}
        if self._session:
            document["session_id"] = self._session
        if name is not None:
            document["trajectory_id"] = name
        if self._lineage is not None and name is None:
            for step, seq in zip(lane.steps, lane.seqs, strict=True):
                step |= {"is_copied_context": True} if self._lineage.is_copied(seq) else {}
        document |= {"agent": lane.agent, "steps": lane.steps, "final_metrics": _totals(lane.steps)}
        origin = _origin(self._lineage) if self._lineage is not None and name is None else None
        if extra := {key: value for key, value in (("lineage", origin), ("ends", lane.ends), ("errors", lane.errors)) if value}:
            document["extra"] = extra
        return document


def _origin(lineage: Lineage) -> Json:
    """The parent of the session, and the seqs of the copies."""
    return spelled(replace(lineage, copied=(), open=())) | {"copied": [[first, last] for first, last in lineage.copied]}


def _metrics(count: UsagePayload, source: str | None) -> Json:
    usage = count.usage
    extra = {
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "service_tier": usage.service_tier,
    }
    told: Json = {
        "prompt_tokens": prompt_tokens(usage, source),
        "completion_tokens": usage.output_tokens,
        "cached_tokens": usage.cache_read_input_tokens,
        "cost_usd": count.cost_usd,
        "extra": _known(extra) or None,
    }
    return _known(told)


def _totals(steps: list[Json]) -> Json:
    names = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")
    said = [step["metrics"] for step in steps if "metrics" in step and "is_copied_context" not in step]
    counted = {name: [metrics[name] for metrics in said if name in metrics] for name in names}
    return {f"total_{name}": sum(numbers) for name, numbers in counted.items() if numbers} | {"total_steps": len(steps)}


def _known(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _bytes(data: str) -> bytes:
    try:
        return b64decode(data)
    except ValueError:
        return data.encode("utf-8", "surrogatepass")


def _text(text: str) -> Json:
    return {"type": "text", "text": text}
