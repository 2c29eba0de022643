"""What is drawn of each thing that can happen, and by which names it is found again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard.events.codec import encode
from hansard.projections.reading_levels import LEVELS, ByField
from tests.page.chromium import Watched
from tests.page.test_renderer import event
from tests.recorded import Recording
from tests.test_replays import every_agent, prompts, resumed

Json = dict[str, Any]


def drawn(renderer: Watched, events: list[Json], ask: str) -> Any:
    """What a question to the page gives when these events have happened, one by one."""
    return renderer.run(
        f"(events) => {{ const shown = fresh(); for (const one of events) shown.handleNewEvent(one); shown.flush(); return {ask}; }}",
        events,
    )


def call(seq: int, name: str = "c", **more: Any) -> Json:
    return event(seq, "tool_call", {"toolCallId": name, "toolName": "Bash", "args": {"command": "ls"}}, responseId="r", **more)


BEGUN = [event(1, "turn_start", {"trigger": "user"}), event(2, "user_message", {"text": "hello"})]


def test_what_is_drawn_has_the_names_of_what_it_is_about(renderer: Watched) -> None:
    sent = event(5, "agent_message", {"messageId": "m", "targetAgentId": "codex", "message": "look"}, responseId="r")
    said = event(4, "assistant_done", {"text": "yes"}, responseId="r", blockIndex=0)
    names = ["[data-turn-id=t1]", "article[data-event-id=e2]", "[data-response-id=r]", "[data-tool-call-id=c]", "[data-message-id=m]"]
    asked = f"[{','.join(f'document.querySelectorAll({name!r}).length' for name in names)}]"
    assert drawn(renderer, [*BEGUN, said, sent, call(6)], asked) == [1] * len(names)


def test_the_whole_text_replaces_its_pieces_and_tools_stand_between(renderer: Watched) -> None:
    def text(seq: int, type: str, words: str, index: int) -> Json:
        return event(seq, type, {"text": words}, responseId="r", blockIndex=index)

    events = [*BEGUN, text(3, "assistant_chunk", "Hel", 0), text(4, "assistant_chunk", "lo", 0), text(5, "assistant_done", "Hello!", 0)]
    events += [call(6, blockIndex=1), text(7, "assistant_chunk", "Bye", 2)]
    order = """[...document.querySelectorAll("[data-response-id=r] :is(.assistant-text, .tool-call)")]
        .map((one) => one.matches(".tool-call") ? "tool" : one.querySelector(".markdown, p").textContent)"""
    assert drawn(renderer, events, order) == ["Hello!", "tool", "Bye"]


RESULT = {"toolCallId": "c", "result": "x"}
STATES: dict[str, list[Json]] = {
    "pending": [event(4, "tool_progress", {"toolCallId": "c", "status": "pending"})],
    "running": [],
    "done": [event(4, "tool_result", RESULT)],
    "error": [event(4, "tool_result", {**RESULT, "isError": True})],
    "interrupted": [event(4, "tool_result", {**RESULT, "isError": True, "error": "interrupted"}, synthetic=True)],
    "denied": [
        event(4, "permission_request", {"requestId": "p", "toolCallId": "c", "options": [], "inputHash": "h"}),
        event(5, "permission_response", {"requestId": "p", "decision": "deny"}),
        event(6, "tool_result", {**RESULT, "isError": True}),
    ],
}


@pytest.mark.parametrize("state", STATES)
def test_a_call_shows_where_it_stands(renderer: Watched, state: str) -> None:
    started = [] if state == "pending" else [call(3)]
    assert drawn(renderer, [*BEGUN, *started, *STATES[state]], 'document.querySelector("[data-tool-call-id=c]").dataset.state') == state


def test_a_call_in_the_background_is_over_when_the_state_says_so(renderer: Watched) -> None:
    launched = event(4, "tool_result", {**RESULT, "background": True})
    row = """(() => { const said = []; const look = () => { const row = document.querySelector("[data-tool-call-id=c]");
        said.push([row.dataset.state, row.querySelector("summary .word").textContent.trim()]); }; look();
        for (const task of [{ status: "running" }, { status: "completed", durationMs: 6196 }, { status: "error" }, { status: "lost" }]) {
          shown.updateState({ tasks: [{ id: "c", durationMs: null, ...task }] }); shown.flush(); look();
        } return said; })()"""
    assert drawn(renderer, [*BEGUN, call(3), launched, event(5, "turn_end", {"status": "completed"})], row) == [
        *[["running", "running in the background"]] * 2,
        ["done", "done 6.2 s"],
        ["error", "failed"],
        ["interrupted", "lost"],
    ]


def test_arguments_are_shown_while_they_are_written_and_a_result_in_its_place(renderer: Watched) -> None:
    piece = event(
        3, "tool_input_chunk", {"toolCallId": "c", "toolName": "Bash", "chunk": '{"command": "make wa', "offset": 0}, responseId="r"
    )
    text = 'document.querySelector("[data-tool-call-id=c]").textContent'
    assert "make wa" in drawn(renderer, [*BEGUN, piece], text)
    ended = [*BEGUN, piece, call(4), event(5, "tool_result", RESULT)]
    assert drawn(renderer, ended, 'document.querySelectorAll("[data-tool-call-id=c] .tool-result[data-event-id=e5]").length') == 1


def test_a_message_to_another_agent_is_answered_where_it_stands(renderer: Watched) -> None:
    sent = event(3, "agent_message", {"messageId": "m", "targetAgentId": "codex", "message": "look"}, responseId="r")
    later = event(4, "assistant_done", {"text": "meanwhile"}, responseId="r2", blockIndex=0)
    back = event(5, "agent_callback", {"messageId": "m", "result": "seen it"}, turn=None)
    look = """[...document.querySelectorAll("[data-message-id=m]")].map((one) => [one.className, one.textContent.includes("seen it")])"""
    assert drawn(renderer, [*BEGUN, sent, later], look) == [["agent-message pending", False]]
    assert drawn(renderer, [*BEGUN, sent, later, back], look) == [["agent-message resolved", True]]


def test_an_interrupt_is_seen_live_and_afterwards(renderer: Watched) -> None:
    half = event(3, "assistant_chunk", {"text": "Once upon"}, responseId="r", blockIndex=0)
    stop = event(4, "interrupt", {"reason": "user_cancel"})
    cut = event(5, "assistant_done", {"text": "Once upon", "interrupted": True}, responseId="r", blockIndex=0)
    end = event(6, "turn_end", {"status": "interrupted"})
    words = """(() => { const words = (one) => [one.log.textContent.includes("cut off here"), /Interrupted/.test(one.log.textContent)];
        const live = words(shown); const again = fresh(); again.replayEvents(events); return [live, words(again)]; })()"""
    assert drawn(renderer, [*BEGUN, half, stop, cut, end], words) == [[True, True], [True, True]]


def test_thinking_is_seen_as_it_comes_and_afterwards(renderer: Watched) -> None:
    thought = event(3, "thinking_chunk", {"text": "let me see"}, responseId="r", blockIndex=0)
    done = event(4, "thinking_done", {"text": "let me see", "durationMs": 2000}, responseId="r", blockIndex=0)
    look = """(() => { const one = document.querySelector("details.thinking");
        const word = one.querySelector(".thought-word").textContent;
        return [one.classList.contains("streaming"), word, one.textContent.includes("let me see")]; })()"""
    assert drawn(renderer, [*BEGUN, thought], look) == [True, "thinking", True]
    assert drawn(renderer, [*BEGUN, thought, done], look) == [False, "thought for 2 s", True]


def test_an_error_says_its_code_its_words_and_its_details(renderer: Watched) -> None:
    failed = {"code": "rate_limit", "message": "too much", "status": 429, "details": {"limit": "five-hours"}, "retryAfterMs": 3000}
    look = """(() => { const one = document.querySelector(".notice[data-event-id=e3]"); const more = one.querySelector("details");
        more.open = true; more.ontoggle?.({ target: more }); more.dispatchEvent(new Event("toggle")); return one.textContent; })()"""
    text = drawn(renderer, [*BEGUN, event(3, "error", failed)], look)
    for words in ("rate_limit", "too much", "429", "five-hours", "tried again in 3 s"):
        assert words in text


def test_tokens_are_said_with_the_answer(renderer: Watched) -> None:
    def used(seq: int, name: str, out: int) -> list[Json]:
        usage = {"scope": "message", "usage": {"inputTokens": 10, "outputTokens": out, "totalTokens": 10 + out}}
        said = event(seq, "assistant_done", {"text": "yes"}, responseId=name, blockIndex=0)
        return [said, event(seq + 1, "usage", usage, responseId=name)]

    look = """[...document.querySelectorAll(".used")].map((one) => one.textContent)"""
    each = drawn(renderer, [*BEGUN, *used(3, "r1", 5), *used(5, "r2", 7)], look)
    assert [(words.count("10"), number in words) for words, number in zip(each, ("5", "7"), strict=True)] == [(1, True), (1, True)]


def test_a_sub_agent_stands_inside_the_call_that_started_it(renderer: Watched) -> None:
    inner = event(4, "assistant_done", {"text": "from below"}, responseId="s", blockIndex=0, parentToolCallId="c")
    look = """(() => { const one = document.querySelector("[data-tool-call-id=c]"); one.open = true; one.dispatchEvent(new Event("toggle"));
        return one.querySelector(".sub-agent")?.textContent.includes("from below") ?? false; })()"""
    assert drawn(renderer, [*BEGUN, call(3), inner], look) is True


@every_agent
def test_what_an_agent_repeats_on_resume_is_drawn_once(renderer: Watched, recording: Recording) -> None:
    events = [json.loads(encode(event)) for event in resumed(recording)]
    said = "[...document.querySelectorAll('article.user-message.by-human')].map((one) => one.textContent)"
    shown = drawn(renderer, events, said)
    assert len(shown) == len(prompts(recording))
    assert all(prompt in text for prompt, text in zip(prompts(recording), shown, strict=True))
    words = "shown.log.textContent"
    assert drawn(renderer, events, words) == drawn(renderer, [event for event in events if not event.get("replay")], words)


def test_a_replay_begins_with_an_empty_page(renderer: Watched) -> None:
    events = [*BEGUN, event(3, "turn_end", {"status": "completed"})]
    again = "(shown.replayEvents(events), shown.replayEvents(events), document.querySelectorAll('.user-message').length)"
    assert drawn(renderer, events, again) == 1


BLOCKS: list[tuple[Json, str]] = [
    ({"type": "code", "code": "print(1)", "language": "python"}, "print(1)"),
    ({"type": "refusal", "text": "I will not"}, "I will not"),
    ({"type": "raw", "rawType": "hologram", "raw": {"rays": 7}}, "hologram"),
    ({"type": "resource", "uri": "file:///notes.md", "text": "kept"}, "notes.md"),
    ({"type": "diff", "path": "a.py", "oldText": "one\n", "newText": "two\n"}, "a.py"),
]


@pytest.mark.parametrize(("block", "words"), BLOCKS, ids=[block["type"] for block, _ in BLOCKS])
def test_a_block_of_any_kind_is_shown(renderer: Watched, block: Json, words: str) -> None:
    said = event(3, "content_block", {"block": block}, responseId="r", blockIndex=0)
    assert words in drawn(renderer, [*BEGUN, said], 'document.querySelector(".content-block").textContent')


def test_what_was_spoken_is_its_words_and_its_sound(renderer: Watched) -> None:
    sound = "0" * 64
    spoken = event(2, "user_audio", {"transcription": "what is the time?", "durationMs": 2500, "audio": sound})
    look = """[document.querySelector(".user-message").textContent, document.querySelector(".user-message audio")?.src ?? ""]"""
    shown = f"(events) => {{ const shown = fresh({{ blob: (name) => `/blobs/${{name}}` }}); shown.replayEvents(events); return {look}; }}"
    words, source = renderer.run(shown, [BEGUN[0], spoken])
    assert "what is the time?" in words
    assert source.endswith(f"/blobs/{sound}")


def test_a_picture_is_a_picture(renderer: Watched) -> None:
    dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    said = event(3, "content_block", {"block": {"type": "image", "mediaType": "image/png", "data": dot}}, responseId="r", blockIndex=0)
    assert drawn(renderer, [*BEGUN, said], 'document.querySelectorAll(".content-block img").length') == 1


def test_what_was_removed_is_marked_and_stays(renderer: Watched) -> None:
    said = event(3, "assistant_done", {"text": "secret plan"}, responseId="r", blockIndex=0)
    gone = event(4, "session_lifecycle", {"subtype": "message_removed", "messageId": "r"})
    look = """(() => { const one = document.querySelector("[data-response-id=r]");
        return [one.classList.contains("struck"), one.textContent.includes("removed"), one.textContent.includes("secret plan")]; })()"""
    assert drawn(renderer, [*BEGUN, said, gone], look) == [True, True, True]


NOTICES: list[tuple[str, Json, str]] = [
    ("session_lifecycle", {"subtype": "compacted", "detail": {"pre_tokens": 4012, "post_tokens": 2536}}, "4,012"),
    ("configuration_change", {"subtype": "set_model", "model": "opus-9"}, "opus-9"),
    ("status_change", {"status": "informational", "detail": {"content": "a hint for you"}}, "a hint for you"),
    ("status_change", {"status": "notice", "detail": {"severity": "info", "title": "a title"}}, "a title"),
]


@pytest.mark.parametrize(("type", "payload", "words"), NOTICES, ids=[words for _, _, words in NOTICES])
def test_procedure_is_a_small_notice(renderer: Watched, type: str, payload: Json, words: str) -> None:
    look = '(shown.showProcedure(true), [...document.querySelectorAll(".notice")].map((one) => one.textContent).join(" "))'
    assert words in drawn(renderer, [*BEGUN, event(3, type, payload)], look)


def test_the_conversation_is_shown_and_the_procedure_on_request(renderer: Watched) -> None:
    context = event(3, "user_message", {"text": "injected context", "author": "harness"})
    limit = event(4, "rate_limit", {"status": "exceeded"})
    told = event(5, "assistant_done", {"text": "Bad key", "phase": "error"}, responseId="r", blockIndex=0)
    failed = event(6, "error", {"code": "provider_auth", "message": "Bad key"})
    end = event(7, "turn_end", {"status": "error", "error": {"code": "provider_auth", "message": "Bad key"}})
    look = """(() => { const text = () => shown.log.textContent; const first = text(); shown.showProcedure(true); const all = text();
        shown.showProcedure(false); shown.select(4); return [first, all, text()]; })()"""
    first, everything, revealed = drawn(renderer, [*BEGUN, context, limit, told, failed, end], look)
    assert first.count("Bad key") == everything.count("Bad key") == 1
    assert [words in first for words in ("hello", "injected context", "Rate limit")] == [True, False, False]
    assert all(words in everything for words in ("hello", "injected context", "Rate limit"))
    assert "Rate limit" in revealed


def test_the_levels_of_the_page_are_the_levels_of_the_table(renderer: Watched) -> None:
    texts = ["harness", "human", "retrying", "hook_started", "busy", "set_model", "model", "compacted", "checkpoint", "created", "diff"]
    cases = [(name, text) for name in LEVELS for text in texts]
    events = [event(1, name, dict.fromkeys(("author", "status", "subtype", "reason"), text)) for name, text in cases]
    levels = renderer.run(
        """async (events) => { const { levelOf } = await import("/transcript/procedure.js"); return events.map(levelOf); }""", events
    )
    wanted = [level.read(text) if isinstance(level := LEVELS[name], ByField) else level for name, text in cases]
    assert levels == wanted
