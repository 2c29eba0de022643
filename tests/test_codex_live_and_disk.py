"""Codex, live and from its own file: the same run gives the same conversation, but for what the program itself leaves out.

A fact is something said or done by the main agent. For every run, what only one side tells is listed here with the reason; a difference
that is not listed, or one that is gone, fails.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from hansard.adapter import Context
from hansard.events import Event, ToolCall, ToolResult
from hansard.normalizing import normalize

SHARED = Path(os.environ.get("HANSARD_SHARED") or Path(__file__).parents[2] / "shared")

# "+" stands on disk only, "-" live only.
BOTH = {
    "code_mode": ("+call +result", "the script that the model wrote; live there are only the commands in it"),
    "code_mode_multi": ("+2 call +2 result", "the script, and request_user_input_async"),
    "compaction_auto": ("+text", "the summary that the model wrote"),
    "file_edit_multi": ("+call +result", "a patch that does not apply fails before it runs"),
    "image_generation": ("+call +result", "with this provider no item is made of it"),
    "tool_background": ("+call +2 result -result", "write_stdin is a call of its own, and the command answers before it ends"),
    "unknown_tool": ("+2 call +2 result", "calls that fail before they run leave no trace"),
}
APP_SERVER = BOTH | {
    "compaction": ("+text", "the summary that the model wrote"),
    "goal": ("+call +result", "update_goal is no item; live it is a notification"),
    "interrupt": ("-text", "the answer that was cut short is not filed"),
    "mcp_elicitation": ("-question", "elicitations are not filed"),
    "permission_deny": ("+end -end", "denials are not filed: the turn is completed there"),
    "settings": ("+text", "the summary before the change of model"),
    "subagent_v2": ("+call +result", "list_agents is no item"),
    "todo_plan": ("+2 call +2 result", "update_plan is no item; live it is a notification"),
}
EXEC = BOTH | {
    "code_mode_multi": ("+3 call +3 result", "the script, sleep, and request_user_input_async"),
    "compaction_auto": ("+compacted +text", "compaction is not told"),
    "interrupt": ("+end -end", "SIGINT ends the stream without a word"),
    "interrupt_tool": ("+end -end", "SIGINT ends the stream without a word"),
    "permission_never": ("+call +result", "an escalation that is not allowed fails before it runs"),
    "sandbox_denied": ("+call +result", "a command that ends at once may have no item (a race in the program)"),
    "subagent_v2": ("+2 call +2 result", "spawn_agent and list_agents are not told"),
    "thinking_raw": ("+thinking", "raw reasoning is not told"),
    "todo_plan": ("+call +result", "two calls of update_plan are one item"),
    "view_image": ("+call +result", "view_image is not told"),
}


def facts(paths: list[Path], format: str) -> list[tuple[str, ...]]:
    said: list[tuple[str, ...]] = []
    queued: dict[str | None, str] = {}
    calls: dict[str, str] = {}
    for path in paths:
        with path.open("rb") as stream:
            for event in normalize(stream, format, Context(source=path.name)):
                if event.parent_tool_call_id is None:
                    said += fact(event, queued, calls)
    return said


def fact(event: Event, queued: dict[str | None, str], calls: dict[str, str]) -> list[tuple[str, ...]]:
    payload = event.payload
    match event.type:
        case "user_message" if payload.author == "human" and payload.queued:
            queued[payload.message_id] = payload.text
        case "queue_update" if payload.action == "sent":
            return [("user", queued[payload.item_id])]
        case "user_message" if payload.author == "human":
            return [("user", payload.text)]
        case "assistant_done":
            return [("text", payload.text)]
        case "thinking_done" if payload.redacted is None:
            return [("thinking", payload.text)]
        case "tool_call":
            assert isinstance(event, ToolCall)
            script = payload.args.get("cmd") if isinstance(payload.args, dict) else None
            calls[payload.tool_call_id] = str(script or payload.kind)
            return [("call", calls[payload.tool_call_id])]
        case "tool_result":
            assert isinstance(event, ToolResult)
            call = calls[payload.tool_call_id]
            ran = payload.exit_code is not None and call not in ("execute", "edit")
            return [("result", call, f"{payload.exit_code} {payload.result}" if ran else "")]
        case "question":
            return [("question", "")]
        case "session_lifecycle" if payload.subtype == "compacted":
            return [("compacted", "")]
        case "turn_end":
            return [("end", payload.status, "" if payload.error is None else payload.error.code)]
        case _:
            pass
    return []


def difference(live: list[tuple[str, ...]], disk: list[tuple[str, ...]]) -> str:
    only_disk, only_live = Counter(disk) - Counter(live), Counter(live) - Counter(disk)
    kinds = [(sign, kind) for sign, only in (("+", only_disk), ("-", only_live)) for kind, *_ in only.elements()]
    counted = [f"{sign}{count} {kind}" if count > 1 else f"{sign}{kind}" for (sign, kind), count in sorted(Counter(kinds).items())]
    return " ".join(counted)


def spoken(said: list[tuple[str, ...]], other: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The words that both sides have, in their order: tools may end in another order than they are filed."""
    shared = set(other)
    return [each for each in said if each in shared and each[0] in ("user", "text", "thinking", "end")]


def is_main(path: Path) -> bool:
    with path.open("rb") as stream:
        meta = json.loads(stream.readline())["payload"]
    return not meta.get("parent_thread_id") and not meta.get("forked_from_id")


def runs(folder: str) -> list[Path]:
    found = [path.parent for path in sorted((SHARED / "captures" / folder).glob("*/disk"))]
    if not found:
        pytest.skip(f"no recordings: {SHARED}/captures/{folder} (set HANSARD_SHARED)")
    return found


def sides(run: Path, pattern: str, format: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    streams = sorted(run.glob(pattern), key=lambda path: (len(path.name), path.name))
    files = [path for path in sorted(run.glob("disk/sessions/**/rollout-*.jsonl")) if is_main(path)]
    return facts(streams, format), facts(files, "codex-rollout")


def test_the_app_server_and_its_file_tell_the_same() -> None:
    for run in runs("codex-app-server"):
        live, disk = sides(run, "wire*.jsonl", "codex-app-server")
        assert (run.name, difference(live, disk)) == (run.name, APP_SERVER.get(run.name, ("", ""))[0])
        assert spoken(live, disk) == spoken(disk, live), run.name


def test_exec_and_its_file_tell_the_same() -> None:
    for run in runs("codex-exec-json"):
        live, disk = sides(run, "stdout*.jsonl", "codex-exec-json")
        disk = [each for each in disk if each[0] != "user"]  # exec never repeats the prompt
        if run.name == "thinking_raw":  # exec joins the parts of a summary
            disk = joined(disk)
        assert (run.name, difference(live, disk)) == (run.name, EXEC.get(run.name, ("", ""))[0])
        assert spoken(live, disk) == spoken(disk, live), run.name


def joined(said: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    first, second, *rest = said
    return [("thinking", f"{first[1]}\n{second[1]}"), *rest]
