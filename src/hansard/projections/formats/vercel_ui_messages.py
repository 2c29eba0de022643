"""A session as a list of UI messages (``ai`` 5 to 7), what a page of Vercel's AI SDK begins with: the stream, folded, and the questions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hansard.events import Event, UserMessage
from hansard.events.content import FileBlock, ImageBlock
from hansard.projections.base import EXTENSION_KEY, Projection
from hansard.projections.formats.vercel_ui import Chunk, VercelUi
from hansard.projections.text import image_url, present_fields, whole_payload

Message = dict[str, Any]
Part = dict[str, Any]


class _Stream(VercelUi):
    """The stream, with the user's words in it."""

    def user_message(self, event: UserMessage) -> Iterator[Chunk]:
        yield {"type": "user", "message": _user(event, event.seq or self.report.events)}


class VercelUiMessages(Projection[Message]):
    """Each message when it is complete."""

    output = "array"
    handled = VercelUi.handled
    skipped = VercelUi.skipped
    leaves_unknown = None

    def __init__(self) -> None:
        super().__init__()
        self._stream = _Stream()
        self._stream.report = self.report
        self._folded: Folded | None = None

    def handle(self, event: Event) -> Iterator[Message]:
        """The messages that are complete with this event."""
        yield from self._fold(self._stream.handle(event))

    def finish(self) -> Iterator[Message]:
        """The last message."""
        yield from self._fold(self._stream.finish())

    def _fold(self, chunks: Iterable[Chunk]) -> Iterator[Message]:
        for chunk in chunks:
            if chunk["type"] == "user":
                yield chunk["message"]
            elif chunk["type"] == "start":
                self._folded = Folded(chunk)
            elif self._folded is not None:
                self._folded.add(chunk)
                if chunk["type"] in ("finish", "abort", "error"):
                    yield self._folded.message
                    self._folded = None


class Folded:
    """What the SDK's reader makes of the chunks of one message."""

    def __init__(self, start: Chunk) -> None:
        self.parts: list[Part] = []
        self.metadata: dict[str, Any] = dict(start["messageMetadata"][EXTENSION_KEY])
        self.message: Message = {
            "id": start["messageId"],
            "metadata": {EXTENSION_KEY: self.metadata},
            "role": "assistant",
            "parts": self.parts,
        }
        self._texts: dict[tuple[str, str], Part] = {}
        self._tools: dict[str, Part] = {}

    def add(self, chunk: Chunk) -> None:
        """Take a chunk over."""
        kind = chunk["type"]
        word, _, what = kind.rpartition("-")
        if kind == "start-step":
            self.parts.append({"type": "step-start"})
        elif kind == "file" or kind.startswith("data-"):
            self.parts.append(chunk)
        elif word in ("text", "reasoning"):
            self._text(word, what, chunk)
        elif kind.startswith("tool-"):
            self._tool(kind, chunk)
        if "messageMetadata" in chunk:
            self.metadata.update(chunk["messageMetadata"][EXTENSION_KEY])

    def _text(self, word: str, what: str, chunk: Chunk) -> None:
        if what == "start":
            name = {"id": chunk["id"]} if word == "reasoning" else {}
            part: Part = {"type": word, **name, "text": "", "state": "streaming"}
            self._texts[word, chunk["id"]] = part
            self.parts.append(part)
            return
        part = self._texts[word, chunk["id"]]
        if what == "delta":
            part["text"] += chunk["delta"]
        else:
            part |= {"state": "done"} | present_fields(providerMetadata=chunk.get("providerMetadata"))
            del self._texts[word, chunk["id"]]

    def _tool(self, kind: str, chunk: Chunk) -> None:
        if kind == "tool-approval-response":
            part = next(part for part in self._tools.values() if part.get("approval", {}).get("id") == chunk["approvalId"])
            part["state"] = "approval-responded"
            part["approval"] |= {"approved": chunk["approved"]} | present_fields(reason=chunk.get("reason"))
            return
        part = self._tools.get(chunk["toolCallId"]) or self._new_tool(chunk)
        part |= {name: chunk[name] for name in ("title", "toolMetadata") if name in chunk}
        match kind:
            case "tool-input-available":
                part |= {"state": "input-available", "toolName": chunk["toolName"], "input": chunk["input"]}
            case "tool-input-error":
                part |= {"state": "output-error", "toolName": chunk["toolName"], "input": chunk["input"], "errorText": chunk["errorText"]}
            case "tool-approval-request":
                part["state"] = "approval-requested"
                part["approval"] = {"id": chunk["approvalId"]} | present_fields(requestReason=chunk.get("reason"))
            case "tool-output-available":
                part |= {"state": "output-available", "output": chunk["output"]}
            case "tool-output-error":
                part |= {"state": "output-error", "errorText": chunk["errorText"]}
            case "tool-output-denied":
                part["state"] = "output-denied"
            case _:  # an input that is being written: the whole of it comes
                pass

    def _new_tool(self, chunk: Chunk) -> Part:
        part: Part = {"type": "dynamic-tool", "toolName": chunk["toolName"], "toolCallId": chunk["toolCallId"], "state": "input-streaming"}
        self._tools[chunk["toolCallId"]] = part
        self.parts.append(part)
        return part


def _user(event: UserMessage, number: int) -> Message:
    """A user's message; what is neither text nor a file that a page can show is in the metadata."""
    said = event.payload
    parts: list[Part] = [{"type": "text", "text": said.text}]
    for block in said.content or []:
        if isinstance(block, ImageBlock) and (url := image_url(block)):
            parts.append({"type": "file", "mediaType": block.media_type or "image/png", "url": url})
        elif isinstance(block, FileBlock) and block.data is not None and block.media_type is not None:
            file = {"type": "file", "mediaType": block.media_type, "url": f"data:{block.media_type};base64,{block.data}"}
            parts.append({**file, **present_fields(filename=block.name)})
    about = {name: value for name, value in whole_payload(event).items() if name not in ("text", "content")}
    others = [block for block in whole_payload(event).get("content", ()) if block.get("type") not in ("text", "image", "file")]
    about |= present_fields(seq=event.seq or None, timestamp=event.timestamp if event.timestamp >= 0 else None, content=others or None)
    return {"id": f"{event.id or 'user'}:{number}", "role": "user", "metadata": {EXTENSION_KEY: about}, "parts": parts}
