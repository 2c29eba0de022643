"""Qwen Code: its live wire, one way and two ways, and its session files."""

from hansard.adapters.qwen.layout import QwenFiles

TESTED = {"qwen": "0.15.10, 0.24.4"}
"""What the recordings were made with."""

FORMATS = {
    "qwen-stream-json": "stream.QwenStream",
    "qwen-stream-json-io": "stream.QwenStream",
    "qwen-chat": "chat.QwenChat",
}
LAYOUT = QwenFiles()
