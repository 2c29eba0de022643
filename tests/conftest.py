"""What all tests share."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import settings

from tests.recorded import Recording, Stream

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


ONE_IN = 12


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make check` holds one recording in twelve to each promise; `make test` holds every one."""
    seen: Counter[str] = Counter()
    for item in items:
        parameters = getattr(item, "callspec", None)
        if parameters is None or not any(isinstance(value, Recording | Stream) for value in parameters.params.values()):
            continue
        name = item.nodeid.partition("[")[0]
        if seen[name] % ONE_IN:
            item.add_marker(pytest.mark.slow)
        seen[name] += 1
