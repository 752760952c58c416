"""The schema of recipes, from which their reference is generated."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import pydantic
from pydantic import Field, StrictBool, field_validator, model_validator

from kbkit.models.licenses import TEXT_LENGTH
from kbkit.models.values import check_match
from kbkit.recipes import base
from kbkit.recipes.sources import AnySource


class ChunkingSpec(base.Spec):
    """Splitting of documents into chunks."""

    strategy: Literal["auto", "headings", "paragraph", "page", "fixed", "sentence"] = "auto"
    """`headings` fills chunks with whole blocks of a section, `paragraph` with those of a chapter;
    `page` keeps source pages apart; `fixed` cuts at the size, `sentence` at sentence ends. `auto`
    chooses by format and type: PDF `page`, Word `paragraph`, tables, data and source code `fixed`,
    the rest `headings`, or `paragraph` without headings."""
    size: int = Field(default=1000, ge=100, le=20_000)
    """Maximum characters of a chunk (longer code and tables are split at line ends). With `auto`
    and the default size, PDF pages may have 3000."""
    overlap: int = Field(default=0, ge=0)
    """Characters that neighbouring chunks of one section share (`fixed` and `sentence`)."""

    @model_validator(mode="after")
    def _overlap_below_size(self) -> Self:
        if self.overlap * 2 > self.size:
            raise ValueError("overlap: more than half of size; choose a smaller one")
        return self


EmbeddedText = Literal["chunk", "normalized", "both"]
"""Text to embed for a chunk."""


class _Embedding(base.Spec):
    text: EmbeddedText = "chunk"
    """Text to embed for a chunk: its own (`chunk`), its annotations, if any (`normalized`), or
    `both` in one vector."""

    @property
    def chosen(self) -> ModelEmbedding:
        """The embedding to open; differs from this one for `auto`."""
        return self  # type: ignore[return-value]


class StaticEmbedding(_Embedding):
    """Static word vectors, fast and small."""

    type: Literal["static"] = "static"


class OnnxEmbedding(_Embedding):
    """A sentence-transformer model in ONNX form."""

    type: Literal["onnx"] = "onnx"
    preset: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$")
    """`minilm`, or the name of a fetched model (`kbkit models list`)."""
    model: str | None = None
    """Folder with `model.onnx` and `tokenizer.json`, or the path of the `.onnx` file."""
    tokenizer: str | None = None
    """Path of `tokenizer.json` if it is not next to the model."""
    pooling: Literal["mean", "cls"] | None = None
    """Pooling of token vectors; by default the model's own, else `mean`."""
    max_length: int | None = Field(default=None, ge=8, le=8192)
    """Tokens read of each text; by default the model's own, else 256."""
    normalize: StrictBool = True
    """Scale vectors to length 1."""
    query_prefix: str | None = None
    """Text before each query; by default the model's own, else none."""
    passage_prefix: str | None = None
    """Text before each passage; by default the model's own, else none."""
    batch_size: int = Field(default=4, ge=1)
    """Texts in one batch."""

    @model_validator(mode="after")
    def _one_model(self) -> Self:
        if (self.preset is None) == (self.model is None):
            raise ValueError("give either preset or model")
        return self


class AutoEmbedding(_Embedding):
    """The default: static word vectors, replaced by MiniLM's while the knowledge base is small.

    After an ingest MiniLM embeds the chunks in the background, if they are English and at most
    `KBKIT_MINILM_CHUNKS` (20,000).
    """

    type: Literal["auto"] = "auto"
    model: Literal["static", "minilm"] = "static"
    """Current choice; kbkit changes it."""

    @property
    def chosen(self) -> ModelEmbedding:
        """The embedding of the current choice."""
        if self.model == "static":
            return StaticEmbedding(text=self.text)
        return OnnxEmbedding(preset=self.model, text=self.text)


class MultilingualEmbedding(_Embedding):
    """A local sentence encoder of 15 languages (extra `multilingual`)."""

    type: Literal["multilingual"] = "multilingual"


