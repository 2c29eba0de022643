"""Sending spans to a collector: OTLP over HTTP, as JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

import msgspec
from msgspec import Struct

from hansard._version import __version__
from hansard.errors import UsageError
from hansard.projections.writing import encode

DEFAULT = "http://localhost:4318"
PATH = "/v1/traces"
PATIENCE = 30
"""Seconds to wait for an answer."""
SHOWN = 200
"""So much is shown of what a collector says when it refuses."""


class Partial(Struct, rename="camel"):
    """What a collector did not take. 64-bit numbers are text in OTLP's JSON."""

    rejected_spans: int = 0
    error_message: str = ""


class Answer(Struct, rename="camel"):
    """What a collector says to a request it took."""

    partial_success: Partial | None = None


def send(batches: Iterable[dict[str, Any]], endpoint: str | None) -> tuple[int, str]:
    """Send each batch as a request; how many spans were taken, and by whom."""
    url = address(endpoint)
    sent = 0
    for batch in batches:
        sent += sum(len(scope["spans"]) for resource in batch["resourceSpans"] for scope in resource["scopeSpans"])
        _check(_post(url, encode(batch)), url)
    return sent, url


def address(given: str | None) -> str:
    """Where to send: what was said, else what OpenTelemetry's own variables say, else a collector on this machine."""
    exact = None if given else os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    base = given or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or DEFAULT
    url = exact or (base if urlsplit(base).path.endswith(PATH) else base.rstrip("/") + PATH)
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise UsageError(f"{url}: an endpoint is an http:// or https:// address")
    return url


def headers() -> dict[str, str]:
    """What OTEL_EXPORTER_OTLP_HEADERS asks to be sent along: ``name=value,name=value``, percent-encoded."""
    said = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS") or os.environ.get("OTEL_EXPORTER_OTLP_HEADERS") or ""
    pairs = [pair.partition("=") for pair in said.split(",") if "=" in pair]
    return {unquote(name.strip()): unquote(value.strip()) for name, _, value in pairs}


def _post(url: str, body: bytes) -> bytes:
    about = {"Content-Type": "application/json", "User-Agent": f"hansard/{__version__}"}
    request = Request(url, body, headers() | about)  # noqa: S310  # `address` lets nothing else through
    try:
        with urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310  # nosec B310
            return answer.read()
    except HTTPError as refusal:
        with refusal:
            said = refusal.read(SHOWN).decode(errors="replace").strip()
        raise UsageError(f"{url}: the collector answered {refusal.code} {refusal.reason}{': ' + said if said else ''}") from refusal
    except (URLError, OSError) as problem:
        raise UsageError(f"{url}: {getattr(problem, 'reason', problem)}") from problem


def _check(answer: bytes, url: str) -> None:
    """A collector may take a part and say so with 200."""
    try:
        partial = msgspec.json.decode(answer, type=Answer, strict=False).partial_success
    except ValueError:
        return  # it took all, and has no words
    if partial is not None and partial.rejected_spans:
        raise UsageError(f"{url}: the collector refused {partial.rejected_spans} spans: {partial.error_message}")
