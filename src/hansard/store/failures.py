"""What went wrong in all sessions: the turns that failed, why, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from hansard.store.filters import EVERY_SESSION, FAILED, SessionFilter, has_status, select_sessions
from hansard.store.interface import Store


class Cause(NamedTuple):
    """What a failure means, and what to do next."""

    meaning: str
    next_step: str


CAUSES: Mapping[str, Cause] = {
    "provider_auth": Cause("The provider did not accept the login or the key.", "Log in to the agent again, or check its API key."),
    "rate_limit": Cause(
        "The provider's limit for requests or tokens was reached.", "Wait until the limit resets, or use another model or account."
    ),
    "api_error": Cause(
        "The provider answered with an error, or not at all.", "Send the message again; if it stays, check the provider's status page."
    ),
    "context_overflow": Cause("The conversation is longer than the model can read.", "Compact the conversation, or start a new session."),
    "output_length": Cause(
        "The answer was cut at the limit for output.", "Ask the agent to continue, or raise its limit for output tokens."
    ),
    "max_turns": Cause("The agent stopped at its limit for steps.", "Raise the limit for steps, or split the task."),
    "max_budget": Cause("The agent stopped at its budget.", "Raise the budget, or split the task."),
    "execution_error": Cause(
        "The agent's program failed.", "Read the end of the session (hansard show SESSION --all), and update the agent."
    ),
    "lost": Cause(
        "The agent's process ended during the turn, or its record does.", "Resume the session (hansard run AGENT --session SESSION)."
    ),
    "denied": Cause("The turn ended because a tool was denied.", "Allow the tool, or tell the agent another way."),
    "refused": Cause("The model refused to answer.", "Say it in other words, or use another model."),
    "aborted": Cause("The turn was interrupted.", "Send the message again if it was not on purpose."),
    "unknown": Cause("The agent gives no reason that hansard knows.", "Read the error, and the session around it."),
}
"""Each cause, by the code of the error, or by the status of a turn without an error."""
_OF_STATUS = {"max_tokens": "output_length", "interrupted": "aborted"}


class Failure(Struct, rename="camel", frozen=True):
    """A turn that failed."""

    session_id: str
    turn: int
    seq: int
    status: str
    cause: str
    error: str | None
    prompt: str | None
    time: int | None
    agent: str | None


class CauseCount(Struct, rename="camel", frozen=True):
    """How often a cause occurred."""

    cause: str
    failures: int
    sessions: int
    last: int | None
    meaning: str
    next_step: str


def find_failures(store: Store, wanted: SessionFilter = EVERY_SESSION) -> list[Failure]:
    """Returns the turns that failed, the newest first. A filter for a status chooses among the turns."""
    sessions = {info.id: info for info in select_sessions(store, _without_status(wanted))}
    rows = store.query(
        "SELECT session, turn, seq, status, error_code, error, prompt, started FROM turns WHERE status NOT IN ('completed', 'running')"
    )
    found: list[Failure] = []
    for session, number, seq, status, code, error, prompt, started in rows:
        info = sessions.get(session)
        is_meant = has_status(wanted.statuses, status) if wanted.statuses else status in FAILED
        if info is None or not is_meant or not wanted.has_time(started):
            continue
        cause = str(code if status == "error" else _OF_STATUS.get(status, status))
        cause = cause if cause in CAUSES else "unknown"
        found.append(Failure(session, number, seq, status, cause, error, prompt, started or info.updated, info.agent))
    return sorted(found, key=lambda failure: (-(failure.time or 0), failure.session_id, -failure.seq))


def count_causes(failures: Iterable[Failure]) -> list[CauseCount]:
    """Returns how often each cause occurred, the most frequent first."""
    groups: dict[str, list[Failure]] = {}
    for failure in failures:
        groups.setdefault(failure.cause, []).append(failure)
    counts = [
        CauseCount(cause, len(group), len({one.session_id for one in group}), max(one.time or 0 for one in group) or None, *CAUSES[cause])
        for cause, group in groups.items()
    ]
    return sorted(counts, key=lambda count: (-count.failures, count.cause))


def _without_status(wanted: SessionFilter) -> SessionFilter:
    return replace(wanted, statuses=())
