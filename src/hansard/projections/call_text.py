"""A tool call for people: what it does, what it changes, how it ended, and what it returned, each as text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from difflib import unified_diff
from typing import Any, cast

from msgspec import Struct

from hansard import events as ev
from hansard.events import tool_inputs as tools
from hansard.events.lenient import as_list, as_object
from hansard.projections.text import block_text

MAX_COMPARED_LINES = 5_000
"""Longer texts are not compared."""
MINUS = "\N{MINUS SIGN}"
LABELS = {"description", "title"}
"""Arguments that describe a call and do not change what it does."""
WRAPPERS = ("success", "failure", "error", "rejected")
TEXTS = ("output", "interleavedOutput", "stdout", "stderr", "content", "text", "errorMessage", "message", "stringResult")
"""The fields of a result that hold its text, the best first."""
DENIALS = {"denied", "declined", "rejected", "permission-rule", "user-rejected"}
"""The words of agents for a call that was denied."""
MARKS_ALONE = {"error", "failed", "failure"}
"""The words of agents that say no more than the mark of a failed call."""


class Call(Struct):
    """A call with everything that was recorded about it so far."""

    payload: ev.ToolCallPayload
    decision: ev.PermissionResponsePayload | None = None
    decision_shown: bool = False
    result: ev.ToolResultPayload | None = None
    reported: str | None = None
    """The last message of the subagent that the call started."""
    interrupted: bool = False
    """Whether the turn was interrupted while the call ran."""

    @property
    def denied(self) -> bool:
        """Whether the call was not allowed to run."""
        return self.decision is not None and self.decision.decision != "allow"

    @property
    def failed(self) -> bool:
        """Whether the call was denied or ended with an error."""
        result = self.result
        return self.denied or (result is not None and bool(result.is_error or result.exit_code or result.error))


class Change(Struct):
    """The change of one file, as the lines of a unified diff without its file header."""

    path: str
    lines: list[str]

    @property
    def counts(self) -> tuple[int, int]:
        """How many lines were added and removed."""
        return sum(line.startswith("+") for line in self.lines), sum(line.startswith("-") for line in self.lines)


# --------------------------------------------------------------------------------------------------------------------
# What it does


def call_name(payload: ev.ToolCallPayload) -> str:
    """Returns the agent's own name of the tool, with its server."""
    if payload.server is None or payload.server in payload.tool_name:
        return payload.tool_name
    return f"{payload.server}/{payload.tool_name}"


def call_argument(payload: ev.ToolCallPayload, cwd: str | None = None) -> str:
    """Returns the argument that says what a call does: its command, its path, its query; all arguments if none stands out."""
    match tools.tool_input(payload):
        case tools.Command(command=text) | tools.Code(code=text) | tools.SearchWeb(query=text):
            return text
        case tools.ReadFile(path=path) | tools.ListFolder(path=path) | tools.WriteFile(path=path) | tools.DeleteFile(path=path):
            return relative(path, cwd)
        case tools.EditFile(path=path, everywhere=everywhere):
            return relative(path, cwd) + (" (everywhere)" if everywhere else "")
        case tools.EditPlaces(path=path):
            return relative(path, cwd)
        case tools.Patch(paths=paths):
            return ", ".join(relative(path, cwd) for path in dict.fromkeys(paths))
        case tools.FindText(pattern=text, path=path) | tools.FindFiles(pattern=text, path=path):
            return text + (f" in {place}" if path and (place := relative(path, cwd)) != "." else "")
        case tools.FetchPage(url=url):
            return url
        case tools.StartAgent(prompt=prompt, agent=agent):
            return f"{agent}: {prompt}" if agent else prompt
        case tools.CallServer(arguments=arguments):
            return arguments_text(arguments)
        case _:
            return _unknown_argument(payload, cwd)


def relative(path: str, cwd: str | None) -> str:
    """Returns a path as seen from the working directory."""
    if cwd is None:
        return path
    return "." if path.rstrip("/") == cwd.rstrip("/") else path.removeprefix(f"{cwd.rstrip('/')}/")


