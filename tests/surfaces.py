"""What each surface of hansard says about a session: prompts, answers, calls, results, ends, error codes, tokens, and costs.

A reader takes what one surface shows (a transcript, a document, an export) and returns the facts of `tests.comparison.account` under the
same names, as far as the surface has them. A reader imports nothing that the surface is made with.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec

from hansard import events as ev
from hansard.cli.verbs.show import transcript
from hansard.projections import project
from hansard.projections.output import encode
from hansard.projections.reading import AnyItem, Failure, Message, Reader, ToolUse, TurnEnded
from hansard.projections.reading_order import ReadingOrder
from hansard.projections.text import block_text
from hansard.store.catalog_rows import FOLD_TYPES, CallRow, Folds, Row, TurnRow, usage_values
from tests.comparison import SHORT, Json, Text, Told, document_of, letters

# --------------------------------------------------------------------------------------------------------------------
# What a person reads


def read_items(events: list[ev.Event]) -> Told:
    """The items that the terminal and Markdown draw."""
    told: Told = {
        name: []
        for name in (
            "prompts",
            "begun answers",
            "cut",
            "shown calls",
            "failures",
            "ends",
            "shown codes",
            "repeated errors",
            "shown tokens",
            "shown costs",
        )
    }
    errors: list[str] = []
    for agent, item in _items(events):
        if item.depth > 0:
            continue
        match item:
            case Message(kind="user", notes=notes) if "spoken" not in notes:
                told["prompts"].append(item.text)
            case Message(kind="agent", speaker=speaker, notes=notes) if (
                speaker == agent and item.text and not {"spoken", "structured output", "error"} & {*notes}
            ):
                told["begun answers"].append(item.text)
                told["cut"] += [item.text] * ("interrupted" in notes)
            case ToolUse(call=call):
                told["shown calls"] += [(call.payload.tool_call_id, call.payload.tool_name)] * (item.part != "result")
                told["failures"] += [call.payload.tool_call_id] * (call.failed and item.part in ("whole", "result"))
            case Failure():
                errors.append(item.error.code)
                told["repeated errors"] += [text for text in told["begun answers"][-1:] if _is_same_error(text, item.message)]
            case TurnEnded():
                told["ends"].append(item.status)
                errors += [note.split(":")[0] for note in item.notes if ": " in note]
                told["shown codes"] += errors[-1:] if item.status not in ("completed", "interrupted") else []
                told["shown tokens"].append(_tokens_in(item.facts))
                errors = []
                told["shown costs"].append(next((fact for fact in item.facts if fact.startswith("$")), None))
            case _:
                pass
    return told | {"failures": sorted(told["failures"])}


def _is_same_error(text: str, message: str) -> bool:
    said, error = letters(text), letters(message)
    return len(error) > SHORT and len(said) > SHORT and (said in error or error in said)


def _items(events: list[ev.Event]) -> Iterator[tuple[str, AnyItem]]:
    """The items one by one (a call that is shown before and after its subagent is one object that changes), and who the agent is."""
    reader, order = Reader(), ReadingOrder()
    for ready in chain(chain.from_iterable(map(order.feed, events)), order.finish()):
        yield from ((reader.agent, item) for item in reader.read(ready))
    yield from ((reader.agent, item) for item in reader.finish())


def _tokens_in(facts: list[str]) -> tuple[int, int] | None:
    found = next((found for fact in facts if (found := re.fullmatch(r"([\d,]+) tokens? in, ([\d,]+) out", fact))), None)
    return None if found is None else (int(found[1].replace(",", "")), int(found[2].replace(",", "")))


def read_transcript(events: list[ev.Event]) -> Told:
    """The lines of `hansard show`, and of `hansard show --json`."""
    lines = [line for line in transcript(lambda: iter(events), fold=0, once=True) if line.depth == 0]
    speaker, said = "", {"user": list[str](), "agent": list[str]()}
    for line in lines:
        if line.tone in said and line.text.endswith(":"):
            speaker = line.tone
        elif line.tone == "" and line.text.startswith("  ") and speaker:
            said[speaker].append(line.text)
    uses = [line for line in lines if line.tone in ("tool", "bad") and line.text.startswith(("▸ ", "◂ "))]
    return {
        "prompts": Text("\n".join(said["user"])),
        "begun answers": Text("\n".join(said["agent"])),
        "call count": sum(line.text.startswith("▸ ") for line in uses),
        "failure count": sum(line.tone == "bad" for line in uses),
        **_endings(line.text for line in lines),
    }


def _endings(lines: Iterable[str]) -> Told:
    """What the lines at the ends of turns say, and the errors before them."""
    told: Told = {name: [] for name in ("ends", "shown codes", "shown tokens", "shown costs")}
    errors: list[str] = []
    for line in lines:
        end, error = END.match(line), re.match(r"✗ (\w+)(?: [^:]+)?(?::|$)", line)
        if end is not None:
            facts = line.split(" · ")
            errors += [fact.split(":")[0] for fact in facts[1:] if re.match(r"\w+: ", fact)]
            told["ends"].append(end[1])
            told["shown codes"] += errors[-1:] if end[1] not in ("completed", "interrupted") else []
            told["shown tokens"].append(_tokens_in(facts))
            told["shown costs"].append(next((fact for fact in facts if re.fullmatch(r"\$[\d.]+", fact)), None))
            errors = []
        elif error is not None:
            errors.append(error[1])
    return told


END = re.compile(r"[✓✗■] (completed|interrupted|error|refused|max_tokens|denied|lost)(?: · |$)")


def read_markdown(events: list[ev.Event]) -> Told:
    """The page of Markdown: headings name the speakers; what somebody said is quoted or fenced."""
    lines = "".join(project(events, "markdown")).split("\n")
    speaker, fence, is_tool, said = "agent", "", False, {"User": list[str](), "agent": list[str]()}
    for line in lines:
        if fence or line.startswith("```"):
            fence = "" if line == fence else fence or re.match("`+", line)[0]  # pyright: ignore[reportOptionalSubscript]
        elif line.startswith("#"):
            speaker, is_tool = "User" if line.startswith("### User") else "agent", False
        elif line.startswith(("**", "`", "*")):
            is_tool = True
        elif line.startswith("> "):
            is_tool = False
        if (fence and not is_tool) or (not fence and line.startswith("> ")):
            said[speaker].append(line)
    return {
        "prompts": Text("\n".join(said["User"])),
        "begun answers": Text("\n".join(said["agent"])),
        "call count": sum(line.startswith("**▸** ") for line in lines),
        **_endings(line.removeprefix("**").removesuffix("**").replace("\\", "") for line in _with_errors(lines)),
    }


def _with_errors(lines: Sequence[str]) -> Iterator[str]:
    """The lines, and each error as the terminal shows it: in Markdown, its text is fenced."""
    for number, line in enumerate(lines):
        yield f"✗ {lines[number + 3]}" if line == "**✗ Error**" else line


# --------------------------------------------------------------------------------------------------------------------
# Documents


def read_state(events: list[ev.Event]) -> Told:
    """The state: of each turn how it ended and what it used, and the session's totals."""
    state = document_of("state", events)
    turns = state["turnList"]
    return {
        "ends": [turn["status"] for turn in turns],
        "total tokens": {turn["id"]: turn["usage"] or {} for turn in turns},
        "total costs": [(turn["usage"] or {}).get("costUsd") for turn in turns],
        "cost": state["costUsd"],
        "last": _last(state),
        "last code": (state["error"] or {}).get("code"),
        "message count": state["messages"],
    }


