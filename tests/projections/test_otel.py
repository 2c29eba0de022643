"""Spans: how they nest, which ids and counts they have, and how a collector gets them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from hansard.cli import main
from hansard.events import (
    ErrorInfo,
    Event,
    Usage,
    assistant_done,
    error,
    session_init,
    session_lifecycle,
    tool_call,
    tool_result,
    turn_end,
    turn_start,
    usage,
    user_message,
)
from hansard.events.codec import encode
from hansard.events.lineage import Lineage, parent_found
from hansard.projections import Projected
from hansard.projections.formats.otel import Spans
from hansard.projections.output import written
from tests.projections.trace_referees import otel_accepts, read_otlp, span_attributes


def placed(*events: Event) -> list[Event]:
    """As in a log: each with a place and a time."""
    for seq, event in enumerate(events, 1):
        event.seq, event.session_id, event.source = seq, "s", event.source or "claude"
        event.timestamp = 1_000_000 + seq * 1000
    return list(events)


def with_fields(event: Event, **fields: Any) -> Event:
    for name, value in fields.items():
        setattr(event, name, value)
    return event


def session() -> list[Event]:
    count = Usage(input_tokens=1, output_tokens=2, cache_read_input_tokens=800, cache_creation_input_tokens=10, reasoning_tokens=1)
    return placed(
        session_lifecycle(subtype="created", schema_version=1),
        session_init(agent_id="claude", agent_version="2", model="claude-x", provider_session_id="p"),
        turn_start(trigger="user"),
        user_message(text="secret question"),
        with_fields(assistant_done(text="secret answer"), response_id="1"),
        with_fields(tool_call(tool_call_id="a", tool_name="Task", args={"k": "secret argument"}), response_id="1"),
        with_fields(usage(scope="message", usage=count, model="claude-y"), response_id="1"),
        with_fields(assistant_done(text="secret of a sub-agent"), response_id="2", parent_tool_call_id="a"),
        tool_result(tool_call_id="a", result="secret result", is_error=True),
        turn_end(status="error", stop_reason="stop", error=ErrorInfo(code="rate_limit", message="slow down")),
        turn_start(trigger="user"),
        error(code="api_error", message="oh"),
        with_fields(assistant_done(text="again"), response_id="3"),
        turn_end(status="completed"),
    )


def spans_of(events: list[Event], **options: Any) -> list[Any]:
    pieces = list(Projected(Spans(**options), events))
    data = b"".join(written(pieces, "lines"))
    otel_accepts(pieces, data)
    return [span for line in data.split(b"\n")[:-1] for span in read_otlp(line)]


def test_spans_nest_as_agents_answer_and_call():
    spans = spans_of(session())
    by_id = {span.span_id: span for span in spans}
    paths = set()
    for span in spans:
        path = [span.name]
        while span.parent_span_id:
            span = by_id[span.parent_span_id]
            path.insert(0, span.name)
        paths.add(" > ".join(path))
    turn = "invoke_agent claude"
    tool = f"{turn} > chat claude-x > execute_tool Task"
    sub = f"{tool} > invoke_agent sub-agent"
    assert paths == {turn, f"{turn} > chat claude-x", tool, sub, f"{sub} > chat claude-x"}


def test_input_tokens_include_the_cached_ones_and_are_said_once():
    spans = [span_attributes(span) for span in spans_of(session())]
    (counted,) = [span for span in spans if "gen_ai.usage.input_tokens" in span]
    assert counted["gen_ai.operation.name"] == "chat"
    assert counted["gen_ai.response.model"] == "claude-y"
    numbers = {name.removeprefix("gen_ai.usage."): value for name, value in counted.items() if name.startswith("gen_ai.usage.")}
    assert numbers == {
        "input_tokens": 811,
        "output_tokens": 2,
        "cache_read.input_tokens": 800,
        "cache_creation.input_tokens": 10,
        "reasoning.output_tokens": 1,
    }


def test_each_turn_is_a_trace_that_knows_the_one_before():
    spans = spans_of(session())
    first, second = (span for span in spans if "hansard.turn.status" in span_attributes(span))
    assert first.trace_id != second.trace_id
    assert [link.span_id for link in second.links] == [first.span_id]
    assert (first.status.code, span_attributes(first)["error.type"]) == (2, "rate_limit")
    assert [event.name for event in second.events] == ["hansard.error"]


def test_the_first_turn_of_a_fork_is_linked_to_the_turn_of_its_parent() -> None:
    parent, child = session(), session()
    first = next(span for span in spans_of(parent) if "hansard.turn.status" in span_attributes(span))
    lineage = Lineage("fork", "their id", "s", "log", seq=7, turn_seq=3, copied=((3, 10),))
    events = placed(*child[:2], parent_found(lineage), *child[2:])
    events[2].source = None  # hansard found it
    for event in events:
        event.session_id = "child"
    turns = [span for span in spans_of(events) if "hansard.turn.status" in span_attributes(span)]
    (link,) = turns[0].links
    assert (link.trace_id, link.span_id) == (first.trace_id, first.span_id)
    assert {one.key: one.value.string_value for one in link.attributes} == {"hansard.lineage": "fork", "gen_ai.conversation.id": "their id"}
    assert len(turns[1].links) == 1


def test_a_session_can_be_one_trace():
    spans = spans_of(session(), trace="session")
    assert len({span.trace_id for span in spans}) == 1
    assert len([span for span in spans if not span.parent_span_id]) == 1


def test_what_was_said_is_in_spans_only_if_asked_for():
    events = session()
    off = b"".join(written(Projected(Spans(), events), "lines"))
    on = b"".join(written(Projected(Spans(content="on"), events), "lines"))
    assert b"secret" not in off
    assert on.count(b"secret") == 6  # arguments are in the answer and with the call
    spans_of(events, content="on")


def test_a_sub_agent_that_goes_on_after_its_result_stays_with_its_call():
    spans = spans_of(
        placed(
            turn_start(trigger="user"),
            tool_call(tool_call_id="a", tool_name="Task", args={}),
            tool_result(tool_call_id="a", result="started"),
            with_fields(assistant_done(text="working"), parent_tool_call_id="a"),
            turn_end(status="completed"),
        )
    )
    tool = next(span for span in spans if span.name == "execute_tool Task")
    assert [span.name for span in spans if span.parent_span_id == tool.span_id] == ["invoke_agent sub-agent"]


def test_times_that_nobody_knows_are_said_to_be_unknown():
    (turn,) = spans_of([with_fields(turn_start(trigger="user"), seq=1, session_id="s")])
    assert (turn.start_time_unix_nano, span_attributes(turn)["hansard.time.unknown"]) == (0, True)


# ---------------------------------------------------------------------------------------------------------------------
# A collector


class Collector(HTTPServer):
    """Takes what it is sent, and answers as it is told."""

    status = 200
    answer = b"{}"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taken)
        self.taken: list[tuple[str, dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Taken(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Collector)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.answer)))
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def log(tmp_path, monkeypatch):
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"".join(encode(event) + b"\n" for event in session()))
    return str(file)


def test_a_collector_gets_every_span(collector, log, capsys):
    assert main(["export", log, "--to", "otlp", "--endpoint", collector.url]) == 0
    assert {path for path, _, _ in collector.taken} == {"/v1/traces"}
    spans = [span for _, _, body in collector.taken for span in read_otlp(body)]
    assert [span.span_id for span in spans] == [span.span_id for span in spans_of(session())]
    assert f"{len(spans)} spans sent to {collector.url}/v1/traces" in capsys.readouterr().err


def test_the_variables_of_opentelemetry_are_honoured(collector, log, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url + "/")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-one=1%202, x-two=b")
    assert main(["export", log, "--to", "otlp"]) == 0
    path, headers, _ = collector.taken[0]
    assert (path, headers["x-one"], headers["x-two"], headers["content-type"]) == ("/v1/traces", "1 2", "b", "application/json")


@pytest.mark.parametrize(
    ("status", "answer", "said"),
    [
        (401, b"who are you", "the collector answered 401 Unauthorized: who are you"),
        (200, b'{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}', "the collector refused 3 spans: too old"),
    ],
)
def test_a_refusal_is_told(collector, log, capsys, status, answer, said):
    collector.status, collector.answer = status, answer
    assert main(["export", log, "--to", "otlp", "--endpoint", collector.url]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "ftp://here", "nowhere"])
def test_an_endpoint_that_is_none_is_told(log, capsys, endpoint):
    assert main(["export", log, "--to", "otlp", "--endpoint", endpoint]) == 2
    assert endpoint in capsys.readouterr().err


def test_an_endpoint_says_nothing_to_a_file_and_a_file_nothing_to_a_collector(log, tmp_path):
    assert main(["export", log, "--to", "otel", "--endpoint", "http://127.0.0.1:1"]) == 2
    assert main(["export", log, "--to", "otlp", "-o", str(tmp_path / "x")]) == 2
