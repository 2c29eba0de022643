"""Prices: the table that comes with hansard, the user's own file, and what a bad one says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from hansard.cli.verbs.usage import command
from hansard.errors import UsageError
from hansard.events import Usage, session_init, turn_end, turn_start, usage
from hansard.events.prices import Price, PriceTable
from hansard.store import JsonlStore
from hansard.store.usage import PRICES_VARIABLE, load_prices

NOON = 1_767_268_800_000  # 2026-01-01
PRICE = '[[price]]\nmodels = ["m"]\nsource = "the contract"\ninput = 1\noutput = 2\n'


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PRICES_VARIABLE, raising=False)


def test_every_price_of_the_table_has_a_source_and_no_two_hold_at_once() -> None:
    table = load_prices()
    assert all(price.source.startswith("https://") for price in table.prices)
    for number, price in enumerate(table.prices):
        for other in table.prices[number + 1 :]:
            together = (price.until is None or other.since is None or price.until > other.since) and (
                other.until is None or price.since is None or other.until > price.since
            )
            assert not ({*price.models} & {*other.models} and together and price.prompt_over == other.prompt_over), price.models
    assert table.files[0].updated is not None and len(table.files[0].digest) == 64


def test_a_price_holds_from_its_first_day_until_its_last() -> None:
    table = PriceTable(
        [
            Price(["m"], "s", 1, 1, until=_day(2026, 1, 2)),
            Price(["m"], "s", 3, 3, since=_day(2026, 1, 2), until=_day(2026, 1, 3)),
        ]
    )
    day = 24 * 3600 * 1000
    costs = [table.cost("claude", "m", NOON + number * day, {"input_tokens": 1_000_000}, True) for number in range(3)]
    assert costs == [1.0, 3.0, None]


def _day(year: int, month: int, day: int):
    from datetime import date

    return date(year, month, day)


def test_a_long_prompt_has_a_price_of_its_own_and_a_rest_has_none() -> None:
    table = PriceTable([Price(["m"], "s", 1, 1), Price(["m"], "s", 2, 2, prompt_over=1000)])
    assert table.cost("claude", "m", None, {"input_tokens": 1000}, True) == 0.001
    assert table.cost("claude", "m", None, {"input_tokens": 501, "cache_read_input_tokens": 500}, True) == pytest.approx(0.002002)
    assert table.cost("claude", "m", None, {"input_tokens": 1000}, False) is None


KINDS = Price(["m"], "s", input=1, output=10, cache_read=100, cache_write_5m=1000, cache_write_1h=10_000, reasoning=100_000)
TOKENS = {
    "input_tokens": 6,
    "output_tokens": 3,
    "cache_read_input_tokens": 2,
    "cache_creation_input_tokens": 3,
    "hour_cache_creation_input_tokens": 1,
    "reasoning_tokens": 1,
}


@pytest.mark.parametrize(
    ("agent", "millionths"),
    {
        "claude": 6 * 1 + 2 * 10 + 1 * 100_000 + 2 * 100 + 2 * 1000 + 1 * 10_000,
        "opencode": 6 * 1 + 3 * 10 + 1 * 100_000 + 2 * 100 + 2 * 1000 + 1 * 10_000,
        "codex": 1 * 1 + 2 * 10 + 1 * 100_000 + 2 * 100 + 2 * 1000 + 1 * 10_000,
        "gemini": 1 * 1 + 3 * 10 + 1 * 100_000 + 2 * 100 + 2 * 1000 + 1 * 10_000,
    }.items(),
)
def test_every_kind_of_token_is_paid_for_once(agent: str, millionths: int) -> None:
    """Claude and OpenCode count the cache beside the input, Gemini and OpenCode the reasoning beside the output."""
    assert PriceTable([KINDS]).cost(agent, "m", None, TOKENS, True) == pytest.approx(millionths / 1_000_000)


def test_a_model_that_the_table_does_not_name_has_no_price() -> None:
    table = load_prices()
    assert table.cost("claude", "claude-opus-4-5", NOON, {"input_tokens": 1}, True) is not None
    assert table.cost("claude", "claude-opus-4-5-20990101", NOON, {"input_tokens": 1}, True) is None
    assert table.cost("claude", "", NOON, {"input_tokens": 1}, True) is None


@pytest.mark.parametrize("by_variable", [True, False])
def test_the_users_file_replaces_the_prices_of_the_models_it_names(
    by_variable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / ("mine.toml" if by_variable else "prices.toml")
    path.write_text(PRICE.replace('"m"', '"m", "claude-opus-5-5"'))
    if by_variable:
        monkeypatch.setenv(PRICES_VARIABLE, str(path))
    table = load_prices(None if by_variable else tmp_path)
    costs = [table.cost("claude", model, NOON, {"input_tokens": 1_000_000}, True) for model in ("m", "claude-opus-5-5", "claude-opus-5")]
    assert costs == [1.0, 1.0, 5.0]
    assert [file.path for file in table.files] == ["prices.toml", str(path)]


BAD = {
    "no TOML": ("[[price", "Expected"),
    "no price": ("updated = 2026-01-01\n", "price"),
    "no output": (PRICE.replace("output = 2\n", ""), "output"),
    "a word": (PRICE.replace("input = 1", 'input = "one"'), "input"),
    "less than nothing": (PRICE.replace("input = 1", "input = -1"), "0 or more"),
    "not a number": (PRICE.replace("input = 1", "input = nan"), "0 or more"),
    "a kind that nobody knows": (PRICE + "cache = 3\n", "cache"),
    "days in the wrong order": (PRICE + "since = 2026-02-01\nuntil = 2026-01-01\n", "after"),
}


@pytest.mark.parametrize(("text", "problem"), BAD.values(), ids=BAD.keys())
def test_a_bad_file_of_prices_is_named_with_its_problem(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(text)
    with pytest.raises(UsageError) as raised:
        load_prices(tmp_path)
    assert str(tmp_path / "prices.toml") in str(raised.value) and problem in str(raised.value)


def test_a_named_file_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(PRICES_VARIABLE, str(tmp_path / "none.toml"))
    with pytest.raises(UsageError, match=r"none\.toml"):
        load_prices(tmp_path)


# ---- hansard usage


def write(root: Path, session: str, model: str, response: str, cost: float | None = None) -> None:
    with JsonlStore(root) as store:
        made = usage("message", Usage(input_tokens=1_000_000, output_tokens=0), model=model, cost_usd=cost)
        made.response_id = response
        events = [session_init(agent_id="claude"), turn_start("user"), made, turn_end("completed")]
        for event in events:
            event.turn_id, event.timestamp = "t", NOON
        store[session].append(events)


def run(root: Path, *arguments: str) -> str:
    outcome = CliRunner().invoke(command, ["--store", str(root), *arguments])
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def test_a_sum_says_what_it_leaves_out(tmp_path: Path) -> None:
    write(tmp_path, "one", "m", "a", cost=12.4)
    write(tmp_path, "copy", "m", "a", cost=12.4)
    write(tmp_path, "two", "claude-opus-5-5", "b")
    for number in range(3):
        write(tmp_path, f"unknown{number}", "nobody-knows", f"c{number}")
    table = run(tmp_path)
    assert "$16.40 (3 sessions without a price)" in table
    assert "$4.00 of it is computed from list prices" in table
    document = json.loads(run(tmp_path, "--by", "model", "--json"))
    total = document["total"]
    assert (total["costUsd"], total["reportedUsd"], total["pricedUsd"], total["sessionsWithoutPrice"]) == (16.4, 12.4, 4.0, 3)
    assert [group["name"] for group in document["groups"]] == ["claude-opus-5-5", "m", "nobody-knows"]
    assert document["prices"][0]["digest"] and total["responses"] == 5


@pytest.mark.parametrize(
    ("by", "names"),
    {"agent": ["claude"], "month": ["2026-01"], "session": ["one", "two"], "week": ["2025-12-29"]}.items(),
)
def test_usage_has_rows_by_what_was_asked_for(by: str, names: list[str], tmp_path: Path) -> None:
    write(tmp_path, "one", "m", "a")
    write(tmp_path, "two", "m", "b")
    document = json.loads(run(tmp_path, "--by", by, "--json"))
    assert [group["name"] for group in document["groups"]] == names
    assert sum(group["inputTokens"] for group in document["groups"]) == document["total"]["inputTokens"] == 2_000_000


def test_an_empty_store_has_no_usage(tmp_path: Path) -> None:
    assert "No sessions" in run(tmp_path)
