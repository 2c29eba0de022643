"""The manual page, made of the commands themselves: ``man hansard`` says what ``hansard COMMAND --help`` says."""

from __future__ import annotations

import re
from importlib import import_module
from textwrap import wrap

import click

from hansard._version import __version__
from hansard.cli import ABOUT, FIRST, GROUPS, VERBS
from hansard.cli.group import verbs
from hansard.projections import FORMATS

DATE = "2026-11-16"
"""The day of the release; it is set with the version."""
ENVIRONMENT = {
    "HANSARD_STORE": "Where the record is kept, if --store does not say: a folder, or postgresql://….",
    "NO_COLOR": "If it is set and not empty, nothing is coloured.",
    "OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS": "Where hansard export --to otlp sends spans, and with which headers.",
}
FILES = {
    "~/.hansard/SESSION/events.jsonl": "The log of a session: one event a line, only ever appended to.",
    "~/.hansard/SESSION/events.jsonl.zst": "The same, compressed.",
}
EXIT = {
    "0": "Done.",
    "1": "Done, and the answer is no: damage was found, nothing was found, a turn ended badly.",
    "2": "It could not be done; one line on stderr says why.",
    "70": "A bug in hansard; the lines on stderr say where.",
    "130": "Ctrl-C. A server, and a conversation at its prompt, are ended that way and exit with 0.",
    "141": "Whoever read the output has left.",
}
EXAMPLES = {
    **FIRST,
    "claude -p 'why?' --output-format stream-json --verbose | hansard normalize": "An agent's words as events, in a pipe.",
    "hansard export SESSION --to markdown -o session.md": "A session to read elsewhere; secrets are masked.",
    "hansard verify": "Whether every log is as it was written.",
}


def page() -> str:
    """The page, in the man macros."""
    parts = [
        '.\\" Made by tools/generate_packaged.py.',
        f'.TH HANSARD 1 "{DATE}" "hansard {__version__}" "User Commands"',
        ".SH NAME",
        "hansard \\- record, search, and understand what coding agents say and do",
        ".SH SYNOPSIS",
        ".B hansard",
        ".I COMMAND",
        "[\\fIOPTIONS\\fR] [\\fIARGS\\fR]...",
        ".SH DESCRIPTION",
        *filled(ABOUT),
        ".SH COMMANDS",
    ]
    for number, verb in enumerate(VERBS):
        if verb in GROUPS:
            parts += [*([".PP"] if number else []), text(f"{GROUPS[verb]}:")]
        parts += command(verb)
    for heading, listed in (("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES), ("EXIT STATUS", EXIT), ("EXAMPLES", EXAMPLES)):
        parts += [f".SH {heading}", *(line for name, about in listed.items() for line in entry(name, about))]
    return "\n".join(parts) + "\n"


def command(verb: str) -> list[str]:
    """One command: how it is called, what it does, what it takes."""
    with click.Context(verbs, info_name="hansard", help_option_names=["-h", "--help"]) as above:
        found = verbs.get_command(above, verb)
        assert found is not None
        with click.Context(found, info_name=verb, parent=above) as context:
            lines = [f".SS {text(verb)}", ".B " + text(f"hansard {verb}"), text(" ".join(found.collect_usage_pieces(context)))]
            for paragraph in (found.help or "").split("\n\n"):
                lines += paragraph_lines(paragraph)
            for option in found.get_params(context):
                record = option.get_help_record(context) if isinstance(option, click.Option) else None
                if record is not None:
                    lines += entry(*record)
    return lines + (forms() if verb == "export" else [])


def paragraph_lines(paragraph: str) -> list[str]:
    """A paragraph; one that click is told not to fill (``\\b``) is left as it is."""
    if "\b" in paragraph:
        kept = [line.strip() for line in paragraph.split("\n") if line.strip("\b ")]
        return [".PP", ".nf", *map(text, kept), ".fi"]
    return [".PP", *filled(paragraph)]


def forms() -> list[str]:
    """The forms of ``hansard export``, each with the sentence its file begins with."""
    lines = [".PP", "Forms:"]
    for form, place in sorted(FORMATS.items()):
        about = import_module(f"hansard.projections.formats.{place.split('.')[0]}").__doc__ or ""
        lines += entry(form, " ".join(about.split(". ")[0].split(".\n")[0].rstrip(".").split()) + ".")
    return lines


def entry(name: str, about: str) -> list[str]:
    """A name and, indented, what it is."""
    return [".TP", f"\\fB{text(name)}\\fR", *filled(about)]


def filled(about: str) -> list[str]:
    """Running text, in lines that are not too long for those who read the source."""
    return [text(line) for line in wrap(about, 72, break_long_words=False, break_on_hyphens=False)]


def text(plain: str) -> str:
    """Words that roff reads as words: no command, no hyphen where a minus is, nothing beyond ASCII."""
    safe = plain.replace("\\", "\\e").replace("-", "\\-").replace("``", "").replace("`", "\\`")
    safe = re.sub(r"[^\x00-\x7f]", lambda found: f"\\[u{ord(found.group()):04X}]", safe)
    return f"\\&{safe}" if safe.startswith((".", "'")) else safe
