"""The ledger counts what the model server answered: each response once, over all sessions and streams of a store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hansard.adapters import adapter_for
from hansard.adapters.normalize import normalize
from hansard.events import Event, Usage, UsageEvent, result, session_init, session_lifecycle, turn_end, turn_start, usage
from hansard.events.ledger import Ledger, LedgerRow, UsageSum, add_up
from hansard.events.prices import Price, PriceTable
from hansard.store import JsonlStore
from hansard.store.usage import load_prices, read_ledger
from tests import imported
from tests.mutants import Recorded, places
from tests.proof import SEED, amount
from tests.recorded import FOLDER, Case, Recording, glob, recordings, unpack

ANSWERED: dict[str, dict[str, list[int]]] = json.loads((FOLDER / "answered.json").read_bytes())
"""The input and output tokens that the model server answered with, by folder and scenario, from its own log."""

ONE_IN = amount(1, 1, quick=6)
"""`make check` imports the files of one recording in so many of each folder, and reads the wires of all."""

CUT = "the response was cut off, and its count came with its end"
COUNTLESS = "the agent does not count a response that a filter or the limit ended, or that it could not read"
TITLES = "titles and suggestions are asked for in calls of their own; this wire has those that ended before their turn did"
SUMMARY = "the call that summarizes the conversation is not recorded"
SUBAGENTS = "the calls of subagents are not recorded"
NO_COUNTS = "the wire has no counts"
LAST_ONLY = "the wire counts the last response of a turn alone"
REVERTED = "the agent deletes a reverted message with its count"
UNSEEN = "a call of which the wire shows nothing at all: no product could tell that it is missing"

MISSING: dict[str, dict[str, str]] = {
    "anthropic-api live": {CUT: "err_cut err_midstream interrupt"},
    "anthropic-api": {CUT: "err_cut err_midstream interrupt"},
    "claude-acp live": {TITLES: "*"},
    "claude-acp": {CUT: "err_midstream interrupt protocol_v2_permission"},
    "claude-agent-sdk live": {CUT: "err_midstream interrupt", UNSEEN: "config_sdk"},
    "claude-agent-sdk": {CUT: "err_midstream interrupt", UNSEEN: "config_sdk"},
    "claude-control live": {CUT: "err_cut err_midstream interrupt", UNSEEN: "config requests session_state"},
    "claude-control": {CUT: "err_cut err_midstream interrupt", UNSEEN: "config"},
    "claude-stream-json live": {CUT: "err_cut err_midstream interrupt"},
    "claude-stream-json": {CUT: "err_cut err_midstream interrupt"},
    "claude-stream-json-partial live": {CUT: "err_cut err_midstream interrupt"},
    "claude-stream-json-partial": {CUT: "err_cut err_midstream interrupt"},
    "codex-acp live": {NO_COUNTS: "*"},
    "codex-acp": {COUNTLESS: "content_filter max_tokens"},
    "codex-app-server live": {COUNTLESS: "content_filter review", UNSEEN: "auto_review"},
    "codex-app-server": {COUNTLESS: "content_filter"},
    "codex-exec-json live": {COUNTLESS: "content_filter max_tokens", CUT: "interrupt_tool", SUBAGENTS: "subagent subagent_v2"},
    "codex-exec-json": {COUNTLESS: "content_filter"},
    "copilot-acp live": {CUT: "interrupt"},
    "copilot-acp": {CUT: "interrupt"},
    "copilot-json live": {NO_COUNTS: "*"},
    "copilot-json": {CUT: "interrupt"},
    "gemini-acp live": {CUT: "interrupt interrupt_tool loop_detected", UNSEEN: "compaction subagent"},
    "gemini-acp": {CUT: "interrupt", SUMMARY: "compaction", UNSEEN: "long loop_detected"},
    "gemini-stream-json live": {CUT: "interrupt interrupt_tool loop_detected"},
    "gemini-stream-json": {CUT: "interrupt", SUMMARY: "compaction", UNSEEN: "loop_detected"},
    "opencode-acp live": {LAST_ONLY: "*"},
    "opencode-acp": {COUNTLESS: "unknown_block unknown_block_type", CUT: "interrupt_tool"},
    "opencode-run-json live": {COUNTLESS: "unknown_block unknown_block_type", SUBAGENTS: "subagent"},
    "opencode-run-json": {COUNTLESS: "unknown_block unknown_block_type"},
    "opencode-sse live": {COUNTLESS: "unknown_block unknown_block_type", CUT: "interrupt_tool"},
    "opencode-sse": {COUNTLESS: "unknown_block unknown_block_type", CUT: "interrupt_tool", REVERTED: "session_ops"},
    "opencode-sse-v2 live": {COUNTLESS: "permission_deny"},
    "opencode-sse-v2": {COUNTLESS: "permission_deny"},
    "qwen-acp live": {CUT: "interrupt", SUMMARY: "compaction", LAST_ONLY: "max_tokens"},
    "qwen-acp": {CUT: "interrupt", SUMMARY: "compaction"},
    "qwen-stream-json live": {CUT: "interrupt"},
    "qwen-stream-json": {CUT: "interrupt"},
    "qwen-stream-json-io live": {CUT: "interrupt"},
    "qwen-stream-json-io": {CUT: "interrupt", SUMMARY: "compaction"},
    "qwen015-acp live": {CUT: "interrupt", SUMMARY: "compaction", LAST_ONLY: "max_tokens err_context"},
    "qwen015-acp": {CUT: "interrupt", SUMMARY: "compaction", SUBAGENTS: "subagent", UNSEEN: "err_context"},
    "qwen015-stream-json live": {CUT: "interrupt"},
    "qwen015-stream-json": {CUT: "interrupt", UNSEEN: "err_context text thinking"},
}
"""The recordings of which a wire, or the files of an agent, cannot tell everything, and why. Every other one is counted to the token.