class LlamaIndexEmbedding(_Embedding):
    """Any llama-index embedding. Its package must be installed; it may use the network."""

    type: Literal["llama-index"] = "llama-index"
    model: str
    """A short form (`openai:text-embedding-3-small`) or an import path
    (`llama_index.embeddings.ollama:OllamaEmbedding`)."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Arguments of its constructor. A key is a reference to the environment: `api_key:
    ${OPENAI_API_KEY}`."""
    batch_size: int = Field(default=64, ge=1)
    """Texts in one batch."""


class PluginEmbedding(_Embedding):
    """An embedder of another installed package (entry point group `kbkit.embedders`)."""

    type: Literal["plugin"] = "plugin"
    name: str = Field(min_length=1)
    """Name of the entry point."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the embedder."""


ModelEmbedding = Annotated[
    StaticEmbedding | MultilingualEmbedding | OnnxEmbedding | LlamaIndexEmbedding | PluginEmbedding,
    Field(discriminator="type"),
]
"""An embedder by ``type``."""

AnyEmbedding = Annotated[AutoEmbedding | ModelEmbedding, Field(discriminator="type")]
"""An embedder by ``type``, or `auto`."""

_MODEL_DENSE_WEIGHT = 0.6  # best or nearly best nDCG@10 for MiniLM on three collections


class RetrievalSpec(base.Spec):
    """Ranking of search."""

    dense_weight: float = Field(default=0.35, ge=0, le=1)
    """Share of the dense score in a chunk's own score; the rest is BM25. By default 0.35 for
    static vectors and 0.6 for others."""
    document_weight: float = Field(default=0.5, ge=0, le=5)
    """Weight of the document's other passages; the chunk's own score has 1."""
    title_weight: float = Field(default=0.0, ge=0, le=5)
    """Weight of query words in the document's title."""
    heading_weight: float = Field(default=0.0, ge=0, le=5)
    """Weight of query words in the headings above the chunk."""
    summary_weight: float = Field(default=1.0, ge=0, le=5)
    """Weight of the document's summary (title, description, headings) by meaning."""
    page_weight: float = Field(default=0.5, ge=0, le=5)
    """Weight of query words anywhere in the document."""
    graph_weight: float = Field(default=0.0, ge=0, le=5)
    """Weight of the graph: entities in the query, and links of documents that answer it. 0 disables
    it."""
    learned_weight: float = Field(default=2.0, ge=0, le=5)
    """Weight of similar questions for which people rated the chunk 4 or 5; it only raises scores. 0
    disables it."""
    rating_weight: float = Field(default=0.1, ge=0, le=1)
    """Share of the score that the best ratings add and the worst subtract."""
    per_document: int = Field(default=3, ge=1)
    """Hits of one document that count in full; each further hit counts a tenth less."""
    duplicates: float = Field(default=0.98, gt=0, le=1)
    """Cosine above which chunks are near duplicates: the best keeps its rank, the others count
    half. 1 disables it."""
    candidates: int = Field(default=100, ge=1, le=10_000)
    """Chunks that each retriever passes to the reranking."""
    query_encoder: Literal["model", "fitted"] = "model"
    """Embedder of queries: the chunks' model, or term vectors fitted to the chunks, which need no
    model, network or key."""
    postprocessors: tuple[base.PostprocessorSpec, ...] = ()
    """llama-index node postprocessors for the best hits, such as a cross-encoder."""

    def to_yaml(self) -> str:
        """Return the ``retrieval`` part of a recipe: all weights and changed settings."""
        import yaml

        kinds = ("dense", "document", "title", "heading", "summary", "page")
        weights = {f"{kind}_weight": getattr(self, f"{kind}_weight") for kind in kinds}
        values = self.model_dump(mode="json", exclude_defaults=True)
        return str(yaml.safe_dump({"retrieval": weights | values}, sort_keys=False))


class LearningSpec(base.Spec):
    """Learning from ratings in search."""

    questions: StrictBool = True
    """Use questions for which people rated a chunk 4 or 5 to answer similar ones. Questions stay in
    the workspace."""
    publish: StrictBool = False
    """Add these questions to their chunks in the search index of an exported site, which makes them
    public."""


