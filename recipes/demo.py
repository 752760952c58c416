"""The demonstration behind `make demo`: build the quickstart recipe, ask three questions.

kbkit's own documentation is built by MkDocs and served on loopback for the occasion; the other
source is the API of the installed pandas. Nothing is fetched from anywhere else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import kbkit
from kbkit.testing import serve_folder

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "build" / "demo" / "docs"
WORKSPACE = ROOT / "build" / "demo" / "kb"
PORT = 8713  # the one that recipes/quickstart.yaml crawls

QUESTIONS = (
    "How do I combine two data frames on a key column?",
    "What happens when a build is killed half way?",
    "read an Excel sheet into a table",
)


def main() -> None:
    """Build, ask, tell where the site lies."""
    start = time.perf_counter()
    print("Building kbkit's documentation with MkDocs ...", flush=True)
    mkdocs = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(DOCS)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(mkdocs, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"demo: MkDocs cannot build the documentation:\n{done.stderr}")
    print("Building recipes/quickstart.yaml: crawl, chunk, embed, index, export ...", flush=True)
    with serve_folder(DOCS, PORT), kbkit.open(WORKSPACE) as workspace:
        report = kbkit.build(ROOT / "recipes" / "quickstart.yaml", workspace)
        for label, value in report.lines():
            print(f"  {label:10} {value}")
        for question in QUESTIONS:
            hits = workspace["quickstart"].search(question, limit=3)
            print(f"\n{question}  ({hits.seconds * 1000:.0f} ms)")
            for hit in hits:
                print(f"  {hit.score:.2f}  {hit.title}  <{hit.url}>")
                print(f"        {hit.snippet[:140]}")
    print(f"\nDone in {time.perf_counter() - start:.0f} s. To read and search the site:")
    print(f"  {_shown(sys.executable)} -m kbkit.cli serve-site {_shown(report.site)}")
    print("To search in Jupyter: make lab")


def _shown(path: Path | str | None) -> str:
    """A path as short as it can be written from the repository."""
    path = Path(path or "")
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


if __name__ == "__main__":
    try:
        main()
    except kbkit.KbkitError as error:
        sys.exit(f"demo: {error}")
