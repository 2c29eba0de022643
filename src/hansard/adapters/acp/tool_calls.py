"""A tool call in progress: the fields of its frames so far, and the payloads that they make. A later field replaces an earlier one."""

from __future__ import annotations

import codecs
import json
import re
from functools import lru_cache
from typing import Any

from msgspec import UNSET

from hansard.adapters.acp import blocks, wire
from hansard.adapters.acp.fields import NO_META, present
from hansard.adapters.background import is_launch
from hansard.adapters.blocks import only_text, text_of
from hansard.adapters.fields import text_between
from hansard.events import ToolCallPayload, ToolKind, ToolResultPayload
from hansard.events.content import AnyBlock, TerminalBlock, TextBlock
from hansard.events.lenient import as_int, as_list, as_object

ENDED = ("completed", "failed", "cancelled")

_KINDS: dict[str, ToolKind] = {
    "read": "read",
    "edit": "edit",
    "delete": "edit",
    "move": "edit",
    "search": "search",
    "execute": "execute",
    "think": "think",
    "fetch": "fetch",
}
_AGENTS = {"agent", "task", "subagent"}
# Gemini CLI 0.61.0 puts the tool's name nowhere but into the id: run_shell_command__run_shell_command_1794773416396_0
_GEMINI_ID = re.compile(r"(.+)_\d+_\d+")
_NAME = re.compile(r"[\w-]+")
_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d+)")
# Qwen Code 0.15.10 says so at the end of what it shows of a command, and calls the command completed
_LAST_EXIT_CODE = re.compile(r"^Exit Code: (-?\d+)\nSignal: ", re.MULTILINE)


class Terminal:
    """What a command printed. ``call`` is the tool call that shows it."""

    def __init__(self) -> None:
        self.call: str | None = None
        self.text = ""
        self.exit_code: int | None = None
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")

    def bytes(self, data: bytes) -> str:
        """Text for more bytes; half a character waits for its other half."""
        return self._bytes.decode(data)

    def snapshot(self, text: str) -> tuple[str, int]:
        """What is new in the whole output, and where: a text that does not go on from the last one is new from the start."""
        known = len(self.text) if text.startswith(self.text) else 0
        self.text = text
        return text[known:], known


