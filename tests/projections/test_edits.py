"""Exact edits and net patches: of every recording in which an agent edits files, against a simulation of what its model asked for."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hansard.projections.edits import Edit, read_edits
from hansard.projections.hunks import apply_hunks, compare_texts, parse_diff, reverse_hunks
from hansard.projections.net_patch import FileDiff, git_patch, net_patch
from tests.recorded import Case, recordings

ROOT = "/home/user/demo"
Files = dict[str, str]

BEFORE: dict[str, Files] = {
    "codex-acp/file_edit_multi": {"old_name.txt": "rename me\nkeep me\n", "trash.txt": "to be deleted\n"},
    "pi-json/file_edit": {"note.txt": "a heron\nby the water\n"},
    "gemini-acp/fs_proxy": {"proxied.txt": "old content of the proxied file\n"},
    "cursor-stream-json/all_tools": {"mast.txt": "Mast 8 m\n"},
}
BEFORE |= {f"{folder}/file_edit_multi": BEFORE["codex-acp/file_edit_multi"] for folder in ("codex-app-server", "codex-exec-json")}
BEFORE |= {"qwen-acp/fs_proxy": BEFORE["gemini-acp/fs_proxy"]}
"""What was in the files before, where the recipe of a recording puts files there. Version 0.15 of Qwen does not say what was there."""
CHANGED_BY_THE_USER = {"permission_edit_input": ("original", "changed by the user")}
"""Where the person who allowed an edit changed it."""
PATHS_ALONE = {"codex-exec-json"}
"""Formats that report which files an edit changed, and nothing more."""
NO_RESULT = {"openai-responses"}
"""Wires that end with the call."""
REFUSED_INPUT = {"opencode-sse-v2"}
"""Recordings in which the program does not take the model's input. Their truth has what the model was to do."""


# --------------------------------------------------------------------------------------------------------------------
# The simulator: what the model's calls do to files, by the documentation of each tool


def simulate(files: Files, turns: list[dict[str, Any]], words: tuple[str, str]) -> None:
    """Do what the model asked for, as far as the tools' results say that it was done."""
    for turn in turns:
        items = turn.get("model") or []
        calls = [item["tool_call"] for item in items if "tool_call" in item]
        results = [item["tool_result"] for item in items if "tool_result" in item]
        for call, result in zip(calls, results, strict=False):
            if not result.get("is_error"):
                do(files, call["name"], call["args"], words)


def do(files: Files, name: str, args: dict[str, Any], words: tuple[str, str]) -> None:
    path = str(args.get("file_path") or args.get("filePath") or args.get("path") or "").removeprefix(f"{ROOT}/")
    match name:
        case "Write" | "write" | "write_file" | "create" | "writeToolCall":
            text = next(args[key] for key in ("content", "file_text", "fileText") if key in args)
            files[path] = text.replace(*words)
        case "editToolCall":
            files[path] = args["streamContent"]
        case "deleteToolCall":
            del files[path]
        case "Edit" | "edit" | "replace":
            for piece in args.get("edits", [args]):
                old = next(piece[key] for key in ("old_string", "oldString", "old_str", "oldText") if key in piece)
                new = next(piece[key] for key in ("new_string", "newString", "new_str", "newText") if key in piece)
                assert files[path].count(old) == 1
                files[path] = files[path].replace(old, new)
        case "apply_patch":
            patch(files, args["input"])
        case _:
            pass


def patch(files: Files, text: str) -> None:
    """Codex's own format, of which the recordings use no more than one hunk of lines that follow each other."""
    moving = ""
    for part in text.replace("*** End Patch\n", "").split("*** ")[1:]:
        head, _, body = part.partition("\n")
        path = head.partition(": ")[2].removeprefix(f"{ROOT}/")
        if head.startswith("Add File"):
            files[path] = "".join(f"{line[1:]}\n" for line in body.split("\n") if line)
        elif head.startswith("Delete File"):
            del files[path]
        elif head.startswith("Move to"):
            files[path] = files.pop(moving)
            change(files, path, body)
        elif head.startswith("Update File"):
            moving = path
            change(files, path, body)


