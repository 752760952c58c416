"""Publish a knowledge base: pages, search index, and built site."""

from __future__ import annotations

import posixpath
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

from kbkit.errors import EmbedderError
from kbkit.export import ExportReport, build_site, export_pages, write_project, write_standalone
from kbkit.export.facts import Download, GraphFacts, Manifest, SiteSection
from kbkit.export.index_terms import check_stemmers
from kbkit.export.index_writer import is_written, remove_index, write_index
from kbkit.export.mkdocs.build import DOCS
from kbkit.export.pages.home_page import kept_pages
from kbkit.export.pages.paths import safe_name
from kbkit.export.pages.writer import remove_pages
from kbkit.export.publishing.facts import gather_facts
from kbkit.export.publishing.graph_facts import GraphView, look_at_graph
from kbkit.export.publishing.index_content import index_content, index_state, to_fit
from kbkit.models import Document, Progress
from kbkit.models.files import BUILT_IN, ENTRIES, FILES
from kbkit.retrieval.encoder_fitting import is_outdated
from kbkit.runtime.progress import OnProgress
from kbkit.stores.catalog import indexed_files, knowledge_bases, reading
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import spec_of
from kbkit.stores.catalog.ratings import EncoderTarget
from kbkit.stores.stores import Stores
from kbkit.text.markdown.extensions import resolve_wiki_links
from kbkit.text.markdown.structure import WIKI_LINK, slug

FOLDER = "downloads"
"""Folder of the archives in an export."""

Attachments = Callable[[str], Mapping[str, bytes]]
"""Returns the files of a document by relative path, for the document's URI."""

_DATE = (1980, 1, 1, 0, 0, 0)  # fixed, so that equal files give equal archives


def downloads(documents: Mapping[str, str], attachments: Attachments) -> dict[str, Download]:
    links = {}
    for document_id, uri in documents.items():
        if files := attachments(uri):
            sizes = tuple((path, len(data)) for path, data in sorted(files.items()))
            name = safe_name(uri)
            links[document_id] = Download(
                f"{FOLDER}/{name}.zip",
                sizes,
                partial(_archive, name, attachments, uri),
                "an Agent Skill as ZIP" if "SKILL.md" in files else "ZIP",
            )
    return links


def _archive(name: str, attachments: Attachments, uri: str) -> bytes:
    target = BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for path, data in sorted(attachments(uri).items()):
            info = zipfile.ZipInfo(f"{name}/{path}", _DATE)
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)
    return target.getvalue()


class StoredDocuments:
    """The documents of a knowledge base in one transaction, read one at a time.

    Converts links by name in a workspace's files; adds category and status to the tags of entries.
    """

    def __init__(self, transaction: Transaction, kb_id: str) -> None:
        self._transaction = transaction
        self._kb_id = kb_id

    def __iter__(self) -> Iterator[Document]:
        for document in reading.iter_documents(self._transaction, self._kb_id, gone=False):
            if self._kb_id == FILES:
                yield self._linked(document)
            elif self._kb_id == ENTRIES:
                yield _labelled(document)
            else:
                yield document

    def _linked(self, document: Document) -> Document:
        if "[[" not in document.content:
            return document
        path = document.uri
        targets = {
            link.target: link.leads_to for link in indexed_files.links(self._transaction, path)
        }

        def address(name: str, heading: str) -> str | None:
            target = targets.get(name) or targets.get(f"/{name}")
            if not target:
                return None
            href = quote(posixpath.relpath(target, posixpath.dirname(path) or "."))
            return f"{href}#{quote(slug(heading))}" if heading else href

        about = WIKI_LINK.sub(lambda match: match[3] or match[1], document.description)
        content = resolve_wiki_links(document.content, address)
        return replace(document, content=content, description=about)


