"""Who says that trajectories and spans are right: the models of ATIF and the protocol buffers of OpenTelemetry."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any


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
    """Every line is a request of OTLP; ids are once; every parent is there, in the same trace; a child of a child is no ring."""
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
        assert told(span)["gen_ai.operation.name"] == span.name.partition(" ")[0]
        assert told(span)["gen_ai.provider.name"] and told(span)["gen_ai.conversation.id"]
        above = by_id.get(span.parent_span_id)
        above_name = above.name.partition(" ")[0] if above else None
        assert (span.name.partition(" ")[0], above_name) in NESTING


NESTING = {
    ("invoke_agent", None),
    ("invoke_agent", "invoke_agent"),
    ("invoke_agent", "execute_tool"),
    ("chat", "invoke_agent"),
    ("execute_tool", "chat"),
}


def told(span: Any) -> dict[str, Any]:
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
