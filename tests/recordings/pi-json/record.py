"""How these recordings are made: pi in its JSON mode (npm: @earendil-works/pi-coding-agent; Node 22.19 or newer). See tools/record.py."""

from __future__ import annotations

import json

from tests.driving.model import Call, Step, Text, Thinking, calls, says
from tools.record import Program, Result, Scenario, Turn

ABORT = """\
export default (pi) => pi.on("message_update", (event, ctx) => { if (event.assistantMessageEvent.type === "text_delta") ctx.abort(); });
"""
COUNTS = Step([Text("one… two… three… four… five… six… ")], hang=True)
HALF = {"usage": {"input_tokens": 10, "output_tokens": 1}}
"""What Anthropic's API says at the beginning of an answer."""


class Pi(Program):
    """pi."""

    name, version, transport = "pi", "0.87.1", "json"
    environment = {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}
    keeps = {".pi/agent/sessions": "pi/sessions"}

    def files(self, scenario: Scenario, url: str) -> dict[str, str]:
        """Its settings, a note to read, and an extension."""
        api = scenario.api or "anthropic-messages"
        models = [{"id": "scripted-model", "reasoning": True, "contextWindow": 200000, "maxTokens": 32000}]
        base = url if api == "anthropic-messages" else f"{url}/v1"
        provider = {"baseUrl": base, "api": api, "apiKey": "scripted-key", "models": models}
        settings = {"retry": {"baseDelayMs": 200, "maxRetries": 2}, "enableInstallTelemetry": False}
        return {
            ".pi/agent/models.json": json.dumps({"providers": {"scripted": provider}}),
            ".pi/agent/settings.json": json.dumps(settings),
            "abort.ts": ABORT,
            "demo/note.txt": "a heron\nby the water\n",
        }

    def arguments(self, scenario: Scenario) -> list[str]:
        """Several prompts are several turns."""
        prompts = [turn.user for turn in scenario.turns]
        return ["--offline", "--mode", "json", "--model", "scripted/scripted-model", *scenario.arguments, *prompts]


def short(tools: str = "read") -> list[str]:
    """Arguments for a system prompt of three words, and few tools: both are on the wire."""
    return ["--system-prompt", "You are pi.", "--tools", tools]


PROGRAM = Pi()
SCENARIOS = {
    "text": Scenario(turns=[Turn("Say hello.", [says("Hello from pi, said the magpie.")], "text")], notes="The whole system prompt."),
    "multi_turn": Scenario(
        turns=[
            Turn("What is on the roof?", [says("A stork is on the roof.")]),
            Turn("And what does it do?", [says("It stands on one leg.")]),
        ],
        arguments=short(),
        api="openai-completions",
        notes="Two prompts on the command line are two turns of one process.",
    ),
    "thinking": Scenario(
        turns=[Turn("Which bird is it?", [Step([Thinking("Long legs and a grey coat: a heron."), Text("It is a heron.")])])],
        arguments=[*short(), "--thinking", "high"],
    ),
    "tool_ok": Scenario(
        turns=[
            Turn(
                "Read the note.",
                [
                    Step([Text("I will read it."), Call("read", {"path": "note.txt"}, "toolu_read")]),
                    Result("toolu_read", "a heron"),
                    says("The note tells of a heron."),
                ],
            )
        ],
        arguments=short(),
    ),
    "tool_fail": Scenario(
        turns=[
            Turn(
                "Run the failing check.",
                [
                    calls("bash", {"command": "printf 'out-%s\\n' before-fail; printf 'err-%s\\n' kestrel >&2; exit 3"}, "toolu_bash"),
                    Result("toolu_bash", "err-kestrel", is_error=True),
                    says("The check failed with exit code 3."),
                ],
            )
        ],
        arguments=short("bash"),
    ),
    "file_edit": Scenario(
        turns=[
            Turn(
                "Make it an egret, and write it down.",
                [
                    Step(
                        [
                            Call("edit", {"path": "note.txt", "edits": [{"oldText": "a heron", "newText": "an egret"}]}, "toolu_edit"),
                            Call("write", {"path": "birds.txt", "content": "egret\n"}, "toolu_write"),
                        ]
                    ),
                    Result("toolu_edit"),
                    Result("toolu_write"),
                    says("Both files are written."),
                ],
            )
        ],
        arguments=short("edit,write"),
        notes="Two calls in one answer.",
    ),
    "err_auth": Scenario(
        turns=[Turn("Say hello (bad key).", [Step(status=401)], "HTTP 401")],
        arguments=short(),
        api="openai-responses",
    ),
    "err_rate_limit": Scenario(
        turns=[Turn("Say hello (busy).", [Step(status=429), says("Hello at the second try.")])],
        arguments=short(),
        notes="Asked again after a 429.",
    ),
    "err_server": Scenario(
        turns=[Turn("Say hello (too busy).", [Step(status=503)] * 3, "HTTP 500")],
        arguments=short(),
        notes="Asked again twice, then given up.",
    ),
    "max_tokens": Scenario(
        turns=[Turn("Tell all of it.", [Step([Text("There was once a")], stop="max_tokens")], "max tokens")],
        arguments=short(),
        notes="The stop reason is the script's: the model says max_tokens at the end of a whole answer.",
    ),
    "aborted": Scenario(
        turns=[Turn("Count slowly to one hundred.", [COUNTS], "interrupted in text", HALF)],
        arguments=[*short(), "--extension", "../abort.ts"],
        notes="An extension calls ctx.abort() at the first piece: what a user's Escape does. A signal only ends the process (interrupt).",
    ),
    "interrupt": Scenario(
        turns=[Turn("Count slowly to one hundred.", [COUNTS], "interrupted in text", HALF | {"end_on_wire": False})],
        arguments=short(),
        interrupt_at="text_delta",
        notes="SIGINT while the model speaks.",
    ),
}
