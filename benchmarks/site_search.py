"""Search in a published site, in Chromium: kbkit, Material's own search, and Pagefind.

Questions of a person about the Python documentation: how good the pages are that each finds, what
a browser has to load for the first result, and how long a keystroke takes. Material's own search
and kbkit are asked in the search box; Pagefind, which has no box of its own there, by its
JavaScript, with the ten best results loaded. Bytes are those of a server that compresses.

Run from the project's root: ``python benchmarks/site_search.py [FOLDER]``; what the folder has is
not built again. Pagefind is installed by npm into it; without npm it is left out.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import mean, median, quantiles
from typing import Any
from urllib.parse import unquote, urlsplit

from _corpora import Corpus, Place, Question, corpora, report, table

import kbkit
from kbkit.export import build_site
from kbkit.export.manifest import Manifest
from kbkit.recipes import RetrievalSpec

BOX = "input.md-search__input"
PAGES = 10
PAGEFIND = "1.6.0"
TYPED = """
(() => {
  let keyed = 0;
  let done = () => {};
  const box = document.querySelector("input.md-search__input");
  box.addEventListener("keyup", () => (keyed = performance.now()), true);
  const told = document.querySelector(".md-search-result__meta"); // anew with each answer
  new MutationObserver(() => requestAnimationFrame(() => done(performance.now() - keyed))).observe(
    told, { childList: true });
  window.painted = () => new Promise((resolve) => (done = resolve));
})()
"""
FOUND = """
[...document.querySelectorAll(".md-search-result__item")].map(
  (item) => item.querySelector("a").href)
