"""The document for machines: it has every route, it is valid, and whatever it says can be asked is answered as it says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hansard.hub import Hub
from hansard.server.openapi import OPERATIONS, document
from hansard.server.protocol import Limits
from hansard.server.routes import routes
from hansard.server.serving import Serving
from hansard.server.tokens import Token, Tokens
from hansard.store import JsonlStore
from tests.proof import LONG
from tests.server.served import process, words

SHORT = ["--phases", "fuzzing", "--max-examples", "5", "--seed", "1"]
MORE = ["--max-examples", "200"] if LONG else []


def test_every_route_is_in_the_document_and_in_the_words(tmp_path: Path):
    with JsonlStore(tmp_path) as store:
        served = {
            (method, route.path)
            for route in routes(Serving(Hub(store), Tokens([Token.make()]), Limits()))
            for method in route.methods or ()
        }
    assert {(method, path) for method, path in served if method != "HEAD"} == set(OPERATIONS)
    words = (Path(__file__).parents[2] / "docs/protocol.md").read_text()
    for method, path in OPERATIONS:
        said = path.replace("{session}", "{id}")
        assert f"`{method}` | `{said}`" in words or (method == "GET" and said.endswith("/state") and "`/state`" in words), (method, path)


def test_every_reference_leads_somewhere():
    made = json.loads(document())

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
        store.append("s1", words(20))
    with process(tmp_path / "store", "--limit", "burst=1000000", "--limit", "commands=100000") as server:
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.address}/openapi.json", *(MORE or SHORT)]
        command += ["-H", f"Authorization: Bearer {server.token}", "--exclude-path-regex", "/stream$", "--no-color"]
        command += ["--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
        assert re.search(r"Tested: 2[01]", run.stdout), run.stdout
    with JsonlStore(tmp_path / "store") as store:
        assert store.verify("s1") == []
