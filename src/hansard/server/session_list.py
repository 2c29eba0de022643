"""The list of sessions for clients: what the store says of each, and of those that are open here how they stand."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hansard.agents.hub import Hub
from hansard.agents.session import Session
from hansard.errors import StoreError, UnknownSession
from hansard.events import TITLE_CHARACTERS
from hansard.server.fork_usage import ForkTotals
from hansard.server.protocol import Listed
from hansard.server.responses import cut
from hansard.store import SessionInfo
from hansard.store.records import newest_first

INDEX_SECONDS = 0.1
"""How long logs are read for the index after each look at the store."""
PACE = 0.5
"""Seconds between two looks at the store while somebody watches the list."""
EASE = 25
"""A look that takes much work is followed by a pause of so many times its CPU seconds. A busy machine does not make it longer."""

News = Callable[[list[Listed], list[str]], None]
"""Called with what changed, and what is gone."""
Away = Callable[[Exception | None], None]
"""Called with what keeps the store from being read, and with None when it is over."""


class SessionIndex:
    """Looks at the store for all who watch."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._forks = ForkTotals(hub.store)
        self._watchers: dict[object, tuple[News, Away]] = {}
        self._is_away = False
        self._looking = threading.Lock()
        self._updating = asyncio.Lock()
        """One update at a time: an older list must not replace a newer one."""
        self._known: dict[str, Listed] = {}
        self._infos: dict[str, SessionInfo] = {}
        """The list as it was at the last look."""
        self._mark: Any = None
        self._task: asyncio.Task[None] | None = None
        self._work = 0.0
        """The CPU seconds of the last look."""

    async def all(self) -> list[Listed]:
        """Every session, the one that changed last first."""
        return await self._list(await asyncio.to_thread(self._read_store))

    def _read_store(self) -> list[SessionInfo]:
        with self._looking:
            began = time.thread_time()
            changes = self._hub.store.changes(self._mark)
            self._mark, self._infos = changes.mark, changes.apply(self._infos)
            found = self._forks.replace(newest_first(self._infos.values()))
            if captured := self._hub.store.captured():
                found = newest_first([*found, *captured])
            self._work = time.thread_time() - began
            return found

    async def one(self, session_id: str) -> Listed:
        """One of them."""
        return (await self._list([await asyncio.to_thread(self._read_one, session_id)]))[0]

    async def _list(self, found: list[SessionInfo]) -> list[Listed]:
        """Returns the sessions as they are listed, with the states of those that this server has."""
        here = {session.id: session for session in self._hub.sessions}
        for info in found:
            session = here.get(info.id)
            if session is not None and session.state.seq < info.events:  # the log has events that are not in the state yet
                await session.recorder.settled()
        return [listed(info, here.get(info.id)) for info in found]

    def _read_one(self, session_id: str) -> SessionInfo:
        self._hub.store[session_id].head()  # an error if its log is refused
        with self._looking:
            info = self._hub.store.session(session_id)
            among = [info]
            if info.lineage is not None and info.lineage.session_id is not None:
                with suppress(UnknownSession):
                    among.append(self._hub.store.session(info.lineage.session_id))
            return self._forks.replace(among)[0]

    async def watch(self, who: object, news: News, away: Away) -> tuple[list[Listed], Exception | None]:
        """The list now, and what keeps it from being read; then ``news`` is told what changes, and ``away`` when nothing can be known."""
        trouble = await self._update()
        if self._task is None:
            self._task = asyncio.create_task(self._look())
        self._watchers[who] = news, away
        return list(self._known.values()), trouble

    def leave(self, who: object) -> None:
        """Watch no more."""
        self._watchers.pop(who, None)
        if not self._watchers:
            self.close()

    def close(self) -> None:
        """Nobody watches any more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._known = {}

    async def _look(self) -> None:
        pause = PACE
        while True:
            await asyncio.sleep(pause)
            if await self._update() is None:
                pause = max(PACE, EASE * self._work)
                await asyncio.to_thread(self._hub.store.update_index, INDEX_SECONDS)

    async def _update(self) -> Exception | None:
        """Read the store and tell all who watch what changed. Returns what keeps it from being read."""
        async with self._updating:
            try:
                now = {one.id: one for one in await self.all()}
            except (StoreError, OSError) as problem:  # the next look may see more
                self._tell_away(problem)
                return problem
            self._tell_away(None)
            changed = [one for one in now.values() if self._known.get(one.id) != one]
            removed = [name for name in self._known if name not in now]
            self._known = now
        if changed or removed:
            for news, _ in list(self._watchers.values()):
                news(changed, removed)
        return None

    def _tell_away(self, problem: Exception | None) -> None:
        """Once when it goes, once when it comes."""
        if self._is_away == (problem is not None):
            return
        self._is_away = problem is not None
        for _, away in list(self._watchers.values()):
            away(problem)


def listed(info: SessionInfo, session: Session | None) -> Listed:
    """A session for the list."""
    shown = Listed(
        id=info.id,
        log_id=info.log_id or None,
        head=info.events,
        title=_short(info.title),
        agent=_short(info.agent),
        format=_short(info.format),
        parent_session_id=info.parent_session_id,
        lineage=info.lineage.kind if info.lineage is not None else None,
        parent_seq=info.lineage.seq if info.lineage is not None else None,
        copied_events=info.copied_events,
        created=info.created,
        updated=info.updated,
        bytes=info.bytes,
        archived=info.archived,
        status=info.status,
        live=info.live,
        cost_usd=None if info.usage is None else info.usage.cost_usd,
        total_tokens=None if info.usage is None else info.usage.total_tokens,
        captured=info.captured,
        problem=info.problem,
        recorded=info.recorded,
        last_commit=_short(info.last_commit),
        models=[cut(model, TITLE_CHARACTERS) for model in info.models],
        **_place(info),
    )
    if session is not None:
        state, launch = session.state, session.state.launch
        shown.here, shown.phase = True, state.phase
        shown.title = _short(state.summary.title) or shown.title
        shown.agent = shown.agent if launch is None else launch.agent
    return shown


def _place(info: SessionInfo) -> dict[str, Any]:
    """The fields that say where and for whom a session works."""
    names = ("project", "cwd", "repository", "remote", "branch", "commit", "machine", "person", "entry_point")
    return {name: _short(getattr(info, name)) for name in names}


def _short(text: str | None) -> str | None:
    """A log that somebody else wrote may call itself anything; a list has one line for it."""
    return text if text is None else cut(text, TITLE_CHARACTERS)
