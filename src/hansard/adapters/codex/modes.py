"""Permission modes of Codex: when it asks, and what its sandbox lets a command do. One word stands for both."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Mode(Struct, frozen=True):
    """When Codex asks before it does something, and the sandbox that holds its commands, if the mode says."""

    approval: str
    sandbox: str | None = None

    @property
    def sandbox_policy(self) -> dict[str, Any] | None:
        """The sandbox as the app-server spells it in a running thread."""
        return None if self.sandbox is None else {"type": _POLICIES[self.sandbox]}


MODES = {
    "untrusted": Mode("untrusted"),
    "on-request": Mode("on-request"),
    "never": Mode("never"),
    "read-only": Mode("on-request", "read-only"),
    "auto": Mode("on-request", "workspace-write"),
    "full-access": Mode("never", "danger-full-access"),
}
"""Codex's own words: its approval policies, which leave the sandbox as it is, and the presets of its terminal."""
_POLICIES = {"read-only": "readOnly", "workspace-write": "workspaceWrite", "danger-full-access": "dangerFullAccess"}
