"""Commands that search and evaluate."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbkit import cli, models
from kbkit.cli import terminal
from kbkit.errors import ConfigError, NotFoundError, SourceError
from kbkit.models.values import without_controls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbkit.feedback.judgements import Judgements
    from kbkit.feedback.tune_report import TuneReport
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.recipes import Question
    from kbkit.runtime.progress import OnProgress
    from kbkit.sources.fidelity_report import FidelityReport
    from kbkit.workspace import Workspace


WORST_PAGES = 5


def _filters(
    *,
    document_type: Annotated[list[str] | None, typer.Option("--type")] = None,
    tags: list[str] | None = None,
    source: str | None = None,
    path: str | None = None,
    after: str | None = None,
    before: str | None = None,
    min_rating: float | None = None,
    min_probability: float | None = None,
    state: list[str] | None = None,
    version: Annotated[str | None, typer.Option("--of-version")] = None,
    heading: str | None = None,
    page: list[int] | None = None,
    frame: list[str] | None = None,
    subject: list[str] | None = None,
    entity: list[str] | None = None,
) -> models.Filters:
    """Return the conditions of a search.

    Args:
        document_type: Only documents of this type.
        tags: Only documents with this tag.
        source: Only documents whose URI starts with this.
        path: Only documents whose path matches this glob, such as library/**.
        after: Only documents fetched on or after this date, such as 2026-01-31.
        before: Only documents fetched before this date.
        min_rating: Only documents with at least this average rating, 1 to 5.
        min_probability: Only hits that answer with this probability, 0 to 1.
        state: Only documents in this state: current or stale.
        version: Only documents of this version, such as 3.12.
        heading: Only text below headings with these words.
        page: Only this page of a PDF.
        frame: Only statements of this type, such as procedure.
        subject: Only chunks about this subject.
        entity: Only chunks that name this entity.
    """
    return models.Filters.of(locals())


@cli.command(cli.app)
def search(
    query: str | None = None,
    *,
    kbs: list[str] | None = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000)] = 10,
    mode: str = "hybrid",
    filters: Annotated[Any, _filters],
    graph: Annotated[float | None, typer.Option(min=0, max=5)] = None,
    queries: Path | None = None,
    as_json: bool = False,
    as_jsonl: bool = False,
) -> None:
    """Search knowledge bases.

    Args:
        kbs: Knowledge base to search (default: all).
        limit: Maximum number of hits.
        graph: Weight of the knowledge graph (0: off).
        queries: File with a query on each line; needs --jsonl.
        as_jsonl: Print a line of JSON for each query.
    """
    if (query is None) == (queries is None):
        raise typer.BadParameter("give a query, or --queries FILE")
    if queries is not None and not (as_json or as_jsonl):
        raise typer.BadParameter("--queries prints JSON lines only; add --jsonl")
    # a search does not need BLAS threads, whose start takes a tenth of a second
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with cli.open_workspace() as workspace:
        ask = partial(
            workspace.search, kbs=kbs, limit=limit, mode=mode, filters=filters, graph=graph
        )
        if queries is not None:
            notes: dict[str, None] = {}
            for line in _lines(queries):
                if not line.strip():
                    typer.echo("[]")
                    continue
                hits = ask(line)
                typer.echo(terminal.to_json(hits.to_dicts()))
                notes.update(dict.fromkeys(hits.notes))
            terminal.say_notes(notes)
            return
        hits = ask(query or "")
    if as_json or as_jsonl:
        terminal.say_notes(hits.notes)
        typer.echo(terminal.to_json(hits.to_dicts(), indent=None if as_jsonl else 2))
    else:
        terminal.print_hits(hits)


@cli.command(cli.app, "context")
def context_(
    ws: Workspace,
    query: str,
    *,
    kbs: list[str] | None = None,
    max_tokens: cli.Count = 2000,
    limit: cli.OptionalCount = None,
) -> cli.Done:
    """Print passages that answer a question, with sources.

    Args:
        kbs: Knowledge base to search (default: all).
        max_tokens: Maximum tokens of the text.
        limit: Maximum passages (default: KBKIT_TOP_K, or 3).
    """
    answer = ws.context(query, kbs=kbs, max_tokens=max_tokens, limit=limit)
    terminal.say_notes(answer.notes)
    return cli.Done(answer, partial(typer.echo, without_controls(answer.text)))


Target = Annotated[
    str, typer.Argument(help="A recipe file with golden questions, or a knowledge base.")
]


@cli.command(cli.app, "eval")
def eval_(
    target: Target,
    *,
    questions: Path | None = None,
    judgements: Path | None = None,
    mode: str = "hybrid",
    against: str | None = None,
    fail_under: float | None = None,
    wait: bool = False,
    verbose: bool = False,
) -> cli.Done:
    """Measure search on questions with known answers.

    Args:
        against: Mode to compare with (paired permutation test).
        fail_under: Exit with 4 if nDCG@10 is lower, 0 to 1.
        verbose: Print each question.
    """
    if fail_under is not None and not 0 <= fail_under <= 1:
        raise typer.BadParameter(f"--fail-under {fail_under}: give a number from 0 to 1")
    name, ground_truth = _ground_truth(target, questions, judgements)
    with cli.open_workspace() as workspace, terminal.progress() as on_progress:
        kb = _build_target(workspace, name, target)
        result = kb.feedback.evaluate(
            ground_truth, mode=mode, against=against, wait=wait, on_progress=on_progress
        )
    show, code = partial(terminal.print_evaluation, result, verbose), 0
    if fail_under is not None and result.ndcg < fail_under:
        terminal.say(f"nDCG@10 {result.ndcg:.3f} is below {fail_under}")
        code = cli.EXIT_BELOW_FLOOR
    return cli.Done(result, show, code)


def _print_tuned(report: TuneReport) -> None:
    terminal.print_tuning(report)
    if report.wins and not report.kept:
        terminal.say("nothing changed; --keep writes the proposed settings to the knowledge base")
    if report.wins:
        terminal.say("put this into the recipe, or the next build undoes it:")
        typer.echo(report.to_yaml(), nl=False)


@cli.command(cli.app, show=_print_tuned)
def tune(
    target: Target,
    *,
    questions: Path | None = None,
    judgements: Path | None = None,
    keep: bool = False,
    seed: int = 0,
    wait: bool = False,
) -> TuneReport:
    """Learn search weights from questions with known answers.

    Args:
        keep: Store the weights if they win on held-out questions.
        seed: Seed of the split into training and test.
    """
    name, ground_truth = _ground_truth(target, questions, judgements)
    with cli.open_workspace() as workspace, terminal.progress() as on_progress:
        kb = _build_target(workspace, name, target)
        return kb.feedback.tune(
            ground_truth, keep=keep, seed=seed, wait=wait, on_progress=on_progress
        )


def _print_fidelity(report: FidelityReport) -> None:
    from kbkit.models.ingest_report import losses

    header, *rows = report.rows()
    terminal.print_table(header, rows)
    terminal.say(f"{report.titles:.1%} of the titles are unique to their page")
    if report.warning:
        terminal.say(f"poorly read: {report.warning}")
    for page in report.worst[:WORST_PAGES]:
        terminal.say(f"worst: {page.uri}: {losses(page.fidelity.counts())}")


@cli.command(cli.app, show=_print_fidelity)
def fidelity(
    place: str, *, allow_private: bool = False, on_progress: OnProgress | None
) -> FidelityReport:
    """Measure how well pages convert to Markdown.

    Args:
        place: An HTML file, a folder or archive of them, or the address of a page.
    """
    from kbkit.sources.fidelity_report import fidelity as measure

    return measure(place, allow_private=allow_private, on_progress=on_progress)


def _ground_truth(
    target: str, questions: Path | None, judgements: Path | None
) -> tuple[str, Sequence[Question] | Judgements | None]:
    """Return the knowledge base to measure, with its queries; ``None`` for its own ratings."""
    if questions is not None and judgements is not None:
        raise typer.BadParameter("give either --questions or --judgements")
    from kbkit.feedback.judgements import Judgements
    from kbkit.recipes import golden_questions, load_questions, load_recipe
    from kbkit.recipes.base import SLUG

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


def _build_target(workspace: Workspace, name: str, target: str) -> KnowledgeBase:
    if name != target and name not in workspace:
        raise NotFoundError(f"{name}: is not built yet; run `kbkit build {target}` first")
    return workspace[name]


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "") or error
        raise SourceError(f"{path}: cannot be read as UTF-8 text: {reason}") from error
    # not splitlines, which also splits at characters that a query may contain
    return text.removesuffix("\n").split("\n") if text else []
