"""Programs that run for one turn: the real ones against a scripted model, and one that cannot be installed as a player of its recording."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from hansard import project
from hansard.agents import agent_for
from hansard.agents.base import Options
from hansard.agents.session import Session
from hansard.errors import Refused, UsageError
from hansard.events import Event
from hansard.events.content import ImageBlock, TextBlock
from tests.driving.capabilities import shows
from tests.driving.model import Model, model, says
from tests.driving.surroundings import claude_program, idle, program
from tests.driving.test_acp import QUIET_OPENCODE, with_node
from tests.driving.test_opencode import QUIET
from tests.driving.witness import Around
from tests.recorded import FOLDER

pytestmark = pytest.mark.anyio


class Real(Struct):
    """How a real program is set up so that it asks the scripted model, and nobody else."""

    name: str
    program: Callable[[], str]
    home: str | None
    settings: dict[str, Any]
    env: dict[str, str]
    path: str | None
    """After the address of the model; None if only its settings can name it."""
    model: str
    other: str
    """Another model."""
    mode: str
    shell: str
    allowed: list[str] = []

    def variables(self) -> dict[str, str]:
        """Its environment."""
        return {"NO_COLOR": "1", **self.env, **with_node()}

    async def session(self, around: Around, server: Model, agent: str | None = None, **more: Any) -> Session:
        if self.home is not None:
            place = around.home / self.home
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(json.dumps(self.settings).replace("{url}", server.url))
        given: dict[str, Any] = {"model": self.model, "permission_mode": self.mode, "allowed_tools": self.allowed} | more
        address = None if self.path is None else server.url + self.path
        options = Options(program=self.program(), base_url=address, env=self.variables(), **given)
        return await around.witnessed(agent or self.name, options)


_QUIET = {"privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False}, "tools": {"useRipgrep": False}}
GEMINI = Real(
    name="gemini-oneshot",
    program=lambda: program(".bin/gemini"),
    home=".gemini/settings.json",
    settings=_QUIET
    | {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"enableAutoUpdate": False, "maxAttempts": 1},
    },
    env={"GEMINI_API_KEY": "dummy-key", "GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "true"},
    path="",
    model="gemini-2.5-pro",
    other="gemini-2.5-flash",
    mode="yolo",
    shell="run_shell_command",
)
QWEN = Real(
    name="qwen-oneshot",
    program=lambda: program(".bin/qwen"),
    home=".qwen/settings.json",
    settings=_QUIET
    | {
        "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
        "general": {"enableAutoUpdate": False},
        "model": {"generationConfig": {"maxRetries": 0}},
        "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
        "ui": {"enableFollowupSuggestions": False},
    },
    env={"OPENAI_API_KEY": "dummy-key", "QWEN_CODE_NO_RELAUNCH": "true"},
    path="/v1",
    model="scripted",
    other="scripted-too",
    mode="yolo",
    shell="run_shell_command",
)
COPILOT = Real(
    name="copilot-oneshot",
    program=lambda: program("@github/copilot-linux-x64/copilot"),
    home=None,
    settings={},
    env={"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_API_KEY": "dummy-key", "COPILOT_MODEL": "scripted", "COPILOT_AUTO_UPDATE": "false"},
    path="/v1",
    model="scripted",
    other="scripted-too",
    mode="allow-all",
    shell="bash",
)
CLAUDE = Real(
    name="claude-oneshot",
    program=claude_program,
    home=None,
    settings={},
    env={
        "ANTHROPIC_API_KEY": "dummy-key",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
    },
    path="",
    model="sonnet",
    other="haiku",
    mode="default",
    shell="Bash",
    allowed=["Bash"],
)
OPENCODE = Real(
    name="opencode-oneshot",
    program=lambda: program("opencode-linux-*/bin/opencode"),
    home=".config/opencode/opencode.json",
    settings=QUIET_OPENCODE,
    env=QUIET,
    path=None,
    model="scripted/first",
    other="scripted/other",
    mode="auto",
    shell="bash",
)
REAL = [pytest.param(real, id=real.name, marks=pytest.mark.slow) for real in (GEMINI, QWEN, COPILOT, CLAUDE, OPENCODE)]


def log(session: Session) -> list[Event]:
    return list(session.recorder.log.read())


def payloads(session: Session, kind: str) -> list[Any]:
    return [event.payload for event in log(session) if event.type == kind]


def prompts(session: Session) -> list[str]:
    return [message.text for message in payloads(session, "user_message") if message.author == "human"]


def ends(session: Session) -> list[str]:
    return [end.status for end in payloads(session, "turn_end")]


async def turn(session: Session, text: str) -> None:
    await session.send(text)
    await idle(session)


def sent(session: Session) -> bytes:
    return b"".join(project(log(session), "native", direction="out"))


@pytest.mark.parametrize("real", REAL)
@shows("setting")
async def test_settings_hold_from_the_next_turn_and_messages_wait(real: Real, around: Around) -> None:
    with model(says("one"), says("two")) as server:
        session = await real.session(around, server)
        await session.send("first")
        await session.configure("set_model", model=real.other)
        with pytest.raises(Refused, match="no permission mode 'wild'"):
            await session.configure("set_permission_mode", permission_mode="wild")
        await session.send("second")
        assert [waiting.text for waiting in session.state.queue.values()] == ["second"]
        await idle(session)
        await session.close()
    models = [[part for part in news.argv if part.startswith("--model")] for news in payloads(session, "process") if news.argv]
    assert models == [[f"--model={real.model}"], [f"--model={real.other}"]]
    assert ends(session) == ["completed"] * 2 and prompts(session) == ["first", "second"]
    if real not in (QWEN, CLAUDE):  # these two are told in JSON
        assert sent(session) == b"firstsecond"


@pytest.mark.slow
@pytest.mark.parametrize("real", [pytest.param(QWEN, id="qwen"), pytest.param(CLAUDE, id="claude")])
async def test_pictures_are_in_the_prompt_of_those_that_take_json(real: Real, around: Around) -> None:
    picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    with model(says("A dot.")) as server:
        session = await real.session(around, server)
        await session.send("Look.", [TextBlock(text="Look."), ImageBlock(media_type="image/png", data=picture)])
        await idle(session)
        await session.close()
    assert picture in sent(session).decode() and ends(session) == ["completed"]


# --------------------------------------------------------------------------------------------------------------------
# Arguments, and a program that plays a recording


@pytest.mark.parametrize(
    ("name", "options", "argv"),
    [
        ("gemini-oneshot", {"model": "-m", "permission_mode": "plan"}, ["--approval-mode=plan", "--model=-m"]),
        ("gemini-oneshot", {"resume": "--yolo"}, ["--resume=--yolo"]),
        ("qwen-oneshot", {"system_prompt": "-y", "denied_tools": ["a b"]}, ["--system-prompt=-y", "--exclude-tools=a b"]),
        ("copilot-oneshot", {"permission_mode": "allow-all", "allowed_tools": ["shell(git)"]}, ["--allow-all", "--allow-tool=shell(git)"]),
        ("opencode-oneshot", {"permission_mode": "plan", "resume": "ses_1"}, ["--agent=plan", "--session=ses_1"]),
        ("cursor-oneshot", {"permission_mode": "force", "model": "gpt", "resume": "id"}, ["--force", "--model=gpt", "--resume=id"]),
        ("claude-oneshot", {"permission_mode": "plan"}, ["--permission-mode=plan"]),
        ("claude-oneshot", {"allowed_tools": ["Bash(git *)", "-p"]}, ["--allowedTools=Bash(git *)", "--allowedTools=-p"]),
    ],
)
async def test_each_option_is_one_argument(name: str, options: dict[str, Any], argv: list[str]) -> None:
    found = agent_for(name).argv(Options(**options))
    flags = len(agent_for(name).argv(Options()))
    assert found[flags:] == argv and all(flag.startswith("-") or flag == "run" for flag in found)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gemini-oneshot", {"system_prompt": "Be brief."}),
        ("cursor-oneshot", {"denied_tools": ["shell"]}),
        ("opencode-oneshot", {"permission_mode": "yolo"}),
        ("copilot-oneshot", {"mcp_servers": {"demo": {"command": "x"}}}),
        ("gemini-oneshot", {"model": "a\0b"}),
    ],
)
async def test_what_a_program_has_no_option_for_is_refused(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        agent_for(name).argv(Options(**options))


@pytest.fixture
def player(tmp_path: Path) -> Callable[[str, str, str], str]:
    """Makes a program that reads its prompt and then plays a recording, in which it says that prompt where the recorded one stood."""

    def make(format: str, scenario: str, prompt: str) -> str:
        recording = next((FOLDER / format / scenario).glob("stdout.jsonl*"))
        place = tmp_path / "player"
        place.write_text(
            f"#!{sys.executable}\nimport json, sys\nprompt = json.dumps(sys.stdin.read())[1:-1]\n"
            f"sys.stdout.write(open({str(recording)!r}).read().replace({json.dumps(prompt)[1:-1]!r}, prompt))\n"
        )
        place.chmod(0o700)
        return str(place)

    return make


async def test_cursor_is_heard_and_its_echo_is_no_second_message(around: Around, player: Callable[[str, str, str], str]) -> None:
    session = await around.session("cursor-oneshot", Options(program=player("cursor-stream-json", "text", "Name the lighthouse.")))
    await turn(session, "Greet me.")
    await session.close()
    assert prompts(session) == ["Greet me."] and ends(session) == ["completed"]
    assert payloads(session, "assistant_done") and [one.status for one in payloads(session, "status_change")].count("prompt_echo") == 1
    assert sent(session) == b"Greet me."


async def test_opencode_ends_its_turn_with_its_process(around: Around, player: Callable[[str, str, str], str]) -> None:
    session = await around.session("opencode-oneshot", Options(program=player("opencode-run-json", "text", "unused")))
    await turn(session, "Hello.")
    await session.close()
    assert prompts(session) == ["Hello."] and ends(session) == ["completed"] and not payloads(session, "error")
