"""Terminal output: results on standard output, messages on standard error."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import typer

from kbkit.models import values
from kbkit.models.values import escape_controls, plain, plain_lines, pluralize, without_controls
from kbkit.runtime.logs import is_json

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from kbkit.feedback.evaluation_report import Evaluation
    from kbkit.feedback.tune_report import TuneReport
    from kbkit.models import Hit, Hits, Improvement, IngestReport, Progress
    from kbkit.runtime.progress import OnProgress


_PIPED_WIDTH = 10_000
"""Columns of output to a program, so that nothing is wrapped or cut."""


class Verbosity:
    """Hold the amount of output: -1 errors only, 0 results, 1 every step."""

    level = 0


@contextmanager
def progress() -> Iterator[OnProgress | None]:
    """Show progress on a terminal; with ``--verbose`` print a line for each step instead."""
    if Verbosity.level > 0:
        yield lambda now: say(f"{_stage(now)} {plain(now.message)}".rstrip())
        return
    if Verbosity.level < 0 or not sys.stderr.isatty() or is_json():
        yield None
        return
    from rich.markup import escape

    with console(stderr=True).status("starting") as status:

        def notify(progress: Progress) -> None:
            message = escape(plain(progress.message)[-70:])
            status.update(f"{_stage(progress)} [dim]{message}")

        yield notify


def _stage(progress: Progress) -> str:
    total = f" of {progress.total:,}" if progress.total else ""
    return f"{progress.stage} {progress.done:,}{total}"


def console(*, stderr: bool = False) -> Console:
    """Return a console that colours explicit styles only, and nothing with ``NO_COLOR``."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    width = None if stream.isatty() else _PIPED_WIDTH
    return Console(stderr=stderr, highlight=False, color_system=colours, width=width)


def print_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, styles: Iterable[str] = repeat("")
) -> None:
    """Print a table: long texts are wrapped, figures are right-aligned."""
    from rich.table import Table
    from rich.text import Text

    lines = [tuple(map(plain, row)) for row in rows]
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=any(header))
    for column, name in enumerate(header):
        cells = [line[column] for line in lines]
        worded = column == 0 or any(map(_WORD.match, cells))
        side: Literal["left", "right"] = "left" if worded else "right"
        parts = (word for cell in (name, *cells) for word in cell.split())
        width = max(map(len, (name, *cells) if not worded else parts), default=0)
        if worded and column:
            width = min(width, _MIN_WIDTH)
        table.add_column(name, justify=side, min_width=width, overflow="fold")
    for line in lines:
        table.add_row(*map(Text, line, styles))
    terminal = console()
    with terminal.capture() as captured:
        # names and figures stay whole, even if their lines are longer than the terminal's
        width = max(terminal.width, terminal.measure(table).minimum)
        terminal.print(table, width=width, crop=False)
    printed_lines = without_controls(captured.get(), colours=True).split("\n")
    if not terminal.is_terminal:
        printed_lines = [line.rstrip() for line in printed_lines]
    typer.echo("\n".join(printed_lines), nl=False, color=terminal.is_terminal or None)


def say(text: str) -> None:
    """Print a message to standard error; standard output is for results."""
    if Verbosity.level >= 0:
        complain(text, logging.INFO)


def complain(text: str, level: int = logging.ERROR) -> None:
    if is_json():
        logging.getLogger(__name__).log(level, "%s", text.removeprefix("kbkit: "))
    else:
        typer.echo(without_controls(text, colours=True), err=True)


def to_json(value: Any, indent: int | None = None) -> str:
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return escape_controls(json.dumps(value, ensure_ascii=not unicode, indent=indent))


def print_json(value: Any) -> None:
    """Print JSON values, a model, or a sequence of models."""
    typer.echo(to_json(values.to_json(value), indent=2))


def print_pairs(pairs: list[tuple[str, str]]) -> None:
    print_table(("", ""), pairs, styles=["bold", ""])


def print_ingest(report: IngestReport, name: str) -> None:
    (_, documents), *lines = report.lines()
    say(f"{documents}; {pluralize(report.chunks_embedded, 'chunk')} embedded")
    if report.improvement:
        say_improvement(report.improvement, name)
    for label, text in lines:
        if label == "failed":
            complain(f"failed: {to_options(text)}")
        elif label in ("skipped", "note", "warning"):
            say(f"{label}: {to_options(text)}")


def say_improvement(work: Improvement, name: str) -> None:
    if work.running:
        best = "; search is best when they are done" if work.summaries or work.chunks else ""
        say(f"in the background: {work}{best} (`kbkit improve {name}` waits for it)")
    else:
        say(f"left to do: {work}; `kbkit improve {name}` does it")