def change(files: Files, path: str, body: str) -> None:
    lines = [line for line in body.split("\n") if line and not line.startswith("@@")]
    old = "".join(f"{line[1:]}\n" for line in lines if line[0] != "+")
    assert old in files[path]
    files[path] = files[path].replace(old, "".join(f"{line[1:]}\n" for line in lines if line[0] != "-"), 1)


# --------------------------------------------------------------------------------------------------------------------
# The matrix


@cache
def cells() -> dict[str, tuple[Case, str]]:
    """Every format of every recording in which files are edited."""
    found: dict[str, tuple[Case, str]] = {}
    for recording in recordings():
        case = Case(recording)
        if recording.id.split("/")[0] in NO_RESULT or "turns" not in recording.truth or not expected(case)[1]:
            continue
        found |= {f"{recording.id}-{format}": (case, format) for format in case.formats}
    return found


def expected(case: Case) -> tuple[Files, Files]:
    """The files before and after."""
    name = case.recording.id
    files = dict(BEFORE.get(name, {}))
    words = CHANGED_BY_THE_USER.get(name.split("/")[1], ("", ""))
    before = dict(files)
    simulate(files, case.recording.truth["turns"], words)
    changed = files != before
    return before, files if changed else {}


def edits_of(case: Case, format: str) -> list[Edit]:
    return read_edits(case.conversation(format)[0])


def git_apply(folder: Path, before: Files, text: str) -> Files:
    """The files after the real git has applied a patch."""
    for name, content in before.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode())
    subprocess.run(["git", "init", "-q", folder], check=True)
    if not text:
        return before
    done = subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], cwd=folder, input=text.encode(), capture_output=True)
    assert done.returncode == 0, f"{done.stderr.decode()}\n{text}"
    found = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes().decode() for path in found}


def inside(files: Files) -> Files:
    return {name: text for name, text in files.items() if not name.startswith("/")}


@pytest.mark.parametrize("cell", cells())
def test_the_net_patch_makes_the_files_that_the_model_asked_for(cell: str, tmp_path: Path) -> None:
    case, format = cells()[cell]
    before, after = expected(case)
    found = net_patch(edits_of(case, format), ROOT)
    names = {file.path for file in found} | {file.old_path for file in found} - {None}
    if case.folder in REFUSED_INPUT:
        assert not found
    elif format in PATHS_ALONE:
        assert names and names <= changed_names(before, after)
        assert all(file.problems and not file.hunks for file in found)
    else:
        assert names == changed_names(before, after)
        assert git_apply(tmp_path, before, git_patch(found)) == inside(after)


def changed_names(before: Files, after: Files) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


@pytest.mark.parametrize("cell", cells())
def test_each_hunk_names_its_calls_and_who_allowed_them(cell: str) -> None:
    case, format = cells()[cell]
    events = case.conversation(format)[0]
    edits = edits_of(case, format)
    calls = {event.seq: event for event in events}
    assert all(calls[edit.seq].type == "tool_call" for edit in edits)
    answers = {event.payload.request_id: event.payload.decision for event in events if event.type == "permission_response"}
    asked = {event.seq: event.payload for event in events if event.type == "permission_request"}
    for edit in edits:
        if edit.permission.request_seq is not None:
            request = asked[edit.permission.request_seq]
            assert request.tool_call_id == edit.call and answers[request.request_id] == "allow"
    for hunk in (hunk for file in net_patch(edits, ROOT) for hunk in file.hunks):
        assert hunk.edits and all(f"§{seq} " in hunk.note for seq in hunk.edits)


DENIED = [recording for recording in recordings() if "deny" in recording.path.name or "missing" in recording.path.name]


@pytest.mark.parametrize("recording", DENIED, ids=lambda recording: recording.id)
def test_what_was_denied_or_failed_is_no_edit(recording: Any) -> None:
    case = Case(recording)
    made = set(expected(case)[1])
    for format in case.formats:
        assert {edit.path.removeprefix(f"{ROOT}/") for edit in edits_of(case, format)} == made


# --------------------------------------------------------------------------------------------------------------------
# Adding up


def edit(seq: int, path: str, before: str | None, after: str | None, **more: Any) -> Edit:
    return Edit(
        session="s",
        seq=seq,
        path=f"{ROOT}/{path}",
        change=more.pop("change", "change"),
        tool="Edit",
        call=str(seq),
        before=before,
        after=after,
        **more,
    )


