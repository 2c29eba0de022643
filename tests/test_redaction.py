"""Secrets are masked wherever they stand, whole or in pieces, in every form; what is no secret stays as it was."""

from __future__ import annotations

import base64
import itertools
import json
import random
import re
import string
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hansard
from hansard.cli import main
from hansard.events import (
    AssistantChunk,
    AssistantDone,
    Event,
    ToolCall,
    ToolInputChunk,
    assistant_chunk,
    assistant_done,
    process,
    session_lifecycle,
    status_change,
    tool_call,
    tool_input_chunk,
    tool_output_chunk,
    tool_result,
    turn_end,
    turn_start,
    user_message,
)
from hansard.events.codec import encode, encode_lines
from hansard.events.originals import unwrap, wrap
from hansard.projections import FORMATS
from hansard.projections.redaction.matching import Patterns
from hansard.projections.redaction.redact import HELD_EVENTS, mask_text, redact
from hansard.projections.redaction.rules import RULES, Rule
from tests.proof import Figures, amount, proves
from tests.pumps import LINEAR, Pump, exponent, pumps
from tests.test_bad_input import cases

OWN = "a-token-of-our-server"


def secret_of(case: dict[str, Any]) -> str:
    return "".join(case["parts"]).replace("|CHUNK|", "").replace("{SERVER_TOKEN}", OWN)


SECRETS = [pytest.param(secret_of(case), id=case["kind"]) for case in cases("secrets")]
every_secret = pytest.mark.parametrize("secret", SECRETS)


def core(secret: str) -> str:
    """The end of what nobody may read: of the longest piece, but where that is a name or a mark."""
    return {"https": "pa55w0rd", '"priv': "nEXAMPLE", "DB_PA": "hunter2EXAMPLE", "Set-C": "3EXAMPLE4", "-----": "3EXAMPLE4"}.get(
        secret[:5], secret[-10:]
    )


def events_with(text: str) -> list[Event]:
    return [user_message(text=text), tool_call(tool_call_id="c", tool_name="Bash", args={"command": text}), assistant_done(text=text)]


@proves("S-06")
@every_secret
@pytest.mark.parametrize("around", ["{}", "see {} there", "first\n{}\nlast", '{{"key": "{}"}}', "a=1&x={}"])
def test_a_secret_is_masked_in_every_field(secret: str, around: str) -> None:
    text = around.format(secret)
    masked = redact([*events_with(text), user_message(text=json.dumps({"in": json.dumps([text])}))], [OWN])
    out = encode_lines(masked).decode()
    assert "[redacted:" in out
    assert core(secret) not in out
    assert core(secret) not in str(masked.masked)
    assert sum(masked.masked[kind]["user_message"] for kind in masked.masked) == 2


@proves("S-06")
@every_secret
@pytest.mark.parametrize("size", [1, 2, 5, 13])
def test_a_secret_in_pieces_is_masked_and_the_pieces_still_make_the_whole(secret: str, size: int) -> None:
    text = f"Here: {secret}\nand then more."
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    events = [assistant_chunk(text=piece) for piece in pieces] + [assistant_done(text=text)]
    out = list(redact(events, [OWN]))
    joined = "".join(event.payload.text for event in out if isinstance(event, AssistantChunk))
    assert [event.type for event in out] == [event.type for event in events]
    assert joined == out[-1].payload.text
    assert core(secret) not in joined and joined.startswith("Here: ") and joined.endswith("\nand then more.")


@proves("S-06")
@every_secret
def test_arguments_in_pieces_keep_their_offsets(secret: str) -> None:
    args = json.dumps({"first": secret, "then": f"echo {secret}", "last": [1, 2]})
    chunks = [tool_input_chunk(tool_call_id="c", chunk=args[at : at + 6], offset=at) for at in range(0, len(args), 6)]
    out = list(redact([*chunks, tool_call(tool_call_id="c", tool_name="t", args=json.loads(args))], [OWN]))
    joined = ""
    for event in out:
        if isinstance(event, ToolInputChunk):
            assert event.payload.offset == len(joined)
            joined += event.payload.chunk
    assert isinstance(out[-1], ToolCall) and json.loads(joined) == out[-1].payload.args
    assert core(secret) not in joined


