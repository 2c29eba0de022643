"""docs/cli.md: every command with what its `--help` says, and examples. `tests/test_blocks.py` runs all of it."""

from __future__ import annotations

from click.testing import CliRunner

from hansard.cli import VERBS, overview
from hansard.cli.group import verbs
from tools.features import NOTICE

WIDTH = 88
"""Columns of the texts, as in `tests/blocks.py`."""

WIDE = 120
"""Columns of ``hansard --help`` where it is not printed on a terminal."""

EXAMPLES: dict[str, str] = {
    "demo": """\
$ hansard demo --terminal --speed 0
━━ A tool asks for permission, and gets it ━━
…
6 sessions; --keep DIR keeps their logs. Your own: hansard import
""",
    "run": """\
$ hansard run demo --allow "edit"
…
▸ edit  answer.py  ✓ allowed by policy, +1 −1
   def answer():
  -    return 41
  +    return 42

demo:
  Now it is 42.

✓ completed · 1 token in, 2 out…
…
$ echo "say good morning" | hansard run demo - --json 2> /dev/null | jq -r 'select(.type == "turn_end").payload.status'
completed
""",
    "serve": """\
$ hansard serve --observer-link
hansard is at http://127.0.0.1:7413/?token=…
to look only:  http://127.0.0.1:7413/?token=…
""",
    "normalize": """\
$ hansard normalize --from claude-stream-json --no-original stdout.jsonl | head -n 2 | tail -n 1
{"type":"turn_start",…}
$ cat stdout.jsonl | hansard normalize --from claude-stream-json - | grep -c '^{"type":"tool_call"'
1
""",
    "import": """\
$ hansard import
sessions: 4 added
…
$ hansard import stdout.jsonl      # what the agent printed, of a session that it also kept
sessions: 1 updated
…
$ hansard import
sessions: 4 unchanged
…
""",
    "sessions": """\
$ hansard sessions
SESSION … AGENT … PROJECT … MODEL … TITLE … EVENTS … COST … UPDATED … STATUS
…
gemini-af16f6f8-3f1e-4d56-9ce3-54dc626ae7ec  gemini  demo     gemini-2.5-pro   How many ferries leave … completed
claude-e275c11f-816a-4b9d-a230-9cc0cebe4ae9  claude  demo     claude-opus-5-5  Let a helper look at … $0.0028  2026-11-15 19:47  completed
…
$ hansard sessions --json | head -n 3
[
  {
    "id": "…",
""",
    "show": """\
$ hansard show codex-01a1 --lines 2
…
user:
  Count the lines of poem.txt.
…
$ hansard show stdout.jsonl
…
✓ completed …
""",
    "search": """\
$ hansard search ferries
SESSION … § … WHEN … WHAT … SAID
gemini-af16f6f8-… user_message …
…
""",
    "diff": """\
$ hansard diff claude-7653 claude-e275 | tail -n 3
First difference, after 0 equal steps:
  §… prompt: Run the heron-tool-fail check.
  §… prompt: Let a helper look at the heron-subagent.
""",
    "blame": """\
$ echo 'Counted by hand' > notes.md
$ hansard blame notes.md:1
1: Counted by hand
No edit on record wrote this line.
""",
    "events": """\
$ hansard events claude-7653 --type tool_result --no-original | head -n 1
{"type":"tool_result",…"isError":true,"exitCode":3}}
""",
    "sql": """\
$ hansard sql "select tool_name, count(*) n from events where type = 'tool_call' group by 1 order by 2 desc"
tool_name … n
Bash … 3
…
""",
    "export": """\
$ hansard export claude-7653 --to markdown -o session.md
$ hansard export claude-7653 --to html -o session.html
$ hansard export claude-7653 --to openai-messages --report left-out.json | head -n 2
[
{"role":"user","content":"Run the heron-tool-fail check."},
""",
    "share": """\
$ hansard share claude-7653 -o shared.html
shared.html (… kB)
Masked: nothing, no secrets were found
""",
    "audit": """\
$ hansard audit claude-7653
claude-session: 28 frames, 17.8 kB, 37 events; every one accounted for, byte for byte
…
""",
    "renormalize": """\
$ hansard renormalize claude-e275 --session again
…
hansard: 69 events from the originals of claude-e275c11f-816a-4b9d-a230-9cc0cebe4ae9, which has 69; hansard show again
""",
    "verify": """\
$ hansard verify
… logs are as written
""",
    "compress": """\
$ hansard compress codex-01a1
sessions: 1 compressed
… kB in … kB, … times smaller
$ hansard compress --undo codex-01a1
sessions: 1 unpacked
""",
    "copy": """\
$ hansard copy --to ~/elsewhere claude-7653
sessions: 1 copied
51 events, … kB in … s, to ~/elsewhere
""",
    "ship": """\
$ hansard ship --to ~/elsewhere
sessions: … copied, 1 unchanged
…
""",
    "retire": """\
$ hansard retire --older-than 1h --archive ~/archive --dry-run
SESSION … EVENTS     SIZE  SHA-256
…
codex-01a1e0b0-6ae8-7783-b4e3-3dcbbdd7e5d1   would be archived      27  … kB
…
""",
    "schema": """\
$ hansard schema | jq -r '.["$schema"]'
…
""",
    "doctor": """\
$ hansard doctor
hansard …, Python …
store   ~/.hansard: … sessions, …
…
""",
}
"""What a command can be asked, in a home with sessions of four agents. Those that wait for others (an editor, a database) have none."""


def command_line() -> str:
    """Every command."""
    parts = [NOTICE + PAGE, block("hansard --help", overview(WIDE))]
    for verb in VERBS:
        parts += [f"\n## hansard {verb}\n\n", block(f"hansard {verb} --help", help_of(verb))]
        if verb in EXAMPLES:
            parts.append(f"\n```console\n{EXAMPLES[verb]}```\n")
    return "".join(parts)


def help_of(verb: str) -> str:
    """What a command says of itself."""
    said = CliRunner().invoke(verbs, [verb, "--help"], prog_name="hansard", terminal_width=WIDTH)
    if said.exit_code != 0:
        raise SystemExit(said.output)
    return said.output


def block(command: str, output: str) -> str:
    """A command and what it says."""
    return f"```console\n$ {command}\n{output.rstrip()}\n```\n"


PAGE = """# The command line

Exit codes: 0 done; 1 the answer is no (damage found, a frame unaccounted for, nothing found); 2 it could not be done, and one sentence on
stderr says why. Wherever a command takes a session, the beginning of its id is enough; where it takes a store, that is a folder or
`postgresql://…`, and `$HANSARD_STORE` or `~/.hansard` if nothing is said. `--json` gives programs what a table gives people.

The examples are run by `tests/test_blocks.py`, in a home with sessions of four agents; `…` stands for what is different elsewhere.

"""
