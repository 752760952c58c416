"""Jobs on knowledge bases: imports, refreshes, settings, models."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from pydantic import TypeAdapter

from kbkit.errors import SourceError, WorkspaceError
from kbkit.files.paths import parts_of
from kbkit.knowledge_base import KnowledgeBase
from kbkit.models import DocumentInfo, ImportReport, IngestReport, SourceDocument
from kbkit.models.values import from_dict
from kbkit.recipes import AnyEmbedding, KnowledgeBaseSpec, parse_source
from kbkit.server.jobs.base import JobRun, delete_old
from kbkit.workspace import Workspace

UPLOADS = "uploads"
"""Folder of a workspace for uploaded files, until their job has ended."""
_MAX_AGE_SECONDS = 8 * 86_400
_MAX_PROBLEMS = 5


def store_uploads(workspace: Workspace, files: Iterable[tuple[str, bytes | BinaryIO]]) -> str:
    """Store uploaded files; return the name of their folder."""
    above = workspace.path / UPLOADS
    name = uuid4().hex
    try:
        for path, data in files:
            place = (above / name).joinpath(*parts_of(path))
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("wb") as file:
                if isinstance(data, bytes):
                    file.write(data)
                else:
                    shutil.copyfileobj(data, file)
        delete_old(above.iterdir(), _MAX_AGE_SECONDS)
    except OSError as error:
        shutil.rmtree(above / name, ignore_errors=True)
        raise WorkspaceError(f"uploaded files cannot be stored: {error.strerror}") from None
    except BaseException:
        shutil.rmtree(above / name, ignore_errors=True)
        raise
    return name


def uploaded(workspace: Workspace, name: str) -> Path:
    return Path(workspace.path, UPLOADS, *parts_of(name))


def forget_uploads(workspace: Workspace, arguments: Mapping[str, Any]) -> None:
    if name := arguments.get("uploads"):
        shutil.rmtree(uploaded(workspace, name), ignore_errors=True)


def import_sources(run: JobRun) -> Any:
    """Read sources and documents into a knowledge base.

    ``documents`` are as of llama-index's ``to_dict`` or have the fields of a `SourceDocument`;
    ``uploads`` is the folder of relative paths; with ``strict``, reading nothing is an error.
    """
    kb, arguments = run.kb, run.arguments
    uploads = arguments.get("uploads", "")
    base = uploaded(run.workspace, uploads) if uploads else run.workspace.path
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
    local = run.arguments.get("local", False)
    return _result(run.kb, run.kb.refresh(local=local, **run.calls))


def configure(run: JobRun) -> Any:
    spec = KnowledgeBaseSpec.model_validate(run.arguments["spec"])
    options: dict[str, Any] = {
        name: run.arguments.get(name) for name in ("description", "if_match")
    }
    return _result(run.kb, run.kb.configure(spec, **options, **run.calls))


def improve(run: JobRun) -> Any:
    embedding = run.arguments.get("embedding")
    if isinstance(embedding, Mapping):
        embedding = TypeAdapter(AnyEmbedding).validate_python(embedding)
    return run.kb.improve(embedding=embedding, **run.calls)


def expand(run: JobRun) -> Any:
    options: dict[str, Any] = {name: run.arguments.get(name) for name in ("llm", "questions")}
    return run.kb.documents.expand(**options, **run.calls)


def _document(values: Mapping[str, Any]) -> Any:
    return from_dict(SourceDocument, values) if "uri" in values else values


def _result(kb: KnowledgeBase, report: IngestReport) -> ImportReport:
    documents = []
    for document_id in report.documents:
        if document_id in kb.documents:
            documents.append(
                DocumentInfo.of(kb.documents[document_id], len(kb.chunks.of(document_id)))
            )
    chunks = sum(document.chunks for document in documents)
    return ImportReport(tuple(documents), chunks, report)


def _problems(report: IngestReport) -> str:
    problems = [str(problem) for problem in (*report.failed, *report.skipped)]
    more = f"; and {len(problems) - _MAX_PROBLEMS:,} more" if len(problems) > _MAX_PROBLEMS else ""
    return "; ".join(problems[:_MAX_PROBLEMS]) + more
