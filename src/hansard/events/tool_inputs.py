"""Tools: what a call asks for, in the same words whatever its agent calls the tool. Helpers for whoever shows or checks calls.

    match tool_input(call):
        case Command(command=command): ...
        case EditFile(path=path) | WriteFile(path=path): ...

Nothing needs them: the agent's own name of the tool and all of its arguments stay in the event. Which of these inputs a call can be is
decided by the ``kind`` that its adapter found, then by its arguments; names of tools decide only where two have the same arguments.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import Struct

from hansard.events.lenient import as_list, as_object
from hansard.events.structs import prepare
from hansard.events.types import ToolCallPayload

# --------------------------------------------------------------------------------------------------------------------
# What a call can ask for


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class ToolInput(Struct, tag=_snake, tag_field="action", rename="camel", omit_defaults=True):
    """What a tool is asked to do. ``action`` is the word for it that all agents share."""

    @property
    def action(self) -> str:
        """The word."""
        return str(self.__struct_config__.tag)


class Command(ToolInput):
    """Run a command in a shell."""

    command: str
    cwd: str | None = None
    description: str | None = None
    background: bool | None = None


class Code(ToolInput):
    """Run a program that is given as text."""

    code: str


class ReadFile(ToolInput):
    """Read a file. Where to begin and how far to go are counted as this tool counts."""

    path: str
    offset: int | None = None
    limit: int | None = None
    end: int | None = None


class ListFolder(ToolInput):
    """List a folder."""

    path: str


class WriteFile(ToolInput):
    """Write a whole file."""

    path: str
    content: str


class EditFile(ToolInput):
    """Replace a piece of a file."""

    path: str
    old: str
    new: str
    everywhere: bool | None = None


class Replacement(Struct, rename="camel", omit_defaults=True):
    """One piece of a file, and what it becomes."""

    old: str
    new: str
    everywhere: bool | None = None


class EditPlaces(ToolInput):
    """Replace several pieces of a file. A list of one is an `EditFile`."""

    path: str
    edits: list[Replacement]


class DeleteFile(ToolInput):
    """Delete a file."""

    path: str


class Patch(ToolInput):
    """Change files: which, and the patch where it is one text."""

    paths: list[str]
    patch: str | None = None


class FindText(ToolInput):
    """Look for a pattern in files."""

    pattern: str
    path: str | None = None


class FindFiles(ToolInput):
    """Look for files by their names."""

    pattern: str
    path: str | None = None


class SearchWeb(ToolInput):
    """Ask a search engine."""

    query: str


class FetchPage(ToolInput):
    """Get a page."""

    url: str
    prompt: str | None = None


class StartAgent(ToolInput):
    """Hand a task to a sub-agent."""

    prompt: str
    agent: str | None = None
    description: str | None = None


class PlanStep(Struct):
    """A line of a plan, its status in this tool's word."""

    content: str
    status: str | None = None


class WritePlan(ToolInput):
    """Write down the plan, or the list of things to do."""

    steps: list[PlanStep]


class ProposePlan(ToolInput):
    """Show a plan and ask whether to go on."""

    plan: str


class Ask(ToolInput):
    """Ask the user."""

    questions: list[str]


class CallServer(ToolInput):
    """Call a tool of an MCP server. Without a server the tool's name has it inside, and nobody can say where it ends."""

    tool: str
    arguments: Any
    server: str | None = None


AnyInput = (
    Command
    | Code
    | ReadFile
    | ListFolder
    | WriteFile
    | EditFile
    | EditPlaces
    | DeleteFile
    | Patch
    | FindText
    | FindFiles
    | SearchWeb
    | FetchPage
    | StartAgent
    | WritePlan
    | ProposePlan
    | Ask
    | CallServer
)

# --------------------------------------------------------------------------------------------------------------------
# How tools spell it


class Shape(NamedTuple):
    """An input, the kinds of tools that can mean it, and how the fields are spelled beside their own names."""

    input: type[AnyInput]
    kinds: frozenset[str]
    named: str = ""
    """What the tool's name must match."""
    spelled: Mapping[str, str] = {}


_PATH = "path file_path absolute_path notebook_path target_file filename"
_FOLDER = "path dir_path target_directory directory dir"
_CWD = "cwd working_directory workdir dir_path directory"
_AGENT = "agent subagent_type agent_type agent_name task_name name"
REPLACEMENT_SPELLINGS = {"old": "old_string old_str old_text", "new": "new_string new_str new_text", "everywhere": "replace_all"}


