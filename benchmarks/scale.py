"""Searches, changes, threads and processes at any number of chunks.

Corpora are docstrings of installed packages, copied with a quarter of their words renamed
(`_scale_corpus.py`), ingested with static vectors. Beyond ``--ingested`` they are copied in the
catalog (`_scale_copies.py`), without Chroma. Beside kbkit, in the same run: a scan of all vectors
by numpy, bm25s and Chroma. Corpora stay in ``build/benchmarks``.

Run from the project's root: ``python benchmarks/scale.py [CHUNKS ...] [--workspace FOLDER]``; the
page Capacity has the output of ``20000 200000 1000000``.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import random
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import _peers
import numpy as np
from _corpora import KEPT, bench_folder, report, table
from _scale_copies import copy, without_chroma
from _scale_corpus import add, grow, questions

import kbkit
from kbkit.embedding import Matrix, Vector
from kbkit.knowledge_base.knowledge_base import handle_of
from kbkit.recipes import StaticEmbedding
from kbkit.retrieval.corpora import SnapshotCorpus

SIZES = (20_000, 200_000)
PEERS = ["numpy", "bm25s", "Chroma"]
SECONDS = 8.0
"""Seconds that threads and processes search."""
INGESTED = 200_000
PATH = "**/numpy/**"
PAGES = 200
"""Number of pages to ingest at each size."""
NEAREST = 100
GROWING = {
    "hybrid, ms of processor": "search",
    "ingest, s of processor for 100,000 chunks": "ingest",
    "resident after 21 searches, MB": "memory",
    "disk, MB": "disk",
}
"""Figures whose growth is shown."""
QUESTION = "How do I run a coroutine with a timeout?"
FRESH = """
import sys
import kbkit
assert kbkit.open(sys.argv[1])[sys.argv[2]].search(sys.argv[3])
"""


def resident() -> tuple[int, int]:
    """Return the resident MB of this process, in all and without mapped files."""
    whole, files = Path("/proc/self/statm").read_text(encoding="ascii").split()[1:3]
    size = os.sysconf("SC_PAGESIZE")
    return int(whole) * size // 2**20, (int(whole) - int(files)) * size // 2**20


@contextmanager
def peak() -> Iterator[list[int]]:
    """Yield the peak of `resident`."""
    seen, ended = list(resident()), threading.Event()

    def watch() -> None:
        while not ended.wait(0.01):
            seen[:] = map(max, seen, resident())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def resident_after(again: Callable[[], kbkit.Workspace], name: str) -> tuple[int, int]:
    """Return `resident` of a fresh process after 21 searches."""
    with again() as workspace:
        for query in questions(21):
            workspace[name].search(query)
        return resident()


def processor() -> float:
    """Return processor seconds of this process and of its finished children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


@dataclass(slots=True)
class Figures:
    """Figures of one size, by label."""

    rows: list[list[str]] = field(default_factory=list)
    growing: dict[str, float] = field(default_factory=dict)

    def times(self, name: str, search: Callable[[str], object], asked: list[str]) -> float:
        """Note median and 95th percentile in milliseconds; return the median."""
        for query in asked[:20]:  # warm up, with queries that are not measured
            search(query)
        times, before = [], processor()
        for query in asked[20:]:
            start = time.perf_counter()
            search(query)
            times.append((time.perf_counter() - start) * 1000)
        taken = (processor() - before) * 1000 / len(times)
        times.sort()
        middle, slow = median(times), times[int(len(times) * 0.95)]
        self.note(f"{name}, p50 / p95 ms", f"{middle:.1f} / {slow:.1f}")
        self.note(f"{name}, ms of processor", f"{taken:.1f}", taken)
        return middle

    def note(self, name: str, value: object, number: float = 0.0) -> None:
        """Note a figure as text and as a number."""
        self.rows.append([name, str(value)])
        self.growing[name] = number
        print(name, value, flush=True)


def searched(kb: kbkit.KnowledgeBase, asked: list[str], seconds: float) -> list[float]:
    """Search for ``seconds`` and return the time of each search."""
    times: list[float] = []
    until = time.perf_counter() + seconds
    while (start := time.perf_counter()) < until:
        kb.search(asked[len(times) % len(asked)])
        times.append(time.perf_counter() - start)
    return times


