"""A home with the history of many sessions of Claude Code and Codex: recorded sessions with ids of their own, and results of source text.

    python -m benchmarks.history FOLDER 4000 1000

writes 5,000 sessions, 1.8 GB. The same numbers write the same bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

from tests.recorded import FOLDER, Recording

ROOT = Path(__file__).parent.parent
ID_TAIL = re.compile(rb"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{6})[0-9a-f]{6}")
RARE = "quetzalcoatlus"
"""A word that one of a thousand sessions has."""
RARE_SHARE = 997
DAYS = 330
FIRST_DAY = 1_750_000_000
MAX_LINES = 12_000


class Filling:
    """Source text, in pieces of any length."""

    def __init__(self, luck: random.Random) -> None:
        text = "".join(path.read_text("utf-8") for path in sorted((ROOT / "src/hansard").rglob("*.py")))
        self._text = json.dumps(text, ensure_ascii=False)[1:-1].encode()
        self._luck = luck

    def piece(self, mean: float, spread: float, most: int) -> bytes:
        """Some text, as it stands in a JSON string."""
        size = min(most, int(self._luck.lognormvariate(mean, spread)))
        start = self._luck.randrange(len(self._text) - size)
        text = self._text[start : start + size].decode("utf-8", "ignore").encode()
        return text.replace(b"\\", b"/").replace(b'"', b"'").replace(b"    ", b"\\n ")


def template(recording: str, format: str) -> list[bytes]:
    """The lines of a recorded session, with marks where its ids and days are."""
    stream = next(stream for stream in Recording(FOLDER / recording).streams if stream.format == format)
    old = re.findall(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", Path(stream.name).stem.encode())[-1]
    lines = stream.data.replace(old, b"@SESSION@").splitlines(keepends=True)
    lines = [ID_TAIL.sub(rb"\1@TAIL@", line).replace(b"_scripted_", b"_@ID@_").replace(b"toolu_", b"toolu_@ID@_") for line in lines]
    return [line.replace(b'"call_s', b'"call_@ID@_s').replace(b"2026-11-15T", b"@DAY@T") for line in lines]


def session(lines: list[bytes], number: int, day: bytes, id: bytes, luck: random.Random, filling: Filling) -> Iterator[bytes]:
    """The lines of one session. A long one repeats the recorded one, each time with ids of its own."""
    is_codex = b"session_meta" in lines[0]
    for index in range(min(MAX_LINES, max(12, int(luck.lognormvariate(4.75, 1.05))))):
        turn, place = divmod(index, len(lines))
        if turn and place == 0 and is_codex:
            continue  # a file has one header
        line = lines[place].replace(b"@TAIL@", b"%03x%03x" % (number & 0xFFF, (turn * 17 + (number >> 12)) & 0xFFF))
        line = line.replace(b"@ID@", b"%xt%x" % (number, turn)).replace(b"@SESSION@", id).replace(b"@DAY@", day)
        line = line.replace(b"/home/user/demo", b"/home/user/p%02d" % (number % 40))
        if b'"function_call_output"' in line:
            line = line.replace(b'"output":"', b'"output":"' + filling.piece(7.2, 1.1, 60_000), 1)
        elif b'"tool_result"' in line[:400]:
            text = filling.piece(7.2, 1.1, 60_000)
            line = line.replace(b'"stdout":"', b'"stdout":"' + text, 1)
            line = line.replace(b'"type":"tool_result","content":"', b'"type":"tool_result","content":"' + text, 1)
        elif b'"text":"' in line and b'"assistant"' in line:
            line = line.replace(b'"text":"', b'"text":"' + filling.piece(5.5, 0.8, 4000), 1)
        if number % RARE_SHARE == 5:
            line = line.replace(b'"content":"', b'"content":"%s ' % RARE.encode(), 1).replace(
                b'"message":"', b'"message":"%s ' % RARE.encode(), 1
            )
        yield line


def write_history(home: Path, claude: int, codex: int, seed: int = 7) -> int:
    """Writes so many sessions of each; returns the bytes."""
    luck = random.Random(seed)
    filling, size = Filling(luck), 0
    templates = (template("claude-stream-json-partial/long", "claude-session"), template("codex-exec-json/long", "codex-rollout"))
    for number in range(claude + codex):
        day = luck.randrange(DAYS)
        month, of_month = 1 + day // 30, 1 + day % 28
        id = f"{0x5E000000 + number:08x}-0000-4000-8000-{number:012x}"
        if number < claude:
            path = home / f".claude/projects/-home-user-p{number % 40:02}/{id}.jsonl"
        else:
            path = home / f".codex/sessions/2026/{month:02}/{of_month:02}/rollout-2026-{month:02}-{of_month:02}T19-42-49-{id}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.writelines(
                session(templates[number >= claude], number, f"2026-{month:02}-{of_month:02}".encode(), id.encode(), luck, filling)
            )
            size += file.tell()
        os.utime(path, (FIRST_DAY + day * 86_400, FIRST_DAY + day * 86_400))
    return size


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("claude", type=int)
    parser.add_argument("codex", type=int)
    options = parser.parse_args()
    print(f"{write_history(options.home, options.claude, options.codex) / 1e6:.0f} MB")
