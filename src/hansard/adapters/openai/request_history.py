"""The new messages of a request, which repeats the conversation: each becomes an event once, known by its place and its content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from hansard.adapters.fields import input_hash


class Conversation:
    """The messages of the requests so far."""

    def __init__(self, is_answer: Callable[[Any], bool]) -> None:
        self._is_answer = is_answer
        self._place: list[str] = []
        self._said: Counter[str] = Counter()
        self._thread: Any = None

    def continue_from(self, thread: Any) -> None:
        """The request builds on this answer (``previous_response_id``); its own messages are counted from there."""
        if thread != self._thread:
            self._thread, self._place = thread, []

    def fresh(self, messages: list[Any], left_out: int, answered: bool) -> list[Any]:
        """Return the new messages. ``left_out``: how many come before them; ``answered``: an answer came since the last request.

        As long as a request continues the one before, place alone decides, so that the same text can be sent twice. The client's
        copy of the answer that was just read is not new. A request that was edited or shortened is compared by content.
        """
        keys = [input_hash(message) for message in messages]
        before = self._place[left_out:]
        same = _common(keys, before)
        self._place[left_out:] = keys
        if same == len(keys):
            return []
        if same < len(before):
            return self._by_content(messages, keys)
        for key in keys[same:]:
            self._said[key] += 1
        if answered:
            while same < len(messages) and self._is_answer(messages[same]):
                same += 1
        return messages[same:]

    def _by_content(self, messages: list[Any], keys: list[str]) -> list[Any]:
        seen: Counter[str] = Counter()
        new: list[Any] = []
        for message, key in zip(messages, keys, strict=True):
            seen[key] += 1
            if seen[key] > self._said[key]:
                self._said[key] += 1
                new.append(message)
        return new


def _common(first: list[str], second: list[str]) -> int:
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return index
    return min(len(first), len(second))