def in_threads(kb: kbkit.KnowledgeBase, asked: list[str], number: int) -> list[float]:
    """Search in threads and return the times."""
    found: list[float] = []

    def work(turn: int) -> None:
        mine = random.Random(turn).sample(asked, len(asked))
        found.extend(searched(kb, mine, SECONDS))

    threads = [threading.Thread(target=work, args=(turn,)) for turn in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def _process(folder: str, name: str, turn: int, signals: tuple[Any, Any, Any]) -> None:
    ready, begin, out = signals
    asked = questions(400)
    random.Random(turn).shuffle(asked)
    kb = kbkit.open(folder)[name]
    searched(kb, asked, SECONDS / 4)
    ready.release()
    begin.wait()
    out.put(searched(kb, asked, SECONDS))


def in_processes(folder: Path, name: str, number: int) -> list[float]:
    """Search in processes and return the times."""
    spawn = multiprocessing.get_context("spawn")
    ready, begin, out = spawn.Semaphore(0), spawn.Event(), spawn.Queue()
    processes = [
        spawn.Process(target=_process, args=(str(folder), name, turn, (ready, begin, out)))
        for turn in range(number)
    ]
    for process in processes:
        process.start()
    for _ in processes:
        ready.acquire()
    begin.set()
    found = [each for _ in processes for each in out.get()]
    for process in processes:
        process.join()
    return found


def recall(kb: kbkit.KnowledgeBase, asked: list[str]) -> list[float]:
    """Return the share of each question's hundred nearest chunks that the dense retriever finds."""
    handle = handle_of(kb)
    row, stores = handle.row(), handle.stores
    snapshot = stores.snapshots.renew(kb.id)
    found: list[float] = []
    for query in asked:
        vector = handle.embedders.of(row).embed_query(query)
        corpus = SnapshotCorpus(snapshot, row, stores.vectors, vector)
        scores = snapshot.score(partial(_exact, vector))
        least = np.partition(scores, -NEAREST)[-NEAREST]
        near = corpus.nearest(NEAREST, NEAREST, None)[:NEAREST]
        found.append(float((scores[near] >= least - 1e-6).mean()))
    return found


def _exact(vector: Vector, vectors: Matrix) -> Vector:
    scores: Vector = vectors.astype(np.float32) @ vector
    return scores


def size_of(folder: Path) -> float:
    """Return the MB of a folder or file."""
    files = folder.rglob("*") if folder.is_dir() else [folder]
    return sum(file.stat().st_size for file in files if file.is_file()) / 2**20


def disk(figures: Figures, folder: Path, chunks: int, documents: int) -> None:
    """Note the disk space of each part."""
    catalog = size_of(folder / "catalog.db") + size_of(folder / "catalog.db-wal")
    parts = catalog, size_of(folder / "chroma"), size_of(folder / "snapshots")
    for name, unit in (("100,000 chunks", chunks / 1e5), ("1,000 pages", documents / 1e3)):
        sizes = " / ".join(f"{part / unit:.0f}" for part in parts)
        figures.note(f"disk by {name}: catalog / Chroma / snapshot, MB", sizes)
    figures.note("disk, MB", f"{sum(parts):,.0f}", sum(parts))


def ingest(figures: Figures, kb: kbkit.KnowledgeBase, folder: Path) -> None:
    """Note the cost of ingesting some pages, which are then removed."""
    start, before, held = time.perf_counter(), processor(), kb.info().chunks
    source = add(kb, folder, PAGES)
    seconds, taken = time.perf_counter() - start, processor() - before
    came = kb.info().chunks - held
    figures.note("ingest, chunks/s", f"{came / seconds:.0f}")
    hundred = taken * 1e5 / came
    figures.note("ingest, s of processor for 100,000 chunks", f"{hundred:.0f}", hundred)
    figures.note("ingest, s of processor for 1,000 pages", f"{taken * 1e3 / PAGES:.1f}")
    kb.sources.remove(source)


def processor_of(command: list[str]) -> float:
    """Return the processor seconds of a program."""
    before = os.times()
    subprocess.run(command, check=True, capture_output=True)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


def measure(
    workspace: kbkit.Workspace,
    kb: kbkit.KnowledgeBase,
    asked: list[str],
    again: Callable[[], kbkit.Workspace],
) -> Figures:
    """Measure one knowledge base; ``again`` opens its workspace in another process."""
    figures = Figures()
    folder, stores = workspace.path, kb._stores
    info = kb.info()
    disk(figures, folder, info.chunks, info.documents)
    command = ["-m", "kbkit", "--workspace", str(folder), "search", QUESTION, "--kb", kb.name]
    fresh = {"search": ["-c", FRESH, str(folder), kb.name, QUESTION], "`kbkit search`": command}
    for name, arguments in fresh.items():
        seconds = min(processor_of([sys.executable, *arguments]) for _ in range(7))
        figures.note(f"{name} in a fresh process, s of processor", f"{seconds:.2f}")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        held = pool.apply(resident_after, (again, kb.name))
    label = "resident after 21 searches, MB"
    figures.note(label, "{} ({} without mapped files)".format(*held), held[0])
    for query in asked[:3]:
        kb.search(query)
    stores.warmer.close()
    one = figures.times("hybrid", kb.search, asked)
    figures.times("words alone", lambda query: kb.search(query, mode="lexical"), asked)
    figures.times("dense alone", lambda query: kb.search(query, mode="dense"), asked)
    filters = {"path": PATH}
    figures.times("hybrid, by path", lambda query: kb.search(query, filters=filters), asked)
    after, added = [], []
    for turn in range(7):
        start = time.perf_counter()
        kb.add(f"Measured {turn}", f"What is added to see what it costs, number {turn}.")
        middle = time.perf_counter()
        kb.search(asked[turn])
        added.append((middle - start) * 1000)
        after.append((time.perf_counter() - middle) * 1000)
    figures.note("one `add`, median ms", f"{median(added):.0f}")
    figures.note(
        "the search right after, median / most ms", f"{median(after):.1f} / {max(after):.1f}"
    )
    for turn in range(7):
        kb.documents.delete(f"text:Measured {turn}")
    kb.search(asked[0])
    figures.times("hybrid after changes", kb.search, asked)
    shares = recall(kb, asked[:60])
    figures.note(
        "recall of the nearest hundred, mean / least, %",
        f"{np.mean(shares) * 100:.2f} / {min(shares) * 100:.0f}",
    )
    for number in (1, 16):
        times = sorted(in_threads(kb, asked, number))
        figures.note(
            f"{number} threads, searches/s; p95 as a multiple of the p50 of one",
            f"{len(times) / SECONDS:.0f}; {times[int(len(times) * 0.95)] * 1000 / one:.1f}",
        )
    for number in (1, 4):
        times = sorted(in_processes(folder, kb.name, number))
        figures.note(
            f"{number} processes, searches/s; p95 as a multiple of the p50 of one",
            f"{len(times) / SECONDS:.0f}; {times[int(len(times) * 0.95)] * 1000 / one:.1f}",
        )
    stores.snapshots.drop(kb.id)
    start = time.perf_counter()
    with peak() as most:
        stores.snapshots.save(kb.id, merging=True)
    figures.note("making the snapshot again, s", f"{time.perf_counter() - start:.1f}")
    figures.note("resident meanwhile, MB", "{} ({} without mapped files)".format(*most))
    figures.note("chunks", f"{info.chunks:,}", info.chunks)
    figures.note("documents", f"{info.documents:,}")
    figures.note("load of the machine", f"{os.getloadavg()[0]:.1f}")
    return figures


def beside(
    kb: kbkit.KnowledgeBase, home: Path, asked: list[str], figures: Figures, names: list[str]
) -> None:
    """Measure peers over the same chunks."""
    _peers.install()
    chunks = _peers.Chunks(kb, StaticEmbedding())
    made: dict[str, Callable[[], _peers.Search]] = {
        "numpy": partial(_peers.numpy_scan, chunks),
        "bm25s": partial(_peers.bm25s_alone, chunks),
        "Chroma": partial(_peers.chroma_alone, chunks, home),
    }
    for name in names:
        figures.times(f"{name} beside", partial(_peer, made[name]()), asked)


def _peer(search: _peers.Search, query: str) -> object:
    return search(query, 10)


def opened(folder: Path, size: int, ingested: int) -> kbkit.Workspace:
    """Open a workspace, without Chroma if most of its chunks are copies."""
    if size <= ingested:
        return kbkit.open(folder)
    if not folder.exists() and (before := folder.with_name(str(ingested))).exists():
        shutil.copytree(before, folder)
    return without_chroma(folder)


def prepare(workspace: kbkit.Workspace, folder: Path, size: int, ingested: int) -> None:
    """Grow a workspace to its size."""
    kb = workspace["scale"] if "scale" in workspace else workspace.create("scale")
    grow(kb, folder, min(size, ingested))
    if size > ingested:
        copy(kb, size)
    else:
        kb.improve()  # what else would go on beside what is measured


def exponents(found: list[Figures]) -> Iterator[list[str]]:
    """Show how figures grow with the chunks, from each size to the next."""
    for name, called in GROWING.items():
        row = [f"growth of {called}, exponent from the size before", ""]
        for one, two in pairwise(found):
            more, of = (two.growing[key] / one.growing[key] for key in (name, "chunks"))
            row.append(f"{math.log(more) / math.log(of):.2f}")
        yield row


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--workspace", type=Path, default=KEPT / "scale")
    parser.add_argument("--ingested", type=int, default=INGESTED, help="more chunks are copied")
    parser.add_argument("--peers", nargs="*", default=PEERS, choices=PEERS)
    options = parser.parse_args()
    os.environ["KBKIT_IMPROVE"] = "off"
    asked = questions(170)
    measured: list[Figures] = []
    with bench_folder() as folder:
        for size in options.sizes:
            again = partial(opened, options.workspace / str(size), size, options.ingested)
            with again() as workspace:
                prepare(workspace, folder, size, options.ingested)
                kb = workspace["scale"]
                figures = measure(workspace, kb, asked, again)
                if options.peers:
                    beside(kb, folder / f"peers-{size}", asked, figures, options.peers)
                ingest(figures, kb, folder)
            measured.append(figures)
    found = [dict(each.rows) for each in measured]
    names = list(dict.fromkeys(name for figures in found for name in figures))
    head = ["", *(figures["chunks"] for figures in found)]
    rows = [[name, *(figures.get(name, "") for figures in found)] for name in names]
    print(json.dumps(found))
    report("scale", table(head, [*rows, *exponents(measured)]))


if __name__ == "__main__":
    main()
