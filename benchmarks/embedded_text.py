"""What finds more: chunks embedded as they stand, what annotations say of them, or both.

nDCG@10 and Hit@1 by the product itself, each set three times; see `_corpora.py` for the sets.

    python benchmarks/embedded_text.py [SET ...]
"""

from __future__ import annotations

import sys

from _corpora import Corpus, corpora, kept_folder, report, table
from quality import HITS, kbkit_search

from kbkit.recipes import EmbeddedText, KnowledgeBaseSpec, StaticEmbedding

SETS = ("mkdocs", "django", "apache")
TEXTS: tuple[EmbeddedText, ...] = ("chunk", "normalized", "both")


def measured(corpus: Corpus, mode: str) -> list[str]:
    """nDCG@10 and Hit@1 of a mode of search."""
    search = kbkit_search(corpus, mode)
    found = [each.figures(search(each.text, HITS)) for each in corpus.questions]
    return [f"{sum(one[name] for one in found) / len(found):.3f}" for name in ("ndcg", "hit")]


def main() -> None:
    """Measure the sets that are named, and print a table."""
    rows = []
    for corpus in corpora(kept_folder("embedded-text"), names=sys.argv[1:] or SETS):
        for text in TEXTS:
            embedding = StaticEmbedding(text=text)
            corpus.kb.configure(KnowledgeBaseSpec(embedding=embedding))
            figures = [*measured(corpus, "hybrid"), *measured(corpus, "dense")]
            rows.append([corpus.name, text, *figures])
        corpus.kb.configure(KnowledgeBaseSpec())
    names = ["set", "embedded", "nDCG@10", "Hit@1", "vectors alone: nDCG@10", "Hit@1"]
    report("embedded-text", table(names, rows))


if __name__ == "__main__":
    main()
