"""What Qwen Code asks and is sent in its control protocol: permissions and messages."""

from __future__ import annotations

from typing import Any

from hansard import events as ev
from hansard.adapters.qwen import wire
from hansard.errors import CannotEncode
from hansard.events.lenient import as_object

SETTINGS = ("set_model", "set_permission_mode", "set_effort")
_OPTIONS: dict[str, ev.OptionKind] = {"allow": "allow_once", "deny": "reject_once"}


def options(suggestions: list[Any] | None) -> list[ev.PermissionOption]:
    """The answers on offer, in the agent's own words where it has some."""
    names = {str(suggested.get("type")): suggested.get("label") for suggested in map(as_object, suggestions or [])}
    return [
        ev.PermissionOption(word, name if isinstance(name := names.get(word), str) else word.capitalize(), kind)
        for word, kind in _OPTIONS.items()
    ]


def description(asks: wire.CanUseTool) -> str | None:
    """What the agent wants, in the words beside its "allow", and the path that made it ask."""
    said = next(
        (as_object(one).get("description") for one in asks.permission_suggestions or [] if as_object(one).get("type") == "allow"), None
    )
    words = [word for word in (said, asks.blocked_path) if isinstance(word, str)]
    return "\n".join(words) or None


def sent_block(block: Any) -> Any:
    """A block of a message as the program takes it."""
    match block:
        case ev.TextBlock():
            return {"type": "text", "text": block.text}
        case ev.ImageBlock(data=str()):
            return {"type": "image", "source": {"type": "base64", "media_type": block.media_type, "data": block.data}}
        case ev.RawBlock():
            return block.raw
        case _:
            raise CannotEncode(f"Qwen Code takes no {type(block).__name__} in a message")
