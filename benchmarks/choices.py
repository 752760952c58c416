"""The comparisons behind kbkit's defaults: weights, retrievers, chunk size and others.

``held-out`` chooses weights without the set they are measured on; ``retrievers`` measures search
without each retriever (`_held_out.py`). Both use all sets of `quality.py` and share its knowledge
bases. Every other choice exchanges one part of the product: nDCG@10 of pages, and the share of
wanted passages in the first 4,000 characters of hits (`_materials.py`), with static vectors or
``--minilm``.

Run from the project's root: ``python benchmarks/choices.py [CHOICE ...] [--sets=SET,SET]
[--minilm]``. Takes about an hour on an idle core, ``held-out`` and ``retrievers`` a quarter of it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import _held_out
import numpy as np
from _corpora import MAKERS, bench_folder, report, table
from _materials import Figures, Material, Settings, materials

import kbkit
from kbkit.ingest import cutting, embedding
from kbkit.ingest.cutting import embedded_text
from kbkit.recipes import (
    AnyEmbedding,
    ChunkingSpec,
    KnowledgeBaseSpec,
    OnnxEmbedding,
    StaticEmbedding,
)
from kbkit.retrieval import ranking
from kbkit.retrieval.fusion import Features, Fused, Scores, Weights, fuse

SIZES = (600, 1000, 1500, 2000, 3000)
DENSE = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 1.0)
OTHERS: dict[str, Settings] = {
    "the defaults": {},
    "nothing of the rest of the document": {"document_weight": 0.0},
    "all of it": {"document_weight": 1.0},
    "nothing of the title": {"title_weight": 0.0},
    "0.4 of it": {"title_weight": 0.4},
    "nothing of the headings": {"heading_weight": 0.0},
    "0.2 of them": {"heading_weight": 0.2},
    "the chunk alone": {"document_weight": 0.0, "title_weight": 0.0, "heading_weight": 0.0},
}

Row = tuple[str, Figures]


@contextmanager
def exchanged(module: Any, name: str, value: object) -> Iterator[None]:
    """Exchange a function of kbkit."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


@dataclass(frozen=True, slots=True)
class Bench:
    """A set, and knowledge bases of its documents that differ in one choice."""

    material: Material
    folder: Path
    embedding: AnyEmbedding

    def built(self, name: str, size: int = ChunkingSpec().size) -> kbkit.KnowledgeBase:
        """Build a knowledge base of the documents."""
        config = KnowledgeBaseSpec(chunking=ChunkingSpec(size=size), embedding=self.embedding)
        kb = kbkit.open(self.folder).create(f"{self.material.name}-{name}", spec=config)
        began = time.process_time()
        kb.ingest(kbkit.JsonlSource(path=str(self.material.file)))
        seconds = time.process_time() - began
        chunks = len(list(kb.chunks))
        print(f"{kb.name}: {chunks:,} chunks, {seconds:.1f} CPU s", file=sys.stderr)
        return kb


def sizes(bench: Bench) -> Iterator[Row]:
    """Compare lengths of chunks."""
    for size in SIZES:
        yield f"{size:,}", bench.material.figures(bench.built(f"size-{size}", size))


def without_path(title: str, heading_path: Sequence[str], text: str) -> str:
    return embedded_text(title, (), text)


def without_title(title: str, heading_path: Sequence[str], text: str) -> str:
    return embedded_text("", heading_path, text)


def alone(title: str, heading_path: Sequence[str], text: str) -> str:
    return embedded_text("", (), text)


def read(bench: Bench) -> Iterator[Row]:
    """Compare what is embedded and indexed before a chunk's text."""
    ways = {
        "title and heading path": embedded_text,
        "title": without_path,
        "heading path": without_title,
        "neither": alone,
    }
    for number, (label, way) in enumerate(ways.items()):
        embedded, indexed = (exchanged(m, "embedded_text", way) for m in (embedding, cutting))
        with embedded, indexed:
            kb = bench.built(f"read-{number}")
        for mode in ("hybrid", "dense", "lexical"):
            yield f"{label}, {mode}", bench.material.figures(kb, mode)