def _labelled(document: Document) -> Document:
    labels = [document.metadata.get("category"), document.metadata.get("status")]
    more = [each for each in labels if isinstance(each, str) and each not in ("", "active")]
    return replace(document, tags=tuple(dict.fromkeys((*document.tags, *more))))


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes one knowledge base; `model` and `graph` default to the settings of its `site`.

    Attributes:
        fit: Fits a query encoder; called when the content changed.
    """

    stores: Stores
    kb_id: str
    fit: Callable[[EncoderTarget], object]
    model: bool | None = None
    graph: bool | None = None
    sections: Sequence[SiteSection] = ()
    attachments: Attachments | None = None

    def export(
        self,
        folder: Path,
        *,
        build: bool = True,
        standalone: bool = False,
        on_progress: OnProgress | None = None,
    ) -> ExportReport:
        report = self.export_pages(folder / DOCS, on_progress=on_progress, project=folder)
        report = replace(report, folder=folder)
        if standalone:
            write_standalone(folder)
        if not build:
            return report
        start = time.perf_counter()
        _report_progress(on_progress, "site", 0, "mkdocs build")
        site = build_site(folder)
        _report_progress(on_progress, "site", 1, str(site))
        seconds = {**report.seconds, "site": time.perf_counter() - start}
        return replace(report, site=site, seconds=seconds)

    def export_pages(
        self, folder: Path, *, on_progress: OnProgress | None = None, project: Path | None = None
    ) -> ExportReport:
        """Write only the pages and their index, into a site's documentation folder."""
        check_stemmers()  # early, since stemmers may be missing
        graph = self._graph(folder)
        with self.stores.database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, self.kb_id)
            info = knowledge_bases.describe(transaction, row)
            site = spec_of(row).site
            if self.kb_id in BUILT_IN and not site.title:
                site = site.model_copy(update={"title": row.name.capitalize()})
            if project is not None:
                write_project(project, info, site)
            facts = gather_facts(
                transaction,
                self.kb_id,
                self.stores.snapshots.made(transaction, row),
                site.questions,
                graph,
            )
            documents = StoredDocuments(transaction, self.kb_id)
            archives = {}
            if self.attachments is not None:
                uris = {document.id: document.uri for document in documents}
                archives = downloads(uris, self.attachments)
            report = export_pages(
                info,
                documents,
                folder,
                site,
                on_progress,
                images=self.stores.images.read,
                facts=replace(
                    facts,
                    sections=self.sections,
                    downloads=archives,
                    best=indexed_files.best_entries(transaction) if self.kb_id == ENTRIES else (),
                ),
            )
        _report_progress(on_progress, "index", 0, "search index")
        seconds = {**report.seconds, **self._fit(on_progress), **self._write_index(folder)}
        _report_progress(on_progress, "index", 1, "search index")
        return replace(report, seconds=seconds)

    def _graph(self, folder: Path) -> GraphView | GraphFacts | None:
        """Return the graph for its page, if any, or the folder's existing files if current."""
        with self.stores.database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, self.kb_id)
            graph_state = reading.graph_state(transaction, self.kb_id)
        site = spec_of(row).site
        if not (site.graph if self.graph is None else self.graph):
            return None
        state = f"{version('kbkit')} {graph_state} {site.title or row.name}"
        if pages := kept_pages(folder, state):
            return GraphFacts(state=state, pages=pages)
        return look_at_graph(self.stores, row.name, state)

    def _fit(self, on_progress: OnProgress | None) -> dict[str, float]:
        with self.stores.database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, self.kb_id)
            due = [target for target in to_fit(row) if is_outdated(transaction, row, target)]
        if not due:
            return {}
        start = time.perf_counter()
        for number, target in enumerate(due):
            _report_progress(on_progress, "fit", number, f"query encoder for {target}", len(due))
            # without words or the model, the index omits these vectors
            with suppress(EmbedderError):
                self.fit(target)
        _report_progress(on_progress, "fit", len(due), "query encoders", len(due))
        return {"fit": time.perf_counter() - start}

    def _write_index(self, folder: Path) -> dict[str, float]:
        """Write the search index of exported pages, or remove it without chunks."""
        start = time.perf_counter()
        manifest = Manifest.read(folder)
        of = (self.stores, self.kb_id, manifest)
        state = index_state(*of, model=self.model)
        if not is_written(folder, state):
            content = index_content(*of, model=self.model)
            if content is None:
                remove_index(folder)
            else:
                write_index(content, folder, state)
        return {"index": time.perf_counter() - start}


def section_folder(project: Path, kb: str) -> Path:
    return project / DOCS / kb


def withdraw(folder: Path, kb: str) -> None:
    if Manifest.read(folder).kb == kb:
        remove_index(folder)
        remove_pages(folder, kb)


def _report_progress(
    on_progress: OnProgress | None, stage: str, done: int, message: str, total: int = 1
) -> None:
    if on_progress is not None:
        on_progress(Progress(stage, done, total, message))
