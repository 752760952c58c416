"""Published files contain no local paths."""

import io
import json
import platform
import shutil
import socket
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest
from PIL import Image as Pillow
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

import kbkit
from kbkit.export.published_index import PublishedIndex
from kbkit.recipes import FilesSource, JsonlSource, MirrorSource, OpenApiSource, PackageSource
from tests.sources.formats import samples

HOST = "workshop-of-somebody"
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
    """A home folder with sources of every kind."""
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
    (home / "paper.pdf").write_bytes(samples.pdf(2))
    _write_files(home / "files")
    (home / "site").mkdir()
    (home / "site/index.html").write_text("<h1>Packed</h1><p>Text of a packed page.</p>")
    shutil.make_archive(str(home / "packed"), "zip", home / "site")
    _write_warc(home / "crawled.warc.gz")
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
    monkeypatch.setattr(socket, "gethostname", lambda: HOST)
    monkeypatch.setattr(platform, "node", lambda: HOST)
    monkeypatch.setenv("HOSTNAME", HOST)
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.syspath_prepend(str(home / "lib"))
    monkeypatch.setenv("PYTHONPATH", f"{home / 'lib'}:{Path(kbkit.__file__).parents[1]}")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return home


def _write_files(folder):
    """Write a file of each format, and a table of contents."""
    folder.mkdir()
    for name, data in {
        "book.epub": samples.epub(),
        "guide.docx": samples.docx(),
        "talk.pptx": samples.pptx(),
        "prices.xlsx": samples.xlsx(3),
        "analysis.ipynb": _notebook(folder),
        "table.csv": samples.csv_file(3),
        "notes.rst": b"Notes\n=====\n\n.. image:: box.png\n\nSee `here <guide.docx>`_.\n",
        "settings.yaml": b"tea:\n  minutes: 3\n",
        "brew.py": b'"""Brews tea."""\n\ndef brew(minutes):\n    """Wait."""\n',
        "page.html": b"<title>Page</title><h1>Page</h1><p>Of tea.<img src='box.png'></p>",
        "shown.md": b"# Shown\n\n![a box](box.png) and ![none](gone.png)\n",
        "mkdocs.yml": b"nav:\n  - Shown: shown.md\n",
    }.items():
        (folder / name).write_bytes(data)
    Pillow.new("RGB", (4, 3), "red").save(folder / "box.png")


def _notebook(folder):
    """Return a notebook with local paths in its metadata."""
    values = json.loads(samples.notebook())
    values["metadata"]["kernelspec"] = {"name": "python3", "path": str(folder)}
    values["metadata"]["widgets"] = {"cwd": str(folder)}
    return json.dumps(values).encode()


def _write_warc(path):
    with path.open("wb") as stream:
        writer = WARCWriter(stream, gzip=True)
        headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.0")
        page = io.BytesIO(b"<h1>Archived</h1><p>Text of an archived page.</p>")
        record = writer.create_warc_record(
            "https://archive.test/a.html", "response", payload=page, http_headers=headers
        )
        writer.write_record(record)


def sources(home):
    return [
        FilesSource(path=str(home / "manuals/docs"), tags=("manuals",)),
        FilesSource(path=str(home / "single.md")),
        FilesSource(path=str(home / "*.pdf")),
        FilesSource(path=str(home / "files")),
        MirrorSource(path=str(home / "packed.zip"), base_url="https://packed.test/"),
        MirrorSource(path=str(home / "crawled.warc.gz")),
        OpenApiSource(path=str(home / "api.json")),
        JsonlSource(path=str(home / "lines.jsonl")),
        MirrorSource(path=str(home / "mirror"), base_url="https://mirror.test/"),
        PackageSource(name="knowsitsplace", introspect=True),
    ]


def leaks(machine, text):
    """Return local paths in a text, and the name of the machine."""
    places = [machine.parent.parent, Path(sys.prefix), Path(kbkit.__file__).parents[1]]
    return [name for name in (*map(str, places), HOST) if name in text]


def test_no_output_contains_local_paths(machine, tmp_path):
    with kbkit.open(machine / "workspace") as workspace:
        kb = workspace.create("tea")
        report = kb.ingest(*sources(machine))
        assert not report.failed, report.failed
        uris = {document.uri for document in kb.documents}
        for uri in ("docs/deep/page.md", "docs/other.txt", "single.md", "api.json", "paper.pdf"):
            assert uri in uris, (uri, uris)
        read = {uri.split("/")[1] for uri in uris if uri.startswith("files/")}
        assert read == {path.name for path in (machine / "files").iterdir()} - {"box.png"}
        assert {"https://packed.test/index.html", "https://archive.test/a.html"} <= uris
        assert kb.documents["files/shown.md"].images
        assert "python:knowsitsplace.made" in uris
        made = kb.documents["python:knowsitsplace.made"].content
        assert "~/cache" in made
        kb.rate(kb.documents["single.md"].id, 5, query="one file")
        kb.feedback.judgements().to_qrels(tmp_path / "judgements.qrels")
        outputs = {
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
    for name, text in outputs.items():
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


def test_folders_of_one_name_get_different_uris(tmp_path, monkeypatch):
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
