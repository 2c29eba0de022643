"""The exact edits of a session: each change of a file that an agent made with a tool, from what the log says of the call.

An edit that was denied or failed is not one. What is known of the text differs: the whole text before and after, lines with their
positions, lines without, or the path alone (`Edit.detail`). What the record shows of a file earlier completes what it shows later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, cast

from msgspec import Struct, field

from hansard import events as ev
from hansard.events import tool_inputs as tools
from hansard.events.lenient import as_list, as_object, as_text
from hansard.events.types import EARLIEST_CALENDAR_MS
from hansard.projections.hunks import (
    FilePatch,
    Hunk,
    apply_hunks,
    compare_texts,
    indent_hunks,
    parse_diff,
    parse_patch,
    reverse_hunks,
    split_lines,
)

EDIT_TYPES = frozenset(
    {
        "configuration_change",
        "control_request",
        "permission_request",
        "permission_response",
        "session_init",
        "session_lifecycle",
        "tool_call",
        "tool_progress",
        "tool_result",
        "turn_start",
        "user_message",
    }
)
"""The types of events that an `EditReader` needs."""
WRITE_METHOD = "fs/write_text_file"
"""How an agent asks its client to write a file, in the Agent Client Protocol."""
PROMPT_CHARACTERS = 200
"""The length of the beginning of a prompt that is kept with an edit."""

ChangeKind = Literal["add", "change", "delete"]
Detail = Literal["whole", "overwrite", "lines", "fragments", "path"]
"""What is known of an edit's text: all of the file before and after it, all of it after, lines with positions, lines without, nothing."""


class Permission(Struct, rename="camel", omit_defaults=True):
    """Who allowed a call. Without a request, no one was asked, and ``mode`` is the permission mode if that is known."""

    request_seq: int | None = None
    decision_seq: int | None = None
    by: str | None = None
    mode: str | None = None

    @property
    def text(self) -> str:
        """The same for people."""
        if self.request_seq is None:
            return f"not asked ({self.mode.rpartition('#')[2]})" if self.mode else "not asked"
        return "allowed" + (f" by {self.by}" if self.by else "") + f" §{self.decision_seq or self.request_seq}"


class Edit(Struct, rename="camel", omit_defaults=True, kw_only=True):
    """One change of one file. ``seq`` is that of the tool call; a call that changes several files is several edits."""

    session: str
    seq: int
    path: str
    """Where the file is after the edit; of a deleted one, where it was."""
    change: ChangeKind
    old_path: str | None = None
    """Where the file was before, if the edit moved it."""
    turn: int | None = None
    prompt_seq: int | None = None
    prompt: str | None = None
    tool: str
    call: str
    agent: str | None = None
    model: str | None = None
    timestamp: int | None = None
    permission: Permission = field(default_factory=Permission)
    hunks: list[Hunk] = field(default_factory=list[Hunk])
    replacements: list[tools.Replacement] = field(default_factory=list[tools.Replacement])
    """Pieces of the text and what they became, where the record has nothing better."""
    before: str | None = None
    """All of the text before; None if the record does not have it. Of a new file, it is empty."""
    after: str | None = None

    @property
    def detail(self) -> Detail:
        """What is known of its text."""
        if self.before is not None and self.after is not None:
            return "whole"
        if not self.hunks:
            return "path" if self.after is None or self.change == "delete" else "overwrite"
        return "fragments" if any(hunk.start is None for hunk in self.hunks) else "lines"

    @property
    def changes(self) -> list[Hunk]:
        """The lines that it changed, as exactly as they are known."""
        if self.before is not None and self.after is not None:
            return compare_texts(self.before, self.after)
        return self.hunks


class FileChange(Struct):
    """The change of one file, as one report of a call has it."""

    path: str
    change: ChangeKind = "change"
    old_path: str | None = None
    before: str | None = None
    after: str | None = None
    hunks: list[Hunk] = field(default_factory=list[Hunk])
    replacements: list[tools.Replacement] = field(default_factory=list[tools.Replacement])
    """Pieces of the text and what they became, where the record has no lines."""
    is_shown: bool = False
    """Whether the texts are those of a change that was shown. They are whole, unless the file is known to have more."""
    is_trimmed: bool = False
    """Whether the lines may be shown without their common indentation."""