"""
ASK_KBKIT = """
async (query) => {
  const { search } = JSON.parse(document.getElementById("__config").textContent);
  window.asked ??= new Worker(new URL(search, location.href));
  return new Promise((resolve) => {
    window.asked.onmessage = ({ data }) => resolve(data.hits.map((hit) => hit.page));
    window.asked.postMessage(
      { kbkit: "search", id: 1, query, options: { limit: 60, kbs: ["python"] } });
  });
}
"""
ASK_PAGEFIND = """
async (query) => {
  window.pagefind ??= await import("/pagefind/pagefind.js");
  const start = performance.now();
  const { results } = await window.pagefind.search(query);
  const shown = await Promise.all(results.slice(0, 10).map((result) => result.data()));
  return [shown.map(({ url }) => url), performance.now() - start];
}
"""


def build(kb: kbkit.KnowledgeBase, folder: Path) -> dict[str, Path]:
    """The sites, by the name of their search."""
    ours, theirs, found = folder / "kbkit", folder / "material", folder / "pagefind"
    if not (ours / "site").is_dir():
        kb.export(ours)
    if not (theirs / "site").is_dir():
        ignored = shutil.ignore_patterns("search", "*.lock", "site")
        shutil.copytree(ours, theirs, ignore=ignored, dirs_exist_ok=True)
        build_site(theirs)
    sites = {"kbkit": ours / "site", "Material": theirs / "site"}
    if not (found / "pagefind").is_dir() and (npm := shutil.which("npm")):
        shutil.copytree(theirs / "site", found, dirs_exist_ok=True)
        tools = folder / "npm"
        tools.mkdir(exist_ok=True)
        run = partial(subprocess.run, check=False, cwd=tools)
        run([npm, "install", "--silent", "--no-audit", "--no-fund", f"pagefind@{PAGEFIND}"])
        run([tools / "node_modules/.bin/pagefind", "--site", found, "--root-selector", "article"])
    if (found / "pagefind").is_dir():
        sites["Pagefind"] = found
    return sites


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Address of a site."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site)))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def compressed(path: Path) -> int:
    """Bytes of a file on the wire."""
    data = path.read_bytes()
    return min(len(data), len(gzip.compress(data)))


class Loads:
    """What a page has asked for its search."""

    def __init__(self, page: Any, site: Path) -> None:
        self._site, self._paths = site, dict[str, None]()
        page.on("request", lambda request: self._note(request.url))

    def _note(self, url: str) -> None:
        path = unquote(urlsplit(url).path).lstrip("/")
        of_search = ("search" in path, "assets/kbkit/" in path, "pagefind" in path)
        if any(of_search) and (self._site / path).is_file():
            self._paths[path] = None

    def so_far(self) -> tuple[int, int]:
        """Bytes and requests."""
        return sum(compressed(self._site / path) for path in self._paths), len(self._paths)


def type_in(page: Any, query: str) -> float:
    """Milliseconds from the last key of a query to its results in the box."""
    box = page.locator(BOX)
    box.fill("")
    box.press_sequentially(query[:-1], delay=5)
    page.wait_for_timeout(500)  # what is typed before is answered
    waiting = page.evaluate_handle("({ painted: painted() })")
    box.press_sequentially(query[-1])
    elapsed: float = waiting.evaluate("({ painted }) => painted")
    page.wait_for_timeout(150)
    return elapsed


def measure(
    name: str, site: Path, chromium: Any, asked: Sequence[Question], uris: Callable[[str], str]
) -> list[str]:
    """A row of the table."""
    with served(site) as base:
        page = chromium.new_page()
        page.set_default_timeout(120_000)
        loads = Loads(page, site)
        page.goto(f"{base}index.html")
        page.wait_for_timeout(2_000)
        before = loads.so_far()[0]
        answers, milliseconds, first, later = [], [], (0, 0), []
        if name != "Pagefind":
            page.locator(BOX).click()
            page.evaluate(TYPED)
        for number, question in enumerate(asked):
            had = loads.so_far()[0]
            if name == "Pagefind":
                found, elapsed = page.evaluate(ASK_PAGEFIND, question.text)
            else:
                elapsed = type_in(page, question.text)
                found = page.evaluate(FOUND)
            if number:
                milliseconds.append(elapsed)
                later.append(loads.so_far()[0] - had)
            else:
                first = loads.so_far()
            answers.append(found)
        if name == "kbkit":  # the box shows a dozen passages; of fewer pages than the others show
            answers = [page.evaluate(ASK_KBKIT, question.text) for question in asked]
        page.close()
    places = [[Place(uris(url), 0, 0) for url in found] for found in answers]
    quality = [question.ndcg(found) for question, found in zip(asked, places, strict=True)]
    hits = [question.gains(found)[:1] for question, found in zip(asked, places, strict=True)]
    index = sum(
        compressed(path)
        for path in site.rglob("*")
        if path.is_file() and {"search", "pagefind", "kbkit"} & set(path.relative_to(site).parts)
    )
    return [
        name,
        f"{before / 1000:.0f}",
        f"{first[0] / 1000:.0f}",
        str(first[1]),
        f"{median(later) / 1000:.0f}",
        f"{index / 1e6:.1f}",
        f"{median(milliseconds):.0f}",
        f"{quantiles(milliseconds, n=20)[-1]:.0f}",
        f"{mean(quality):.3f}",
        f"{mean(bool(gains and gains[0]) for gains in hits):.2f}",
    ]


def in_python(corpus: Corpus) -> str:
    """nDCG@10 of the same questions in Python."""
    fitted = RetrievalSpec(query_encoder="fitted")
    found = [
        question.ndcg(
            [Place(hit.uri, 0, 0) for hit in corpus.kb.search(question.text, 60, settings=fitted)]
        )
        for question in corpus.questions
    ]
    return f"{mean(found):.3f}"


def main() -> None:
    """Build the sites, ask all questions of each, print the table."""
    from playwright.sync_api import sync_playwright

    chosen = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="kbkit-site-search-")
    folder = Path(chosen).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for corpus in corpora(folder / "kb", names=("python",)):
        sites = build(corpus.kb, folder)
        pages = Manifest.read(folder / "kbkit" / "docs").documents
        paths = {page.removesuffix(".md") + ".html": uri for uri, page in pages.items()}

        def uris(url: str, paths: dict[str, str] = paths) -> str:
            return paths.get(unquote(urlsplit(url).path).lstrip("/"), url)

        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--disable-gpu", "--no-sandbox"]
            )
            rows = [
                measure(name, site, chromium, corpus.questions, uris)
                for name, site in sites.items()
            ]
            chromium.close()
        heads = ["search", "first view kB", "first result kB", "requests", "later kB", "index MB",
                 "p50 ms", "p95 ms", "nDCG@10", "Hit@1"]  # fmt: skip
        about = f"{len(corpus.questions)} questions, {corpus.kb.describe().chunks:,} chunks; "
        about += f"kbkit in Python with the fitted encoder: nDCG@10 {in_python(corpus)}"
        report("site_search", [about, "", *table(heads, rows)])


if __name__ == "__main__":
    main()
