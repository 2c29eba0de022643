"""Questions of agents, asked one after another: what to print, and the answer in the shape that the agent's wire wants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from hansard.events import QuestionPayload
from hansard.events.lenient import as_list, as_object

YES, NO = ("y", "yes", "true"), ("n", "no", "false")


class Field(Struct):
    """One thing to ask."""

    name: str
    prompt: str
    choices: list[str]
    several: bool = False
    kind: str = "string"
    needed: bool = True

    def read(self, typed: str) -> Any:
        """What the line means, or raise ValueError with what would be right. None: nothing is said."""
        text = typed.strip()
        if not text:
            if self.needed:
                raise ValueError("please say something; Ctrl-C leaves the question")
            return None
        if self.several:
            return [self._chosen(part.strip()) for part in text.split(",")]
        return self._chosen(text) if self.choices else self._typed(text)

    def _chosen(self, text: str) -> str:
        if text.isdecimal() and 1 <= int(text) <= len(self.choices):
            return self.choices[int(text) - 1]
        if text in self.choices:
            return text
        raise ValueError(f"one of: {', '.join(self.choices)}")

    def _typed(self, text: str) -> Any:
        match self.kind:
            case "boolean" if text.lower() in (*YES, *NO):
                return text.lower() in YES
            case "boolean":
                raise ValueError("y or n")
            case "integer":
                return int(text)
            case "number":
                return float(text)
            case "array":
                return [part.strip() for part in text.split(",")]
            case _:
                return text


def fields_of(asked: QuestionPayload) -> list[Field]:
    """What has to be asked."""
    return list(_of_questions(asked.questions) if asked.questions is not None else _of_schema(as_object(asked.schema)))


def answer_of(asked: QuestionPayload, values: dict[str, Any], format: str) -> Any:
    """The answers in the shape of the agent's wire: a form's by name, Codex's by id, OpenCode's in order, Claude's by question."""
    if asked.questions is None:
        return {name: value for name, value in values.items() if value is not None}
    if format.startswith("opencode"):
        return [_listed(value) for value in values.values()]
    if format.startswith("codex"):
        return {name: {"answers": _listed(value)} for name, value in values.items()}
    return {name: ", ".join(_listed(value)) for name, value in values.items()}


def _listed(value: Any) -> list[str]:
    return [str(item) for item in as_list(value)] if isinstance(value, list) else [str(value)]


def _of_questions(questions: Any) -> Iterator[Field]:
    for index, one in enumerate(map(as_object, as_list(questions)), 1):
        text = str(one.get("question", f"question {index}"))
        choices = [str(as_object(option).get("label", option)) for option in as_list(one.get("options"))]
        several = bool(one.get("multiSelect") or one.get("multiple"))
        yield Field(str(one.get("id") or text), text, choices, several)


def _of_schema(schema: dict[str, Any]) -> Iterator[Field]:
    needed = as_list(schema.get("required"))
    for name, about in as_object(schema.get("properties")).items():
        about = as_object(about)
        choices = [str(choice) for choice in as_list(about.get("enum"))] or [
            str(as_object(one).get("const")) for one in as_list(about.get("oneOf")) if "const" in as_object(one)
        ]
        text = str(about.get("title") or about.get("description") or name)
        yield Field(name, text, choices, kind=str(about.get("type", "string")), needed=name in needed)
