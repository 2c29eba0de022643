"""Gemini CLI: its live wire and its chat files."""

from hansard.adapters.gemini.chat import GeminiChat
from hansard.adapters.gemini.files import GeminiFiles
from hansard.adapters.gemini.stream import GeminiStream

TESTED = {"gemini": "0.61.0"}
"""What the recordings were made with."""

ADAPTERS = (GeminiStream, GeminiChat)
LAYOUT = GeminiFiles()
