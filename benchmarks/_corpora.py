"""Corpora with questions whose answers are known, for the benchmarks of retrieval.

Test collections and the questions about Python, SQLite, Apache, Django and pandas come from
``../shared/eval``; those in ``benchmarks/questions`` are the project's own. Manuals are Debian
packages, installed or unpacked by `fetch_manuals`. Missing corpora are reported and skipped.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import kbkit
from kbkit.recipes import AnyEmbedding, AnySource, KnowledgeBaseSpec, StaticEmbedding

ROOT = Path(__file__).parents[1]
EVAL = ROOT.parent / "shared" / "eval"
OWN = ROOT / "benchmarks" / "questions"
PYTHON = Path("/usr/share/doc/python3.11/html")
TABLES = ROOT / "build" / "bench"
KEPT = ROOT / "build" / "benchmarks"
"""Where knowledge bases, packages and vectors stay between runs."""
DEPTH = 10
PASSAGES = 5
"""Number of passages that recall and IoU read."""


@dataclass(frozen=True, slots=True)
class Manual:
    """Pages of a Debian package, and questions about them.

    Attributes:
        questions: A file: each line has a question and, after tabs, its pages, best first.
        package: The package that has the pages.
        path: Their folder below ``/usr/share/doc``.
        include: Globs of the pages to read; empty for all.
    """

    questions: Path
    package: str
    path: str
    include: tuple[str, ...] = ()

    @property
    def folder(self) -> Path | None:
        """The folder of the pages, or ``None``."""
        unpacked = KEPT / "packages" / self.package / "usr/share/doc"
        for doc in (Path("/usr/share/doc"), unpacked):
            if any((doc / self.path).glob("**/*.html")):
                return doc / self.path
        return None


MANUALS = {
    "python": Manual(EVAL / "python-questions.tsv", "python3.11-doc", "python3.11/html"),
    "sqlite": Manual(EVAL / "manuals/sqlite-questions.tsv", "sqlite3-doc", "sqlite3"),
    "apache": Manual(EVAL / "manuals/apache-questions.tsv", "apache2-doc", "apache2-doc/manual/en"),
    "django": Manual(
        EVAL / "manuals/django-questions.tsv", "python-django-doc", "python-django-doc/html"
    ),
    "ncurses": Manual(OWN / "ncurses.tsv", "ncurses-doc", "ncurses-doc/html"),
    "policy": Manual(OWN / "policy.tsv", "debian-policy", "debian-policy"),
    "faq": Manual(OWN / "faq.tsv", "debian-faq", "debian/FAQ", ("/*.en.html",)),
    "postfix": Manual(OWN / "postfix.tsv", "postfix-doc", "postfix/html"),
}
PANDAS = EVAL / "manuals/pandas-questions.tsv"
MKDOCS = OWN / "mkdocs.tsv"
"""Questions that objects of installed packages answer, by qualified name."""


@dataclass(frozen=True, slots=True)
class Place:
    """A retrieved passage: ``text[start:end]`` of a document."""

    uri: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question and how relevant each passage is to it.

    Attributes:
        gains: Gains of a ranking's passages, best first; each answer counts once.
        ideal: Gains of the best possible ranking.
        coverage: Further figures of a ranking of passages.
        grades: Relevance by page, where pages are ranked.
    """

    text: str
    gains: Callable[[Sequence[Place]], list[float]]
    ideal: tuple[float, ...]
    coverage: Callable[[Sequence[Place]], dict[str, float]] | None = None
    grades: Mapping[str, float] = field(default_factory=dict)

    def ndcg(self, ranking: Sequence[Place]) -> float:
        best = _dcg(self.ideal[:DEPTH])
        return _dcg(self.gains(ranking)[:DEPTH]) / best if best else 0.0

    def figures(self, ranking: Sequence[Place]) -> dict[str, float]:
        """Return nDCG@10, Hit@1 (whether the first answer is right) and MRR@10."""
        gains = self.gains(ranking)[:DEPTH]
        first = next((rank for rank, gain in enumerate(gains) if gain > 0), None)
        return {
            "ndcg": self.ndcg(ranking),
            "hit": float(first == 0),
            "mrr": 0.0 if first is None else 1 / (first + 1),
            **(self.coverage(ranking) if self.coverage else {}),
        }


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
    """Build and yield each available corpus."""
    makers = MAKERS
    with kbkit.open(folder) as workspace:
        for name in names or makers:
            found = makers[name](name, folder)
            if isinstance(found, str):
                print(f"{name}: its data is missing, left out: {found}", flush=True)
                continue
            source, questions = found
            complete = folder / f"{name}.complete"
            if not complete.is_file():
                if name not in workspace:
                    spec = KnowledgeBaseSpec(embedding=embedding or StaticEmbedding())
                    workspace.create(name, spec=spec)
                workspace[name].ingest(source)
                getattr(workspace[name], "improve", bool)()  # models embed behind the ingest
                complete.touch()
            yield Corpus(name, workspace[name], questions(workspace[name]))


