"""The schema of recipes, from which their reference is generated."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    StrictBool,
    ValidationInfo,
    field_validator,
    model_validator,
)

from kbkit.models.licenses import TEXT_LENGTH
from kbkit.recipes.base import (
    AnyAnnotation,
    ExpandSpec,
    HttpUrl,
    LicenseName,
    NoAnnotation,
    RulesAnnotation,
    Spec,
    VersionedSpec,
)
from kbkit.recipes.sources import AnySource

SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")

RESERVED = re.compile(r"con|prn|aux|nul|(?:com|lpt)[0-9]")
"""Names that no folder can have on Windows."""


class ChunkingSpec(Spec):
    """Splitting of documents into chunks."""

    strategy: Literal["auto", "headings", "paragraph", "page", "fixed", "sentence"] = "auto"
    """`headings` never crosses a heading and fills chunks with whole blocks; `paragraph` fills
    chunks with whole blocks of a chapter; `page` keeps source pages apart; `fixed` cuts at the
    size; `sentence` at sentence ends. `auto` chooses by format and type: PDF `page`, Word
    `paragraph`, tables, data and source code `fixed`, the rest `headings`, or `paragraph` where
    there are none."""
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


class _Embedding(Spec):
    text: EmbeddedText = "chunk"
    """Text to embed for a chunk: its text, its annotations (several statements are added up), or
    `both` in one vector. Chunks without annotations use their text. Queries are embedded as they
    are."""


class StaticEmbedding(_Embedding):
    """The offline default: static word vectors, fast and small."""

    type: Literal["static"] = "static"


class OnnxEmbedding(_Embedding):
    """A sentence-transformer model in ONNX form."""

    type: Literal["onnx"] = "onnx"
    preset: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$")
    """`minilm`, or a model that was fetched by that name (`kbkit models list`)."""
    model: str | None = None
    """Folder with `model.onnx` and `tokenizer.json`, or the path of the `.onnx` file."""
    tokenizer: str | None = None
    """Path of `tokenizer.json` when it does not lie beside the model."""
    pooling: Literal["mean", "cls"] | None = None
    """Pooling of token vectors; by default the model's own, else `mean`."""
    max_length: int | None = Field(default=None, ge=8, le=8192)
    """Tokens read of each text; by default likewise, else 256."""
    normalize: StrictBool = True
    """Scale vectors to length 1."""
    query_prefix: str | None = None
    """Put before each query; by default likewise, else nothing."""
    passage_prefix: str | None = None
    """Put before each passage; by default likewise, else nothing."""
    batch_size: int = Field(default=4, ge=1)
    """Texts given to the model at once."""

    @model_validator(mode="after")
    def _one_model(self) -> Self:
        if (self.preset is None) == (self.model is None):
            raise ValueError("give either preset or model")
        return self


class MultilingualEmbedding(_Embedding):
    """A sentence encoder of 15 languages, for this machine (extra `multilingual`)."""

    type: Literal["multilingual"] = "multilingual"


class LlamaIndexEmbedding(_Embedding):
    """Any llama-index embedding; its package must be installed, and it may use the network."""

    type: Literal["llama-index"] = "llama-index"
    model: str
    """A short form (`openai:text-embedding-3-small`) or an import path
    (`llama_index.embeddings.ollama:OllamaEmbedding`)."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Arguments of its constructor. A key is a reference to the environment: `api_key:
    ${OPENAI_API_KEY}`."""
    batch_size: int = Field(default=64, ge=1)
    """Texts given to the model at once."""


class PluginEmbedding(_Embedding):
    """An embedder that another installed package brings (entry point group `kbkit.embedders`)."""

    type: Literal["plugin"] = "plugin"
    name: str = Field(min_length=1)
    """Its name there."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments for the package's embedder."""


AnyEmbedding = Annotated[
    StaticEmbedding | MultilingualEmbedding | OnnxEmbedding | LlamaIndexEmbedding | PluginEmbedding,
    Field(discriminator="type"),
]
"""An embedder by ``type``."""


class PostprocessorSpec(Spec):
    """A llama-index node postprocessor. Its package must be installed; it may use the network."""

    path: str = Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*[:.][A-Za-z_]\w*$")
    """Its import path (`llama_index.core.postprocessor:SentenceTransformerRerank`)."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Arguments of its constructor. A key is a reference to the environment: `api_key:
    ${OPENAI_API_KEY}`."""
    hits: int = Field(default=30, ge=1, le=1000)
    """Number of best hits that it receives; more only if more are requested."""


_MODEL_DENSE_WEIGHT = 0.6
"""Best or nearly best nDCG@10 for MiniLM on three collections."""


