"""Build a recipe into a knowledge base and a site, once or at each change of its sources."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbkit.errors import KbkitError
from kbkit.export import ExportReport
from kbkit.feedback.evaluation_report import Evaluation
from kbkit.knowledge_base import KnowledgeBase, handle_of
from kbkit.models import Expansion, IngestReport, KnowledgeBaseInfo, Progress, SyncReport
from kbkit.models.ingest_report import seconds_line
from kbkit.models.values import Value
from kbkit.paths import matches, split_glob, walk
from kbkit.recipes import Question, Recipe, golden_questions, load_recipe, require_trust
from kbkit.runtime.engine import LOCAL
from kbkit.runtime.language_models import open_llm
from kbkit.runtime.progress import OnProgress, ignore, progress_bar
from kbkit.workspace import Workspace, stores_of

if TYPE_CHECKING:
    from kbkit.entries.entries import Entries
    from kbkit.files.files import Files

_log = logging.getLogger(__name__)

_POOR_SHOWN = 10


@dataclass(frozen=True, slots=True)
class BuildReport(Value):
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

    def to_dict(self) -> Mapping[str, Any]:
        """Return the report as JSON values; those of its `IngestReport` also at the top level."""
        values = dict(Value.to_dict(self))
        info = self.info
        values |= {"name": info.name, "documents": info.documents, "chunks": info.chunks}
        return {**values["ingest"], **values}

    def lines(self) -> list[tuple[str, str]]:
        """Return the report as labels and values to print."""
        (_, documents), (_, chunks), *remaining = self.ingest.lines()
        lines = [
            ("name", self.info.name),
            ("documents", f"{self.info.documents:,} ({documents})"),
            ("chunks", f"{self.info.chunks:,} ({chunks})"),
            *(line for line in remaining if line[0] != "seconds"),
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
            more than its ``limit`` remain.
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
        notify = stack.enter_context(progress_bar(on_progress))
        if isinstance(workspace, Workspace) and engine != LOCAL:
            workspace = workspace.path
        if not isinstance(workspace, Workspace):
            workspace = stack.enter_context(Workspace(workspace, engine=engine))
        # the lock also covers machines that share only the database
        locks, task = stores_of(workspace).locks, f"building {recipe.name}"
        stack.enter_context(locks.hold(f"build-{recipe.name}", wait=0, task=task))
        start = time.perf_counter()
        _log.info("builds %s in %s", recipe.path, workspace.path)
        kb, report, seconds = _sync(recipe, questions, workspace, notify, stop)
        evaluation = expansion = exported = None
        if recipe.expand is not None and not report.interrupted:
            began = time.perf_counter()
            expansion = kb.documents.expand(estimate=True)
            notify(Progress("expand", 0, expansion.documents, str(expansion)))
            if expansion.documents and (expand_all or expansion.documents <= recipe.expand.limit):
                expansion = kb.documents.expand(on_progress=notify, stop=stop)
            seconds["expand"] = time.perf_counter() - began
        if questions and not report.interrupted:
            began = time.perf_counter()
            evaluation = kb.feedback.evaluate(questions, on_progress=notify)
            seconds["evaluate"] = time.perf_counter() - began
        if site and not report.interrupted:
            exported = kb.export(on_progress=notify)
            seconds.update(exported.seconds)
        seconds["total"] = time.perf_counter() - start
        seconds = {stage: round(value, 2) for stage, value in seconds.items()}
        _log.info("built %s: %s", recipe.name, seconds)
        folder, built = (exported.folder, exported.site) if exported else (None, None)
        return BuildReport(kb.info(), report, evaluation, folder, built, seconds, expansion)


def _sync(
    recipe: Recipe,
    questions: tuple[Question, ...],
    workspace: Workspace,
    notify: OnProgress,
    stop: Callable[[], bool],
) -> tuple[KnowledgeBase, IngestReport, dict[str, float]]:
    """Create or configure the knowledge base and read its sources; return seconds by stage, too."""
    config = recipe.spec
    if questions and not config.site.questions:
        site_spec = config.site.model_copy(update={"questions": questions})
        config = config.model_copy(update={"site": site_spec})
    before = IngestReport()
    if recipe.name in workspace:
        kb = workspace[recipe.name]
        before = kb.configure(config, description=recipe.description, on_progress=notify, stop=stop)
    else:
        kb = workspace.create(recipe.name, description=recipe.description, spec=config)
    report = kb.sync(recipe.sources, base=recipe.path.parent, on_progress=notify, stop=stop)
    stages = {**before.seconds, **report.seconds}
    seconds = {each: before.seconds.get(each, 0) + report.seconds.get(each, 0) for each in stages}
    report = replace(
        report,
        chunks_embedded=report.chunks_embedded + before.chunks_embedded,
        chunks_added=report.chunks_added + before.chunks_added,
        chunks_removed=report.chunks_removed + before.chunks_removed,
        interrupted=report.interrupted or before.interrupted,
    )
    return kb, report, seconds


_POLL = 0.5  # seconds between checks for a missing folder
_CHECK_INTERVAL = 5_000  # milliseconds
SHARE = 10
"""Checks take at most a tenth of the time."""


def watch(
    kb: KnowledgeBase,
    *,
    folder: Path | None = None,
    build: bool = True,
    interval: float = 1.0,
    on_export: Callable[[ExportReport], None] = lambda _: None,
    on_trouble: Callable[[KbkitError], None] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Export a knowledge base, and again whenever its files or its catalog change.

    Reads local sources again when one of their files changes. Changes of the catalog by others (an
    ingest, a rating, an edit of the graph) count too. `KnowledgeBase.refresh` reads web sources.
    """
    files: str | None = None
    revision: tuple[object, ...] | None = None
    while not stop():
        start = time.monotonic()
        files_now, revision_now = file_fingerprint(kb), handle_of(kb).site_revision()
        seconds = time.monotonic() - start
        try:
            if files_now != files and kb.sources.paths():
                kb.refresh(local=True)
                revision_now = handle_of(kb).site_revision()
            if revision_now != revision:
                on_export(kb.export(folder=folder, build=build))
        except KbkitError as error:
            on_trouble(error)
        files, revision = files_now, revision_now
        time.sleep(max(interval, SHARE * seconds))


