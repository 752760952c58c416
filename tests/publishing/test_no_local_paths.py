"""Nothing that is published says where files lie on the machine that published it."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

import pytest

import kbkit
from kbkit.publishing.published_index import PublishedIndex
from kbkit.recipes import FilesSource, JsonlSource, MirrorSource, OpenApiSource, PackageSource

PACKAGE = '''
"""A package that knows where it is."""
import pathlib
import sys

CACHE = pathlib.Path.home() / "cache"

def _made(folder=CACHE, prefix=sys.prefix):
    pass

made = _made
made.__doc__ = f"Cleans what lies in {CACHE} and in {sys.prefix}, where it keeps its things."

def open_cache(folder=CACHE):
    """Open the cache of this package, which is a folder of the user."""
'''
API = {
    "openapi": "3.0.0",
    "info": {"title": "Tea", "version": "1"},
    "paths": {
        "/tea": {"get": {"summary": "Makes tea", "responses": {"200": {"description": "."}}}}
    },
}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A home folder with sources of every kind, a process that runs elsewhere, and the kb."""
    home = tmp_path / "home/somebody"
    docs = home / "manuals/docs"
    (docs / "deep").mkdir(parents=True)
    (docs / "index.md").write_text(
        "# Home\n\nSee [deep](deep/page.md) and [the other](other.txt).\n"
    )
    (docs / "deep/page.md").write_text("# Deep\n\n[up](../index.md)\n")
    (docs / "other.txt").write_text("Just words of another file.\n")
    (docs / "book.csv").write_text("name,price\ntea,1\n")
    (home / "single.md").write_text("# Single\n\nOne file alone.\n")
    (home / "paper.pdf").write_bytes(_pdf("Words of a paper on tea."))
    (home / "api.json").write_text(json.dumps(API))
    lines = [
        {"uri": str(docs / "line.md"), "title": "Line", "text": "A line of JSON."},
        {"uri": (docs / "second.md").as_uri(), "title": "Second", "text": "Another line."},
    ]
    (home / "lines.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (home / "mirror").mkdir()
    (home / "mirror/page.html").write_text("<h1>Mirrored</h1><p>Text of a mirrored page.</p>")
    package = home / "lib/knowsitsplace"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(textwrap.dedent(PACKAGE))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.syspath_prepend(str(home / "lib"))
    monkeypatch.setenv("PYTHONPATH", f"{home / 'lib'}:{Path(kbkit.__file__).parents[1]}")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return home


def _pdf(text):
    """A PDF of one page, by hand."""
    stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % o for o in offsets)
    return bytes(out + b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % start)


def sources(home):
    return [
        FilesSource(path=str(home / "manuals/docs"), tags=("manuals",)),
        FilesSource(path=str(home / "single.md")),
        FilesSource(path=str(home / "*.pdf")),
        OpenApiSource(path=str(home / "api.json")),
        JsonlSource(path=str(home / "lines.jsonl")),
        MirrorSource(path=str(home / "mirror"), base_url="https://mirror.test/"),
        PackageSource(name="knowsitsplace", introspect=True),
    ]


def leaks(machine, text):
    """Places of this machine that a text says."""
    places = [machine.parent.parent, Path(sys.prefix), Path(kbkit.__file__).parents[1]]
    return [str(place) for place in places if str(place) in text]


def test_no_output_says_where_files_are(machine, tmp_path):
    with kbkit.open(machine / "workspace") as workspace:
        kb = workspace.create("tea")
        report = kb.ingest(*sources(machine))
        assert not report.failed, report.failed
        uris = {document.uri for document in kb.documents}
        for uri in ("docs/deep/page.md", "docs/other.txt", "single.md", "api.json", "paper.pdf"):
            assert uri in uris, (uri, uris)
        assert "python:knowsitsplace.made" in uris
        made = kb.documents["python:knowsitsplace.made"].content
        assert "~/cache" in made
        kb.rate(kb.documents["single.md"].id, 5, query="one file")
        kb.feedback.judgements().to_qrels(tmp_path / "judgements.qrels")
        said = {
            "hits": json.dumps(kb.search("tea", limit=50).to_dict()),
            "documents": json.dumps([one.to_dict() for one in kb.documents]),
            "frame": kb.documents.to_frame().to_csv(),
            "rated": kb.ratings.to_frame().to_csv(),
            "report": json.dumps(report.to_dict()),
            "qrels": (tmp_path / "judgements.qrels").read_text(),
            "shown": kb.search("tea")._repr_html_(),
        }
        export = kb.export(folder=tmp_path / "out", standalone=True)
        kb.export(folder=tmp_path / "pages/kb", pages_only=True)
    for name, text in said.items():
        assert not leaks(machine, text), name
    files = [path for top in ("out", "pages") for path in (tmp_path / top).rglob("*")]
    assert len(files) > 100
    for path in files:
        inside = path.relative_to(tmp_path).as_posix()
        assert "somebody" not in inside, inside
        if path.is_file():
            found = leaks(machine, path.read_bytes().decode("utf-8", "replace"))
            assert not found, (inside, found)
    index = PublishedIndex.open(tmp_path / "out/docs")
    assert any(hit.title == "Single" for hit in index.search("one file alone"))
    assert export.documents == len(uris)


def test_links_between_files_of_a_source_are_kept(machine, tmp_path):
    with kbkit.open(machine / "workspace") as workspace:
        kb = workspace.create("tea")
        kb.ingest(*sources(machine)[:1])
        kb.export(folder=tmp_path / "out", build=False)
    pages = {path.stem: path.read_text() for path in (tmp_path / "out/docs").rglob("*.md")}
    assert "](deep/page.md)" in next(text for text in pages.values() if "[the other]" in text)
    assert "[up](" in pages["page"]


def test_folders_of_one_name_keep_their_documents_apart(tmp_path, monkeypatch):
    for folder in ("one/docs", "two/docs"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.md").write_text(f"# {folder}\n\nText of {folder}.\n")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("both")
        for folder in ("one/docs", "two/docs"):
            kb.ingest(FilesSource(path=str(tmp_path / folder)))
        assert [one.uri for one in kb.documents] == ["docs-2/a.md", "docs/a.md"]
        assert kb.refresh().same == 2
