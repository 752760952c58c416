"""Run `make demo`: build the quickstart recipe and ask its golden questions.

The sources are kbkit's own guides, built by MkDocs and served on loopback, and the API of the
installed pandas.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import kbkit
from kbkit.feedback.evaluation_set import is_page
from kbkit.models import Progress
from kbkit.recipes import Question, golden_questions, load_recipe
from kbkit.testing import serve_folder

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "build" / "demo" / "docs"
WORKSPACE = ROOT / "build" / "demo" / "kb"
RECIPE = ROOT / "recipes" / "quickstart.yaml"
PORT = 8713  # the one that recipes/quickstart.yaml crawls
GUIDES = """\
INHERIT: mkdocs.yml
hooks: [site/_notebooks.py]
plugins: [search]
validation: {nav: {not_found: ignore}, links: {not_found: ignore, anchors: ignore}}
"""  # without the pages of the Python API, which take most of the time


def main() -> None:
    """Build the recipe, ask its questions, and print the location of the site."""
    start = time.perf_counter()
    os.environ.setdefault("KBKIT_MINILM_CHUNKS", "0")  # MiniLM takes minutes
    print("Building kbkit's guides with MkDocs ...", flush=True)
    mkdocs = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f-", "--site-dir", str(DOCS)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        mkdocs, cwd=ROOT, env=quiet, input=GUIDES, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"demo: MkDocs cannot build the documentation:\n{done.stderr}")
    print("Building recipes/quickstart.yaml: crawl, chunk, embed, index, export ...", flush=True)
    with serve_folder(DOCS, PORT), kbkit.open(WORKSPACE) as workspace:
        report = kbkit.build(RECIPE, workspace, trust=True, on_progress=progress())
        for label, value in report.lines():
            print(f"  {label:10} {value}")
        ask(workspace["quickstart"])
    print(f"\nDone in {time.perf_counter() - start:.0f} s. Read and search the site:")
    print(f"  {_shown(sys.executable)} -m kbkit serve-site {_shown(report.site)}")
    print("Search in Jupyter: make lab")


def progress() -> Callable[[Progress], None]:
    """Return a callback that prints a line for each stage, and every two seconds of a long one."""
    stage, next_line = "", 0.0

    def tell(now: Progress) -> None:
        nonlocal stage, next_line
        if now.stage != stage or time.perf_counter() >= next_line:
            stage, next_line = now.stage, time.perf_counter() + 2
            total = f" of {now.total:,}" if now.total else ""
            print(f"  {stage:10} {now.done:,}{total}", flush=True)

    return tell


def ask(kb: kbkit.KnowledgeBase) -> None:
    """Ask the golden questions and print whether the first answer is right."""
    right = 0
    questions = golden_questions(load_recipe(RECIPE))
    for question in questions:
        hits = kb.search(question.question, limit=10)
        pages = list(dict.fromkeys(hit.uri for hit in hits))
        places = [place for place, uri in enumerate(pages, 1) if is_relevant(uri, question)]
        right += places[:1] == [1]
        if places[:1] == [1]:
            outcome = "right"
        elif places:
            outcome = f"wrong; the right page is number {places[0]}"
        else:
            outcome = "wrong; the right page is not among the first ten hits"
        print(f"\n{question.question}  ({hits.seconds * 1000:.0f} ms)  {outcome}")
        best = next((hit for hit in hits if is_relevant(hit.uri, question)), None)
        for mark, hit in ((" ", hits[0] if hits else None), (">", best)):
            if hit is not None and (mark == " " or best is not hits[0]):
                print(f"{mark} {hit.title}  <{hit.url}>")
                print(f"      {' '.join(hit.snippet.split())[:140]}")
    print(f"\n{right} of {len(questions)} first answers are right.")


def is_relevant(uri: str, question: Question) -> bool:
    """Whether a page is one that answers a question."""
    return any(is_page(uri, page) for page in question.relevant)


def _shown(path: Path | str | None) -> str:
    """Return a path relative to the repository where possible."""
    path = Path(path or "")
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


if __name__ == "__main__":
    try:
        main()
    except kbkit.KbkitError as error:
        sys.exit(f"demo: {error}")
