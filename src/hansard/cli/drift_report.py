"""``hansard audit --against``: what is new in recordings and sessions, and what to compare them with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hansard.cli.options import AUTO, note
from hansard.cli.verbs.audit import KNOWN, audit_named, audit_session
from hansard.errors import StoreError, UsageError

if TYPE_CHECKING:
    from hansard.adapters.audit import Auditor
    from hansard.adapters.base import Adapter
    from hansard.adapters.drift import Difference, Survey
    from hansard.adapters.framing import Frame
    from hansard.importing.job import SourceStream
    from hansard.store import StoreLocation


class Surveys:
    """What was found in everything that was named, by format."""

    def __init__(self) -> None:
        self.by_format: dict[str, Survey] = {}
        self._auditors: list[Auditor] = []

    def auditor(self, adapter: type[Adapter], format: str) -> Auditor:
        """An auditor for one more stream."""
        from hansard.adapters.drift import Survey, Surveyor

        auditor = Surveyor(adapter, format, self.by_format.setdefault(adapter.formats[0], Survey()))
        self._auditors.append(auditor)
        return auditor

    @property
    def frames(self) -> int:
        """How many frames were looked at."""
        return sum(auditor.audit.frames for auditor in self._auditors)


def compare(root: StoreLocation, what: Iterable[str], against: str, format: str, as_json: bool) -> int:
    """Say what is new; 1 if anything is."""
    shown = survey(root, what, format)
    before = None if against == KNOWN else survey(root, [against], format)
    found = list(differences(shown, before, against))
    if as_json:
        from hansard.cli.tables import print_json

        print_json({"against": against, "formats": list(shown.by_format), "frames": shown.frames, "differences": found})
    else:
        show(found, shown, against)
    return 1 if found else 0


def differences(shown: Surveys, before: Surveys | None, against: str) -> Iterator[Difference]:
    """What is new in each format."""
    from hansard.adapters import adapter_for
    from hansard.adapters.drift import drift

    for format, survey in shown.by_format.items():
        if before is not None and format not in before.by_format:
            raise UsageError(f"{against} has nothing in {format} to compare with; it has {', '.join(before.by_format)}")
        yield from drift(survey, adapter_for(format), format, None if before is None else before.by_format[format])


def survey(root: StoreLocation, names: Iterable[str], format: str) -> Surveys:
    """Look at sessions, files and folders."""
    found = Surveys()
    for name in names:
        if name != "-" and Path(name).is_dir():
            survey_folder(Path(name), format, found)
        else:
            audit_named(root, name, format, found.auditor)
    return found


def survey_folder(folder: Path, format: str, found: Surveys) -> None:
    """Look at every file of a folder that some adapter reads; if it is a store, at its sessions."""
    from hansard.adapters import adapter_for
    from hansard.importing.discovery import discover
    from hansard.importing.job import adapter_context

    logs = [name for name in sorted(os.listdir(folder)) if is_own_log(folder / name)]
    for name in logs:
        audit_session(folder, name, found.auditor)
    files = discover([folder], None if format == AUTO else format)
    for problem in files.problems:
        note(problem)
    if files.unknown:
        note(f"{folder}: {len(files.unknown)} files begin like no known format")
    streams = [(job, stream) for job in files.jobs for stream in job.streams]
    for job, stream in streams:
        adapter = adapter_for(job.format)(adapter_context(job.session_id, job.format, stream, stream.name))
        found.auditor(type(adapter), job.format).read(frames_of(stream, job.format), adapter)
    if not logs and not streams:
        raise UsageError(f"{folder}: no recording and no session in this folder")


def frames_of(stream: SourceStream, format: str) -> Iterator[Frame]:
    """The frames of a file, or of a session's rows in a database."""
    from hansard.adapters import adapter_for
    from hansard.adapters.framing import frames
    from hansard.adapters.normalize import READ_SIZE
    from hansard.importing.job import read_frames

    if stream.rows is not None:
        yield from read_frames(stream, format)
        return
    with Path(stream.path).open("rb") as file:
        yield from frames(iter(partial(file.read, READ_SIZE), b""), adapter_for(format).framer())


def is_own_log(folder: Path) -> bool:
    """Whether there is a log of ours in a folder."""
    from hansard.adapters.normalize import OWN_LOG
    from hansard.store.files.segment import open_segment

    try:
        with closing(open_segment(folder, 1)) as log:
            return log.pread(len(OWN_LOG), 0) == OWN_LOG
    except (FileNotFoundError, StoreError):
        return False


def show(found: list[Difference], shown: Surveys, against: str) -> None:
    """The same for people."""
    from hansard.cli.tables import counted, print_table, style

    whom = "what the adapter knows" if against == KNOWN else against
    looked = f"{', '.join(shown.by_format)}: {counted(shown.frames)} frames against {whom}; "
    click.echo(looked + style(f"{counted(len(found))} new" if found else "nothing new", fg="red" if found else "green"))
    if not found:
        return
    click.echo()
    headings = ["NEW", "WHERE", "TIMES", "FOR EXAMPLE"]
    rows = [[new.kind, where(new), new.times, new.sample] for new in found]
    if against != KNOWN:
        headings.append("THE ADAPTER")
        rows = [[*row, "knows it" if new.known else "does not know it"] for row, new in zip(rows, found, strict=True)]
    if len(shown.by_format) > 1:
        headings.insert(0, "FORMAT")
        rows = [[new.format, *row] for row, new in zip(rows, found, strict=True)]
    print_table(headings, rows, right=(headings.index("TIMES"),), flexible=headings.index("FOR EXAMPLE"))


def where(new: Difference) -> str:
    """The place of something new, with the word that is new there."""
    from hansard.adapters.drift import MESSAGE

    if new.kind == "type" and new.where == MESSAGE:
        return new.word or ""
    return new.where if new.word is None else f"{new.where}: {new.word}"
