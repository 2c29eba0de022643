"""Parrot, ``parrot --json``: one JSON object per line, both ways. Wire notes: README.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from hansard import Adapter
from hansard.adapters.fields import input_hash, place_in_message
from hansard.events import (
    ErrorInfo,
    Event,
    Interrupt,
    PermissionOption,
    PermissionResponse,
    TurnStatus,
    Usage,
    UserMessage,
    assistant_done,
    interrupt,
    permission_request,
    permission_response,
    session_init,
    thinking_done,
    tool_call,
    tool_result,
    usage,
    user_message,
)
from hansard_parrot import wire

ENDS: dict[str, TurnStatus] = {"done": "completed", "stopped": "interrupted"}
OPTIONS = [PermissionOption("yes", "Yes", "allow_once"), PermissionOption("no", "No", "reject_once")]


class Parrot(Adapter):
    """A parrot, and what our side says to it."""

    formats = ("parrot-json",)
    source = "parrot"
    wire, sent_wire = wire.Received, wire.Sent
    tag = "kind"

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """The first line; nobody else sits on a perch."""
        return message.get("kind") == "hello" and "perch" in message

    def translate(self, message: Any) -> Iterator[Event]:
        match message:
            case wire.Hello():
                yield session_init(agent_id="parrot", agent_version=message.version, model=message.model, cwd=message.perch)
            case wire.Say():
                yield from self.need_turn()
                for index, block in enumerate(message.blocks):
                    yield place_in_message(self.block(block), message.id, index)
            case wire.Use():
                yield from self.need_turn()
                yield tool_call(tool_call_id=message.id, tool_name=message.tool, args=message.input)
            case wire.Ask():
                yield self.question(message)
            case wire.Did():
                yield tool_result(tool_call_id=message.id, result=message.output, is_error=message.failed)
            case wire.Bye():
                yield from self.end(message)

    def translate_sent(self, message: Any) -> Iterator[Event]:
        match message:
            case wire.Prompt():
                yield from self.start_turn("user")
                yield user_message(text=message.text)
            case wire.Answer():
                yield permission_response(request_id=message.id, decision="allow" if message.yes else "deny")
            case wire.Stop():
                yield interrupt(reason="user_cancel")

    def encode(self, command: Event) -> bytes:
        match command:
            case UserMessage():
                return line(kind="prompt", text=command.payload.text)
            case PermissionResponse():
                return line(kind="answer", id=command.payload.request_id, yes=command.allowed)
            case Interrupt():
                return line(kind="stop")
            case _:
                return super().encode(command)  # says that the parrot has no words for it

    def block(self, item: Any) -> Event:
        match self.read(item, wire.Block):
            case wire.Text(text=text):
                return assistant_done(text=text)
            case wire.Thought(text=text):
                return thinking_done(text=text)
            case _:
                return self.unknown_block(item)

    def question(self, message: wire.Ask) -> Event:
        call = self.open.tools.get(message.use)
        wants = None if call is None else call.payload
        return permission_request(
            request_id=message.id,
            options=OPTIONS,
            input_hash=input_hash(None if wants is None else wants.args),
            tool_call_id=message.use,
            tool_name=None if wants is None else wants.tool_name,
            input=None if wants is None else wants.args,
            description=message.why,
        )

    def end(self, message: wire.Bye) -> Iterator[Event]:
        if message.seeds is not None:
            yield usage(scope="turn", usage=Usage(input_tokens=message.seeds.heard, output_tokens=message.seeds.said))
        status = ENDS.get(message.code, "error")
        error = None if status != "error" else ErrorInfo(code="unknown", message=message.code, provider_code=message.code)
        yield from self.end_turn(status, stop_reason=message.code, error=error)


def line(**fields: Any) -> bytes:
    """A line of the wire."""
    return msgspec.json.encode(fields) + b"\n"
