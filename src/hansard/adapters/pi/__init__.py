"""pi: the wire of its JSON mode."""

TESTED = {"pi": "0.87.1"}
"""What the recordings come from."""

FORMATS = {"pi-json": "stream.Pi"}
