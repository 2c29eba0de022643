"""Qwen Code: its live wire, one way and two ways, and its session files."""

from hansard.adapters.qwen.files import QwenFiles

TESTED = {"qwen": "0.15.10, 0.24.4"}
"""What the recordings were made with."""

FORMATS = {
    "qwen-stream-json": "control.QwenStream",
    "qwen-stream-json-io": "control.QwenStream",
    "qwen-chat": "chat.QwenChat",
}
LAYOUT = QwenFiles()
