"""Codex, live and from its own file: the same run gives the same conversation, but for what the program itself leaves out.

A fact is something said or done by the main agent. For every run, what only one side tells is listed here with the reason; a difference
that is not listed, or one that is gone, fails.
"""

from __future__ import annotations

import re
from collections import Counter

from hansard.events import Event, ToolCall, ToolResult
from tests.recorded import Case, Recording, normalize_recording

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
# Of codex-acp, which embeds core 0.137.
ACP = {
    "code_mode": ("+call +result +text -text", "the script fails before it runs; live, a warning about the model is said as text"),
    "compaction": ("+text -text -user", "the summary is filed alone; live, the command is heard and a notice said"),
    "compaction_auto": ("+text -text", "the summary is filed; live, a notice is said"),
    "content_filter": ("+end -end", "core 0.137 files no errors"),
    "err_auth": ("+end -end", "core 0.137 files no errors"),
    "err_context_http": ("+end -end", "core 0.137 files no errors"),
    "err_overloaded": ("+end -end", "core 0.137 files no errors"),
    "err_rate_limit": ("+end -end", "core 0.137 files no errors"),
    "err_server": ("+end -end", "core 0.137 files no errors"),
    "err_stream_cut": ("+end -end", "core 0.137 files no errors"),
    "err_usage_limit": ("+end -end", "core 0.137 files no errors"),
    "max_tokens": ("+end -end", "core 0.137 files no errors"),
    "file_edit_multi": ("+call +result", "a patch that does not apply fails before it runs"),
    "interrupt": ("-text", "the answer that was cut short is not filed"),
    "multi_turn": ("-call -result -text -2 user", "the second process says the history again"),
    "permission_deny": ("+end -end", "the file says that the turn was interrupted, not that a denial did it"),
    "permission_file": ("+end -end", "the file says that the turn was interrupted, not that a denial did it"),
    "subagent": ("+3 call +3 result +text -text", "calls of sub-agents are not told; live, a warning about the model is said as text"),
    "thinking_raw": ("+thinking -thinking", "live, the thought is said again after its chunks"),
    "todo_plan": ("+2 call +2 result", "update_plan is no tool call live, but a plan"),
    "tool_background": ("+call +result", "write_stdin is a call of its own"),
    "unknown_tool": ("+2 call +2 result", "calls that fail before they run leave no trace"),
}
# Of files: "+" stands in those of core 0.166 only, "-" in those of core 0.137.
DIALECTS = {
    "code_mode": ("+call +result", "0.137 has no code mode: the script does not run"),
    "content_filter": ("+end -end", "0.137 files no errors"),
    "err_auth": ("+end -end", "0.137 files no errors"),
    "err_context_http": ("+end -end", "0.137 files no errors"),
    "err_overloaded": ("+end -end", "0.137 files no errors"),
    "err_rate_limit": ("+end -end", "0.137 files no errors"),
    "err_server": ("+end -end", "0.137 files no errors"),
    "err_stream_cut": ("+end -end", "0.137 files no errors"),
    "err_usage_limit": ("+end -end", "0.137 files no errors"),
    "max_tokens": ("+end -end", "0.137 files no errors"),
    "permission_deny": ("+end +text -end", "a denial in codex-acp stops the turn"),
    "permission_file": ("+end +text -end", "a denial in codex-acp stops the turn"),
}
TABLES = {"codex-app-server": APP_SERVER, "codex-exec-json": EXEC, "codex-acp": ACP | DIALECTS}


def facts(recording: Recording, format: str) -> list[tuple[str, ...]]:
    queued: dict[str | None, str] = {}
    calls: dict[str, str] = {}
    events = [event for event in normalize_recording(recording, format)[0] if event.parent_tool_call_id is None]
    return [said for event in events for said in fact(event, queued, calls)]


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


def common_texts(said: list[tuple[str, ...]], other: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The words that both sides have, in their order: tools may end in another order than they are filed."""
    shared = set(other)
    return [each for each in said if each in shared and each[0] in ("user", "text", "thinking", "end")]


def is_filed(case: Case, folder: str) -> bool:
    """Whether a recording of this folder has a file of the program's own."""
    return case.folder == folder and "codex-rollout" in case.formats


def the_app_server_and_its_file_tell_the_same(case: Case) -> None:
    if not is_filed(case, "codex-app-server"):
        return
    live, disk = facts(case.recording, "codex-app-server"), facts(case.recording, "codex-rollout")
    assert difference(live, disk) == APP_SERVER.get(case.recording.path.name, ("", ""))[0]
    assert common_texts(live, disk) == common_texts(disk, live)


def exec_and_its_file_tell_the_same(case: Case) -> None:
    if not is_filed(case, "codex-exec-json"):
        return
    live, disk = facts(case.recording, "codex-exec-json"), facts(case.recording, "codex-rollout")
    disk = [each for each in disk if each[0] != "user"]  # exec never repeats the prompt
    if case.recording.path.name == "thinking_raw":  # exec joins the parts of a summary
        disk = joined(disk)
    assert difference(live, disk) == EXEC.get(case.recording.path.name, ("", ""))[0]
    assert common_texts(live, disk) == common_texts(disk, live)


def coarse(recording: Recording, format: str) -> list[tuple[str, ...]]:
    """The same for ACP, which joins what is said: the words of each turn together, calls and results by their id, and ends."""
    said: list[tuple[str, ...]] = []
    words: dict[tuple[str, str | None], str] = {}
    for event in normalize_recording(recording, format)[0]:
        payload = event.payload
        if event.parent_tool_call_id is not None:
            continue
        match event.type:
            case "user_message" if payload.author == "human":
                said.append(("user", payload.text))
            case "assistant_done":
                words["text", event.turn_id] = words.get(("text", event.turn_id), "") + payload.text
            case "thinking_done" if payload.redacted is None:
                words["thinking", event.turn_id] = words.get(("thinking", event.turn_id), "") + payload.text
            case "tool_call":
                said.append(("call", payload.tool_call_id))
            case "tool_result":
                said.append(("result", payload.tool_call_id, str(bool(payload.is_error or payload.exit_code))))
            case "turn_end":
                said.append(("end", payload.status, "" if payload.error is None else payload.error.code))
            case _:
                pass
    return said + [(kind, "".join(text.split())) for (kind, _), text in words.items()]


def acp_and_the_file_of_the_older_core_tell_the_same(case: Case) -> None:
    if not is_filed(case, "codex-acp"):
        return
    live, disk = coarse(case.recording, "acp"), coarse(case.recording, "codex-rollout")
    assert difference(live, disk) == ACP.get(case.recording.path.name, ("", ""))[0]


def both_dialects_of_the_files_tell_the_same(case: Case) -> None:
    if not is_filed(case, "codex-acp"):
        return
    newer = Recording(case.recording.path.parents[1] / "codex-app-server" / case.recording.path.name)
    old, new = outputs(facts(case.recording, "codex-rollout")), outputs(facts(newer, "codex-rollout"))
    assert difference(old, new) == DIALECTS.get(case.recording.path.name, ("", ""))[0]
    assert common_texts(old, new) == common_texts(new, old)


def outputs(said: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Results without the head that the model was shown: files of 0.137 have what a command printed only there."""
    return [(kind, *(re.sub(r"^(\d+) Chunk ID: .*?\nOutput:\n", r"\1 ", word, flags=re.DOTALL) for word in words)) for kind, *words in said]


def joined(said: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    first, second, *rest = said
    return [("thinking", f"{first[1]}\n{second[1]}"), *rest]