class _Call(Struct):
    """A call of a tool that edits, with all that was recorded of it."""

    event: ev.ToolCall
    turn: int | None
    prompt: ev.UserMessage | None
    mode: str | None
    model: str | None
    asked: ev.PermissionRequest | None = None
    decided: ev.PermissionResponse | None = None
    results: list[ev.ToolResultPayload] = field(default_factory=list[ev.ToolResultPayload])
    shown: list[ev.DiffBlock] = field(default_factory=list[ev.DiffBlock])
    """The changes that were shown while it ran."""
    written: dict[str, str] = field(default_factory=dict[str, str])
    """The files that the agent let its client write while the call ran, with their whole texts."""
    inputs: list[ev.ToolCallPayload] = field(default_factory=list[ev.ToolCallPayload])
    """The call as each stream tells it."""


class EditReader:
    """Feed it the events of a session in order, replays included; it yields each edit when its call has succeeded."""

    def __init__(self, session: str = "") -> None:
        self._session = session
        self._cwd: str | None = None
        self._agent: str | None = None
        self._model: str | None = None
        self._mode: str | None = None
        self._turns: dict[str, int] = {}
        self._prompt: ev.UserMessage | None = None
        self._calls: dict[str, _Call] = {}
        self._by_event: dict[str, _Call] = {}
        self._by_request: dict[str, _Call] = {}
        self._known: dict[str, str] = {}
        """The whole texts of files, as the last edits left them."""
        self._reads: dict[str, str] = {}
        """The files that are being read, by call."""
        self._waiting: list[tuple[_Call, ev.ToolResult] | tuple[str, str]] = []
        """The edits, and the files that were read, in order."""

    def read(self, events: Iterable[ev.Event]) -> Iterator[Edit]:
        """Yields the edits of a whole session. An edit is made when all streams that report its call are read."""
        for event in events:
            self._see(event)
        for call, result in self._waiting:
            if isinstance(call, str):
                self._known[call] = cast("str", result)
            else:
                yield from self._edits(call, cast("ev.ToolResult", result))
        self._waiting.clear()

    def _see(self, event: ev.Event) -> None:
        if event.replay:
            self._see_again(event)
            return
        match event:
            case ev.ToolCall(payload=payload) if payload.kind == "edit":
                call = _Call(event, self._turn(event), self._prompt, self._mode, self._model, inputs=[payload])
                self._calls[payload.tool_call_id] = self._by_event[event.id] = call
            case ev.ToolCall(payload=payload) if isinstance(asked := tools.tool_input(payload), tools.ReadFile):
                self._reads[payload.tool_call_id] = self._absolute(asked.path)
            case ev.ToolResult(payload=result) if result.tool_call_id in self._reads:
                if (text := _whole_text(as_object(result.result))) is not None:
                    self._waiting.append((self._reads[result.tool_call_id], text))
            case ev.ToolProgress(payload=progress) if progress.tool_call_id in self._calls:
                self._calls[progress.tool_call_id].shown += _diffs(progress.content)
            case ev.ToolResult(payload=result) if result.tool_call_id in self._calls:
                call = self._calls[result.tool_call_id]
                if not call.results:
                    self._waiting.append((call, event))
                call.results.append(result)
                self._by_event[event.id] = call
            case ev.ControlRequest(payload=asked) if asked.method == WRITE_METHOD:
                self._see_written(as_object(asked.params))
            case ev.PermissionRequest(payload=asked) if asked.tool_call_id in self._calls:
                call = self._by_request[asked.request_id] = self._calls[asked.tool_call_id]
                call.asked = event
            case ev.PermissionResponse(payload=answer) if answer.request_id in self._by_request:
                self._by_request[answer.request_id].decided = event
            case _:
                self._see_setting(event)

    def _see_written(self, params: dict[str, Any]) -> None:
        path, content = as_text(params.get("path")), as_text(params.get("content"))
        for call in self._calls.values():
            if not call.results and path is not None and content is not None:
                call.written[path] = content

    def _see_again(self, event: ev.Event) -> None:
        """Another stream tells what is known already: perhaps it tells more."""
        call = self._by_event.get(event.same_as or "")
        if call is None:
            return
        match event:
            case ev.ToolCall(payload=payload):
                call.inputs.append(payload)
            case ev.ToolResult(payload=result):
                call.results.append(result)
            case _:
                pass

    def _see_setting(self, event: ev.Event) -> None:
        match event:
            case ev.TurnStart() if ev.is_main_agent(event):
                self._turns.setdefault(event.turn_id or "", len(self._turns) + 1)
            case ev.UserMessage(payload=said) if said.author == "human" and ev.is_main_agent(event):
                self._prompt = event
            case ev.SessionInit(payload=init) if ev.is_main_agent(event):
                self._cwd = init.cwd or self._cwd
                self._agent = init.agent_id or self._agent
                self._model = init.model or self._model
                self._mode = init.permission_mode or self._mode
            case ev.SessionLifecycle(payload=life) if life.workspace is not None:
                self._cwd = life.workspace.cwd or self._cwd
            case ev.ConfigurationChange(payload=change) if change.subtype != "refused":
                self._model = change.model or self._model
                self._mode = change.permission_mode or self._mode
            case _:
                pass

    def _turn(self, event: ev.Event) -> int | None:
        return self._turns.get(event.turn_id or "", len(self._turns) or None)

    def _edits(self, call: _Call, result: ev.ToolResult) -> Iterator[Edit]:
        if not _succeeded(call):
            return
        event = call.event
        for change in file_changes(call):
            _take_written(change, call.written.get(self._absolute(change.path)))
            edit = Edit(
                session=self._session or event.session_id,
                seq=event.seq,
                path=self._absolute(change.path),
                change=change.change,
                old_path=None if change.old_path is None else self._absolute(change.old_path),
                turn=call.turn,
                prompt_seq=None if call.prompt is None else call.prompt.seq,
                prompt=None if call.prompt is None else call.prompt.payload.text[:PROMPT_CHARACTERS],
                tool=event.payload.tool_name,
                call=event.payload.tool_call_id,
                agent=self._agent or event.source,
                model=call.model,
                timestamp=result.timestamp if result.timestamp >= EARLIEST_CALENDAR_MS else None,
                permission=_permission(call),
                hunks=change.hunks,
                before=change.before,
                after=change.after,
            )
            self._complete(edit, change)
            yield edit

    def _absolute(self, path: str) -> str:
        if self._cwd is None or path.startswith("/") or path[1:3] in (":\\", ":/"):
            return path
        return f"{self._cwd.rstrip('/')}/{path.removeprefix('./')}"

    def _complete(self, edit: Edit, change: FileChange) -> None:
        """Adds what follows from the texts that the record has shown before."""
        known, replacements = self._known.pop(edit.old_path or edit.path, None), change.replacements
        if change.is_shown and known is not None and edit.before is not None and edit.before != known and edit.before in known:
            replacements, edit.before, edit.after = [tools.Replacement(edit.before, edit.after or "")], None, None
        if change.is_trimmed:
            whole = None if known is None else indent_hunks(edit.hunks, known, ())
            sources = [text for piece in replacements for text in (piece.old, piece.new)]
            edit.hunks = whole or indent_hunks(edit.hunks, None, sources) or []
            known = known if whole else None
        complete_edit(edit, known, replacements if not edit.hunks else [])
        if edit.detail == "fragments":
            edit.replacements = replacements
        if edit.after is not None and edit.change != "delete":
            self._known[edit.path] = edit.after


