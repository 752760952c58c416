"""One named collection of documents with all its operations.

::

    knowledge_base  what people do daily; the collections and namespaces hang on it
    documents, chunks, ratings, sources
                    collections: iterate, count, look up, ``to_frame()``
    feedback, plots namespaces
    ingestion       how documents come in
    handle          what these share, and what kbkit's own interfaces ask for
"""

from kbkit.knowledge_base.handle import Handle, Resources
from kbkit.knowledge_base.knowledge_base import KnowledgeBase, handle_of, ingestion_of

__all__ = ["Handle", "KnowledgeBase", "Resources", "handle_of", "ingestion_of"]
