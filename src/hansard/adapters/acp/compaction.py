"""Compactions of the context, and the summaries that replace it."""

from __future__ import annotations

from hansard import events as ev
from hansard.adapters.acp import wire
from hansard.adapters.acp.blocks import to_blocks
from hansard.adapters.acp.fields import is_list, present
from hansard.adapters.blocks import text_of


class Compactions:
    """The compactions of a session: the summaries so far, and which are over."""

    def __init__(self) -> None:
        self._summaries: dict[str, str] = {}
        self._over: set[str] = set()

    def chunk(self, update: wire.CompactionSummaryChunk) -> ev.Event:
        """Add to a summary."""
        text = text_of(to_blocks(update.content))
        self._summaries[update.compaction_id] = self._summaries.get(update.compaction_id, "") + text
        return ev.status_change(status="compaction_summary_chunk", detail={"compactionId": update.compaction_id, "text": text})

    def update(self, update: wire.CompactionUpdate) -> ev.Event:
        """Take the state of a compaction."""
        name, summary = update.compaction_id, text_of(to_blocks(update.summary)) if is_list(update.summary) else None
        detail = present(compactionId=name, error=update.error)
        if update.status == "completed" and name not in self._over:
            self._over.add(name)
            text = self._summaries.pop(name, None) if summary is None else summary
            return ev.session_lifecycle(subtype="compacted", text=text, detail=detail)
        if update.status == "completed" and summary is not None:
            return ev.session_lifecycle(subtype="compaction_summary", text=summary, detail=detail)
        status = "compacting" if update.status == "in_progress" else f"compaction_{update.status}"
        return ev.status_change(status=status, detail=detail)
