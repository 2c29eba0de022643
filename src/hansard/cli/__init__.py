"""The command line. One file per verb, imported when that verb is used: a pipe filter does not pay for tables and colours."""

from __future__ import annotations

import os
import sys

from hansard._version import __version__

VERBS: dict[str, str] = {
    "demo": "See what it does: recorded sessions, replayed live on a page, and an agent to talk to.",
    "import": "Put agents' own session files and recorded wire on the record.",
    "run": "Talk to an agent, on the record.",
    "serve": "Serve the page, HTTP and a socket, on this machine.",
    "sessions": "List what is on the record.",
    "show": "Read one session as a conversation.",
    "search": "Find where something was said, in every session.",
    "events": "Print the events of one session, one per line.",
    "sql": "Ask the record a question in SQL.",
    "export": "Give a session another form: messages for a provider, a trajectory, a page of text and more.",
    "normalize": "Turn an agent's wire into events, one per line; nothing is stored.",
    "acp": "Let an editor load recorded sessions: an agent of the Agent Client Protocol.",
    "mcp": "Let an agent send messages to other agents: an MCP server that agents start themselves.",
    "verify": "Check the integrity of logs.",
    "audit": "Account for every wire type and field: what it became, what is only in the original.",
    "renormalize": "Make a session anew from its originals.",
    "compress": "Make closed logs take less room, without loss; everything reads them as before.",
    "copy": "Copy sessions between stores, folders or databases, byte for byte.",
    "ship": "Send what is recorded here to another store, also as it is said.",
    "retire": "Archive old sessions as compressed logs and, if told so, delete them, on the record.",
    "migrate": "Bring the tables of a store on PostgreSQL up to this version.",
    "doctor": "Say which agents are here, in which version, and what was tested.",
    "schema": "Print the JSON Schema of events.",
    "completion": "Print what makes a shell complete commands, sessions, formats and agents.",
}
"""Every verb with its line in ``hansard --help``. The verb lives in the module of its name and is called ``command`` there."""

GROUPS = {
    "demo": "put something on the record",
    "sessions": "read it",
    "export": "hand it on",
    "verify": "look after it",
    "doctor": "find out more",
}
"""What the commands from that one on are for."""

ABOUT = "The verbatim record of what agents say and do: every byte of every agent, in one vocabulary, in one log per session."

FIRST = {
    "hansard demo": "see what it does; it needs no agent and no account",
    "hansard import": "take in the sessions that agents have left on this machine",
    "hansard sessions": "list them; then: hansard show SESSION, or hansard serve for the page",
}
"""What to try first."""

PLACES = {
    "~/.hansard": "the record: a folder for each session, its log in plain lines of JSON. --store PLACE or $HANSARD_STORE names another.",
    "hansard COMMAND --help": "what a command takes. man hansard has all of it.",
}
"""Where things are."""

OPTIONS = {"--version": "Show the version and exit.", "-h, --help": "Show this and exit; after a command, what that command takes."}

INTERRUPTED = 130
"""What a shell reports for a program that SIGINT ended."""

NARROW = 72
"""On a narrower terminal a name has a line of its own."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 the answer is no (damage found, …), 2 it could not be done."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["--version"]:
        return say(f"hansard {__version__}\n")
    if (not given or given[0] in ("-h", "--help")) and "_HANSARD_COMPLETE" not in os.environ:
        return say(overview(terminal_width()))
    try:
        from hansard.cli.group import run

        return run(given)
    except KeyboardInterrupt:  # Ctrl-C while modules are still imported; later the boundary has it
        return INTERRUPTED


def say(text: str) -> int:
    """Print what needs nothing imported."""
    if sys.stdout is not None:  # it is None when it was closed
        sys.stdout.write(text)
    return 0


def overview(width: int) -> str:
    """What ``hansard --help`` says, for a terminal that wide."""
    lines = ["Usage: hansard COMMAND [OPTIONS] [ARGS]...", "", *wrapped(ABOUT, width, "  ")]
    for heading, listed in (("Try first:", FIRST), ("Where things are:", PLACES), ("Options:", OPTIONS)):
        lines += ["", heading, *table(listed, width, 24)]
    lines += ["", "Commands:"]
    for verb, line in VERBS.items():
        if verb in GROUPS:
            lines.append(f"To {GROUPS[verb]}:")
        lines += table({verb: line}, width, 13)
    return "\n".join(lines) + "\n"


def table(listed: dict[str, str], width: int, column: int) -> list[str]:
    """Names and what they are, beside each other or, on a narrow terminal, beneath."""
    lines: list[str] = []
    for name, text in listed.items():
        if width < NARROW:
            lines += [f"  {name}", *wrapped(text, width, " " * 4)]
        else:
            first, *more = wrapped(text, width, " " * (column + 2))
            lines += [f"  {name:{column}}{first.strip()}", *more]
    return lines


def wrapped(text: str, width: int, indent: str) -> list[str]:
    """The text in lines of that width, broken between words."""
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + 1 + len(word) > width and lines[-1].strip():
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}" if lines[-1] else indent + word
    return lines


def terminal_width() -> int:
    """How wide a line may be; wide if nobody looks."""
    if sys.stdout is None or not sys.stdout.isatty():
        return 120
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except OSError:
        return 80