@proves("S-06")
def test_pieces_of_two_streams_do_not_mix() -> None:
    key = "sk-ant-" + "api03-" + "EXAMPLE0" * 4
    mixed = [
        tool_output_chunk(tool_call_id=call, chunk=piece, offset=0)
        for pair in zip(key, "nothing to hide here, nothing at all, really nothing", strict=False)
        for call, piece in zip("ab", pair, strict=True)
    ]
    out = list(redact(mixed))
    text = {call: "".join(event.payload.chunk for event in out if event.payload.tool_call_id == call) for call in "ab"}
    assert text["a"] == "[redacted:anthropic]"
    assert text["b"] == "nothing to hide here, nothing at all, really nothing"[: len(key)]
    assert [event.payload.tool_call_id for event in out] == [event.payload.tool_call_id for event in mixed]


@proves("S-06")
def test_the_frames_of_pieces_are_masked_too() -> None:
    key = "sk-ant-" + "api03-" + "EXAMPLE0" * 4
    events: list[Event] = []
    for frame, piece in enumerate(key[at : at + 9] for at in range(0, len(key), 9)):
        first = turn_start(trigger="user")
        first.original, first.frame = wrap(json.dumps({"delta": {"text": piece}}).encode()), frame
        second = assistant_chunk(text=piece)
        second.frame = frame
        events += [first, second]
    out = list(redact([*events, assistant_done(text=key)]))
    frames = [json.loads(unwrap(event.original))["delta"]["text"] for event in out if event.original is not None]
    assert frames == [event.payload.text for event in out if isinstance(event, AssistantChunk)]
    assert "".join(frames) == "[redacted:anthropic]"


def nested(piece: str, so_far: str) -> Any:
    return {"data": json.dumps({"text": piece})}


def encoded(piece: str, so_far: str) -> Any:
    return {"data": base64.b64encode(piece.encode()).decode()}


def growing(piece: str, so_far: str) -> Any:
    return {"text": so_far}


@proves("S-06")
@pytest.mark.parametrize("spell", [nested, encoded, growing], ids=lambda spell: spell.__name__)
@pytest.mark.parametrize("line", ["%s", "data: %s\n"], ids=["a line", "an event"])
def test_a_frame_that_spells_a_piece_in_its_own_way_is_masked_whole_and_counted(spell: Any, line: str) -> None:
    key = "sk-ant-" + "api03-" + "EXAMPLE0" * 4
    events: list[Event] = []
    for frame, at in enumerate(range(0, len(key), 9)):
        event = assistant_chunk(text=key[at : at + 9])
        event.frame, event.original = frame, wrap((line % json.dumps(spell(key[at : at + 9], key[: at + 9]))).encode())
        events.append(event)
    masked = redact([*events, assistant_done(text=key)])
    frames = [unwrap(event.original).decode() for event in masked if event.original is not None]
    shown = [json.loads(frame.removeprefix("data: ")) for frame in frames]
    assert len(frames) == len(events) and all(frame.startswith(line.partition("%")[0]) for frame in frames)
    assert shown[1] == {"masked": "[redacted:frame]"}
    assert all("[redacted:" in str(frame) for frame in shown)
    assert masked.masked["frame"]["assistant_chunk, its frame"] == shown.count({"masked": "[redacted:frame]"})


@proves("S-06")
@pytest.mark.parametrize("frame", [b'{"key":"%s"}', b'data: {"key":"%s"}\n', b"\xff key=%s", b'{"a":1}  "%s"'])
def test_a_frame_of_any_kind_is_masked_and_stays_what_it_was(frame: bytes) -> None:
    key = b"sk-ant-" + b"api03-" + b"EXAMPLE0" * 4
    event = user_message(text="hi")
    event.original = wrap(frame % key)
    [out] = redact([event])
    assert out.original is not None and unwrap(out.original) == frame % b"[redacted:anthropic]"
    assert unwrap(event.original) == frame % key  # what was given is as it was


