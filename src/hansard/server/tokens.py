"""Who may come in: a secret, and the role that goes with it. What a client says about its own rights counts for nothing."""

from __future__ import annotations

import hmac
import re
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from secrets import token_urlsafe

from msgspec import Struct

from hansard.server.protocol import Role

BYTES = 32
"""256 bits."""
SHARED_NAME = "shared link"
_SHARED = re.compile(r"share\.([A-Za-z0-9][A-Za-z0-9_-]{0,63})\.([0-9]{1,12})\.([A-Za-z0-9_-]+)")


class Token(Struct, frozen=True):
    """A secret and what it opens. Its name is what the log says of who decided something."""

    role: Role
    secret: str
    name: str = "participant"
    session: str | None = None
    """The only session that it opens; None: all."""
    expires: float | None = None
    """When it ends, in seconds since 1970; None: with the server."""

    @property
    def has_expired(self) -> bool:
        """Whether its time is over."""
        return self.expires is not None and time.time() >= self.expires

    def allows(self, session: str) -> bool:
        """Whether it opens a session, given by its id."""
        return self.session is None or self.session == session

    @classmethod
    def make(cls, role: Role = "participant") -> Token:
        """A new one that nobody can guess."""
        return cls(role, token_urlsafe(BYTES), role)

    def __repr__(self) -> str:
        """Without the secret: it must not be in any log."""
        return f"Token({self.role})"


def share_secret(secret: str, session: str, expires: int) -> str:
    """Returns the secret of a token that only reads one session, until then. Anyone who has a participant's secret can make one.

    The server keeps no list of these tokens: it checks the signature. They end with the secret that signed them.
    """
    signature = hmac.digest(secret.encode(), f"hansard share {session} {expires}".encode(), "sha256")
    return f"share.{session}.{expires}.{urlsafe_b64encode(signature).decode().rstrip('=')}"


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
        return found or self._shared(secret)

    def _shared(self, secret: str) -> Token | None:
        """The token of a shared link, if a participant has signed it and its time is not over."""
        parts, found = _SHARED.fullmatch(secret), None
        if parts is None:
            return None
        session, expires = parts[1], int(parts[2])
        for token in self._tokens:
            signed = share_secret(token.secret, session, expires)
            if token.role == "participant" and token.session is None and hmac.compare_digest(secret.encode(), signed.encode()):
                found = Token("observer", secret, SHARED_NAME, session, expires)
        return None if found is None or found.has_expired else found

    @property
    def secrets(self) -> list[str]:
        """What must not leave this machine."""
        return [token.secret for token in self._tokens]
