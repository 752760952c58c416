"""Compare embedding a chunk's text, its annotations, or both, by nDCG@10 and Hit@1.

    python benchmarks/embedded_text.py [SET ...]

`_corpora.py` has the sets.
"""

from __future__ import annotations

import sys

from _corpora import Corpus, corpora, kept_folder, report, table
from quality import HITS, kbkit_search

from kbkit.recipes import EmbeddedText, KnowledgeBaseSpec, StaticEmbedding

SETS = ("mkdocs", "django", "apache")
TEXTS: tuple[EmbeddedText, ...] = ("chunk", "normalized", "both")


def measured(corpus: Corpus, mode: str) -> list[str]:
    search = kbkit_search(corpus, mode)
    found = [each.figures(search(each.text, HITS)) for each in corpus.questions]
    return [f"{sum(one[name] for one in found) / len(found):.3f}" for name in ("ndcg", "hit")]


def main() -> None:
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
