"""One named collection of documents with all its operations.

::

    knowledge_base  everyday operations; collections and namespaces are its attributes
    documents, chunks, ratings, sources
                    collections: iterate, count, look up, ``to_frame()``
    feedback, plots namespaces
    ingestion       reads sources
    handle          shared state; kbkit's interfaces use it
"""

from kbkit.knowledge_base.handle import Handle, Resources
from kbkit.knowledge_base.knowledge_base import KnowledgeBase, handle_of

__all__ = ["Handle", "KnowledgeBase", "Resources", "handle_of"]
