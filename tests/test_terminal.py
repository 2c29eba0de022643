"""What a terminal may see."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hansard.projections.terminal_text import columns, escape_text, shortened, visible_line, wants_colour
from tests.proof import proves

CASES = [json.loads(line) for line in (Path(__file__).parent / "bad-input" / "render.jsonl").read_text().splitlines()]
TTY = {case["id"]: case["payload"] for case in CASES if "terminal-safe" in case["expect"]}
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")


@proves("S-02")
@pytest.mark.parametrize("payload", TTY.values(), ids=TTY.keys())
def test_nothing_reaches_the_terminal_that_drives_it_or_hides_in_it(payload):
    assert not UNSAFE.search(escape_text(payload))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\rb", "a\\rb"),
        ("\u202etxt.exe", "\\u202etxt.exe"),
        ("\U000e0041", "\\U000e0041"),
        ("half \ud83d", "half \\ud83d"),
        ("two\n\tlines, café, 日本, 👍", "two\n\tlines, café, 日本, 👍"),
        ("❤\ufe0f 👩\u200d💻 👍🏽 1\ufe0f\u20e3 🏳\ufe0f\u200d🌈", "❤\ufe0f 👩\u200d💻 👍🏽 1\ufe0f\u20e3 🏳\ufe0f\u200d🌈"),
        ("a\u200db x\ufe0f 5\ufe0f", "a\\u200db x\\ufe0f 5\\ufe0f"),
        ("👍\u200d 👍\ufe0f\ufe0f 👩\u200d\u200d💻", "👍\\u200d 👍\ufe0f\\ufe0f 👩\\u200d\\u200d💻"),
        ("🏴\U000e0067\U000e007f", "🏴\\U000e0067\\U000e007f"),
    ],
)
def test_hidden_characters_are_spelled_out_and_others_stay(text, shown):
    assert escape_text(text) == shown


def test_a_table_cell_is_one_line():
    assert visible_line("a\nb\tc") == "a\\nb\\tc"


def test_wide_characters_take_two_columns():
    assert columns("日本") == 4
    assert shortened("日本語です", 5) == "日本…"
    assert shortened("short", 5) == "short"
    assert columns("👩\u200d💻❤\ufe0f") == 4
    assert shortened("👩\u200d💻👩\u200d💻👩\u200d💻", 5) == "👩\u200d💻👩\u200d💻…"


@pytest.mark.parametrize(
    ("terminal", "no_colour", "wanted"), [(True, None, True), (True, "", True), (True, "1", False), (False, None, False)]
)
def test_colours_are_for_terminals_unless_somebody_says_no(terminal, no_colour, wanted):
    class Stream:
        def isatty(self) -> bool:
            return terminal

    assert wants_colour(Stream(), no_colour) is wanted
