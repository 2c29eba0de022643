"""What an agent repeats when it resumes a session is in the log, marked. In exports, search, tables, totals, and views it counts once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from hansard.adapters.base import Context
from hansard.adapters.normalize import events_of_log, normalize
from hansard.cli.verbs.show import transcript
from hansard.events import TYPES, Event, session_lifecycle, turn_start, user_message
from hansard.events.replays import REPEATED_TYPES, find_unmarked, without_replays
from hansard.events.state import State
from hansard.events.summary import LAUNCHED_SUBTYPE
from hansard.events.usage_totals import UsageFold
from hansard.projections import FORMATS, project, projection_for
from hansard.projections.output import written
from hansard.server.feed import FeedPosition, Feeds, Filter
from hansard.server.folds import Folds
from hansard.server.fork import fork
from hansard.store import JsonlStore
from hansard.store.records import known_usage
from hansard.store.search import SearchQuery
from hansard.store.tables import frame
from tests.recorded import Recording, recordings

RESUMES = 3
CARRIED = {"html", "native", "recording"}
"""The formats that have every event."""


def is_resumed(recording: Recording) -> bool:
    """Returns whether a second process loads the session of the first one, and continues it."""
    return recording.path.name == "multi_turn" and any(b'session/load\\"' in stream.data for stream in recording.streams if stream.main)


RESUMED = [recording for recording in recordings() if is_resumed(recording)]
every_agent = pytest.mark.parametrize("recording", RESUMED, ids=lambda recording: recording.id)


def resumed(recording: Recording) -> list[Event]:
    """Returns the log of a session that was resumed several times: its first process, then as often the second one."""
    first, *others = [stream for stream in recording.streams if stream.main]
    events = list(normalize(first.data, first.format, first.context))
    for number in range(RESUMES):
        events += normalize(others[-1].data, others[-1].format, Context(source=f"{recording.id}/{number}", recorded=True))
    for seq, event in enumerate(events, 1):
        event.seq = seq
    return events


def prompts(recording: Recording) -> list[str]:
    """Returns what the user said: of the last turn, in the second process, as often as it was started."""
    said = [turn["user"] for turn in recording.truth["turns"]]
    return [*said[:-1], *[said[-1]] * RESUMES]


def human(events: list[Event]) -> list[str]:
    return [event.payload.text for event in events if event.type == "user_message" and event.payload.author == "human"]


def as_text(message: Any) -> str:
    return msgspec.json.encode(message).decode()


def test_every_agent_with_session_load_was_recorded() -> None:
    agents = {recording.path.parent.name for recording in RESUMED}
    assert agents == {"claude-acp", "codex-acp", "copilot-acp", "gemini-acp", "opencode-acp", "qwen-acp", "qwen015-acp"}


@every_agent
def test_each_prompt_of_the_truth_is_there_once(recording: Recording) -> None:
    events = resumed(recording)
    said = human(events)
    assert len(said) > len(prompts(recording))
    assert human(list(without_replays(events))) == prompts(recording)


@every_agent
@pytest.mark.parametrize("format", ["openai-messages", "anthropic-messages", "standard-messages", "vercel-ui-messages"])
def test_an_export_has_each_message_of_the_truth_once(recording: Recording, format: str) -> None:
    made = [message for message in map(as_text, project(resumed(recording), format)) if '"role":"user"' in message]
    assert {prompt: sum(prompt in message for message in made) for prompt in prompts(recording)} == Counter(prompts(recording))


@every_agent
@pytest.mark.parametrize("format", sorted(set(FORMATS) - CARRIED))
def test_a_format_is_the_same_without_the_replays(recording: Recording, format: str) -> None:
    def export(events: list[Event]) -> bytes:
        return b"".join(written(project(events, format), projection_for(format).output))

    assert export(resumed(recording)) == export(list(without_replays(resumed(recording))))


@every_agent
def test_what_is_left_out_is_counted_with_its_reason(recording: Recording) -> None:
    events = resumed(recording)
    made = project(events, "openai-messages")
    list(made)
    replayed = Counter(event.type for event in events if event.replay)
    told = {kind: reasons.get("an agent repeated it when it resumed the session", 0) for kind, reasons in made.report.left_out.items()}
    assert {kind: count for kind, count in told.items() if count} == dict(replayed)


@every_agent
@pytest.mark.parametrize("format", sorted(CARRIED))
def test_nothing_is_lost_from_what_carries_all_of_the_log(recording: Recording, format: str) -> None:
    events = resumed(recording)
    made = project(events, format)
    list(made)
    assert "an agent repeated it when it resumed the session" not in str(made.report.left_out)


@every_agent
def test_state_totals_and_show_are_the_same_without_the_replays(recording: Recording) -> None:
    events = resumed(recording)
    plain = list(without_replays(events))
    ours, theirs = State.from_events(events), State.from_events(plain)
    ours.frames = theirs.frames  # the number of the last frame on the wire
    assert ours == theirs
    assert spent(events) == spent(plain)
    assert list(transcript(lambda: events, 10)) == list(transcript(lambda: plain, 10))
    assert ours.turn_count == len(prompts(recording))


def spent(events: list[Event]) -> Any:
    usage = UsageFold()
    for event in events:
        usage.apply(event)
    return usage.session()


@every_agent
def test_tables_have_no_rows_for_replays(recording: Recording) -> None:
    rows = [row for row in frame(resumed(recording)) if row[3] == "user_message" and row[11] == "human"]
    assert [row[12] for row in rows] == prompts(recording)


# ---- in a store, marked by the adapter or of version 0.1

Kept = tuple[JsonlStore, list[Event]]


@pytest.fixture(params=["marked", "0.1"])
def keep(request: pytest.FixtureRequest, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[Recording], Kept]:
    """The log of a resumed session in a store, as this version writes it, or as 0.1 wrote it: with the two ends of each replay."""

    def keep(recording: Recording) -> Kept:
        events = resumed(recording)
        if request.param == "0.1":
            monkeypatch.setattr("hansard.store.batch.__version__", "0.1.0")
        store = JsonlStore(tmp_path / "sessions")
        store.create("resumed")
        unmarked = [msgspec.structs.replace(event, replay=event.replay and request.param != "0.1") for event in events]
        store["resumed"].append(unmarked)
        store["resumed"].release()
        return store, events

    return keep


def marks(events: Any) -> list[bool]:
    """Returns the marks of the events that came from the wire: the log has events of its own among them."""
    return [event.replay for event in events if event.source is not None]


@every_agent
def test_a_log_is_read_with_its_replays_marked(keep: Callable[[Recording], Kept], recording: Recording) -> None:
    store, events = keep(recording)
    log = store["resumed"]
    wanted = marks(events)
    assert any(wanted) and marks(log) == wanted
    assert marks(event for block, _ in log.read_blocks(1000) for event in block) == wanted
    middle = next(event.seq for event in log if event.replay) + 1
    assert marks(log.read(middle)) == marks(event for event in log if event.seq > middle)
    assert marks(log.tail(40)) == wanted[-len(marks(log.tail(40))) :]
    assert marks(log.read(types=["user_message"])) == [event.replay for event in events if event.type == "user_message"]


@every_agent
def test_the_file_of_a_log_has_its_replays_marked(keep: Callable[[Recording], Kept], recording: Recording) -> None:
    store, events = keep(recording)
    path = store["resumed"].folder / "events.jsonl"
    assert marks(events_of_log([path.read_bytes()])) == marks(events)
    assert [row[12] for row in frame(path) if row[3] == "user_message" and row[11] == "human"] == prompts(recording)


@every_agent
def test_a_search_finds_each_message_once(keep: Callable[[Recording], Kept], recording: Recording) -> None:
    store, _ = keep(recording)
    for prompt, count in Counter(prompts(recording)).items():
        assert len(list(SearchQuery(store, f'"{prompt}"', types=["user_message"]))) == count


@every_agent
def test_a_fork_and_the_totals_of_the_list_count_once(keep: Callable[[Recording], Kept], recording: Recording) -> None:
    store, events = keep(recording)
    made, past = fork(store, "resumed", None, None)
    assert marks(store[made]) == marks(events)
    assert past.turn_count == len(prompts(recording))
    assert store.session("resumed").usage == known_usage(spent(events))


@pytest.mark.anyio
@every_agent
async def test_the_page_gets_the_marks(keep: Callable[[Recording], Kept], recording: Recording) -> None:
    store, events = keep(recording)
    feeds = Feeds(store, Folds(store), Filter().limit)
    feed, head = await feeds.subscribe("resumed", lambda: None)
    place, sent = FeedPosition(0), list[Any]()
    while place.seq < head.seq:
        chunk = await feed.after(place, Filter())
        assert chunk is not None
        sent += msgspec.json.decode(chunk.data)
        place = chunk.to
    feeds.close()
    assert [bool(event.get("replay")) for event in sent if "source" in event] == marks(events)


# ---- rules


@every_agent
def test_the_only_copy_of_a_conversation_counts(recording: Recording) -> None:
    *_, last = [stream for stream in recording.streams if stream.main]
    events = list(normalize(last.data, last.format, Context(source="alone")))
    assert not any(event.replay for event in events)
    said = [turn["user"] for turn in recording.truth["turns"]]
    assert human(events) == said
    again = list(normalize([last.data, last.data], last.format, Context(source="twice")))
    assert human(list(without_replays(again))) == [*said, said[-1]]  # the second time it is a repetition


def test_a_launch_ends_a_replay_that_was_cut_off() -> None:
    launched = session_lifecycle(LAUNCHED_SUBTYPE)
    events = [turn_start("user"), session_lifecycle("replay_started"), user_message("hi"), launched, user_message("hi")]
    for seq, event in enumerate(events, 1):
        event.seq = seq
    (replay,) = find_unmarked(events)
    assert [event.seq in replay for event in events] == [False, True, True, False, False]


def test_every_type_is_a_repetition_in_a_replay_or_holds_now() -> None:
    holds = {
        "session_init",
        "session_lifecycle",
        "configuration_change",
        "mcp_status",
        "rate_limit",
        "auth_status",
        "process",
        "agent_switch",
    }
    requests = {"permission_request", "permission_response", "permission_cancelled", "question", "answer", "control_request"}
    new = {"control_response", "interrupt", "error", "queue_update", "heartbeat", "raw"}
    assert set(TYPES) - REPEATED_TYPES == holds | requests | new