def watch_files(
    files: Files | Entries,
    *,
    stop: threading.Event,
    on_sync: Callable[[SyncReport], None] = lambda _: None,
    on_trouble: Callable[[KbkitError], None] = lambda _: None,
) -> None:
    """Import changes by other programs to files or entries immediately."""
    import watchfiles

    def sync() -> None:
        try:
            if report := files.sync(on_progress=ignore):
                on_sync(report)
        except KbkitError as error:
            on_trouble(error)

    while not stop.is_set():
        sync()
        if not files.path.is_dir():  # not created yet
            stop.wait(_POLL)
            continue
        # also on timeouts, since changes during startup are not reported
        for _ in watchfiles.watch(
            files.path, stop_event=stop, rust_timeout=_CHECK_INTERVAL, yield_on_timeout=True
        ):
            sync()
            if not files.path.is_dir():
                break


def file_fingerprint(kb: KnowledgeBase) -> str:
    state = hashlib.blake2b(digest_size=16)
    for place, exclude in kb.sources.paths():
        for path in _files(place, exclude):
            with suppress(OSError):
                stat = path.stat()
                line = f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}\n"
                state.update(line.encode(errors="replace"))
    return state.hexdigest()


def _files(place: Path, exclude: tuple[str, ...]) -> Iterator[Path]:
    """Yield the files below a glob's folder, whether or not they match it."""
    folder = Path(split_glob(place.as_posix())[0])
    if folder.is_file():
        yield folder
    else:
        yield from (path for path, inside in walk(folder) if not matches(inside, exclude))