MARKED = ["sk-ant-" + "api03-" + "EXAMPLE0" * 4, "sk-proj-" + "EXAMPLE1" * 4, "github_pat_" + "EXAMPLE2" * 4]
PEM = "-----BEGIN RSA PRIVATE KEY-----\nTUlJRXhhbXBsZQ==" + "EXAMPLE3" * 4


@proves("S-06")
@pytest.mark.parametrize("secret", [*MARKED, PEM], ids=["anthropic", "openai", "github", "pem"])
@pytest.mark.parametrize("before", ["", "a", "ab", "key: ", "kind: Secret\n\0data"], ids=repr)
def test_a_secret_anywhere_in_base64_is_masked_whole_or_in_pieces(secret: str, before: str) -> None:
    encoded = base64.b64encode((before + secret).encode()).decode()
    text = f"It is {encoded} there"
    pieces = [assistant_chunk(text=text[at : at + 7]) for at in range(0, len(text), 7)]
    *chunks, done = redact([*pieces, assistant_done(text=text)])
    assert isinstance(done, AssistantDone)
    shown = done.payload.text.removeprefix("It is ").removesuffix("[redacted:base64] there")
    assert encoded.startswith(shown) and len(shown) <= len(encoded) - len(base64.b64encode(b"EXAMPLE0" * 4).rstrip(b"="))
    assert "".join(event.payload.text for event in chunks) == done.payload.text != text


def test_base64_without_a_secret_stays() -> None:
    text = base64.b64encode(random.Random(7).randbytes(300_000)).decode()
    assert [event.payload.text for event in redact([assistant_done(text=f"sk-ant- {text}")])] == [f"sk-ant- {text}"]


@proves("S-06")
def test_only_what_may_become_a_secret_is_held_back() -> None:
    fed: list[str] = []

    def events() -> Any:
        for text in ["Good ", "morning!", " The key is sk-", "ant-api03-" + "EXAMPLE0" * 3, " and,", " so on"]:
            fed.append(text)
            yield assistant_chunk(text=text)

    seen = [(len(fed), event.payload.text) for event in redact(events()) if isinstance(event, AssistantChunk)]
    assert seen == [(1, "Good "), (3, "morning!"), (5, " The key is [redacted:anthropic]"), (5, ""), (6, " and,"), (6, " so on")]


@proves("S-06")
def test_what_is_held_back_has_a_bound_and_is_masked_even_so() -> None:
    key = "sk-ant-" + "api03-" + "EXAMPLE0" * 4
    between = [status_change(status="running") for _ in range(HELD_EVENTS + 10)]
    out = list(redact([assistant_chunk(text=key[:20]), *between, assistant_chunk(text=key[20:]), assistant_chunk(text=" end")]))
    assert "".join(event.payload.text for event in out if isinstance(event, AssistantChunk)) == "[redacted:anthropic] end"


ORDINARY = [
    "toolu_01A09q90qw90lq917835lq9",
    "call_" + "a1B2c3D4e5F6g7H8i9J0k1L2",
    "123e4567-e89b-12d3-a456-426614174000",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "https://example.com:8080/a@b",
    "mailto:somebody@example.com",
    "password = get_password(user1)",
    "PASSWORD=$SECRET_VALUE",
    "export API_KEY=<your key here>",
    "ask-anthropic-for-more-tokens",
    "The bearer of authorization headers",
    '"inputTokens": 1234567890',
    "max_tokens=4096000000",
    "risk-or-reward-or-something-else-1",
    "def secret(token: str) -> password:",
    "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
    base64.b64encode(bytes(range(256)) * 20).decode(),
]


