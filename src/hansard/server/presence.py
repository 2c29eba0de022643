"""Who is looking at which session over a socket, told to those who want to know. Who it is, the token says and not the client."""

from __future__ import annotations

from collections.abc import Callable

from hansard.server.protocol import Person
from hansard.server.tokens import Token

Tell = Callable[[list[Person]], None]


class Presence:
    """Everybody's subscriptions, by session. One connection is one person, however often it is subscribed."""

    def __init__(self) -> None:
        self._there: dict[str, dict[tuple[object, str], tuple[Token, Tell | None]]] = {}

    def enter(self, session: str, connection: object, name: str, who: Token, tell: Tell | None) -> None:
        """A connection looks at a session; with ``tell`` it hears from now on who else does."""
        self._there.setdefault(session, {})[connection, name] = who, tell
        self._announce(session)

    def leave(self, session: str, connection: object, name: str) -> None:
        """It looks no more."""
        there = self._there.get(session, {})
        if there.pop((connection, name), None) is None:
            return
        if not there:
            del self._there[session]
        self._announce(session)

    def _announce(self, session: str) -> None:
        there = self._there.get(session, {})
        people = {connection: who for (connection, _), (who, _) in there.items()}
        shown = sorted((Person(who.name, who.role) for who in people.values()), key=lambda person: (person.name, person.role))
        for _, tell in list(there.values()):
            if tell is not None:
                tell(shown)