def one(*edits: Edit) -> FileDiff:
    (found,) = net_patch(edits, ROOT)
    return found


def test_edits_that_cancel_each_other_out_leave_nothing() -> None:
    assert net_patch([edit(1, "a", "x\n", "y\n"), edit(2, "a", "y\n", "x\n")], ROOT) == []
    assert net_patch([edit(1, "a", "", "y\n", change="add"), edit(2, "a", "y\n", "", change="delete")], ROOT) == []


def test_a_change_between_two_edits_is_in_the_patch_and_is_no_ones(tmp_path: Path) -> None:
    lines = [f"{number}\n" for number in range(30)]
    first = "".join(["one\n", *lines[1:]])
    between = first.replace("15\n", "fifteen\n")
    last = between.replace("29\n", "end\n")
    found = one(edit(1, "a", "".join(lines), first), edit(2, "a", between, last))
    assert [(hunk.edits, hunk.by_others) for hunk in found.hunks] == [([1], False), ([], True), ([2], False)]
    assert git_apply(tmp_path, {"a": "".join(lines)}, git_patch([found])) == {"a": last}


def test_hunks_of_a_file_that_is_not_on_record_add_up(tmp_path: Path) -> None:
    lines = [f"{number}\n" for number in range(1, 41)]
    first = parse_diff("@@ -10,3 +10,4 @@\n 10\n-11\n+eleven\n+half\n 12\n")
    second = parse_diff("@@ -30,3 +30,3 @@\n 29\n-30\n+thirty\n 31\n@@ -11,2 +11,1 @@\n")[:1]
    found = one(edit(1, "a", None, None, hunks=first), edit(2, "a", None, None, hunks=second))
    after = "".join([*lines[:10], "eleven\n", "half\n", *lines[11:29], "thirty\n", *lines[30:]])
    assert git_apply(tmp_path, {"a": "".join(lines)}, git_patch([found])) == {"a": after}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb", "a\nc"),
        ("a\nb", "a\nb\n"),
        ("a\nb\n", "a\nb"),
        ("", "no end"),
        ("x\r\ny\r\n", "x\r\nz\r\n"),
        ("no end", ""),
        ("\n\n", "\n"),
    ],
)
def test_line_ends_are_kept(before: str, after: str, tmp_path: Path) -> None:
    found = one(edit(1, 'odd "name" é.txt', before, after))
    files = git_apply(tmp_path, {'odd "name" é.txt': before}, git_patch([found]))
    assert files == {'odd "name" é.txt': after}


@pytest.mark.parametrize("name", ["with space.txt", "tab\there", "sub/dir/ä.py"])
def test_files_are_added_moved_and_deleted_under_any_name(name: str, tmp_path: Path) -> None:
    added = edit(1, f"{name}.old", "", "1\n2\n", change="add")
    moved = edit(2, name, "a\nb\nc\n", "a\nB\nc\n", old_path=f"{ROOT}/was {name}")
    gone = edit(3, f"gone {name}", "x\n", "", change="delete")
    before = {f"was {name}": "a\nb\nc\n", f"gone {name}": "x\n"}
    files = git_apply(tmp_path, before, git_patch(net_patch([added, moved, gone], ROOT)))
    assert files == {f"{name}.old": "1\n2\n", name: "a\nB\nc\n"}


def test_what_cannot_be_placed_is_said_and_not_guessed() -> None:
    fragment = edit(7, "a", None, None, hunks=parse_diff("@@\n-x\n+y\n"))
    assert one(fragment).problems == ["§7 has no position: only the lines it changed are on record"]
    assert git_patch([one(fragment)]) == ""
    outside = Edit(session="s", seq=8, path="/etc/motd", change="add", tool="Write", call="8", before="", after="hi\n")
    assert one(outside).outside and git_patch([one(outside)]) == ""


def test_a_difference_is_applied_and_taken_back() -> None:
    before, after = "a\nb\nc\nd\ne\n", "a\nB\nc\ne\nf\n"
    hunks = compare_texts(before, after)
    assert apply_hunks(before, hunks) == after
    assert reverse_hunks(after, hunks) == before
    assert apply_hunks("something else\n", hunks) is None
