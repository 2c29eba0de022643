"""OpenAI chat completions: chunks of a stream or whole bodies, and the requests they answer. Wire notes: README.md."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from hansard import events as ev
from hansard.adapters.base import Context
from hansard.adapters.fields import declared_fields, place_in_message
from hansard.adapters.openai import chat_wire, outcomes, parts
from hansard.adapters.openai.base import OpenAI
from hansard.adapters.openai.chat_state import Call, Choice, OpenCompletion
from hansard.adapters.openai.fields import usage_of
from hansard.events.lenient import as_int, as_list, as_object

DONE = b"[DONE]"
_KNOWN = ("chat.completion.chunk", "chat.completion")
_SAID = frozenset(chat_wire.CompletionMessage.__struct_fields__)


class ChatCompletions(OpenAI):
    """``POST /v1/chat/completions``, as OpenAI and the many servers that imitate it answer it."""

    formats = ("openai-chat-completions",)
    wire = chat_wire.Completion
    sent_wire = chat_wire.Request
    tag = "object"

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.answer: OpenCompletion | None = None
        self.blocks: dict[str | None, int] = {}
        self.wanted = 1
        self.usage_follows = True
        self.sound: str | None = None

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """A chunk, or a body; or the error that the API answers with, which says not whom it was to answer."""
        return message.get("object") in _KNOWN or {"message", "type", "param", "code"} <= as_object(message.get("error")).keys()

    @classmethod
    def may_detect(cls, message: dict[str, Any]) -> bool:
        """A request that was not answered."""
        return isinstance(message.get("messages"), list) and "model" in message

    def time_of(self, message: Any) -> int | None:
        """Every chunk repeats when the answer was created; only of the first it is the time."""
        if not isinstance(message, chat_wire.Completion):
            return None
        return self.date(message.created, self.answer is None or message.id != self.answer.id)

    # ---- from the API

    def translate(self, message: chat_wire.Completion) -> Iterator[ev.Event]:
        if message.choices and message.error is None and message.object != "error":
            return self.chunk(message)
        return self.seldom(message)

    def seldom(self, message: chat_wire.Completion) -> Iterator[ev.Event]:
        """An error, or what says nothing of a choice."""
        if message.choices:
            yield from self.chunk(message)
        if message.error is not None:
            yield from self.broken(message.error)
        elif message.object == "error":
            yield from self.broken(declared_fields(message, "object"))
        elif message.choices:
            return
        elif message.usage is not None:
            yield from self.counted(message)
        elif message.prompt_filter_results is not None:
            yield ev.status_change(status="prompt_filter_results", detail=message.prompt_filter_results)
        elif message.moderation is not None:
            yield ev.status_change(status="moderation", detail=message.moderation)
        elif message.object in _KNOWN:
            yield ev.heartbeat()
        else:
            yield ev.raw(kind=message.object, reason="unknown_type")

    def translate_text(self, data: bytes) -> Iterator[ev.Event] | None:
        """``[DONE]`` ends a stream of chunks."""
        return self.done() if data.strip() == DONE else None

    def done(self) -> Iterator[ev.Event]:
        yield ev.status_change(status="done")
        answer = self.answer
        if answer is None or answer.closed:
            return
        for choice in answer.choices.values():  # a server that gives no reason to stop, but says that it has
            if not choice.over:
                yield from self.choice_done(answer, choice, None)
        yield from self.close(answer)

    def chunk(self, message: chat_wire.Completion) -> Iterator[ev.Event]:
        answer = self.answer
        if answer is None or answer.closed or (message.id != answer.id and message.id is not None and message.id != ""):
            yield from self.leave()
            answer = yield from self.begin(message)
        answer.model, answer.tier = message.model or answer.model, message.service_tier or answer.tier
        whole = False
        for choice in message.choices or []:
            whole = whole or choice.message is not None
            for event in self.choice(answer, choice):
                event.response_id = answer.id
                yield event
        if message.usage is not None:
            answer.tokens = message.usage
        if message.moderation is not None:
            yield ev.status_change(status="moderation", detail=message.moderation)
        if whole or ((answer.tokens is not None or not self.usage_follows) and answer.finished(self.wanted)):
            yield from self.close(answer)

    def begin(self, message: chat_wire.Completion) -> Generator[ev.Event, None, OpenCompletion]:
        """The answer that a chunk is the first of."""
        answer_id = None if message.id == "" else message.id
        self.answer = answer = OpenCompletion(answer_id, self.blocks.get(answer_id, 0))
        if not self.introduced:
            yield from self.introduce(message.model, None)
        yield from self.need_turn("user")
        self.waiting = None
        return answer

    def choice(self, answer: OpenCompletion, frame: chat_wire.Choice) -> Iterator[ev.Event]:
        choice = answer.choice(frame.index)
        whole = frame.message is not None
        fields = frame.message if whole else frame.delta
        said: chat_wire.CompletionMessage | None = None if fields is None else self.read(fields, chat_wire.CompletionMessage)
        silent = True
        if said is not None:
            events = self.whole(answer, choice, said) if whole else self.delta(answer, choice, said)
            for event in events:
                silent = False
                yield event
        named = as_object(fields)
        if said is None or not _SAID.issuperset(named):
            for name, value in named.items():
                if value is not None and (said is None or name not in _SAID):
                    silent = False
                    yield place_in_message(ev.content_block(block=ev.RawBlock(raw={name: value}, raw_type=name)), answer.id, answer.block())
        if frame.logprobs is not None:
            silent = False
            yield place_in_message(
                ev.status_change(status="logprobs", detail=frame.logprobs), answer.id, None if choice.open is None else choice.open[1]
            )
        if frame.content_filter_results and frame.finish_reason is None and not whole:
            silent = False
            yield ev.status_change(status="content_filter_results", detail=frame.content_filter_results)
        if frame.finish_reason is not None or whole:
            yield from self.choice_done(
                answer, choice, frame.finish_reason, declared_fields(frame, "index", "delta", "message", "logprobs")
            )
        elif silent:
            role = None if said is None else said.role
            yield ev.status_change(status="delta" if role is None else "message_start", detail=as_object(fields))

    # ---- pieces

    def delta(self, answer: OpenCompletion, choice: Choice, said: chat_wire.CompletionMessage) -> Iterator[ev.Event]:
        if said.reasoning_content is not None or said.reasoning is not None or said.reasoning_details:
            yield from self.thought(answer, choice, said)
        for block in [] if said.content is None else _content_blocks(said.content):
            match block:
                case ev.TextBlock(text=text):
                    yield from self.text(answer, choice, text)
                case ev.ThinkingBlock(text=text):
                    yield from self.switch(answer, choice, "thinking")
                    yield self.piece(answer, choice, text)
                case ev.RefusalBlock(text=text):
                    yield self.refused(answer, choice, text)
                case _:
                    yield place_in_message(ev.content_block(block=block), answer.id, answer.block())
        if said.refusal is not None:
            yield self.refused(answer, choice, said.refusal)
        if said.audio is not None:
            yield from self.audio(answer, choice, said.audio)
        for image in said.images or []:
            choice.spoke = True
            yield place_in_message(ev.content_block(block=parts.to_block(image)), answer.id, answer.block())
        if said.annotations:
            choice.citations += said.annotations
            yield ev.status_change(status="annotations", detail=said.annotations)
        for call in said.tool_calls or ():
            yield from self.call_piece(answer, choice, call)
        if said.function_call is not None:
            yield from self.call_piece(answer, choice, chat_wire.ToolCall(function=said.function_call))

    def text(self, answer: OpenCompletion, choice: Choice, text: str) -> Iterator[ev.Event]:
        """Yield text that continues or begins. Every stream opens with an empty piece; a block begins with the first one that is not."""
        if text == "" and (choice.open is None or choice.open[0] != "text"):
            choice.empty = True
            return
        yield from self.switch(answer, choice, "text")
        yield self.piece(answer, choice, text)

    def thought(self, answer: OpenCompletion, choice: Choice, said: chat_wire.CompletionMessage) -> Iterator[ev.Event]:
        text = said.reasoning if said.reasoning_content is None else said.reasoning_content
        details = [as_object(detail) for detail in said.reasoning_details or []]
        if text is None and details:
            pieces = [detail.get("text", detail.get("summary")) for detail in details]
            words = [piece for piece in pieces if isinstance(piece, str)]
            text = "".join(words) if words else None
        if text is not None and (text != "" or (choice.open is not None and choice.open[0] == "thinking")):
            yield from self.switch(answer, choice, "thinking")
            yield self.piece(answer, choice, text)
        for detail in details:
            if detail.get("type") == "reasoning.summary":
                choice.summary = True
            if isinstance(detail.get("signature"), str):
                choice.signature = detail["signature"]
            if isinstance(detail.get("data"), str):
                choice.sealed = detail["data"]
                yield ev.status_change(status="reasoning_details", detail=detail)

    def switch(self, answer: OpenCompletion, choice: Choice, kind: str) -> Iterator[ev.Event]:
        """Begin a block unless one of this kind is open."""
        if choice.open is not None and choice.open[0] == kind:
            return
        yield from self.stop(answer, choice)
        choice.open = (kind, answer.block())
        choice.spoke = True

    def piece(self, answer: OpenCompletion, choice: Choice, text: str) -> ev.Event:
        kind, block = choice.open or ("text", None)
        chunk = ev.ThinkingChunk if kind == "thinking" else ev.AssistantChunk
        return chunk(payload=ev.TextPayload(text), response_id=answer.id, block_index=block)

    def stop(self, answer: OpenCompletion, choice: Choice) -> Iterator[ev.Event]:
        """Yield the whole of the block that was open; the wire itself never has it."""
        if choice.open is None:
            return
        kind, block = choice.open
        text = self.open.text(answer.id, block)
        choice.open = None
        if kind == "thinking":
            event = self.thinking_done(choice, text)
        else:
            choice.texts.append(text)
            event = ev.AssistantDone(payload=ev.AssistantDonePayload(text=text, phase=_phase(choice), citations=choice.citations or None))
            choice.citations = []
        event.synthetic = True
        yield place_in_message(event, answer.id, block)

    def thinking_done(self, choice: Choice, text: str) -> ev.Event:
        sealed, signature, summary = choice.sealed, choice.signature, choice.summary
        choice.sealed, choice.signature, choice.summary = None, None, False
        return ev.ThinkingDone(payload=ev.ThinkingDonePayload(text=text, signature=signature, redacted=sealed, summary=summary))

    def refused(self, answer: OpenCompletion, choice: Choice, text: str) -> ev.Event:
        if choice.refusal_block is None:
            choice.refusal_block = answer.block()
        choice.refusal.append(text)
        choice.spoke = True
        return place_in_message(ev.status_change(status="refusal_delta", detail={"delta": text}), answer.id, choice.refusal_block)

    def audio(self, answer: OpenCompletion, choice: Choice, audio: chat_wire.Audio) -> Iterator[ev.Event]:
        if choice.sound_block is None:
            choice.sound_block = answer.block()
        choice.spoke = True
        if audio.transcript is not None:
            choice.transcript.append(audio.transcript)
        if audio.data is not None:
            yield place_in_message(ev.audio_chunk(seq=choice.sounds, data=audio.data, media_type=self.sound), answer.id, choice.sound_block)
            choice.sounds += 1
        detail = declared_fields(audio, "data")
        if detail:
            yield place_in_message(ev.status_change(status="audio", detail=detail), answer.id, choice.sound_block)

    def call_piece(self, answer: OpenCompletion, choice: Choice, piece: chat_wire.ToolCall) -> list[ev.Event]:
        call, begins = choice.call(piece, answer.block)
        choice.spoke = True
        function, custom = piece.function, piece.custom
        call.id = call.id or piece.id
        call.name = call.name or (function.name if function is not None else custom.name if custom is not None else None)
        call.free_text = call.free_text or custom is not None
        text = function.arguments if function is not None else custom.input if custom is not None else None
        call_id = _call_id(answer, choice, call)
        made: list[ev.Event] = []
        if begins or text is None:
            progress = ev.ToolProgressPayload(tool_call_id=call_id, tool_name=call.name, status="pending")
            made.append(ev.ToolProgress(payload=progress, response_id=answer.id, block_index=call.block))
        if text is not None and not (begins and text == ""):
            payload = ev.ToolInputChunkPayload(call_id, text, call.add(text), call.name)
            made.append(ev.ToolInputChunk(payload=payload, response_id=answer.id, block_index=call.block))
        return made

    # ---- whole messages

    def whole(self, answer: OpenCompletion, choice: Choice, said: chat_wire.CompletionMessage) -> Iterator[ev.Event]:
        thinking = said.reasoning if said.reasoning_content is None else said.reasoning_content
        for detail in map(as_object, said.reasoning_details or []):
            if isinstance(detail.get("data"), str):
                choice.sealed = detail["data"]
            if isinstance(detail.get("signature"), str):
                choice.signature = detail["signature"]
        if thinking is not None and thinking != "":
            choice.spoke = True
            yield place_in_message(self.thinking_done(choice, thinking), answer.id, answer.block())
        for block in _content_blocks(said.content):
            if block == ev.TextBlock(text=""):
                choice.empty = True
                continue
            choice.spoke = True
            yield self.whole_block(answer, choice, block, said.annotations)
        if said.refusal is not None:
            choice.refusal.append(said.refusal)
        if said.audio is not None:
            yield from self.audio(answer, choice, said.audio)
        for image in said.images or []:
            choice.spoke = True
            yield place_in_message(ev.content_block(block=parts.to_block(image)), answer.id, answer.block())
        calls = list(said.tool_calls or [])
        if said.function_call is not None:
            calls.append(chat_wire.ToolCall(function=said.function_call))
        for index, piece in enumerate(calls):
            self.whole_call(answer, choice, piece, index)

    def whole_block(self, answer: OpenCompletion, choice: Choice, block: ev.AnyBlock, annotations: list[Any] | None) -> ev.Event:
        match block:
            case ev.TextBlock(text=text):
                choice.texts.append(text)
                citations = parts.cited(annotations) or block.citations
                event: ev.Event = ev.AssistantDone(payload=ev.AssistantDonePayload(text=text, phase=_phase(choice), citations=citations))
            case ev.ThinkingBlock(text=text):
                event = self.thinking_done(choice, text)
            case _:
                event = ev.content_block(block=block)
        return place_in_message(event, answer.id, answer.block())

    def whole_call(self, answer: OpenCompletion, choice: Choice, piece: chat_wire.ToolCall, index: int) -> None:
        call = Call(answer.block(), index if piece.id is not None or piece.function is None else None)
        call.id, call.free_text = piece.id, piece.custom is not None
        call.name = piece.function.name if piece.function is not None else piece.custom.name if piece.custom is not None else None
        text = piece.function.arguments if piece.function is not None else piece.custom.input if piece.custom is not None else None
        if text is not None:
            call.add(text)
        choice.spoke = True
        choice.calls.append(call)

    # ---- ends

    def choice_done(
        self, answer: OpenCompletion, choice: Choice, reason: str | None, detail: dict[str, Any] | None = None
    ) -> Iterator[ev.Event]:
        """A choice is complete."""
        if choice.over:
            yield ev.status_change(status="finish_reason", detail=detail)
            return
        choice.finish, choice.over = reason, True
        yield from self.stop(answer, choice)
        yield from self.rest(answer, choice)
        if choice.empty and not choice.spoke:  # it said nothing, in so many words
            yield place_in_message(
                ev.AssistantDone(payload=ev.AssistantDonePayload(text="", phase=_phase(choice))), answer.id, answer.block()
            )
        self.hear("".join(choice.texts))
        yield place_in_message(ev.status_change(status="finish_reason", detail=detail), answer.id)

    def rest(self, answer: OpenCompletion, choice: Choice) -> Iterator[ev.Event]:
        """What the pieces of a choice add up to, text and thinking apart."""
        if choice.sealed is not None:
            yield place_in_message(self.thinking_done(choice, ""), answer.id, answer.block())
        if choice.refusal:
            block = answer.block() if choice.refusal_block is None else choice.refusal_block
            yield place_in_message(ev.content_block(block=ev.RefusalBlock(text="".join(choice.refusal))), answer.id, block)
        if choice.sound_block is not None:
            transcript = "".join(choice.transcript) if choice.transcript else None
            yield place_in_message(ev.audio_done(transcript=transcript), answer.id, choice.sound_block)
        for call in choice.calls:
            call_id = _call_id(answer, choice, call)
            self.called.add(call_id)
            payload = ev.ToolCallPayload(tool_call_id=call_id, tool_name=_named(call), args=call.args, kind="other")
            yield ev.ToolCall(payload=payload, response_id=answer.id, block_index=call.block)

    def close(self, answer: OpenCompletion) -> Iterator[ev.Event]:
        """An answer is complete: the turn is over, or waits for the tools it called."""
        answer.closed = self.answered = True
        self.blocks[answer.id] = answer.next_block
        yield from self.spend_on(answer)
        first = answer.first
        if first is None:
            return
        status, error = outcomes.end_of_choice(first.finish, bool(first.refusal))
        if status == "completed" and first.calls:
            self.waiting = first.finish or "tool_calls"
            return
        if error is not None:
            yield ev.Error(payload=error)
        yield from self.end_turn_with_usage(status, first.finish, error)

    def spend_on(self, answer: OpenCompletion) -> Iterator[ev.Event]:
        tokens = answer.tokens
        if tokens is None:
            yield from self.spend(None, answer.id, answer.model)
        else:
            yield from self.spend(usage_of(tokens, answer.tier), answer.id, answer.model, tokens.cost)

    def counted(self, message: chat_wire.Completion) -> Iterator[ev.Event]:
        """The last chunk of a stream: no choices, only usage."""
        answer = self.answer
        if answer is None or message.usage is None or (answer.tokens is not None and answer.closed):
            yield ev.status_change(status="usage", detail=None if message.usage is None else declared_fields(message.usage))
            return
        late = answer.closed
        answer.tokens, answer.tier = message.usage, message.service_tier or answer.tier
        if late:  # the request did not ask for usage; a turn that is over is not counted anew
            if self.turn is not None and self.spent:
                self.spent.pop()
            yield from self.spend_on(answer)
            if self.turn is None:
                self.spent.clear()
        elif answer.finished(self.wanted):
            yield from self.close(answer)
        else:
            yield ev.status_change(status="usage", detail=declared_fields(message.usage))

    def leave(self) -> Iterator[ev.Event]:
        answer, self.answer = self.answer, None
        if answer is None or answer.closed:
            return
        if answer.finished(1):
            yield from self.close(answer)
            return
        yield from self.abandon(answer)
        yield from self.cut()

    def abandon(self, answer: OpenCompletion) -> Iterator[ev.Event]:
        """Yield what there is of an answer that will not continue; open text is closed with the turn."""
        answer.closed = self.answered = True
        self.blocks[answer.id] = answer.next_block
        for choice in answer.choices.values():
            if choice.over:
                continue
            if choice.open is not None and choice.open[0] == "text":
                choice.texts.append(self.open.text(answer.id, choice.open[1]))
            self.hear("".join(choice.texts))
            yield from self.rest(answer, choice)
        yield from self.spend_on(answer)

    def broken(self, error: Any) -> Iterator[ev.Event]:
        """An error body, or an error inside a stream."""
        answer, self.answer = self.answer, None
        if answer is not None and not answer.closed:
            yield from self.abandon(answer)
        code = as_object(error).get("code")
        status = as_int(code) if self.http_status is None else self.http_status  # routers give the status as the code
        yield from self.fail(outcomes.error_of(error, status))

    # ---- to the API

    def translate_sent(self, message: chat_wire.Request) -> Iterator[ev.Event]:
        yield from self.leave()
        yield from self.introduce(message.model, message.tools or message.functions)
        yield from self.configure(
            declared_fields(message, "messages", "model", "tools", "functions", "stream", "stream_options", "x_recorder_left_out_messages")
        )
        self.wanted = message.n or 1
        self.usage_follows = as_object(message.stream_options).get("include_usage") is True
        sound = as_object(message.audio).get("format")
        self.sound = f"audio/{sound}" if isinstance(sound, str) else None
        left_out = message.x_recorder_left_out_messages
        fresh = self.news(message.messages, left_out)
        yield from self.request(fresh, {"messages": left_out + len(message.messages), "stream": message.stream is True})

    def is_answer(self, message: Any) -> bool:
        return as_object(message).get("role") == "assistant"

    def is_speech(self, message: Any) -> bool:
        return as_object(message).get("role") == "user"

    def is_result(self, message: Any) -> bool:
        return as_object(message).get("role") in ("tool", "function")

    def sent(self, message: Any) -> Iterator[ev.Event]:
        said: chat_wire.Message | None = self.read(message, chat_wire.Message)
        if said is None:
            yield self.unknown_block(message)
        elif said.role == "assistant":
            yield from self.remembered(said)
        elif said.role in ("tool", "function"):
            yield from self.give(self.result_of(said), said.content)
        else:
            yield self.add_message(said.role, parts.to_blocks(said.content), name=said.name)

    def result_of(self, said: chat_wire.Message) -> str:
        """Return the call that a result belongs to; a function of the old way has no id, only a name."""
        if said.tool_call_id is not None:
            return said.tool_call_id
        named = [call_id for call_id, call in self.open.tools.items() if call.payload.tool_name == said.name]
        return named[0] if named else f"{said.role}:{said.name}"

    def remembered(self, said: chat_wire.Message) -> Iterator[ev.Event]:
        """Yield an answer from before this stream; one that came in the stream is not repeated."""
        answer, choice = OpenCompletion(None, 0), Choice(0)
        for event in self.whole(
            answer, choice, chat_wire.CompletionMessage(content=said.content, tool_calls=said.tool_calls, function_call=said.function_call)
        ):
            if isinstance(event, ev.AssistantDone) and self.has_heard(event.payload.text):
                continue
            yield place_in_message(event, None, self.recall())
        if said.refusal is not None:
            yield place_in_message(ev.content_block(block=ev.RefusalBlock(text=said.refusal)), None, self.recall())
        choice.calls = [call for call in choice.calls if call.id not in self.called]
        for event in self.rest(answer, choice):
            yield place_in_message(event, None, self.recall())


def _content_blocks(content: Any) -> list[ev.AnyBlock]:
    """Content is text; some servers send a list of parts."""
    return parts.to_blocks(content) if not isinstance(content, list) else [parts.to_block(item) for item in as_list(content)]


def _phase(choice: Choice) -> str | None:
    """Which of several answers to one request (``n``) this is; the conversation continues with the first."""
    return None if choice.index == 0 else f"choice {choice.index}"


def _call_id(answer: OpenCompletion, choice: Choice, call: Call) -> str:
    """The provider's id; a call of the old way has none, so it is named by its place."""
    return call.id if call.id is not None else f"{answer.id}:{choice.index}:{'function_call' if call.key is None else call.key}"


def _named(call: Call) -> str:
    return "function" if call.name is None else call.name
