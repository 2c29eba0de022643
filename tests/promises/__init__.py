"""What every recording is held to, each promise a function named by the fact that it checks.

A promise about a stream takes a `Normalized`, one about a recording a `Case`; it raises if it is broken. `broken` holds a recording to all
of them and says which promise it breaks and where. `make test` holds every recording to every promise, but for those that are costly and
seldom depend on the recording: of those each recording has its turn, another one with each HANSARD_SEED, and `make soak` leaves none out.
"""

from __future__ import annotations

import pytest

NAMES = ("authors", "chat_files", "claude_files", "codex_files", "exports", "opencode_files", "streams", "surfaces", "truth", "turns")
pytest.register_assert_rewrite(*(f"tests.promises.{name}" for name in NAMES))