def read_summary(events: list[ev.Event]) -> Told:
    """The summary: how many turns, the last of them, and the totals."""
    summary = document_of("summary", events)
    return {"count": summary["turns"], "cost": summary["costUsd"], "last": _last(summary), "message count": summary["messages"]}


def read_usage(events: list[ev.Event]) -> Told:
    """The usage report."""
    usage = document_of("usage", events)
    return {
        "tokens": {turn["turnId"]: turn["main"] for turn in usage["turns"]},
        "costs": [turn["main"]["costUsd"] for turn in usage["turns"]],
        "cost": usage["session"]["costUsd"],
    }


def read_tables(events: list[ev.Event]) -> Told:
    """The tables of the catalog: turns with what they used, calls with their outcomes."""
    folds, found = Folds(), dict[tuple[str, int, int], Row]()
    for number, event in enumerate(events, 1):
        if event.type in FOLD_TYPES:
            found |= folds.apply(msgspec.structs.replace(event, seq=number))  # some recordings are several files
    rows = sorted(found.values(), key=lambda row: row.seq)
    names = {number: event.payload.tool_call_id for number, event in enumerate(events, 1) if isinstance(event, ev.ToolCall)}
    turns = [row for row in rows if isinstance(row, TurnRow)]
    calls = [row for row in rows if isinstance(row, CallRow) and row.parent is None]
    used = {turn.spent.turn_id: usage_values(turn) for turn in folds.tally.finish().settled}
    return {
        "ends": [row.status for row in turns],
        "codes": [row.error_code for row in turns],
        "total tokens": {row.turn_id: used.get(row.turn_id, {}) for row in turns},
        "total costs": [used.get(row.turn_id, {}).get("cost_usd") for row in turns],
        "called": sorted((names[row.seq], row.tool) for row in calls),
        "drawn failures": sum(row.outcome in ("failed", "denied", "cancelled") for row in calls),
    }


