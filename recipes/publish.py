"""Brings recipes up to date and publishes them with the guides: what CI does, and what you can.

    python recipes/publish.py --workspace kb --floor 0.5 recipes/flask.yaml recipes/python-docs.yaml

Each knowledge base is refreshed, asked its golden questions, and exported into a copy of the
guides; the whole is built strictly, and its links are checked. The site lies in
``build/publish/build/site`` then. A source that cannot be reached leaves its knowledge base as it
was; an answer that got worse than the floor stops everything.

``--docs`` serves the guides on loopback meanwhile, which is what ``recipes/quickstart.yaml`` reads.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from links import broken

from kbkit.testing import serve_folder

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / "build" / "publish"
PORT = 8713  # the one that recipes/quickstart.yaml crawls


def main() -> None:
    """Publish the recipes that are named."""
    parser = argparse.ArgumentParser(description="Bring recipes up to date and publish them.")
    parser.add_argument("recipes", nargs="+", type=Path)
    parser.add_argument("--workspace", type=Path, default=ROOT / "build" / "publish-kb")
    parser.add_argument("--floor", type=float, default=0.5, help="least nDCG@10 of each")
    parser.add_argument("--docs", action="store_true", help="serve the guides meanwhile")
    given = parser.parse_args()
    start = time.perf_counter()
    copy_guides()
    with ExitStack() as stack:
        if given.docs:
            mkdocs(PROJECT / "build" / "docs")
            stack.enter_context(serve_folder(PROJECT / "build" / "docs", PORT))
        for recipe in given.recipes:
            refresh(recipe, given.workspace, given.floor)
    mkdocs(PROJECT / "build" / "site")
    lost = list(broken(PROJECT / "build" / "site"))
    for page, link in lost[:20]:
        print(f"  {page}: {link} leads nowhere")
    if lost:
        sys.exit(f"publish: {len(lost)} links lead nowhere")
    print(f"Published in {time.perf_counter() - start:.0f} s: {PROJECT / 'build' / 'site'}")


def copy_guides() -> None:
    """A copy of the guides, so that what is exported into it is not read as a guide next time."""
    shutil.rmtree(PROJECT / "site", ignore_errors=True)
    for folder in ("site", "notebooks"):
        ignored = shutil.ignore_patterns("kb", "__pycache__", ".ipynb_checkpoints")
        shutil.copytree(ROOT / folder, PROJECT / folder, ignore=ignored, dirs_exist_ok=True)
    shutil.copy(ROOT / "mkdocs.yml", PROJECT)


def refresh(recipe: Path, workspace: Path, floor: float) -> None:
    """Bring a knowledge base up to date, ask its golden questions, export its pages."""
    print(f"{recipe.stem}: refresh", flush=True)
    if kbkit(workspace, "build", str(recipe), "--no-site", "--trust"):
        # A site that is down today must not keep the others from being published
        print(f"::warning::{recipe.stem} was not refreshed")
    if kbkit(workspace, "eval", str(recipe), "--fail-under", str(floor)):
        sys.exit(f"publish: {recipe.stem} answers its golden questions worse than {floor}")
    pages = PROJECT / "site" / "kb" / recipe.stem
    if kbkit(workspace, "export", str(recipe), "--pages-only", "--folder", str(pages)):
        sys.exit(f"publish: {recipe.stem} cannot be exported")


def kbkit(workspace: Path, *arguments: str) -> int:
    """Run a command of kbkit; gives its exit code."""
    command = [sys.executable, "-P", "-m", "kbkit", "--workspace", str(workspace), *arguments]
    return subprocess.run(command, check=False).returncode


def mkdocs(site: Path) -> None:
    """Build the guides, with all that lies among them, strictly."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=PROJECT, env=quiet, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"publish: MkDocs cannot build the site:\n{done.stderr}")


if __name__ == "__main__":
    main()
