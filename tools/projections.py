"""docs/projections.md: every form, who says that it is right, and what of the recordings is in it."""

from __future__ import annotations

from collections import Counter
from importlib import import_module

from hansard.adapters import formats
from hansard.adapters.normalize import normalize
from hansard.projections import FORMATS, Projected, Report, projection_for
from tests.projections.referees import REFEREES
from tests.recorded import streams
from tools.features import NOTICE, table

BEGINNING = (
    "`hansard export SESSION --to FORM` and `hansard.project(events, FORM)` give a session these forms. "
    "Each event is used or left out with a reason; the counts below are of every recording. "
    "The referee is the test that accepts every recording, every odd stream and every damaged log."
)


def projections() -> str:
    """A table of the forms, and for each form what it leaves out and why."""
    reports = {form: Report() for form in FORMATS}
    recordings = 0
    for stream in streams():
        if stream.format not in formats():
            continue
        recordings += 1
        events = list(normalize(stream.data, stream.format, stream.context))
        for form, total in reports.items():
            made = Projected(projection_for(form)(), events)
            for _ in made:
                pass
            add(total, made.report)
    rows = [
        [f"`{form}`", first_sentence(form), projection_for(form).output, f"`{REFEREES[form].__name__}`", str(recordings)]
        + [f"{count:,}" for count in (report.events, report.used, report.events - report.used)]
        for form, report in reports.items()
    ]
    parts = [
        "# Projections",
        BEGINNING,
        table(["form", "what it is", "shape", "referee", "recordings", "events", "used", "left out"], rows),
    ]
    for form, report in reports.items():
        parts += [f"## {form}", left_out(report)]
    return NOTICE + "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def add(total: Report, report: Report) -> None:
    """Count a report in."""
    total.events += report.events
    for kind, reasons in report.left_out.items():
        total.left_out[kind] = dict(Counter(total.left_out.get(kind, {})) + Counter(reasons))


def left_out(report: Report) -> str:
    """What is left out, by type and reason."""
    rows = [
        [f"`{kind}`", reason, f"{count:,}"]
        for kind, reasons in sorted(report.left_out.items())
        for reason, count in sorted(reasons.items())
    ]
    return table(["left out", "why", "events"], rows) if rows else "Nothing is left out."


def first_sentence(form: str) -> str:
    """The first sentence of the projection's module."""
    words = import_module(projection_for(form).__module__).__doc__ or ""
    return " ".join(words.replace("``", "`").split()).partition(". ")[0].rstrip(".") + "."