class RetrievalSpec(Spec):
    """Ranking of search."""

    dense_weight: float = Field(default=0.3, ge=0, le=1)
    """Share of the dense score in a chunk's own score; the rest is BM25. By default 0.3 for
    `static` and 0.6 for other embedders."""
    document_weight: float = Field(default=0.5, ge=0, le=5)
    """Weight of the document's other passages, relative to 1 for the chunk."""
    title_weight: float = Field(default=0.0, ge=0, le=5)
    """Weight of query words in the document's title, likewise."""
    heading_weight: float = Field(default=0.0, ge=0, le=5)
    """Weight of query words in the headings above the chunk, likewise."""
    summary_weight: float = Field(default=1.0, ge=0, le=5)
    """Weight of the document's summary (title, description, headings) by meaning, likewise."""
    page_weight: float = Field(default=0.5, ge=0, le=5)
    """Weight of query words anywhere in the document, likewise."""
    graph_weight: float = Field(default=0.0, ge=0, le=5)
    """Weight of the graph: from entities in the query to chunks that mention them, and from
    documents that answer it along links. 0 switches it off."""
    learned_weight: float = Field(default=2.0, ge=0, le=5)
    """Weight of similar questions for which people rated the chunk 4 or 5, likewise. It only raises
    scores. 0 switches it off."""
    rating_weight: float = Field(default=0.1, ge=0, le=1)
    """Share of the score that the best ratings add and the worst take away."""
    per_document: int = Field(default=3, ge=1)
    """Hits of one document that count in full; each further one counts a tenth less."""
    duplicates: float = Field(default=0.98, gt=0, le=1)
    """Chunks whose vectors are more alike than this (cosine) are near duplicates: only the best of
    them stays in its place, the others count half. 1 leaves all in place."""
    candidates: int = Field(default=100, ge=1, le=10_000)
    """Chunks that each retriever hands to the reranking."""
    query_encoder: Literal["model", "fitted"] = "model"
    """Embedder of queries: the model of the chunks, or a table of term vectors fitted to them,
    which needs no model, network or key."""
    postprocessors: tuple[PostprocessorSpec, ...] = ()
    """llama-index node postprocessors (a cross-encoder, say) for the best hits."""

    def to_yaml(self) -> str:
        """Return the ``retrieval`` part of a recipe with these settings.

        Weights are always included, since defaults may depend on the embedder; other settings only
        if they differ from the default.
        """
        import yaml

        names = (
            *("dense_weight", "document_weight", "title_weight", "heading_weight"),
            *("summary_weight", "page_weight"),
        )
        weights = {name: getattr(self, name) for name in names}
        values = self.model_dump(mode="json", exclude_defaults=True)
        return str(yaml.safe_dump({"retrieval": weights | values}, sort_keys=False))


class LearningSpec(Spec):
    """Learning from ratings in search."""

    questions: StrictBool = True
    """Use questions for which people rated a chunk 4 or 5 to answer similar ones. Questions stay in
    the workspace."""
    publish: StrictBool = False
    """Publish these questions as words of their chunks in the search index of an exported site,
    where everybody can read them."""


class GraphSpec(Spec):
    """Relations read from documents.

    `graph_weight` of `retrieval` is their weight in search; `graph` of `site` adds a page. An
    annotating language model (`annotation` of type `llm`) states relations too.
    """

    build: StrictBool = True
    """Whether relations are read from documents. Manual relations always exist."""
    co_occurrence: float = Field(default=0.2, ge=0, le=1)
    """Minimum weight of a relation between names that only occur together (NPMI, reduced for few
    sightings). 1 leaves out all."""
    co_occurrences: int = Field(default=10, ge=0, le=1000)
    """Maximum number of such relations of one entity, the strongest."""
    least_sections: int = Field(default=3, ge=1)
    """Minimum number of sections that two such names share."""


class StorageSpec(Spec):
    """Storage of derived data."""

    text_in_chroma: StrictBool = False
    """Store the text in the Chroma collection, too, for other tools. Adding is then about three
    times slower; a Chroma server stores at most 16,384 bytes of a text."""


class Question(Spec):
    """A golden question: the question, and the pages that answer it."""

    question: str = Field(min_length=1)
    """The question."""
    relevant: tuple[str, ...] = Field(min_length=1)
    """URI suffixes of pages that answer it; the first is the best. With a slash in front it is the
    whole path, from the top of the site: `/guide/` is not `/api/guide/`."""


class SiteSpec(Spec):
    """Content of the exported site."""

    title: str = ""
    """Name of the site; by default the knowledge base's name."""
    url: HttpUrl | None = None
    """Address it will be published at (canonical links, sitemap)."""
    directory: str = ""
    """Folder of the exported MkDocs project; by default `export/NAME` in the workspace."""
    model: StrictBool = True
    """Whether browsers get MiniLM, if it embedded summaries or chunks: 23 MB of files. A browser
    fetches 11 MB after its first search, and then ranks as Python does."""
    graph: StrictBool = True
    """Whether the knowledge graph gets a page."""
    files: StrictBool = False
    """Whether the workspace's files are a section."""
    entries: StrictBool = False
    """Whether the workspace's entries are a section, with stars and files."""
    questions: tuple[Question, ...] = ()
    """Questions on the home page with their answers; by default the golden ones."""


