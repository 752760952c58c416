"""Quality of search on each set, beside kbkit's retrievers and its peers.

nDCG@10, Hit@1 and MRR@10 with 95 % intervals, and paired randomisation tests against kbkit without
the retrievers of documents and, with ``--compare``, against another checkout's file. Sets: pages
of manuals, an API reference, a policy, a FAQ, an operations manual, objects of packages, abstracts,
passages (`_corpora.py`; ``benchmarks/questions/README.md``). Peers get the same extracted text.

    python benchmarks/quality.py [--sets=SET,SET] [--peers[=PEER,PEER]] [--compare=FILE]
        [--out=FILE] [--fetch] [--rebuild] [--minilm] [--tables]

Figures of each question are added to FILE (``build/bench/quality.json``) set by set; tables go to
a file of the same name that ends in ``.md``. ``--tables`` only writes the tables. Knowledge bases
stay in ``build/benchmarks`` until the code that makes them changes, or ``--rebuild`` is given.
``--fetch`` downloads documentation packages that are not installed. ``--minilm`` also embeds chunks
by MiniLM, which takes hours the first time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import _peers
from _corpora import (
    MAKERS,
    ROOT,
    TABLES,
    Corpus,
    Place,
    corpora,
    fetch_manuals,
    kept_folder,
    report,
)
from _figures import Figures, SetFigures, tables

from kbkit.models import Hits
from kbkit.recipes import AnyEmbedding, OnnxEmbedding, RetrievalSpec, StaticEmbedding

HITS = 100
"""Number of passages read to find ten different pages."""
CHUNKS_ALONE = {
    name: 0.0
    for name in RetrievalSpec.model_fields
    if name.endswith("_weight") and name not in ("dense_weight", "document_weight", "rating_weight")
} | {"title_weight": 0.2, "heading_weight": 0.1}
"""The ranking of kbkit before documents had summaries."""


def places(hits: Hits) -> list[Place]:
    return [Place(hit.uri, hit.chunk.start, hit.chunk.end) for hit in hits]


def kbkit_search(
    corpus: Corpus, mode: str = "hybrid", settings: Mapping[str, float | str] | None = None
) -> _peers.Search:
    spec = RetrievalSpec.model_validate(
        {**corpus.kb.spec.retrieval.model_dump(), **(settings or {})}
    )
    return lambda query, limit: places(
        corpus.kb.search(query, limit=limit, mode=mode, retrieval=spec)
    )


def ours(corpus: Corpus, minilm: bool) -> Iterator[tuple[str, Callable[[], _peers.Search]]]:
    """Make each way to search with kbkit when its turn comes."""
    yield "kbkit", lambda: kbkit_search(corpus)
    yield "chunks alone", lambda: kbkit_search(corpus, settings=CHUNKS_ALONE)
    yield "words", lambda: kbkit_search(corpus, "lexical")
    yield "vectors", lambda: kbkit_search(corpus, "dense")
    if minilm:

        def fitted() -> _peers.Search:
            corpus.kb.chunks.fit_query_encoder()
            return kbkit_search(corpus, settings={"query_encoder": "fitted"})

        yield "fitted query encoder", fitted


def measured(corpus: Corpus, made: Callable[[], _peers.Search]) -> dict[str, list[float]]:
    """Return a figure for each question, by measure."""
    search = made()
    rows = [one.figures(search(one.text, HITS)) for one in corpus.questions]
    return {name: [round(row[name], 6) for row in rows] for name in rows[0]}


def version() -> str:
    """Return the version of the checkout."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def measure_set(corpus: Corpus, minilm: bool, chosen: list[str]) -> Iterator[SetFigures]:
    """Measure a set; yield its figures after each way to search."""
    info = corpus.kb.info()
    found = SetFigures(
        version=version(),
        date=datetime.now(UTC).date().isoformat(),
        documents=info.documents,
        chunks=info.chunks,
        questions=[one.text for one in corpus.questions],
        systems={},
    )
    ways = list(ours(corpus, minilm))
    if chosen:
        _peers.install()
        ways += _peers.peers(corpus.kb, kept_folder(f"{corpus.name}-peers"), chosen)
    for name, made in ways:
        began = time.perf_counter()
        found.systems[name] = measured(corpus, made)
        mean = sum(found.systems[name]["ndcg"]) / len(found.questions)
        seconds = time.perf_counter() - began
        print(f"{corpus.name}, {name}: nDCG@10 {mean:.3f} ({seconds:.0f} s)", flush=True)
        yield found


def arguments() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", type=names, default=list(MAKERS))
    parser.add_argument("--peers", type=names, nargs="?", const=list(_peers.PEERS), default=[])
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--out", type=Path)
    for flag in ("--fetch", "--rebuild", "--minilm", "--tables"):
        parser.add_argument(flag, action="store_true")
    given = parser.parse_args()
    unknown = {*given.sets} - {*MAKERS} | {*given.peers} - {*_peers.PEERS}
    if unknown:
        parser.error(
            f"{', '.join(sorted(unknown))}: sets are {', '.join(MAKERS)}; "
            f"peers are {', '.join(_peers.PEERS)}"
        )
    if given.compare and not given.compare.is_file():
        parser.error(f"{given.compare}: no such file")
    return given


def main() -> int:
    given = arguments()
    ending = "-minilm" if given.minilm else ""
    out = given.out or TABLES / f"quality{ending}.json"
    embedding: AnyEmbedding = OnnxEmbedding(preset="minilm") if given.minilm else StaticEmbedding()
    if given.fetch:
        fetch_manuals()
    figures = Figures.read(out)
    ran = 0
    for name in [] if given.tables else given.sets:
        folder = kept_folder(f"{name}{ending}", given.rebuild)
        for corpus in corpora(folder, embedding, [name]):
            for found in measure_set(corpus, given.minilm, given.peers):
                figures.sets[name] = found
                figures.write(out)
            ran += 1
    if figures.sets:
        before = Figures.read(given.compare) if given.compare else None
        report(out.stem, tables(figures, before), out.parent)
    if not ran and not given.tables:
        print("quality: nothing ran, since no set is there")
    return int(not ran and not given.tables)


if __name__ == "__main__":
    sys.exit(main())