OpenCode also asks its small model for a title, which is in no wire, file, or line of `answered.json`: each of its sessions says so.
"""


def reason(where: str, scenario: str) -> str | None:
    """Why a recording cannot be counted completely."""
    return next((why for why, names in MISSING.get(where, {}).items() if names == "*" or scenario in names.split()), None)


def answered(folder: str) -> Iterator[tuple[Recording, tuple[int, int]]]:
    """The recordings of a folder, with what the model server answered."""
    for recording in recordings():
        if recording.path.parent.name == folder and recording.path.name in ANSWERED[folder]:
            tokens = ANSWERED[folder][recording.path.name]
            yield recording, (tokens[0], tokens[1])


def check(name: str, where: str, real: tuple[int, int], ledger: Ledger) -> None:
    """Compare a ledger with what the model server answered."""
    total = add_up(ledger.rows(), ledger.notes.values())
    counted, why = (total.input_tokens, total.output_tokens), reason(where, name)
    if why is None:
        assert counted == real, name
        return
    assert counted[0] <= real[0] and counted[1] <= real[1], f"{name}: more than was answered"
    assert MISSING[where][why] == "*" or counted != real, f"{name} is complete: take it out of the table"
    if counted != real and why != UNSEEN:
        assert total.incomplete_sessions, f"{name}: the ledger does not say that something is missing"


@pytest.mark.parametrize("folder", sorted(ANSWERED))
def test_the_ledger_of_a_live_session_has_what_the_server_answered(folder: str) -> None:
    for recording, real in answered(folder):
        case, ledger = Case(recording), Ledger()
        ledger.read("live", case.conversation(case.formats[0])[0], adapter_for(case.formats[0]).uncounted)
        check(recording.path.name, f"{folder} live", real, ledger)


@pytest.mark.parametrize("folder", sorted({path.parent.parent.name for path in FOLDER.glob("*/*/disk")} & ANSWERED.keys()))
def test_the_ledger_of_a_store_has_what_the_server_answered(folder: str, tmp_path: Path) -> None:
    """Forks, resumed sessions, subagents, summaries and retries are among the recordings."""
    kept = [(recording, real) for recording, real in answered(folder) if (recording.path / "disk").is_dir()]
    for recording, real in kept[SEED % ONE_IN :: ONE_IN]:
        store = import_recording(recording, tmp_path / recording.path.name)
        check(recording.path.name, folder, real, read_ledger(store, PriceTable()))


def import_recording(recording: Recording, folder: Path) -> JsonlStore:
    """A store with the sessions that the agent kept."""
    unpack(recording.path / "disk", folder / "home")
    imported.run(folder / "store", folder / "home", closed=True)
    return JsonlStore(folder / "store")


@pytest.mark.parametrize("folder", ["claude-acp", "gemini-acp"])
def test_every_call_that_an_agent_reports_of_a_turn_by_model_is_counted(folder: str) -> None:
    """Those for titles and summaries and those of subagents, too, which no message shows."""
    beyond = 0
    for recording in (one for one in recordings() if one.path.parent.name == folder):
        case, ledger = Case(recording), Ledger()
        ledger.read("live", case.conversation("acp")[0])
        total = add_up(ledger.rows(), ledger.notes.values())
        assert (total.input_tokens, total.output_tokens) == reported_by_model(recording), recording.id
        models = {row.model for row in ledger.rows()}
        beyond += any("haiku" in model for model in models)
    assert (beyond > 0) == (folder == "claude-acp"), "Claude asks a small model for its titles"


def reported_by_model(recording: Recording) -> tuple[int, int]:
    """The input and output tokens of all models in every ``_meta.quota`` of a wire."""
    lines = [json.loads(line) for stream in recording.streams if stream.format == "acp" for line in Recorded(stream).lines]
    quotas = [container[key] for line in lines for container, key in places(line) if key == "quota"]
    rows = [row["token_count"] for quota in quotas for row in quota["model_usage"]]
    spellings = (("inputTokens", "input_tokens"), ("outputTokens", "output_tokens"))
    input_tokens, output_tokens = (sum(row.get(new, row.get(old)) for row in rows) for new, old in spellings)
    return input_tokens, output_tokens


# ---- several sessions, one response


def summed(*sessions: list[Event], prices: PriceTable | None = None) -> tuple[UsageSum, Ledger]:
    ledger = Ledger(prices)
    for number, events in enumerate(sessions):
        ledger.read(f"s{number}", events)
    return add_up(ledger.rows(), ledger.notes.values()), ledger


@pytest.mark.parametrize(
    ("folder", "formats"),
    {
        "claude-stream-json": ["claude-stream-json", "claude-session"],
        "claude-control": ["claude-control", "claude-session"],
        "claude-agent-sdk": ["agent-sdk", "claude-session"],
        "opencode-sse": ["opencode-sse", "opencode-session"],
        "opencode-run-json": ["opencode-run-json", "opencode-session"],
        "pi-json": ["pi-json", "pi-session"],
    }.items(),
)
@pytest.mark.parametrize("scenario", ["text", "tool_ok", "multi_turn", "thinking"])
def test_the_live_stream_and_the_file_of_a_session_count_once(folder: str, formats: list[str], scenario: str) -> None:
    case = next(Case(one) for one in recordings() if one.id == f"{folder}/{scenario}")
    live, file = (case.conversation(format)[0] for format in formats)
    alone, _ = summed(file)
    for order in ((live, file), (file, live)):
        both, ledger = summed(*order)
        assert (both.input_tokens, both.output_tokens) == (alone.input_tokens, alone.output_tokens)
        assert both.cost_usd == pytest.approx(alone.cost_usd) and not ledger.collisions


FORKS = ["claude-stream-json", "codex-exec-json", "codex-acp", "copilot-json", "gemini-stream-json", "opencode-sse", "qwen-stream-json"]


@pytest.mark.parametrize("folder", FORKS)
def test_what_a_fork_copies_counts_once(folder: str) -> None:
    """The fork has the whole history of its parent; that of OpenCode has new ids."""
    case = next(Case(one) for one in recordings() if one.id == f"{folder}/multi_turn")
    parent = case.conversation(case.formats[-1])[0]
    fork = [replace(event, response_id=f"copy-{event.response_id}") for event in parent] if folder == "opencode-sse" else parent
    alone, _ = summed(parent)
    both, ledger = summed(parent, fork)
    assert alone.input_tokens and both.input_tokens == alone.input_tokens and both.output_tokens == alone.output_tokens
    assert both.cost_usd == pytest.approx(alone.cost_usd) and not ledger.collisions
    assert {row.session_id for row in ledger.rows()} == {"s0"}


def test_a_fork_of_claude_code_counts_its_parent_once(tmp_path: Path) -> None:
    """Both files report 100 + 200 input tokens, and $0.0008 + $0.0016: the fork's totals continue those of its parent."""
    recording = next(one for one in recordings() if one.id == "claude-stream-json/fork")
    ledger = read_ledger(import_recording(recording, tmp_path), PriceTable())
    total = add_up(ledger.rows(), ledger.notes.values())
    assert (total.sessions, total.responses, total.input_tokens, total.output_tokens) == (2, 2, 200, 40)
    assert total.cost_usd == pytest.approx(0.0016)


