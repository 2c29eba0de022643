"""An answer while it arrives. Every agent (the main one, each sub-agent) speaks in a lane of its own."""

from __future__ import annotations


class Block:
    """A block of an answer that arrives in pieces."""

    def __init__(self, kind: str, tool_id: str | None = None, tool_name: str | None = None) -> None:
        self.kind = kind
        self.tool_id = tool_id
        self.tool_name = tool_name
        self.written = 0
        self.done = False


class OpenResponse:
    """One answer of a model. The wire splits it into several messages and counts blocks anew in each; here it stays one."""

    def __init__(self, answer_id: str, announced: bool) -> None:
        self.id = answer_id
        self.announced = announced
        self.blocks: list[Block] = []
        self.places: dict[int, int] = {}

    def start(self, wire_index: int, block: Block) -> int:
        """Where a block that begins stands in the answer."""
        self.places[wire_index] = len(self.blocks)
        self.blocks.append(block)
        return self.places[wire_index]

    def take(self, kind: str, tool_id: str | None) -> int | None:
        """Where a whole block stands that has come in pieces before; None if it has not."""
        for index, block in enumerate(self.blocks):
            if not block.done and block.kind == kind and block.tool_id == tool_id:
                block.done = True
                return index
        return None
