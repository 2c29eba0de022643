"""Qwen Code: its live wire, one way and two ways, and its session files."""

from hansard.adapters.qwen.chat import QwenChat
from hansard.adapters.qwen.control import QwenStream
from hansard.adapters.qwen.files import QwenFiles

TESTED = {"qwen": "0.15.10, 0.24.4"}
"""What the recordings were made with."""

ADAPTERS = (QwenStream, QwenChat)
LAYOUT = QwenFiles()
