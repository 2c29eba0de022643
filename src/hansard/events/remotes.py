"""Addresses of repositories, without what is secret in them."""

from __future__ import annotations

import re

_USER = re.compile(r"\A([a-z][a-z0-9+.-]*://)[^/]*@", re.IGNORECASE)
_SHORT_USER = re.compile(r"\A[^/@:]+@(?=[^/:]+:)")
_AFTER = re.compile(r"[?#].*\Z", re.DOTALL)


def without_credentials(remote: str) -> str:
    """Returns the address of a repository without user name, password and query: tokens are kept in all of them."""
    return _AFTER.sub("", _SHORT_USER.sub("", _USER.sub(r"\1", remote.strip())))