def print_evaluation(evaluation: Evaluation, verbose: bool) -> None:
    if verbose:
        _print_frame(evaluation.to_frame())
    _print_frame(evaluation.summary())
    compared = f", {evaluation.label}"
    if evaluation.against is not None:
        compared += f" against {evaluation.against.label}"
    say(f"{pluralize(len(evaluation.results), 'question')}, by {evaluation.unit}{compared}")
    if evaluation.left_out:
        say(f"left out: {len(evaluation.left_out):,} questions without a judged answer")
    for note in evaluation.notes:
        say(note)


_SHORT = {
    "reciprocal_rank": "1/rank",
    "judged@10": "judged",
    "against_ndcg@10": "against",
    "difference_low": "from",
    "difference_high": "to",
    "p_value": "p",
}


def _print_frame(frame: pd.DataFrame) -> None:
    """Print the figures of a table, with 95 % intervals as ``low`` and ``high``."""
    figures = frame.select_dtypes("number").rename(columns=_SHORT)
    rows = ([str(row[0]), *(f"{each:.3f}" for each in row[1:])] for row in figures.itertuples())
    print_table((str(frame.index.name), *figures.columns), rows)


def print_tuning(report: TuneReport) -> None:
    settings = (report.present, report.proposed)
    rows = [(name, *(f"{getattr(each, name):.2f}" for each in settings)) for name in report.weights]
    ndcg = (f"{figure:.3f}" for figure in (report.present_ndcg, report.tuned_ndcg))
    print_table(("", "present", "proposed"), [*rows, ("nDCG@10", *ndcg)])
    say(f"{report.queries:,} questions, {report.tried:,} settings tried")
    say(report.reason)
    for note in report.notes:
        say(note)


def say_notes(notes: Iterable[str]) -> None:
    for note in notes:
        say(f"note: {note}")


def print_hits(hits: Hits) -> None:
    """Print documents with their passages, best first."""
    from rich.padding import Padding
    from rich.text import Text

    terminal = console()
    documents: dict[tuple[str, str], list[Hit]] = {}
    for hit in hits:
        documents.setdefault((hit.kb, hit.uri), []).append(hit)
    for rank, passages in enumerate(documents.values(), 1):
        first = passages[0]
        title = plain(first.title or first.uri)
        head = ((f"{rank:>2}. ", "dim"), (title, "bold"), (f"  {first.kb}", "dim"))
        terminal.print(Text.assemble(*head))
        address = Text("    ").append(plain(first.anchor_url), _link_style("cyan", first.url))
        terminal.print(address, soft_wrap=True)
        description = plain(first.description)
        if description and not any(_repeats(description, hit.snippet) for hit in passages):
            line = Text("    " + description, style="dim")
            terminal.print(line, no_wrap=True, overflow="ellipsis")
        for hit in passages:
            heading = plain(" › ".join(hit.headings))
            line = Text("    ").append(heading, _link_style("", hit.url))
            terminal.print(line.append(f"{'  ' if heading else ''}{hit.score:.3f}", style="dim"))
            for text in plain_lines(hit.snippet):
                terminal.print(Padding(Text(text), (0, 0, 0, 6), expand=False))
    say_notes(hits.notes)
    counts = f"{pluralize(len(hits), 'passage')} of {pluralize(len(documents))}"
    say(f"{counts} in {hits.seconds * 1000:.0f} ms")


def _link_style(style: str, address: str) -> str:
    quoted = quote(address, safe=":/?#[]@!$&'()*+,;=%-._~")
    return (
        f"{style} link {quoted}".strip() if address.startswith(("http://", "https://")) else style
    )


def _repeats(description: str, snippet: str) -> bool:
    begin = " ".join(snippet.split())[:60].rstrip(" …")
    return bool(begin) and description.startswith(begin[: len(description)])


def listing(
    columns: str, empty: str = "", **computed: Callable[[Any], object]
) -> Callable[[Sequence[Any]], None]:
    """Return a function that prints values as a table, or a message if there are none.

    Columns are attributes, or results of the ``computed`` functions for a value.
    """
    names = columns.split()
    getters = [computed.get(name) or attrgetter(name) for name in names]

    def show(rows: Sequence[Any]) -> None:
        if rows or not empty:
            lines = ([values.format_value(getter(row)) for getter in getters] for row in rows)
            print_table([name.replace("_", " ") for name in names], lines)
        else:
            say(empty)

    return show


_WORD = re.compile(r"[^\W\d]")
_MIN_WIDTH = 16  # of a column of texts
_ARGUMENT = re.compile(r"\b(allow_private)\b|^([a-z_]+)=|\b(trust)=True")


def to_options(message: str) -> str:
    def spell(match: re.Match[str]) -> str:
        name, ending = (match[2], " ") if match[2] else (match[1] or match[3], "")
        return f"--{name.replace('_', '-')}{ending}"

    return _ARGUMENT.sub(spell, message)
