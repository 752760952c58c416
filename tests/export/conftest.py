"""Documents to export, published indexes, and scripts in Node."""

import itertools
import json
import re
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from kbkit.export.facts import Manifest
from kbkit.export.index_content import index_content
from kbkit.export.index_writer import write_index
from kbkit.export.published_index import PublishedIndex
from kbkit.models import Document, DocumentState, DocumentType, KnowledgeBaseInfo

ROOT = Path(__file__).parents[2]
LIMIT = 10
"""Hits of a search."""
JS = ROOT / "tests" / "js"
QUESTIONS = ROOT.parent / "shared" / "eval" / "python-questions.tsv"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)

_numbers = itertools.count()


def make_document(
    uri: str,
    content: str = "",
    *,
    title: str | None = None,
    tags: tuple[str, ...] = (),
    state: DocumentState = DocumentState.CURRENT,
) -> Document:
    return Document(
        id=f"d{next(_numbers)}",
        uri=uri,
        title=uri if title is None else title,
        content=content,
        document_type=DocumentType.REFERENCE,
        tags=tags,
        metadata={},
        state=state,
        fetched_at=NOW,
        content_hash="",
    )


def make_info(name: str = "notes", *, description: str = "", documents: int = 1):
    return KnowledgeBaseInfo(
        id=name,
        name=name,
        description=description,
        source_types=("crawl", "package"),
        documents=documents,
        chunks=3210,
        embedder="static",
        dimensions=256,
        collection=name,
        created_at=NOW,
        updated_at=NOW,
        states={"current": documents, "gone": 2},
        document_types={"reference": documents},
        pending=0,
    )


@pytest.fixture(scope="session")
def document() -> Callable[..., Document]:
    return make_document


@pytest.fixture(scope="session")
def info() -> Callable[..., KnowledgeBaseInfo]:
    return make_info


@pytest.fixture(scope="session")
def hostile() -> Document:
    """A document with attacks in all fields."""
    path = Path(__file__).with_name("hostile.yaml")
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    return make_document(
        values["uri"], values["content"], title=values["title"], tags=tuple(values["tags"])
    )


def pages_of(kb):
    return {document.uri: f"{n}.md" for n, document in enumerate(kb.documents)}


def content_of(kb, pages=None, **options):
    """Return the content of an index, by default of all documents."""
    manifest = Manifest("", "Guides", pages_of(kb) if pages is None else pages)
    return index_content(kb._stores, kb.id, manifest, **options)


def published(kb, folder, pages=None, **options):
    write_index(content_of(kb, pages, **options), folder)
    return PublishedIndex.open(folder)


def run_node(node, script, folder, values):
    """Run a script with values and return what it writes."""
    asked, answers = folder / "asked.json", folder / "answers.json"
    asked.write_text(json.dumps(values))
    command = [node, "--import", JS / "modules.js", script, asked, answers]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    if done.returncode:
        raise OSError(done.stderr)
    return json.loads(answers.read_text())


def in_node(node, index, tmp_path, queries, *options, model=""):
    """Return the engine's hits for each query, or for one query with each of some options."""
    pairs = [(queries, option) for option in options] or [(query, {}) for query in queries]
    values = {"folder": str(index.folder), "asked": pairs, "model": str(model)}
    return [
        answer["hits"] for answer in run_node(node, JS / "search.js", tmp_path, values)["found"]
    ]


def assert_same_hits(hits, expected, message=""):
    """Compare ten hits of the engine with Python's: pass more, since equal scores may swap."""
    scores = {hit.chunk: hit.score for hit in expected}
    rows = [hit["row"] for hit in hits]
    assert len(set(rows)) == len(rows) == min(LIMIT, len(expected)), message
    best = pytest.approx([hit.score for hit in expected[:LIMIT]])
    assert [hit["score"] for hit in hits] == best, message
    assert [scores.get(row, 0.0) for row in rows] == best, message


def headings_of(kb):
    return sorted({part for path in kb.chunks.to_frame()["heading_path"] for part in path})


def elements(text: str) -> list[tuple[str, dict[str, str]]]:
    """Return names and attributes of the elements of a page."""
    found = []

    class Elements(HTMLParser):
        def handle_starttag(self, tag, attrs):
            found.append((tag, {name: value or "" for name, value in attrs}))

    Elements().feed(text)
    return found


def times_of(folder: Path, pattern: str = "*") -> dict[Path, int]:
    """Return times of the last change of files."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob(pattern)}


def front_matter(path: Path) -> dict:
    return yaml.safe_load(path.read_text("utf-8").split("---\n")[1])


def body_of(path: Path) -> str:
    return path.read_text("utf-8").split("---\n", 2)[2]


def graph_script(site: Path) -> tuple[Path, dict]:
    """Return the script of the only graph of a site, and its values."""
    (script,) = (site / "assets/kbkit/graphs").glob("*.js")
    return script, json.loads(re.fullmatch(r"kbkitGraph\((.*)\);\n", script.read_text())[1])
