"""Build a recipe: sources, knowledge base, golden questions, exported site, report."""

from __future__ import annotations

import html
import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from typing_extensions import TypedDict

from kbkit.feedback.evaluation_report import Evaluation
from kbkit.models import Expansion, IngestReport, KnowledgeBaseInfo, Progress
from kbkit.models.ingest_report import seconds_line
from kbkit.models.values import pairs_html
from kbkit.recipes import Question, Recipe, golden_questions, load_recipe, require_trust
from kbkit.runtime.engine import LOCAL
from kbkit.runtime.language_models import open_llm
from kbkit.runtime.progress import OnProgress, progress_bar
from kbkit.workspace import Workspace, stores_of

_log = logging.getLogger(__name__)

_POOR_SHOWN = 10


class BuildReportDict(TypedDict):
    """Result of a build as JSON values, with those of its `IngestReport`."""

    name: str
    documents: int
    chunks: int
    new: int
    changed: int
    same: int
    gone: int
    seconds: dict[str, float]
    evaluation: dict[str, Any] | None
    expansion: dict[str, Any] | None
    folder: str | None
    site: str | None


@dataclass(frozen=True, slots=True)
class BuildReport:
    """Result of a build.

    Attributes:
        evaluation: Evaluation by the golden questions, if any.
        folder: Folder of the exported MkDocs project, if a site was requested.
        site: Folder of the built site, if requested.
        seconds: Time by stage.
        expansion: Documents that the language model has described, and remaining ones.
    """

    info: KnowledgeBaseInfo
    ingest: IngestReport
    evaluation: Evaluation | None
    folder: Path | None
    site: Path | None
    seconds: dict[str, float]
    expansion: Expansion | None = None

    def to_dict(self) -> BuildReportDict:
        """Return the report as JSON values."""
        values = dict(self.ingest.to_dict())
        values.update(
            name=self.info.name,
            documents=self.info.documents,
            chunks=self.info.chunks,
            seconds=self.seconds,
            evaluation=self.evaluation.to_dict() if self.evaluation else None,
            expansion=self.expansion.to_dict() if self.expansion else None,
            folder=str(self.folder) if self.folder else None,
            site=str(self.site) if self.site else None,
        )
        return cast(BuildReportDict, values)

    def lines(self) -> list[tuple[str, str]]:
        """Return the report as labels and values to print."""
        (_, documents), (_, chunks), *rest = self.ingest.lines()
        lines = [
            ("documents", f"{self.info.documents:,} ({documents})"),
            ("chunks", f"{self.info.chunks:,} ({chunks})"),
            *(line for line in rest if line[0] != "seconds"),
        ]
        if self.expansion:
            lines += _expansion_lines(self.expansion, self.info.name)
        if self.evaluation:
            figures = self.evaluation
            scores = f"nDCG@10 {figures.ndcg:.3f}, Recall@10 {figures.recall:.3f}"
            hits = f"Hit@1 {figures.hit_at_1:.3f}"
            lines.append(("questions", f"{len(figures.results)}: {scores}, {hits}"))
            lines += [("note", note) for note in figures.notes]
        lines.append(("seconds", seconds_line(self.seconds)))
        if self.site:
            lines.append(("site", str(self.site / "index.html")))
        return lines

    def _repr_html_(self) -> str:
        return f"<p>Built <b>{html.escape(self.info.name)}</b></p>{pairs_html(self.lines())}"


def _expansion_lines(expansion: Expansion, name: str) -> list[tuple[str, str]]:
    lines = [("expanded", f"{expansion.written:,} documents by {expansion.model}")]
    lines += [("failed", str(each)) for each in expansion.failed[:_POOR_SHOWN]]
    if expansion.documents > len(expansion.failed):
        lines.append(("not expanded", f"{expansion}; `kbkit expand {name}` or `--yes` sends them"))
    return lines


