"""The threads of one connection to ``codex app-server``, and the calls that started them."""

from __future__ import annotations


class Threads:
    """The main thread and those of subagents, whose events belong to the call that started them."""

    def __init__(self) -> None:
        self.main: str | None = None
        self.calls: dict[str, str] = {}
        """The call that started each thread."""
        self.last_spawn: str | None = None
        self.introduced: set[str] = set()
        """Threads that our side started or resumed, or that began without a parent."""

    def parent_of(self, thread_id: str | None, in_turn: bool) -> str | None:
        """Return the call that a frame of this thread belongs to; None for the main thread."""
        if thread_id is None:
            return None
        if self.main is None:
            self.main = thread_id
        if thread_id == self.main or (thread_id in self.introduced and not in_turn):
            return None
        return self.calls.get(thread_id) or self.last_spawn or thread_id
