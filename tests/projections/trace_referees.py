"""Who says that trajectories and spans are right: the models of ATIF, the protocol buffers and the SDK of OpenTelemetry."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from opentelemetry.sdk.trace.id_generator import IdGenerator


def atif_accepts(documents: list[dict[str, Any]], data: bytes) -> None:
    """The `atif` package's own models, and what they do not check: references lead somewhere, ids are once, nothing is inline."""
    from atif import Trajectory

    (document,) = documents
    assert json.loads(data) == document
    Trajectory.model_validate_json(data)
    assert b";base64," not in data
    for trajectory in trajectories(document):
        assert trajectory["schema_version"] == document["schema_version"] and trajectory["steps"]
        inside = {one["trajectory_id"] for one in trajectory.get("subagent_trajectories", [])}
        results = [result for step in trajectory["steps"] for result in step.get("observation", {}).get("results", [])]
        refs = [ref["trajectory_id"] for result in results for ref in result.get("subagent_trajectory_ref", [])]
        assert len(refs) == len(set(refs)) and set(refs) <= inside
        assert all(step.get("tool_calls") or "source_call_id" not in result for step in trajectory["steps"] for result in results_of(step))


def results_of(step: dict[str, Any]) -> list[dict[str, Any]]:
    return step.get("observation", {}).get("results", [])