@pytest.mark.parametrize("text", ORDINARY)
def test_what_is_no_secret_stays(text: str) -> None:
    events = [*events_with(text), *(assistant_chunk(text=char) for char in text), tool_result(tool_call_id="c", result={"out": text})]
    masked = redact(events)
    assert [encode(event) for event in masked] == [encode(event) for event in events]
    assert masked.masked == {}


words = st.sampled_from(
    ["sk-", "ant-", "api03-", "EXAMPLE0EXAMPLE1", " ", "\n", '"', "\\", "Bearer ", "PASSWORD", "=", ":", "é", "eyJ", ".", "x"]
)


@proves("S-06")
@given(st.lists(words, max_size=20), st.lists(st.integers(1, 9), min_size=1))
def test_in_pieces_or_whole_the_same_is_masked(parts: list[str], sizes: list[int]) -> None:
    text, events, at = "".join(parts), list[Event](), 0
    while at < len(text):
        size = sizes[len(events) % len(sizes)]
        events.append(assistant_chunk(text=text[at : at + size]))
        at += size
    *chunks, done = redact([*events, assistant_done(text=text)])
    assert isinstance(done, AssistantDone)
    assert "".join(event.payload.text for event in chunks) == done.payload.text


spoken_words = st.sampled_from(
    [
        *("The ", "fox ", "jumps", " over", "\n", " https://", "x", "=", ": ", "task-1", "12345", "é", '"', "\\"),
        *("sk-ant-", "api03-", "EXAMPLE0EXAMPLE1EXAMPLE2", "PASSWORD", "Bearer ", "me:pa55word@", "gh", "p_", "token", "TOKEN"),
    ]
)


@st.composite
def talks(draw: st.DrawFn) -> list[Event]:
    """Several streams at once, ended or not, whole events in between, several events of a frame."""
    events: list[Event] = []
    for _ in range(draw(st.integers(1, 60))):
        text, call = draw(spoken_words), draw(st.sampled_from("ab"))
        event = draw(
            st.sampled_from(
                [
                    *[assistant_chunk(text=text)] * 6,
                    *[tool_output_chunk(tool_call_id=call, chunk=text, offset=0)] * 3,
                    tool_input_chunk(tool_call_id=call, chunk=text, offset=len(events)),
                    assistant_done(text=text),
                    tool_result(tool_call_id=call, result={"out": [text]}),
                    user_message(text=f"{text} {draw(spoken_words)}"),
                    turn_end(status="completed"),
                ]
            )
        )
        event.frame = draw(st.integers(0, 1)) + (events[-1].frame or 0 if events else 0)
        if not events or event.frame != events[-1].frame:
            event.original = wrap(json.dumps({"text": text}).encode())
        events.append(event)
    return events


@given(talks())
def test_many_at_once_or_one_by_one_the_same_is_masked(events: list[Event]) -> None:
    at_once, one_by_one = redact(events), redact(iter(events))
    assert encode_lines(at_once) == encode_lines(one_by_one)
    assert at_once.masked == one_by_one.masked


@given(talks(), st.lists(st.integers(0, 40), min_size=1).filter(any))
def test_blocks_of_any_size_give_the_same(events: list[Event], sizes: list[int]) -> None:
    blocks, at = list[list[Event]](), 0
    while at < len(events):
        blocks.append(events[at : at + sizes[len(blocks) % len(sizes)]])
        at += len(blocks[-1])
    in_blocks, one_by_one = redact(()), redact(iter(events))
    assert encode_lines(event for block in in_blocks.blocks(blocks) for event in block) == encode_lines(one_by_one)
    assert in_blocks.masked == one_by_one.masked


PATTERNS = Patterns()
ALPHABETS = {
    "a": string.ascii_letters + string.digits,
    "h": string.hexdigits[:16],
    "u": string.ascii_uppercase + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "d": string.digits,
}


