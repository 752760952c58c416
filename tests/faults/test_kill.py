"""A build is killed at random instants; no commit is lost or partial."""

import contextlib
import os
import random
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

import kbkit
from kbkit.recipes import load_recipe
from kbkit.testing import serve_folder
from tests.faults.actions import BUILD
from tests.faults.cases import Case, check_sound
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


def new(place, site):
    place.mkdir()
    source = f"{{type: crawl, url: '{site}', allow_private: true}}"
    (place / "recipe.yaml").write_text(f"name: numbers\nsources: [{source}]\n")
    return Case(place)


def check(case):
    """Check invariants of a workspace; return its committed documents."""
    state = check_sound(case)
    documents = {key[-1]: value for key, value in state.items() if key[0] == "document"}
    # no page has two addresses
    assert len({uri.removesuffix("index.html") for uri in documents}) == len(documents)
    return documents


def contents(folder):
    with kbkit.open(folder) as workspace:
        kb = workspace["numbers"]
        return (
            {document.uri: document.content for document in kb.documents},
            {(c.start, c.end, c.text) for c in kb.chunks},
            kb.info().pending,
        )


@pytest.mark.soak
def test_repeatedly_killed_build_equals_an_undisturbed_one(site, children, tmp_path):
    whole = new(tmp_path / "whole", site)
    status, _, usual, *_ = children.act(whole, BUILD)
    assert status == 0
    rng = random.Random(20)
    killed, committed = 0, {}
    case = new(tmp_path / "0", site)
    for attempt in range(KILLS):
        # short, so that one build is killed several times
        seconds = rng.uniform(0.02, usual * rng.choice((0.3, 1.0)))
        killed += os.WIFSIGNALED(children.act(case, BUILD, seconds=seconds)[0])
        if not (case.folder / "catalog.db").exists():
            continue
        now = check(case)
        assert committed.items() <= now.items()  # no commit is lost or changed
        committed = now
        if len(now) == DOCUMENTS:  # complete: begin a new one
            case, committed = new(tmp_path / f"{attempt + 1}", site), {}
    assert killed >= KILLS // 2
    assert children.act(case, BUILD)[0] == 0
    check(case)
    assert contents(case.folder) == contents(whole.folder)


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
def test_resumed_crawl_knows_all_addresses_of_a_page(site, children, tmp_path):
    """The start page is stored late; a resumed crawl must know its other address."""
    case = new(tmp_path / "case", site)
    with ThreadPoolExecutor(1) as threads:
        building = threads.submit(children.act, case, BUILD)
        until(lambda: stored(case.folder), pause=0.005)
        (child,) = psutil.Process(children.process.pid).children()
        child.kill()
        assert os.WIFSIGNALED(building.result()[0])
    assert 0 < len(check(case)) < DOCUMENTS
    assert children.act(case, BUILD)[0] == 0
    assert len(check(case)) == DOCUMENTS


@pytest.mark.slow
def test_resumed_build_fetches_each_page_once(site, tmp_path):
    spec = load_recipe(new(tmp_path / "case", site).place / "recipe.yaml").sources
    with kbkit.open(tmp_path / "kb") as workspace:
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
