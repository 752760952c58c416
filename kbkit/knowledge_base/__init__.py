"""KnowledgeBase: one named collection of documents, and all that can be done with it.

Its parts build on one another: `opened` (what it is and holds), `searched` and `ingested` on that,
`edited` on the latter, `judged` on all of these, `published` on all.
"""

from kbkit.knowledge_base.edited import Added
from kbkit.knowledge_base.opened import Resources
from kbkit.knowledge_base.published import KnowledgeBase

__all__ = ["Added", "KnowledgeBase", "Resources"]
