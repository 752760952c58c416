"""Publish a knowledge base: pages with their facts, search index, and built site."""

import posixpath
import time
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from kbkit.errors import EmbedderError
from kbkit.export import build_site, export_pages, facts, write_project, write_standalone
from kbkit.export.graph_facts import GraphView, entity_mentions, graph_facts, look_at_graph
from kbkit.export.index_content import index_content, index_state, to_fit
from kbkit.export.index_terms import check_stemmers
from kbkit.export.index_writer import is_written, remove_index, write_index
from kbkit.export.mkdocs.build import DOCS
from kbkit.export.pages.home_page import unchanged_pages
from kbkit.export.pages.paths import safe_name
from kbkit.export.pages.writer import remove_pages
from kbkit.feedback.evaluation_set import is_page
from kbkit.models import Document, ExportReport, Progress, RatingTotal
from kbkit.models.values import BUILT_IN, ENTRIES, FILES
from kbkit.recipes import Question
from kbkit.retrieval.encoder_fitting import is_outdated
from kbkit.runtime.progress import OnProgress, ignore
from kbkit.stores.catalog import corpus, indexed_files, knowledge_bases, ratings, reading, runs
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import spec_of
from kbkit.stores.catalog.ratings import EncoderTarget
from kbkit.stores.snapshots.making import make
from kbkit.stores.snapshots.snapshot import Snapshot
from kbkit.stores.stores import Stores
from kbkit.text.markdown.extensions import resolve_wiki_links
from kbkit.text.markdown.structure import WIKI_LINK, slug

FOLDER = "downloads"
"""Folder of the archives in an export."""

Attachments = Callable[[str], Mapping[str, bytes]]
"""Returns the files of a document by relative path, for the document's URI."""

_DATE = (1980, 1, 1, 0, 0, 0)  # fixed, so that equal files give equal archives


def downloads(documents: Mapping[str, str], attachments: Attachments) -> dict[str, facts.Download]:
    links = {}
    for document_id, uri in documents.items():
        if files := attachments(uri):
            sizes = tuple((path, len(data)) for path, data in sorted(files.items()))
            name, kind = safe_name(uri), "an Agent Skill as ZIP" if "SKILL.md" in files else "ZIP"
            read = partial(_archive, name, attachments, uri)
            links[document_id] = facts.Download(f"{FOLDER}/{name}.zip", sizes, read, kind)
    return links


def _archive(name: str, attachments: Attachments, uri: str) -> bytes:
    target = BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for path, data in sorted(attachments(uri).items()):
            info = zipfile.ZipInfo(f"{name}/{path}", _DATE)
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)
    return target.getvalue()


@dataclass(frozen=True, slots=True)
class StoredDocuments:
    """The documents of a knowledge base in one transaction, read one at a time.

    Converts links by name in a workspace's files; adds category and status to the tags of entries.
    """

    transaction: Transaction
    kb_id: str

    def __iter__(self) -> Iterator[Document]:
        documents = reading.iter_documents(self.transaction, self.kb_id, in_trash=False)
        convert = {FILES: self._link, ENTRIES: _add_labels}.get(self.kb_id)
        return map(convert, documents) if convert else documents

    def _link(self, document: Document) -> Document:
        if "[[" not in document.content:
            return document
        path = document.uri
        links = indexed_files.links(self.transaction, path)
        targets = {link.target: link.leads_to for link in links}

        def address(name: str, heading: str) -> str | None:
            target = targets.get(name) or targets.get(f"/{name}")
            if not target:
                return None
            href = quote(posixpath.relpath(target, posixpath.dirname(path) or "."))
            return f"{href}#{quote(slug(heading))}" if heading else href

        description = WIKI_LINK.sub(lambda match: match[3] or match[1], document.description)
        content = resolve_wiki_links(document.content, address)
        return replace(document, content=content, description=description)


