"""A knowledge base that is to be made."""

from __future__ import annotations

from dataclasses import dataclass

from kbkit.embedding.base import Embedder
from kbkit.errors import ConflictError
from kbkit.knowledge_base.resources import Resources
from kbkit.knowledge_base.spec_checks import check_spec
from kbkit.recipes import KnowledgeBaseSpec, OnnxEmbedding, StaticEmbedding
from kbkit.stores.catalog import knowledge_bases
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.validation import check_text


@dataclass(frozen=True, slots=True)
class NewKnowledgeBase:
    """A knowledge base that is to be made.

    Attributes:
        name: Its name.
        description: What it is about.
        spec: How it works.
        embedder: What makes the vectors of its chunks at first.
        id: What it is to be known as; ``""`` for any.
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
        """One of that name and spec.

        Raises:
            ConflictError: The name is taken.
            ConfigError: The language is unknown, or there is no such annotator.
            PostprocessorError: The package of a postprocessor is not installed.
            EmbedderError: The embedder cannot be loaded.
        """
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
        """Enter it into the catalog.

        Raises:
            ConflictError: The name is taken.
        """
        return knowledge_bases.create(
            transaction,
            self.name,
            description=self.description,
            config=self.spec.model_dump(mode="json"),
            embedder=self.embedder.fingerprint,
            dimensions=self.embedder.dimensions,
            known_as=self.id,
        )
