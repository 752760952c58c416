"""The report of an ingest as text and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from kbkit.models import IngestReport, Problem
from kbkit.models.plain import pluralize
from kbkit.panels.render import PATH_LENGTH, TITLE_LENGTH, plain

MAX_PROBLEMS = 100
"""Maximum problems listed."""


def counts(report: IngestReport, place: str, seconds: float) -> str:
    """Return the counts of an ingest; screen readers find them without announcements."""
    numbers = {
        "new": report.new,
        "changed": report.changed,
        "same": report.same,
        "gone": report.gone,
        "failed": len(report.failed),
        "skipped": len(report.skipped),
    }
    done = sum(numbers.values())
    cells = "".join(
        f'<span class="kbkit-count kbkit-{name}{" kbkit-some" if number else ""}">'
        f"<b>{number:,}</b> {name}</span>"
        for name, number in numbers.items()
    )
    pace = f"{done / seconds:.1f} pages/s" if done and seconds > 0.05 else ""
    return (
        f'<div class="kbkit-counts" role="group" aria-label="Counts">{cells}'
        f'<span class="kbkit-pace">{pace}</span></div>'
        f'<div class="kbkit-now"><bdi>{escape(plain(place, PATH_LENGTH))}</bdi></div>'
    )


def problems(failed: Sequence[Problem], skipped: Sequence[Problem]) -> str:
    """List failed and skipped items with reasons, the last first; ``""`` for none."""
    found = [("failed", problem) for problem in reversed(failed)]
    found += [("skipped", problem) for problem in reversed(skipped)]
    if not found:
        return ""
    items = "".join(
        f'<li><span class="kbkit-badge kbkit-{kind}">{kind}</span> '
        f"<bdi>{escape(plain(problem.uri, TITLE_LENGTH))}</bdi> "
        f'<span class="kbkit-reason">{escape(plain(problem.reason, PATH_LENGTH))}</span></li>'
        for kind, problem in found[:MAX_PROBLEMS]
    )
    more = len(found) - MAX_PROBLEMS
    rest = f"<li>and {more:,} more: see the report</li>" if more > 0 else ""
    return (
        f'<div class="kbkit-problems" role="region" aria-label="Problems" tabindex="0">'
        f"<b>{pluralize(len(found), 'problem')}</b>"
        f"<ul>{items}{rest}</ul></div>"
    )


def summary(report: IngestReport, seconds: float) -> str:
    read = report.new + report.changed + report.same
    documents = pluralize(read, "document")
    took = f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"
    if report.interrupted:
        return f"Stopped after {took}: {documents} kept. Start again to go on."
    if report.nothing_read:
        return f"Done in {took}, but nothing could be read: see the problems below."
    return (
        f"Done in {took}: {documents} read, {report.new + report.changed:,} of them new or changed."
    )
