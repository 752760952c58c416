"""What growth costs: searches, changes, threads and processes at any number of chunks.

Corpora are the docstrings of installed packages, copied with a quarter of their words renamed
(`_scale_corpus.py`), stored by the product's own ingest with static vectors. Beside kbkit, in the
same run: a scan of all vectors by numpy, bm25s and Chroma. Corpora stay in ``build/benchmarks``.

Run from the project's root: ``python benchmarks/scale.py [CHUNKS ...] [--workspace FOLDER]``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import _peers
from _corpora import KEPT, bench_folder, report, table
from _scale_corpus import grow, questions

import kbkit
from kbkit.recipes import StaticEmbedding

SIZES = (20_000, 200_000)
SECONDS = 8.0
"""How long threads and processes search."""
PATH = "**/numpy/**"
FRESH = """
import os, sys
import kbkit
kb = kbkit.open(sys.argv[1])[sys.argv[2]]
assert len(kb.search("How do I run a coroutine with a timeout?"))
print(sum(os.times()[:2]))
"""


def resident() -> tuple[int, int]:
    """Megabytes of this process that are in memory: in all, and without mapped files."""
    whole, files = Path("/proc/self/statm").read_text(encoding="ascii").split()[1:3]
    size = os.sysconf("SC_PAGESIZE")
    return int(whole) * size // 2**20, (int(whole) - int(files)) * size // 2**20


@contextmanager
def peak() -> Iterator[list[int]]:
    """The most megabytes that were in memory meanwhile, as `resident` has them."""
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


@dataclass(slots=True)
class Figures:
    """The figures of one size, by what they are of."""

    rows: list[list[str]] = field(default_factory=list)

    def times(self, name: str, search: Callable[[str], object], asked: list[str]) -> float:
        """Note the median and the 95th percentile of searches, in milliseconds; the median."""
        for query in asked[:20]:  # warm up, with queries that are not measured
            search(query)
        times = []
        for query in asked[20:]:
            start = time.perf_counter()
            search(query)
            times.append((time.perf_counter() - start) * 1000)
        times.sort()
        middle, slow = median(times), times[int(len(times) * 0.95)]
        self.note(f"{name}, p50 / p95 ms", f"{middle:.1f} / {slow:.1f}")
        return middle

    def note(self, name: str, value: object) -> None:
        """Note a figure."""
        self.rows.append([name, str(value)])
        print(name, value, flush=True)


def searched(kb: kbkit.KnowledgeBase, asked: list[str], seconds: float) -> list[float]:
    """How long each search took, one after the other for so many seconds."""
    times: list[float] = []
    until = time.perf_counter() + seconds
    while (start := time.perf_counter()) < until:
        kb.search(asked[len(times) % len(asked)])
        times.append(time.perf_counter() - start)
    return times


def in_threads(kb: kbkit.KnowledgeBase, asked: list[str], number: int) -> list[float]:
    """The times of so many threads."""
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


def _process(folder: str, name: str, turn: int, told: tuple[Any, Any, Any]) -> None:
    ready, begin, out = told
    asked = questions(400)
    random.Random(turn).shuffle(asked)
    kb = kbkit.open(folder)[name]
    searched(kb, asked, SECONDS / 4)
    ready.release()
    begin.wait()
    out.put(searched(kb, asked, SECONDS))


def in_processes(folder: Path, name: str, number: int) -> list[float]:
    """The times of so many processes."""
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


def measure(workspace: kbkit.Workspace, kb: kbkit.KnowledgeBase, asked: list[str]) -> Figures:
    """All figures of one knowledge base."""
    figures = Figures()
    folder, stores = workspace.path, kb._stores
    chunks = kb.info().chunks
    fresh = [
        float(subprocess.run([sys.executable, "-c", FRESH, str(folder), kb.name], check=True,
                             capture_output=True, text=True).stdout)
        for _ in range(3)
    ]  # fmt: skip
    figures.note("first search of a fresh process, s of processor", f"{median(fresh):.2f}")
    for query in asked[:3]:
        kb.search(query)
    stores.warmer.close()
    one = figures.times("hybrid", kb.search, asked)
    figures.times("words alone", lambda query: kb.search(query, mode="lexical"), asked)
    figures.times("dense alone", lambda query: kb.search(query, mode="dense"), asked)
    filters = {"path": PATH}
    figures.times("hybrid, by path", lambda query: kb.search(query, filters=filters), asked)
    figures.note("resident, warm, MB; without mapped files", "{}; {}".format(*resident()))
    after, added = [], []
    for turn in range(7):
        start = time.perf_counter()
        kb.add(f"Measured {turn}", f"What is added to see what it costs, number {turn}.")
        middle = time.perf_counter()
        kb.search(asked[turn])
        added.append((middle - start) * 1000)
        after.append((time.perf_counter() - middle) * 1000)
    figures.note("one `add`, median ms", f"{median(added):.0f}")
    figures.note("the search right after, median / most ms",
                 f"{median(after):.1f} / {max(after):.1f}")  # fmt: skip
    for turn in range(7):
        kb.documents.delete(f"text:Measured {turn}")
    kb.search(asked[0])
    figures.times("hybrid after changes", kb.search, asked)
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
    figures.note("making the snapshot anew, s", f"{time.perf_counter() - start:.1f}")
    figures.note("resident meanwhile, MB; without mapped files", "{}; {}".format(*most))
    disk = sum(path.stat().st_size for path in (folder / "snapshots").glob(f"{kb.id}.*"))
    figures.note("snapshot on disk, MB", disk // 2**20)
    figures.note("chunks", f"{chunks:,}")
    figures.note("load of the machine", f"{os.getloadavg()[0]:.1f}")
    return figures


def beside(kb: kbkit.KnowledgeBase, home: Path, asked: list[str], figures: Figures) -> None:
    """Peers over the same chunks, in the same run."""
    _peers.install()
    chunks = _peers.Chunks(kb, StaticEmbedding())
    for name, search in (
        ("numpy scan", _peers.numpy_scan(chunks)),
        ("bm25s", _peers.bm25s_alone(chunks)),
        ("Chroma", _peers.chroma_alone(chunks, home)),
    ):
        figures.times(name, partial(_peer, search), asked)


def _peer(search: _peers.Search, query: str) -> object:
    return search(query, 10)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--workspace", type=Path, default=KEPT / "scale")
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    asked = questions(170)
    lines: list[str] = []
    found: list[dict[str, str]] = []
    with bench_folder() as folder:
        for size in options.sizes:
            with kbkit.open(options.workspace / str(size)) as workspace:
                kb = workspace["scale"] if "scale" in workspace else workspace.create("scale")
                start, held = time.perf_counter(), kb.info().chunks
                grow(kb, folder, size)
                seconds, came = time.perf_counter() - start, kb.info().chunks - held
                figures = measure(workspace, kb, asked)
                if came:
                    figures.note("ingest, chunks/s", f"{came / seconds:.0f}")
                if not options.no_peers:
                    beside(kb, folder / f"peers-{size}", asked, figures)
            found.append(dict(figures.rows))
    names = list(dict.fromkeys(name for figures in found for name in figures))
    head = ["", *(figures["chunks"] for figures in found)]
    rows = [[name, *(figures.get(name, "") for figures in found)] for name in names]
    lines += table(head, rows)
    print(json.dumps(found))
    report("scale", lines)


if __name__ == "__main__":
    main()
