"""Cursor's command line agent: its live wire."""

TESTED = {"cursor-agent": "public captures of 2026-02 and the documented shapes; never run by us"}
"""What the recordings come from."""

FORMATS = {"cursor-stream-json": "stream.CursorStream"}
