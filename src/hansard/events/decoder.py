"""The decoder of events. A module of its own, because making it takes 30 ms, which who only writes can do without; and because a module is
imported by one thread alone (`hansard.events.structs`)."""

from __future__ import annotations

from typing import Union

import msgspec

from hansard.events.types import TYPES, Event

decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Union[tuple(TYPES.values())])  # noqa: UP007 (a union that is computed)
