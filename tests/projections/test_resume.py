"""Resume anywhere: the real programs go on from files that we made of other agents' logs, and tell their model the turns before."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hansard.adapters.normalize import normalize
from hansard.events import Event
from hansard.projections import project
from hansard.projections.base import Projected
from hansard.projections.output import written
from tests.model_server import ModelServer, model_server
from tests.projections.provider_referees import calls_and_outputs
from tests.recorded import streams

SAYS = "And so it goes on."
ASKED = "Go on, please."
CODEX = Path(__file__).parents[2] / "build/agents/node_modules"
LOGS = [
    "claude-control/parallel_tools",
    "claude-stream-json/multi_turn",
    "codex-app-server/tool_ok",
    "codex-exec-json/multi_turn",
    "copilot-acp/tool_ok",
    "gemini-acp/parallel_tools",
    "openai-responses/parallel_tools",
    "opencode-sse/tool_fail",
    "qwen-acp/image_input",
    "claude-control/interrupt_tool",
]

pytestmark = pytest.mark.slow


@pytest.fixture(params=LOGS)
def events(request: pytest.FixtureRequest) -> list[Event]:
    stream = next(stream for stream in streams() if stream.recording.id == request.param and stream.main)
    return list(normalize(stream.data, stream.format, stream.context))


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server(SAYS) as running:
        yield running


@pytest.fixture(scope="module")
def claude() -> Path:
    found = find_spec("claude_agent_sdk")
    if found is None or found.origin is None:
        pytest.skip("Claude Code is not installed: `make test` brings it")
    return Path(found.origin).parent / "_bundled/claude"


@pytest.fixture(scope="module")
def codex() -> Path:
    folder = Path(os.environ.get("HANSARD_CODEX", CODEX))
    found = next(folder.glob("@openai/codex-*/vendor/*/bin/codex"), None)
    if found is None:
        pytest.skip("Codex is not installed: `make test` brings it")
    return found


def test_claude_goes_on_from_any_log(claude: Path, server: ModelServer, events: list[Event], tmp_path: Path) -> None:
    work, home, environment = surroundings(tmp_path)
    session = put(project(events, "claude-session", cwd=str(work)), home)
    environment |= {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    environment |= {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_MAX_RETRIES": "0"}
    said = run([claude, "-p", ASKED, "--resume", session, "--output-format", "json"], work, environment)
    assert json.loads(said)["result"] == SAYS
    asked = next(request["messages"] for request in server.asked if ASKED in json.dumps(request["messages"]))
    before = [fact for message in project(events, "anthropic-messages") for fact in anthropic_facts(message)]
    assert in_order(before, [fact for message in asked for fact in anthropic_facts(message)])
    for one, other in pairwise(message for message in asked if message["role"] != "system"):
        calls = {block["id"] for block in blocks(one) if block["type"] == "tool_use"}
        assert {block["tool_use_id"] for block in blocks(other) if block["type"] == "tool_result"} == calls


def test_codex_goes_on_from_any_log(codex: Path, server: ModelServer, events: list[Event], tmp_path: Path) -> None:
    work, home, environment = surroundings(tmp_path)
    session = put(project(events, "codex-rollout", cwd=str(work)), home)
    (home / ".codex/config.toml").write_text(CONFIG.format(url=server.url))
    said = run([codex, "exec", "resume", session, "--json", "--skip-git-repo-check", "--", ASKED], work, environment)
    assert SAYS in said
    asked = next(request["input"] for request in server.asked if ASKED in json.dumps(request["input"]))
    before = [fact for item in project(events, "openai-responses") for fact in responses_facts(item)]
    assert in_order(before, [fact for item in asked for fact in responses_facts(item)])
    calls_and_outputs(asked)


CONFIG = """
model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
approval_policy = "never"
sandbox_mode = "danger-full-access"
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""


def surroundings(folder: Path) -> tuple[Path, Path, dict[str, str]]:
    """A folder to work in, a home, and an environment that knows nothing else."""
    work, home = folder / "work", folder / "home"
    work.mkdir()
    home.mkdir()
    return work, home, {"PATH": "/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"}


def put(made: Projected[Any], home: Path) -> str:
    """Put the file where its own advice says; the id to resume."""
    data = b"".join(written(made, "lines"))
    assert made.advice is not None
    place = home / made.advice.partition("~/")[2].partition(";")[0]
    place.parent.mkdir(parents=True)
    place.write_bytes(data)
    return made.advice.split()[-1]


def run(argv: list[Any], work: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(list(map(str, argv)), cwd=work, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


Fact = tuple[str, str]


def anthropic_facts(message: dict[str, Any]) -> list[Fact]:
    """What a message says, whatever form it has: texts, calls and results by their ids."""
    keys = {"text": "text", "tool_use": "id", "tool_result": "tool_use_id"}
    return [(block["type"], block[keys[block["type"]]].strip()) for block in blocks(message) if block["type"] in keys]


def responses_facts(item: dict[str, Any]) -> list[Fact]:
    """What an item says, whatever form it has: texts, calls and outputs by their ids."""
    if item["type"] != "message":
        return [(item["type"], item["call_id"])]
    parts = [{"text": item["content"]}] if isinstance(item["content"], str) else item["content"]
    return [("text", part["text"]) for part in parts if "text" in part]


def blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def in_order(wanted: list[Fact], found: list[Fact]) -> bool:
    """Whether everything that is wanted is there, in this order."""
    rest = iter(found)
    return bool(wanted) and all(fact in rest for fact in wanted)
