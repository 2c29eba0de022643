"""A small agent to try things with: it speaks ACP, knows no model, and does what the words of a message ask for. Nothing is imported of us.

    python agent.py        (an ACP client talks to it over its standard input and output)

Say ``help`` to it, and it says what it can do.
"""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import IO, Any, cast

HELP = """I am the demo agent: no model, no account, no network. Say one of these words:

- **think** and I think aloud before I answer
- **run** and I run a command, if you let me
- **edit** and I change a file, and show the difference
- **read** NAME and I read a file of this folder through you
- **plan** and I make a plan and work through it
- **ask** and I ask you something
- **say** and I say the rest of the line after you
- **tell** NAME and I say the rest to another agent, if I may, and tell you its answer; **send** NAME and I do not wait for it
- **count** and I count slowly, so that you can interrupt me
- **fail** and I fail; **refuse** and I refuse; **crash** and I am gone
"""
BEFORE = "A conversation between a user and you, the assistant, as far as it has got."
"""How the text begins that tells an agent what was said before it took over."""
COMMANDS = [
    {"name": "plan", "description": "Make a plan and work through it"},
    {"name": "count", "description": "Count slowly", "input": {"hint": "how far"}},
]
MODES = [
    {"id": "ask", "name": "Ask", "description": "Ask before anything is done"},
    {"id": "auto", "name": "Auto", "description": "Do everything without asking"},
]
MODELS = [{"modelId": "parrot", "name": "Parrot"}, {"modelId": "cuckoo", "name": "Cuckoo"}]
PACE = float(os.environ.get("DEMO_AGENT_PACE", "0.03"))
"""Seconds between two pieces of a text."""


class Cancelled(Exception):
    """The turn was interrupted."""


class Failed(Exception):
    """The turn failed."""