class Call:
    """One tool call."""

    name: str | None = None
    first_title: str | None = None
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    args: Any = UNSET
    asked: Any = UNSET
    content: Any = UNSET
    locations: Any = UNSET
    output: Any = UNSET
    response: Any = UNSET
    not_run: str | None = None
    server: str | None = None
    exit_code: int | None = None
    printed = ""
    announced = False
    due = False
    done = False

    def __init__(self, call_id: str, parent: str | None) -> None:
        self.id = call_id
        self.parent = parent
        self.terminals: list[str] = []

    @classmethod
    def past(cls, call_id: str, parent: str | None) -> Call:
        """A call of an earlier turn, of which there is nothing more to say but that something came late."""
        call = cls(call_id, parent)
        call.announced = call.done = True
        return call

    def merge(self, update: Any, meta: wire.Meta, asked: bool = False) -> bool:
        """Take the fields of an update, and return whether it changed the input."""
        self.name = update.name or self.name
        self.title = update.title or self.title
        self.first_title = self.first_title or self.title
        self.kind = update.kind or self.kind
        if meta is not NO_META:
            self._take_meta(meta)
        if asked:  # the input in a permission request is often another one, made for the eyes
            self.asked = update.raw_input
        else:
            self.status = update.status or self.status
        if update.content is not UNSET and update.content is not None:
            self.content = update.content
        if update.locations is not UNSET and update.locations is not None:
            self.locations = update.locations
        if update.raw_output is not UNSET and update.raw_output is not None:
            self.output = update.raw_output
        self.terminals = blocks.terminals(self.content) if self.content else []
        changed = not asked and update.raw_input is not UNSET and update.raw_input != self.args
        if changed:
            self.args = update.raw_input
        return changed

    def _take_meta(self, meta: wire.Meta) -> None:
        self.name = self.name or meta.tool_name
        self.server = self.server or meta.server_id
        if meta.claude_code is not None:
            self.name = self.name or meta.claude_code.tool_name
            self.not_run = meta.claude_code.non_execution_kind or self.not_run
            if meta.claude_code.tool_response is not UNSET:
                self.response = meta.claude_code.tool_response
        if meta.terminal_exit is not None:
            self.exit_code = meta.terminal_exit.exit_code

    @property
    def has_input(self) -> bool:
        """Whether the input is more than a beginning. Agents announce calls with {} (OpenCode with the folder alone), then fill them in."""
        args = self.args
        if args is UNSET or args is None:
            return False
        return not args.keys() <= {"cwd"} if isinstance(args, dict) else True

    @property
    def has_output(self) -> bool:
        """Whether there is anything to give as a result."""
        return self.output is not UNSET or self.response is not UNSET or bool(self.printed)

    # ---- what it amounts to

    def call_payload(self) -> ToolCallPayload:
        """The call, with everything known of it."""
        args, server, tool = self._arguments()
        return ToolCallPayload(
            tool_call_id=self.id,
            tool_name=tool or self.tool_name,
            args=self._described() if args is UNSET else args,
            kind=self._kind(server),
            title=self.title,
            server=server,
        )

    @property
    def tool_name(self) -> str:
        """The tool's name; where an agent has none, its word for the kind of tool, or the title."""
        if self.name is not None:
            return self.name
        gemini = _name_in(self.id)
        if gemini is not None:
            return gemini
        if self.first_title is not None and _NAME.fullmatch(self.first_title):  # OpenCode begins with the name as a title
            return self.first_title
        if self.kind is not None and self.kind != "other":
            return self.kind
        return self.title or self.kind or self.id

    @property
    def is_agent(self) -> bool:
        """Whether it starts an agent."""
        _, server, _ = self._arguments()
        return self._kind(server) == "agent"

    def _arguments(self) -> tuple[Any, str | None, str | None]:
        """The arguments, if there are any; for a tool of a server also the server and the tool's own name."""
        args = self.args if self.asked is UNSET or self.has_input else self.asked
        fields = as_object(args)
        if len(fields) == 3 and fields.keys() == {"server", "tool", "arguments"}:  # codex-acp's wrapping of a call to an MCP server
            return fields["arguments"], str(fields["server"]), str(fields["tool"])
        return args, self.server, None

    def _described(self) -> Any:
        """What there is in the place of arguments when the agent sends none (Gemini CLI): what it shows of the call."""
        said = blocks.tool_blocks(self.content)
        if len(said) == 1 and isinstance(said[0], TextBlock) and said[0].text.startswith("{"):
            try:
                return json.loads(said[0].text)  # of an MCP tool it shows the arguments
            except (ValueError, RecursionError):
                pass
        return present(title=self.title, locations=as_list(self.locations) or None, content=as_list(self.content) or None)

    def _kind(self, server: str | None) -> ToolKind | None:
        name = self.name or ""
        if server is not None or name.startswith("mcp__"):
            return "mcp"
        fields = as_object(self.args)
        if name.lower() in _AGENTS or ("prompt" in fields and ("subagent_type" in fields or "agent_type" in fields)):
            return "agent"
        return None if self.kind is None else _KINDS.get(self.kind, "other")

    def result_payload(self, terminals: dict[str, Terminal]) -> ToolResultPayload:
        """The result. ``result`` is the tool's data where the wire has it; ``content`` is what is shown of it."""
        shown: list[AnyBlock] = self._blocks(terminals)
        output = None if self.output is UNSET else self.output
        fields = as_object(output)
        trouble = self._trouble(fields)
        failed = self.status != "completed" or trouble is not None
        exit_code = self._exit_code(output, shown, terminals, failed)
        result = output
        if self.response is not UNSET:
            result = self.response
            if isinstance(output, str) and _same(output, shown):
                shown = [TextBlock(text=output)]  # what the model was shown; the content is the same in a code fence
        elif output is None:
            result, shown = self._result_of(shown)
        elif isinstance(output, str) and _same(output, shown):
            shown = []
        return ToolResultPayload(
            tool_call_id=self.id,
            tool_name=self.tool_name,
            result=result,
            content=shown or None,
            is_error=True if failed else None,
            error=trouble or self._error(fields) if failed else None,
            exit_code=exit_code,
            duration_ms=(_duration(fields) if fields else None) or (_duration(self.response) if self.response else None),
            background=is_launch(result),
        )

    def _blocks(self, terminals: dict[str, Terminal]) -> list[AnyBlock]:
        shown = blocks.tool_blocks(self.content)
        for block in shown:
            if isinstance(block, TerminalBlock) and block.terminal_id in terminals:
                terminal = terminals[block.terminal_id]
                block.output, block.exit_code = terminal.text, terminal.exit_code
        return shown

    def _result_of(self, shown: list[AnyBlock]) -> tuple[Any, list[AnyBlock]]:
        """Without data of its own, a result is the text it shows, or what it shows."""
        if len(shown) == 1 and isinstance(shown[0], TextBlock):
            return shown[0].text, []
        if self.printed:
            return self.printed, shown
        outputs = [block.output for block in shown if isinstance(block, TerminalBlock) and block.output is not None]
        if outputs:
            return "".join(outputs), shown
        return (None if self.content is UNSET else self.content), shown

    def _trouble(self, fields: dict[str, Any]) -> str | None:
        """Why a call failed that OpenCode 1.18.33 calls completed: its tool does not exist, or its command was stopped."""
        args = as_object(self.args)
        if "error" in args and args.keys() == {"tool", "error"} and args["tool"] == self.first_title:
            return str(args["error"])
        if fields and self.kind == "execute" and as_object(fields.get("metadata")).get("exit", 0) is None:
            note = text_between(str(fields.get("output")), "<shell_metadata>\n", "\n</shell_metadata>")
            return "no exit code" if note is None else note
        return None

    def _error(self, fields: dict[str, Any]) -> str | None:
        if self.not_run is not None:
            return self.not_run
        for key in ("error", "message"):
            word = fields.get(key)
            if isinstance(word, str):
                return word
        return "cancelled" if self.status == "cancelled" else None

    def _exit_code(self, output: Any, shown: list[AnyBlock], terminals: dict[str, Terminal], failed: bool) -> int | None:
        codes: list[Any] = [self.exit_code]
        if fields := as_object(output):
            codes += [fields.get("exit_code"), fields.get("exitCode"), as_object(fields.get("metadata")).get("exit")]
            codes += [as_object(item).get("exitCode") for item in as_list(fields.get("contents"))]
        codes += [terminals[name].exit_code for name in self.terminals if name in terminals]
        for code in codes:
            if as_int(code) is not None:
                return code
        said = [_EXIT_CODE.match(output)] if failed and isinstance(output, str) else []
        said += [*_LAST_EXIT_CODE.finditer(text_of(shown))][-1:] if self.kind == "execute" else []
        return next((int(found.group(1)) for found in said if found is not None), None)


@lru_cache(64)
def _name_in(call_id: str) -> str | None:
    """Return the tool's name in a call's id. It is needed several times during a call."""
    gemini = _GEMINI_ID.fullmatch(call_id)
    if gemini is None:
        return None
    twice = gemini.group(1)
    name = twice[: len(twice) // 2 - 1]
    return name if name and twice == f"{name}__{name}" else None


_FENCE = 24
"""How much a code fence and its language add to a text."""


def _same(output: str, shown: list[AnyBlock]) -> bool:
    """Whether what is shown is the output itself, perhaps in a code fence. Qwen Code's output of a file it read is "", but it shows it."""
    if not only_text(shown):
        return False
    text = text_of(shown)
    return text == "" if output == "" else output in text and len(text) <= len(output) + _FENCE


def _duration(data: Any) -> int | None:
    fields = as_object(data)
    took = as_object(fields.get("duration"))
    if isinstance(took.get("secs"), int) and isinstance(took.get("nanos"), int):  # codex-acp
        return int(took["secs"] * 1000 + took["nanos"] // 1_000_000)
    for key in ("totalDurationMs", "durationMs"):
        if isinstance(fields.get(key), int | float):
            return round(fields[key])
    return None
