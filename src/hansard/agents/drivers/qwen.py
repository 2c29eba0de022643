"""Qwen Code over its own two-way wire: one process, JSON both ways, and questions before a tool runs."""

from __future__ import annotations

from hansard.agents.base import Capabilities, Handshake, Options
from hansard.agents.drivers.one_shot import QwenOneShot


class QwenIo(QwenOneShot):
    """Started like the one that runs for a turn; but its input stays open."""

    name, format = "qwen-io", "qwen-stream-json-io"
    capabilities = Capabilities(edits=True, mcp=False, system_prompt=True, tools=True)

    async def handshake(self, talk: Handshake, options: Options) -> None:
        await talk.call("initialize", {"hooks": None})


AGENTS = (QwenIo(),)
