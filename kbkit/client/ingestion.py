"""Ingest documents into a knowledge base on a server."""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NamedTuple

from kbkit import errors, models
from kbkit.client.calls import Request, Steps, steps
from kbkit.client.declared import BASE, KNOWLEDGE, LONG, call, reads_nothing
from kbkit.client.work import OnProgress, Stop, job, job_request, result_of, run_job, unpack
from kbkit.errors import ConfigError
from kbkit.models.values import from_dict
from kbkit.paths import find_files, place_name
from kbkit.recipes import AnyEmbedding, AnySource, KnowledgeBaseSpec, only_sources, split_sources

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode


_BATCH_BYTES = 50_000_000
_BATCH_FILES = 500
MAX_BYTES = 90_000_000
"""Maximum size of a file; servers take 100 MB by default."""


class UploadBatch(NamedTuple):
    """Files of a source that are sent in one request."""

    source: dict[str, Any]
    """The source as in a recipe, with the uploaded path."""
    files: list[tuple[str, bytes]]
    left_out: list[tuple[str, str]]


def batches(source: Mapping[str, Any], base: Path) -> Iterator[UploadBatch]:
    """Split a source on disk into uploads, without hidden files and links out of the folder."""
    root, _, files = find_files(str(source["path"]), base)
    top = root.resolve()
    paths = [each for each, _ in files if each.resolve().is_relative_to(top) and each.is_file()]
    name = place_name(root, base)
    values = {**source, "path": name or "."}
    batch = UploadBatch(values, [], [] if paths else [(values["path"], "nothing to read")])
    for path in paths:
        relative = PurePosixPath(name, path.relative_to(root).as_posix()).as_posix()
        try:
            if path.stat().st_size > MAX_BYTES:
                batch.left_out.append((relative, f"larger than {MAX_BYTES / 1e6:g} MB"))
                continue
            data = path.read_bytes()
        except OSError as error:
            batch.left_out.append((relative, f"cannot be read ({error.strerror})"))
            continue
        size = sum(len(content) for _, content in batch.files) + len(data)
        if batch.files and (size > _BATCH_BYTES or len(batch.files) == _BATCH_FILES):
            yield batch
            batch = UploadBatch(values, [], [])
        batch.files.append((relative, data))
    if batch.files or batch.left_out:
        yield batch


def _document(document: Any) -> Any:
    if isinstance(document, models.SourceDocument):
        return replace(document, images={})
    return document if isinstance(document, Mapping) else document.to_dict()


def _report_of(answer: Any) -> models.IngestReport:
    if answer is None:
        return models.IngestReport(interrupted=True)
    return from_dict(models.ImportReport, answer).report


_archive_of = result_of(models.SiteArchive, "export")


def _not_sent(_: object) -> None:
    """Keep an argument on this machine."""


def _read_export(
    self: Any, request: Request[Any], given: Mapping[str, Any]
) -> Steps[models.ExportReport]:
    folder, on_progress = given.get("folder"), given.get("on_progress")
    if given.get("pages_only") and folder is None:
        raise ConfigError(
            "pages_only: name the folder of your site's documentation: "
            "export(folder='docs/kb', pages_only=True)"
        )
    archive = yield from run_job(_archive_of, request, on_progress=on_progress)
    target = Path("export", self.name) if folder is None else Path(folder).expanduser()
    data = yield from IngestionCalls._archive(self, archive.archive)
    counts, site = unpack(data, target), target / "site" if archive.built else None
    return models.ExportReport(target, site, archive.documents, *counts, archive.seconds)


_UPLOAD_TIMEOUT = 120.0


