"""Speech in ``codex app-server``. Two generations of notifications carry the same transcript; each text becomes an event once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hansard import events as ev
from hansard.adapters.codex.deduplication import Deduplicator
from hansard.adapters.codex.fields import without_empty
from hansard.adapters.fields import declared_fields, place_in_message
from hansard.events.lenient import as_object


class Realtime:
    """A conversation by voice."""

    def __init__(self, seen: Deduplicator) -> None:
        self.seen = seen
        self.chunks = 0
        """How many pieces of audio have come."""

    def translate(self, method: str, params: Any) -> Iterator[ev.Event]:
        """Yield the events of a notification ``thread/realtime/…``."""
        match method:
            case "thread/realtime/transcript/delta" if params.role == "assistant":
                yield ev.AssistantChunk(payload=ev.TextPayload(params.delta), response_id=self.answer_id, block_index=0)
            case "thread/realtime/transcript/delta":
                yield ev.status_change(status="transcript_delta", detail=declared_fields(params, "thread_id"))
            case "thread/realtime/transcript/done":
                yield self.transcript(params.role, params.text)
            case "thread/realtime/item/completed":
                item = as_object(params.item)
                text, role = item.get("text"), item.get("role")
                if isinstance(text, str) and isinstance(role, str):
                    yield self.transcript(role, text)
                else:
                    yield ev.status_change(status="realtime_item_completed", detail=item)
            case "thread/realtime/outputAudio/delta":
                audio = params.audio
                kind = f"audio/pcm;rate={audio.sample_rate};channels={audio.num_channels}"
                yield place_in_message(ev.audio_chunk(seq=self.chunks, data=audio.data, media_type=kind), audio.item_id)
                self.chunks += 1
            case "thread/realtime/error":
                yield ev.error(code="unknown", message=params.message, error_source="realtime")
            case _:  # thread/realtime/closed
                if self.chunks:
                    yield ev.audio_done()
                    self.chunks = 0
                yield ev.status_change(status="realtime_closed", detail=without_empty(params) or None)

    @property
    def answer_id(self) -> str:
        """An id for the answer, which has none on the wire."""
        return f"realtime/{self.seen.unnamed}"

    def transcript(self, role: str, text: str) -> ev.Event:
        """Return the transcript of the user or of the agent."""
        if self.seen.is_echo(None, text):
            return ev.status_change(status="transcript_echo", detail={"role": role})
        self.seen.unmatched[text] = None
        if role != "assistant":
            return ev.user_audio(transcription=text)
        done = place_in_message(ev.assistant_done(text=text, phase="realtime"), self.answer_id, 0)
        self.seen.unnamed += 1
        return done
