"""The checks themselves: each one passes a good stream and fails a bad one. A check that cannot fail is worth nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from hansard.adapters.normalize import normalize
from hansard.events import (
    AssistantDone,
    ErrorInfo,
    Event,
    PermissionResponse,
    ThinkingDone,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UsageEvent,
    UserMessage,
    assistant_chunk,
    assistant_done,
    queue_update,
    tool_call,
    user_message,
)
from hansard.events.codec import decode, encode
from hansard.store import JsonlStore
from hansard.store.files.store import FolderLog
from hansard.testing import (
    Loss,
    check_adapter,
    check_events,
    check_originals,
    check_projection,
    check_recordings,
    check_store,
    check_truth,
    facts,
    plugins,
    promises,
    unshown,
    write_golden,
)
from hansard.testing import recordings as recorded
from hansard.testing.truth import Shown
from hansard.testing.values import some
from tests.recorded import FOLDER, Recording, normalize_recording, recordings

FORMAT = "claude-control"


def recording(name: str) -> Recording:
    return next(one for one in recordings() if one.id == name)


def events_of(name: str) -> list[Event]:
    return normalize_recording(recording(name), FORMAT)[0]


def first(events: list[Event], kind: type[Event]) -> Any:
    return next(event for event in events if isinstance(event, kind))


def lose(kind: type[Event], which: int = 0) -> Callable[[list[Event]], None]:
    def change(events: list[Event]) -> None:
        events.remove([event for event in events if isinstance(event, kind)][which])

    change.__name__ = f"lose_{kind.__name__}"
    return change


def same_id(events: list[Event]) -> None:
    events[1].id = events[0].id


def gap(events: list[Event]) -> None:
    events[3].seq += 1


def no_frame(events: list[Event]) -> None:
    events[0].frame = None


def frame_without_bytes(events: list[Event]) -> None:
    events[0].original = None


def frame_left_out(events: list[Event]) -> None:
    for event in events[3:]:
        event.frame = (event.frame or 0) + 1


def no_turn(events: list[Event]) -> None:
    first(events, AssistantDone).turn_id = None


def other_text(events: list[Event]) -> None:
    done = next(event for event in events if isinstance(event, AssistantDone) and len(event.payload.text) > 3)
    done.payload.text += " "


def other_arguments(events: list[Event]) -> None:
    first(events, ToolCall).payload.args = {"command": "something else"}


def result_for_nobody(events: list[Event]) -> None:
    first(events, ToolResult).payload.tool_call_id = "somebody else"


def answer_for_nobody(events: list[Event]) -> None:
    first(events, PermissionResponse).payload.request_id = "somebody else"


def usage_twice(events: list[Event]) -> None:
    for event in events:
        if isinstance(event, UsageEvent):
            event.payload.scope, event.response_id = "message", "m"


def failure_without_a_reason(events: list[Event]) -> None:
    first(events, TurnEnd).payload.status = "error"


def failure_of_nobody(events: list[Event]) -> None:
    end = first(events, TurnEnd)
    end.payload.status, end.payload.error = "error", ErrorInfo(code="unknown", message="it failed")


def text_that_is_a_number(events: list[Event]) -> None:
    first(events, AssistantDone).payload.text = 5


BROKEN = [
    (promises.check_order, same_id, "ids given twice"),
    (promises.check_order, gap, "seq has a gap"),
    (promises.check_frames, no_frame, "names no frame"),
    (promises.check_frames, frame_without_bytes, "has no original"),
    (promises.check_frames, frame_left_out, "after frame"),
    (promises.check_turns, no_turn, "says turn None"),
    (promises.check_turns, lose(TurnEnd), "says turn None|never end"),
    (promises.check_turns, lose(TurnStart), r"in \[\]"),
    (promises.check_closed, lose(ToolResult), "still open"),
    (promises.check_closed, lose(PermissionResponse), "still open"),
    (promises.check_chunks, other_text, "chunks say"),
    (promises.check_chunks, lose(AssistantDone), "never done"),
    (promises.check_chunks, other_arguments, "chunks say"),
    (promises.check_tools, result_for_nobody, "a result too many"),
    (promises.check_tools, lose(ToolResult), "without a result"),
    (promises.check_questions, answer_for_nobody, "nobody asked"),
    (promises.check_questions, lose(PermissionResponse), "never answered"),
    (promises.check_usage, usage_twice, "counted more than once"),
    (promises.check_failures, failure_without_a_reason, "does not say what"),
    (promises.check_failures, failure_of_nobody, "does not say whose"),
    (promises.check_json, text_that_is_a_number, "reads back"),
]


def test_a_good_stream_passes() -> None:
    check_events(events_of("claude-control/permission_ok"))


@pytest.mark.parametrize(("check", "change", "message"), BROKEN)
def test_a_broken_promise_is_found(check: Callable[..., None], change: Callable[..., None], message: str) -> None:
    events = events_of("claude-control/permission_ok")
    change(events)
    with pytest.raises(AssertionError, match=message):
        check(events)
    with pytest.raises(AssertionError):
        check_events(events)


def test_a_byte_that_is_lost_is_found() -> None:
    data = b'{"type":"x"}\r\nnoise \n'
    events = list(normalize(data, FORMAT))
    check_originals(FORMAT, data, events)
    events[1].original = Raw(b'{"text":"noise"}')
    with pytest.raises(AssertionError, match="originals differ from the stream at byte 19"):
        check_originals(FORMAT, data, events)


def test_a_line_that_is_lost_is_found() -> None:
    one = recording("claude-control/text").streams[0]
    events = list(normalize(one.data, FORMAT))
    with pytest.raises(AssertionError, match=r"originals for|the line was"):
        check_originals(FORMAT, one.data, events[2:])


def test_events_that_depend_on_the_reads_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def forgetful(source: Any, format: str, context: Any = None) -> list[Event]:
        calls.append(source)
        return list(normalize(source, format, context))[len(calls) - 1 :]

    monkeypatch.setattr(promises, "normalize", forgetful)
    with pytest.raises(AssertionError, match="all at once"):
        check_adapter(FORMAT, b'{"type":"x"}\n{"type":"y"}\n')


def test_a_field_nobody_read_or_reviewed_is_found() -> None:
    with pytest.raises(AssertionError, match="from_the_future"):
        check_adapter(FORMAT, b'{"type":"keep_alive","from_the_future":1}\n')


# --------------------------------------------------------------------------------------------------------------------
# The truth


def truth_of(name: str) -> tuple[list[Event], dict[str, Any], bytes]:
    events, wire = normalize_recording(recording(name), FORMAT)
    return [decode(encode(event)) for event in events], recording(name).truth, wire


def swap_said(events: list[Event]) -> None:
    one, two, *_ = [event for event in events if isinstance(event, AssistantDone)]
    one.payload.text, two.payload.text = two.payload.text, one.payload.text


def other_status(events: list[Event]) -> None:
    first(events, TurnEnd).payload.status = "error"


def other_usage(events: list[Event]) -> None:
    first(events, UsageEvent).payload.usage.input_tokens += 1


def under_a_parent(events: list[Event]) -> None:
    first(events, AssistantDone).parent_tool_call_id = "t"


def not_an_error(events: list[Event]) -> None:
    result = first(events, ToolResult).payload
    result.is_error, result.exit_code = False, None


def allowed(events: list[Event]) -> None:
    first(events, PermissionResponse).payload.decision = "allow"


def other_code(events: list[Event]) -> None:
    first(events, TurnEnd).payload.error.code = "unknown"


LIES = [
    ("multi_turn", lose(UserMessage), "user"),
    ("multi_turn", lose(AssistantDone), "text"),
    ("multi_turn", lose(ThinkingDone), "thinking"),
    ("multi_turn", lose(ToolCall), "tool_call"),
    ("multi_turn", lose(ToolResult), "tool_result"),
    ("multi_turn", lose(TurnEnd, -1), "end"),
    ("multi_turn", swap_said, "out of order"),
    ("multi_turn", other_usage, "usage"),
    ("multi_turn", under_a_parent, "another parent"),
    ("text", other_status, "end: completed"),
    ("tool_fail", not_an_error, "tool_result"),
    ("permission_deny", allowed, "permission"),
    ("err_rate_limit", other_code, "error_code: rate_limit"),
]


@pytest.mark.parametrize(("name", "change", "message"), LIES)
def test_what_is_not_as_it_really_was_is_found(name: str, change: Callable[[list[Event]], None], message: str) -> None:
    events, truth, wire = truth_of(f"claude-control/{name}")
    check_truth(events, truth, wire)
    change(events)
    with pytest.raises(AssertionError, match=message):
        check_truth(events, truth, wire)


def test_what_the_program_itself_lost_is_excused_and_nothing_else() -> None:
    events, truth, wire = truth_of("claude-control/tool_fail")
    not_an_error(events)
    loss = Loss(format=FORMAT, scenarios=["tool_fail"], kind="tool_result", reason="it does not say")
    check_truth(events, truth, wire, losses=[loss])
    other = Loss(format=FORMAT, scenarios=["tool_fail"], kind="tool_result", what="something else", reason="it does not say")
    with pytest.raises(AssertionError, match="explain nothing"):
        check_truth(events, truth, wire, losses=[other])


def test_what_the_wire_does_not_show_is_no_fact() -> None:
    truth = {"turns": [{"user": "never said on the wire", "model": [{"text": "nor this"}], "usage": {}, "end": "completed"}]}
    assert [fact.kind for fact in facts([], truth, b'{"type":"x"}\n')] == ["end"]


def test_what_only_the_truth_says_is_listed_unless_a_loss_explains_it() -> None:
    truth = one_turn({"text": "one… two… three… four"}, {"text": "in pieces"}, {"thinking": "aloud"})
    wire = json.dumps(["one… two… three…", "in", "aloud"]).encode()
    events: list[Event] = [assistant_done(text="one… two… three…"), assistant_done(text="in pieces")]
    assert [(fact.kind, fact.what) for fact in unshown(events, truth, wire)] == [("text", "one… two… three… four")]
    lost = Loss(format=FORMAT, scenarios=[], kind="text", what="four", reason="it is cut off")
    assert unshown(events, truth, wire, losses=[lost]) == []
    assert check_truth(events, one_turn({"text": "one… two… three… four"}), wire, losses=[lost]) == []


def test_what_the_user_said_is_missed_only_where_a_user_is_heard() -> None:
    truth = {"turns": [{"user": "to nobody", "model": [], "usage": {}, "end": "completed", "end_on_wire": False}]}
    assert unshown([], truth, b"[]") == []
    assert [fact.what for fact in unshown([user_message(text="something else")], truth, b"[]")] == ["to nobody"]


def test_a_fact_in_pieces_counts_as_shown() -> None:
    truth = {"turns": [{"user": None, "model": [{"text": "two pieces"}], "usage": {}, "end": "completed"}]}
    wire = b"\n".join(json.dumps({"delta": piece}).encode() for piece in ("two pie", "ces"))
    assert "two pieces" not in Shown(wire).text
    wire = b'["two pie"]\n["ces"]\n'
    assert [fact.kind for fact in facts([], truth, wire)] == ["text"]


def one_turn(*model: dict[str, Any], end: str = "completed") -> dict[str, Any]:
    return {"turns": [{"user": None, "model": list(model), "usage": {}, "end": end, "end_on_wire": False}]}


def missing(events: list[Event], truth: dict[str, Any], wire: bytes) -> list[str]:
    return [fact.what for fact in facts(events, truth, wire) if not fact.found]


@pytest.mark.parametrize(("said", "lost"), [("one. two.", []), ("two. one.", ["two."]), ("one.", ["two."])])
def test_what_a_wire_joins_is_found_in_one_event_and_in_order(said: str, lost: list[str]) -> None:
    truth = one_turn({"text": "one."}, {"text": "two."})
    assert missing([assistant_done(text=said)], truth, b'["one. two."]') == lost


def test_a_text_that_came_as_one_chunk_may_be_a_part_of_its_message() -> None:
    truth = one_turn({"text": "one."}, {"text": "two."})
    wire = b'["one."]\n["two."]'
    assert missing([assistant_done(text="one.two.")], truth, wire) == ["one.", "two."]
    chunks: list[Event] = [assistant_chunk(text="one."), assistant_chunk(text="two.")]
    assert missing([*chunks, assistant_done(text="one.two.")], truth, wire) == []


def test_a_queued_message_is_said_where_it_is_sent() -> None:
    truth = {"turns": [{"user": word, "model": [], "usage": {}, "end": "completed", "end_on_wire": False} for word in ("first", "later")]}
    queued: list[Event] = [user_message(text="later", queued=True, message_id="q"), user_message(text="first")]
    assert missing(queued, truth, b'["first", "later"]') == ["later"]
    assert missing([*queued, queue_update(action="sent", item_id="q")], truth, b'["first", "later"]') == []


@pytest.mark.parametrize(("args", "found"), [("a free text", True), ("another text", False), ({"patch": "a free text"}, False)])
def test_the_text_that_a_free_form_tool_takes_is_its_arguments(args: Any, found: bool) -> None:
    truth = one_turn({"tool_call": {"name": "patch", "args": {"input": "a free text"}}})
    events: list[Event] = [tool_call(tool_call_id="c", tool_name="patch", args=args)]
    assert (missing(events, truth, b'{"input": "a free text"}') == []) is found


@pytest.mark.parametrize(("wire", "shown"), [(b'{"refusal": null}', False), (b'{"refusal": "no"}', True), (b'{"stop": "refusal"}', True)])
def test_only_a_refusal_with_words_is_one(wire: bytes, shown: bool) -> None:
    assert Shown(wire).refusal is shown


def test_usage_without_a_name_is_its_own_and_a_name_counts_once() -> None:
    used = first(events_of("claude-control/permission_ok"), UsageEvent)
    used.payload.scope, used.response_id = "message", None
    events: list[Event] = [used, used]
    promises.check_usage(events)
    used.response_id = "m"
    with pytest.raises(AssertionError, match="counted more than once"):
        promises.check_usage(events)


def swap_pieces(events: list[Event]) -> None:
    for event in events:
        if isinstance(event, AssistantDone) and event.payload.text.startswith("Hello echo 123"):
            event.payload.text = event.payload.text.removeprefix("Hello echo 123") + "Hello echo 123"


def other_inner_arguments(events: list[Event]) -> None:
    first(events, ToolCall).payload.args["parsed_cmd"] = []


def counted_in_the_turn(events: list[Event]) -> None:
    for event in events:
        event.replay = False


def other_argument_of_a_command(events: list[Event]) -> None:
    next(event for event in events if isinstance(event, UserMessage) and event.payload.text.startswith("/")).payload.text = "/greet"


ACP_LIES = [
    ("acpecho-acp/echo", swap_pieces, "text: Zweiter"),
    ("codex-acp/tool_fail", other_inner_arguments, "tool_call: exec_command"),
    ("opencode-acp/config_change", other_argument_of_a_command, "user: lotus-argument"),
    ("qwen-acp/multi_turn", counted_in_the_turn, "usage: message input_tokens 165"),
]


@pytest.mark.parametrize(("name", "change", "message"), ACP_LIES)
def test_a_wire_without_boundaries_is_no_excuse(name: str, change: Callable[[list[Event]], None], message: str) -> None:
    events, wire = normalize_recording(recording(name), "acp")
    check_truth(events, recording(name).truth, wire)
    change(events)
    with pytest.raises(AssertionError, match=message):
        check_truth(events, recording(name).truth, wire)


def test_a_call_with_nothing_to_know_it_by_is_a_fact_only_where_the_wire_has_its_arguments() -> None:
    call = {"tool_call": {"name": "nope", "args": {"x": 1}}}
    truth = {"turns": [{"user": None, "model": [call], "usage": {}, "end": "completed"}]}
    assert facts([], truth, b'{"y":{"x":2}}\n') == []
    assert [fact.found for fact in facts([], truth, b'{"y":{"x":1}}\n')] == [False]


# --------------------------------------------------------------------------------------------------------------------
# Folders of recordings, forms and stores of others


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two recordings, as somebody else would keep them."""
    path = shutil.copytree(FOLDER / "cursor-stream-json", tmp_path / "cursor-stream-json")
    for scenario in path.iterdir():
        if scenario.is_dir() and scenario.name not in ("text", "parallel"):
            shutil.rmtree(scenario)
    (path / "losses.toml").unlink()
    return path