def _whole_text(result: dict[str, Any]) -> str | None:
    """The text of a file, if a tool that read it has shown all of it. OpenCode leaves out the last line end."""
    shown = as_object(as_object(result.get("metadata")).get("display"))
    is_whole = shown.get("type") == "file" and shown.get("lineStart") == 1 and shown.get("lineEnd") == shown.get("totalLines")
    text = as_text(shown.get("text"))
    return f"{text}\n" if text and is_whole and shown.get("truncated") is False else None


def complete_edit(edit: Edit, known: str | None, replacements: list[tools.Replacement] | None = None) -> None:
    """Adds the texts before and after an edit as far as they follow from each other, or from the text that is known to be before it."""
    if edit.change == "add" and edit.before is None:
        edit.before = ""
    if edit.change == "delete":
        edit.before, edit.after = known if edit.before is None else edit.before, ""
        return
    if edit.before is None and edit.after is not None and edit.hunks:
        edit.before = reverse_hunks(edit.after, edit.hunks)
    edit.before = known if edit.before is None else edit.before
    if replacements and not edit.hunks:
        edit.hunks = [_fragment(one) for one in replacements]
    if edit.before is None or edit.after is not None:
        return
    after = _replaced(edit.before, replacements) if replacements else apply_hunks(edit.before, edit.hunks) if edit.hunks else None
    if after is None and edit.old_path is not None and not edit.hunks:
        after = edit.before
    edit.after = after
    if after is None:
        edit.before = None  # someone else has changed the file since


