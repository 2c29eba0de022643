"""``hansard search``: where something was said."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING

import click

from hansard.cli import completers
from hansard.cli.options import filter_options, json_option, store_option, store_place
from hansard.cli.progress import progress
from hansard.events.times import to_datetime
from hansard.store.search_text import SCOPES

if TYPE_CHECKING:
    from hansard.store.filters import SessionFilter


@click.command("search", context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--session",
    "sessions",
    multiple=True,
    metavar="SESSION",
    shell_complete=completers.sessions,
    help="Only in this session; may be given more than once.",
)
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="TYPE",
    shell_complete=completers.event_types,
    help="Only in events of this type: user_message, tool_call, ….",
)
@click.option(
    "--in",
    "scopes",
    multiple=True,
    type=click.Choice(list(SCOPES)),
    help="Only in what was said, in what tools were asked or returned, in thinking, or in edits.",
)
@filter_options()
@click.option("--regex", is_flag=True, help="Search for a regular expression. Reads all logs.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, metavar="N", help="Stop after so many places.")
@store_option
@json_option
def command(
    words: tuple[str, ...],
    sessions: tuple[str, ...],
    types: tuple[str, ...],
    scopes: tuple[str, ...],
    wanted: SessionFilter,
    regex: bool,
    limit: int,
    store: str | None,
    as_json: bool,
) -> int:
    """Search the text of all sessions.

    Finds events that contain all the words, ignoring case. Put a phrase in quotation marks to match it exactly. `pars*` finds words that
    begin so, and `-word` leaves out the events that contain the word. The newest sessions come first. Exit code 1 if nothing is found.
    """
    from hansard.cli.inputs import need_session
    from hansard.cli.tables import print_json, print_table
    from hansard.importing.capture import search_captured
    from hansard.projections.terminal_text import visible_line
    from hansard.store import open_store
    from hansard.store.search import SearchQuery

    if unknown := next((word for word in words if word.startswith("--")), None):  # a word may begin with one "-" alone
        raise click.NoSuchOption(unknown, ctx=click.get_current_context())
    root = store_place(store)
    with open_store(root) as record:
        among = [need_session(root, name) for name in sessions] or None
        query = " ".join(words) if regex or len(words) == 1 else " ".join(f'"{word}"' if " " in word else word for word in words)
        search = SearchQuery(record, query, among, types or None, regex, scopes=scopes, wanted=wanted)
        total = 0
        if sys.stderr.isatty():
            total = sum(info.bytes for info in record.sessions())
            with progress("indexing", total) as advance:
                record.update_index(advance=advance)
        with progress("searching", total) as search.advance:
            hits = search_captured(record, search, query, among, types or None, regex, scopes=scopes, wanted=wanted)
            found = list(islice((hit for hit in hits if hit is not None), limit + 1))
    shown = found[:limit]
    if as_json:
        print_json(shown)
        return 0 if shown else 1
    if not shown:
        click.echo(f"nobody said {visible_line(query)}", err=True)
        return 1
    print_table(
        ("SESSION", "§", "WHEN", "WHAT", "SAID"),
        [(one.session_id, one.seq, f"{to_datetime(one.timestamp, None):%Y-%m-%d %H:%M}", one.type, one.text) for one in shown],
        right=(1,),
        flexible=4,
    )
    if len(found) > limit:
        click.echo(f"the first {limit}; --limit shows more", err=True)
    return 0
