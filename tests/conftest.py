"""What all tests share."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# In CI the examples are the same each time, so that a failure is about the change; `make soak` looks further, with fresh ones.
EXAMPLES = os.environ.get("HANSARD_EXAMPLES")
settings.register_profile(
    "hansard",
    deadline=None,
    max_examples=int(EXAMPLES or 100),
    derandomize=EXAMPLES is None and "CI" in os.environ,
)
settings.load_profile("hansard")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio, which is what we run on."""
    return "asyncio"