def test_a_fork_of_an_old_codex_counts_its_parent_once() -> None:
    """Its file repeats that of its parent after its own first line, and the responses have no ids."""
    (path,) = glob("codex-acp/multi_turn/disk/**/rollout-*.jsonl")
    data = next(one.data for one in Case(Recording(path_of(path))).streams if one.stream.format == "codex-rollout")
    first = json.loads(data.partition(b"\n")[0])
    first["payload"]["id"] = "another"
    parent = list(normalize(data, "codex-rollout"))
    fork = list(normalize(json.dumps(first).encode() + b"\n" + data, "codex-rollout"))
    alone, _ = summed(parent)
    both, _ = summed(parent, fork)
    assert alone.input_tokens > 0 and (both.input_tokens, both.output_tokens) == (alone.input_tokens, alone.output_tokens)


def path_of(file: Path) -> Path:
    """The recording that a file belongs to."""
    return next(parent for parent in file.parents if (parent / "meta.json").exists())


# ---- the rules, one by one


def response(name: str | None, tokens: int = 10, model: str = "m", turn: str = "t", **more: Any) -> UsageEvent:
    made = usage("message", Usage(input_tokens=tokens, output_tokens=1), model=model, **more)
    made.turn_id, made.response_id, made.id = turn, name, f"event-{name}-{tokens}"
    return made


