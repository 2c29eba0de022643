"""What a session does for its agent: files of its folder, as ACP asks for them. What it does not do it refuses with a reason."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hansard.agents.agent import Options
from hansard.errors import Refused
from hansard.events import ControlRequestPayload, ControlResponsePayload
from hansard.loose import as_object


class Services:
    """The services of one session."""

    def __init__(self, options: Options) -> None:
        self._folder = Path(options.cwd).resolve()

    async def reply(self, request: ControlRequestPayload) -> ControlResponsePayload | None:
        """The answer to a request; None if nobody here knows it."""
        params = as_object(request.params)
        match request.method:
            case "fs/read_text_file":
                return ControlResponsePayload(ok=True, result={"content": self._read(params)})
            case "fs/write_text_file":
                self._write(params)
                return ControlResponsePayload(ok=True, result={})
            case _:
                return None

    async def close(self) -> None:
        """Stop what still runs for the agent."""

    def _read(self, params: dict[str, Any]) -> str:
        lines = self._place(params).read_text("utf-8").splitlines(keepends=True)
        first = max(int(params.get("line") or 1), 1) - 1
        limit = params.get("limit")
        return "".join(lines[first:] if limit is None else lines[first : first + int(limit)])

    def _write(self, params: dict[str, Any]) -> None:
        place = self._place(params)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(str(params.get("content", "")), "utf-8")

    def _place(self, params: dict[str, Any]) -> Path:
        """A file of the session's folder, wherever links lead."""
        named = str(params.get("path", ""))
        place = Path(os.path.realpath(self._folder / named))
        if not place.is_relative_to(self._folder):
            raise Refused("outside", f"{named} is not in the session's folder")
        return place
