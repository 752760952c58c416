"""A build is killed at random instants; no commit is lost or partial."""

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

import kbkit
from kbkit.recipes import load_recipe
from kbkit.testing import serve_folder
from tests.waiting import until

KILLS = 20 if "KBKIT_EXAMPLES" in os.environ else 8  # all of them in `make soak`
PAGES = 40
DOCUMENTS = PAGES + 2
"""The pages, the start page and that of a folder, without the copy."""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

PAGE = """<!doctype html><html lang="en"><head><title>Page {n}</title></head><body>
<nav><a href="index.html">home</a> <a href="./">start</a> <a href="old/index.html">old</a>
<a href="old/">older</a> <a href="copy.html">copy</a></nav><main><h1>Page {n}</h1>
<p>{words}</p><h2 id="more">More about {n}</h2><p>The number {n} has a friend:
<a href="page{next}.html">page {next}</a>, and says {words}.</p>
<pre><code>value = {n}
</code></pre></main></body></html>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    rng = random.Random(7)
    words = [f"word{i}" for i in range(500)]
    for n in range(PAGES):
        text = " ".join(rng.choices(words, k=120))
        page = PAGE.format(n=n, next=(n + 1) % PAGES, words=text)
        (folder / f"page{n}.html").write_text(page)
    # it links to all pages, so that many are stored before it
    every = " ".join(f'<a href="page{n}.html">page {n}</a>' for n in range(PAGES))
    (folder / "index.html").write_text(PAGE.format(n="index", next=0, words=f"welcome {every}"))
    # pages with several addresses: folders and their index pages, and a copy
    (folder / "old").mkdir()
    old = PAGE.format(n="old", next=0, words="of old").replace('href="', 'href="../')
    (folder / "old" / "index.html").write_text(old)
    original = '</title><link rel="canonical" href="page7.html">'
    copy = PAGE.format(n=7, next=8, words="copied").replace("</title>", original)
    (folder / "copy.html").write_text(copy)
    with serve_folder(folder) as url:
        yield url


@pytest.fixture(scope="module")
def recipe(site, tmp_path_factory):
    path = tmp_path_factory.mktemp("recipe") / "recipe.yaml"
    path.write_text(
        f"name: numbers\nsources:\n  - {{type: crawl, url: '{site}', allow_private: true}}\n"
    )
    return path


class Builder:
    def __init__(self):
        script = Path(__file__).with_name("builder_process.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout.readline() == "ready\n"

    def start(self, recipe, workspace):
        self.process.stdin.write(f"{recipe}\t{workspace}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def status(self):
        return int(self.process.stdout.readline())

    def build(self, recipe, workspace):
        self.start(recipe, workspace)
        assert self.status() == 0

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def builder():
    running = Builder()
    yield running
    running.close()


def check(folder):
    """Check invariants of a workspace; return its committed documents."""
    with sqlite3.connect(folder / "catalog.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    with kbkit.open(folder) as workspace:
        if "numbers" not in workspace:
            return {}
        kb = workspace["numbers"]
        documents = {document.id: document for document in kb.documents}
        # no page has two addresses
        places = {document.uri.removesuffix("index.html") for document in documents.values()}
        assert len(places) == len(documents)
        chunks = list(kb.chunks)
        assert {chunk.document_id for chunk in chunks} == documents.keys()
        for chunk in chunks:
            assert documents[chunk.document_id].content[chunk.start : chunk.end] == chunk.text
        for document in documents.values():  # both retrievers find it, whatever Chroma lost
            for mode in ("lexical", "dense"):
                hits = kb.search(f"more about {document.title}", limit=10, mode=mode)
                assert hits
        for chunk in random.Random(1).sample(chunks, min(3, len(chunks))):
            assert chunk.id in {
                # pages of links may rank last
                hit.chunk.id
                for hit in kb.search(chunk.text, limit=len(chunks), mode="hybrid")
            }
        with sqlite3.connect(folder / "catalog.db") as connection:
            count = connection.execute("SELECT count(*) FROM vectors").fetchone()[0]
        assert count == len(chunks)
        return {document.uri: document.content_hash for document in documents.values()}


def contents(folder):
    with kbkit.open(folder) as workspace:
        kb = workspace["numbers"]
        return (
            {document.uri: document.content for document in kb.documents},
            {(c.start, c.end, c.text) for c in kb.chunks},
            kb.info().pending,
        )


@pytest.mark.soak
def test_repeatedly_killed_build_equals_an_undisturbed_one(recipe, builder, tmp_path):
    start = time.monotonic()
    builder.build(recipe, tmp_path / "whole")
    usual = time.monotonic() - start
    rng = random.Random(20)
    killed, committed = 0, {}
    folder = tmp_path / "kb0"
    for attempt in range(KILLS):
        child = builder.start(recipe, folder)
        # short, so that one build is killed several times
        time.sleep(rng.uniform(0.02, usual * rng.choice((0.3, 1.0))))
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.kill(child, signal.SIGKILL)
        killed += os.WIFSIGNALED(builder.status())
        if not (folder / "catalog.db").exists():
            continue
        now = check(folder)
        assert committed.items() <= now.items()  # no commit is lost or changed
        committed = now
        if len(now) == DOCUMENTS:  # complete: begin a new one
            folder, committed = tmp_path / f"kb{attempt + 1}", {}
    assert killed >= KILLS // 2
    builder.build(recipe, folder)
    check(folder)
    undisturbed, killed_often = contents(tmp_path / "whole"), contents(folder)
    assert killed_often[0] == undisturbed[0]
    assert killed_often[1] == undisturbed[1]
    assert killed_often[2] == 0


def stored(folder):
    """Number of committed documents."""
    try:
        with contextlib.closing(
            sqlite3.connect(f"file:{folder}/catalog.db?mode=ro", uri=True)
        ) as c:
            return c.execute("SELECT count(*) FROM documents").fetchone()[0]
    except sqlite3.OperationalError:  # not created yet
        return 0


@pytest.mark.slow
def test_resumed_crawl_knows_all_addresses_of_a_page(recipe, builder, tmp_path):
    """The start page is stored late; a resumed crawl must know its other address."""
    child = builder.start(recipe, tmp_path)
    until(lambda: stored(tmp_path), pause=0.005)
    os.kill(child, signal.SIGKILL)
    assert os.WIFSIGNALED(builder.status())
    assert 0 < len(check(tmp_path)) < DOCUMENTS
    builder.build(recipe, tmp_path)
    assert len(check(tmp_path)) == DOCUMENTS


@pytest.mark.slow
def test_resumed_build_fetches_each_page_once(site, recipe, builder, tmp_path):
    spec = load_recipe(recipe).sources
    with kbkit.open(tmp_path) as workspace:
        kb = workspace.create("numbers")
        seen = []
        first = kb.ingest(
            *spec, on_progress=lambda p: seen.append(p.message), stop=lambda: len(seen) >= 10
        )
        assert first.interrupted
        second = kb.ingest(*spec)
        assert first.new + second.new == DOCUMENTS
        assert first.fetched + second.fetched == DOCUMENTS
        assert second.same == 0
