"""Blame, with real agents and people who edit one file in turns, through a rename and a rebase: every line against who really wrote it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from difflib import SequenceMatcher
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import Struct, field

import hansard
from hansard.cli import main
from tests.driving.model import Call, Step, is_conversation, model, says
from tests.driving.real_agents import FAMILIES, execute_options
from tests.driving.surroundings import Surroundings

pytestmark = pytest.mark.slow

HEADER = 6
"""The first lines, which only a commit on another branch changes."""
TRIVIAL = ("", "}", "    return None", "    )")
LONG = "HANSARD_LONG" in os.environ


class Owned(Struct):
    """A line, and the call that wrote it; None is a person."""

    text: str
    call: str | None = None


class Change(Struct):
    """Lines of the file that become others."""

    first: int
    last: int
    new: list[Owned]


class Play(Struct):
    """The file while it is edited, line by line with its owners."""

    around: Surroundings
    random: Random
    path: Path
    lines: list[Owned] = field(default_factory=list[Owned])
    edits: int = 0
    words: int = 0

    @property
    def text(self) -> str:
        return "".join(f"{line.text}\n" for line in self.lines)

    def line(self, call: str | None) -> Owned:
        """A new line: most have words of their own, some are as common as any."""
        self.words += 1
        common = self.random.random() < 0.12
        return Owned(self.random.choice(TRIVIAL) if common else f"    word_{self.words} = {self.random.randrange(10**6)}", call)

    def change(self, call: str | None) -> Change:
        """Something that a person or a model may do below the header."""
        first = self.random.randrange(HEADER, len(self.lines) + 1)
        kind = self.random.choice(("insert", "insert", "replace", "delete"))
        last = first if kind == "insert" else min(len(self.lines), first + self.random.randint(1, 2))
        new = [] if kind == "delete" and last > first else [self.line(call) for _ in range(self.random.randint(1, 5))]
        return Change(first, last, new)

    def apply(self, change: Change) -> None:
        """Make the change. A line that was there before keeps its owner: nobody wrote it anew."""
        old, new = self.lines[change.first : change.last], list(change.new)
        matcher = SequenceMatcher(None, [line.text for line in old], [line.text for line in new], autojunk=False)
        for block in matcher.get_matching_blocks():
            new[block.b : block.b + block.size] = old[block.a : block.a + block.size]
        self.lines[change.first : change.last] = new

    def next_id(self) -> str:
        self.edits += 1
        return f"call_edit_{self.edits}"

    def window(self, change: Change) -> tuple[int, int]:
        """Lines around a change that are in the file once, so that a tool can find them."""
        texts = [line.text for line in self.lines]
        first, last = max(0, change.first - 1), min(len(texts), change.last + 1)
        while self.text.count("".join(f"{text}\n" for text in texts[first:last])) > 1 or first == last:
            first, last = max(0, first - 1), min(len(texts), last + 1)
        return first, last


# --------------------------------------------------------------------------------------------------------------------
# What each model says so that its agent makes a change


def edit_call(agent: str, play: Play, change: Change, id: str) -> Call:
    first, last = play.window(change)
    texts = [line.text for line in play.lines]
    before, gone, after = texts[first : change.first], texts[change.first : change.last], texts[change.last : last]
    new = [line.text for line in change.new]
    if FAMILIES[agent] == "codex":
        rows = (
            [f" {text}" for text in before] + [f"-{text}" for text in gone] + [f"+{text}" for text in new] + [f" {text}" for text in after]
        )
        body = "\n".join(["*** Begin Patch", f"*** Update File: {play.path}", "@@", *rows, "*** End Patch", ""])
        return Call("apply_patch", body, id, is_text=True)
    old_text, new_text = ("".join(f"{text}\n" for text in part) for part in ([*before, *gone, *after], [*before, *new, *after]))
    if FAMILIES[agent] == "claude":
        return Call("Edit", {"file_path": str(play.path), "old_string": old_text, "new_string": new_text}, id)
    return Call("edit", {"filePath": str(play.path), "oldString": old_text, "newString": new_text}, id)


def read_call(agent: str, play: Play) -> list[Step]:
    match FAMILIES[agent]:
        case "claude":
            return [Step([Call("Read", {"file_path": str(play.path)})])]
        case "opencode":
            return [Step([Call("read", {"filePath": str(play.path)})])]
        case _:
            return []


async def agent_edits(agent: str, play: Play, count: int) -> None:
    """One session of an agent with so many edits; its script is made before it runs."""
    steps = read_call(agent, play)
    for _ in range(count):
        id = play.next_id()
        change = play.change(id)
        steps.append(Step([edit_call(agent, play, change, id)]))
        play.apply(change)
    with model(*steps, says("Done."), is_step=is_conversation) as served:
        how = execute_options(agent, served, play.around)
        answer = await hansard.execute_async(agent, f"Make {count} edits.", on_permission=lambda _: True, timeout=300, **how)
    assert answer.ok, answer.error
    assert play.path.read_text() == play.text, f"{agent} did not do what its model said"


def person_edits(play: Play) -> None:
    for _ in range(play.random.randint(1, 2)):
        play.apply(play.change(None))
    play.path.write_text(play.text)


def git(play: Play, *arguments: str) -> None:
    names = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b.example", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b.example"}
    subprocess.run(["git", *arguments], cwd=play.around.work, check=True, capture_output=True, env=os.environ | names)


def commit(play: Play, words: str) -> None:
    git(play, "add", "-A")
    git(play, "commit", "-q", "-m", words)


def rename(play: Play) -> None:
    commit(play, "before the rename")
    target = play.path.with_name("renamed.py")
    git(play, "mv", play.path.name, target.name)
    commit(play, "rename")
    play.path = target


def rebase(play: Play) -> None:
    """On another branch somebody adds a line to the header; the work is put on top of that."""
    commit(play, "work")
    git(play, "checkout", "-q", "-b", "side", "start")
    added = play.line(None)
    added.text = "import side"
    old = play.around.work / "file.py"
    rows = old.read_text().split("\n")
    old.write_text("\n".join([*rows[:3], added.text, *rows[3:]]))
    commit(play, "on the side")
    git(play, "checkout", "-q", "work")
    git(play, "rebase", "-q", "side")
    play.lines.insert(3, added)
    assert play.path.read_text() == play.text


async def play_all(folder: Path, agents: tuple[str, ...], rounds: int, edits: int) -> Play:
    around = Surroundings(folder)
    play = Play(around, Random(7), around.work / "file.py")
    play.lines = [Owned(f"# header {number}") for number in range(HEADER)] + [play.line(None) for _ in range(20)]
    git(play, "init", "-q", "-b", "work")
    play.path.write_text(play.text)
    commit(play, "start")
    git(play, "tag", "start")
    for number in range(rounds):
        await agent_edits(agents[number % len(agents)], play, edits)
        person_edits(play)
        if number == rounds // 3:
            rename(play)
        if number == 2 * rounds // 3:
            rebase(play)
    return play


def check(play: Play, capsys: pytest.CaptureFixture[str], least: float) -> None:
    """Every line of the file against its owner. A line in doubt counts if the edit that may have written it did."""
    store = str(play.around.home.parent / "store")
    capsys.readouterr()
    assert main(["blame", str(play.path), "--json", "--store", store]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["lines"]
    assert [row["text"] for row in found] == [f"{line.text}\n" for line in play.lines]
    wrong: list[str] = []
    in_doubt = 0
    for row, line in zip(found, play.lines, strict=True):
        said = None if row["edit"] is None or (row["verdict"] == "ambiguous" and line.call is None) else row["edit"]["call"]
        assert said is None or line.call is not None, f"line {row['line']} is a person's, and not of {said}: {line.text!r}"
        in_doubt += row["verdict"] == "ambiguous"
        if said != line.call:
            wrong.append(f"{row['line']}: {line.text!r} is of {line.call}, not {row['verdict']} {said}")
    agents_lines = sum(line.call is not None for line in play.lines)
    assert agents_lines > len(play.lines) / 3
    assert len(wrong) <= (1 - least) * len(play.lines), "\n".join(wrong)
    assert in_doubt <= len(play.lines) / 50
    assert main(["blame", str(play.path), "--agent-trace", "--store", store]) == 0
    record = json.loads(capsys.readouterr().out)
    ranges = [one for file in record["files"] for talk in file["conversations"] for one in talk["ranges"]]
    assert sum(one["end_line"] - one["start_line"] + 1 for one in ranges) == sum(row["verdict"] == "agent" for row in found)


def test_lines_of_two_agents_and_a_person(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play = asyncio.run(play_all(tmp_path, ("claude", "codex"), rounds=4, edits=5))
    check(play, capsys, least=0.97)


@pytest.mark.skipif(not LONG, reason="HANSARD_LONG=1 plays it: 200 edits by three agents")
def test_two_hundred_edits_by_three_agents_and_a_person(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play = asyncio.run(play_all(tmp_path, ("claude", "codex", "opencode"), rounds=25, edits=8))
    assert play.edits == 200
    check(play, capsys, least=0.99)