def test_a_folder_that_keeps_every_promise_passes(folder: Path) -> None:
    assert check_recordings(folder) == 2
    assert write_golden(folder) == []


def test_an_event_that_is_not_in_the_golden_file_is_found_and_written_on_request(folder: Path) -> None:
    golden = folder / "text" / "golden.jsonl"
    whole = golden.read_bytes()
    golden.write_bytes(whole.replace(b"Roter Sand", b"Alte Weser"))
    with pytest.raises(AssertionError, match=r"cursor-stream-json/text: event \d+ is"):
        check_recordings(folder)
    assert write_golden(folder) == [golden] and golden.read_bytes() == whole


def test_what_the_truth_has_and_the_events_have_not_is_found(folder: Path) -> None:
    wire = folder / "text" / "stdout.jsonl"
    wire.write_bytes(wire.read_bytes().replace(b'"assistant"', b'"unheard-of"'))
    write_golden(folder)
    with pytest.raises(AssertionError, match="cursor-stream-json/text"):
        check_recordings(folder)


def said_by_the_command(*arguments: str | Path) -> str:
    return subprocess.run([sys.executable, "-m", "hansard.testing", *arguments], capture_output=True, text=True, check=True).stdout


def test_a_truth_that_no_stream_shows_is_said(folder: Path) -> None:
    truth = folder / "text" / "truth.json"
    assert "truth.json" not in said_by_the_command(folder)
    truth.write_text(truth.read_text().replace("Roter Sand", "Alte Weser"))
    said = said_by_the_command(folder)
    assert "cursor-stream-json/text: in truth.json, but not in cursor-stream-json: text '" in said
    assert "Alte Weser" in said and "2 recordings keep every promise" in said