def _kinds(*kinds: str) -> frozenset[str]:
    return frozenset(kinds)


SHAPES = (
    Shape(
        Command,
        _kinds("execute", "read", "search"),
        spelled={"command": "cmd command", "cwd": _CWD, "background": "run_in_background is_background"},
    ),
    Shape(Code, _kinds("execute")),
    Shape(ListFolder, _kinds("read", "search"), "^(ls|list)", {"path": _FOLDER}),
    Shape(ReadFile, _kinds("read"), spelled={"path": _PATH, "offset": "offset start_line", "end": "end_line"}),
    Shape(EditFile, _kinds("edit"), spelled={"path": _PATH, **REPLACEMENT_SPELLINGS}),
    Shape(EditPlaces, _kinds("edit"), spelled={"path": _PATH}),
    Shape(WriteFile, _kinds("edit"), spelled={"path": _PATH, "content": "content file_text contents"}),
    Shape(DeleteFile, _kinds("edit"), "delete|remove", {"path": _PATH}),
    Shape(FindFiles, _kinds("search"), "glob|find|file_?search", {"pattern": "pattern glob_pattern", "path": _FOLDER}),
    Shape(FindText, _kinds("search"), spelled={"path": _FOLDER}),
    Shape(SearchWeb, _kinds("search", "fetch"), "web|search|fetch"),
    Shape(FetchPage, _kinds("fetch")),
    Shape(StartAgent, _kinds("agent"), "^(?!send|write|follow|resume)", {"prompt": "prompt message task", "agent": _AGENT}),
    Shape(WritePlan, _kinds("think", "other"), "todo|plan", {"steps": "todos plan items entries"}),
    Shape(ProposePlan, _kinds("think", "other"), "plan"),
    Shape(Ask, _kinds("think", "other")),
)
"""In this order they are tried."""

SHELL_PROGRAM = re.compile(r"(?:.*/)?(?:ba|z|da)?sh")
SHELL_OPTION = re.compile("-l?c")
FILES_IN_PATCH = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.*\S)\s*$", re.MULTILINE)


STEP_TEXTS = ("content", "step", "text", "description", "title")
"""The names of the text of a plan's step, the best first."""
QUESTION_TEXTS = ("question", "title", "header")
PATCH_TEXTS = ("patch", "patch_text", "input", "diff")
WRAPPED_CALL = {"args", "providerIdentifier", "toolName"}
"""The fields of a call that Cursor wraps into another."""


def tool_input(call: ToolCallPayload) -> AnyInput | None:
    """What a call asks for; None if that is none of the above, or said in a way nobody knows."""
    if call.kind == "mcp":
        return _call_server(call)
    fields = _fields(call.args)
    for shape in SHAPES:
        if (call.kind or "other") in shape.kinds and re.search(shape.named, call.tool_name, re.IGNORECASE):
            found = _read(shape, fields)
            if found is not None:
                return found
    return _patch(call.args, fields) if call.kind == "edit" else None


def tool_action(call: ToolCallPayload) -> str:
    """The word for what a call does that all agents share: the ``action`` of its input, else its kind."""
    found = tool_input(call)
    return call.kind or "other" if found is None else found.action


def tool_title(call: ToolCallPayload) -> str:
    """A call in words that are the same for every agent, or in the agent's own where its input is not known. Cut it where it is shown."""
    match tool_input(call):
        case Command(command=text):
            return f"Run {text}"
        case Code(code=text):
            return f"Run {text}"
        case ReadFile(path=path):
            return f"Read {path}"
        case ListFolder(path=path):
            return f"List {path}"
        case WriteFile(path=path):
            return f"Write {path}"
        case EditFile(path=path) | EditPlaces(path=path):
            return f"Edit {path}"
        case DeleteFile(path=path):
            return f"Delete {path}"
        case Patch(paths=paths):
            return f"Change {', '.join(paths)}"
        case FindText(pattern=text):
            return f"Search for {text}"
        case FindFiles(pattern=text):
            return f"Find {text}"
        case SearchWeb(query=text):
            return f"Search the web for {text}"
        case FetchPage(url=url):
            return f"Fetch {url}"
        case StartAgent() as task:
            return f"Ask {task.agent or 'a sub-agent'}: {task.description or task.prompt}"
        case WritePlan(steps=steps):
            return f"Plan: {', '.join(step.content for step in steps)}"
        case ProposePlan(plan=plan):
            return f"Propose: {plan}"
        case Ask(questions=questions):
            return f"Ask: {' '.join(questions)}"
        case CallServer() as asked:
            return f"Call {asked.tool}" + (f" of {asked.server}" if asked.server else "")
        case None:
            return call.title or call.tool_name


