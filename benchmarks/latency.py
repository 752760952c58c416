"""Time of a search, from query text to hits, beside peers in the same run.

20,000 and 100,000 chunks: the Python documentation, for the larger size repeated with a fifth of
the words spelt backwards. Medians over the questions of ``../shared/eval``; no query is asked
twice. Then the first search of fresh processes.

Run from the project's root: ``python benchmarks/latency.py [CHUNKS ...]``.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import _peers
from _corpora import EVAL, PYTHON, Place, bench_folder, report, table

import kbkit
from kbkit.recipes import StaticEmbedding

SIZES = (20_000, 100_000)
FRESH = """
import sys, time
import kbkit
workspace = kbkit.open(sys.argv[1])
start = time.perf_counter()
hits = workspace[sys.argv[2]].search("How do I run a coroutine with a timeout?")
print(time.perf_counter() - start)
assert len(hits)
"""


def questions() -> list[str]:
    """Return different questions, from all evaluation sets in turn."""
    if not (EVAL / "scifact").is_dir() or not PYTHON.is_dir():
        print(f"{EVAL}, {PYTHON}: one of them is not there; this benchmark needs both")
        sys.exit()
    asked = [
        line.split("\t")[0]
        for line in (EVAL / "python-questions.tsv").read_text(encoding="utf-8").splitlines()
    ]
    for name in ("scifact", "cranfield"):
        lines = (EVAL / name / "queries.jsonl").read_text(encoding="utf-8").splitlines()
        asked += [json.loads(line)["text"] for line in lines[:75]]
    return asked


def build(workspace: kbkit.Workspace, folder: Path, size: int) -> kbkit.KnowledgeBase:
    """Build a knowledge base of about ``size`` chunks, from some documents or varied copies."""
    if "source" not in workspace:
        source = kbkit.MirrorSource(path=str(PYTHON), base_url="http://python.invalid/")
        workspace.create("source").ingest(source)
    whole = workspace["source"]
    counts: dict[str, int] = {}
    for chunk in whole.chunks:
        counts[chunk.document_id] = counts.get(chunk.document_id, 0) + 1
    documents = [d for d in whole.documents if d.id in counts]
    random.Random(7).shuffle(documents)
    file = folder / f"{size}.jsonl"
    total = version = 0
    with file.open("w", encoding="utf-8") as out:
        while total < size:
            for document in documents:
                if total >= size:
                    break
                total += counts[document.id]
                text = _varied(document.content, version)
                values = {"uri": f"v{version}:{document.uri}", "title": document.title}
                out.write(json.dumps({**values, "text": text}) + "\n")
            version += 1
    kb = workspace.create(f"chunks-{size}")
    kb.ingest(kbkit.JsonlSource(path=str(file)))
    return kb


def _varied(text: str, version: int) -> str:
    if version == 0:
        return text
    chance = random.Random(version)
    return re.sub("[a-z]{4,}", lambda m: m[0][::-1] if chance.random() < 0.2 else m[0], text)


def measured(search: _peers.Search, asked: list[str]) -> tuple[float, float]:
    """Return median and 95th percentile in milliseconds."""
    for query in asked[:25]:  # warm up, with queries that are not measured
        search(query, 10)
    times = []
    for query in asked[25:]:
        start = time.perf_counter()
        search(query, 10)
        times.append((time.perf_counter() - start) * 1000)
    times.sort()
    return median(times), times[int(len(times) * 0.95)]


def ours(kb: kbkit.KnowledgeBase, mode: str) -> _peers.Search:
    def search(query: str, limit: int) -> list[Place]:
        hits = kb.search(query, limit=limit, mode=mode)
        return [Place(hit.uri, hit.chunk.start, hit.chunk.end) for hit in hits if hit.snippet]

    return search


def main() -> None:
    _peers.install()
    sizes = [int(size) for size in sys.argv[1:]] or list(SIZES)
    asked = questions()
    random.Random(3).shuffle(asked)
    lines: list[str] = []
    with bench_folder() as folder, kbkit.open(folder / "kb") as workspace:
        for size in sizes:
            kb = build(workspace, folder, size)
            chunks = _peers.Chunks(kb, StaticEmbedding())
            home = folder / f"peers-{size}"
            kb.search("warm")
            kb.search("warmer")  # has Chroma opened beside it
            time.sleep(5)
            systems = {
                "kbkit, hybrid": ours(kb, "hybrid"),
                "kbkit, dense": ours(kb, "dense"),
                "kbkit, lexical": ours(kb, "lexical"),
                "numpy scan": _peers.numpy_scan(chunks),
                "Chroma": _peers.chroma_alone(chunks, home),
                "bm25s": _peers.bm25s_alone(chunks),
                "rank-bm25": _peers.rank_bm25_alone(chunks),
                "llama-index + Chroma": _peers.llama_index_chroma(chunks, home),
            }
            figures = {name: measured(search, asked) for name, search in systems.items()}
            base = figures["kbkit, hybrid"][0]
            rows = [
                [name, f"{p50:.2f}", f"{p95:.2f}", f"{p50 / base:.1f}"]
                for name, (p50, p95) in figures.items()
            ]
            lines += [f"{len(chunks.texts):,} chunks, milliseconds a query:", ""]
            lines += table(["", "p50", "p95", "as long as kbkit's hybrid"], rows)
            fresh = [_fresh(folder / "kb", kb.name) for _ in range(7)]
            lines += ["", f"First search of a fresh process: {median(fresh) * 1000:.0f} ms.", ""]
    report("latency", lines)


def _fresh(workspace: Path, name: str) -> float:
    command = [sys.executable, "-c", FRESH, str(workspace), name]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()
