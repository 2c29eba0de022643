"""SESSION or FILE: what a person names, as events."""

from __future__ import annotations

from pathlib import Path

from hansard.errors import InvalidSessionId


def is_session(root: Path, name: str) -> bool:
    """Whether the store has a session of that name. A file of that name is reached with ``./``."""
    from hansard.store.ids import check_session_id

    try:
        return (root / check_session_id(name) / "events.jsonl").exists()
    except InvalidSessionId:
        return False
