"""The inputs of tools, in the same words for every agent: for every call of the recordings, and for what tools are known to be given."""

from __future__ import annotations

from typing import Any

import pytest

from hansard.events import ToolCallPayload
from hansard.events.tool_inputs import (
    Ask,
    CallServer,
    Code,
    Command,
    DeleteFile,
    EditFile,
    EditPlaces,
    FetchPage,
    FindFiles,
    FindText,
    ListFolder,
    Patch,
    PlanStep,
    ProposePlan,
    ReadFile,
    Replacement,
    SearchWeb,
    StartAgent,
    WriteFile,
    WritePlan,
    tool_action,
    tool_input,
    tool_title,
)


def call(name: str, kind: Any, args: Any, **more: Any) -> ToolCallPayload:
    return ToolCallPayload("c", name, args, kind, **more)


@pytest.mark.parametrize(
    ("asked", "typed"),
    [
        (call("Bash", "execute", {"command": "ls", "run_in_background": True}), Command("ls", background=True)),
        (call("shellToolCall", "execute", {"command": "ls", "workingDirectory": "/w"}), Command("ls", "/w")),
        (call("shell", "execute", {"command": ["bash", "-lc", "ls | wc"], "workdir": "/w"}), Command("ls | wc", "/w")),
        (call("local_shell", "execute", {"command": ["grep", "a b", "c"]}), Command("grep 'a b' c")),
        (call("commandExecution", "execute", {"cmd": "ls", "command": "/bin/bash -lc ls"}), Command("ls")),
        (call("code_interpreter", "execute", {"code": "print(1)"}), Code("print(1)")),
        (call("Read", "read", {"file_path": "a", "offset": 0, "limit": 5}), ReadFile("a", 0, 5)),
        (call("read_file", "read", {"file_path": "a", "start_line": 2, "end_line": 3}), ReadFile("a", 2, end=3)),
        (call("LS", "read", {"path": "/w"}), ListFolder("/w")),
        (call("list_directory", "read", {"dir_path": "/w"}), ListFolder("/w")),
        (call("Write", "edit", {"file_path": "a", "content": ""}), WriteFile("a", "")),
        (call("create", "edit", {"path": "a", "file_text": "b"}), WriteFile("a", "b")),
        (call("edit", "edit", {"filePath": "a", "oldString": "b", "newString": ""}), EditFile("a", "b", "")),
        (call("str_replace_editor", "edit", {"path": "a", "old_str": "b", "new_str": "c"}), EditFile("a", "b", "c")),
        (
            call("Edit", "edit", {"file_path": "a", "old_string": "b", "new_string": "c", "replace_all": True}),
            EditFile("a", "b", "c", True),
        ),
        (call("edit (pi)", "edit", {"path": "a", "edits": [{"oldText": "b", "newText": "c"}]}), EditFile("a", "b", "c")),
        (
            call(
                "MultiEdit", "edit", {"file_path": "a", "edits": [{"oldText": "b", "newText": ""}, {"old_string": "c", "new_string": "d"}]}
            ),
            EditPlaces("a", [Replacement("b", ""), Replacement("c", "d")]),
        ),
        (call("deleteToolCall", "edit", {"path": "a"}), DeleteFile("a")),
        (
            call("apply_patch", "edit", "*** Begin Patch\n*** Update File: a b.md\n+x\n"),
            Patch(["a b.md"], "*** Begin Patch\n*** Update File: a b.md\n+x\n"),
        ),
        (call("fileChange", "edit", {"changes": [{"path": "a"}, {"path": "b"}]}), Patch(["a", "b"])),
        (call("edit", "edit", {"changes": {"a": {"type": "add"}}}), Patch(["a"])),
        (call("Grep", "search", {"pattern": "x", "path": "/w"}), FindText("x", "/w")),
        (call("Glob", "search", {"pattern": "*.py"}), FindFiles("*.py")),
        (call("globToolCall", "search", {"globPattern": "*", "targetDirectory": "/w"}), FindFiles("*", "/w")),
        (call("WebSearch", "search", {"query": "x"}), SearchWeb("x")),
        (call("WebFetch", "fetch", {"url": "u", "prompt": "p"}), FetchPage("u", "p")),
        (call("Task", "agent", {"prompt": "p", "subagent_type": "t", "description": "d"}), StartAgent("p", "t", "d")),
        (call("spawn_agent", "agent", {"message": "p", "agent_type": "t"}), StartAgent("p", "t")),
        (call("TodoWrite", "think", {"todos": [{"content": "a", "status": "pending"}]}), WritePlan([PlanStep("a", "pending")])),
        (call("update_plan", "think", {"plan": [{"step": "a", "status": "x"}]}), WritePlan([PlanStep("a", "x")])),
        (call("todo_list", "think", {"items": [{"text": "a", "completed": True}]}), WritePlan([PlanStep("a", "completed")])),
        (call("ExitPlanMode", "think", {"plan": "1. a"}), ProposePlan("1. a")),
        (call("AskUserQuestion", "other", {"questions": [{"question": "a?"}]}), Ask(["a?"])),
        (call("mcp__demo__weather", "mcp", {"city": "x"}, server="demo"), CallServer("weather", {"city": "x"}, "demo")),
        (call("mcp__a_b__c__d", "mcp", {}), CallServer("c__d", {}, "a_b")),
        (call("demo-weather", "mcp", {}, server="demo"), CallServer("weather", {}, "demo")),
        (call("demo_weather", "mcp", None), CallServer("demo_weather", None)),
        (
            call("mcpToolCall", "mcp", {"args": {"a": 1}, "toolName": "t", "providerIdentifier": "p"}, server="p"),
            CallServer("t", {"a": 1}, "p"),
        ),
    ],
    ids=lambda value: value.tool_name if isinstance(value, ToolCallPayload) else type(value).__name__,
)
def test_what_a_call_asks_for(asked: ToolCallPayload, typed: Any) -> None:
    assert tool_input(asked) == typed
    assert tool_action(asked) == typed.action
    assert tool_title(asked) not in ("", asked.tool_name)


@pytest.mark.parametrize(
    "asked",
    [
        call("shell", "other", {"command": "ls"}),  # somebody's own function
        call("Bash", "execute", {"command": 42}),
        call("BashOutput", "execute", '{"command": "ls'),
        call("SendMessage", "agent", {"to": "a", "message": "b"}),
        call("edit", "edit", {"path": "a"}),
        call("edits", "edit", {"path": "a", "edits": [{"oldText": "b"}, 1]}),
        call("todo", "think", {"todos": [{"completed": {}}, 1]}),
        call("tool", None, None),
        call("ask", "other", {"questions": [[], None]}),
    ],
    ids=lambda asked: f"{asked.tool_name}-{asked.kind}",
)
def test_what_nobody_knows_has_no_type_and_its_own_name(asked: ToolCallPayload) -> None:
    assert tool_input(asked) is None
    assert tool_action(asked) == (asked.kind or "other")
    assert tool_title(asked) == asked.tool_name
