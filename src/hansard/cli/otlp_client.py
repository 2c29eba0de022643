"""Sending spans to a collector: OTLP over HTTP, as JSON."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from hansard._version import __version__
from hansard.agents.http_client import Address, Proxy, fetch
from hansard.errors import UsageError
from hansard.projections.output import encode

DEFAULT = "http://localhost:4318"
PATH = "/v1/traces"
TIMEOUT_SECONDS = 30
MAX_SHOWN_BYTES = 200
"""How much of a collector's refusal is shown."""


class Partial(Struct, rename="camel"):
    """What a collector did not take. 64-bit numbers are text in OTLP's JSON."""

    rejected_spans: int = 0
    error_message: str = ""


class ExportResponse(Struct, rename="camel"):
    """What a collector says to a request it took."""

    partial_success: Partial | None = None


def send(batches: Iterable[dict[str, Any]], endpoint: str | None) -> tuple[int, str]:
    """Sends each batch as a request; returns how many spans were sent, and the address."""
    url = address(endpoint)
    sent = 0
    for batch in batches:
        sent += sum(len(scope["spans"]) for resource in batch["resourceSpans"] for scope in resource["scopeSpans"])
        _check(asyncio.run(_post(url, encode(batch))), url)
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


async def _post(url: str, body: bytes) -> bytes:
    parts = urlsplit(url)
    collector = Address.parse(f"{parts.scheme}://{parts.netloc}")
    target = parts._replace(scheme="", netloc="", fragment="").geturl()
    fields = headers() | {"User-Agent": f"hansard/{__version__}"}
    proxy = Proxy.from_environment(collector)
    try:
        response = await fetch(collector, "POST", target, fields, body, timeout=TIMEOUT_SECONDS, proxy=proxy)
    except OSError as problem:
        raise UsageError(f"{url}: {problem}") from problem
    if response.status >= 300:
        shown = response.body[:MAX_SHOWN_BYTES].decode(errors="replace").strip()
        raise UsageError(f"{url}: the collector answered {response.status} {response.reason}{': ' + shown if shown else ''}")
    return response.body


def _check(answer: bytes, url: str) -> None:
    """A collector may take a part and say so with 200."""
    try:
        partial = msgspec.json.decode(answer, type=ExportResponse, strict=False).partial_success
    except ValueError:
        return  # it took all, and has no words
    if partial is not None and partial.rejected_spans:
        raise UsageError(f"{url}: the collector refused {partial.rejected_spans} spans: {partial.error_message}")