def _last(document: Json) -> tuple[str | None, str | None]:
    """How the last turn ended, and the beginning of the last message."""
    message = document["lastMessage"]
    return document["turnStatus"], None if message is None else message["text"]


# --------------------------------------------------------------------------------------------------------------------
# Exports


def read_consumer_messages(events: list[ev.Event]) -> Told:
    """Consumer messages: a message of the agent in pieces with one id, and a ``result`` for every turn."""
    main = [one for one in project(events, "consumer-messages") if one["parent_tool_use_id"] is None]
    blocks = [block for one in main if one["type"] == "assistant" for block in one["message"]["content"]]
    texts = [block for block in blocks if block["type"] == "text" and "source" not in block]
    spoken = [one for one in main if one["type"] == "user_message"]
    ends = [one for one in main if one["type"] == "turn_end"]
    results = [one["data"] for one in main if one["type"] == "result"]
    return {
        "prompts": [one["text"] for one in spoken if one.get("author", "human") == "human"],
        "answers": [block["text"] for block in texts if block.get("phase") != "error"],
        "texts": [block["text"] for block in texts],
        "cut": [block["text"] for block in texts if block.get("interrupted")],
        "calls": [(block["id"], block["name"]) for block in blocks if block["type"] == "tool_use"],
        "results": [(one["tool_use_id"], bool(one["is_error"])) for one in main if one["type"] == "tool_result"],
        "ends": [one["status"] for one in ends],
        "codes": [one["error_code"] for one in ends],
        "reported ends": [(one["turn_id"], one["data"]["status"]) for one in main if one["type"] == "result"],
        "tokens": {one["turn_id"]: (one["data"]["usage"] or {}) for one in main if one["type"] == "result"},
        "cost so far": results[-1]["total_cost_usd"] if results else None,
    }


def read_standard_messages(events: list[ev.Event]) -> Told:
    """Standard messages: roles alone, so the harness speaks as the user. Blocks that the format does not have are told in words."""
    main = [one for one in project(events, "standard-messages") if "parentToolCallId" not in one["_original"][0]]
    return _roles(main, events) | {"known codes": [one["error"]["code"] for one in main if "error" in one]}


def read_parsed_messages(events: list[ev.Event]) -> Told:
    """Stored messages. Their ids are those of the events they begin with."""
    inner = {event.id for event in events if not ev.is_main_agent(event)}
    messages = [one for one in project(events, "messages-parsed") if one["id"] not in inner]
    return _roles([json.loads(one["content"]) for one in messages], events)


def _roles(messages: list[Json], events: list[ev.Event]) -> Told:
    """Messages with a role and a list of blocks."""
    words = Counter(block_words(events))
    blocks = [(one["role"], block) for one in messages for block in one["content"]]
    texts = [block["text"] for role, block in blocks if role == "assistant" and block["type"] == "text"]
    return {
        "inputs": Text("\n".join(map(_input_text, (block for role, block in blocks if role == "user")))),
        "texts": list(_without(texts, words)),
        "calls": [(block["id"], block["name"]) for _, block in blocks if block["type"] == "tool_use"],
        "results": [(block["tool_use_id"], bool(block.get("is_error"))) for _, block in blocks if block["type"] == "tool_result"],
    }


def _input_text(block: Json) -> str:
    is_command = block["type"] == "slash_command"
    return f"{block['name']} {block.get('args') or ''}" if is_command else block["text"] if block["type"] == "text" else ""


def block_words(events: list[ev.Event]) -> list[str]:
    """The blocks of answers that are not text, in words."""
    blocks = [block_text(event.payload.block) for event in events if isinstance(event, ev.ContentBlock)]
    return [*blocks, *(event.payload.transcript or "" for event in events if isinstance(event, ev.AudioDone))]


