"""Search in a published site, in Chromium: kbkit beside Material's own, lunr and Pagefind.

People's questions about the Python documentation (or the sets of `_corpora.py` in ``--sets``), the
same pages for all. Material's search and kbkit's are typed into the box of a page; lunr (as MkDocs'
own themes run it) and Pagefind are called from JavaScript, Pagefind with its ten best results
loaded. Columns:

* first view, first result: kB loaded before a key is pressed, and until the first answer,
  compressed and with scripts, and the number of requests;
* ready: milliseconds from going to the box with the first question to its results;
* later: median kB of a further question, typed at once except for its last key;
* model: kB of kbkit's model and of the words of all questions, which other columns do not count;
* index: size of the index on the server's disk, and compressed;
* p50, p95: milliseconds from the last key (or the call) to results of further questions;
* nDCG@10 and Hit@1 by page; of kbkit with its model, and in a second row without.

Run from the project's root: ``python benchmarks/site_search.py [FOLDER] [--sets=SET,SET]
[--minilm]``; sites in the folder are not built again. Takes some minutes the first time.
``--minilm`` adds a site whose chunks MiniLM embedded, which takes an hour on two cores. Pagefind is
installed by npm, or left out.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean, median, quantiles
from typing import Any
from urllib.parse import unquote, urlsplit

from _corpora import Corpus, Place, Question, bench_folder, corpora, kept_folder, report, table
from _sites import MODEL, Loads, Site, compressed, ours, peers

from kbkit.export.facts import Manifest
from kbkit.recipes import AnyEmbedding, OnnxEmbedding, RetrievalSpec, StaticEmbedding
from kbkit.testing import serve_folder

BOX = "input.md-search__input"
ITEMS = ".md-search-result__item"
HEADS = (
    "set",
    "search",
    "first view kB",
    "first result kB",
    "requests",
    "ready ms",
    "later kB",
    "model kB",
    "index MB",
    "compressed",
    "p50 ms",
    "p95 ms",
    "nDCG@10",
    "Hit@1",
)
TYPED = """
(() => {
  let keyed = 0;
  let done = () => {};
  const box = document.querySelector("input.md-search__input");
  box.addEventListener("keyup", () => (keyed = performance.now()), true);
  const count = document.querySelector(".md-search-result__meta"); // replaced by each answer
  new MutationObserver(() => requestAnimationFrame(() => done(performance.now() - keyed))).observe(
    count, { childList: true });
  window.painted = () => new Promise((resolve, reject) => {
    done = resolve;
    setTimeout(() => reject(new Error("the box shows no answer within two minutes")), 120_000);
  });
  window.paste = (query) => {
    box.value = query;
    box.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }));
  };
})()
"""
FIRST = """
([box, items, query]) => new Promise((resolve) => {
  const start = performance.now();
  document.querySelector(box).focus();
  window.paste(query);
  const look = () => document.querySelector(items)
    ? resolve(performance.now() - start) : requestAnimationFrame(look);
  look();
})
"""
FOUND = "(items) => [...document.querySelectorAll(items)].map((one) => one.querySelector('a').href)"
ASK_KBKIT = """
async ([query, kb, model]) => {
  const { search } = JSON.parse(document.getElementById("__config").textContent);
  const ask = (text, wanted) => new Promise((resolve) => {
    window.asked.onmessage = ({ data }) => wanted(data) && resolve(data);
    const options = { limit: 60, kbs: [kb] };
    window.asked.postMessage({ kbkit: "search", id: 1, query: text, options });
  });
  if (!window.asked) {
    window.asked = new Worker(new URL(search, location.href));
    if (model) await ask("model", (data) => data.kbkit === "model");
  }
  const { hits } = await ask(query, (data) => data.hits);
  return hits.map((hit) => hit.page);
}
"""


@dataclass(slots=True)
class Session:
    """A site in a browser that answers question after question."""

    page: Any
    site: Site

    def first(self, query: str) -> tuple[list[str], float]:
        """Return the pages of the first query, and milliseconds with nothing loaded."""
        if self.site.ask:
            start = self.page.evaluate("performance.now()")
            found = self.page.evaluate(self.site.ask, query)[0]
            return found, self.page.evaluate("performance.now()") - start
        self.page.evaluate(TYPED)
        elapsed = float(self.page.evaluate(FIRST, [BOX, ITEMS, query]))
        self.page.wait_for_timeout(150)
        return self.page.evaluate(FOUND, ITEMS), elapsed

    def later(self, query: str) -> tuple[list[str], float]:
        """Return the pages of a further query, and milliseconds from its last key."""
        if self.site.ask:
            found, elapsed = self.page.evaluate(self.site.ask, query)
            return found, elapsed
        self._painted(lambda: self.page.evaluate("(text) => window.paste(text)", query[:-1]))
        elapsed = self._painted(lambda: self.page.locator(BOX).press_sequentially(query[-1]))
        return self.page.evaluate(FOUND, ITEMS), elapsed

    def _painted(self, work: Callable[[], None]) -> float:
        """Wait for the answer to a key; return milliseconds."""
        waiting = self.page.evaluate_handle("({ painted: painted() })")
        work()
        elapsed = float(waiting.evaluate("({ painted }) => painted"))
        self.page.wait_for_timeout(200)
        return elapsed


def measure(site: Site, chromium: Any, corpus: Corpus, uris: dict[str, str]) -> list[list[str]]:
    """Return a row of the table; for kbkit a second one without the model."""
    asked = corpus.questions
    with serve_folder(site.folder) as base:
        page = chromium.new_page()
        page.set_default_timeout(120_000)
        loads = Loads(page, site.folder)
        page.goto(f"{base}{site.start}")
        page.wait_for_timeout(2_000)
        before = loads.so_far()[0]
        session = Session(page, site)
        found, ready = session.first(asked[0].text)
        first, answers, times, later = loads.so_far(), [found], [], []
        for question in asked[1:]:
            had = loads.so_far()[0]
            found, elapsed = session.later(question.text)
            answers.append(found)
            times.append(elapsed)
            later.append(loads.so_far()[0] - had)
        before_model: list[list[str]] = []
        if site.name.startswith("kbkit"):  # the box shows a dozen passages: of too few pages
            answers = _answers(page, corpus, model=loads.model > 0)
            page.reload()
            page.context.route(f"**/{MODEL}**", lambda route: route.abort())
            before_model = _answers(page, corpus, model=False)
        page.close()
    files = site.index_files()
    cells = [
        f"{before / 1000:.0f}",
        f"{first[0] / 1000:.0f}",
        str(first[1]),
        f"{ready:.0f}",
        f"{median(later) / 1000:.0f}",
        f"{loads.model / 1000:.0f}",
        f"{sum(path.stat().st_size for path in files) / 1e6:.1f}",
        f"{sum(compressed(path) for path in files) / 1e6:.1f}",
        f"{median(times):.0f}",
        f"{quantiles(times, n=20)[-1]:.0f}",
    ]

    def scores(answers: list[list[str]]) -> tuple[str, str]:
        return quality(asked, [[_uri(url, uris) for url in found] for found in answers])

    rows = [[corpus.name, site.name, *cells, *scores(answers)]]
    if before_model:
        blank = [""] * len(cells)
        rows.append([corpus.name, f"{site.name}, no model", *blank, *scores(before_model)])
    return rows


def _answers(page: Any, corpus: Corpus, *, model: bool) -> list[list[str]]:
    """Return the pages that kbkit finds for each question."""
    return [
        page.evaluate(ASK_KBKIT, [question.text, corpus.name, model])
        for question in corpus.questions
    ]


def _uri(url: str, uris: dict[str, str]) -> str:
    """Return the document of an address."""
    return uris.get(unquote(urlsplit(url).path).lstrip("/"), url)


def quality(asked: Sequence[Question], answers: Sequence[Sequence[str]]) -> tuple[str, str]:
    """Return nDCG@10 and Hit@1."""
    places = [[Place(uri, 0, 0) for uri in found] for found in answers]
    both = list(zip(asked, places, strict=True))
    hits = [any(question.gains(found)[:1]) for question, found in both]
    return f"{mean(one.ndcg(found) for one, found in both):.3f}", f"{mean(hits):.2f}"


def in_python(name: str, corpus: Corpus) -> str:
    """Ask the same questions in Python, with the same query encoder and all vectors."""
    fitted = RetrievalSpec.model_validate(
        {**corpus.kb.spec.retrieval.model_dump(), "query_encoder": "fitted"}
    )
    answers = [
        [hit.uri for hit in corpus.kb.search(question.text, limit=60, retrieval=fitted)]
        for question in corpus.questions
    ]
    ndcg, hits = quality(corpus.questions, answers)
    return f"{name} in Python, fitted query encoder: nDCG@10 {ndcg}, Hit@1 {hits}"


@contextmanager
def chosen_folder() -> Iterator[Path]:
    """Yield the given folder, or a temporary one."""
    given = [name for name in sys.argv[1:] if not name.startswith("-")]
    if not given:
        with bench_folder() as folder:
            yield folder
        return
    folder = Path(given[0]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    yield folder


def embeddings() -> dict[str, AnyEmbedding]:
    """Embeddings by name of the search and suffix of their folders."""
    found: dict[str, AnyEmbedding] = {"": StaticEmbedding()}
    return found | ({"-minilm": OnnxEmbedding(preset="minilm")} if "--minilm" in sys.argv else {})


def sets() -> list[str]:
    """Return the sets to measure."""
    given = [one.removeprefix("--sets=") for one in sys.argv[1:] if one.startswith("--sets=")]
    return given[0].split(",") if given else ["python"]


def main() -> None:
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    if not program:
        print("chromium: not there; this benchmark needs it")
        return
    rows, notes = [], []
    with chosen_folder() as folder, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=program, args=["--disable-gpu", "--no-sandbox"]
        )
        for (end, embedding), named in product(embeddings().items(), sets()):
            for corpus in corpora(kept_folder(f"{named}{end}"), embedding, [named]):
                name = f"kbkit, {'MiniLM' if end else 'static'} vectors"
                project = folder / f"{named}{end}" / "kbkit"
                sites = [ours(corpus.kb, project, name)]
                if not end:
                    sites += peers(project, folder / named)
                    notes.append(
                        f"{named}: {len(corpus.questions)} questions, "
                        f"{corpus.kb.info().chunks:,} chunks"
                    )
                pages = Manifest.read(project / "docs").documents
                uris = {page.removesuffix(".md") + ".html": uri for uri, page in pages.items()}
                for site in sites:
                    rows += measure(site, chromium, corpus, uris)
                    print(*rows[-1], f"(load {os.getloadavg()[0]:.1f})", flush=True)
                notes.append(in_python(name, corpus))
        chromium.close()
    if rows:
        report("site_search", [f"{'; '.join(notes)}.", "", *table(HEADS, rows)])


if __name__ == "__main__":
    main()
