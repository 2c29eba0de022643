"""Gemini CLI's own files: ``~/.gemini/tmp/<project>/chats/session-*.jsonl`` and, from older versions, ``session-*.json``.

A record replaces the one with the same id, so only what is new in it is said. What ends a turn: README.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from hansard import events as ev
from hansard.adapters.authors import author_of
from hansard.adapters.base import Adapter, Context
from hansard.adapters.fields import parse_iso_ms, place_in_message
from hansard.adapters.framing import DetectingFramer
from hansard.adapters.gemini import wire
from hansard.adapters.gemini.errors import classify
from hansard.adapters.gemini.fields import plan_of, tool_kind
from hansard.adapters.gemini.parts import parts_of, response_of, result_blocks, server_of, text_of, to_blocks
from hansard.adapters.gemini_parts import CANCELLED_COMMAND, REFUSED, FunctionResponse, exit_code
from hansard.adapters.usage import make_usage
from hansard.events.lenient import as_object
from hansard.events.usage_totals import Uncounted

_CONTEXT = ("<session_context>", "<state_snapshot>")
_FOLDERS = re.compile(r"^- \*\*Workspace Directories:\*\*\n((?:  - .+\n)+)", re.MULTILINE)
"""The part of the context that names the folders."""
_LOOP = "System: Potential loop detected."


def only_folder(folders: list[str]) -> str | None:
    """Of several, the file does not name the one in which the program was started."""
    return folders[0] if len(folders) == 1 else None


class GeminiChat(Adapter):
    """A session as Gemini CLI wrote it down."""

    formats = ("gemini-chat",)
    source = "gemini"
    uncounted: ClassVar[Uncounted] = {"": frozenset({"compaction"})}
    framer = DetectingFramer
    wire = wire.Record

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.session: str | None = None
        self.has_folder = False
        self.model: str | None = None
        self.subagent = False
        self.history: dict[str, str] = {}
        self.thought: dict[str | None, int] = {}
        self.texts: dict[str | None, str] = {}
        self.heard: set[str] = set()
        self.counted: set[str | None] = set()
        self.called: set[str] = set()
        self.returned: set[str] = set()
        self._new_turn()

    def _new_turn(self) -> None:
        self.prompt: str | None = None
        self.answered = False
        self.reported = False
        self.taken_back = False
        self.failure: ev.ErrorInfo | None = None

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """The header, alone in its line or with all messages in it."""
        return "sessionId" in message and "projectHash" in message and "startTime" in message

    def time_of(self, message: Any) -> int | None:
        """A message has its time, the header that of the start; a patch says the time of the change inside."""
        return parse_iso_ms(message.timestamp or message.start_time)

    def translate(self, message: wire.Record) -> Iterable[ev.Event]:
        if message.rewind_to is not None:
            return self.rewound(message.rewind_to)
        if message.patch is not None:
            return self.patched(message.patch)
        if message.type is not None:
            return self.message(message)
        if message.session_id is not None:
            return self.header(message)
        return (ev.raw(reason="unknown_type"),)

    def end_of_stream(self) -> Iterator[ev.Event]:
        """The last turn is over if it was answered; else nobody knows what became of it."""
        if self.turn is not None and (
            self.answered or self.open.interrupted or self.open.denial or self.taken_back or self.failure is not None
        ):
            yield from self.settle()

    # ---- header, patches

    def header(self, record: wire.Record) -> Iterator[ev.Event]:
        yield from self.settle()
        self.history.clear()
        self.subagent = record.kind == "subagent"
        if record.session_id == self.session:  # another process took the session up
            yield ev.session_lifecycle(subtype="resumed", provider_session_id=record.session_id)
        else:
            self.session = record.session_id
            folder = only_folder([path for path in record.directories or [] if isinstance(path, str)])
            self.has_folder = folder is not None
            yield ev.session_init(agent_id="gemini", provider_session_id=record.session_id, cwd=folder)
        if record.summary is not None:
            yield ev.session_lifecycle(subtype="summary", text=record.summary)
        for value in record.messages or []:
            yield from self.message_in(value)

    def patched(self, patch: dict[str, Any]) -> Iterator[ev.Event]:
        change: wire.Patch = self.read(patch, wire.Patch)
        rest = {key: value for key, value in patch.items() if key != "messages"}
        if (time := parse_iso_ms(change.last_updated)) is not None:
            self.now = time
        if change.messages is not None:
            yield from self.rewritten(change.messages)
        if change.summary is not None:
            yield ev.session_lifecycle(subtype="summary", text=change.summary)
        elif change.session_id is not None:
            yield from self.settle()
            yield ev.session_lifecycle(subtype="resumed", provider_session_id=change.session_id)
        elif change.directories is not None:
            yield ev.configuration_change(subtype="directories", options=rest)
        else:
            yield ev.session_lifecycle(subtype="updated", detail=rest)

    def rewritten(self, values: list[Any]) -> Iterator[ev.Event]:
        """The whole history anew: for context, after compression, and without a prompt that failed."""
        ids = {str(as_object(value).get("id")) for value in values}
        compressed = any(text_of(as_object(value).get("content")).startswith("<state_snapshot>") for value in values)
        gone = [known for known in self.history if known not in ids]
        if compressed and gone:
            yield ev.session_lifecycle(subtype="compacted", detail={"removed": gone})
            for known in gone:
                del self.history[known]
        else:
            yield from self.removed(gone)
        for value in values:
            yield from self.message_in(value, rewritten=True)

    def removed(self, ids: list[str]) -> Iterator[ev.Event]:
        for known in ids:
            kind = self.history.pop(known)
            yield ev.session_lifecycle(subtype="message_removed", message_id=known, detail={"type": kind})
            if known == self.prompt:
                self.taken_back = True

    def rewound(self, message_id: str) -> Iterator[ev.Event]:
        known = list(self.history)
        gone = known[known.index(message_id) :] if message_id in known else known
        yield ev.session_lifecycle(subtype="rewound", message_id=message_id, detail={"removed": gone})
        for message in gone:
            del self.history[message]

    # ---- messages

    def message_in(self, value: Any, rewritten: bool = False) -> Iterator[ev.Event]:
        message = self.read(value, wire.ChatMessage)
        if message is None or message.type is None:
            yield ev.raw(kind="message", reason="wrong_shape")
            return
        if (rewritten or message.type == "user") and self.is_known(message):  # a document has everything anew each time
            self.history[str(message.id)] = message.type
            return
        if (time := parse_iso_ms(message.timestamp)) is not None:
            self.now = time
        if rewritten and message.type == "gemini" and message.model is None:
            # words that the program puts into the model's mouth ("Got it. Thanks for the additional context!")
            self.history[str(message.id)] = message.type
            self.heard.add(str(message.id))
            yield ev.status_change(status="history_message", detail={"id": message.id, "content": message.content})
            return
        yield from self.message(message)

    def is_known(self, message: wire.ChatMessage) -> bool:
        """Said before, by identity. The context has one id in all sessions, so there the words decide."""
        if message.id not in self.heard:
            return False
        text = text_of(message.content)
        return not text.startswith(_CONTEXT) or self.texts.get(message.id) == text

    def message(self, message: wire.ChatMessage) -> Iterable[ev.Event]:
        if message.id is not None:
            self.history[message.id] = str(message.type)
            self.heard.add(message.id)
        match message.type:
            case "gemini":
                return self.gemini(message)
            case "user":
                return self.user(message)
            case "error":
                self.failure = classify(text_of(message.content))
                return (ev.Error(payload=self.failure),)
            case "info" | "warning":
                return self.notice(message)
            case _:
                return (ev.raw(kind=message.type, reason="unknown_type"),)

    def notice(self, message: wire.ChatMessage) -> Iterator[ev.Event]:
        text = text_of(message.content)
        if message.type == "info" and classify(text).code == "aborted" and not self.open.interrupted:
            yield ev.interrupt(reason="user_cancel")
        yield ev.status_change(status=str(message.type), detail={"text": text})

    def user(self, message: wire.ChatMessage) -> Iterator[ev.Event]:
        answers = [part for part in parts_of(message.content) if "functionResponse" in as_object(part)]
        for part in answers:
            yield from self.function_response(as_object(part)["functionResponse"])
        if answers:
            return
        blocks = to_blocks(message.content)
        text = text_of(message.content)
        self.texts[message.id] = text
        author = author_of(text, nested=self.subagent)
        if author != "harness":
            yield from self.settle()
            yield from self.start_turn("system" if self.subagent else "user")
            self.prompt = message.id
            if message.display_content is not None:
                text = text_of(message.display_content)  # what was typed; the content has what it refers to
        if text.startswith(_LOOP):
            self.failure = classify(text)
        plain = len(blocks) == 1 and isinstance(blocks[0], ev.TextBlock) and blocks[0].text == text
        yield ev.user_message(
            text=text,
            content=None if plain else blocks,
            author=author,
            message_id=message.id,
        )
        if author == "harness" and not self.has_folder and not self.subagent:
            yield from self.folder_in(text)

    def folder_in(self, text: str) -> Iterator[ev.Event]:
        """The header may not name the folder. Then the context that the program gives to the model does."""
        named = _FOLDERS.search(text)
        folder = None if named is None else only_folder([line.removeprefix("  - ") for line in named[1].rstrip("\n").split("\n")])
        if folder is not None:
            self.has_folder = True
            yield ev.session_lifecycle(subtype="folder", workspace=ev.Workspace(cwd=folder))

    def function_response(self, value: Any) -> Iterator[ev.Event]:
        """What the model was told of a call: an echo of the call's own record, unless that was never written (a refusal)."""
        response = self.read(value, FunctionResponse)
        if response is None or response.id is None:
            yield ev.raw(kind="functionResponse", reason="wrong_shape")
            return
        if response.id in self.returned:
            yield ev.status_change(status="function_response", detail={"toolCallId": response.id})
            return
        self.returned.add(response.id)
        if response.id not in self.called:  # a call that was refused, or that no tool answers to: only its response is written down
            self.called.add(response.id)
            made = ev.tool_call(tool_call_id=response.id, tool_name=str(response.name), args=None, kind=tool_kind(str(response.name)))
            made.synthetic = True
            yield made
        failed = as_object(response.response).get("error")
        if isinstance(failed, str) and failed.endswith(REFUSED):
            self.open.denial = "denied"
        yield ev.tool_result(
            tool_call_id=response.id,
            tool_name=response.name,
            result=response.response,
            is_error=failed is not None,
            error=failed if isinstance(failed, str) else None,
        )

    def gemini(self, message: wire.ChatMessage) -> Iterator[ev.Event]:
        """An answer. It always has ``content``; empty means that the model said nothing beside its calls."""
        if self.turn is None:
            yield ev.turn_start(trigger="system")
        text = text_of(message.content)
        news: list[ev.Event] = [*self.thoughts(message, message.thoughts)] if message.thoughts else []
        if text != "" and (message.id is None or self.texts.get(message.id) != text):
            self.texts[message.id] = text
            news.append(place_in_message(ev.assistant_done(text=text), message.id, len(message.thoughts or ())))
        if message.tokens is not None and (message.id is None or message.id not in self.counted):
            self.counted.add(message.id)
            news.append(place_in_message(ev.usage(scope="message", usage=usage_of(message.tokens), model=message.model), message.id))
        yield from news
        calls = message.tool_calls or []
        for index, value in enumerate(calls):
            call = self.read(value, wire.Call)
            if call is None:
                yield self.unknown_block(value)
            else:
                yield from self.call(call, message, index)
        if not news and not calls:
            yield place_in_message(ev.status_change(status="message", detail={"model": message.model}), message.id)
        self.answered = self.reported or (not calls and text != "")
        if self.answered:
            self.failure = None

    def thoughts(self, message: wire.ChatMessage, thoughts: list[wire.Thought]) -> Iterator[ev.Event]:
        told = 0 if message.id is None else self.thought.get(message.id, 0)
        for index, thought in enumerate(thoughts):
            if index >= told:
                done = place_in_message(ev.thinking_done(text=thought_text(thought)), message.id, index)
                done.timestamp = parse_iso_ms(thought.timestamp) or self.now
                yield done
        self.thought[message.id] = max(told, len(thoughts))

    # ---- tools

    def call(self, call: wire.Call, message: wire.ChatMessage, index: int) -> Iterator[ev.Event]:
        if call.id not in self.called:
            self.called.add(call.id)
            made = ev.tool_call(
                tool_call_id=call.id,
                tool_name=call.name,
                args=call.args,
                kind=tool_kind(call.name),
                title=call.description,
                server=server_of(call),
            )
            yield place_in_message(made, message.id, len(message.thoughts or []) + 1 + index)
            yield from plan_of(call.name, call.args)
            if call.agent_id is not None:
                yield ev.tool_progress(tool_call_id=call.id, tool_name=call.name, status="agent", detail={"agentId": call.agent_id})
        if call.result is not None and call.id not in self.returned:
            self.returned.add(call.id)
            yield from self.call_over(call)

    def call_over(self, call: wire.Call) -> Iterator[ev.Event]:
        response = response_of(call)
        failed = as_object(response).get("error")
        output = as_object(response).get("output")
        over = ev.tool_result(
            tool_call_id=call.id,
            result=response,
            content=result_blocks(call),
            is_error=None if call.status is None else call.status != "success",
            error=failed if isinstance(failed, str) else None,
            exit_code=exit_code(call.name, output),
        )
        self.reported = self.reported or (self.subagent and call.name == "complete_task" and call.status == "success")
        over.timestamp = parse_iso_ms(call.timestamp) or self.now
        yield over
        stopped = isinstance(output, str) and CANCELLED_COMMAND in output
        if (stopped or call.status == "cancelled") and not self.open.interrupted:
            yield ev.interrupt(reason="user_cancel")

    # ---- the end of a turn

    def settle(self) -> Iterator[ev.Event]:
        """Close the turn before, now that something later proves it is over."""
        if self.turn is not None:
            if self.answered or (self.open.denial is not None and not self.open.interrupted):
                status, _ = self.open.end_status("completed")
                yield from self.end_turn(status)
            elif self.open.interrupted:
                yield from self.end_turn("interrupted", error=ev.ErrorInfo(code="aborted", message="cancelled by the user"))
            elif self.failure is not None:
                yield from self.end_turn("error", error=self.failure)
            elif self.taken_back:
                # geminiChat.ts takes a prompt back when its request fails or is cancelled; which of the two is not written down
                error = ev.ErrorInfo(code="unknown", message="the prompt was taken out of the history, unanswered")
                yield from self.end_turn("lost", error=error)
            else:
                yield from self.end_turn("lost")
        self._new_turn()


def thought_text(thought: wire.Thought) -> str:
    """The thought as the program itself writes it where it shows thoughts (acpClient.ts): subject in bold, then the rest."""
    said = [] if thought.subject is None or thought.subject == "" else [f"**{thought.subject}**"]
    if thought.description is not None:
        said.append(thought.description)
    return "\n".join(said)


def usage_of(tokens: wire.Tokens) -> ev.Usage:
    """Tokens of one request."""
    return make_usage(tokens.input, tokens.output, cache_read=tokens.cached, reasoning=tokens.thoughts)
