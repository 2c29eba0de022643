"""ATIF trajectories: one document, a step for each message. Wire notes: README.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from hansard import events as ev
from hansard.adapters.base import Adapter, Context
from hansard.adapters.fields import parse_iso_ms, place_in_message
from hansard.adapters.framing import Document
from hansard.adapters.messages import atif_wire as wire
from hansard.adapters.messages.turns import Turns
from hansard.adapters.usage import make_usage
from hansard.events.lenient import as_int, as_object


class Atif(Adapter):
    """A trajectory. The steps of a subagent come before the result of the call that started it."""

    formats = ("atif",)
    source = "atif"
    framer = Document
    wire = wire.Trajectory
    tag = "schema_version"

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.turns = Turns(self)
        """Whether the steps are copies of those of another trajectory."""

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """It says so itself."""
        return str(message.get("schema_version")).startswith("ATIF-")

    def translate(self, message: wire.Trajectory) -> Iterator[ev.Event]:
        agent = message.agent
        yield ev.session_init(
            agent_id=agent.name, agent_version=agent.version, model=agent.model_name, provider_session_id=message.session_id
        )
        yield from self.steps(message)

    def end_of_stream(self) -> Iterator[ev.Event]:
        """The last turn ends with the document."""
        return self.turns.settle()

    def steps(self, trajectory: wire.Trajectory) -> Iterator[ev.Event]:
        """The steps of one agent, and of the agents it called."""
        below = {one.trajectory_id: one for one in trajectory.subagent_trajectories or []}
        ends = {end.get("after_step"): end for end in map(as_object, as_object(trajectory.extra).get("ends") or [])}
        for number, step in enumerate(trajectory.steps, 1):
            told = parse_iso_ms(step.timestamp)
            self.now = self.now if told is None else told
            yield from self.copy(step.is_copied_context is True)
            yield from self.step(step, number, below)
            end = self.read(ends.get(number), wire.End)
            if end is not None and self.turns.in_main and self.turn is not None:
                yield from self.end_turn(end.status, end.stop_reason)
        for one in below.values():  # nobody pointed at them
            yield from self.inside(one)

    def copy(self, copied: bool) -> Iterator[ev.Event]:
        """Copied context begins or ends: a turn that has a copied step has no new one."""
        if copied != self.replaying:
            if self.turns.in_main:
                yield from self.turns.settle()
            yield from self.start_replay() if copied else self.end_replay()

    def step(self, step: wire.Step, number: int, below: dict[str | None, wire.Trajectory]) -> Iterator[ev.Event]:
        """One step, then what its calls gave back."""
        results = step.observation.results if step.observation is not None else []
        if step.source == "agent":
            yield from self.need_turn()
            name = as_object(step.extra).get("message_id")
            name = name if isinstance(name, str) else f"{self.parent or ''}step-{number}"
            for index, event in enumerate(self.answer(step)):
                yield place_in_message(event, name, index)
            yield from self.spent(step, name)
            self.turns.answered = not step.tool_calls
        elif step.source not in ("user", "system"):
            yield ev.raw(kind=step.source, reason="unknown_type")
        elif step.message or step.source == "user":  # a step of the system may say nothing
            yield from self.turns.prompt(self.blocks(step.message), None if step.source == "user" else "system")
        for result in results:
            for reference in result.subagent_trajectory_ref or []:
                if (one := below.pop(reference.trajectory_id, None)) is not None:
                    yield from self.inside(one, result.source_call_id)
            yield from self.result(result)

    def inside(self, trajectory: wire.Trajectory, call: str | None = None) -> Iterator[ev.Event]:
        """Yield a subagent's steps, under the call whose result points at it, or else under its own id."""
        outer, self.parent = self.parent, call or trajectory.trajectory_id
        for event in self.steps(trajectory):
            event.parent_tool_call_id = event.parent_tool_call_id or self.parent
            yield event
        self.parent = outer

    def answer(self, step: wire.Step) -> Iterator[ev.Event]:
        """What an answer consists of: ATIF has thinking first and calls last."""
        if step.reasoning_content is not None:
            yield ev.thinking_done(text=step.reasoning_content)
        for block in self.blocks(step.message):
            if not isinstance(block, ev.TextBlock):
                yield ev.content_block(block=block)
            elif block.text or not (step.tool_calls or step.reasoning_content):
                yield ev.assistant_done(text=block.text)
        for call in step.tool_calls or []:
            wrapped = as_object(call.extra).get("wrapped") is True
            args = as_object(call.arguments).get("input") if wrapped else call.arguments
            yield ev.tool_call(tool_call_id=call.tool_call_id, tool_name=call.function_name, args=args)

    def spent(self, step: wire.Step, name: str) -> Iterator[ev.Event]:
        """The count of a step; cached tokens are counted in."""
        if step.metrics is None:
            return
        said, extra = step.metrics, as_object(step.metrics.extra)
        count = make_usage(
            said.prompt_tokens,
            said.completion_tokens,
            cache_creation=_number(extra, "cache_creation_input_tokens"),
            cache_read=said.cached_tokens,
            reasoning=_number(extra, "reasoning_tokens"),
        )
        yield place_in_message(ev.usage(scope="message", usage=count, model=step.model_name, cost_usd=said.cost_usd), name)

    def result(self, result: wire.Result) -> Iterator[ev.Event]:
        """What a call gave back. Of a result without an id, `extra` may say whose it was."""
        extra = as_object(result.extra)
        call = result.source_call_id or extra.get("source_call_id")
        if not isinstance(call, str):
            yield ev.content_block(block=ev.TextBlock(str(result.content)))
            return
        if result.content is None and result.subagent_trajectory_ref:
            return  # only says where the sub-agent is
        blocks = None if isinstance(result.content, str) or result.content is None else self.blocks(result.content)
        is_error = extra.get("is_error")
        yield ev.tool_result(
            tool_call_id=call,
            result=result.content,
            content=blocks,
            is_error=is_error if isinstance(is_error, bool) else None,
            exit_code=_number(extra, "exit_code"),
            duration_ms=_number(extra, "duration_ms"),
        )

    def blocks(self, content: Any) -> list[ev.AnyBlock]:
        """A message as blocks."""
        if isinstance(content, str):
            return [ev.TextBlock(content)]
        return [self.block(value) for value in cast("list[Any]", content)] if isinstance(content, list) else []

    def block(self, value: Any) -> ev.AnyBlock:
        """A part as a block."""
        match self.read(value, wire.Parts):
            case wire.Text(text=text):
                return ev.TextBlock(text)
            case wire.Image(source=source):
                return ev.ImageBlock(media_type=source.media_type, path=source.path)
            case wire.Audio(source=source):
                duration = None if source.duration_sec is None else round(source.duration_sec * 1000)
                return ev.AudioBlock(media_type=source.media_type, blob=source.path.removeprefix("blobs/"), duration_ms=duration)
            case _:
                return self.unknown_block(value).payload.block


def _number(fields: dict[str, Any], name: str) -> int | None:
    value = fields.get(name)
    return as_int(value)
