"""Who may come in: a secret, and the role that goes with it. What a client says about its own rights counts for nothing."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from secrets import token_urlsafe

from msgspec import Struct

from hansard.server.protocol import Role

BYTES = 32
"""256 bits."""


class Token(Struct, frozen=True):
    """A secret and what it opens. Its name is what the log says of who decided something."""

    role: Role
    secret: str
    name: str = "participant"

    @classmethod
    def make(cls, role: Role = "participant") -> Token:
        """A new one that nobody can guess."""
        return cls(role, token_urlsafe(BYTES), role)

    def __repr__(self) -> str:
        """Without the secret: it must not be in any log."""
        return f"Token({self.role})"


class Tokens:
    """Every token that is good now."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        self._tokens = list(tokens)
        if not self._tokens or any(len(token.secret) < BYTES for token in self._tokens):
            raise ValueError(f"a token has at least {BYTES} characters")

    def find(self, secret: str) -> Token | None:
        """The token of that secret. It takes as long for a wrong one as for a right one."""
        given, found = secret.encode("utf-8", "surrogateescape"), None
        for token in self._tokens:
            if hmac.compare_digest(given, token.secret.encode()):
                found = token
        return found

    @property
    def secrets(self) -> list[str]:
        """What must not leave this machine."""
        return [token.secret for token in self._tokens]
