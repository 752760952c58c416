"""Tasks of jobs, by kind: exports, bundles, imports, refreshes, settings, models, measurements."""

import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from pydantic import TypeAdapter, ValidationError

from kbkit import models
from kbkit.errors import ImpossibleError, NotFoundError, SourceError, WorkspaceError
from kbkit.feedback.judgements import Judgements
from kbkit.files.paths import parts_of
from kbkit.knowledge_base import KnowledgeBase
from kbkit.models.values import fault_reason, from_dict
from kbkit.recipes import AnyEmbedding, KnowledgeBaseSpec, Question, RetrievalSpec, parse_source
from kbkit.runtime.progress import OnProgress
from kbkit.workspace import Workspace


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of a job, with the JSON values of its request; a second run continues the first."""

    workspace: Workspace
    arguments: Mapping[str, Any]
    on_progress: OnProgress = lambda _: None
    stop: Callable[[], bool] = lambda: False

    @property
    def kb(self) -> KnowledgeBase:
        return self.workspace[self.arguments["kb"]]

    def options(self, *names: str) -> dict[str, Any]:
        """Return those of the named arguments that have a value."""
        return {
            name: self.arguments[name] for name in names if self.arguments.get(name) is not None
        }

    @property
    def calls(self) -> dict[str, Any]:
        """Keyword arguments for methods that support `stop`."""
        return {"on_progress": self.on_progress, "stop": self.stop}

    def notify(self, progress: models.Progress) -> None:
        """Report progress of a method without `stop`; raise `Stopped` if the job must end."""
        if self.stop():
            raise Stopped
        self.on_progress(progress)


def delete_old(places: Iterable[Path], seconds: float) -> None:
    for place in places:
        with suppress(FileNotFoundError):
            if time.time() - place.stat().st_mtime <= seconds:
                continue
            if place.is_dir():
                shutil.rmtree(place, ignore_errors=True)
            else:
                place.unlink()


def evaluate(run: JobRun) -> Any:
    """Measure search; ``improve`` waits for models first."""
    arguments = run.arguments
    retrieval, against = arguments.get("retrieval"), arguments.get("against")
    return run.kb.feedback.evaluate(
        _ground_truth(arguments),
        **run.options("mode", "k"),
        retrieval=None if retrieval is None else RetrievalSpec.model_validate(retrieval),
        against=RetrievalSpec.model_validate(against) if isinstance(against, Mapping) else against,
        wait=arguments.get("improve", False),
        on_progress=run.notify,
    )


def tune(run: JobRun) -> Any:
    """Learn the weights of search; ``improve`` waits for models first."""
    return run.kb.feedback.tune(
        _ground_truth(run.arguments),
        **run.options("keep", "seed"),
        wait=run.arguments.get("improve", False),
        on_progress=run.notify,
    )


def _ground_truth(arguments: Mapping[str, Any]) -> list[Question] | Judgements | None:
    if questions := arguments.get("questions"):
        return [Question.model_validate(each) for each in questions]
    judgements = arguments.get("judgements")
    return None if judgements is None else Judgements.of(judgements)


DOWNLOADS = "downloads"
_MAX_EXPORT_AGE = 86_400  # seconds
_OPTIONS = ("build", "standalone", "pages_only", "model", "graph", "files", "entries")


def export(run: JobRun) -> Any:
    """Export to an archive, kept for a day, or with ``publish`` to the site."""
    kb, archive, size = run.kb, "", 0
    write = partial(kb.export, on_progress=run.notify, **run.options(*_OPTIONS))
    try:
        if run.arguments.get("publish"):
            report = write()
        else:
            archive = uuid4().hex
            downloads = run.workspace.path / DOWNLOADS / kb.id
            downloads.mkdir(parents=True, exist_ok=True)
            delete_old(downloads.parent.glob("*/*"), _MAX_EXPORT_AGE)
            with TemporaryDirectory(prefix="kbkit-", dir=downloads) as temporary:
                folder = Path(temporary, kb.name)
                report = write(folder=folder)
                draft = Path(shutil.make_archive(f"{temporary}/draft", "zip", folder))
                size = draft.stat().st_size
                draft.rename(downloads / f"{archive}.zip")
    except OSError as error:
        raise WorkspaceError(f"the archive cannot be written: {error.strerror}") from None
    built = report.site is not None
    return models.SiteArchive(archive, size, built, report.documents, report.seconds)


def archive_of(workspace: Workspace, kb: KnowledgeBase, archive: str) -> Path:
    path = workspace.path / DOWNLOADS / kb.id / f"{archive}.zip"
    if not archive.isalnum() or not path.is_file():
        raise NotFoundError(
            f"{kb.name}: has no archive {archive!r}; archives are kept for a day: export again"
        )
    return path


UPLOADS = "uploads"
"""Folder of a workspace for uploaded files, until their job has ended."""
_MAX_UPLOAD_AGE = 8 * 86_400  # seconds
_MAX_PROBLEMS = 5


def store_uploads(workspace: Workspace, files: Iterable[tuple[str, bytes]]) -> str:
    """Store uploaded files; return the name of their folder."""
    uploads = workspace.path / UPLOADS
    name = uuid4().hex
    try:
        for path, data in files:
            target = (uploads / name).joinpath(*parts_of(path))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        delete_old(uploads.iterdir(), _MAX_UPLOAD_AGE)
    except BaseException as error:
        shutil.rmtree(uploads / name, ignore_errors=True)
        if isinstance(error, FileExistsError | IsADirectoryError | NotADirectoryError):
            raise ImpossibleError(
                f"files: {path!r:.200}: another is its folder, or in it"
            ) from None
        if isinstance(error, OSError):
            raise WorkspaceError(f"uploaded files cannot be stored: {error.strerror}") from None
        raise
    return name


def upload_path(workspace: Workspace, name: str) -> Path:
    return Path(workspace.path, UPLOADS, *parts_of(name))


def forget_uploads(workspace: Workspace, arguments: Mapping[str, Any]) -> None:
    if name := arguments.get("uploads"):
        shutil.rmtree(upload_path(workspace, name), ignore_errors=True)


def import_sources(run: JobRun) -> Any:
    """Read sources and documents into a knowledge base.

    ``documents`` are from llama-index's ``to_dict`` or have the fields of a `SourceDocument`;
    ``uploads`` is the folder of relative paths; with ``strict``, reading nothing is an error.
    """
    kb, arguments = run.kb, run.arguments
    uploads = arguments.get("uploads", "")
    base = upload_path(run.workspace, uploads) if uploads else run.workspace.path
    sources = [parse_source(each) for each in arguments.get("sources", ())]
    if arguments.get("sync"):
        report = kb.sync(sources, base=base, **run.calls)
    else:
        report = kb.ingest(
            *sources,
            *map(_document, arguments.get("documents", ())),
            base=base,
            remember=arguments.get("remember", True) and not uploads,
            **run.calls,
        )
    if arguments.get("strict") and report.nothing_read and not report.interrupted:
        raise SourceError(_problems(report))
    return _result(kb, report)


def refresh(run: JobRun) -> Any:
    return _result(run.kb, run.kb.refresh(**run.options("local"), **run.calls))


def configure(run: JobRun) -> Any:
    spec = KnowledgeBaseSpec.model_validate(run.arguments["spec"])
    report = run.kb.configure(spec, **run.options("description", "if_match"), **run.calls)
    return _result(run.kb, report)


def improve(run: JobRun) -> Any:
    embedding = run.arguments.get("embedding")
    if isinstance(embedding, Mapping):
        embedding = TypeAdapter(AnyEmbedding).validate_python(embedding)
    return run.kb.improve(embedding=embedding, **run.calls)


def expand(run: JobRun) -> Any:
    return run.kb.documents.expand(**run.options("llm", "questions"), **run.calls)


def _document(values: Mapping[str, Any]) -> Any:
    try:
        return from_dict(models.SourceDocument, values) if "uri" in values else values
    except ValidationError as error:
        fault = error.errors()[0]
        location = ".".join(map(str, fault["loc"]))
        raise ImpossibleError(f"documents: {location:.80}: {fault_reason(fault)}") from None


def _result(kb: KnowledgeBase, report: models.IngestReport) -> models.ImportReport:
    documents = [
        models.DocumentInfo.of(kb.documents[document_id], len(kb.chunks.of(document_id)))
        for document_id in report.documents
        if document_id in kb.documents
    ]
    chunks = sum(document.chunks for document in documents)
    return models.ImportReport(tuple(documents), chunks, report)


def _problems(report: models.IngestReport) -> str:
    problems = [str(problem) for problem in (*report.failed, *report.skipped)]
    rest = f"; and {len(problems) - _MAX_PROBLEMS:,} more" if len(problems) > _MAX_PROBLEMS else ""
    return "; ".join(problems[:_MAX_PROBLEMS]) + rest


class Stopped(Exception):  # noqa: N818 - not an error
    """The job was cancelled."""


JobTask = Callable[[JobRun], Any]
"""Runs a job, and returns its result: a value object or JSON values."""

TASKS: dict[str, JobTask] = {
    "import": import_sources,
    "refresh": refresh,
    "configure": configure,
    "improve": improve,
    "annotate": lambda run: run.kb.annotations.make(**run.calls),
    "expand": expand,
    "evaluate": evaluate,
    "tune": tune,
    "export": export,
    "doctor": lambda run: run.workspace.doctor(),
}
"""Tasks by kind. Stable names, because a new version resumes the jobs of an older one."""
