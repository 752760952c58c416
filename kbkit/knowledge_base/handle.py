"""The shared state of a knowledge base's parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from kbkit import errors, recipes
from kbkit.embedding import Embedders
from kbkit.models.values import BUILT_IN, ENTRIES, FILES, Target, TargetKind, did_you_mean
from kbkit.retrieval.query import KnowledgeBaseEmbedders
from kbkit.retrieval.retriever import Retriever
from kbkit.runtime import plugins
from kbkit.runtime.config import Settings
from kbkit.runtime.engine import Engine
from kbkit.runtime.third_party import how_to_install, is_installed
from kbkit.runtime.validation import check_text
from kbkit.sources import public_uri
from kbkit.stores.catalog import chunk_annotations, knowledge_bases, ratings, reading, runs
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.graph_reading import GraphReader
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.ratings import EncoderTarget
from kbkit.stores.stores import Stores
from kbkit.text.analysis import analyzer

if TYPE_CHECKING:
    from kbkit.ingest.summaries import SummaryMaker
    from kbkit.models import ChunkSummary, Document, KnowledgeBaseInfo, Rating


_P = ParamSpec("_P")
_T = TypeVar("_T")


class Handle:
    """One knowledge base of a workspace: catalog row, embedder and retriever."""

    def __init__(self, resources: Resources, row: KnowledgeBaseRow) -> None:
        self.resources = resources
        self.stores = resources.stores
        self.id = row.id
        self.name = row.name
        self.embedders = KnowledgeBaseEmbedders(self.stores.database, resources.embedders)
        self._read: dict[object, tuple[int, Any]] = {}
        self._built_at = -1
        self._graph = GraphReader(self.stores.database, row.id)

    def _cached_read(self, query: Callable[[Transaction, str], _T]) -> _T:
        """Run a query as `look_up` does, cached until the catalog changes."""
        changes = self.stores.database.changes()  # first, so that no change is missed
        cached = self._read.get(query)
        if cached is None or cached[0] != changes:
            cached = self._read[query] = changes, self.look_up(query)
        return cached[1]

    def look_up(
        self,
        query: Callable[Concatenate[Transaction, str, _P], _T],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _T:
        """Run a query of the catalog on this knowledge base."""
        return self.stores.database.look_up(query, self.id, *args, **kwargs)

    def row(self) -> KnowledgeBaseRow:
        return self._cached_read(knowledge_bases.get_by_id)

    def check_own(self) -> None:
        if self.id in BUILT_IN:
            raise errors.ImpossibleError(
                f"{self.name}: its documents are the {self.id} of the workspace; write, change and "
                f"delete them there: workspace.{self.id}"
            )

    @property
    def spec(self) -> recipes.KnowledgeBaseSpec:
        return self.embedders.spec_of(self.row())

    def info(self) -> KnowledgeBaseInfo:
        return self.look_up(knowledge_bases.describe)

    def revision(self) -> tuple[int, int, int]:
        return (self.row().version, *self._cached_read(ratings.extent))

    def site_revision(self) -> tuple[object, ...]:
        return (*self.revision(), self._cached_read(self._site_state))

    def _site_state(self, transaction: Transaction, kb_id: str) -> str:
        rows = self.sections(transaction)
        sections = [f" {row.version} {ratings.extent(transaction, row.id)}" for row in rows]
        return "".join([reading.graph_state(transaction, kb_id), *sections])

    def sections(
        self, transaction: Transaction, files: bool | None = None, entries: bool | None = None
    ) -> list[KnowledgeBaseRow]:
        """Return the built-in knowledge bases on its site, by default as its settings say."""
        site = self.spec.site
        options = {
            FILES: site.files if files is None else files,
            ENTRIES: site.entries if entries is None else entries,
        }
        rows = {row.id: row for row in knowledge_bases.rows(transaction)}
        return [rows[id_] for id_ in options if options[id_] and id_ in rows and id_ != self.id]

    def site_folder(self) -> Path:
        folder = self.spec.site.directory
        return Path(folder) if folder else self.stores.folder / "export" / self.name

    def document(self, document: str) -> Document:
        match = self.stores.database.look_up(self.find, check_text("document", document))
        if match is None:
            raise self._missing("document with id or URI", document)
        return match

    def find(self, transaction: Transaction, document: str) -> Document | None:
        for name in self.names(transaction, document):
            with suppress(errors.NotFoundError):
                return reading.get_document(transaction, self.id, name)
        return None

    def names(self, transaction: Transaction, document: str) -> Iterator[str]:
        yield document
        path = Path(document)
        if not path.is_absolute():
            yield public_uri(document)
            return
        from kbkit.ingest.pipeline import disk_place

        yield public_uri(path.as_uri())  # even if the file is gone
        for row in runs.list_sources(transaction, self.id):
            if (place := disk_place(row)) and path.is_relative_to(place.root):
                yield place.uri(path)

    def target(self, target: str | Target, *, rated: bool = False) -> Target:
        id_ = target.id if isinstance(target, Target) else check_text("target", target)
        with self.stores.database.read() as transaction:
            kind = reading.kind_of(transaction, self.id, id_)
            if kind is None and rated:
                earlier = ratings.list_ratings(transaction, self.id, [id_])
                kind = earlier[-1].target.kind if earlier else None
            if kind is None:
                document = self.find(transaction, id_)
                id_, kind = (document.id, "document") if document else (id_, None)
        resolved = Target(TargetKind(kind), id_) if kind is not None else None
        if resolved is None or (isinstance(target, Target) and resolved != target):
            raise self._missing("chunk or document with id or URI", id_)
        return resolved

    def ratings_of(self, targets: Sequence[str]) -> list[Rating]:
        return self.look_up(ratings.list_ratings, targets)

    def summaries_of(self, chunk_ids: Sequence[str]) -> dict[str, ChunkSummary]:
        """Summarize chunks, by id; chunks without annotations are left out."""
        return self.stores.database.look_up(chunk_annotations.summaries, chunk_ids)

    def _missing(self, noun: str, target: str) -> errors.NotFoundError:
        uris = [listed.uri for listed in self.look_up(reading.list_documents)]
        hint = did_you_mean(target, uris, "take an id from a search or a list")
        return errors.NotFoundError(f"{self.name}: has no {noun} {target!r}; {hint}")

    @property
    def summaries(self) -> SummaryMaker:
        from kbkit.ingest.summaries import SummaryMaker

        return SummaryMaker(
            self.stores.database,
            self.id,
            self.embedders.summary_model(self.row()),
            lambda: self.resources.embedders.open(recipes.StaticEmbedding()),
        )

    def embed_questions(self) -> None:
        """Embed new learned questions; without an embedder, their words are compared for now."""
        row = self.row()
        if self.embedders.spec_of(row).learning.questions:
            from kbkit.ingest.summaries import embed_questions

            with suppress(errors.ConfigError, errors.EmbedderError):
                embed_questions(self.stores.database, self.id, self.embedders.of_summaries(row))

    @cached_property
    def retriever(self) -> Retriever:
        """Retriever; `Workspace.search` ranks the candidates of several together."""
        return Retriever(self.stores, self.id, self.embedders, self.graph)

    def graph(self) -> GraphReader:
        """Return entities and relations; incomplete while a background process reads documents."""
        changes = self.stores.database.changes()
        if changes != self._built_at:
            from kbkit.graph.building import build_small

            build_small(self.stores, self.id)
            self._built_at = changes
        return self._graph

    def fit_query_encoder(self, target: EncoderTarget = "chunks") -> Mapping[str, Any]:
        """Fit a query encoder; see `Chunks.fit_query_encoder`."""
        from kbkit.retrieval.encoder_fitting import fit_encoder, fit_summary_encoder

        if target == "summaries":
            embedder = self.embedders.of_summaries(self.row())
            return fit_summary_encoder(self.stores.database, self.id, embedder)
        return fit_encoder(self.stores.database, self.id, self.embedders.of)


class Items(Sized, Iterable[Any]):
    """Items of a knowledge base."""

    _noun: str
    _kind: type

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._database = handle.stores.database

    def _shown(self) -> Iterable[Any]:
        return self

    def __repr__(self) -> str:
        return f"<{len(self):,} {self._noun} of {self._handle.name!r}>"

    def _repr_html_(self) -> str:
        from kbkit.frames import collection_html  # not needed for a search

        return collection_html(repr(self)[1:-1], self._kind, self._shown())


@dataclass(frozen=True, slots=True)
class Resources:
    """Objects that the knowledge bases of a workspace share.

    Attributes:
        attachments: Attachments of a document by URI, for each knowledge base by id.
    """

    stores: Stores
    settings: Settings
    embedders: Embedders
    engine: Engine
    attachments: Mapping[str, Callable[[str], Mapping[str, bytes]]] = field(default_factory=dict)


def check_new_name(name: str) -> None:
    try:
        recipes.check_name(name)
    except ValueError as error:
        raise errors.InvalidNameError(str(error)) from None
    if name in BUILT_IN:
        raise errors.InvalidNameError(
            f"{name!r} is the knowledge base of the {name} of a workspace "
            f"(workspace.{name}); choose another name"
        )


def check_spec(spec: recipes.KnowledgeBaseSpec) -> None:
    """Check that all named embedders and plugins exist, without importing them."""
    analyzer(spec.language)
    for postprocessor in spec.retrieval.postprocessors:
        if not is_installed(path := postprocessor.path):
            raise errors.PostprocessorError(f"{path}: is not installed; {how_to_install(path)}")
    if isinstance(spec.annotation, recipes.PluginAnnotation):
        plugins.find(plugins.ANNOTATORS, spec.annotation.name)


def new_knowledge_base(
    resources: Resources, name: str, description: str, spec: recipes.KnowledgeBaseSpec, kb_id: str
) -> KnowledgeBaseRow:
    """Enter a new knowledge base; its id is ``kb_id``, or a new one for ``""``."""
    check_spec(spec)
    embedder = resources.embedders.open(spec.embedding)
    if (
        isinstance(spec.embedding.chosen, recipes.OnnxEmbedding)
        and resources.settings.improve != "wait"
    ):
        # until the model has embedded everything
        embedder = resources.embedders.open(recipes.StaticEmbedding())
    return resources.stores.database.commit(
        knowledge_bases.create,
        name,
        description=check_text("description", description),
        config=spec.model_dump(mode="json"),
        embedder=embedder.fingerprint,
        dimensions=embedder.dimensions,
        given_id=kb_id,
    )
