"""Commands that search and evaluate."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbkit.cli import (
    EXIT_BELOW_FLOOR,
    AllowPrivate,
    AsJson,
    Options,
    app,
    open_workspace,
    takes,
    with_options,
)
from kbkit.cli.terminal import (
    print_evaluation,
    print_hits,
    print_table,
    print_tuning,
    printed,
    progress,
    say,
    say_notes,
    to_json,
)
from kbkit.errors import ConfigError, NotFoundError, SourceError
from kbkit.models import Filters
from kbkit.models.values import without_controls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbkit.feedback.judgements import Judgements
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.recipes import Question
    from kbkit.workspace import Workspace


WORST_PAGES = 5

Searched = Annotated[
    list[str] | None, typer.Option("--kb", help="Knowledge base to search (default: all).")
]
ModeName = Annotated[str, typer.Option(help="hybrid, dense or lexical.")]


_CONDITIONS: Options = {
    "document_type": ("--type", list[str], "Only documents of this type."),
    "tags": ("--tag", list[str], "Only documents with this tag."),
    "source": ("", str, "Only documents whose URI starts with this."),
    "path": ("", str, "Only documents whose path matches this glob, such as library/**."),
    "after": ("", str, "Only documents fetched on or after this date, such as 2026-01-31."),
    "before": ("", str, "Only documents fetched before this date."),
    "min_rating": ("", float, "Only documents with at least this average rating, 1 to 5."),
    "min_probability": ("", float, "Only hits that answer with this probability, 0 to 1."),
    "state": ("", list[str], "Only documents in this state: current or stale."),
    "version": ("--of-version", str, "Only documents of this version, such as 3.12."),
    "heading": ("", str, "Only text below headings with these words."),
    "page": ("", list[int], "Only this page of a PDF."),
    "frame": ("", list[str], "Only statements of this type, such as procedure."),
    "subject": ("", list[str], "Only chunks about this subject."),
    "entity": ("", list[str], "Only chunks that name this entity."),
}


@with_options(_CONDITIONS)
def _filters(**conditions: Any) -> Filters:
    return Filters.of(conditions)


@app.command()
@takes(_filters, "filters")
def search(
    query: Annotated[str | None, typer.Argument(help="A question or some words.")] = None,
    kb: Searched = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of hits.")] = 10,
    mode: ModeName = "hybrid",
    *,
    filters: Filters,
    graph: Annotated[
        float | None, typer.Option(min=0, max=5, help="Weight of the knowledge graph (0: off).")
    ] = None,
    queries: Annotated[
        Path | None, typer.Option(help="File with a query on each line; needs --jsonl.")
    ] = None,
    as_json: AsJson = False,
    as_jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Print a line of JSON for each query.")
    ] = False,
) -> None:
    """Search knowledge bases."""
    if (query is None) == (queries is None):
        raise typer.BadParameter("give a query, or --queries FILE")
    if queries is not None and not (as_json or as_jsonl):
        raise typer.BadParameter("--queries prints JSON lines only; add --jsonl")
    # a search does not need BLAS threads, whose start takes a tenth of a second
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with open_workspace() as workspace:
        ask = partial(
            workspace.search, kbs=kb or None, limit=limit, mode=mode, filters=filters, graph=graph
        )
        if queries is not None:
            notes: dict[str, None] = {}
            for line in _lines(queries):
                if not line.strip():
                    typer.echo("[]")
                    continue
                hits = ask(line)
                typer.echo(to_json(hits.to_dicts()))
                notes.update(dict.fromkeys(hits.notes))
            say_notes(notes)
            return
        hits = ask(query or "")
    if as_json or as_jsonl:
        say_notes(hits.notes)
        typer.echo(to_json(hits.to_dicts(), indent=None if as_jsonl else 2))
    else:
        print_hits(hits)


@app.command("context")
def context_(
    query: Annotated[str, typer.Argument(help="A question or some words.")],
    kb: Searched = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum tokens of the text.")] = 2000,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum passages (default: KBKIT_TOP_K, or 3).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print passages that answer a question, with sources."""
    with open_workspace() as workspace:
        answer = workspace.context(query, kbs=kb or None, max_tokens=max_tokens, limit=limit)
    say_notes(answer.notes)
    if not printed(answer, as_json):
        typer.echo(without_controls(answer.text))


