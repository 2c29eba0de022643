"""The page's own files. Nothing that is not in its folder is ever read."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from starlette.responses import Response

from hansard.server.responses import HttpError

TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
MISSING = "the page is not part of this install; the API is at /api"


def page_folder() -> Path:
    """Where the page is in this package."""
    return Path(__file__).parents[1] / "projections" / "page" / "static"


def page_file(folder: Path, name: str) -> Response:
    """A file of the page by its name."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or part.startswith(".") or "\\" in part or "\0" in part for part in parts):
        raise HttpError(404, "not_found", "there is no such file")
    path = folder.joinpath(*parts)
    try:
        found = path.resolve(strict=True)
        if not found.is_relative_to(folder.resolve()) or not found.is_file():
            raise FileNotFoundError
        data = found.read_bytes()
    except (OSError, ValueError):
        raise HttpError(404, "not_found", MISSING if name == "index.html" else "there is no such file") from None
    kind = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    charset = "; charset=utf-8" if kind.startswith("text/") else ""
    return Response(data, headers={"content-type": kind + charset, "cache-control": "no-cache"})