def example_of(rule: Rule, chance: random.Random) -> str:
    """A secret with the format of a rule."""

    def fill(part: re.Match[str]) -> str:
        sort, count = part[1], part[2]
        if sort == "uuid":
            return str(uuid.UUID(int=chance.getrandbits(128), version=4))
        text = "".join(chance.choices(ALPHABETS[sort], k=int(count)))
        return (
            text
            if sort == "d" or int(count) < 4
            else text[:-2] + chance.choice("abcdef" if sort != "u" else "ABCDEF") + chance.choice(string.digits)
        )

    return re.sub(r"\{(uuid|[ahuld])(\d*)\}", fill, rule.example)


each_rule = pytest.mark.parametrize("rule", RULES, ids=[f"{rule.id}-{rule.anchors[0]}" for rule in RULES])


@each_rule
def test_a_rule_masks_its_example_wherever_it_stands(rule: Rule) -> None:
    for seed in range(20):
        secret = example_of(rule, random.Random(seed))
        end = secret[-12:]
        for around in (
            "{}",
            "It is {} there",
            "a='{}'",
            "x:{},",
            "\x1b[01;31m\x1b[K{}\x1b[m",
            json.dumps("1\n{}\n2"),
            json.dumps(json.dumps("1\t{}")),
            "/cb?q={}&p=2",
        ):
            text = around.replace("{}", secret)
            assert end not in mask_text(text), text


@each_rule
def test_a_rule_leaves_its_counter_example(rule: Rule) -> None:
    assert mask_text(rule.counter_example) == rule.counter_example
    assert mask_text(f"Values begin with `{rule.anchors[0]}`…") == f"Values begin with `{rule.anchors[0]}`…"


@given(st.sampled_from(RULES), st.integers(0, 2**32), st.text(max_size=4), st.text(max_size=4))
def test_whatever_is_a_secret_is_worth_looking_closer(rule: Rule, seed: int, before: str, after: str) -> None:
    text = before + example_of(rule, random.Random(seed)) + after
    assert PATTERNS.possible(text) or not PATTERNS.find(text)


CORPUS = cases("secret-formats")


def leaked(case: dict[str, Any], masked: str) -> bool:
    """Whether eight characters of what is random in a secret are still there."""
    text = "".join(case["parts"])
    cores = [text[first:last] for first, last in case["core"]]
    return any(core[at : at + 8] in masked for core in cores for at in range(max(1, len(core) - 7)))


def masked_case(case: dict[str, Any]) -> str:
    text = "".join(case["parts"])
    if "chunks" not in case:
        [event] = redact([assistant_done(text=text)])
        return event.payload.text
    ends = list(itertools.accumulate(case["chunks"]))
    chunks = [assistant_chunk(text=text[first:last]) for first, last in zip([0, *ends], ends, strict=False)]
    return "".join(event.payload.text for event in redact(chunks))


@proves("S-06")
@pytest.mark.parametrize("form", ["plain", "json", "url", "ansi", "deltas", "base64"])
def test_the_secrets_of_140_kinds_are_masked(form: str, figure: Figures) -> None:
    those = [case for kind in CORPUS for case in kind["cases"] if case["form"] == form]
    missed = [case["id"] for case in those if leaked(case, masked_case(case))]
    figure("secrets", len(those) - len(missed))
    figure("missed", len(missed))
    assert len(missed) <= len(those) / 50, missed


@proves("S-06")
def test_a_text_with_a_secret_stays_what_it_was_but_for_the_secret() -> None:
    for case in (case for kind in CORPUS for case in kind["cases"] if case.get("json")):
        before, after = json.loads("".join(case["parts"])), json.loads(masked_case(case))
        assert type(before) is type(after) and list(before) == list(after)


@proves("S-06")
def test_ordinary_text_is_masked_by_mistake_in_one_of_a_hundred_lines_at_most(figure: Figures) -> None:
    lines = [
        "".join(case["parts"])
        for case in (*cases("ordinary-lines"), *(example for kind in CORPUS for example in kind["counter_examples"]))
        if all(isinstance(part, str) for part in case["parts"])
    ]
    changed = [line for line in lines if mask_text(line) != line]
    figure("ordinary lines", len(lines))
    assert len(changed) <= len(lines) / 100, changed