Target = Annotated[
    str, typer.Argument(help="A recipe file with golden questions, or a knowledge base.")
]
Questions = Annotated[
    Path | None,
    typer.Option(help="TSV: question, tab, URI suffixes of its pages (commas, best first)."),
]
Qrels = Annotated[
    Path | None,
    typer.Option(help="TREC qrels with queries (default: the knowledge base's ratings)."),
]
Wait = Annotated[bool, typer.Option("--wait", help="First finish embedding by models.")]


@app.command("eval")
def eval_(
    target: Target,
    questions: Questions = None,
    judgements: Qrels = None,
    mode: ModeName = "hybrid",
    against: Annotated[
        str | None, typer.Option(help="Mode to compare with (paired permutation test).")
    ] = None,
    fail_under: Annotated[
        float | None, typer.Option(help="Exit with 4 if nDCG@10 is lower, 0 to 1.")
    ] = None,
    wait: Wait = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print each question.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure search on questions with known answers."""
    if fail_under is not None and not 0 <= fail_under <= 1:
        raise typer.BadParameter(f"--fail-under {fail_under}: give a number from 0 to 1")
    name, ground_truth = _ground_truth(target, questions, judgements)
    with open_workspace() as workspace, progress() as on_progress:
        kb = _built(workspace, name, target)
        result = kb.feedback.evaluate(
            ground_truth, mode=mode, against=against, wait=wait, on_progress=on_progress
        )
    if not printed(result, as_json):
        print_evaluation(result, verbose)
    if fail_under is not None and result.ndcg < fail_under:
        say(f"nDCG@10 {result.ndcg:.3f} is below {fail_under}")
        raise typer.Exit(EXIT_BELOW_FLOOR)


@app.command()
def tune(
    target: Target,
    questions: Questions = None,
    judgements: Qrels = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Store the weights if they win on held-out questions.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the split into training and test.")] = 0,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Learn search weights from questions with known answers."""
    name, ground_truth = _ground_truth(target, questions, judgements)
    with open_workspace() as workspace, progress() as on_progress:
        kb = _built(workspace, name, target)
        report = kb.feedback.tune(
            ground_truth, keep=keep, seed=seed, wait=wait, on_progress=on_progress
        )
    if printed(report, as_json):
        return
    print_tuning(report)
    if report.wins and not report.kept:
        say("nothing changed; --keep writes the proposed settings to the knowledge base")
    if report.wins:
        say("put this into the recipe, or the next build undoes it:")
        typer.echo(report.to_yaml(), nl=False)


@app.command()
def fidelity(
    place: Annotated[
        str, typer.Argument(help="An HTML file, a folder of HTML, or the address of a page.")
    ],
    allow_private: AllowPrivate = False,
    as_json: AsJson = False,
) -> None:
    """Measure how well pages convert to Markdown."""
    from kbkit.models.ingest_report import losses
    from kbkit.sources.html.fidelity_report import fidelity as measure

    with progress() as on_progress:
        report = measure(place, allow_private=allow_private, on_progress=on_progress)
    if printed(report, as_json):
        return
    header, *rows = report.rows()
    print_table(header, rows)
    say(f"{report.titles:.1%} of the titles are unique to their page")
    if report.warning:
        say(f"poorly read: {report.warning}")
    for one in report.worst[:WORST_PAGES]:
        say(f"worst: {one.uri}: {losses(one.fidelity.counts())}")


def _ground_truth(
    target: str, questions: Path | None, judgements: Path | None
) -> tuple[str, Sequence[Question] | Judgements | None]:
    """Return the knowledge base to measure, with its queries; ``None`` for its own ratings."""
    if questions is not None and judgements is not None:
        raise typer.BadParameter("give either --questions or --judgements")
    from kbkit.feedback.judgements import Judgements
    from kbkit.recipes import golden_questions, load_questions, load_recipe
    from kbkit.recipes.schema import SLUG

    recipe = None if SLUG.fullmatch(target) else load_recipe(target)
    name = target if recipe is None else recipe.name
    if questions is not None:
        return name, load_questions(questions)
    if judgements is not None:
        return name, Judgements.from_qrels(judgements)
    if recipe is None:
        return name, None
    golden = golden_questions(recipe)
    if not golden:
        raise ConfigError(f"{target}: has no golden questions; write some under `questions`")
    return name, golden


def _built(workspace: Workspace, name: str, target: str) -> KnowledgeBase:
    if name != target and name not in workspace:
        raise NotFoundError(f"{name}: is not built yet; run `kbkit build {target}` first")
    return workspace[name]


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: cannot be read as UTF-8 text: {error}") from error
    # not splitlines, which also splits at characters that a query may contain
    return text.removesuffix("\n").split("\n") if text else []
