"""What the command line shows: results on standard output, all else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from kbkit.models.plain import plain
from kbkit.models.reports import by_reason

if TYPE_CHECKING:
    from rich.console import Console

    from kbkit.feedback.evaluate import Evaluation
    from kbkit.feedback.tune import TuneReport
    from kbkit.models import Hits, Improvement, IngestReport, KnowledgeBaseInfo
    from kbkit.progress import OnProgress


@contextmanager
def progress() -> Iterator[OnProgress | None]:
    """A line on the terminal that tells how far the work is; nothing where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape

    from kbkit.models import Progress

    with Console(stderr=True).status("starting") as status:

        def tell(progress: Progress) -> None:
            total = f" of {progress.total:,}" if progress.total else ""
            status.update(
                f"{progress.stage} {progress.done:,}{total} [dim]{escape(progress.message[-70:])}"
            )

        yield tell


def console() -> Console:
    """A console that colours only what it is told to."""
    from rich.console import Console

    return Console(highlight=False)


def say(text: str) -> None:
    """Tell the person something; standard output is for results."""
    typer.echo(text, err=True)


def to_json(value: Any, indent: int | None = None) -> str:
    """JSON that standard output can carry."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return json.dumps(value, ensure_ascii=not unicode, indent=indent)


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    typer.echo(to_json(value, indent=2))


def print_row(line: str, about: str) -> None:
    """Print a line; in a terminal with what it is about behind it, as far as there is room."""
    from rich.text import Text

    terminal = console()
    room = terminal.width - len(line) - 2
    if terminal.is_terminal and about and room >= 20:
        text = Text(line).append(f"  {plain(about)}", style="dim")
        terminal.print(text, no_wrap=True, overflow="ellipsis")
    else:
        typer.echo(line)


def print_pairs(pairs: list[tuple[str, str]]) -> None:
    """Print labels and values in two columns."""
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for label, value in pairs:
        table.add_row(Text(label, style="bold"), Text(value, overflow="fold"))
    console().print(table)


def print_ingest(report: IngestReport, as_json: bool, name: str) -> None:
    """Print what an ingest did: JSON as a result, or words for a person."""
    if as_json:
        print_json(report.to_dict())
    else:
        say(
            f"{report.new:,} new, {report.changed:,} changed, {report.same:,} same, "
            f"{report.gone:,} gone; {report.chunks_embedded:,} chunks embedded"
        )
        if report.improvement:
            say_improvement(report.improvement, name)
        for label, problems in (("failed", report.failed), ("skipped", report.skipped)):
            for problem in problems:
                say(f"{label}: {problem.uri}: {problem.reason}")
        for note in by_reason(report.notes):
            say(f"note: {note}")
        for warning in report.warnings:
            say(f"poorly read: {warning.uri}: {warning.reason}")


def say_improvement(left: Improvement, name: str) -> None:
    """Tell the person what models have still to embed, and what is done about it."""
    if left.running:
        say(f"in the background: a model embeds {left}; search is best when it has "
            f"(`kbkit improve {name}` waits for it)")  # fmt: skip
    else:
        say(f"static vectors serve {left}; `kbkit improve {name}` has a model embed them")


def print_evaluation(evaluation: Evaluation, verbose: bool) -> None:
    """Print the figures with their intervals, and each question's own where they are wanted."""
    from rich.table import Table

    if verbose:
        _print_queries(evaluation)
    labels = {"ndcg@10": "nDCG@10", "mrr@10": "MRR@10", "hit@1": "Hit@1"}
    table = Table("", evaluation.label, "95 %", box=None, padding=(0, 2, 0, 0))
    others = evaluation.against
    other_means = {} if others is None else others.means()
    if others is not None:
        for head in (others.label, "difference", "95 %", "p"):
            table.add_column(head)
    means, differences = evaluation.means(), evaluation.differences()
    for name, (low, high) in evaluation.intervals().items():
        row = [labels.get(name, name.capitalize()), f"{means[name]:.3f}", f"{low:.3f}-{high:.3f}"]
        if name in differences:
            found = differences[name]
            ends = f"{found.low:+.3f} to {found.high:+.3f}"
            row += [f"{other_means[name]:.3f}", f"{found.mean:+.3f}", ends, f"{found.p_value:.4f}"]
        table.add_row(*row)
    console().print(table)
    say(f"{len(evaluation.results):,} questions, by {evaluation.unit}")
    if evaluation.left_out:
        say(f"left out: {len(evaluation.left_out):,} questions that nothing judged answers")


