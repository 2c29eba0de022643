"""Prices of tokens: what each model costs from which day on, and the cost of a response by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache

from msgspec import Struct

from hansard.events.structs import prepare
from hansard.events.times import to_datetime
from hansard.events.types import EARLIEST_CALENDAR_MS

MILLION = 1_000_000
DAY_MS = 86_400_000
CACHE_BESIDE_INPUT = frozenset({"acp", "anthropic", "claude", "opencode"})
"""The sources and agents that count cached tokens beside the input tokens; all others count them in."""
REASONING_BESIDE_OUTPUT = frozenset({"gemini", "opencode"})
"""The agents whose output tokens do not include the reasoning tokens."""


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    """What one million tokens cost in US dollars. A cache without a price of its own costs as much as input, and reasoning as output."""

    models: list[str]
    """The names of the models, exactly as agents report them."""
    source: str
    """Where the price is published."""
    input: float
    output: float
    cache_read: float | None = None
    cache_write_5m: float | None = None
    cache_write_1h: float | None = None
    reasoning: float | None = None
    since: date | None = None
    """The first day on which the price holds; None if it always did."""
    until: date | None = None
    """The first day on which it no longer holds; None if it still does."""
    prompt_over: int = 0
    """The size of the prompt in tokens above which the price holds."""

    def holds(self, model: str, day: date | None) -> bool:
        """Returns whether this is a price of the model on a day. Without a day, the price that holds now counts."""
        if model not in self.models:
            return False
        return self.until is None if day is None else (self.since or day) <= day and (self.until is None or day < self.until)


class PriceFile(Struct, rename="camel", frozen=True):
    """A file that prices come from."""

    path: str
    digest: str
    """The SHA-256 of the file."""
    updated: date | None = None
    """The day on which its prices were last compared with their sources."""


class PriceTable:
    """Prices, and the files that they come from. A later file replaces all prices of the models that it names."""

    def __init__(self, prices: Sequence[Price] = (), files: Sequence[PriceFile] = ()) -> None:
        self.prices = list(prices)
        self.files = list(files)
        self._found: dict[tuple[str, date | None], list[Price]] = {}
        """The prices that were looked up, by model and day."""

    def cost(self, agent: str, model: str, time: int | None, numbers: Mapping[str, int | float], is_response: bool) -> float | None:
        """Returns the cost of tokens in US dollars; None if it is not known.

        Long prompts may have a price of their own. It is not known whether tokens that no response accounts for were in one.
        """
        used = _Tokens(agent, numbers)
        day = None if time is None or time < EARLIEST_CALENDAR_MS else _day(time // DAY_MS)
        found = self._found.get((model, day))
        if found is None:
            found = self._found[model, day] = [price for price in self.prices if price.holds(model, day)]
        if not is_response and any(price.prompt_over for price in found):
            return None
        fitting = [price for price in found if used.prompt > price.prompt_over or not price.prompt_over]
        return used.cost(max(fitting, key=lambda price: price.prompt_over)) if fitting else None


@lru_cache(maxsize=4096)
def _day(number: int) -> date:
    return to_datetime(number * DAY_MS).date()


class _Tokens:
    """Tokens by what is paid for them: no token is in two of the counts."""

    def __init__(self, agent: str, numbers: Mapping[str, int | float]) -> None:
        def count(name: str) -> int | float:
            return numbers.get(name) or 0

        self.cache_read, written = count("cache_read_input_tokens"), count("cache_creation_input_tokens")
        self.written_1h = min(count("hour_cache_creation_input_tokens"), written)
        self.written_5m = written - self.written_1h
        self.reasoning, self.input, self.output = count("reasoning_tokens"), count("input_tokens"), count("output_tokens")
        if agent not in CACHE_BESIDE_INPUT and self.cache_read + written <= self.input:  # a part is not larger than the whole
            self.input -= self.cache_read + written
        if agent not in REASONING_BESIDE_OUTPUT:
            self.output = max(0, self.output - self.reasoning)
        self.prompt = self.input + self.cache_read + written

    def cost(self, price: Price) -> float:
        write = price.input if price.cache_write_5m is None else price.cache_write_5m
        parts = (
            (self.input, price.input),
            (self.output, price.output),
            (self.reasoning, price.output if price.reasoning is None else price.reasoning),
            (self.cache_read, price.input if price.cache_read is None else price.cache_read),
            (self.written_5m, write),
            (self.written_1h, write if price.cache_write_1h is None else price.cache_write_1h),
        )
        return sum(tokens * rate for tokens, rate in parts) / MILLION


prepare(globals())
