"""Text and thinking while they are being said: which pieces are one block, what a block is called, and what its end adds to its pieces."""

from __future__ import annotations

from msgspec import Struct, field

from hansard.events import AssistantChunk, AssistantDone, Event, ThinkingChunk, ThinkingDone

Piece = AssistantChunk | ThinkingChunk
Done = AssistantDone | ThinkingDone
Key = tuple[str | None, str | None, int | None, bool]


class Block(Struct):
    """A block that is being said."""

    id: str
    lane: str | None
    thinking: bool
    begins: bool = True
    """Whether nothing has been told of it yet."""
    pieces: list[str] = field(default_factory=list[str])


class End(Struct):
    """How a block ended."""

    block: Block
    rest: str
    """What its pieces had not said."""
    differs: bool
    """Whether its pieces said something else."""


class BlockStreams:
    """The open blocks. The first text block of a message has the message's own id, so that its tool calls can name it."""

    def __init__(self) -> None:
        self._open: dict[Key, Block] = {}
        self._first: dict[str | None, tuple[str | None, int | None]] = {}
        self._count = 0

    def piece(self, event: Piece) -> Block:
        """The block this is a piece of."""
        block = self._block(event, isinstance(event, ThinkingChunk))
        block.pieces.append(event.payload.text)
        return block

    def continues(self, event: Piece) -> Block | None:
        """The same, but None if this would be the first that is told of the block; then nothing has happened."""
        block = self._open.get(_key(event, isinstance(event, ThinkingChunk)))
        if block is None or block.begins:
            return None
        block.pieces.append(event.payload.text)
        return block

    def done(self, event: Done) -> End:
        """The block that is complete now."""
        block = self._block(event, isinstance(event, ThinkingDone))
        del self._open[_key(event, block.thinking)]
        said, text = "".join(block.pieces), event.payload.text
        differs = not text.startswith(said)
        return End(block, "" if differs else text[len(said) :], differs)

    def cut_off(self, lane: str | None = None, everywhere: bool = False) -> list[Block]:
        """The blocks of a lane (or of all) that nothing more will be said of."""
        cut = [block for block in self._open.values() if everywhere or block.lane == lane]
        self._open = {key: block for key, block in self._open.items() if not (everywhere or block.lane == lane)}
        return cut

    def message_id(self, event: Event) -> str | None:
        """The id of the message an event belongs to."""
        lane, response = event.parent_tool_call_id, event.response_id
        return response if lane is None or response is None else f"{lane}/{response}"

    def _block(self, event: Event, thinking: bool) -> Block:
        key = _key(event, thinking)
        block = self._open.get(key)
        if block is None:
            block = self._open[key] = Block(self._name(event, thinking), event.parent_tool_call_id, thinking)
        return block

    def _name(self, event: Event, thinking: bool) -> str:
        message, index = self.message_id(event), event.block_index
        self._count += 1
        if message is None:
            return f"{'thinking' if thinking else 'text'}-{self._count}"
        if thinking:
            return f"{message}:thinking:{index or 0}"
        if self._first.get(event.parent_tool_call_id, (None, None))[0] != message:
            self._first[event.parent_tool_call_id] = (message, index)
        return message if self._first[event.parent_tool_call_id][1] == index else f"{message}:{index}"


def _key(event: Event, thinking: bool) -> Key:
    return event.parent_tool_call_id, event.response_id, event.block_index, thinking
