"""Keeps Gemini CLI from deleting the session that it is to resume.

Each time that it resumes a session, 0.61.0 writes one more file with the session's id, which has no conversation. Another process of it
deletes such files as broken ones when it starts, and with them every file that has the same eight characters of the id in its name: the
conversation, too (``cleanupExpiredSessions``). Over ACP, every process starts with an id of its own.
"""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

VARIABLE = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"
"""Names a file of defaults, over which the settings of the user count."""
SYSTEM_DEFAULTS = Path("/etc/gemini-cli/system-defaults.json")


def retention_variables() -> dict[str, str]:
    """Returns the variables that turn off the deletion of sessions, unless the system has defaults of its own."""
    if VARIABLE in os.environ or SYSTEM_DEFAULTS.exists():
        return {}
    return {VARIABLE: str(files("hansard.agents").joinpath("gemini-defaults.json"))}
