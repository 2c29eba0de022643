"""The address of a database: what psycopg is told, and what may be shown of it. A password is never shown."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from msgspec import Struct
from psycopg.conninfo import conninfo_to_dict

from hansard.errors import UsageError

SCHEMA = "hansard"
CONNECT_SECONDS = 4
"""So long is waited for a database that does not answer."""

# A server that hangs, or whose machine is gone, is noticed in seconds; nobody waits for ever for a lock that a stopped process holds.
_PATIENCE = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


class Address(Struct, frozen=True):
    """Where the store is."""

    conninfo: dict[str, str | int]
    schema: str
    shown: str


def parse(text: str) -> Address:
    """Read ``postgresql://user:password@host:port/database?schema=…``."""
    parts = urlsplit(text)
    options = parse_qsl(parts.query, keep_blank_values=True)
    schema = dict(options).get("schema", SCHEMA)
    if re.fullmatch(r"[a-z_][a-z0-9_]{0,39}", schema) is None:
        raise UsageError(f"not the name of a schema: {schema!r}; use small letters, digits and '_'")
    rest = urlencode([(name, value) for name, value in options if name != "schema"])
    try:
        found = conninfo_to_dict(urlunsplit(parts._replace(query=rest)))
    except psycopg.ProgrammingError as problem:
        hidden = str(problem).strip().split("\n")[0].replace(parts.password or text, "…")
        raise UsageError(f"not the address of a database: {hidden}") from None
    told: dict[str, str | int] = {name: value for name, value in found.items() if value is not None}
    return Address({"application_name": "hansard", **_PATIENCE, **told}, schema, _shown(told, schema))


def _shown(told: dict[str, str | int], schema: str) -> str:
    user = f"{told['user']}@" if "user" in told else ""
    port = f":{told['port']}" if "port" in told else ""
    host = str(told.get("host", "")).replace("/", "%2F")
    return f"postgresql://{user}{host}{port}/{told.get('dbname', '')}" + (f"?schema={schema}" if schema != SCHEMA else "")
