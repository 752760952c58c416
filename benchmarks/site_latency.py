"""The search box of a published site in Chromium: bytes loaded and time of a key.

The documentation of Python (29,000 chunks) and of Django (14,000), if the Debian packages
``python3.11-doc`` and ``python-django-doc`` are installed. All requests of the page count,
compressed as a server sends them. A question is typed letter by letter, 120 ms a key; the time is
from its last key to its painted results, for the first question (the box loads at the end of
typing) and again when all is loaded.

Run from the project's root: ``python benchmarks/site_latency.py [FOLDER]``; sites in the folder are
not built again.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from _corpora import EVAL, PYTHON, report, table
from _sites import compressed, served
from site_search import BOX, TYPED

import kbkit
from kbkit.recipes import MirrorSource

DJANGO = Path("/usr/share/doc/python-django-doc/html")
KEY = 120  # milliseconds
IN_DJANGO = (
    "how do I write a custom middleware",
    "aggregate over a related model",
    "upload a file with a form",
    "translate strings in templates",
    "log in a user with a custom backend",
    "run raw sql queries safely",
    "cache a view for ten minutes",
    "migrate data between two fields",
    "test a view without a server",
    "deploy with gunicorn and static files",
)


class Transfer:
    """Requests of a page."""

    def __init__(self, page: Any, base: str, site: Path) -> None:
        self._base, self._site, self._seen = base, site, set[str]()
        self.bytes = 0
        page.context.on("request", lambda request: self._note(request.url))

    def _note(self, url: str) -> None:
        path = url.removeprefix(self._base).partition("?")[0]
        if path not in self._seen and (self._site / path).is_file():
            self._seen.add(path)
            self.bytes += compressed(self._site / path)

    def since(self, before: int) -> int:
        """Return the bytes since then."""
        return self.bytes - before


def ask(page: Any, query: str) -> float:
    """Type a question; return milliseconds from its last key to its results."""
    box = page.locator(BOX)
    box.fill("")
    box.press_sequentially(query[:-1], delay=KEY)
    page.wait_for_timeout(250)  # what was typed before is answered
    waiting = page.evaluate_handle("({ painted: painted() })")
    box.press_sequentially(query[-1])
    elapsed: float = waiting.evaluate("({ painted }) => painted")
    page.wait_for_timeout(100)
    return elapsed


def measure(name: str, chunks: int, site: Path, browser: Any, questions: list[str]) -> list[str]:
    """Return a row of the table."""
    with served(site) as base:
        page = browser.new_context().new_page()
        page.set_default_timeout(60_000)
        loaded = Transfer(page, base, site)
        page.goto(f"{base}index.html")
        page.wait_for_load_state("networkidle")
        view = loaded.bytes
        # What it would be without search: the theme's own part, less what only search asks for
        ours = sum(
            compressed(site / path) for path in loaded._seen if "kbkit" in path or "search" in path
        )
        page.locator(BOX).click()
        page.evaluate(TYPED)
        ask(page, questions[0])
        first = loaded.bytes
        later, took = [], []
        for question in questions[1:]:
            before = loaded.bytes
            took.append(ask(page, question))
            later.append(loaded.since(before))
        again = [ask(page, question) for question in questions[1:]]  # all is loaded
        page.context.close()

    def spread(values: list[float]) -> list[str]:
        most = quantiles(values, n=20, method="inclusive")[-1]
        return [f"{median(values):.0f}", f"{most:.0f}"]

    return [
        name,
        f"{chunks:,}",
        f"{view / 1000:.0f}",
        f"{ours / 1000:.1f}",
        f"{first / 1000:.0f}",
        *[f"{value / 1000:.0f}" for value in (median(later), max(later))],
        *spread(took),
        *spread(again),
    ]


def corpora(folder: Path) -> list[tuple[str, int, Path, list[str]]]:
    """Yield name, chunks, site and questions of each available corpus."""
    asked = EVAL / "python-questions.tsv"
    lines = asked.read_text(encoding="utf-8").splitlines() if asked.is_file() else []
    docs = [("python", PYTHON, [line.split("\t")[0] for line in lines[:20]])]
    docs.append(("django", DJANGO, list(IN_DJANGO)))
    found = []
    with kbkit.open(folder / "kb") as workspace:
        for name, path, questions in docs:
            if not path.is_dir() or not questions:
                print(f"{name}: its data is missing, left out")
                continue
            if name not in workspace:
                source = MirrorSource(path=str(path), base_url=f"http://{name}.invalid/")
                workspace.create(name).ingest(source)
            site = folder / name / "site"
            if not (site / "index.html").is_file():
                workspace[name].export(folder=folder / name)
            found.append((name, workspace[name].info().chunks, site, questions))
    return found


def main() -> None:
    import shutil

    from playwright.sync_api import sync_playwright

    chosen = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="kbkit-site-latency-")
    folder = Path(chosen).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    sites = corpora(folder)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--disable-gpu", "--no-sandbox"]
        )
        rows = [
            measure(name, chunks, site, chromium, questions)
            for name, chunks, site, questions in sites
        ]
        chromium.close()
    heads = [
        "site",
        "chunks",
        "first view kB",
        "of it search",
        "to first result kB",
        "later kB",
        "at most",
        "p50 ms",
        "p95 ms",
        "warm p50",
        "warm p95",
    ]
    about = f"{KEY} ms a key; load {os.getloadavg()[0]:.1f} at the end"
    report("site_latency", [about, "", *table(heads, rows)])


if __name__ == "__main__":
    main()