def _without(texts: list[str], words: Counter[str]) -> Iterator[str]:
    for text in texts:
        if words[text] > 0:
            words[text] -= 1
        else:
            yield text


def read_timeline(events: list[ev.Event]) -> Told:
    """The rows of the timeline; titles are cut."""
    rows = [json.loads(encode(row)) for row in project(events, "timeline")]
    main = [row for row in rows if "parentToolCallId" not in row]
    calls = [row for row in main if row["what"] == "tool"]
    return {
        "titles": Text("\n".join(row["title"] for row in main if row["what"] == "user_message" and row["who"] == "user")),
        "answers' titles": Text("\n".join(row["title"] for row in main if row["what"] == "assistant_done")),
        "cut count": sum(row["what"] == "assistant_done" and row.get("status") == "interrupted" for row in main),
        "called": sorted((row["toolCallId"], row["toolName"]) for row in calls),
        "failed": sorted(row["toolCallId"] for row in calls if row["status"] == "failed"),
        "ends": [row["status"] for row in main if row["what"] == "turn"],
    }


def read_spans(events: list[ev.Event]) -> Told:
    """OpenTelemetry: a span for each turn, each message and each call."""
    scopes = [scope for piece in project(events, "otel") for one in piece["resourceSpans"] for scope in one["scopeSpans"]]
    spans = [
        span | {"about": {one["key"]: _value(one["value"]) for one in span["attributes"]}} for scope in scopes for span in scope["spans"]
    ]
    turns = [span["about"] for span in spans if "hansard.turn.status" in span["about"]]
    calls = [span["about"] for span in spans if span["about"]["gen_ai.operation.name"] == "execute_tool"]
    return {
        "every call": sorted((one["gen_ai.tool.call.id"], one["gen_ai.tool.name"], "error.type" in one) for one in calls),
        "ends": [one["hansard.turn.status"] for one in turns],
        "codes": [one.get("error.type") for one in turns],
    }


def _value(value: Json) -> Any:
    (found,) = value.values()
    return found


def read_ui_messages(events: list[ev.Event]) -> Told:
    """Messages of Vercel's AI SDK."""
    messages = list(project(events, "vercel-ui-messages"))
    parts = [part for one in messages if one["role"] == "assistant" for part in one["parts"]]
    uses = [part for part in parts if part["type"] == "dynamic-tool"]
    ends = [one["metadata"]["hansard"]["end"] for one in messages if "end" in one["metadata"]["hansard"]]
    return {
        "prompts": [text for one in messages for text in _ui_prompts(one)],
        "begun texts": Text("\n".join(part["text"] for part in parts if part["type"] == "text")),
        "called": sorted((part["toolCallId"], part["toolName"]) for part in uses),
        "returned": sorted((part["toolCallId"], part["state"] in ("output-error", "output-denied")) for part in uses),
        "ends": [end["status"] for end in ends],
        "codes": [end["error"]["code"] if "error" in end else None for end in ends],
    }


def _ui_prompts(message: Json) -> list[str]:
    """The prompts in a message: its own text, or what was said to the agent while it answered."""
    if message["role"] == "user":
        about = [message["metadata"]["hansard"] | {"text": message["parts"][0]["text"]}]
    else:
        said = [part["data"] for part in message["parts"] if part["type"] == "data-user_message"]
        about = [one["payload"] for one in said if "parentToolCallId" not in one]
    return [one["text"] for one in about if one.get("author", "human") == "human"]


def read_ag_ui(events: list[ev.Event]) -> Told:
    """AG-UI: messages in pieces, and a run for each turn."""
    sent = [one for one in project(events, "ag-ui") if "subagentRunId" not in one]
    said: list[tuple[Json, str]] = []
    place: dict[str, int] = {}
    for one in sent:
        if one["type"] == "TEXT_MESSAGE_START":
            place[one["messageId"]] = len(said)
            said.append((one, ""))
        elif one["type"] == "TEXT_MESSAGE_CONTENT":
            start, text = said[place[one["messageId"]]]
            said[place[one["messageId"]]] = start, text + one["delta"]
    ended = [one for one in sent if one["type"] in ("RUN_FINISHED", "RUN_ERROR") and "status" in one["metadata"]["hansard"]]
    ends = [one["metadata"]["hansard"] for one in ended]
    return {
        "prompts": [text for start, text in said if start["metadata"]["hansard"].get("author") == "human"],
        "begun texts": Text("\n".join(text for start, text in said if start["role"] == "assistant")),
        "calls": [(one["toolCallId"], one["toolCallName"]) for one in sent if one["type"] == "TOOL_CALL_START"],
        "results": [
            (one["toolCallId"], one["metadata"]["hansard"].get("isError", False)) for one in sent if one["type"] == "TOOL_CALL_RESULT"
        ],
        "ends": [end["status"] for end in ends],
        "codes": [end["error"]["code"] if "error" in end else None for end in ends],
    }