def print_tuning(report: TuneReport) -> None:
    """Print the weights that there are and those that were learned, and which of them win."""
    from rich.table import Table

    values = report.to_dict()
    table = Table("", "present", "proposed", box=None, padding=(0, 2, 0, 0))
    for name, present in values["present"].items():
        table.add_row(name, f"{present:.2f}", f"{values['proposed'][name]:.2f}")
    ndcg = (f"{values[key]:.3f}" for key in ("present_ndcg@10", "tuned_ndcg@10"))
    table.add_row("nDCG@10", *ndcg)
    console().print(table)
    say(f"{report.queries:,} questions, {report.tried:,} settings tried")
    say(report.reason)


def _print_queries(evaluation: Evaluation) -> None:
    from rich.table import Table
    from rich.text import Text

    others = evaluation.against
    table = Table("nDCG@10", box=None, padding=(0, 2, 0, 0))
    if others is not None:
        table.add_column(others.label)
    table.add_column("recall")
    table.add_column("first right")
    table.add_column("question", overflow="fold")
    for i, result in enumerate(evaluation.results):
        first = f"{1 / result.reciprocal_rank:.0f}" if result.reciprocal_rank else "none"
        other = [] if others is None else [f"{others.results[i].ndcg:.3f}"]
        table.add_row(
            f"{result.ndcg:.3f}", *other, f"{result.recall:.3f}", first, Text(result.query)
        )
    console().print(table)


def info_lines(info: KnowledgeBaseInfo) -> list[tuple[str, str]]:
    """The figures of a knowledge base as labels and values."""

    def counts(values: Any) -> str:
        return ", ".join(f"{count:,} {name}" for name, count in values.items() if count)

    left = info.waiting
    return [
        ("name", info.name),
        ("description", info.description),
        ("documents", f"{info.documents:,}"),
        ("chunks", f"{info.chunks:,}"),
        ("types", counts(info.document_types)),
        ("states", counts(info.states)),
        ("sources", ", ".join(info.source_types)),
        ("embedder", f"{info.embedder} ({info.dimensions} dimensions)"),
        ("cards", info.card_embedder),
        *([("waiting", str(left))] if left else []),
        ("collection", info.collection),
        ("created", f"{info.created_at:%Y-%m-%d %H:%M} UTC"),
        ("updated", f"{info.updated_at:%Y-%m-%d %H:%M} UTC"),
    ]


def say_notes(notes: Iterable[str]) -> None:
    """Tell the person what there is to know of how hits came about."""
    for note in notes:
        say(f"note: {note}")


def print_hits(hits: Hits) -> None:
    """Print hits for a person to read."""
    from rich.text import Text

    terminal = console()
    for rank, hit in enumerate(hits, 1):
        head = Text(f"{rank:>2}. ", style="dim")
        head.append(plain(hit.title), style="bold")
        if hit.headings:
            head.append(f"  {plain(' › '.join(hit.headings))}")
        head.append(f"  {hit.score:.3f}  {hit.kb}", style="dim")
        terminal.print(head)
        terminal.print(Text("    " + plain(hit.url), style="cyan", overflow="fold"))
        if hit.description:
            line = Text("    " + plain(hit.description), style="dim")
            terminal.print(line, no_wrap=True, overflow="ellipsis")
        terminal.print(Text("    " + plain(hit.snippet)))
    say_notes(hits.notes)
    say(f"{len(hits)} hits in {hits.seconds * 1000:.0f} ms")