def read_edits(events: Iterable[ev.Event], session: str = "") -> list[Edit]:
    """Returns the edits of a session. Give it all events, replays included, or those of `EDIT_TYPES`."""
    return list(EditReader(session).read(events))


def _succeeded(call: _Call) -> bool:
    result = call.results[0]
    is_denied = call.decided is not None and not call.decided.allowed
    return not (is_denied or result.is_error or result.error or result.exit_code)


def _permission(call: _Call) -> Permission:
    if call.asked is None:
        return Permission(mode=call.mode)
    decided = call.decided
    return Permission(call.asked.seq, None if decided is None else decided.seq, None if decided is None else decided.payload.by, call.mode)


def _diffs(content: list[ev.AnyBlock] | None) -> list[ev.DiffBlock]:
    return [block for block in content or [] if isinstance(block, ev.DiffBlock)]


# --------------------------------------------------------------------------------------------------------------------
# What a call says about files


def file_changes(call: _Call) -> list[FileChange]:
    """Returns what a call changed: as the agent's result has it, else as a change was shown, else as the input asks for it."""
    asked = list(_requested_changes(call))
    for result in call.results:
        found = _in_result(as_object(result.result), asked)
        if found:
            return found
    for blocks in (*(_diffs(result.content) for result in call.results), call.shown):
        if blocks:
            return _merged([_of_block(block, asked) for block in blocks], asked)
    if call.asked is not None:
        _take_shown_diff(as_object(call.asked.payload.input), asked)
    return asked


def _merged(found: list[FileChange], asked: list[FileChange]) -> list[FileChange]:
    """Changes as they were shown, with what only the input says: that a file is moved, added, or deleted."""
    for change in found:
        other = _same_file(change, asked)
        if other is None:
            continue
        if change.is_shown and other.hunks and all(hunk.start is not None for hunk in other.hunks):
            change.before, change.after, change.hunks = None, None, other.hunks
        if other.old_path is not None and change.old_path is None:
            change.old_path = other.old_path if change.path.endswith(other.path) else change.path
            change.path = change.path if change.path.endswith(other.path) else _beside(change.path, other)
        if other.change != "change":
            change.change = other.change
            change.before = other.before if change.before is None else change.before
        if change.change == "delete" and not change.after:
            change.after = None
    return found


def _beside(path: str, asked: FileChange) -> str:
    """Where a file is moved to, whose old path is known in full."""
    old = asked.old_path or ""
    return asked.path if asked.path.startswith("/") or not path.endswith(old) else path[: len(path) - len(old)] + asked.path


def _same_file(change: FileChange, among: list[FileChange]) -> FileChange | None:
    def is_same(path: str, other: str | None) -> bool:
        return other is not None and (path == other or path.endswith(f"/{other.removeprefix('./')}"))

    return next((one for one in among if is_same(change.path, one.path) or is_same(change.path, one.old_path)), None)


def _in_result(result: dict[str, Any], asked: list[FileChange]) -> list[FileChange]:
    """What the results of some tools say themselves."""
    path = as_text(result.get("filePath")) or as_text(result.get("notebook_path"))
    if path is not None and "structuredPatch" in result:
        return [_of_claude(path, result)]
    before, after = as_text(result.get("original_file")), as_text(result.get("updated_file"))
    if path is not None and before is not None and after is not None:
        return [FileChange(path, before=before, after=after)]
    before, after = as_text(result.get("originalContent")), as_text(result.get("newContent"))
    if path is not None and before is not None and after is not None:
        is_new = not before and "@@ -0,0 " in (as_text(result.get("fileDiff")) or "")
        return [FileChange(path, "add" if is_new else "change", before=before, after=after)]
    if (detailed := as_text(result.get("detailedContent"))) is not None and len(asked) == 1 and "@@" in detailed:
        is_new = "\ncreate file mode" in detailed
        hunks = [] if is_new else parse_diff(detailed)
        return [FileChange(asked[0].path, "add" if is_new else "change", after=asked[0].after, hunks=hunks)]
    return _of_opencode(as_object(result.get("metadata")), asked)


