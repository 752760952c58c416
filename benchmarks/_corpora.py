"""What the benchmarks of retrieval search: corpora with questions whose answers are known.

Test collections and the questions about Python, SQLite, Apache, Django and pandas are read from
``../shared/eval``; those of ``benchmarks/questions`` are the project's own. The manuals are
Debian's packages, where they are installed or where `fetch_manuals` unpacked them. What is missing
is told and left out.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
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
"""Where knowledge bases, packages and vectors stay from one run to the next."""
DEPTH = 10
PASSAGES = 5
"""Passages that recall and IoU look at."""


@dataclass(frozen=True, slots=True)
class Manual:
    """Pages of a Debian package, and questions about them.

    Attributes:
        questions: A file of questions: the text, tab, pages that answer it, the best one first.
        package: The package that has the pages.
        path: Where it has them below ``/usr/share/doc``.
        include: Globs of the pages to read; none for all.
    """

    questions: Path
    package: str
    path: str
    include: tuple[str, ...] = ()

    @property
    def folder(self) -> Path | None:
        """Where the pages are, if they are anywhere."""
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
"""Questions whose answers are objects of installed packages, by qualified name."""


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
        coverage: Further figures of a ranking, where passages are sought.
        grades: By page, what it is worth, where pages are sought.
    """

    text: str
    gains: Callable[[Sequence[Place]], list[float]]
    ideal: tuple[float, ...]
    coverage: Callable[[Sequence[Place]], dict[str, float]] | None = None
    grades: Mapping[str, float] = field(default_factory=dict)

    def ndcg(self, ranking: Sequence[Place]) -> float:
        """nDCG@10."""
        best = _dcg(self.ideal[:DEPTH])
        return _dcg(self.gains(ranking)[:DEPTH]) / best if best else 0.0

    def figures(self, ranking: Sequence[Place]) -> dict[str, float]:
        """nDCG@10, whether the first answer is right (Hit@1), and MRR@10."""
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
    """Build each corpus that is there in a workspace and give it."""
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
"""What to read and what to ask; or what is missing."""


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
    """What the quickstart recipe holds: the guides of kbkit, and pandas."""
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
    """A code base: MkDocs as it is installed."""
    if not MKDOCS.is_file():
        return f"no {MKDOCS}"
    return kbkit.PackageSource(name="mkdocs"), lambda kb: about_rows(MKDOCS, path_of)


def path_of(uri: str) -> str:
    """What tables of questions call a page: its path, or the name of an object."""
    if "://" not in uri:
        return uri.partition(":")[2].split("#")[0]
    return unquote(urlsplit(uri).path).lstrip("/")


def about_rows(file: Path, name: Callable[[str], str]) -> list[Question]:
    """The questions of a table."""
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines() if line]
    return [about_pages(row[0], row[1].split(","), name) for row in rows]


def about_pages(
    text: str, pages: Sequence[str], name: Callable[[str], str] = lambda uri: uri.split("#")[0]
) -> Question:
    """The first page is the best, the others count as relevant.

    Args:
        text: The question.
        pages: Names of pages.
        name: The name of the page that has a URI.
    """
    return _graded(text, dict.fromkeys(pages, 1.0) | {pages[0]: 2.0}, name)


def _graded(text: str, grades: dict[str, float], name: Callable[[str], str] = str) -> Question:
    """Documents have grades; a document counts where it is found first."""

    def gains(ranking: Sequence[Place]) -> list[float]:
        return [grades.get(page, 0.0) for page in dict.fromkeys(name(one.uri) for one in ranking)]

    return Question(text, gains, tuple(sorted(grades.values(), reverse=True)), grades=grades)


def _trec(name: str, folder: Path) -> _Found:
    home = EVAL / name
    if not home.is_dir():
        return f"no {home}"
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
        return f"no {home}"

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

    def coverage(ranking: Sequence[Place]) -> dict[str, float]:
        """Share of the references that the first hits hold, and IoU; see `chunking.py`."""
        best = ranking[:PASSAGES]
        found = {
            at
            for place in best
            if Path(place.uri).stem == row["corpus_id"]
            for at in range(place.start, place.end)
        }
        wanted = {at for start, end in references for at in range(start, end)}
        shared, read = len(wanted & found), sum(place.end - place.start for place in best)
        return {"recall": shared / len(wanted), "iou": shared / (read + len(wanted) - shared)}

    relevant = sum(gain(place) for place in passages)
    return Question(
        row["question"],
        lambda ranking: [gain(place) for place in ranking],
        (1.0,) * int(relevant),
        coverage,
    )


MAKERS: dict[str, Callable[[str, Path], _Found]] = {
    **dict.fromkeys(MANUALS, _manual),
    "pandas": _pandas,
    "mkdocs": _mkdocs,
    "scifact": _trec,
    "cranfield": _trec,
    "chunking": _chunking,
}


def fetch_manuals() -> None:
    """Unpack the packages of manuals that are not installed, by ``apt-get download``."""
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
    """The folder of a set's knowledge base, empty unless the code that made it is this one's.

    Args:
        name: Of the set, or of what is made.
        rebuild: Whether to begin anew in any case.
    """
    folder, digest = KEPT / "kbs" / name, _code_of_ingest()
    note = folder / "made-by"
    if rebuild or not note.is_file() or note.read_text() != digest:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        note.write_text(digest)
    return folder


def _code_of_ingest() -> str:
    """A digest of the code that decides what a knowledge base holds."""
    rooms = ("sources", "markdown", "text", "ingest", "embedding", "stores", "recipes", "models")
    digest = hashlib.sha256(sys.version.encode())
    for room in rooms:
        for file in sorted((ROOT / "kbkit" / room).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


@contextmanager
def bench_folder() -> Iterator[Path]:
    """A folder for workspaces, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="kbkit-bench-") as folder:
        yield Path(folder)


def report(name: str, lines: Sequence[str], folder: Path = TABLES) -> None:
    """Print a table and keep it under ``build/bench``, with what else the machine had to do."""
    loads = " and ".join(f"{load:.1f}" for load in os.getloadavg()[:2])
    machine = f"{os.cpu_count()} processors; load of the last minute and five minutes: {loads}."
    text = "\n".join([*lines, "", machine]) + "\n"
    print(text)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]