class KnowledgeBaseSpec(VersionedSpec):
    """Settings of a knowledge base, independent of its sources."""

    language: str = "english"
    """Language of its text, for stemming and stop words (a Snowball name)."""
    chunking: ChunkingSpec = ChunkingSpec.untold()
    """Splitting of documents."""
    embedding: AnyEmbedding = StaticEmbedding.untold()
    """Embedding of chunks."""
    summary_embedding: AnyEmbedding | None = None
    """Embedding of document summaries; by default MiniLM. For other languages than English, by
    default `multilingual` if its extra is installed, else `static`."""
    retrieval: RetrievalSpec = RetrievalSpec.untold()
    """Ranking of search."""
    expand: ExpandSpec | None = None
    """A language model that describes documents; none by default."""
    annotation: AnyAnnotation = RulesAnnotation.untold()
    """Annotator, and additional names: `rules`, `none`, or a mapping."""
    graph: GraphSpec = GraphSpec.untold()
    """Relations read from documents."""
    learning: LearningSpec = LearningSpec.untold()
    """Learning from ratings."""
    storage: StorageSpec = StorageSpec.untold()
    """Storage of derived data."""
    site: SiteSpec = SiteSpec.untold()
    """Content of the exported site."""

    def embedded_by(self, embedding: AnyEmbedding) -> KnowledgeBaseSpec:
        """Return the settings with another embedder, and its default weight unless one is given."""
        values = {name: getattr(self, name) for name in KnowledgeBaseSpec.model_fields}
        if "text" not in embedding.model_fields_set:
            embedding = embedding.model_copy(update={"text": self.embedding.text})
        if self.retrieval.dense_weight in (_MODEL_DENSE_WEIGHT, RetrievalSpec().dense_weight):
            settings = self.retrieval.model_dump(exclude={"dense_weight"})
            values["retrieval"] = RetrievalSpec(**settings)
        return KnowledgeBaseSpec(**{**values, "embedding": embedding})

    @field_validator("summary_embedding")
    @classmethod
    def _summaries_as_they_are(cls, value: AnyEmbedding | None) -> AnyEmbedding | None:
        if value is not None and value.text != "chunk":
            raise ValueError("text: says what is embedded of chunks; leave it out of summaries'")
        return value

    @field_validator("annotation")
    @classmethod
    def _annotate_what_is_embedded(
        cls, value: AnyAnnotation, info: ValidationInfo
    ) -> AnyAnnotation:
        embedding = info.data.get("embedding")
        if isinstance(value, NoAnnotation) and embedding is not None and embedding.text != "chunk":
            raise ValueError(
                f"none: leaves nothing that embedding.text {embedding.text} could embed; choose "
                "rules, or text: chunk"
            )
        return value

    @model_validator(mode="after")
    def _weigh_vectors(self) -> Self:
        explicit = "dense_weight" in self.retrieval.model_fields_set
        if not explicit and not isinstance(self.embedding, StaticEmbedding):
            weighed = self.retrieval.model_copy(update={"dense_weight": _MODEL_DENSE_WEIGHT})
            object.__setattr__(self, "retrieval", weighed)  # the one moment when it may change
        return self


def _slug_of(name: str) -> str:
    plain_letters = unicodedata.normalize("NFKD", str(name)).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain_letters.lower())[:63].strip("-") or "my-notes"


def check_name(name: str) -> str:
    """Return a knowledge base name if it is a slug.

    Raises:
        ValueError: It is not one.
    """
    if not SLUG.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot name a knowledge base; use up to 63 lower-case letters, digits and "
            f"hyphens, such as {_slug_of(name)!r}"
        )
    if RESERVED.fullmatch(name):
        raise ValueError(f"{name!r} is reserved by Windows; choose another name")
    return name


KnowledgeBaseName = Annotated[str, AfterValidator(check_name)]


class Recipe(KnowledgeBaseSpec):
    """A knowledge base, from its sources to its site."""

    name: KnowledgeBaseName
    """Name of the knowledge base: a slug."""
    description: str = ""
    """Description in a sentence."""
    sources: tuple[AnySource, ...] = Field(min_length=1)
    """Sources of its documents."""
    license: LicenseName = ""
    """License of sources that state none."""
    attribution: str = Field(default="", max_length=TEXT_LENGTH)
    """Attribution of sources that state none."""
    questions: tuple[Question, ...] | str = ()
    """Golden questions, or their TSV file (question, tab, pages with commas)."""

    _path: Path = PrivateAttr(default=Path())

    @model_validator(mode="after")
    def _license_sources(self) -> Self:
        own = {"license": self.license, "attribution": self.attribution}
        sources = tuple(
            source.model_copy(update={k: v for k, v in own.items() if v and not getattr(source, k)})
            for source in self.sources
        )
        object.__setattr__(self, "sources", sources)  # the one moment when they may change
        return self

    @property
    def path(self) -> Path:
        """The file it was read from; relative paths in it start at that file's folder."""
        return self._path

    @property
    def spec(self) -> KnowledgeBaseSpec:
        """The part that shapes the knowledge base itself, its paths made absolute."""
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