def build(
    recipe: Recipe | str | Path,
    workspace: Workspace | str | Path | None = None,
    *,
    site: bool = True,
    expand_all: bool = False,
    engine: str = LOCAL,
    trust: bool = False,
    on_progress: OnProgress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> BuildReport:
    """Update a recipe's knowledge base and site.

    Later builds process changes only; an interrupted build continues.

    Args:
        recipe: A recipe or its file.
        workspace: A workspace, or its folder; by default ``KBKIT_WORKSPACE``, else ``./kb``.
        site: Also export the site and build it with MkDocs.
        expand_all: Describe all documents with the recipe's language model; by default none if
            more than its ``limit`` are left.
        engine: Engine of the ingest: ``local``, ``dask`` (this machine's processors) or
            ``dask:ADDRESS``.
        trust: Allow paths outside the recipe's folder, private addresses, a folder to write to, and
            code.
        on_progress: Called during the work; by default notebooks show a bar.
        stop: Called often; true ends the work cleanly, after the ingest at the latest.

    Raises:
        ClusterError: The cluster is unusable or was lost; another build continues.
        ConflictError: Another process is building a knowledge base of that name.
        RecipeError: The recipe is invalid.
        TrustError: The recipe needs ``trust``; nothing was read or written.
        KbkitError: See `KnowledgeBase.sync`, `KnowledgeBase.configure` and `KnowledgeBase.export`.
    """
    if not isinstance(recipe, Recipe):
        recipe = load_recipe(recipe)
    if not trust:
        require_trust(recipe)
    questions = golden_questions(recipe)  # early, since they may be invalid
    if recipe.expand is not None:
        open_llm(recipe.expand, key="expand")
    with ExitStack() as stack:
        report_progress = stack.enter_context(progress_bar(on_progress))
        if isinstance(workspace, Workspace) and engine != LOCAL:
            workspace = workspace.path
        if not isinstance(workspace, Workspace):
            workspace = stack.enter_context(Workspace(workspace, engine=engine))
        # the lock also covers machines that share only the database
        locks, task = stores_of(workspace).locks, f"building {recipe.name}"
        stack.enter_context(locks.hold(f"build-{recipe.name}", wait=0, task=task))
        return _build(
            recipe,
            questions,
            workspace,
            site=site,
            expand_all=expand_all,
            on_progress=report_progress,
            stop=stop,
        )


def _build(
    recipe: Recipe,
    questions: tuple[Question, ...],
    workspace: Workspace,
    *,
    site: bool,
    expand_all: bool,
    on_progress: OnProgress | None,
    stop: Callable[[], bool],
) -> BuildReport:
    start = time.perf_counter()
    _log.info("builds %s in %s", recipe.path, workspace.path)
    config = recipe.spec
    if questions and not config.site.questions:
        site_spec = config.site.model_copy(update={"questions": questions})
        config = config.model_copy(update={"site": site_spec})
    configured = IngestReport()
    if recipe.name in workspace:
        kb = workspace[recipe.name]
        configured = kb.configure(
            config, description=recipe.description, on_progress=on_progress, stop=stop
        )
    else:
        kb = workspace.create(recipe.name, description=recipe.description, spec=config)
    report = kb.sync(recipe.sources, base=recipe.path.parent, on_progress=on_progress, stop=stop)
    report = replace(
        report,
        chunks_embedded=report.chunks_embedded + configured.chunks_embedded,
        chunks_added=report.chunks_added + configured.chunks_added,
        chunks_removed=report.chunks_removed + configured.chunks_removed,
        interrupted=report.interrupted or configured.interrupted,
    )
    seconds = dict(configured.seconds)
    for stage, value in report.seconds.items():
        seconds[stage] = seconds.get(stage, 0) + value
    evaluation = expansion = folder = site_folder = None
    if not report.interrupted and recipe.expand is not None:
        began = time.perf_counter()
        expansion = kb.documents.expand(estimate=True)
        if on_progress is not None:
            on_progress(Progress("expand", 0, expansion.documents, str(expansion)))
        if expansion.documents and (expand_all or expansion.documents <= recipe.expand.limit):
            expansion = kb.documents.expand(on_progress=on_progress, stop=stop)
        seconds["expand"] = time.perf_counter() - began
    if not report.interrupted:
        if questions:
            began = time.perf_counter()
            evaluation = kb.feedback.evaluate(questions, on_progress=on_progress)
            seconds["evaluate"] = time.perf_counter() - began
        if site:
            began = time.perf_counter()
            exported = kb.export(on_progress=on_progress)
            folder, site_folder = exported.folder, exported.site
            seconds.update(exported.seconds)
            seconds.setdefault("site", time.perf_counter() - began)
    seconds["total"] = time.perf_counter() - start
    seconds = {stage: round(value, 2) for stage, value in seconds.items()}
    _log.info("built %s: %s", recipe.name, seconds)
    return BuildReport(kb.info(), report, evaluation, folder, site_folder, seconds, expansion)