_Found = tuple[AnySource | list[AnySource], Callable[[kbkit.KnowledgeBase], list[Question]]] | str
"""Sources and questions of a corpus, or the reason why it is missing."""


def _manual(name: str, folder: Path) -> _Found:
    manual = MANUALS[name]
    if not manual.questions.is_file():
        return f"no {manual.questions}"
    if manual.folder is None:
        return f"Debian's package {manual.package} is not installed, and --fetch was not given"
    base = f"http://{name}.invalid/"
    source = kbkit.MirrorSource(path=str(manual.folder), base_url=base, include=manual.include)
    return source, lambda kb: about_rows(manual.questions, path_of)


def _pandas(name: str, folder: Path) -> _Found:
    """The corpus of the quickstart recipe: kbkit's guides, and pandas."""
    if not PANDAS.is_file():
        return f"no {PANDAS}"
    guides = folder / "guides"
    if not guides.is_dir():
        mkdocs = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(guides)]
        quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        subprocess.run(mkdocs, cwd=ROOT, env=quiet, check=True)
    sources: list[AnySource] = [
        kbkit.MirrorSource(path=str(guides), base_url="http://127.0.0.1:8713/"),
        kbkit.PackageSource(name="pandas"),
    ]
    return sources, lambda kb: about_rows(PANDAS, path_of)


def _mkdocs(name: str, folder: Path) -> _Found:
    """The installed code of MkDocs."""
    if not MKDOCS.is_file():
        return f"no {MKDOCS}"
    return kbkit.PackageSource(name="mkdocs"), lambda kb: about_rows(MKDOCS, path_of)


def path_of(uri: str) -> str:
    """Return the name that tables of questions give a page: its path, or an object's name."""
    if "://" not in uri:
        return uri.partition(":")[2].split("#")[0]
    return unquote(urlsplit(uri).path).lstrip("/")


def about_rows(file: Path, name: Callable[[str], str]) -> list[Question]:
    """Read the questions of a table."""
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines() if line]
    return [about_pages(row[0], row[1].split(","), name) for row in rows]


def about_pages(
    text: str, pages: Sequence[str], name: Callable[[str], str] = lambda uri: uri.split("#")[0]
) -> Question:
    """Grade the first page highest; the others count as relevant.

    Args:
        text: The question.
        pages: Names of pages.
        name: Returns the page's name for a URI.
    """
    return _graded(text, dict.fromkeys(pages, 1.0) | {pages[0]: 2.0}, name)


def _graded(text: str, grades: dict[str, float], name: Callable[[str], str] = str) -> Question:
    """Grade documents; a document counts once, at its first passage."""

    def gains(ranking: Sequence[Place]) -> list[float]:
        return [grades.get(page, 0.0) for page in dict.fromkeys(name(one.uri) for one in ranking)]

    return Question(text, gains, tuple(sorted(grades.values(), reverse=True)), grades=grades)