def read_atif(events: list[ev.Event]) -> Told:
    """The trajectory of the main agent. A late result is with the step that called."""
    document = document_of("atif", events)
    steps, about = document["steps"], document.get("extra", {})
    calls = [call for step in steps for call in step.get("tool_calls", ())]
    results = [result for step in steps for result in step.get("observation", {}).get("results", ()) if "source_call_id" in result]
    ends = about.get("ends", [])
    return {
        "heard": Text("\n".join(_atif_text(step["message"]) for step in steps if step["source"] == "user")),
        "texts": Text("\n".join(_atif_text(step["message"]) for step in steps if step["source"] == "agent")),
        "calls": [(call["tool_call_id"], call["function_name"]) for call in calls],
        "returned": sorted((one["source_call_id"], bool(one.get("extra", {}).get("is_error"))) for one in results),
        "ends": [end["status"] for end in ends],
        "codes": [end["error"]["code"] if "error" in end else None for end in ends],
    }


def _atif_text(message: Any) -> str:
    return message if isinstance(message, str) else "\n".join(part["text"] for part in message if part["type"] == "text")


# --------------------------------------------------------------------------------------------------------------------
# Histories: what a model is told of the conversation. Texts that follow each other are one there, and what was cut off is left out.


def _history(said: Iterable[tuple[str, str]], calls: Iterable[str], results: Iterable[Any]) -> Told:
    spoken = list(said)
    return {
        "inputs": Text("\n".join(text for role, text in spoken if role == "user")),
        "whole texts": Text("\n".join(text for role, text in spoken if role == "assistant")),
        "names": list(calls),
        "answered": len(list(results)),
    }


def read_openai_messages(events: list[ev.Event]) -> Told:
    """Chat messages of OpenAI's API."""
    messages = list(project(events, "openai-messages"))
    said = [(one["role"], _openai_text(one["content"])) for one in messages if one["role"] in ("user", "assistant")]
    calls = [call["function"]["name"] for one in messages for call in one.get("tool_calls", ())]
    return _history(said, calls, [one for one in messages if one["role"] == "tool"])


def _openai_text(content: Any) -> str:
    return content or "" if content is None or isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def read_openai_responses(events: list[ev.Event]) -> Told:
    """Input items of OpenAI's Responses API."""
    return _openai_items(list(project(events, "openai-responses")))


def read_codex_rollout(events: list[ev.Event]) -> Told:
    """A file that Codex resumes."""
    lines = list(project(events, "codex-rollout"))
    return _openai_items([line["payload"] for line in lines if line["type"] == "response_item"])


def _openai_items(items: list[Json]) -> Told:
    said = [(one["role"], _openai_text(one["content"])) for one in items if one["type"] == "message"]
    calls = [one["name"] for one in items if one["type"] == "function_call"]
    return _history(said, calls, [one for one in items if one["type"] == "function_call_output"])


def read_anthropic_messages(events: list[ev.Event]) -> Told:
    """Messages of Anthropic's API."""
    return _anthropic(list(project(events, "anthropic-messages")))


def read_claude_session(events: list[ev.Event]) -> Told:
    """A file that Claude Code resumes."""
    return _anthropic([line["message"] for line in project(events, "claude-session") if line["type"] in ("user", "assistant")])


def _anthropic(messages: list[Json]) -> Told:
    contents = [(one["role"], one["content"]) for one in messages]
    blocks = [
        (role, block)
        for role, content in contents
        for block in ([{"type": "text", "text": content}] if isinstance(content, str) else content)
    ]
    said = [(role, block["text"]) for role, block in blocks if block["type"] == "text"]
    calls = [block["name"] for _, block in blocks if block["type"] == "tool_use"]
    return _history(said, calls, [block for _, block in blocks if block["type"] == "tool_result"])


