"""hansard, by its command line, as anybody would use it. Its verbatim originals are copies and do not count."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from benchmarks.scorecard.counting import json_lines, values
from benchmarks.scorecard.follow import Place, Streams, Turn
from benchmarks.scorecard.peer import Output, Peer, environment, run
from benchmarks.scorecard.samples import Sample
from hansard import __version__


class Hansard(Peer, Streams):
    """This project."""

    name, version, registry = "hansard", __version__, "this repository"
    formats = (
        "claude-session",
        "codex-rollout",
        "gemini-chat",
        "qwen-chat",
        "copilot-session",
        "opencode-session",
        "claude-stream-json",
        "acp",
    )
    way = "files: `hansard import --home`, then `hansard events --no-original`; else `hansard normalize --no-original`; every text in it"

    command = (sys.executable, "-m", "hansard")

    def read(self, sample: Sample, home: Path) -> Output:
        output = Output()
        for event in (event for part in self.events(sample, home) for event in json_lines(part)):
            into = output.copies if event["type"] == "raw" else output.texts
            into.extend(values(event.get("payload")))
        return output

    def events(self, sample: Sample, home: Path) -> list[bytes]:
        """What it prints."""
        if not sample.on_disk:
            normalize = [*self.command, "normalize", "--no-original", "--from", sample.format]
            return [run([*normalize, str(path)], home) for path in sample.write(home)]
        sample.put(home)
        run([*self.command, "import", "--home", str(home), "--closed"], home)
        sessions = sorted(path.parent.name for path in (home / ".hansard").glob("*/events.jsonl"))
        return [run([*self.command, "events", "--no-original", session], home) for session in sessions]

    def tokens(self, sample: Sample, home: Path) -> tuple[int, int, int]:
        """What ``hansard usage`` adds up."""
        run([*self.command, "import", "--home", str(home), "--closed"], home)
        total = json.loads(run([*self.command, "usage", "--json"], home))["total"]
        return total["inputTokens"], total["cacheReadInputTokens"] + total["cacheCreationInputTokens"], total["outputTokens"]

    def importing(self, file: Path, home: Path) -> tuple[list[str], dict[str, str]]:
        return [*self.command, "import", str(file), "--closed"], environment(home)

    @contextmanager
    def turn(self, home: Path, launcher: str) -> Iterator[Turn]:
        programs = Path(launcher).parent
        (programs / "claude-agent-acp").symlink_to(launcher)
        env = environment(home) | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        with (home / "server.log").open("wb") as log:
            command = [*self.command, "serve", "--port", "0", "--no-open", "--json"]
            server = subprocess.Popen(command, env=env, cwd=home, stdout=subprocess.PIPE, stderr=log)
            try:
                assert server.stdout is not None
                yield ServedTurn(json.loads(server.stdout.readline()), home)
            finally:
                server.terminate()
                server.wait()


class ServedTurn(Turn):
    """A message to a session of the server."""

    def __init__(self, links: dict[str, Any], home: Path) -> None:
        link = urlsplit(next(value for value in links.values() if isinstance(value, str) and "token=" in value))
        self.port = link.port or 80
        self.headers = {"Authorization": f"Bearer {parse_qs(link.query)['token'][0]}", "Content-Type": "application/json"}
        self.session = self.ask("POST", "/api/sessions", {"agent": "claude-acp", "options": {"cwd": str(home)}})["id"]
        self.place = Place(self.port, f"/api/sessions/{self.session}/stream", self.headers)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, None if body is None else json.dumps(body), self.headers)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def begin(self) -> None:
        self.ask("POST", f"/api/sessions/{self.session}/commands", {"type": "user_message", "commandId": "go", "payload": {"text": "Go."}})

    def wait(self) -> None:
        while self.ask("GET", f"/api/sessions/{self.session}").get("phase") != "idle":
            time.sleep(0.1)

    def is_piece(self, data: str) -> bool:
        return json.loads(data).get("type") == "assistant_chunk"