WORDS = ("PASSWORD=", "token: ", '"api_key": "', "Authorization: Bearer ", "Cookie: a=", "https://a:", "curl -u a:", "password ", "login ")
UNITS = ("a", "A", "1", "_", "-", ".", "/", ":", "=", "@", "\\", '\\"', "\\u00", "%5", "\x1b[31m", " ", "\n", "aB3", "!")
ANCHORS = sorted({rule.anchors[0] for rule in RULES})
STARTS = [
    *random.Random(0).sample(WORDS, amount(len(WORDS), len(WORDS), quick=4)),
    *random.Random(0).sample(ANCHORS, amount(11, len(ANCHORS), quick=3)),
    "-----BEGIN RSA " + "PRIVATE KEY-----\n",
]


@proves("S-06")
@pytest.mark.parametrize("start", STARTS)
def test_masking_takes_time_in_proportion_to_the_text(start: str) -> None:
    for unit in (*random.Random(start).sample(UNITS, amount(4, len(UNITS), quick=1)), start):
        for text in (lambda count: start + unit * (count // len(unit)), lambda count: (start + unit) * (count // len(start + unit))):  # noqa: B023
            assert exponent(lambda size: partial(mask_text, text(size)), 10_000) < LINEAR, (start, unit)  # noqa: B023


@proves("S-06")
@each_rule
def test_a_rule_takes_time_in_proportion_to_the_text(rule: Rule) -> None:
    some = [pump for body in (rule.body, rule.before) if body for pump in pumps(re.compile(body))]
    for pump in random.Random(rule.id).sample(some, min(len(some), amount(3, 40, quick=1))):
        for anchor in rule.anchors[:1]:
            for start, unit in (
                (anchor + pump.start, pump.unit),
                ("", f"{pump.start}{pump.unit} {anchor}{pump.unit}"),
                ("", anchor + pump.unit),
            ):
                text = Pump(start, unit, pump.end).text
                assert exponent(lambda size: partial(mask_text, text(size)), 5000) < LINEAR, (anchor, pump)  # noqa: B023


@proves("S-06")
@every_secret
def test_a_secret_is_seen_at_a_glance(secret: str) -> None:
    ordinary: list[Event] = [assistant_chunk(text=f" word {number}") for number in range(300)]
    for place in (0, 150, 299):
        out = redact([*ordinary[:place], *(assistant_chunk(text=char) for char in f"\n{secret}\n"), *ordinary[place:]], [OWN])
        assert core(secret) not in "".join(event.payload.text for event in out)


@proves("S-06")
def test_what_goes_on_behind_the_end_of_a_turn_is_held_back_too() -> None:
    key = "ghp_" + "EXAMPLE0" * 5
    ordinary: list[Event] = [assistant_chunk(text=f" word {number}") for number in range(20)]
    blocks = [
        [*ordinary, assistant_chunk(text=" gh"), turn_end(status="completed"), assistant_chunk(text="p")],
        [assistant_chunk(text=key[3:])],
    ]
    in_blocks = redact(())
    first, *rest = in_blocks.blocks(blocks)
    assert first[-2:] == blocks[0][-3:-1]
    assert "EXAMPLE0" not in str(rest)


@proves("S-06")
def test_a_secret_of_ours_is_found_whatever_is_in_it() -> None:
    ours = "ΑΣ\\d0g"
    [event] = redact([assistant_chunk(text=f"it is {ours}x")], [ours])
    assert event.payload.text == "it is [redacted:own]x"


@proves("S-06")
def test_a_frame_that_is_no_text_is_looked_at_wherever_the_secret_stands() -> None:
    key = b"sk-ant-" + b"api03-" + b"EXAMPLE0" * 4
    for before in (b"\xff ", b"\xff  ", b"\xff   "):  # base64 says the same in three ways
        event = status_change(status="running")
        event.original = wrap(before + key)
        [out] = redact([event])
        assert out.original is not None and unwrap(out.original) == before + b"[redacted:anthropic]"


@pytest.fixture(scope="module")
def secret_wire(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wire that says every secret: in a question, a call, its result, and an answer in pieces."""
    file = tmp_path_factory.mktemp("secrets") / "wire.jsonl"
    lines: list[dict[str, Any]] = [{"type": "system", "subtype": "init", "session_id": "s", "model": "m"}]
    for number, case in enumerate(cases("secrets")):
        if case["kind"] == "ours":
            continue
        text = f"It is\n{secret_of(case)}\nthere"
        use = {"type": "tool_use", "id": f"c{number}", "name": "Bash", "input": {"command": text}}
        lines += [
            {"type": "user", "message": {"role": "user", "content": text}},
            *(
                {
                    "type": "stream_event",
                    "event": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": part}},
                }
                for part in (text[:12], text[12:20], text[20:])
            ),
            {"type": "assistant", "message": {"id": f"m{number}", "content": [{"type": "text", "text": text}, use]}},
            {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": f"c{number}", "content": text}]}},
        ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


@proves("S-06")
@pytest.mark.parametrize("form", sorted(FORMATS))
def test_every_form_is_exported_without_secrets(secret_wire: Path, tmp_path: Path, form: str, capfd: pytest.CaptureFixture[str]) -> None:
    out, report = tmp_path / "out", tmp_path / "report.json"
    assert main(["export", str(secret_wire), "--from", "claude-stream-json", "--to", form, "-o", str(out), "--report", str(report)]) == 0
    text = out.read_text() + report.read_text() + capfd.readouterr().err
    for case in cases("secrets"):
        if case["kind"] != "ours":
            assert core(secret_of(case)) not in text.replace("[redacted:", ""), case["kind"]
    masked = json.loads(report.read_text())["masked"]
    assert {"anthropic", "openai", "pem", "jwt", "cookie", "env-line", "basic-url"} <= set(masked)
    if form == "native":
        assert all(json.loads(line) for line in out.read_text().splitlines())


@proves("S-06")
def test_secrets_stay_if_one_says_so(secret_wire: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["export", str(secret_wire), "--from", "claude-stream-json", "--to", "native", "--no-redact", "-o", str(out)]) == 0
    assert out.read_bytes() == secret_wire.read_bytes()


def test_it_is_there_by_its_name() -> None:
    made = hansard.redact([user_message(text="DB_PASSWORD=hunter2EXAMPLE")])
    [event] = made
    assert msgspec.to_builtins(event.payload) == {"text": "DB_PASSWORD=[redacted:env-line]"}
    assert made.masked == {"env-line": {"user_message": 1}}


@proves("S-06")
@pytest.mark.parametrize("alone", [False, True], ids=["at once", "one by one"])
def test_what_a_session_gives_to_mcp_servers_is_secret_from_its_launch_on(alone: bool) -> None:
    servers = {
        "near": {"command": "server", "env": {"FOO": "quite-odd-77", "LEVEL": "verbose", "DEBUG": "1", "PLACE": "/opt/tools99/bin"}},
        "far": {"url": "https://far.example", "headers": {"X-Custom": "Plain other-odd-88"}},
    }
    events = [
        session_lifecycle(subtype="launched", detail={"agent": "claude", "options": {"mcpServers": servers}}),
        process(event="started", argv=["claude", "--mcp-config=" + json.dumps({"mcpServers": servers})]),
        assistant_done(text="I was given quite-odd-77. Plain and verbose in /opt/tools99/bin, 1 of 1."),
    ]
    masked = list(redact(iter(events) if alone else events))
    text = b"".join(map(encode, masked)).decode()
    assert "quite-odd-77" not in text and "other-odd-88" not in text
    said = masked[-1].payload.text
    assert said.startswith("I was given [") and said.endswith(". Plain and verbose in /opt/tools99/bin, 1 of 1.")
