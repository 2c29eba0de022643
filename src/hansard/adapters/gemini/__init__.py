"""Gemini CLI: its live wire and its chat files."""

from hansard.adapters.gemini.layout import GeminiFiles

TESTED = {"gemini": "0.61.0"}
"""What the recordings were made with."""

FORMATS = {
    "gemini-stream-json": "stream.GeminiStream",
    "gemini-chat": "chat.GeminiChat",
}
LAYOUT = GeminiFiles()
