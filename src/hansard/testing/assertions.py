"""What an agent was heard to say and do, with assertions whose failures can be read."""

# ruff: noqa: S101 (these are tests, wherever they run)

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hansard.events import AssistantDone, Event, PermissionRequest, ToolCall, ToolCallPayload, TurnEnd, UserMessage
from hansard.events.lenient import as_object
from hansard.projections import project


class RecordedConversation(list[Event]):
    """Events, and what they say."""

    def __init__(self, events: Iterable[Event]) -> None:
        super().__init__(events)

    @property
    def text(self) -> str:
        """Everything that the agent said aloud."""
        return "\n".join(event.payload.text for event in self if isinstance(event, AssistantDone))

    @property
    def prompts(self) -> list[str]:
        """What it was told."""
        return [event.payload.text for event in self if isinstance(event, UserMessage)]

    @property
    def calls(self) -> list[ToolCallPayload]:
        """The tools it called."""
        return [event.payload for event in self if isinstance(event, ToolCall)]

    @property
    def status(self) -> str | None:
        """How the last turn ended."""
        return next((event.payload.status for event in reversed(self) if isinstance(event, TurnEnd)), None)

    def assert_said(self, *words: str) -> None:
        """It said all of this."""
        missing = [word for word in words if word not in self.text]
        assert not missing, self._explain(f"it did not say {missing[0]!r}" if missing else "")

    def assert_called(self, tool: str, **args: Any) -> ToolCallPayload:
        """It called the tool, with at least these arguments. Gives the first such call."""
        found = self._matching(tool, args)
        assert found, self._explain(f"it did not call {_spelled(tool, args)}")
        return found[0]

    def assert_not_called(self, tool: str, **args: Any) -> None:
        """It did not call the tool with these arguments."""
        assert not self._matching(tool, args), self._explain(f"it called {_spelled(tool, args)}")

    def assert_asked(self, tool: str) -> None:
        """It asked before it used the tool."""
        asked = [event.payload.tool_name for event in self if isinstance(event, PermissionRequest)]
        assert tool in asked, self._explain(f"it did not ask for {tool}")

    def assert_ended(self, status: str = "completed") -> None:
        """The last turn ended so."""
        assert self.status == status, self._explain(f"it ended {self.status}, not {status}")

    def _matching(self, tool: str, args: dict[str, Any]) -> list[ToolCallPayload]:
        return [call for call in self.calls if call.tool_name == tool and args.items() <= as_object(call.args).items()]

    def _explain(self, problem: str) -> str:
        """The problem, and the conversation to look at."""
        return f"{problem}; this is what was heard:\n\n{''.join(project(self, 'markdown'))}"


def _spelled(tool: str, args: dict[str, Any]) -> str:
    return f"{tool}({', '.join(f'{name}={value!r}' for name, value in args.items())})"