def _add_labels(document: Document) -> Document:
    labels = [document.metadata.get("category"), document.metadata.get("status")]
    extra = [label for label in labels if isinstance(label, str) and label not in ("", "active")]
    return replace(document, tags=tuple(dict.fromkeys((*document.tags, *extra))))


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
    sections: Sequence[facts.SiteSection] = ()
    attachments: Attachments | None = None

    def export(
        self, folder: Path, *, build: bool, standalone: bool, on_progress: OnProgress
    ) -> ExportReport:
        shown = [section.path for section in self.sections]
        for kb in BUILT_IN:
            section = folder / DOCS / kb
            manifest = facts.Manifest.read(section)
            if f"{kb}/index.md" not in shown and manifest.kb == kb:
                remove_index(section)
                remove_pages(section, manifest)
        report = self.export_pages(folder / DOCS, on_progress=on_progress, project=folder)
        report = replace(report, folder=folder)
        if standalone:
            write_standalone(folder)
        if not build:
            return report
        start = time.perf_counter()
        on_progress(Progress("site", 0, 1, "mkdocs build"))
        site = build_site(folder)
        on_progress(Progress("site", 1, 1, str(site)))
        seconds = {**report.seconds, "site": time.perf_counter() - start}
        return replace(report, site=site, seconds=seconds)

    def export_pages(
        self, folder: Path, *, on_progress: OnProgress = ignore, project: Path | None = None
    ) -> ExportReport:
        """Write only the pages and their index, into a site's documentation folder."""
        check_stemmers()  # early, since stemmers may be missing
        graph = self._graph(folder)
        with self.stores.database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, self.kb_id)
            info = knowledge_bases.describe(transaction, row.id)
            site = spec_of(row).site
            if self.kb_id in BUILT_IN and not site.title:
                site = site.model_copy(update={"title": row.name.capitalize()})
            if project is not None:
                write_project(project, info, site)
            snapshot = make(transaction, row)
            gathered = gather_facts(transaction, self.kb_id, snapshot, site.questions, graph)
            documents = StoredDocuments(transaction, self.kb_id)
            entries = indexed_files.list_entries(transaction) if self.kb_id == ENTRIES else ()
            best = [entry.slug for entry in entries]
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
                facts=replace(gathered, sections=self.sections, downloads=archives, best=best),
            )
        on_progress(Progress("index", 0, 1, "search index"))
        seconds = {**report.seconds, **self._fit(on_progress), **self._write_index(folder)}
        on_progress(Progress("index", 1, 1, "search index"))
        return replace(report, seconds=seconds)

    def _graph(self, folder: Path) -> GraphView | facts.GraphFacts | None:
        """Return the graph for its page, if any, or the folder's existing files if current."""
        with self.stores.database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, self.kb_id)
            graph_state = reading.graph_state(transaction, self.kb_id)
        site = spec_of(row).site
        if not (site.graph if self.graph is None else self.graph):
            return None
        state = f"{version('kbkit')} {graph_state} {site.title or row.name}"
        if pages := unchanged_pages(folder, state):
            return facts.GraphFacts(state=state, pages=pages)
        return look_at_graph(self.stores, row.name, state)

    def _fit(self, on_progress: OnProgress) -> dict[str, float]:
        with self.stores.database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, self.kb_id)
            due = [target for target in to_fit(row) if is_outdated(transaction, row, target)]
        if not due:
            return {}
        start = time.perf_counter()
        for number, target in enumerate(due):
            on_progress(Progress("fit", number, len(due), f"query encoder for {target}"))
            # without words or the model, the index omits these vectors
            with suppress(EmbedderError):
                self.fit(target)
        on_progress(Progress("fit", len(due), len(due), "query encoders"))
        return {"fit": time.perf_counter() - start}

    def _write_index(self, folder: Path) -> dict[str, float]:
        """Write the search index of exported pages, or remove it without chunks."""
        start = time.perf_counter()
        manifest = facts.Manifest.read(folder)
        arguments = (self.stores, self.kb_id, manifest)
        state = index_state(*arguments, model=self.model)
        if not is_written(folder, state):
            content = index_content(*arguments, model=self.model)
            if content is None:
                remove_index(folder)
            else:
                write_index(content, folder, state)
        return {"index": time.perf_counter() - start}


NEIGHBOURS = 4
"""Maximum related passages of a page."""
NEAR_ENOUGH = 0.3
"""Minimum cosine of two documents' centred means."""
_ROWS = 256  # documents compared with all others at once; bounds memory


def gather_facts(
    transaction: Transaction,
    kb_id: str,
    snapshot: Snapshot,
    questions: Sequence[Question] = (),
    graph: GraphView | facts.GraphFacts | None = None,
) -> facts.Facts:
    index_ids = corpus.indexes(transaction, kb_id)
    mentions = entity_mentions(transaction, kb_id, snapshot)
    main = mentions.main_subjects()
    subjects = {snapshot.document_ids[owner]: names for owner, names in main.items()}
    listed = ratings.list_ratings(transaction, kb_id)
    scores = {(each.target.id, each.rater, each.query): each.score for each in listed}
    return facts.Facts(
        related=related_passages(transaction, snapshot),
        ratings=_ratings(ratings.totals(transaction, kb_id), snapshot),
        scores=Counter(scores.values()),
        lengths=reading.chunk_lengths(transaction, kb_id),
        sources=[_source(transaction, row) for row in runs.list_sources(transaction, kb_id)],
        questions=_examples(transaction, snapshot, questions),
        subjects={id_: names for id_, names in subjects.items() if id_ not in index_ids},
        graph=graph_facts(transaction, kb_id, snapshot, graph, mentions)
        if isinstance(graph, GraphView)
        else graph,
    )


