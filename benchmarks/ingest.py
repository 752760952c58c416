"""Time until 9 MB of Markdown can be searched, beside llama-index with Chroma.

Each system reads the same JSON lines in its own process, splits, embeds (with the same static
embedder) and stores them. The clock starts after Python's start, the imports and the loading of the
embedder; a search at the end shows that all is there. Peak memory is that of the process and its
children, sampled 20 times a second. llama-index is used as its documentation shows
(``VectorStoreIndex`` over ``ChromaVectorStore``, ``SentenceSplitter`` with 1,024 tokens), and again
with chunks about as long as kbkit's.

Then making, listing and describing a knowledge base, medians.

Run from the project's root: ``python benchmarks/ingest.py [MB]``. The text is Debian's
``python3.11-doc``, read by kbkit. The tables are also written to ``build/bench/ingest.md``.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from _corpora import PYTHON, bench_folder, report, table
from _peers import install, wrapped

import kbkit
from kbkit.embedding import open_embedder
from kbkit.recipes import StaticEmbedding

QUESTION = "how to open a file"
ROUNDS = 20
TOKENS_AS_KBKIT = 256


def write_lines(target: Path, most: float) -> int:
    """Write documents of the Python documentation as JSON lines; return their characters."""
    written = 0
    with kbkit.open(target.parent / "read") as workspace:
        kb = workspace.create("python")
        kb.ingest(kbkit.MirrorSource(path=str(PYTHON), base_url="http://python.invalid/"))
        with target.open("w", encoding="utf-8") as lines:
            # in an order of its own, so that parts of the documentation are mixed
            for document in sorted(kb.documents, key=lambda document: document.id):
                if written + len(document.content) > most:
                    continue
                values = {"uri": document.uri, "title": document.title, "text": document.content}
                lines.write(json.dumps(values) + "\n")
                written += len(document.content)
    return written


def with_kbkit(lines: Path, folder: Path) -> Callable[[], int]:
    import llama_index.core.node_parser  # noqa: F401 - comes before the clock, as for the peer

    kb = kbkit.open(folder / "kbkit").create("python")
    kb.search(QUESTION)  # loads the embedder

    def work() -> int:
        kb.ingest(kbkit.JsonlSource(path=str(lines)))
        assert len(kb.search(QUESTION)) == 10
        return kb.info().chunks

    return work


def with_llama_index(lines: Path, folder: Path, tokens: int = 0) -> Callable[[], int]:
    install()
    import chromadb
    from llama_index.core import Document, StorageContext, VectorStoreIndex
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.vector_stores.chroma import ChromaVectorStore

    embedder = open_embedder(StaticEmbedding())
    embedder.embed_query(QUESTION)

    model = wrapped(
        lambda query: embedder.embed_query(query).tolist(),
        lambda texts: embedder.embed_passages(texts).tolist(),
    )

    def work() -> int:
        with lines.open(encoding="utf-8") as stream:
            documents = [
                Document(text=one["text"], metadata={"title": one["title"]}, id_=one["uri"])
                for one in map(json.loads, stream)
            ]
        client = chromadb.PersistentClient(str(folder / f"llama-index-{tokens}"))
        collection = client.create_collection("python")
        storage = StorageContext.from_defaults(
            vector_store=ChromaVectorStore(chroma_collection=collection)
        )
        splitters: dict[str, Any] = (
            {"transformations": [SentenceSplitter(chunk_size=tokens, chunk_overlap=0)]}
            if tokens
            else {}
        )
        index = VectorStoreIndex.from_documents(
            documents, storage_context=storage, embed_model=model, **splitters
        )
        assert len(index.as_retriever(similarity_top_k=10).retrieve(QUESTION)) == 10
        return int(collection.count())

    return work


SYSTEMS: dict[str, Callable[[Path, Path], Callable[[], int]]] = {
    "kbkit": with_kbkit,
    "llama-index + Chroma": with_llama_index,
    f"llama-index + Chroma, {TOKENS_AS_KBKIT} tokens": lambda lines, folder: with_llama_index(
        lines, folder, TOKENS_AS_KBKIT
    ),
}


def run_here(name: str, lines: Path, folder: Path) -> None:
    """Ingest with one system and print its figures as JSON."""
    work = SYSTEMS[name](lines, folder)
    began, processor = time.perf_counter(), time.process_time()
    chunks = work()
    seconds, processor = time.perf_counter() - began, time.process_time() - processor
    children = os.times().children_user + os.times().children_system
    taken = {"seconds": seconds, "processor": processor + children, "chunks": chunks}
    print(json.dumps(taken), flush=True)
    os._exit(0)  # what libraries do at the end is no part of this


def run(name: str, lines: Path, folder: Path) -> dict[str, float]:
    """Ingest with one system in its own process."""
    command = [sys.executable, __file__, "--run", name, str(lines), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, memory(psutil.Process(process.pid)))
            time.sleep(0.05)
        assert process.stdout is not None
        taken: dict[str, float] = json.loads(process.stdout.read().splitlines()[-1])
    return {**taken, "peak": peak}


def memory(process: psutil.Process) -> float:
    """Return the resident MB of a process and its children."""
    total = 0
    with contextlib.suppress(psutil.Error):  # one has just ended
        for one in (process, *process.children(recursive=True)):
            total += one.memory_info().rss
    return total / 1e6


def ingests(lines: Path, folder: Path) -> list[str]:
    results = {name: run(name, lines, folder) for name in SYSTEMS}
    ours = results["kbkit"]["seconds"]
    rows = [
        [
            name,
            f"{taken['seconds']:.1f} s",
            f"{taken['seconds'] / ours:.1f}",
            f"{taken['processor']:.1f} s",
            f"{taken['peak']:.0f} MB",
            f"{taken['chunks']:,.0f}",
        ]
        for name, taken in results.items()
    ]
    head = ["", "time", "times kbkit's", "processor time", "peak memory", "chunks"]
    return table(head, rows)


def upkeep(folder: Path) -> list[str]:
    """Time making, listing and describing knowledge bases beside a large one."""
    with kbkit.open(folder / "kbkit") as workspace:
        large = workspace["python"]
        times: dict[str, list[float]] = {"create": [], "list": [], "info": []}
        for number in range(ROUNDS):
            for name, work in (
                ("create", lambda number=number: workspace.create(f"empty-{number}")),
                ("list", workspace.list),
                ("info", large.info),
            ):
                began = time.perf_counter()
                work()
                times[name].append((time.perf_counter() - began) * 1000)
    rows = [[name, f"{statistics.median(found):.1f} ms"] for name, found in times.items()]
    return table(["", "median"], rows)


def main() -> None:
    if sys.argv[1:2] == ["--run"]:
        run_here(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
    if not PYTHON.is_dir():
        print(f"{PYTHON}: not there; this benchmark needs Debian's package python3.11-doc")
        return
    most = float(sys.argv[1]) if len(sys.argv) > 1 else 9.0
    with bench_folder() as folder:
        lines = folder / "python.jsonl"
        size = write_lines(lines, most * 1e6)
        documents = sum(1 for _ in lines.open(encoding="utf-8"))
        report(
            "ingest",
            [
                f"{documents} documents, {size / 1e6:.1f} million characters of Markdown, "
                f"static embedder, {os.cpu_count()} processors (load {os.getloadavg()[0]:.1f})",
                "",
                *ingests(lines, folder),
                "",
                f"{ROUNDS} empty knowledge bases beside that one:",
                "",
                *upkeep(folder),
            ],
        )


if __name__ == "__main__":
    main()