# --------------------------------------------------------------------------------------------------------------------
# Reading


def _fields(args: Any) -> dict[str, Any]:
    """The arguments by their names in snake case. A list of one edit is that edit."""
    fields = _spelled(args)
    edits = as_list(fields.get("edits"))
    return fields | _spelled(edits[0]) if len(edits) == 1 else fields


def _spelled(args: Any) -> dict[str, Any]:
    return {_snake(name): value for name, value in as_object(args).items()}


def _read(shape: Shape, fields: Mapping[str, Any]) -> AnyInput | None:
    said = {encoded: value for name, encoded in _names(shape.input) if (value := _value(shape, name, fields)) is not None}
    try:
        return msgspec.convert(said | {"action": shape.input.__struct_config__.tag}, shape.input)
    except msgspec.ValidationError:
        return None


@cache
def _names(struct: type[msgspec.Struct]) -> list[tuple[str, str]]:
    """The names of a struct's fields, and how they are encoded. msgspec evaluates the annotations each time it is asked."""
    return [(field.name, field.encode_name) for field in msgspec.structs.fields(struct)]


def _value(shape: Shape, name: str, fields: Mapping[str, Any]) -> Any:
    said = _first(shape.spelled.get(name, name), fields)
    return LIST_READERS[name](cast("list[Any]", said)) if name in LIST_READERS and isinstance(said, list) else said


def _first(spellings: str, fields: Mapping[str, Any]) -> Any:
    return next((fields[spelling] for spelling in spellings.split() if fields.get(spelling) is not None), None)


def _shell_line(argv: list[Any]) -> str:
    """A command as it was typed: of a shell that was given a line, that line."""
    words = [str(word) for word in argv]
    if len(words) == 3 and SHELL_PROGRAM.fullmatch(words[0]) and SHELL_OPTION.fullmatch(words[1]):
        return words[2]
    return shlex.join(words)


def _steps(items: list[Any]) -> list[dict[str, Any]]:
    return [_step(as_object(item)) for item in items]


def _step(item: Mapping[str, Any]) -> dict[str, Any]:
    done = item.get("completed")
    status = ("completed" if done else "pending") if isinstance(done, bool) else None
    return {"content": _first_text(item, STEP_TEXTS), "status": item.get("status", status)}


def _edits(items: list[Any]) -> list[dict[str, Any]]:
    return [{name: _first(spellings, _spelled(item)) for name, spellings in REPLACEMENT_SPELLINGS.items()} for item in items]


def _questions(items: list[Any]) -> list[Any]:
    return [_first_text(as_object(item), QUESTION_TEXTS) for item in items]


def _first_text(item: Mapping[str, Any], names: Iterable[str]) -> str | None:
    return next((text for name in names if isinstance(text := item.get(name), str)), None)


LIST_READERS = {"command": _shell_line, "edits": _edits, "steps": _steps, "questions": _questions}
"""How a list is read in the place of these fields."""


def _patch(args: Any, fields: Mapping[str, Any]) -> Patch | None:
    """A patch as Codex and others write it, or a list of changes, each of one file."""
    text = args if isinstance(args, str) else next((fields[name] for name in PATCH_TEXTS if name in fields), None)
    paths = FILES_IN_PATCH.findall(text) if isinstance(text, str) else []
    changes = fields.get("changes")
    paths += list(as_object(changes)) + [as_object(change).get("path") for change in as_list(changes)] + [fields.get("path")]
    named = _texts(paths)
    return Patch(named, text if isinstance(text, str) else None) if named and (text or changes) else None


def _texts(values: Iterable[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def _call_server(call: ToolCallPayload) -> CallServer:
    """A tool of a server by its own name: without the server's before it."""
    fields = as_object(call.args)
    if fields.keys() >= WRAPPED_CALL:
        return CallServer(str(fields["toolName"]), fields["args"], call.server)
    if call.server is None:
        parts = call.tool_name.split("__", 2)
        return CallServer(parts[2], call.args, parts[1]) if len(parts) == 3 and parts[0] == "mcp" else CallServer(call.tool_name, call.args)
    prefix = re.match(rf"(?:mcp_{{1,2}})?{re.escape(call.server)}(?:__|[_-])", call.tool_name)
    return CallServer(call.tool_name[prefix.end() :] if prefix else call.tool_name, call.args, call.server)


prepare(globals())
