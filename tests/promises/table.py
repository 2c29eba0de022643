"""Which promises there are, how often each is checked, and whether a recording keeps them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import TypeVar

from hansard.events.codec import encode
from tests.projections.referees import REFEREES
from tests.promises import authors, chat_files, claude_files, codex_files, exports, opencode_files, streams, surfaces, truth, turns
from tests.proof import LONG, SEED, amount
from tests.recorded import Case, Normalized, Stream, rank
from tests.recorded import streams as every_stream

T = TypeVar("T")

OF_EVERY_STREAM: tuple[Callable[[Normalized], None], ...] = (
    streams.the_events_are_those_of_the_golden_file,
    streams.the_adapter_keeps_every_promise,
    streams.the_agents_own_bytes_come_back,
    streams.every_call_of_a_known_kind_is_typed_or_listed,
    claude_files.every_line_of_a_session_file_is_understood,
    exports.every_call_and_every_message_is_a_row,
    exports.a_client_of_acp_reads_the_same_conversation,
)
OF_SOME_STREAMS: tuple[Callable[[Normalized], None], ...] = (
    streams.the_same_adapters_make_the_same_log_again,
    streams.nothing_is_taken_for_a_secret,
    streams.the_table_has_a_row_for_each_event,
    streams.a_search_passes_over_no_line_that_has_the_word,
    exports.a_document_read_back_and_written_again_is_the_same,
    exports.what_is_read_back_differs_only_as_the_table_says,
    exports.every_text_is_on_the_page,
)
ONE_IN = amount(4, 1)
"""The share of the streams of each format that `make test` holds to a promise about some."""
OF_A_RECORDING: tuple[Callable[[Case], None], ...] = (
    truth.what_was_really_said_is_in_typed_events_in_order,
    truth.the_turns_together_used_what_the_model_was_asked_for,
    claude_files.live_and_disk_tell_the_same_conversation,
    claude_files.turns_end_as_they_really_ended,
    codex_files.the_app_server_and_its_file_tell_the_same,
    codex_files.exec_and_its_file_tell_the_same,
    codex_files.acp_and_the_file_of_the_older_core_tell_the_same,
    codex_files.both_dialects_of_the_files_tell_the_same,
    opencode_files.what_opencode_keeps_is_the_conversation_it_said,
    chat_files.wire_and_file_tell_the_same_conversation,
    chat_files.two_versions_of_qwen_are_read_as_the_same_conversation,
    authors.each_prompt_of_the_truth_is_a_persons_and_nothing_else_is,
    authors.a_title_is_the_first_prompt_and_never_a_command_or_context,
    surfaces.a_prompt_is_what_a_person_said_once,
    surfaces.an_answer_is_what_the_model_said_once,
    surfaces.every_surface_tells_the_same,
    turns.nothing_waits_at_the_end,
    turns.a_message_leaves_the_queue_when_it_appears_in_the_conversation,
    turns.turns_add_up_to_their_session_and_no_total_is_less_than_its_parts,
    turns.the_cost_of_a_turn_is_by_how_much_the_total_of_its_agent_grew,
    turns.turns_are_numbered_in_their_session_wherever_a_reader_begins,
    turns.every_turn_end_has_a_result_in_consumer_messages,
    turns.no_request_outlives_its_turn,
    turns.every_subagent_and_background_task_has_a_start_an_end_and_an_outcome,
    turns.a_task_in_the_background_runs_on_after_its_call_has_a_result,
    turns.every_prompt_every_answer_and_every_end_is_shown_and_no_error_twice,
)


def broken(case: Case) -> list[str]:
    """The promises that a recording breaks, with the stream and the reason."""
    return [*_broken_by_streams(case), *_attempts((case.recording.id, promise.__name__, promise, case) for promise in OF_A_RECORDING)]


def broken_golden(case: Case) -> list[str]:
    """The streams whose events are not those of the golden file: the quickest promise, and the one that tells most."""
    promise = streams.the_events_are_those_of_the_golden_file
    return list(_attempts((one.stream.id, promise.__name__, promise, one) for one in case.streams))


def _broken_by_streams(case: Case) -> Iterator[str]:
    for one in case.streams:
        name = one.stream.id
        before = [encode(event) for event in one.events]
        yield from _attempts((name, promise.__name__, promise, one) for promise in OF_EVERY_STREAM)
        yield from _attempts((name, promise.__name__, promise, one) for promise in OF_SOME_STREAMS if is_chosen(promise, one.stream))
        yield from _attempts((name, f"is valid as {form}", _valid(form), one) for form in formats_for(one.stream))
        if [encode(event) for event in one.events] != before:
            yield f"{name}: one of the promises changed the events, which the others look at, too"


def _valid(form: str) -> Callable[[Normalized], None]:
    return lambda one: exports.is_valid(one, form)


def _attempts(attempts: Iterator[tuple[str, str, Callable[[T], None], T]]) -> Iterator[str]:
    for name, promise, check, subject in attempts:
        try:
            check(subject)
        except Exception as problem:  # whatever it is, the promise is not kept
            yield f"{name}: {promise.replace('_', ' ')}: {type(problem).__name__}: {problem}"


# --------------------------------------------------------------------------------------------------------------------
# Samples


def is_chosen(promise: Callable[[Normalized], None], stream: Stream) -> bool:
    """Whether a stream is held to a promise about some: at least one of each format."""
    place, count = rank(stream)
    turn = zlib.crc32(promise.__name__.encode()) + SEED
    return place % min(ONE_IN, count) == turn % min(ONE_IN, count)


def formats_for(stream: Stream) -> list[str]:
    """The export formats that a stream is tried in."""
    return list(REFEREES) if LONG else _sample().get(stream, [])


@cache
def _sample() -> dict[Stream, list[str]]:
    """Each export format with a stream of each scenario (what happens in a recording) and of each wire format, by turns."""
    kinds: dict[str, list[Stream]] = {}
    for stream in every_stream():
        kinds.setdefault(f"scenario {stream.recording.path.name}", []).append(stream)
        kinds.setdefault(f"format {stream.format}", []).append(stream)
    found: dict[Stream, dict[str, None]] = {}
    for kind in kinds.values():
        for number, form in enumerate(REFEREES):
            found.setdefault(kind[(number + SEED) % len(kind)], {})[form] = None
    return {stream: list(forms) for stream, forms in found.items()}
