"""OpenCode: its server's event streams, ``opencode run``, its exports and its database."""

from hansard.adapters.opencode.layout import OpenCodeFiles

FORMATS = {
    "opencode-sse": "stream.OpenCodeEvents",
    "opencode-sse-v2": "stream.OpenCodeNextEvents",
    "opencode-run-json": "run.OpenCodeRun",
    "opencode-session": "session.OpenCodeSession",
}
TESTED = {"opencode": "1.18.33"}
"""The version whose recordings these adapters are held to."""
LAYOUT = OpenCodeFiles()
