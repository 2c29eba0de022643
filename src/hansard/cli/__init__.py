"""The command line. One file per verb, imported when that verb is used: a pipe filter does not pay for tables and colors."""

from __future__ import annotations

import os
import sys

from hansard._version import __version__

VERBS: dict[str, str] = {
    "import": "Import session files and recorded agent output.",
    "run": "Run an agent in the terminal and record the session.",
    "serve": "Start the web page and the API.",
    "demo": "Explore sample sessions and talk to a demo agent.",
    "sessions": "List sessions.",
    "show": "Print a session as a conversation.",
    "search": "Search the text of all sessions.",
    "usage": "Show what all sessions used: tokens and costs.",
    "failures": "Show which turns failed, why, and what to do.",
    "commands": "List the shell commands that agents ran.",
    "files": "List the files that agents read and changed.",
    "diff": "Show what a session changed, or compare two sessions.",
    "blame": "Show which session wrote each line of a file.",
    "replay": "Run an agent again with the recorded answers of its model.",
    "events": "Print a session's events as JSON Lines.",
    "sql": "Query your sessions with SQL.",
    "export": "Convert a session to another format.",
    "share": "Write a session as one masked file, or make a link to it.",
    "normalize": "Convert raw agent output to events. Stores nothing.",
    "acp": "Let an editor load recorded sessions over ACP.",
    "mcp": "Let an agent search the record over MCP, or message others.",
    "verify": "Check that logs are complete and undamaged.",
    "audit": "Account for every wire type and field of a session.",
    "renormalize": "Rebuild a session's events from its original frames.",
    "reindex": "Rebuild the catalog of a store.",
    "compress": "Compress closed logs.",
    "copy": "Copy sessions between stores.",
    "ship": "Replicate sessions to another store.",
    "retire": "Archive old sessions, and optionally delete them.",
    "migrate": "Upgrade the schema of a PostgreSQL store.",
    "doctor": "Check installed agents, versions, and the store.",
    "schema": "Print the JSON Schema of events.",
    "completion": "Print a shell completion script.",
}
"""Every verb with its line in ``hansard --help``. The verb lives in the module of its name and is called ``command`` there."""

GROUPS = {
    "import": "Record",
    "sessions": "Read",
    "export": "Export and share",
    "verify": "Maintain",
    "doctor": "Help",
}
"""The heading of the group that starts with each of these verbs."""

ABOUT = "Record, search, and understand what your coding agents say and do."

FIRST = {
    "hansard demo": "Explore sample sessions in your browser. No account needed.",
    "hansard import": "Import the history that your agents keep on this computer.",
    "hansard serve": "Browse your sessions in a web page.",
}
"""The commands to start with."""

OPTIONS = {"--version": "Show the version and exit.", "-h, --help": "Show this help and exit."}

NOTES = (
    "Sessions are stored in ~/.hansard. To use another store, pass --store or set HANSARD_STORE. "
    "Run `hansard COMMAND --help` for details about a command."
)
"""The last paragraph of ``hansard --help``."""

INTERRUPTED = 130
"""What a shell reports for a program that SIGINT ended."""

NARROW = 72
"""On a terminal with fewer columns, a name has a line of its own."""


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
    """The text of ``hansard --help``, for a terminal of that width."""
    lines = ["Usage: hansard COMMAND [OPTIONS] [ARGS]...", "", *wrapped(ABOUT, width, "  ")]
    lines += ["", "Get started:", *table(FIRST, width, 17)]
    for verb, line in VERBS.items():
        if verb in GROUPS:
            lines += ["", f"{GROUPS[verb]}:"]
        lines += table({verb: line}, width, 13)
    lines += ["", "Options:", *table(OPTIONS, width, 13), "", *wrapped(NOTES, min(width, 80), "")]
    return "\n".join(lines) + "\n"


def table(listed: dict[str, str], width: int, column: int) -> list[str]:
    """Names with their descriptions in a second column or, on a narrow terminal, on the next line."""
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
    """The width of the terminal in columns; 120 if stdout is not a terminal."""
    if sys.stdout is None or not sys.stdout.isatty():
        return 120
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except OSError:
        return 80