def _examples(
    transaction: Transaction, snapshot: Snapshot, questions: Sequence[Question]
) -> list[facts.ExampleQuestion]:
    if not questions:
        return []
    uris = list(reading.uris_of(transaction, snapshot.document_ids).values())
    uris.sort(key=lambda uri: (len(uri), uri))  # a suffix probably means the shortest address
    return [
        facts.ExampleQuestion(
            question.question,
            tuple(uri for suffix in question.relevant for uri in uris if is_page(uri, suffix)),
        )
        for question in questions
    ]


def related_passages(
    transaction: Transaction, snapshot: Snapshot
) -> dict[str, list[facts.RelatedPassage]]:
    """Return the nearest passages of other documents, by document id.

    Compares the means of the documents' chunk vectors, minus the mean of all chunks. The passage is
    the other document's chunk that is nearest to that difference.
    """
    # a snapshot may have documents without chunks
    documents, owners = np.unique(snapshot.owners, return_inverse=True)
    if len(documents) < 2:
        return {}
    rows = np.argsort(owners, kind="stable")
    starts = np.searchsorted(owners[rows], np.arange(len(documents) + 1)).tolist()
    vectors = np.asarray(snapshot.vectors, np.float32)[rows]
    sums = np.add.reduceat(vectors, starts[:-1], axis=0)
    means = sums / np.diff(starts)[:, None].astype(np.float32) - vectors.mean(axis=0)
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
    ids = [snapshot.document_ids[document] for document in documents.tolist()]
    chosen: list[tuple[str, str, int]] = []
    for number, other in _nearest(means):
        # subtracting the mean of all here would lower all scores equally
        best = int((vectors[starts[other] : starts[other + 1]] @ means[number]).argmax())
        chosen.append((ids[number], ids[other], int(rows[starts[other] + best])))
    seqs = sorted({int(snapshot.seqs[row]) for _, _, row in chosen})
    places = reading.places_of(transaction, seqs)
    uris = reading.uris_of(transaction, {other for _, other, _ in chosen})
    headings = list(snapshot.heading_texts)
    related: defaultdict[str, list[facts.RelatedPassage]] = defaultdict(list)
    for id_, other_id, row in chosen:
        anchor, passage = places.get(int(snapshot.seqs[row]), ("", ""))
        heading = headings[int(snapshot.headings[row])]
        related[id_].append(facts.RelatedPassage(uris[other_id], anchor, heading, passage))
    return related


def _nearest(means: NDArray[np.float32]) -> Iterator[tuple[int, int]]:
    for first in range(0, len(means), _ROWS):
        # in thousandths, so that rounding errors do not change the order of ties; the first
        # documents win ties
        scores = np.rint(1000 * (means[first : first + _ROWS] @ means.T)).astype(np.int16)
        scores[np.arange(len(scores)), np.arange(first, first + len(scores))] = -2_000
        best = np.argsort(-scores, axis=1, kind="stable")[:, :NEIGHBOURS]
        enough = np.take_along_axis(scores, best, axis=1) >= 1000 * NEAR_ENOUGH
        for row, place in np.argwhere(enough).tolist():
            yield first + row, int(best[row, place])


def _ratings(totals_by_target: ratings.Totals, snapshot: Snapshot) -> dict[str, tuple[float, int]]:
    owners = dict(zip(snapshot.seqs.tolist(), snapshot.owners.tolist(), strict=True))
    of_chunks: dict[str, list[RatingTotal]] = {}
    for seq, total in totals_by_target.chunks.items():
        if seq in owners:
            of_chunks.setdefault(snapshot.document_ids[owners[seq]], []).append(total)
    averages = {}
    for document, totals in of_chunks.items():
        people = sum(total.raters for total in totals)
        average = sum(total.average * total.raters for total in totals) / people
        averages[document] = (average, max(total.raters for total in totals))
    return averages | {
        document: (total.average, total.raters)
        for document, total in totals_by_target.documents.items()
    }


def _source(transaction: Transaction, row: runs.SourceRow) -> facts.SourceFacts:
    history = runs.history(transaction, row.kb_id)
    ended = [(end, report) for source, _, end, report in history if end and source == row.id]
    # a refresh measures changed pages only, so take the run that measured most
    measured: Mapping[str, tuple[int, int]] = max(
        (report.get("fidelity") or {} for _, report in ended),
        key=lambda fidelity: fidelity.get("pages", (0, 0))[1],
        default={},
    )
    day = ended[0][0].date().isoformat() if ended else ""
    fidelity = {kind: (int(retained), int(total)) for kind, (retained, total) in measured.items()}
    return facts.SourceFacts(row.type, row.place, day, fidelity)
