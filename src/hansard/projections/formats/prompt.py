"""The conversation as one text: the prompt with which any agent's command line can go on where another left off."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hansard.events.content import AnyBlock, ToolUseBlock
from hansard.events.replays import HANDOFF_BEGINNING
from hansard.projections.history import AnyPart, AssistantPart, HistoryProjection, Outcomes, UserPart
from hansard.projections.media import pdf, picture
from hansard.projections.text import block_text, json_text

END = "</conversation>\n"
TAGS = ("conversation", "user", "assistant", "tool_call", "tool_result")

_TAG = re.compile(rf"<(?=/?(?:{'|'.join(TAGS)})\b)")


class Prompt(HistoryProjection[str]):
    """Each side's words stand in a tag; a text that holds such a tag cannot end it."""

    output = "text"
    thinking = "thinking is not said to anybody"

    def __init__(self) -> None:
        super().__init__()
        self._begun = False

    def write(self, part: AnyPart) -> Iterator[str]:
        """A part as text."""
        if not self._begun:
            self._begun = True
            yield HANDOFF_BEGINNING
        yield self.whole("".join(self._texts(part)))

    def finish(self) -> Iterator[str]:
        """The end of the conversation; nothing at all when nothing was said."""
        yield from super().finish()
        if self._begun:
            yield END

    def _texts(self, part: AnyPart) -> Iterator[str]:
        match part:
            case UserPart():
                yield self._tagged("user", "\n".join(self._words(block) for block in part.blocks))
            case AssistantPart():
                for block in self.report_change(part):
                    if isinstance(block, ToolUseBlock):
                        yield self._tagged("tool_call", json_text(block.input), f' name="{block.name}" id="{block.id}"')
                    else:
                        yield self._tagged("assistant", self._words(block))
            case Outcomes():
                for outcome in part.outcomes:
                    failed = ' error="true"' if outcome.is_error else ""
                    text = "\n".join(self._words(block) for block in outcome.blocks or [])
                    yield self._tagged("tool_result", text, f' id="{outcome.call.id}"{failed}')

    def _words(self, block: AnyBlock) -> str:
        if picture(block) or pdf(block):
            self.report.note("a picture or document is only named")
        return block_text(block)

    def _tagged(self, tag: str, text: str, attributes: str = "") -> str:
        inside, found = _TAG.subn("&lt;", text)
        if found:
            self.report.note("a text that holds one of our tags has it escaped")
        return f"<{tag}{attributes}>\n{inside}\n</{tag}>\n"