def collection(
    name: str,
) -> tuple[list[dict[str, str]], list[dict[str, str]], dict[str, dict[str, float]]]:
    """Read documents and questions of a test collection, and the grades of each question."""
    home = EVAL / name
    packed = home / "corpus.jsonl.gz"
    whole = gzip.decompress(packed.read_bytes()) if packed.exists() else None
    lines = (whole or (home / "corpus.jsonl").read_bytes()).decode().splitlines()
    grades: dict[str, dict[str, float]] = defaultdict(dict)
    for line in (home / "qrels.tsv").read_text().splitlines()[1:]:
        query, document, grade = line.split("\t")
        if int(grade) > 0:
            grades[query][document] = float(grade)
    asked = [json.loads(line) for line in (home / "queries.jsonl").read_text().splitlines()]
    return (
        [json.loads(line) for line in lines],
        [one for one in asked if one["id"] in grades],
        grades,
    )


def _trec(name: str, folder: Path) -> _Found:
    if not (EVAL / name).is_dir():
        return f"no {EVAL / name}"
    file = folder / f"{name}.jsonl"
    documents, asked, grades = collection(name)
    with file.open("w", encoding="utf-8") as out:
        for one in documents:
            title, text = one["title"], one["text"]
            if title.strip() or text.strip():
                document = {"uri": one["id"], "title": title or text[:80], "text": text or title}
                out.write(json.dumps(document) + "\n")
    return (
        kbkit.JsonlSource(path=str(file)),
        lambda kb: [_graded(one["text"], grades[one["id"]]) for one in asked],
    )


def chunking_questions() -> list[tuple[str, str, tuple[tuple[int, int], ...]]]:
    """Read the questions of Chroma's chunking corpora: text, corpus and ranges that answer."""
    with (EVAL / "chunking/questions.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return [
        (
            row["question"],
            row["corpus_id"],
            tuple((one["start_index"], one["end_index"]) for one in json.loads(row["references"])),
        )
        for row in rows
    ]


def _chunking(name: str, folder: Path) -> _Found:
    home = EVAL / name
    if not home.is_dir():
        return f"no {home}"

    def questions(kb: kbkit.KnowledgeBase) -> list[Question]:
        passages: dict[str, list[Place]] = defaultdict(list)
        uris = {document.id: document.uri for document in kb.documents}
        for chunk in kb.chunks:
            uri = uris[chunk.document_id]
            passages[Path(uri).stem].append(Place(uri, chunk.start, chunk.end))
        return [_about_passages(*one, passages[one[1]]) for one in chunking_questions()]

    return kbkit.FilesSource(path=str(home / "*.md")), questions


def _about_passages(
    text: str, corpus: str, references: Sequence[tuple[int, int]], passages: Sequence[Place]
) -> Question:
    """A passage is relevant if a third of a reference is in it, or a third of it in one."""

    def gain(place: Place) -> float:
        if Path(place.uri).stem != corpus:
            return 0.0
        return float(
            any(
                min(place.end, end) - max(place.start, start)
                > min(end - start, place.end - place.start) / 3
                for start, end in references
            )
        )

    def coverage(ranking: Sequence[Place]) -> dict[str, float]:
        """Return the share of the references in the first hits, and IoU: intersection by union."""
        best = ranking[:PASSAGES]
        found = {
            at
            for place in best
            if Path(place.uri).stem == corpus
            for at in range(place.start, place.end)
        }
        wanted = {at for start, end in references for at in range(start, end)}
        shared, read = len(wanted & found), sum(place.end - place.start for place in best)
        return {"recall": shared / len(wanted), "iou": shared / (read + len(wanted) - shared)}

    relevant = sum(gain(place) for place in passages)

    def gains(ranking: Sequence[Place]) -> list[float]:
        return [gain(place) for place in ranking]

    return Question(text, gains, (1.0,) * int(relevant), coverage)