class IngestionCalls:
    """Requests that add and change documents; see `kbkit.KnowledgeBase`."""

    name: str

    @steps
    def ingest(
        self,
        *sources: AnySource | models.SourceDocument | BaseNode | Mapping[str, Any] | Iterable[Any],
        base: str | Path = ".",
        remember: bool = True,
        on_progress: OnProgress | None = None,
        stop: Stop | None = None,
    ) -> Steps[models.IngestReport]:
        """Read sources into the knowledge base; files on this machine are sent to the server.

        The server reads files once, and remembers other sources for `refresh`.
        """
        reports: builtins.list[models.IngestReport] = []
        specs, items = split_sources(sources)
        documents = [_document(each) for each in items]
        on_disk = [each for each in specs if getattr(each, "path", None)]
        remote = [each for each in specs if not getattr(each, "path", None)]
        run = partial(run_job, _report_of, on_progress=on_progress, stop=stop)
        for spec in on_disk:
            try:
                for part in batches(spec.model_dump(mode="json"), Path(base)):
                    failed = tuple(models.Problem(*each) for each in part.left_out)
                    interrupted = stop is not None and stop()
                    reports.append(models.IngestReport(failed=failed, interrupted=interrupted))
                    if part.files and not interrupted:
                        reports.append((yield from run(_upload(self.name, part))))
            except errors.SourceError as error:
                problem = models.Problem(str(getattr(spec, "path", "")), str(error))
                reports.append(models.IngestReport(failed=(problem,), failed_sources=(problem,)))
        if remote or documents or not on_disk:
            body = {"sources": remote, "documents": documents, "remember": remember}
            reports.append((yield from run(job_request(self.name, "ingest", body))))
        return _sum_reports(reports)

    @job(f"POST {BASE}/ingest", _report_of, body={"sync": True})
    def sync(
        self,
        sources: Annotated[
            AnySource | Mapping[str, Any] | Iterable[AnySource | Mapping[str, Any]],
            partial(only_sources, "sync"),
        ],
        *,
        base: str | Path = ".",
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> models.IngestReport:
        """Read the sources of a recipe; sources no longer named are removed."""

    @job(f"POST {BASE}/refresh", _report_of)
    def refresh(
        self,
        *,
        local: bool = False,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> models.IngestReport:
        """Read all sources again and store changes."""

    @job(f"PUT {BASE}/spec", _report_of)
    def configure(
        self,
        spec: KnowledgeBaseSpec,
        *,
        description: str | None = None,
        if_match: str | None = None,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> models.IngestReport:
        """Change the settings; documents are split and embedded again if needed."""

    @call(f"POST {BASE}/exports", _read_export, read=_archive_of, timeout=60.0)
    def export(
        self,
        *,
        folder: Annotated[str | Path, _not_sent] | None = None,
        build: bool = True,
        standalone: bool = False,
        pages_only: bool = False,
        model: bool | None = None,
        graph: bool | None = None,
        files: bool | None = None,
        entries: bool | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.ExportReport:
        """Export the site on the server, and fetch it into a local folder (``export/NAME``)."""

    @call(f"GET {BASE}/exports/{{archive}}", timeout=LONG)
    def _archive(self, archive: str) -> BinaryIO: ...

    @job(f"POST {BASE}/improve", result_of(models.Improvement, models.Improvement()))
    def improve(
        self,
        *,
        embedding: AnyEmbedding | str | None = None,
        background: bool = False,
        estimate: bool = False,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> models.Improvement:
        """Annotate, and embed with models, on the server."""


def _upload(kb: str, batch: UploadBatch) -> Request[Any]:
    form = [
        ("kb", (None, kb)),
        ("source", (None, json.dumps(batch.source))),
        ("strict", (None, "false")),
        *(("files", (path, data)) for path, data in batch.files),
    ]
    path = f"{KNOWLEDGE}/import/file"
    return Request("POST", path, reads_nothing, files=form, timeout=_UPLOAD_TIMEOUT)


def _sum_reports(reports: Sequence[models.IngestReport]) -> models.IngestReport:
    totals: dict[str, Any] = {
        field.name: sum((getattr(report, field.name) for report in reports), field.default)
        for field in fields(models.IngestReport)
        if isinstance(field.default, int | tuple) and field.default is not False
    }
    stages = dict.fromkeys(stage for report in reports for stage in report.seconds)
    seconds = {
        stage: round(sum(report.seconds.get(stage, 0.0) for report in reports), 3)
        for stage in stages
    }
    last = reports[-1] if reports else models.IngestReport()
    interrupted = any(report.interrupted for report in reports)
    return replace(last, **totals, seconds=seconds, interrupted=interrupted)
