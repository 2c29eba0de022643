"""What a session is after it was written as a message list or a trajectory and read back: the same facts, but for the differences here.

A fact is something that was said, called or given back. The table is the one in docs/messages.md, and a row that explains nothing fails.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hansard.events import Event, UserMessagePayload
from hansard.events.content import SlashCommandBlock, TextBlock
from hansard.projections.formats.anthropic_messages import BEGINNING
from hansard.projections.history import CLAUDE, NO_RESULT, fitting
from hansard.projections.text import block_text, result_text

OPENAI, ANTHROPIC, ATIF = "openai-messages", "anthropic-messages", "atif"


class Fact(NamedTuple):
    """Something in a session: who or what, which call it is about, what was said."""

    kind: str
    lane: str | None
    call: str
    said: str


@dataclass
class Facts:
    """The facts of a session in order, and what the table asks of some of them."""

    all: list[Fact] = field(default_factory=list)
    cut_off: set[Fact] = field(default_factory=set)
    sealed: set[Fact] = field(default_factory=set)
    typed: dict[Fact, str] = field(default_factory=dict)
    """What a person typed, where the program made something else of it."""
    in_words: list[str] = field(default_factory=list)
    """Blocks that no form has, in words."""


def facts_of(events: list[Event]) -> Facts:
    """The facts of a session."""
    found = Facts()
    for event in events:
        for fact in _facts(event):
            found.all.append(fact)
            if getattr(event.payload, "interrupted", None):
                found.cut_off.add(fact)
            if event.source in CLAUDE and (getattr(event.payload, "signature", None) or getattr(event.payload, "redacted", None)):
                found.sealed.add(fact)
            if event.type == "user_message" and _is_command(event.payload):
                found.typed[fact] = event.payload.text
        spoken = getattr(event.payload, "transcript", None) or getattr(event.payload, "transcription", None)
        found.in_words += [spoken] if spoken else []
        blocks = [event.payload.block] if event.type == "content_block" else getattr(event.payload, "content", None) or []
        found.in_words += [block_text(block) for block in blocks if not isinstance(block, TextBlock)]
    return found


def _facts(event: Event) -> Iterator[Fact]:
    lane, payload = event.parent_tool_call_id, event.payload
    match event.type:
        case "user_message":
            texts = [block.text for block in payload.content or [TextBlock(payload.text)] if isinstance(block, TextBlock)]
            yield Fact("user", lane, "", "\n".join(texts))
        case "assistant_done":
            yield Fact("text", lane, "", payload.text)
        case "thinking_done":
            yield Fact("thinking", lane, "", payload.text)
        case "tool_call":
            yield Fact("call", lane, payload.tool_call_id, f"{payload.tool_name} {json.dumps(payload.args, sort_keys=True)}")
        case "tool_result":
            yield Fact("result", lane, payload.tool_call_id, result_text(payload))
            if payload.is_error:
                yield Fact("failure", lane, payload.tool_call_id, "")
        case _:
            pass


def _is_command(payload: UserMessagePayload) -> bool:
    """Whether a message is a slash command of a person."""
    return payload.author == "human" and any(isinstance(block, SlashCommandBlock) for block in payload.content or [])


@dataclass
class Compared:
    """The facts before and after, and those that are on one side only."""

    before: Facts
    after: Facts

    def __post_init__(self) -> None:
        self.lost = Counter(self.before.all) - Counter(self.after.all)
        self.added = Counter(self.after.all) - Counter(self.before.all)

    def ends_an_answer(self, fact: Fact) -> bool:
        """Whether nothing more was said to its end by the same agent after it, before somebody else spoke."""
        main = [other for other in self.before.all if other.lane == fact.lane]
        after = main[main.index(fact) + 1 :]
        heard = (other.kind for other in after if other.kind != "thinking" and other not in self.before.cut_off)
        return next(heard, "user") not in ("text", "call")

    def other(self, fact: Fact, *kinds: str) -> list[Fact]:
        """The facts of these kinds that are on the other side only."""
        return [other for other in (self.added if fact in self.lost else self.lost) if other.kind in (kinds or (fact.kind,))]


Explains = Callable[[Fact, bool, Compared], Any]
"""Whether a fact that is on one side only (true: it is lost) is so for this reason."""


class Difference(NamedTuple):
    """A row of the table."""

    what: str
    forms: tuple[str, ...]
    why: str
    explains: Explains


def _in_one(fact: Fact, lost: bool, here: Compared) -> bool:
    """It is a part of one on the other side; or it consists of parts that are on the other side, and of nothing else."""
    others = [other.said for other in here.other(fact) if other.said]
    if lost:
        return any(fact.said in other for other in others)
    rest = fact.said
    for part in sorted([*others, *filter(None, here.before.in_words)], key=len, reverse=True):
        rest = rest.replace(part, "")
    return not rest.strip()


def _is_late(fact: Fact, lost: bool, here: Compared) -> bool:
    if not lost:
        return fact.kind == "user" and "[result of " in fact.said
    late = [other.said for other in here.added if other.kind == "user" and "[result of " in other.said]
    said = {other.said for other in here.before.all if other.kind == "result" and other.call == fact.call}
    return fact.kind in ("result", "failure") and any(words in text for words in said for text in late)


def _is_wrapped(fact: Fact, lost: bool, here: Compared) -> bool:
    """A call whose arguments are no object, or the same with one around them."""
    if fact.kind != "call":
        return False
    args = fact.said.partition(" ")[2]
    return not args.startswith("{") if lost else any(args == f'{{"input": {other.said.partition(" ")[2]}}}' for other in here.other(fact))


def _is_renamed(fact: Fact, lost: bool, here: Compared) -> bool:
    """It is about a call whose id or name is spelled otherwise on the other side."""
    if fact.kind not in ("call", "result", "failure"):
        return False
    before, after = (fact.call, None) if lost else (None, fact.call)
    for other in here.other(fact):
        one, two = before or other.call, after or other.call
        same_name = fact.said.partition(" ")[0] == other.said.partition(" ")[0] or fact.kind != "call"
        if (one != two or not same_name) and two.startswith(fitting(one, 1000)[:31]):
            return True
    return False


DIFFERENCES = (
    Difference(
        "A sub-agent's own words, calls and results are left out",
        (OPENAI, ANTHROPIC),
        "a history is one agent's; the result of the call has what it answered",
        lambda fact, lost, here: lost and fact.lane is not None,
    ),
    Difference(
        "Thinking is left out",
        (OPENAI,),
        "the API takes none",
        lambda fact, lost, here: lost and fact.kind == "thinking",
    ),
    Difference(
        "Thinking without a signature of Claude's, or with nothing said after it, is left out",
        (ANTHROPIC,),
        "the API refuses it",
        lambda fact, lost, here: lost and fact.kind == "thinking" and (fact not in here.before.sealed or here.ends_an_answer(fact)),
    ),
    Difference(
        "What was cut off is left out",
        (OPENAI, ANTHROPIC),
        "no model said it to its end",
        lambda fact, lost, here: lost and fact in here.before.cut_off,
    ),
    Difference(
        "A failure is not told",
        (OPENAI,),
        "results have no such field",
        lambda fact, lost, here: lost and fact.kind == "failure",
    ),
    Difference(
        "A call without a result has the result `[no result]`, and failed",
        (OPENAI, ANTHROPIC),
        "the API refuses a call that nothing answers",
        lambda fact, lost, here: not lost and any(o.said == NO_RESULT and o.call == fact.call for o in here.added if o.kind == "result"),
    ),
    Difference(
        "A result that came late, or whose call nobody saw, is told as the user's text",
        (OPENAI, ANTHROPIC),
        "the API takes results directly after their calls alone",
        _is_late,
    ),
    Difference(
        "Empty texts are left out",
        (OPENAI, ANTHROPIC, ATIF),
        "Anthropic's API refuses them, and a message or a step with a call needs none",
        lambda fact, lost, here: not fact.said.strip() and fact.kind != "failure",
    ),
    Difference(
        "Several texts that follow each other are one",
        (OPENAI, ANTHROPIC, ATIF),
        "a message has one text; in Anthropic's lists the roles take turns; a step has one reasoning",
        lambda fact, lost, here: fact.kind in ("user", "text", "thinking") and _in_one(fact, lost, here),
    ),
    Difference(
        "What a harness added to a prompt is a message of its own",
        (OPENAI, ANTHROPIC),
        "a list does not say who wrote which part of a message; the text does",
        lambda fact, lost, here: fact.kind == "user" and _in_one(fact, not lost, here),
    ),
    Difference(
        "A slash command is the text that was typed, without the `<command-name>` and the other tags that Claude Code makes of it",
        (OPENAI, ANTHROPIC, ATIF),
        "the tags are not the words of a person, and another agent would take them for that",
        lambda fact, lost, here: fact in here.before.typed if lost else fact.said in here.before.typed.values(),
    ),
    Difference(
        "Blocks that the format does not have are described in text",
        (OPENAI, ANTHROPIC, ATIF),
        "pictures by name, code, files, what nobody knows",
        lambda fact, lost, here: fact.kind in ("user", "text", "result") and any(words in fact.said for words in here.before.in_words),
    ),
    Difference(
        "A picture has its data or its address alone, in a trajectory its SHA-256",
        (ANTHROPIC, ATIF),
        "the format has room for no more",
        lambda fact, lost, here: not lost and any(words in fact.said for words in here.after.in_words),
    ),
    Difference(
        "A picture that a tool gave back follows as the user's",
        (OPENAI,),
        "results are text",
        lambda fact, lost, here: not lost and fact.kind == "user" and fact.said.startswith("[from "),
    ),
    Difference(
        "A record that begins with an answer begins with a line of the user's",
        (ANTHROPIC,),
        "the API wants the user to begin",
        lambda fact, lost, here: not lost and fact.said.startswith(BEGINNING),
    ),
    Difference(
        "Arguments that are no object are wrapped as `{input: …}`",
        (OPENAI, ANTHROPIC),
        "the API wants an object",
        _is_wrapped,
    ),
    Difference(
        "Ids and names of calls are spelled with letters, digits, _ and -, are short, and each id is there once",
        (OPENAI, ANTHROPIC),
        "the API refuses others",
        _is_renamed,
    ),
)


def unexplained(form: str, before: Facts, after: Facts) -> tuple[list[str], Counter[str]]:
    """The facts that no difference explains, and how often each difference explained one."""
    here, used, left = Compared(before, after), Counter[str](), list[str]()
    for lost, facts in ((True, here.lost), (False, here.added)):
        for fact in facts:
            reason = next((row.what for row in DIFFERENCES if form in row.forms and row.explains(fact, lost, here)), None)
            if reason is None:
                left.append(f"{'lost' if lost else 'added'}: {fact}")
            else:
                used[reason] += 1
    return left, used


def in_order(form: str, facts: Facts) -> list[list[Fact]]:
    """The facts whose order no form may change: who speaks after whom, and the calls. Within an answer, text may stand before calls."""
    main = [fact for fact in facts.all if fact.lane is None]
    kinds = [("user", "text", "call")] if form == ANTHROPIC else [("user", "text"), ("user", "call")]
    return [[fact for fact in main if fact.kind in some] for some in kinds]


def out_of_order(form: str, before: Facts, after: Facts) -> list[str]:
    """The first fact of each sequence that is not where it was, of those that are on both sides."""
    found: list[str] = []
    for one, two in zip(in_order(form, before), in_order(form, after), strict=True):
        both = Counter(one) & Counter(two)
        once = {fact for fact, count in both.items() if one.count(fact) == two.count(fact) == count}
        pairs = zip((fact for fact in one if fact in once), (fact for fact in two if fact in once), strict=True)
        found += [f"{first} where {second} is" for first, second in pairs if first != second][:1]
    return found