def test_a_large_stream_is_packed_on_request(folder: Path) -> None:
    wire = folder / "text" / "stdout.jsonl"
    data = wire.read_bytes() + b" " * recorded.PACKED + b"\n"
    wire.write_bytes(data)
    assert f"packed {wire}\n" in said_by_the_command("--write", folder)
    assert not wire.exists() and recorded.read(wire) == data
    assert recorded.pack(folder) == []


def test_a_list_that_is_cut_says_how_much_is_left_out() -> None:
    assert some(["a", "b"], 2) == "a, b"
    assert some(["a", "b", "c", "d"], 2) == "a, b, and 2 more"


def test_an_empty_folder_is_no_proof(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no recordings"):
        check_recordings(tmp_path)


@pytest.mark.parametrize("form", ["markdown", "atif", "native"])
def test_our_own_forms_pass(form: str) -> None:
    assert check_projection(form, events_of("claude-control/permission_ok"))


def test_a_form_that_gives_other_bytes_each_time_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count()
    monkeypatch.setattr(plugins, "written", lambda pieces, shape: [str((list(pieces), next(numbers))).encode()])
    with pytest.raises(AssertionError, match="other bytes"):
        check_projection("markdown", events_of("claude-control/permission_ok"))


def test_our_own_store_passes(tmp_path: Path) -> None:
    with JsonlStore(tmp_path) as store:
        check_store(store)
        assert store.sessions() == []


_read = FolderLog.read
BAD_STORES = {
    "loses an event": (FolderLog, "read", lambda log, *a, **k: iter(list(_read(log, *a, **k))[1:])),
    "forgets a title": (JsonlStore, "sessions", lambda store: []),
    "gives another blob": (FolderLog, "get_blob", lambda log, *a: b"other"),
    "heeds no cursor": (FolderLog, "read", lambda log, after=0, *a, **k: _read(log, 0, *a, **k)),
}


@pytest.mark.parametrize("wrong", BAD_STORES)
def test_a_store_that_does_not_do_what_it_says_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    owner, name, method = BAD_STORES[wrong]
    with JsonlStore(tmp_path) as store:
        monkeypatch.setattr(owner, name, method)
        with pytest.raises(AssertionError):
            check_store(store)
