"""The document for machines: it has every route, it is valid, and whatever it says can be asked is answered as it says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hansard.agents.hub import Hub
from hansard.server import protocol
from hansard.server.openapi import Operation, document
from hansard.server.protocol import Limits
from hansard.server.routes import OPERATIONS, Api, openapi, routes
from hansard.server.services import ServerContext
from hansard.server.tokens import Token, Tokens
from hansard.store import JsonlStore
from tests.proof import LONG
from tests.server.served import process, words

SHORT = ["--phases", "fuzzing", "--max-examples", "5", "--seed", "1"]
MORE = ["--max-examples", "200"] if LONG else []


def test_every_operation_is_served_documented_and_in_the_words():
    described = json.loads(openapi())["paths"]
    assert {(method.upper(), path) for path, methods in described.items() for method in methods} == {each[:2] for each in OPERATIONS}
    words = (Path(__file__).parents[2] / "docs/protocol.md").read_text()
    for method, path, *_ in OPERATIONS:
        said = path.replace("{session}", "{id}")
        assert f"`{method}` | `{said}`" in words or (method == "GET" and said.endswith("/state") and "`/state`" in words), (method, path)


def test_a_line_in_the_table_is_a_route_and_a_part_of_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    added = Operation("GET", "/api/added", Api.about, "Added", protocol.ServerDescription, errors=(418,))
    monkeypatch.setattr("hansard.server.routes.OPERATIONS", (*OPERATIONS, added))
    with JsonlStore(tmp_path) as store:
        last = routes(ServerContext(Hub(store), Tokens([Token.make()]), Limits()))[-1]
    assert (last.path, last.methods) == ("/api/added", {"GET", "HEAD"})
    described = json.loads(document([added]))["paths"]["/api/added"]["get"]
    assert described["summary"] == "Added" and {"200", "400", "418"} <= described["responses"].keys()


def test_health_is_described_as_it_is_answered():
    answers = json.loads(openapi())["paths"]["/api/health"]["get"]["responses"]
    assert answers["503"] == answers["200"]


def test_every_reference_leads_somewhere():
    made = json.loads(openapi())

    def references(value: object) -> list[str]:
        if isinstance(value, dict):
            return ([value["$ref"]] if "$ref" in value else []) + [found for item in value.values() for found in references(item)]
        return [found for item in value for found in references(item)] if isinstance(value, list) else []

    assert made["openapi"] == "3.1.0"
    found = set(references(made))
    assert len(found) > 20
    assert {name.removeprefix("#/components/schemas/") for name in found} <= made["components"]["schemas"].keys()


NAMED = """
[parameters]
session = "s1"

[[operations]]
include-name = "DELETE /api/sessions/{session}"
enabled = false
"""
"""Requests are about a session that is there, and stays."""


@pytest.mark.slow
def test_whatever_it_says_can_be_asked_is_answered_as_it_says(tmp_path: Path):
    """Schemathesis, which makes requests of the document: right ones and wrong ones."""
    (tmp_path / "schemathesis.toml").write_text(NAMED)
    with JsonlStore(tmp_path / "store") as store:
        store.create("s1", title="A session")
        store["s1"].append(words(20))
    with process(tmp_path / "store", "--limit", "burst=1000000", "--limit", "commands=100000") as server:
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.address}/openapi.json", *(MORE or SHORT)]
        command += ["-H", f"Authorization: Bearer {server.token}", "--exclude-path-regex", "/stream$", "--no-color"]
        command += ["--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
        assert re.search(r"Tested: 2[56]", run.stdout), run.stdout
    with JsonlStore(tmp_path / "store") as store:
        assert store["s1"].verify() == []
