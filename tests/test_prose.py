"""The texts get clearer and never less clear: no rule of tools/prose.toml is broken more often than tools/prose-budget.toml allows."""

from __future__ import annotations

import re

import pytest

from tools import prose
from tools.prose import AREAS, Text, budget, lowered, matches, rules, without_code, written

CHECKED = [(rule.id, area) for rule in rules().values() for area in rule.areas]


@pytest.mark.parametrize(("rule", "area"), CHECKED)
def test_a_rule_is_broken_no_more_often_than_before_and_progress_is_kept(rule: str, area: str) -> None:
    found, most = matches(rules()[rule], area), budget()[rule][area]
    examples = "\n".join(found[:20])
    assert len(found) <= most, (
        f"{len(found)} in {area}, at most {most}; write {rules()[rule].write}. All: python tools/prose.py {rule}\n{examples}"
    )
    assert len(found) == most, f"{area} has {len(found)}, fewer than the {most} of the budget: run `make prose`"


def test_the_budget_has_every_rule_and_no_other() -> None:
    assert [(rule, area) for rule, areas in budget().items() for area in areas] == CHECKED


@pytest.mark.parametrize("area", AREAS)
def test_every_area_has_texts(area: str) -> None:
    assert len(prose.texts(area)) > 20


def test_a_budget_is_lowered_and_never_raised() -> None:
    assert lowered({"a": {"docs": 3, "page": 3}}, {"a": {"docs": 2, "page": 4}}) == {"a": {"docs": 2, "page": 3}}
    assert lowered({}, {"new": {"docs": 5}}) == {"new": {"docs": 5}}
    assert "[a]\ndocs = 2\n" in written({"a": {"docs": 2}})


def test_code_in_markdown_is_no_prose() -> None:
    page = "Text.\n\n```console\n$ nobody\n```\n\n`nobody` [words](nobody.md) <!-- nobody\n -->\nnobody\n"
    assert "".join(without_code(page).split()) == "Text.[words]nobody"
    assert without_code(page).count("\n") == page.count("\n")


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("go-on", "and goes on"),
        ("nobody-somebody", "Nobody asked"),
        ("sub-agent", "A sub-agent"),
        ("british", "recognise"),
        ("participle-function", "    def _told(self) -> str:"),
        ("preposition-function", "def of(events):"),
        ("catch-all-module", "src/hansard/words.py"),
    ],
)
def test_what_is_avoided_is_found(rule: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    area = rules()[rule].areas[0]
    monkeypatch.setattr(prose, "texts", lambda _: [Text("somewhere:1", text)])
    assert len(matches(rules()[rule], area)) == 1


def test_strings_of_javascript_are_found_and_comments_are_not() -> None:
    found = [match[1] or match[2] for match in prose.JAVASCRIPT.finditer('say("one two"); // "three four"\nconst x = `five ${six} seven`;')]
    assert [re.sub(r"\$\{.*?\}", "", text) for text in found if text] == ["one two", "five  seven"]