def _of_opencode(about: dict[str, Any], asked: list[FileChange]) -> list[FileChange]:
    """OpenCode says whether the file was there, and shows the difference."""
    if len(asked) != 1:
        return []
    diff = as_text(about.get("diff")) or as_text(as_object(about.get("filediff")).get("patch"))
    if about.get("exists") is False:
        return [FileChange(asked[0].path, "add", after=asked[0].after)]
    if diff is not None and "@@" in diff:
        one = asked[0]
        return [FileChange(one.path, after=one.after, hunks=parse_diff(diff), replacements=one.replacements, is_trimmed=one.after is None)]
    return []


def _of_claude(path: str, result: dict[str, Any]) -> FileChange:
    before = next((text for name in _ORIGINALS if (text := as_text(result.get(name))) is not None), None)
    patch = [as_object(one) for one in as_list(result.get("structuredPatch"))]
    hunks = [hunk for one in patch if (hunk := _structured(one)).lines]
    after = as_text(result.get("content"))
    if result.get("type") == "create" or (before is None and not hunks and after is not None):
        return FileChange(path, "add", before="", after=after)
    edits = [as_object(one) for one in as_list(result.get("edits"))] or [result]
    pieces = [piece for one in edits if (piece := _replacement(one)) is not None]
    if before is None:
        return FileChange(path, after=after, hunks=hunks)
    grown = sum(len(hunk.new) - len(hunk.old) for hunk in hunks)
    if after is None and pieces:
        texts = (_replaced(before, pieces, cut) for cut in (False, True))
        after = next((text for text in texts if text is not None and (not hunks or _grew(before, text) == grown)), None)
    if after is None:
        after = apply_hunks(before, hunks)
    return FileChange(path, before=before, after=after, hunks=hunks)


_ORIGINALS = ("originalFile", "originalFileContents")


def _grew(before: str, after: str) -> int:
    return len(split_lines(after)) - len(split_lines(before))


def _structured(patch: dict[str, Any]) -> Hunk:
    rows = [row for row in as_list(patch.get("lines")) if isinstance(row, str)]
    start, count = patch.get("oldStart"), patch.get("oldLines")
    header = f"@@ -{start},{count} +{patch.get('newStart')},{patch.get('newLines')} @@"
    return next(iter(parse_diff("\n".join([header, *rows, ""]))), Hunk([]))


def _replacement(fields: dict[str, Any]) -> tools.Replacement | None:
    old, new = (next((fields[name] for name in names if isinstance(fields.get(name), str)), None) for names in _PIECES)
    everywhere = bool(fields.get("replaceAll") or fields.get("replace_all"))
    return None if old is None or new is None else tools.Replacement(cast("str", old), cast("str", new), everywhere)


_PIECES = (("oldString", "old_string"), ("newString", "new_string"))


def _replaced(text: str, pieces: list[tools.Replacement], cut: bool = False) -> str | None:
    """Returns the text with all pieces replaced; None if one is not there. ``cut``: a line that is left empty goes, too."""
    for piece in pieces:
        old = f"{piece.old}\n" if cut and not piece.new and not piece.old.endswith("\n") and f"{piece.old}\n" in text else piece.old
        if old not in text or not old:
            return None
        text = text.replace(old, piece.new, -1 if piece.everywhere else 1)
    return text


def _fragment(piece: tools.Replacement) -> Hunk:
    return Hunk([f"-{line}" for line in split_lines(piece.old)] + [f"+{line}" for line in split_lines(piece.new)])


def _of_block(block: ev.DiffBlock, asked: list[FileChange]) -> FileChange:
    if block.diff is not None:
        is_new = "@@ -0,0 " in block.diff and not block.old_text
        whole = block.new_text is not None and block.old_text is not None
        return FileChange(
            block.path,
            "add" if is_new else "change",
            before=block.old_text if whole else None,
            after=block.new_text,
            hunks=[] if whole or (is_new and block.new_text is not None) else parse_diff(block.diff),
        )
    if block.new_text is None:
        return FileChange(block.path, "delete", before=block.old_text)
    if not block.old_text:
        return FileChange(block.path, "add" if block.old_text == "" else "change", after=block.new_text)
    pieces = [piece for one in asked for piece in one.replacements]
    if any(piece.old == block.old_text for piece in pieces) or not block.old_text.endswith("\n"):
        other = _same_file(FileChange(block.path), asked)
        return FileChange(block.path, replacements=pieces if other is not None else [tools.Replacement(block.old_text, block.new_text)])
    return FileChange(block.path, before=block.old_text, after=block.new_text, is_shown=True)


