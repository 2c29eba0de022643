"""The command line. One file per verb, imported when that verb is used: a pipe filter does not pay for tables and colours."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from hansard._version import __version__

VERBS: dict[str, str] = {
    "demo": "Replay recorded sessions through the whole road, in the terminal; needs no agent and no account.",
    "normalize": "Turn an agent's wire into events, one per line; nothing is stored.",
    "import": "Put agents' own session files and recorded wire on the record.",
    "sessions": "List what is on the record.",
    "show": "Read one session as a conversation.",
    "events": "Print the events of one session, one per line.",
    "audit": "Account for every wire type and field: what it became, what is only in the original.",
    "verify": "Check the integrity of logs.",
    "schema": "Print the JSON Schema of events.",
    "doctor": "Say which agents are here, in which version, and what was tested.",
}
"""Every verb with its line in ``hansard --help``. The verb lives in the module of its name and is called ``command`` there."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 the answer is no (damage found, …), 2 it could not be done."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["--version"]:
        sys.stdout.write(f"hansard {__version__}\n")
        return 0
    from hansard.cli.group import run

    return run(given or ["--help"])