def trajectories(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A trajectory and all that are in it."""
    yield document
    for one in document.get("subagent_trajectories", []):
        yield from trajectories(one)


ATTRIBUTES = {
    "error.type",
    "gen_ai.agent.name",
    "gen_ai.agent.version",
    "gen_ai.conversation.id",
    "gen_ai.input.messages",
    "gen_ai.operation.name",
    "gen_ai.output.messages",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.response.finish_reasons",
    "gen_ai.response.id",
    "gen_ai.response.model",
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.id",
    "gen_ai.tool.call.result",
    "gen_ai.tool.name",
    "gen_ai.tool.type",
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.reasoning.output_tokens",
    "hansard.time.unknown",
    "hansard.turn.status",
}
"""The names of the GenAI conventions that we use, and our own. Frozen: back ends know them by name."""


def otel_accepts(batches: list[dict[str, Any]], data: bytes) -> None:
    """Every line is a request of OTLP; ids are once; every parent is there, in the same trace; the SDK of OpenTelemetry agrees."""
    lines = data.split(b"\n")[:-1]
    assert len(lines) == len(batches)
    spans = [span for line in lines for span in read_otlp(line)]
    by_id = {span.span_id: span for span in spans}
    assert len(by_id) == len(spans)
    for span in spans:
        assert len(span.span_id) == 8 and len(span.trace_id) == 16 and any(span.span_id) and any(span.trace_id)
        assert 0 <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert not span.parent_span_id or by_id[span.parent_span_id].trace_id == span.trace_id
        assert {attribute.key for attribute in span.attributes} <= ATTRIBUTES
        assert span_attributes(span)["gen_ai.operation.name"] == span.name.partition(" ")[0]
        assert span_attributes(span)["gen_ai.provider.name"] and span_attributes(span)["gen_ai.conversation.id"]
        above = by_id.get(span.parent_span_id)
        above_name = above.name.partition(" ")[0] if above else None
        assert (span.name.partition(" ")[0], above_name) in NESTING
    sdk_agrees(data)


NESTING = {
    ("invoke_agent", None),
    ("invoke_agent", "invoke_agent"),
    ("invoke_agent", "execute_tool"),
    ("chat", "invoke_agent"),
    ("execute_tool", "chat"),
}


def replayed(data: bytes) -> dict[int, Any]:
    """The spans of a file as OpenTelemetry's own SDK has them: started by a tracer, ended, and taken from its in-memory exporter.

    The SDK makes ids of its own, so a span is known here by the id it has in the file, and its parent must be the span that the file names.
    """
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, set_span_in_context

    exporter, ids = InMemorySpanExporter(), FileIds()
    provider = TracerProvider(id_generator=ids)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("hansard")
    told_spans = {span.span_id: span for line in data.split(b"\n")[:-1] for span in read_otlp(line)}
    started: dict[bytes, Any] = {}
    for span in parents_first(told_spans):
        ids.trace, ids.span = int.from_bytes(span.trace_id), int.from_bytes(span.span_id)
        above = started.get(span.parent_span_id)
        links = [Link(SpanContext(int.from_bytes(link.trace_id), int.from_bytes(link.span_id), is_remote=True)) for link in span.links]
        started[span.span_id] = made = tracer.start_span(
            span.name,
            context=None if above is None else set_span_in_context(above),
            kind=SpanKind(span.kind - 1),
            attributes={name: plain(value) for name, value in span_attributes(span).items()},
            links=links,
            start_time=span.start_time_unix_nano,
        )
        for event in span.events:
            made.add_event(event.name, {name: plain(value) for name, value in span_attributes(event).items()}, event.time_unix_nano)
        if span.status.code:
            made.set_status(Status(StatusCode(span.status.code), span.status.message))
        made.end(span.end_time_unix_nano)
    return {span.context.span_id: span for span in exporter.get_finished_spans() if span.context is not None}


class FileIds(IdGenerator):
    """Gives the SDK the ids of the file."""

    trace = span = 0

    def generate_span_id(self) -> int:
        return self.span

    def generate_trace_id(self) -> int:
        return self.trace

    def is_trace_id_random(self) -> bool:
        return False


def parents_first(spans: dict[bytes, Any]) -> Iterator[Any]:
    """The spans, each after the one above it and those it is linked to."""
    done: set[bytes] = set()
    waiting = sorted(spans.values(), key=lambda span: span.start_time_unix_nano)
    while waiting:
        ready = [span for span in waiting if not {span.parent_span_id, *(link.span_id for link in span.links)} & spans.keys() - done]
        assert ready, "spans in a ring"
        yield from ready
        done |= {span.span_id for span in ready}
        waiting = [span for span in waiting if span.span_id not in done]


def plain(value: Any) -> Any:
    """An attribute as the SDK takes it: lists are sequences."""
    return [getattr(one, one.WhichOneof("value")) for one in value.values] if hasattr(value, "values") else value


def sdk_agrees(data: bytes) -> None:
    """What comes out of the SDK is what the file says: nothing refused, shortened, or of another trace."""
    found = replayed(data)
    told_spans = [span for line in data.split(b"\n")[:-1] for span in read_otlp(line)]
    assert len(found) == len(told_spans)
    for span in told_spans:
        made = found[int.from_bytes(span.span_id)]
        assert made.context.trace_id == int.from_bytes(span.trace_id)
        assert (made.parent.span_id if made.parent else 0) == int.from_bytes(span.parent_span_id)
        assert (made.start_time, made.end_time) == (span.start_time_unix_nano, span.end_time_unix_nano)
        said = {name: plain(value) for name, value in span_attributes(span).items()}
        assert {name: list(value) if isinstance(value, tuple) else value for name, value in made.attributes.items()} == said
        assert (made.status.status_code.value, made.status.description or "") == (span.status.code, span.status.message)
        assert [(event.name, event.timestamp) for event in made.events] == [(event.name, event.time_unix_nano) for event in span.events]
        links = [(int.from_bytes(link.trace_id), int.from_bytes(link.span_id)) for link in span.links]
        assert [(link.context.trace_id, link.context.span_id) for link in made.links] == links


def span_attributes(span: Any) -> dict[str, Any]:
    """The attributes of a span as plain values."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def read_otlp(data: bytes) -> list[Any]:
    """The spans of one request, read strictly by the protocol buffers. Ids are hex in OTLP's JSON and base64 in that of protobuf."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ParseDict(_with_base64(json.loads(data)), ExportTraceServiceRequest())
    return [span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]


def _with_base64(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_base64(item) for item in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {name: b64encode(bytes.fromhex(item)).decode() if name in ids else _with_base64(item) for name, item in value.items()}