def read_prompt(events: list[ev.Event]) -> Told:
    """The conversation as one text."""
    found = re.findall(r"<(user|assistant|tool_call|tool_result)\b([^>]*)>\n(.*?)\n</\1>\n", "".join(project(events, "prompt")), re.DOTALL)
    calls = [re.search('name="([^"]*)"', about)[1] for tag, about, _ in found if tag == "tool_call"]  # pyright: ignore[reportOptionalSubscript]
    return _history([(tag, text) for tag, _, text in found], calls, [tag for tag, *_ in found if tag == "tool_result"])


# --------------------------------------------------------------------------------------------------------------------
# The matrix

SURFACES: dict[str, Callable[[list[ev.Event]], Told]] = {
    "show": read_items,
    "transcript": read_transcript,
    "markdown": read_markdown,
    "state": read_state,
    "summary": read_summary,
    "usage": read_usage,
    "tables": read_tables,
    "consumer-messages": read_consumer_messages,
    "standard-messages": read_standard_messages,
    "messages-parsed": read_parsed_messages,
    "timeline": read_timeline,
    "otel": read_spans,
    "vercel-ui-messages": read_ui_messages,
    "ag-ui": read_ag_ui,
    "atif": read_atif,
    "openai-messages": read_openai_messages,
    "openai-responses": read_openai_responses,
    "codex-rollout": read_codex_rollout,
    "anthropic-messages": read_anthropic_messages,
    "claude-session": read_claude_session,
    "prompt": read_prompt,
}
"""Every surface, and how its facts are read."""


KINDS: dict[str, set[str]] = {
    "prompts": {"prompts", "heard", "inputs", "titles"},
    "answers": {"last", "answers", "texts", "begun texts", "begun answers", "whole texts", "answers' titles"},
    "calls": {"calls", "called", "shown calls", "every call", "names", "call count"},
    "results": {"results", "returned", "failures", "failed", "every call", "answered", "failure count", "drawn failures"},
    "statuses": {"ends", "last"},
    "codes": {"codes", "known codes", "shown codes", "last code"},
    "tokens": {"tokens", "total tokens", "shown tokens", "page tokens"},
    "costs": {"costs", "total costs", "cost", "cost so far", "shown costs", "page costs"},
}
"""Every kind of fact, and the forms in which surfaces tell it."""
CARRIED_BY = {
    "prompts": "user_message",
    "answers": "assistant_done",
    "calls": "tool_call",
    "results": "tool_result",
    "statuses": "turn_end",
    "codes": "turn_end",
    "tokens": "usage",
    "costs": "usage",
}
"""The type of event that carries each kind."""
OF_MESSAGES, WITHOUT_CONTENT = "it counts messages, not turns", "it has no content unless that is asked for"
LACKING: dict[str, dict[str, str]] = {
    "markdown": {"results": "the transcript counts them; both draw the same items"},
    "state": {"prompts": "it has the last message", "calls": "it has open calls alone", "results": "it has open calls alone"},
    "summary": {
        "prompts": "it has the last message",
        "codes": "it has the status of the last turn",
        "tokens": "it has the sum of the session",
    },
    "usage": {"statuses": "it has counts alone", "codes": "it has counts alone"},
    "tables": {"prompts": "a turn has the beginning of its first prompt", "answers": "the logs have them"},
    "standard-messages": {"statuses": "a message failed, or not", "tokens": OF_MESSAGES, "costs": "it has tokens alone"},
    "timeline": {"codes": "the row of a turn has its status"},
    "otel": {"prompts": WITHOUT_CONTENT, "answers": WITHOUT_CONTENT, "tokens": OF_MESSAGES, "costs": "the conventions have no cost"},
    "vercel-ui-messages": {"tokens": OF_MESSAGES, "costs": OF_MESSAGES},
    "ag-ui": {"tokens": "it counts what is cached as input", "costs": "a run has tokens alone"},
    "atif": {"tokens": OF_MESSAGES, "costs": OF_MESSAGES},
}
"""What a surface does not tell although it uses the events that carry it, and why. Whatever else is missing, its format leaves out."""
ELSEWHERE = {
    "acp": "tests/promises/exports.py reads it back",
    "html": "the page's own renderer over the events, which tests/page/test_truth_shown.py reads",
    "native": "the bytes of the wire, which tests/promises/streams.py compares",
    "recording": "the bytes of the wire, which its referee reads back",
    "vercel-ui": "the stream of vercel-ui-messages",
}
"""Export formats that are compared in another way."""
