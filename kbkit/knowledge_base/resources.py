"""Create knowledge bases and share resources between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kbkit import plugins
from kbkit.config import Settings
from kbkit.embedding.base import Embedder
from kbkit.embedding.embedders import Embedders
from kbkit.engine import Engine
from kbkit.errors import ConflictError
from kbkit.recipes import KnowledgeBaseSpec, OnnxEmbedding, PluginAnnotation, StaticEmbedding
from kbkit.retrieval.postprocess import check_installed
from kbkit.stores.catalog import knowledge_bases
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.stores import Stores
from kbkit.text import analyzer
from kbkit.validation import check_text


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


def check_spec(spec: KnowledgeBaseSpec) -> None:
    """Check that all named embedders and plugins exist, without importing them."""
    analyzer(spec.language)
    for postprocessor in spec.retrieval.postprocessors:
        check_installed(postprocessor)
    if isinstance(spec.annotation, PluginAnnotation):
        plugins.find(plugins.ANNOTATORS, spec.annotation.name)


@dataclass(frozen=True, slots=True)
class NewKnowledgeBase:
    """A knowledge base that is to be made.

    Attributes:
        embedder: First embedder of its chunks.
        id: Its id; ``""`` for a new one.
    """

    name: str
    description: str
    spec: KnowledgeBaseSpec
    embedder: Embedder
    id: str

    @classmethod
    def of(
        cls,
        resources: Resources,
        name: str,
        description: str,
        spec: KnowledgeBaseSpec,
        known_as: str,
    ) -> NewKnowledgeBase:
        check_spec(spec)
        with resources.stores.database.read() as transaction:
            if name in knowledge_bases.names(transaction):
                raise ConflictError(
                    f"a knowledge base named {name!r} exists; choose another name, or delete it"
                )
        embedder = resources.embedders.open(spec.embedding)
        if isinstance(spec.embedding, OnnxEmbedding) and resources.settings.improve != "wait":
            # until the model has embedded all
            embedder = resources.embedders.open(StaticEmbedding())
        return cls(name, check_text("description", description), spec, embedder, known_as)

    def enter(self, transaction: Transaction) -> KnowledgeBaseRow:
        return knowledge_bases.create(
            transaction,
            self.name,
            description=self.description,
            config=self.spec.model_dump(mode="json"),
            embedder=self.embedder.fingerprint,
            dimensions=self.embedder.dimensions,
            known_as=self.id,
        )
