"""OpenCode: its server's event streams, ``opencode run``, its exports and its database."""

from hansard.adapters.opencode.files import OpenCodeFiles
from hansard.adapters.opencode.run import OpenCodeRun
from hansard.adapters.opencode.session import OpenCodeSession
from hansard.adapters.opencode.stream import OpenCodeEvents, OpenCodeNextEvents

ADAPTERS = (OpenCodeEvents, OpenCodeNextEvents, OpenCodeRun, OpenCodeSession)
TESTED = {"opencode": "1.18.33"}
"""The version whose recordings these adapters are held to."""
LAYOUT = OpenCodeFiles()
