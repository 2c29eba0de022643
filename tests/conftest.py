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


EVERY = "HANSARD_EVERY" in os.environ
ONE_IN = 12
SAMPLE = 4


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`make test` holds every recording to each promise, to those of `sampled` tests one in four; `make check` one in twelve."""
    seen: Counter[str] = Counter()
    left: set[pytest.Item] = set()
    for item in items:
        parameters = getattr(item, "callspec", None)
        if parameters is None or not any(isinstance(value, Recording | Stream) for value in parameters.params.values()):
            continue
        name = item.nodeid.partition("[")[0]
        turn = seen[name]
        seen[name] += 1
        if item.get_closest_marker("sampled") and not EVERY and turn % SAMPLE:
            left.add(item)
        elif turn % ONE_IN:
            item.add_marker(pytest.mark.slow)
    config.hook.pytest_deselected(items=list(left))
    items[:] = [item for item in items if item not in left]