def arguments_text(value: Any) -> str:
    """Returns arguments as text: one alone as it is, several as name and value."""
    if not isinstance(value, dict):
        return plain_text(value)
    fields = cast("dict[str, Any]", value)
    if len(fields) == 1:
        return plain_text(next(iter(fields.values())))
    return "  ".join(f"{name}={plain_text(item)}" for name, item in fields.items())


def plain_text(value: Any) -> str:
    """Returns a string as it is and everything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _unknown_argument(payload: ev.ToolCallPayload, cwd: str | None) -> str:
    """The arguments without labels. The title stands for the arguments of an ACP agent that sends no input."""
    fields = as_object(payload.args)
    if not fields:
        return arguments_text(payload.args) if payload.args else ""
    if payload.kind == "edit" and isinstance(path := fields.get("path"), str):
        return relative(path, cwd)
    if payload.title is None or fields.get("title") != payload.title:
        return arguments_text({name: value for name, value in fields.items() if name not in LABELS} or fields)
    rest = {name: value for name, value in fields.items() if name not in ("title", "locations", "content")}
    return arguments_text(rest) if rest else payload.title if payload.title != payload.tool_name else ""


def hidden_arguments(payload: ev.ToolCallPayload) -> bool:
    """Returns whether `call_argument` and `call_changes` leave an argument out that a person who is asked must see."""
    found = tools.tool_input(payload)
    shown = len(found.__struct_fields__) - sum(getattr(found, name) is None for name in found.__struct_fields__) if found else 0
    return found is None or isinstance(found, tools.StartAgent | tools.CallServer) or len(as_object(payload.args).keys() - LABELS) > shown


# --------------------------------------------------------------------------------------------------------------------
# What it changes


def call_changes(call: Call) -> list[Change]:
    """Returns the changes of files that a call makes: as its result shows them, else as its input asks for them."""
    shown = [_of_block(block) for block in (call.result and call.result.content) or [] if isinstance(block, ev.DiffBlock)]
    return [change for change in shown or list(_changes_in_input(call.payload)) if change.lines]


def _of_block(block: ev.DiffBlock) -> Change:
    if block.diff is not None or block.new_text is None:
        return Change(block.path, _hunks(block.diff or ""))
    return Change(block.path, compared(block.old_text or "", block.new_text))


def _changes_in_input(payload: ev.ToolCallPayload) -> Iterator[Change]:
    match tools.tool_input(payload):
        case tools.EditFile() as edit:
            yield Change(edit.path, compared(edit.old, edit.new))
        case tools.EditPlaces(path=path, edits=edits):
            yield Change(path, [line for edit in edits for line in compared(edit.old, edit.new)])
        case tools.WriteFile(path=path, content=content):
            yield Change(path, compared("", content))
        case tools.Patch(paths=paths, patch=patch) if patch is not None:
            yield Change(", ".join(paths), [line for line in patch.split("\n") if line[:1] in "+-" and line])
        case _:
            yield from _listed(as_object(payload.args))


def _listed(fields: dict[str, Any]) -> Iterator[Change]:
    """Codex lists changes by path, ACP has them among the content of a call."""
    listed: Any = fields.get("changes")
    named = as_object(listed).items() or [(as_object(one).get("path"), one) for one in as_list(listed)]
    for path, change in [*named, *((as_object(one).get("path"), one) for one in as_list(fields.get("content")))]:
        about = as_object(change)
        diff, content = about.get("diff", about.get("unified_diff")), about.get("content", about.get("newText"))
        kind = about.get("kind")
        is_new = "add" in (about.get("type"), kind, as_object(kind).get("type"))
        if isinstance(diff, str) and not (is_new and not diff.startswith("@@")):
            yield Change(str(path), _hunks(diff))
        elif isinstance(text := diff or content, str):
            yield Change(str(path), compared(str(about.get("oldText") or ""), text))


def compared(before: str, after: str) -> list[str]:
    """Returns the difference of two texts, without the position of its only hunk: fragments have no line numbers."""
    old, new = before.split("\n") if before else [], after.split("\n") if after else []
    if len(old) + len(new) > MAX_COMPARED_LINES:
        return [f"({len(old):,} lines became {len(new):,})"]
    if old and new and old[-1] == new[-1] == "":
        old, new = old[:-1], new[:-1]
    elif not old and new[-1:] == [""]:
        new = new[:-1]
    lines = list(unified_diff(old, new, lineterm="", n=2))[2:]
    return lines[1:] if sum(line.startswith("@@") for line in lines) == 1 else lines


def _hunks(diff: str) -> list[str]:
    """The lines of a unified diff from its first hunk on; all of them if it has none."""
    lines = diff.rstrip("\n").split("\n") if diff else []
    first = next((number for number, line in enumerate(lines) if line.startswith("@@")), 0)
    found = lines[first:]
    return found[1:] if sum(line.startswith("@@") for line in found) == 1 else found


# --------------------------------------------------------------------------------------------------------------------
# How it ended, and what it returned


def call_outcome(call: Call) -> str:
    """Returns how a call ended, on one line: a mark, the decision about it, exit code, lines changed, time. Empty while it runs."""
    words = [*([] if call.decision is None or call.decision_shown else [decision_text(call.decision)]), *_ending(call)]
    is_over = call.denied or (call.result is not None and not call.result.background)
    if not is_over:
        return ", ".join(words)
    return " ".join(["✗" if call.failed else "✓", ", ".join(words)]).rstrip()


def decision_text(decision: ev.PermissionResponsePayload) -> str:
    """Returns what was decided, by whom, and why."""
    word = {"allow": "allowed", "deny": "denied"}.get(decision.decision, decision.decision)
    by = f" by {decision.by.replace('_', ' ')}" if decision.by else ""
    why = f": {decision.message}" if decision.message and decision.message not in DENIALS else ""
    return word + by + why


def _ending(call: Call) -> Iterator[str]:
    result = call.result
    if result is None:
        return
    if result.background and not call.failed:
        yield "started in the background"
    if result.exit_code:
        yield f"exit {result.exit_code}"
    if call.interrupted and call.failed:
        yield "interrupted"
    elif result.error and "\n" not in result.error and not _repeats(call, result.error):
        yield result.error
    added, removed = map(sum, zip(*(change.counts for change in call_changes(call)), (0, 0), strict=False))
    if (added or removed) and not call.failed:
        yield " ".join([f"+{added:,}"] * bool(added) + [f"{MINUS}{removed:,}"] * bool(removed))
    if result.duration_ms is not None and result.duration_ms >= 1000:
        yield f"{result.duration_ms / 1000:.1f} s"


def _repeats(call: Call, error: str) -> bool:
    """Whether the rest of what is shown of a call has the error already."""
    if error in MARKS_ALONE:
        return True
    if call.decision is not None and call.denied and (error in DENIALS or error in decision_text(call.decision)):
        return True
    return error in _returned(call)


def call_output(call: Call) -> str:
    """Returns the text of a result. What the call's changes, its subagent, or its denial show already is left out."""
    text = _returned(call)
    if call.reported and call.reported.strip() in text:
        return ""
    if call.decision is not None and call.denied:
        is_known = text.startswith("{") or (call.decision.message is not None and call.decision.message in text)
        return "" if is_known else text
    if not call.failed and (call_changes(call) or isinstance(tools.tool_input(call.payload), tools.DeleteFile)):
        return ""
    if not text and call.result is not None and "\n" in (call.result.error or ""):
        return call.result.error or ""
    return text


def _returned(call: Call) -> str:
    if call.result is None:
        return ""
    if call.result.content:
        return "\n".join(block_text(block) for block in call.result.content if not isinstance(block, ev.DiffBlock)).rstrip("\n")
    return _text_in(call.result.result).rstrip("\n")


def _text_in(result: Any) -> str:
    """The text inside a result, however it is wrapped; its JSON if it has none."""
    if isinstance(result, list):
        parts = [as_object(one).get("text") for one in cast("list[Any]", result)]
        return "\n".join(map(str, parts)) if all(isinstance(part, str) for part in parts) else plain_text(result)
    fields = as_object(result)
    inner = next((fields[name] for name in WRAPPERS if isinstance(fields.get(name), dict)), None)
    if inner is not None:
        return _text_in(inner)
    return next((text for name in TEXTS if isinstance(text := fields.get(name), str) and text), plain_text(result) if result != {} else "")