def _take_shown_diff(shown: dict[str, Any], asked: list[FileChange]) -> None:
    """Takes the difference that a person was asked about: of a file that is written whole, only this may show the text before."""
    diff = as_text(shown.get("diff")) or as_text(as_object(shown.get("metadata")).get("diff"))
    if diff is None or len(asked) != 1 or asked[0].after is None:
        return
    if "@@ -0,0 " in diff or "\ncreate file mode" in diff:
        asked[0].change, asked[0].before = "add", ""
    else:
        asked[0].before = reverse_hunks(asked[0].after, parse_diff(diff))


# --------------------------------------------------------------------------------------------------------------------
# What its input asks for


def _take_written(change: FileChange, written: str | None) -> None:
    """Takes the text that the agent's client was asked to write. With the piece that was replaced, it tells the text before."""
    if written is None or change.after is not None:
        return
    before = written
    for piece in reversed(change.replacements):
        before = before.replace(piece.new, piece.old) if piece.new and before.count(piece.new) == 1 else None
        if before is None:
            return
    change.after, change.before = written, before if change.replacements else change.before


def _requested_changes(call: _Call) -> Iterator[FileChange]:
    args = [payload for payload in call.inputs if payload.args]
    if call.decided is not None and call.decided.payload.updated_input is not None:
        changed = ev.ToolCallPayload("", call.event.payload.tool_name, call.decided.payload.updated_input, "edit")
        yield from _changes_in_input(changed)
        return
    for payload in args:
        found = list(_changes_in_input(payload))
        if found:
            yield from found
            return


def _changes_in_input(payload: ev.ToolCallPayload) -> Iterator[FileChange]:
    match tools.tool_input(payload):
        case tools.EditFile(path=path, old=old, new=new, everywhere=everywhere):
            if old:
                yield FileChange(path, replacements=[tools.Replacement(old, new, everywhere)])
            else:
                yield FileChange(path, "add", before="", after=new)
        case tools.EditPlaces(path=path, edits=edits):
            yield FileChange(path, replacements=edits)
        case tools.WriteFile(path=path, content=content):
            yield FileChange(path, after=content)
        case tools.DeleteFile(path=path):
            yield FileChange(path, "delete")
        case tools.Patch(patch=patch) if patch is not None and "*** " in patch:
            yield from map(_of_patch, parse_patch(patch))
        case _:
            yield from _listed(as_object(payload.args))


def _of_patch(patch: FilePatch) -> FileChange:
    if patch.change == "add":
        return FileChange(patch.path, "add", before="", after="".join(line for hunk in patch.hunks for line in hunk.new))
    path, old_path = (patch.path, None) if patch.moved_to is None else (patch.moved_to, patch.path)
    return FileChange(path, "delete" if patch.change == "delete" else "change", old_path, hunks=patch.hunks)


def _listed(fields: dict[str, Any]) -> Iterator[FileChange]:
    """Codex lists changes by path, ACP has them among the content of a call."""
    listed: Any = fields.get("changes")
    for path, change in [*as_object(listed).items(), *((as_object(one).get("path"), one) for one in as_list(listed))]:
        about = as_object(change)
        if isinstance(path, str):
            yield _of_listed(path, about)
    for about in (as_object(one) for one in as_list(fields.get("content"))):
        path, before, after = about.get("path"), as_text(about.get("oldText")), as_text(about.get("newText"))
        if isinstance(path, str) and about.get("type") == "diff":
            yield _of_block(ev.DiffBlock(path, before, after), [])


def _of_listed(path: str, about: dict[str, Any]) -> FileChange:
    kind = as_object(about.get("kind"))
    word = as_text(about.get("type")) or as_text(kind.get("type")) or as_text(about.get("kind")) or "update"
    text = next((found for name in ("content", "diff", "unified_diff") if (found := as_text(about.get(name))) is not None), None)
    moved = as_text(about.get("move_path")) or as_text(kind.get("move_path"))
    if word == "add":
        return FileChange(path, "add", before="", after=text)
    if word == "delete":
        return FileChange(path, "delete", before=text)
    return FileChange(moved or path, "change", path if moved else None, hunks=parse_diff(text or ""))
