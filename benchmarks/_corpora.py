"""What the benchmarks of retrieval search: corpora with questions whose answers are known.

The data is not part of the project: test collections are read from ``../shared/eval``, the
documentation of Python from Debian's package ``python3.11-doc``. What is missing is left out.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import kbkit
from kbkit.recipes import AnyEmbedding, AnySource, KnowledgeBaseSpec, StaticEmbedding

EVAL = Path(__file__).parents[2] / "shared" / "eval"
PYTHON = Path("/usr/share/doc/python3.11/html")
TABLES = Path(__file__).parents[1] / "build" / "bench"
DEPTH = 10


@dataclass(frozen=True, slots=True)
class Place:
    """A passage that a search found: ``text[start:end]`` of a document."""

    uri: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question and how much each passage says about it.

    Attributes:
        gains: Gains of the passages of a ranking, best first; each answer is counted once.
        ideal: Gains of the best ranking there is.
    """

    text: str
    gains: Callable[[Sequence[Place]], list[float]]
    ideal: tuple[float, ...]

    def ndcg(self, ranking: Sequence[Place]) -> float:
        """nDCG@10."""
        best = _dcg(self.ideal[:DEPTH])
        return _dcg(self.gains(ranking)[:DEPTH]) / best if best else 0.0


def _dcg(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains))


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents in a knowledge base, with questions."""

    name: str
    kb: kbkit.KnowledgeBase
    questions: list[Question]


def corpora(
    folder: Path, embedding: AnyEmbedding | None = None, names: Sequence[str] = ()
) -> Iterator[Corpus]:
    """Build each corpus that is there in a workspace and give it."""
    makers = {"python": _python, "scifact": _trec, "cranfield": _trec, "chunking": _chunking}
    with kbkit.open(folder) as workspace:
        for name in names or makers:
            found = makers[name](name, folder)
            if found is None:
                print(f"{name}: its data is missing, left out")
                continue
            source, questions = found
            if name not in workspace:
                config = KnowledgeBaseSpec(embedding=embedding or StaticEmbedding())
                workspace.create(name, spec=config).ingest(source)
            yield Corpus(name, workspace[name], questions(workspace[name]))


_Found = tuple[AnySource, Callable[[kbkit.KnowledgeBase], list[Question]]] | None


def _python(name: str, folder: Path) -> _Found:
    table = EVAL / "python-questions.tsv"
    if not table.is_file() or not PYTHON.is_dir():
        return None

    def questions(kb: kbkit.KnowledgeBase) -> list[Question]:
        rows = [line.split("\t") for line in table.read_text(encoding="utf-8").splitlines()]
        base = "http://python.invalid/"
        return [about_pages(row[0], [base + page for page in row[1].split(",")]) for row in rows]

    return kbkit.MirrorSource(path=str(PYTHON), base_url="http://python.invalid/"), questions


def about_pages(text: str, pages: Sequence[str]) -> Question:
    """The first page is the best, the others count as relevant."""
    return _graded(text, dict.fromkeys(pages, 1.0) | {pages[0]: 2.0})


def _graded(text: str, grades: dict[str, float]) -> Question:
    """Documents have grades; a document counts where it is found first."""

    def gains(ranking: Sequence[Place]) -> list[float]:
        uris = dict.fromkeys(place.uri.split("#")[0] for place in ranking)
        return [grades.get(uri, 0.0) for uri in uris]

    return Question(text, gains, tuple(sorted(grades.values(), reverse=True)))


def _trec(name: str, folder: Path) -> _Found:
    home = EVAL / name
    if not home.is_dir():
        return None
    file = folder / f"{name}.jsonl"
    with file.open("w", encoding="utf-8") as out:
        for line in _corpus_lines(home):
            values = json.loads(line)
            title, text = values["title"], values["text"]
            if title.strip() or text.strip():
                document = {"uri": values["id"], "title": title or text[:80], "text": text or title}
                out.write(json.dumps(document) + "\n")

    def questions(kb: kbkit.KnowledgeBase) -> list[Question]:
        grades: dict[str, dict[str, float]] = defaultdict(dict)
        for line in (home / "qrels.tsv").read_text().splitlines()[1:]:
            query, document, grade = line.split("\t")
            if int(grade) > 0:
                grades[query][document] = float(grade)
        lines = (home / "queries.jsonl").read_text(encoding="utf-8").splitlines()
        asked = [json.loads(line) for line in lines]
        return [_graded(one["text"], grades[one["id"]]) for one in asked if grades[one["id"]]]

    return kbkit.JsonlSource(path=str(file)), questions


def _corpus_lines(home: Path) -> list[str]:
    packed = home / "corpus.jsonl.gz"
    if packed.exists():
        return gzip.decompress(packed.read_bytes()).decode("utf-8").splitlines()
    return (home / "corpus.jsonl").read_text(encoding="utf-8").splitlines()


def _chunking(name: str, folder: Path) -> _Found:
    home = EVAL / name
    if not home.is_dir():
        return None

    def questions(kb: kbkit.KnowledgeBase) -> list[Question]:
        passages: dict[str, list[Place]] = defaultdict(list)
        uris = {document.id: document.uri for document in kb.documents}
        for chunk in kb.chunks:
            uri = uris[chunk.document_id]
            passages[Path(uri).stem].append(Place(uri, chunk.start, chunk.end))
        with (home / "questions.csv").open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        return [_about_passages(row, passages[row["corpus_id"]]) for row in rows]

    return kbkit.FilesSource(path=str(home / "*.md")), questions


def _about_passages(row: dict[str, str], passages: Sequence[Place]) -> Question:
    """A passage is relevant when it holds a third of a reference, or is held by it to a third."""
    references = [(one["start_index"], one["end_index"]) for one in json.loads(row["references"])]

    def gain(place: Place) -> float:
        if Path(place.uri).stem != row["corpus_id"]:
            return 0.0
        return float(
            any(
                min(place.end, end) - max(place.start, start)
                > min(end - start, place.end - place.start) / 3
                for start, end in references
            )
        )

    relevant = sum(gain(place) for place in passages)
    return Question(
        row["question"], lambda ranking: [gain(p) for p in ranking], (1.0,) * int(relevant)
    )


@contextmanager
def bench_folder() -> Iterator[Path]:
    """A folder for workspaces, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="kbkit-bench-") as folder:
        yield Path(folder)


def report(name: str, lines: Sequence[str]) -> None:
    """Print a table and keep it under ``build/bench``, with what else the machine had to do."""
    loads = " and ".join(f"{load:.1f}" for load in os.getloadavg()[:2])
    machine = f"{os.cpu_count()} processors; load of the last minute and five minutes: {loads}."
    text = "\n".join([*lines, "", machine]) + "\n"
    print(text)
    TABLES.mkdir(parents=True, exist_ok=True)
    (TABLES / f"{name}.md").write_text(text, encoding="utf-8")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]
