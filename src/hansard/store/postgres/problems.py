"""What the database complains of, in one line that says what to do."""

from __future__ import annotations

import psycopg
from psycopg import errors

from hansard.errors import StoreAway, StoreError
from hansard.store.postgres.address import Address

_AWAY = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.IdleInTransactionSessionTimeout)
_HINTS = {
    "password authentication failed": "check the user and the password in the address, or give PGPASSWORD",
    "no password supplied": "give one in the address, in PGPASSWORD or in ~/.pgpass",
    "no pg_hba.conf entry": "the server does not let this user in from here; see its pg_hba.conf",
    "does not exist": "check the name of the database and of the user in the address",
    "could not translate host name": "check the host in the address",
    "failed to resolve host": "check the host in the address",
    "Connection refused": "check host and port in the address, and whether the server runs",
    "No such file or directory": "check the host in the address, and whether the server runs",
    "timeout": "check the host in the address, and whether a firewall stands between",
    "permission denied": "the user of the address lacks a right; docs/deployment.md lists those it needs",
}


def told(problem: psycopg.Error, address: Address) -> StoreError:
    """The same problem, in our words."""
    text = _said(problem, address)
    hint = next((hint for words, hint in _HINTS.items() if words in text), None)
    message = f"the store {address.shown}: {text}" + (f"; {hint}" if hint else "")
    return StoreAway(message) if is_away(problem) else StoreError(message)


def is_away(problem: psycopg.Error) -> bool:
    """Whether the database cannot be reached, or is just going or coming."""
    return isinstance(problem, _AWAY) or (isinstance(problem, psycopg.OperationalError) and problem.sqlstate is None)


def _said(problem: psycopg.Error, address: Address) -> str:
    said = problem.diag.message_primary or str(problem)
    lines = [line.strip() for line in said.split("\n") if line.strip()]
    several = len(lines) > 1 and lines[0].startswith("Multiple connection attempts")
    text = lines[several].removeprefix("- ") if lines else type(problem).__name__
    password = address.conninfo.get("password")
    return text.replace(str(password), "…") if password else text
