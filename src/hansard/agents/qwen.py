"""Qwen Code over its own two-way wire: one process, JSON both ways, and questions before a tool runs."""

from __future__ import annotations

from hansard.agents.agent import Capabilities, Options, Talk
from hansard.agents.oneshot import QwenOneShot


class QwenIo(QwenOneShot):
    """Started like the one that runs for a turn; but its input stays open."""

    name, format = "qwen-io", "qwen-stream-json-io"
    can = Capabilities(edits=True, mcp=False, system_prompt=True, tools=True)

    async def greet(self, talk: Talk, options: Options) -> None:
        await talk.ask("initialize", {"hooks": None})


AGENTS = (QwenIo(),)