class Agent:
    """One process, any number of sessions, one turn at a time in each."""

    def __init__(self) -> None:
        self.writing = threading.Lock()
        self.answers: dict[int, queue.Queue[dict[str, Any]]] = {}
        self.asked = 0
        self.sessions: dict[str, Session] = {}

    def main(self) -> None:
        """Read until nobody speaks any more."""
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if "method" not in message:
                self.answers.pop(message["id"]).put(message)
            elif "id" in message:
                threading.Thread(target=self.serve, args=[message], daemon=True).start()
            elif message["method"] == "session/cancel":
                self.sessions[message["params"]["sessionId"]].cancelled.set()

    def serve(self, message: dict[str, Any]) -> None:
        """Answer a request."""
        try:
            result = self.handle(message["method"], message.get("params") or {})
            self.write(id=message["id"], result=result)
        except Failed as problem:
            self.write(id=message["id"], error={"code": -32603, "message": str(problem)})
        except KeyError as problem:
            self.write(id=message["id"], error={"code": -32602, "message": f"no {problem}"})

    def handle(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request."""
        match method:
            case "initialize":
                can: dict[str, Any] = {
                    "loadSession": False,
                    "promptCapabilities": {"image": True, "embeddedContext": True},
                    "sessionCapabilities": {"resume": {}},
                }
                about = {"name": "demo", "title": "Demo agent", "version": "1"}
                return {"protocolVersion": 1, "agentInfo": about, "agentCapabilities": can, "authMethods": []}
            case "session/new" | "session/resume":
                name = params.get("sessionId") or f"demo-{os.getpid()}-{len(self.sessions) + 1}"
                session = self.sessions[name] = Session(self, name, params["cwd"], params.get("mcpServers") or [])
                threading.Timer(0, session.update, ["available_commands_update"], {"availableCommands": COMMANDS}).start()
                state = {
                    "modes": {"currentModeId": "ask", "availableModes": MODES},
                    "models": {"currentModelId": "parrot", "availableModels": MODELS},
                }
                return state if method == "session/resume" else {"sessionId": name, **state}
            case "session/prompt":
                return self.sessions[params["sessionId"]].prompt(params["prompt"])
            case "session/set_mode":
                self.sessions[params["sessionId"]].set_mode(params["modeId"])
                return {}
            case "session/set_model":
                if params["modelId"] not in [model["modelId"] for model in MODELS]:
                    raise Failed(f"there is no model {params['modelId']}")
                return {}
            case _:
                raise Failed(f"Method not found: {method}")

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        """Ask the client, and wait for its answer."""
        self.asked += 1
        waiting = self.answers[self.asked] = queue.Queue()
        self.write(id=self.asked, method=method, params=params)
        answer = waiting.get()
        if "error" in answer:
            raise Failed(answer["error"]["message"])
        return answer["result"]

    def write(self, **fields: Any) -> None:
        """Say something."""
        with self.writing:
            sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **fields}).encode() + b"\n")
            sys.stdout.buffer.flush()


class Session:
    """A conversation."""

    def __init__(self, agent: Agent, name: str, cwd: str, servers: list[dict[str, Any]]) -> None:
        self.agent, self.name, self.cwd, self.servers = agent, name, cwd, servers
        self.mode = "ask"
        self.calls = 0
        self.cancelled = threading.Event()

    def prompt(self, content: list[dict[str, Any]]) -> dict[str, Any]:
        """A turn: what the words of the message ask for."""
        self.cancelled.clear()
        texts = [part["text"] for part in content if part["type"] == "text"]
        text = "\n".join(one for one in texts if not one.startswith(BEFORE))
        shown = ["a conversation" for one in texts if one.startswith(BEFORE)] + [part["type"] for part in content if part["type"] != "text"]
        tokens = len(text.split())
        try:
            if shown:
                self.say(f"You showed me: {', '.join(shown)}. ")
            asked = [word.strip(".,!?/").lower() for word in text.split()]
            deeds = [DEEDS[word] for word in asked if word in DEEDS] or [Session.echo]
            if asked[:1] in (["tell"], ["send"]):  # the rest is for somebody else
                deeds = [Session.tell]
            if text.startswith("[Callback from "):
                deeds = [Session.thank]
            for index, deed in enumerate(dict.fromkeys(deeds)):
                if index:
                    self.say("\n\n")
                if (reason := deed(self, text)) is not None:
                    return {"stopReason": reason}
        except Cancelled:
            return {"stopReason": "cancelled"}
        return {"stopReason": "end_turn", "usage": {"inputTokens": tokens, "outputTokens": 2 * tokens, "totalTokens": 3 * tokens}}

    # ---- what it can do

    def echo(self, text: str) -> None:
        self.say(f"You said: {text}\n\nSay *help*, and I tell you what I can do.")

    def help(self, text: str) -> None:
        self.say(HELP)

    def repeat(self, text: str) -> None:
        self.say(re.split(r"\bsay\b", text.split("\n")[0], maxsplit=1, flags=re.IGNORECASE)[-1].strip())

    def think(self, text: str) -> None:
        self.say("The question is short. The answer can be too.", "agent_thought_chunk")
        self.say("I thought about it: **yes**.")

    def run(self, text: str) -> None:
        self.say("I look at what is in this folder.")
        command = {"command": "ls -1", "cwd": self.cwd}
        call = self.call("ls -1", "execute", command)
        if not self.allowed(call, "ls -1", command):
            self.result(call, "failed", "not allowed")
            self.say("You did not let me. I stop here.")
            return
        names = "\n".join(sorted(os.listdir(self.cwd))[:20])
        self.result(call, "completed", names, {"exitCode": 0, "output": names})
        self.say(f"There are {len(names.splitlines())} entries.")

    def edit(self, text: str) -> None:
        old, new = "def answer():\n    return 41\n", "def answer():\n    return 42\n"
        path = os.path.join(self.cwd, "answer.py")
        change = {"path": path, "old_text": old, "new_text": new}
        call = self.call("Change answer.py", "edit", change)
        if not self.allowed(call, "Change answer.py", change):
            self.result(call, "failed", "not allowed")
            self.say("Then it stays 41.")
            return
        self.agent.ask("fs/write_text_file", {"sessionId": self.name, "path": path, "content": new})
        content = [{"type": "diff", "path": path, "oldText": old, "newText": new}]
        self.update("tool_call_update", toolCallId=call, status="completed", content=content)
        self.say("Now it is 42.")

    def read(self, text: str) -> None:
        name = text.split()[-1]
        call = self.call(f"Read {name}", "read", {"path": name})
        try:
            answer = self.agent.ask("fs/read_text_file", {"sessionId": self.name, "path": os.path.join(self.cwd, name)})
        except Failed as problem:
            self.result(call, "failed", str(problem))
            self.say(f"I cannot read {name}: {problem}")
            return
        self.result(call, "completed", answer["content"])
        self.say(f"{name} has {len(answer['content'].splitlines())} lines.")

    def plan(self, text: str) -> None:
        steps = ["Look around", "Think about it", "Say something"]
        for done in range(len(steps) + 1):
            states = ["completed" if index < done else "in_progress" if index == done else "pending" for index in range(len(steps))]
            entries = [{"content": step, "status": state, "priority": "medium"} for step, state in zip(steps, states, strict=True)]
            self.update("plan", entries=entries)
            self.rest(5)
        self.say("The plan is done.")

    def ask(self, text: str) -> None:
        schema = {"type": "object", "properties": {"colour": {"type": "string", "enum": ["red", "green", "blue"]}}, "required": ["colour"]}
        form = {"sessionId": self.name, "mode": "form", "message": "Which colour?", "requestedSchema": schema}
        answer: dict[str, Any] = self.agent.ask("elicitation/create", form)
        self.say(f"You like {answer['content']['colour']}." if answer["action"] == "accept" else "You did not say.")

    def tell(self, text: str) -> None:
        how, name, *words = text.split()
        given = {"to": name, "message": " ".join(words), "wait": how.lower() == "tell"}
        call = self.call(f"message_agent {name}", "other", given)
        server = next((server for server in self.servers if server["name"] == "hansard"), None)
        if server is None:
            self.result(call, "failed", "nobody gave me the tools for that")
            self.say("I cannot reach other agents.")
            return
        answer = use_tool(server, "message_agent", given)
        told = "\n".join(part["text"] for part in answer["content"])
        self.result(call, "failed" if answer.get("isError") else "completed", told)
        self.say(f"I could not: {told}" if answer.get("isError") else json.loads(told).get("answer") or "The answer comes later.")

    def thank(self, text: str) -> None:
        self.say("So that is the answer. Thank you.")

    def count(self, text: str) -> None:
        far = next((int(word) for word in text.split() if word.isdecimal()), 100)
        for number in range(1, far + 1):
            self.say(f"{number} ")

    def fail(self, text: str) -> None:
        self.say("I try…")
        raise Failed("the demo agent failed, as you asked")

    def refuse(self, text: str) -> str:
        self.say("I would rather not.")
        return "refusal"

    def crash(self, text: str) -> None:
        self.say("Goodbye")
        sys.stderr.write("the demo agent crashed, as you asked\n")
        sys.stderr.flush()
        os._exit(3)

    # ---- how it does it

    def set_mode(self, mode: str) -> None:
        if mode not in [known["id"] for known in MODES]:
            raise Failed(f"there is no mode {mode}")
        self.mode = mode
        self.update("current_mode_update", currentModeId=mode)

    def say(self, text: str, kind: str = "agent_message_chunk") -> None:
        """In pieces, as a model would."""
        for piece in re.findall(r"\S*\s*", text)[:-1]:
            self.rest(1)
            self.update(kind, content={"type": "text", "text": piece})

    def call(self, title: str, kind: str, raw_input: dict[str, Any]) -> str:
        self.calls += 1
        name = f"{self.name}-call-{self.calls}"
        self.update("tool_call", toolCallId=name, title=title, kind=kind, status="pending", rawInput=raw_input)
        return name

    def allowed(self, call: str, title: str, raw_input: dict[str, Any]) -> bool:
        if self.mode == "auto":
            return True
        options = [
            {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
            {"optionId": "always", "name": "Allow always", "kind": "allow_always"},
            {"optionId": "no", "name": "Deny", "kind": "reject_once"},
        ]
        about = {"toolCallId": call, "title": title, "rawInput": raw_input}
        answer = self.agent.ask("session/request_permission", {"sessionId": self.name, "toolCall": about, "options": options})
        outcome = answer["outcome"]
        if outcome["outcome"] == "cancelled":
            raise Cancelled
        if outcome["optionId"] == "always":
            self.set_mode("auto")
        return outcome["optionId"] in ("yes", "always")

    def result(self, call: str, status: str, text: str, raw_output: dict[str, Any] | None = None) -> None:
        content = [{"type": "content", "content": {"type": "text", "text": text}}]
        more = {} if raw_output is None else {"rawOutput": raw_output}
        self.update("tool_call_update", toolCallId=call, status=status, content=content, **more)

    def update(self, what: str, /, **fields: Any) -> None:
        self.agent.write(method="session/update", params={"sessionId": self.name, "update": {"sessionUpdate": what, **fields}})

    def rest(self, times: int) -> None:
        if self.cancelled.wait(PACE * times):
            raise Cancelled


def use_tool(server: dict[str, Any], tool: str, given: dict[str, Any]) -> dict[str, Any]:
    """What a tool of an MCP server gives back. The server is started for it, and ends with it."""
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "demo", "version": "1"}}
    env = os.environ | {pair["name"]: pair["value"] for pair in server["env"]}
    with subprocess.Popen([server["command"], *server["args"]], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        stdin, stdout = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)

        def say(**fields: Any) -> None:
            stdin.write(json.dumps({"jsonrpc": "2.0", **fields}).encode() + b"\n")
            stdin.flush()

        def ask(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
            say(id=number, method=method, params=params)
            answers = (json.loads(line) for line in stdout)
            answer = next((answer for answer in answers if answer.get("id") == number), {"error": {"message": "the server is gone"}})
            if "error" in answer:
                raise Failed(answer["error"]["message"])
            return answer["result"]

        ask(0, "initialize", about)
        say(method="notifications/initialized")
        return ask(1, "tools/call", {"name": tool, "arguments": given})


DEEDS: dict[str, Callable[[Session, str], str | None]] = {
    name: getattr(Session, name) for name in ("help", "think", "run", "edit", "read", "plan", "ask", "count", "fail", "refuse", "crash")
}
DEEDS["say"] = Session.repeat

if __name__ == "__main__":
    Agent().main()