class GraphSpec(base.Spec):
    """Relations read from documents.

    `graph_weight` of `retrieval` is their weight in search; `graph` of `site` adds a page.
    `annotation` of type `llm` adds relations too.
    """

    build: StrictBool = True
    """Read relations from documents. Manual relations always exist."""
    co_occurrence: float = Field(default=0.2, ge=0, le=1)
    """Minimum weight of a co-occurrence relation (NPMI, reduced for few sightings). 1 disables
    them."""
    co_occurrences: int = Field(default=10, ge=0, le=1000)
    """Maximum number of co-occurrence relations of one entity."""
    least_sections: int = Field(default=3, ge=1)
    """Minimum number of sections in which both names occur."""


class StorageSpec(base.Spec):
    """Storage of derived data."""

    text_in_chroma: StrictBool = False
    """Also store the text in the Chroma collection, for other tools. Adding takes about three times
    as long; a Chroma server stores at most 16,384 bytes of a text."""


class Question(base.Spec):
    """A golden question and the pages that answer it."""

    question: str = Field(min_length=1)
    """The question."""
    relevant: tuple[str, ...] = Field(min_length=1)
    """URI suffixes of pages that answer it, the best first. A leading slash makes it the whole
    path: `/guide/` does not match `/api/guide/`."""


class SiteSpec(base.Spec):
    """Content of the exported site."""

    title: str = ""
    """Name of the site; by default the knowledge base's name."""
    url: base.HttpUrl | None = None
    """Public address (canonical links, sitemap)."""
    directory: str = ""
    """Folder of the exported MkDocs project; by default `export/NAME` in the workspace."""
    model: StrictBool = True
    """Include MiniLM (23 MB; a browser fetches 10 MB after its first search), if it embedded
    summaries or chunks."""
    graph: StrictBool = True
    """Include a page with the knowledge graph."""
    files: StrictBool = False
    """Include the workspace's files as a section."""
    entries: StrictBool = False
    """Include the workspace's entries as a section, with stars and files."""
    questions: tuple[Question, ...] = ()
    """Questions on the home page with their answers; by default the golden ones."""