MAKERS: dict[str, Callable[[str, Path], _Found]] = {
    **dict.fromkeys(MANUALS, _manual),
    "pandas": _pandas,
    "mkdocs": _mkdocs,
    "scifact": _trec,
    "cranfield": _trec,
    "chunking": _chunking,
}


def assorted_questions() -> list[str]:
    """Return different questions, of Python's manual and two test collections."""
    if not (EVAL / "scifact").is_dir() or not PYTHON.is_dir():
        print(f"{EVAL}, {PYTHON}: one of them is not there; this benchmark needs both")
        sys.exit()
    asked = [one.text for one in about_rows(EVAL / "python-questions.tsv", str)]
    for name in ("scifact", "cranfield"):
        asked += [one["text"] for one in collection(name)[1][:75]]
    return asked


def python_manual(
    workspace: kbkit.Workspace, folder: Path, size: int = 20_000
) -> kbkit.KnowledgeBase:
    """Build a knowledge base of about ``size`` chunks from Python's manual."""
    whole = workspace.create("source")
    whole.ingest(kbkit.MirrorSource(path=str(PYTHON), base_url="http://python.invalid/"))
    counts = Counter(chunk.document_id for chunk in whole.chunks)
    documents = [document for document in whole.documents if document.id in counts]
    random.Random(7).shuffle(documents)
    file, total = folder / f"{size}.jsonl", 0
    with file.open("w", encoding="utf-8") as out:
        for document in documents:
            if total >= size:
                break
            total += counts[document.id]
            values = {"uri": document.uri, "title": document.title, "text": document.content}
            out.write(json.dumps(values) + "\n")
    workspace.delete(whole.name, forever=True)  # else it is improved in the background
    kb = workspace.create(f"chunks-{size}")
    kb.ingest(kbkit.JsonlSource(path=str(file)))
    return kb


def fetch_manuals() -> None:
    """Unpack packages of manuals that are not installed, fetched by ``apt-get download``."""
    for manual in MANUALS.values():
        if manual.folder is not None or not manual.questions.is_file():
            continue
        folder = KEPT / "packages"
        folder.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run(["apt-get", "download", manual.package], cwd=folder, check=True)
            [file] = folder.glob(f"{manual.package}_*.deb")
            subprocess.run(["dpkg", "-x", file, folder / manual.package], check=True)
        except (OSError, subprocess.CalledProcessError, ValueError) as error:
            print(f"{manual.package}: cannot be fetched: {error}", flush=True)


def kept_folder(name: str, rebuild: bool = False) -> Path:
    """Return the kept folder of a knowledge base; it is emptied if other code made it.

    Args:
        name: Name of the set or knowledge base.
        rebuild: Empty the folder anyway.
    """
    folder, digest = KEPT / "kbs" / name, _code_of_ingest()
    note = folder / "made-by"
    if rebuild or not note.is_file() or note.read_text() != digest:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        note.write_text(digest)
    return folder


def _code_of_ingest() -> str:
    """Hash the code that determines the content of a knowledge base."""
    rooms = ("sources", "markdown", "text", "ingest", "embedding", "stores", "recipes", "models")
    digest = hashlib.sha256(sys.version.encode())
    for room in rooms:
        for file in sorted((ROOT / "kbkit" / room).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


@contextmanager
def bench_folder() -> Iterator[Path]:
    """Yield a temporary folder for workspaces."""
    with tempfile.TemporaryDirectory(prefix="kbkit-bench-") as folder:
        yield Path(folder)


def report(name: str, lines: Sequence[str], folder: Path = TABLES) -> None:
    """Print a table with the load of the machine, and write it to ``build/bench``."""
    loads = " and ".join(f"{load:.1f}" for load in os.getloadavg()[:2])
    machine = f"{os.cpu_count()} processors; load of the last minute and five minutes: {loads}."
    text = "\n".join([*lines, "", machine]) + "\n"
    print(text)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Format a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]
