"""The command line. One file per verb, imported when that verb is used: a pipe filter does not pay for tables and colours."""

from __future__ import annotations

import os
import sys

from hansard._version import __version__

VERBS: dict[str, str] = {
    "demo": "See what it does: recorded sessions, replayed live on a page, and an agent to talk to.",
    "run": "Talk to an agent, on the record.",
    "serve": "Serve the page, HTTP and a socket, on this machine.",
    "normalize": "Turn an agent's wire into events, one per line; nothing is stored.",
    "import": "Put agents' own session files and recorded wire on the record.",
    "sessions": "List what is on the record.",
    "show": "Read one session as a conversation.",
    "search": "Find where something was said, in every session.",
    "events": "Print the events of one session, one per line.",
    "sql": "Ask the record a question in SQL.",
    "export": "Give a session another form: messages for a provider, a trajectory, a page of text and more.",
    "acp": "Let an editor load recorded sessions: an agent of the Agent Client Protocol.",
    "mcp": "Let an agent send messages to other agents: an MCP server that agents start themselves.",
    "audit": "Account for every wire type and field: what it became, what is only in the original.",
    "renormalize": "Make a session anew from its originals.",
    "verify": "Check the integrity of logs.",
    "compress": "Make closed logs take less room, without loss; everything reads them as before.",
    "copy": "Copy sessions between stores, folders or databases, byte for byte.",
    "ship": "Send what is recorded here to another store, also as it is said.",
    "retire": "Archive old sessions as compressed logs and, if told so, delete them, on the record.",
    "migrate": "Bring the tables of a store on PostgreSQL up to this version.",
    "schema": "Print the JSON Schema of events.",
    "doctor": "Say which agents are here, in which version, and what was tested.",
}
"""Every verb with its line in ``hansard --help``. The verb lives in the module of its name and is called ``command`` there."""


HELP = """\
Usage: hansard COMMAND [OPTIONS] [ARGS]...

  The verbatim record of what agents say and do.

  hansard demo                  see what it does
  hansard run demo              talk to an agent, on the record
  hansard serve                 the page: sessions, live and recorded, in a browser
  hansard import                take in the sessions that agents have left on this machine
  hansard sessions              list them; then: hansard show SESSION

Options:
  --version   Show the version and exit.
  -h, --help  Show this and exit; after a command, what that command takes.

Commands:
{verbs}
"""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 the answer is no (damage found, …), 2 it could not be done."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["--version"]:
        return say(f"hansard {__version__}\n")
    if (not given or given[0] in ("-h", "--help")) and "_HANSARD_COMPLETE" not in os.environ:
        return say(HELP.format(verbs="\n".join(f"  {verb:10} {line}" for verb, line in VERBS.items())))
    from hansard.cli.group import run

    return run(given)


def say(text: str) -> int:
    """Print what needs nothing imported."""
    if sys.stdout is not None:  # it is None when it was closed
        sys.stdout.write(text)
    return 0
