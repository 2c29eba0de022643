"""pi: the wire of its JSON mode, and its session files."""

from hansard.adapters.pi.layout import PiFiles

TESTED = {"pi": "0.87.1"}
"""What the recordings come from."""

FORMATS = {"pi-json": "stream.Pi", "pi-session": "session.PiSession"}
LAYOUT = PiFiles()