def encoders(bench: Bench) -> Iterator[Row]:
    """Compare the static model with the encoder fitted to the chunks' vectors."""
    kb = bench.built("encoder")
    began = time.process_time()
    fitted = kb.chunks.fit_query_encoder()
    seconds = time.process_time() - began
    print(f"{kb.name}: {fitted['chunks']} chunks, {seconds:.1f} CPU s", file=sys.stderr)
    for encoder in ("model", "fitted"):
        yield (
            f"{encoder}, vectors alone",
            bench.material.figures(kb, "dense", {"query_encoder": encoder}),
        )
        for dense in (0.2, 0.3, 0.4):
            settings: Settings = {"query_encoder": encoder, "dense_weight": dense}
            yield f"{encoder}, {dense:g} dense", bench.material.figures(kb, settings=settings)


def _least(scores: Scores) -> Scores:
    return scores - scores.min(initial=0.0) if len(scores) else scores


def _ranks(scores: Scores) -> Scores:
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return np.where(scores > 0, 1 / (61 + ranks), 0.0)


def normalisations(bench: Bench) -> Iterator[Row]:
    """Compare ways to make the scores of both retrievers comparable."""
    kb = bench.built("normalisation")

    def fused_by(cosine: Callable[[Scores], Scores], bm25: Callable[[Scores], Scores]) -> Any:
        def other(features: Features, weights: Weights) -> Fused:
            changed = replace(features, cosine=cosine(features.cosine), bm25=bm25(features.bm25))
            return fuse(changed, weights)

        return other

    def same(scores: Scores) -> Scores:
        return scores

    # `fuse` divides by the best score, so the ways differ in what 0 is
    ways = {
        "from 0 to the best score": (same, same, None),
        "from the least possible (cosine -1) to the best": (lambda x: x + 1, same, None),
        "from the worst candidate to the best": (_least, _least, None),
        "by ranks, 1 / (60 + rank)": (_ranks, _ranks, None),
        "by ranks, both retrievers alike": (_ranks, _ranks, 0.5),
    }
    for label, (cosine, bm25, weight) in ways.items():
        settings: Settings = {} if weight is None else {"dense_weight": weight}
        with exchanged(ranking, "fuse", fused_by(cosine, bm25)):
            yield label, bench.material.figures(kb, settings=settings)


def weights(bench: Bench) -> Iterator[Row]:
    """Compare the weights of a recipe's `retrieval` part."""
    kb = bench.built("weights")
    for dense in DENSE:
        yield f"{dense:g} dense", bench.material.figures(kb, settings={"dense_weight": dense})
    for label, settings in OTHERS.items():
        yield label, bench.material.figures(kb, settings=settings)


CHOICES: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "size": sizes,
    "read": read,
    "normalisation": normalisations,
    "weights": weights,
    "encoder": encoders,
}


def lines(found: dict[str, Figures]) -> list[str]:
    heads = list(dict.fromkeys(name for row in found.values() for name in row))
    rows = []
    for label, row in found.items():
        figures = [f"{row[name]:.4f}" if name in row else "" for name in heads]
        mean = np.mean(list(row.values()))
        rows.append([label, *figures, f"{mean:.4f}"])
    return table(["", *heads, "mean"], rows)


def main() -> None:
    known = [*_held_out.TABLES, *CHOICES]
    asked = [name for name in sys.argv[1:] if name in known] or known
    sets = [one.removeprefix("--sets=") for one in sys.argv[1:] if one.startswith("--sets=")]
    for name in [one for one in asked if one in _held_out.TABLES]:
        for lines_of in _held_out.TABLES[name](sets[0].split(",") if sets else list(MAKERS)):
            report(f"choices-{name}", lines_of)
    chosen = [name for name in asked if name in CHOICES]
    if not chosen:
        return
    minilm = "--minilm" in sys.argv
    embedding = OnnxEmbedding(preset="minilm") if minilm else StaticEmbedding()
    found: dict[str, dict[str, Figures]] = {name: {} for name in chosen}
    with bench_folder() as folder:
        for material in materials(folder, sets[0].split(",") if sets else ()):
            for name in chosen:
                for label, figures in CHOICES[name](Bench(material, folder, embedding)):
                    found[name].setdefault(label, {}).update(figures)
                    print(material.name, label, figures, file=sys.stderr, flush=True)
    for name, rows in found.items():
        if rows:
            report(
                f"choices-{name}{'-minilm' * minilm}",
                [f"# {CHOICES[name].__doc__}", "", *lines(rows)],
            )


if __name__ == "__main__":
    main()