class KnowledgeBaseSpec(base.Spec):
    """Settings of a knowledge base, independent of its sources."""

    language: str = "english"
    """Language of its text, for stemming and stop words (a Snowball name)."""
    chunking: ChunkingSpec = ChunkingSpec.model_construct()
    """Splitting of documents."""
    embedding: AnyEmbedding = AutoEmbedding.model_construct()
    """Embedding of chunks."""
    summary_embedding: ModelEmbedding | None = None
    """Embedding of document summaries; by default MiniLM for English, else `multilingual` if its
    extra is installed, else `static`."""
    retrieval: RetrievalSpec = RetrievalSpec.model_construct()
    """Ranking of search."""
    expand: base.ExpandSpec | None = None
    """A language model that describes documents; none by default."""
    annotation: base.AnyAnnotation = base.RulesAnnotation.model_construct()
    """Annotator, and additional names: `rules`, `none`, or a mapping."""
    graph: GraphSpec = GraphSpec.model_construct()
    """Relations read from documents."""
    learning: LearningSpec = LearningSpec.model_construct()
    """Learning from ratings."""
    storage: StorageSpec = StorageSpec.model_construct()
    """Storage of derived data."""
    site: SiteSpec = SiteSpec.model_construct()
    """Content of the exported site."""

    @property
    def version(self) -> str:
        """Hash of the values, for ``if_match``."""
        return hashlib.blake2b(self.model_dump_json().encode(), digest_size=16).hexdigest()

    def check_version(self, expected: str | None) -> None:
        """Raise `VersionConflictError` if the version differs; ``None`` matches any."""
        check_match("the spec", expected, self.version)

    def with_embedding(self, embedding: AnyEmbedding) -> KnowledgeBaseSpec:
        """Return the settings with another embedder, and its default weight unless one is given."""
        values = {name: getattr(self, name) for name in KnowledgeBaseSpec.model_fields}
        if "text" not in embedding.model_fields_set:
            embedding = embedding.model_copy(update={"text": self.embedding.text})
        if self.retrieval.dense_weight in (_MODEL_DENSE_WEIGHT, RetrievalSpec().dense_weight):
            settings = self.retrieval.model_dump(exclude={"dense_weight"})
            values["retrieval"] = RetrievalSpec(**settings)
        return KnowledgeBaseSpec(**{**values, "embedding": embedding})

    def keep_choice(self, old: KnowledgeBaseSpec) -> KnowledgeBaseSpec:
        """Return the settings with the model that `auto` chose before."""
        if not isinstance(self.embedding, AutoEmbedding):
            return self
        was_minilm = getattr(old.embedding.chosen, "preset", None) == "minilm"
        model = "minilm" if was_minilm else "static"
        return self.with_embedding(self.embedding.model_copy(update={"model": model}))

    @field_validator("summary_embedding")
    @classmethod
    def _check_summary_text(cls, value: ModelEmbedding | None) -> ModelEmbedding | None:
        if value is not None and value.text != "chunk":
            raise ValueError("text: is for chunks only; remove it from summary_embedding")
        return value

    @field_validator("annotation")
    @classmethod
    def _check_embedded_annotations(
        cls, value: base.AnyAnnotation, info: pydantic.ValidationInfo
    ) -> base.AnyAnnotation:
        text = getattr(info.data.get("embedding"), "text", "chunk")
        if isinstance(value, base.NoAnnotation) and text != "chunk":
            raise ValueError(
                f"none: leaves nothing to embed for embedding.text {text}; choose rules, "
                "or text: chunk"
            )
        return value

    @model_validator(mode="after")
    def _weigh_vectors(self) -> Self:
        explicit = "dense_weight" in self.retrieval.model_fields_set
        if not explicit and not isinstance(self.embedding.chosen, StaticEmbedding):
            weighed = self.retrieval.model_copy(update={"dense_weight": _MODEL_DENSE_WEIGHT})
            object.__setattr__(self, "retrieval", weighed)  # frozen
        return self


class Recipe(KnowledgeBaseSpec):
    """A knowledge base, from its sources to its site."""

    name: base.KnowledgeBaseName
    """Name of the knowledge base: a slug."""
    description: str = ""
    """Description in a sentence."""
    sources: tuple[AnySource, ...] = Field(min_length=1)
    """Sources of its documents."""
    license: base.LicenseName = ""
    """License of sources that state none."""
    attribution: str = Field(default="", max_length=TEXT_LENGTH)
    """Attribution of sources that state none."""
    questions: tuple[Question, ...] | str = ()
    """Golden questions, or their TSV file (question, tab, comma-separated pages)."""

    _path: Path = pydantic.PrivateAttr(default=Path())

    @model_validator(mode="after")
    def _license_sources(self) -> Self:
        own = {"license": self.license, "attribution": self.attribution}
        sources = tuple(
            source.model_copy(update={k: v for k, v in own.items() if v and not getattr(source, k)})
            for source in self.sources
        )
        object.__setattr__(self, "sources", sources)  # frozen
        return self

    @property
    def path(self) -> Path:
        """The recipe's file; its relative paths start at the file's folder."""
        return self._path

    @property
    def spec(self) -> KnowledgeBaseSpec:
        """The settings of the knowledge base, with absolute paths."""
        parts = {name: getattr(self, name) for name in KnowledgeBaseSpec.model_fields}
        folder = self.path.parent.absolute()
        for part in ("embedding", "summary_embedding"):
            spec = parts[part]
            if isinstance(spec, OnnxEmbedding):
                paths = {
                    name: str(folder / value)
                    for name in ("model", "tokenizer")
                    if (value := getattr(spec, name)) is not None
                }
                parts[part] = spec.model_copy(update=paths)
        if self.site.directory:
            directory = str(folder / self.site.directory)
            parts["site"] = self.site.model_copy(update={"directory": directory})
        return KnowledgeBaseSpec(**parts)