def in_turn(*events: Event, turn: str = "t") -> list[Event]:
    made = [session_init(agent_id="claude"), turn_start("user"), *events, turn_end("completed")]
    for event in made:
        event.turn_id = turn
    return made


def test_the_same_id_with_other_tokens_or_another_model_is_another_response() -> None:
    others = in_turn(response("a", 11)), in_turn(response("a", model="n")), in_turn(response("a", 11))
    total, ledger = summed(in_turn(response("a")), *others)
    assert (total.responses, total.input_tokens) == (3, 31)
    assert ledger.collisions == ["claude:a", "claude:a"]


def test_the_same_id_in_another_family_is_another_response() -> None:
    other = in_turn(response("a"))
    other[0] = session_init(agent_id="codex")
    total, ledger = summed(in_turn(response("a")), other)
    assert total.responses == 2 and not ledger.collisions


def test_responses_without_an_id_are_not_taken_for_each_other() -> None:
    total, _ = summed(in_turn(response(None)), in_turn(response(None)))
    assert total.responses == 2


def running(tokens: int, cost: float) -> Event:
    return result("completed", cost_usd=cost, model_usage={"m": {"inputTokens": tokens, "outputTokens": 0, "costUSD": cost}})


def test_what_only_a_total_has_is_one_row_and_a_fork_does_not_repeat_it() -> None:
    parent = in_turn(response("a"), running(15, 1.0))
    fork = [*in_turn(response("a")), *in_turn(response("b", turn="u"), running(30, 3.0), turn="u")]
    for order in ((parent, fork), (fork, parent)):
        total, ledger = summed(*order)
        rest = [row for row in ledger.rows() if not row.is_response]
        assert (total.input_tokens, total.cost_usd) == (30, 3.0)
        assert sorted(row.input_tokens or 0 for row in rest) == [5, 5] and {row.cost_source for row in rest} == {"reported"}


