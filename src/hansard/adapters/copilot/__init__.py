"""GitHub Copilot CLI: its live wire and its session files, which are one event log."""

from hansard.adapters.copilot.layout import CopilotFiles

TESTED = {"copilot": "1.0.102"}
"""What the recordings were made with."""

FORMATS = {
    "copilot-json": "events.Copilot",
    "copilot-session": "events.Copilot",
}
LAYOUT = CopilotFiles()
