"""Refresh recipes and publish them with the guides, as CI does.

    python recipes/publish.py --workspace kb --floor 0.5 recipes/flask.yaml recipes/python-docs.yaml

It refreshes each knowledge base, evaluates its golden questions, exports it into a copy of the
guides, builds the site strictly in ``build/publish/build/site``, and checks its links. If a source
cannot be reached, its knowledge base stays as it is. An evaluation below the floor stops
everything.

``--docs`` serves the guides on loopback for ``recipes/quickstart.yaml``.
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
    """Publish the given recipes."""
    parser = argparse.ArgumentParser(description="Refresh recipes and publish them.")
    parser.add_argument("recipes", nargs="+", type=Path)
    parser.add_argument("--workspace", type=Path, default=ROOT / "build" / "publish-kb")
    parser.add_argument("--floor", type=float, default=0.5, help="minimum nDCG@10 of each")
    parser.add_argument("--docs", action="store_true", help="serve the guides on loopback")
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
        print(f"  {page}: {link} is broken")
    if lost:
        sys.exit(f"publish: {len(lost)} links are broken")
    print(f"Published in {time.perf_counter() - start:.0f} s: {PROJECT / 'build' / 'site'}")


def copy_guides() -> None:
    """Copy the guides, so that exported pages do not become guides."""
    shutil.rmtree(PROJECT / "site", ignore_errors=True)
    for folder in ("site", "notebooks"):
        ignored = shutil.ignore_patterns("kb", "__pycache__", ".ipynb_checkpoints")
        shutil.copytree(ROOT / folder, PROJECT / folder, ignore=ignored, dirs_exist_ok=True)
    shutil.copy(ROOT / "mkdocs.yml", PROJECT)


def refresh(recipe: Path, workspace: Path, floor: float) -> None:
    """Refresh and evaluate a knowledge base and export its pages."""
    print(f"{recipe.stem}: refresh", flush=True)
    if kbkit(workspace, "build", str(recipe), "--no-site", "--trust"):
        # publish the others even if a site is down
        print(f"::warning::{recipe.stem} was not refreshed")
    if kbkit(workspace, "eval", str(recipe), "--fail-under", str(floor)):
        sys.exit(f"publish: {recipe.stem} answers its golden questions worse than {floor}")
    pages = PROJECT / "site" / "kb" / recipe.stem
    if kbkit(workspace, "export", str(recipe), "--pages-only", "--folder", str(pages)):
        sys.exit(f"publish: {recipe.stem} cannot be exported")


def kbkit(workspace: Path, *arguments: str) -> int:
    """Run a command of kbkit and return its exit code."""
    command = [sys.executable, "-P", "-m", "kbkit", "--workspace", str(workspace), *arguments]
    return subprocess.run(command, check=False).returncode


def mkdocs(site: Path) -> None:
    """Build the guides and the pages among them, strictly."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=PROJECT, env=quiet, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"publish: MkDocs cannot build the site:\n{done.stderr}")


if __name__ == "__main__":
    main()