def test_a_running_total_is_not_added_to_what_it_covers() -> None:
    turns = [*in_turn(response("a"), running(10, 1.0)), *in_turn(response("b", turn="u"), running(20, 3.0), turn="u")]
    total, _ = summed(turns)
    assert (total.input_tokens, total.cost_usd) == (20, 3.0)


def test_a_running_total_covers_the_turns_since_the_launch_also_those_in_which_it_was_not_reported() -> None:
    """The wire of an agent has no totals; its file, from which a turn in a terminal is added, has."""
    launched = session_lifecycle(subtype="launched", detail={"agent": "codex", "options": {}})
    later = in_turn(response("b", 20, turn="u"), usage("session", Usage(input_tokens=30, output_tokens=2)), turn="u")
    total, ledger = summed([launched, *in_turn(response("a", 10)), *later])
    assert (total.input_tokens, len(ledger.rows())) == (30, 2)


PRICES = PriceTable([Price(["m"], "https://example.com", input=1_000_000, output=0)])


def rows(*sessions: list[Event], prices: PriceTable = PRICES) -> list[LedgerRow]:
    return summed(*sessions, prices=prices)[1].rows()


def test_a_cost_is_reported_or_priced_or_unknown() -> None:
    reported = in_turn(response("a", cost_usd=0.5))
    priced = in_turn(response("b", 2))
    unknown = in_turn(response("c", model="m-20260101"))
    assert [(row.cost_usd, row.cost_source) for row in rows(reported, priced, unknown)] == [
        *((0.5, "reported"), (2.0, "priced")),
        (None, "unknown"),
    ]
    total = summed(reported, priced, unknown, prices=PRICES)[0]
    assert (total.cost_usd, total.reported_usd, total.priced_usd, total.sessions_without_price) == (2.5, 0.5, 2.0, 1)


def test_turns_before_a_reported_total_are_covered_by_it_and_turns_after_it_have_a_price() -> None:
    turns = [
        *in_turn(response("a")),
        *in_turn(response("b", turn="u"), running(20, 3.0), turn="u"),
        *in_turn(response("c", 7, turn="v"), turn="v"),
    ]
    assert [(row.cost_usd, row.cost_source) for row in rows(turns) if row.is_response] == [
        *((None, "reported"), (None, "reported")),
        (7.0, "priced"),
    ]
    assert summed(turns, prices=PRICES)[0].cost_usd == 10.0


def test_list_prices_give_what_claude_code_reports(tmp_path: Path) -> None:
    """Claude Code computes its costs from the same list prices. Here its reports are taken away, so that the table has to do it."""
    prices, seen = load_prices(), 0
    for recording, _ in answered("claude-stream-json"):
        case = Case(recording)
        events = case.conversation("claude-session")[0]
        silent = [event for event in events if not (isinstance(event, UsageEvent) and event.payload.scope == "session")]
        reported, priced = summed(events, prices=prices)[0], summed(silent, prices=prices)[0]
        if reason("claude-stream-json", recording.path.name) or reported.total_tokens != priced.total_tokens or not priced.total_tokens:
            continue
        assert priced.priced_usd == pytest.approx(reported.reported_usd), recording.id
        seen += 1
    assert seen > 30
