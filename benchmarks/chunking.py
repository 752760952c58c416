"""Compare ways to cut text, after Chroma's chunking report (Smith and Troynikov, 2024).

Each question has passages that answer it. The five chunks nearest to the question are retrieved
from all corpora, and their characters are compared with the passages':

* recall: share of the passages in the chunks,
* precision: share of the chunks in the passages,
* IoU: intersection of both, divided by their union.

Run from the project's root: ``python benchmarks/chunking.py [FOLDER]``; the folder holds the
corpora and ``questions.csv`` (by default ``../shared/eval/chunking``).
"""

from __future__ import annotations

import csv
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _corpora import EVAL, report

from kbkit.embedding import Embedder, open_embedder
from kbkit.ingest.cutting import chunk, embedded_text
from kbkit.models import DocumentType
from kbkit.recipes import ChunkingSpec, StaticEmbedding

TOP = 5
SIZES = (300, 500, 800, 1000, 1500, 2000)
OTHERS = (("headings", 0), ("fixed", 0), ("fixed", 200), ("sentence", 0), ("sentence", 200))


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the ranges of its corpus that answer it."""

    text: str
    corpus: str
    ranges: tuple[tuple[int, int], ...]


def read(folder: Path) -> tuple[dict[str, str], list[Question]]:
    with (folder / "questions.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    questions = [
        Question(
            row["question"],
            row["corpus_id"],
            tuple(
                (found["start_index"], found["end_index"])
                for found in json.loads(row["references"])
            ),
        )
        for row in rows
    ]
    names = sorted({question.corpus for question in questions})
    corpora = {}
    for name in names:
        # newline="" keeps every character, since the offsets count them
        with (folder / f"{name}.md").open(encoding="utf-8", newline="") as stream:
            corpora[name] = stream.read()
    return corpora, questions


def measure(
    corpora: dict[str, str], questions: list[Question], embedder: Embedder, spec: ChunkingSpec
) -> str:
    began = time.process_time()
    chunks = [
        (name, span)
        for name, content in corpora.items()
        for span in chunk(content, DocumentType.OTHER, spec)
    ]
    seconds = time.process_time() - began
    texts = [corpora[name][span.start : span.end] for name, span in chunks]
    passages = embedder.embed_passages(
        [
            embedded_text("", span.heading_path, text)
            for (_, span), text in zip(chunks, texts, strict=True)
        ]
    )
    queries = np.stack([embedder.embed_query(question.text) for question in questions])
    best = np.argsort(-(queries @ passages.T), axis=1, kind="stable")[:, :TOP]
    results = []
    for question, rows in zip(questions, best, strict=True):
        wanted = np.zeros(len(corpora[question.corpus]), bool)
        for start, end in question.ranges:
            wanted[start:end] = True
        found = np.zeros_like(wanted)
        retrieved = 0
        for name, span in (chunks[row] for row in rows):
            retrieved += span.end - span.start
            if name == question.corpus:
                found[span.start : span.end] = True
        shared, missed = int((wanted & found).sum()), int((wanted & ~found).sum())
        results.append((shared / wanted.sum(), shared / retrieved, shared / (retrieved + missed)))
    recall, precision, iou = np.mean(results, axis=0) * 100
    size = sum(map(len, corpora.values()))
    return (
        f"| {spec.strategy} | {spec.size} | {spec.overlap} | {len(chunks)} "
        f"| {np.mean([len(text) for text in texts]):.0f} | {recall:.1f} | {precision:.1f} "
        f"| {iou:.1f} | {size / seconds / 1e6:.1f} |"
    )


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else EVAL / "chunking"
    if not (folder / "questions.csv").is_file():
        print(f"{folder}: no questions.csv there; this benchmark needs the evaluation data")
        return
    corpora, questions = read(folder)
    embedder = open_embedder(StaticEmbedding())
    chunk("warm up", DocumentType.OTHER, ChunkingSpec())
    lines = [
        f"{len(questions)} questions, {sum(map(len, corpora.values())):,} characters, "
        f"embedder {embedder.fingerprint}, the {TOP} nearest chunks",
        "",
        "| strategy | size | overlap | chunks | mean | recall | precision | IoU | MB/s |",
        "| --- | --: | --: | --: | --: | --: | --: | --: | --: |",
    ]
    specs = [ChunkingSpec(strategy="paragraph", size=size) for size in SIZES]
    specs += [
        ChunkingSpec(strategy=strategy, size=size, overlap=overlap)  # type: ignore[arg-type]
        for strategy, overlap in OTHERS
        for size in SIZES
        if overlap * 2 <= size
    ]
    lines += [measure(corpora, questions, embedder, spec) for spec in specs]
    report("chunking", lines)


if __name__ == "__main__":
    main()
