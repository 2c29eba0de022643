"""docs/tools.md: every tool of the recordings, its kind, and the type of its input."""

from __future__ import annotations

from collections import Counter

from hansard.adapters import formats
from hansard.adapters.normalize import normalize
from hansard.events import ToolCall
from hansard.events.tool_inputs import ToolInput, tool_input
from tests.recorded import streams
from tools.features import NOTICE, table

BEGINNING = """# Tools

Every agent has its own names for the same tools. `hansard.events.tool_inputs` reads them all as one; the event keeps the agent's
name and arguments.

```python
import hansard
from hansard.events.tool_inputs import Command, EditFile, tool_input, tool_title

for event in hansard.open("~/.hansard")["codex-01a1e0b0-6ae8-7783-b4e3-3dcbbdd7e5d1"].read():
    if isinstance(event, hansard.ToolCall):
        match tool_input(event.payload):  # None if the input is of no type below
            case Command(command=command):
                print(command)
            case EditFile(path=path, old=old, new=new):
                print(path, old, new)
        print(tool_title(event.payload))  # the same words for every agent
```

```output
wc -l poem.txt && head -n 1 poem.txt
Run wc -l poem.txt && head -n 1 poem.txt
```

`tool_action(call)` is the word for the type (`command`, `edit_file`), or the call's `kind` where there is none.
The form `timeline` uses all three.

## Inputs

"""

CALLS = """
## Tools in the recordings

Calls with an input of a type, and those without: broken arguments, agents that send none (Gemini CLI over ACP), and
tools that are nothing of the above.

"""


def tools() -> str:
    """The types of input, and a table of all tools that the recordings call."""
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for stream in streams():
        if stream.format not in formats():
            continue
        for event in normalize(stream.data, stream.format, stream.context):
            if isinstance(event, ToolCall):
                call, typed = event.payload, tool_input(event.payload)
                counts[event.source or "", call.tool_name, call.kind or "–", "–" if typed is None else type(typed).__name__] += 1
    rows = [[source, f"`{name}`", kind, typed, f"{count:,}"] for (source, name, kind, typed), count in sorted(counts.items())]
    return NOTICE + BEGINNING + inputs() + CALLS + table(["source", "tool", "kind", "input", "calls"], rows)


def inputs() -> str:
    """Every type of input with its fields."""
    rows = [
        [
            f"`{kind.__name__}`",
            f"`{kind.__struct_config__.tag}`",
            " ".join(f"`{name}`" for name in kind.__struct_fields__),
            summary_of(kind),
        ]
        for kind in ToolInput.__subclasses__()
    ]
    return table(["type", "action", "fields", "what it is"], rows)


def summary_of(kind: type[ToolInput]) -> str:
    """What its docstring says."""
    return " ".join((kind.__doc__ or "").split())
