"""Measure the recipes of the gallery that can run on this machine.

    python benchmarks/gallery.py [RECIPE ...]

Offline recipes run as they are. For a public site, the copy in a Debian package is served on
loopback and crawled by the recipe with another host and no delay; the figures name package and
release. Writes ``recipes/figures.json``, from which the gallery page is made.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

import kbkit
from kbkit.recipes import golden_questions, load_recipe
from kbkit.testing import serve_folder

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ROOT / "recipes"
FIGURES = RECIPES / "figures.json"


@dataclass(frozen=True, slots=True)
class Copy:
    """A site in a Debian package.

    Attributes:
        package: The package.
        folder: Folder of its pages inside the package.
        start: The page to start from; by default the recipe's.
        plain: Its addresses end in ``.html``, those of the site in a slash.
    """

    package: str
    folder: str
    start: str = ""
    plain: bool = False


COPIES = {
    "python-docs": Copy("python3.11-doc", "usr/share/doc/python3.11/html", "index.html"),
    "sqlite": Copy("sqlite3-doc", "usr/share/doc/sqlite3"),
    "apache-httpd": Copy("apache2-doc", "usr/share/doc/apache2-doc/manual/en", "index.html"),
    "django": Copy(
        "python-django-doc", "usr/share/doc/python-django-doc/html", "index.html", plain=True
    ),
    "flask": Copy(
        "python-flask-doc", "usr/share/doc/python-flask-doc/html", "index.html", plain=True
    ),
    "scrapy": Copy("python-scrapy-doc", "usr/share/doc/python-scrapy-doc/html", "index.html"),
    "fish": Copy("fish-common", "usr/share/doc/fish", "index.html"),
    "mkdocs": Copy("mkdocs-doc", "usr/share/doc/mkdocs/html", "index.html", plain=True),
    "rust-reference": Copy("rust-doc", "usr/share/doc/rust-doc/html/reference", "index.html"),
    "jsoup": Copy("libjsoup-java-doc", "usr/share/doc/libjsoup-java/api", "index.html"),
}
OFFLINE = ("handbook", "openapi", "package", "pdf")


def main() -> None:
    known: dict[str, Any] = {}
    if FIGURES.is_file():
        known = json.loads(FIGURES.read_text(encoding="utf-8"))["recipes"]
    wanted = sys.argv[1:] or [*OFFLINE, *COPIES]
    for name in wanted:
        try:
            known[name] = measure(name)
        except (kbkit.KbkitError, OSError, subprocess.CalledProcessError) as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
            continue
        print(name, json.dumps(known[name]), flush=True)
        data = {
            "about": "Written by benchmarks/gallery.py; seconds are of a machine with two cores.",
            "kbkit": kbkit.__version__,
            "recipes": dict(sorted(known.items())),
        }
        FIGURES.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8", newline="\n")


def measure(name: str) -> dict[str, Any]:
    """Build a recipe and return its cost and the answers to its questions."""
    path = RECIPES / f"{name}.yaml"
    with tempfile.TemporaryDirectory(prefix="kbkit-gallery-") as scratch:
        folder = Path(scratch)
        if name not in COPIES:
            return built(path, folder / "kb") | {"run": "as it is"}
        copy = COPIES[name]
        with unpacked(copy, folder) as (pages, version), served(name, pages, folder) as recipe:
            run = f"on Debian's copy ({copy.package} {version})"
            return built(recipe, folder / "kb") | {"run": run}


def built(recipe: Path, workspace: Path) -> dict[str, Any]:
    """Return figures of a build; models embed before the questions are asked."""
    os.environ["KBKIT_IMPROVE"] = "wait"
    with kbkit.open(workspace) as opened:
        start = time.perf_counter()
        report = kbkit.build(recipe, opened, site=False, trust=True)
        seconds = time.perf_counter() - start
        questions = golden_questions(load_recipe(recipe))
        report_of = opened[report.info.name].feedback.evaluate(questions)
        means = report_of.summary()["mean"]
        size = sum(part.stat().st_size for part in workspace.rglob("*") if part.is_file())
        info = opened[report.info.name].info()
        return {
            "documents": info.documents,
            "chunks": info.chunks,
            "seconds": round(seconds),
            "megabytes": round(size / 1e6, 1),
            "questions": len(report_of.to_frame()),
            "ndcg": round(float(means["ndcg@10"]), 2),
            "hit1": round(float(means["hit@1"]), 2),
        }


@contextmanager
def unpacked(copy: Copy, scratch: Path) -> Iterator[tuple[Path, str]]:
    """Return the pages of a package, installed or unpacked, and its version."""
    installed = Path("/") / copy.folder
    if installed.is_dir():
        asked = ["dpkg-query", "-W", "-f", "${Version}", copy.package]
        done = subprocess.run(asked, capture_output=True, text=True, check=True)
        yield installed, _release(done.stdout)
        return
    place = scratch / "package"
    place.mkdir()
    subprocess.run(["apt-get", "download", "-qq", copy.package], cwd=place, check=True)
    archive = next(place.glob("*.deb"))
    subprocess.run(["dpkg", "-x", archive, place], check=True)
    yield place / copy.folder, _release(archive.name.split("_")[1])


def _release(version: str) -> str:
    """Return the release of a program from its package's version."""
    return re.split(r"-|\+|%2b", version.rpartition(":")[2])[0]


@contextmanager
def served(name: str, pages: Path, scratch: Path) -> Iterator[Path]:
    """Serve a folder on loopback at its public path, and yield a recipe for it."""
    copy = COPIES[name]
    values = yaml.safe_load((RECIPES / f"{name}.yaml").read_text(encoding="utf-8"))
    (source,) = values["sources"]
    address = urlsplit(source["url"])
    root = scratch / "web"
    inside = root / address.path[: address.path.rfind("/") + 1].strip("/")
    inside.parent.mkdir(parents=True, exist_ok=True)
    if inside == root:
        root.rmdir() if root.exists() else None
    inside.symlink_to(pages, target_is_directory=True)
    start = address.path
    if copy.start:
        start = address.path[: address.path.rfind("/") + 1] + copy.start
    for question in values["questions"]:
        named = [_of_copy(page, pages, copy) for page in question["relevant"]]
        # an older release lacks pages that the site has by now
        question["relevant"] = [page for page in named if (pages / page).is_file()] or named
    with serve_folder(root) as place:
        source |= {"url": place.rstrip("/") + start, "delay": 0, "allow_private": True}
        recipe = scratch / f"{name}.yaml"
        recipe.write_text(yaml.safe_dump(values, allow_unicode=True), encoding="utf-8")
        yield recipe


def _of_copy(page: str, pages: Path, copy: Copy) -> str:
    if not copy.plain or not page.endswith("/"):
        return page
    bare = page.rstrip("/")
    return f"{bare}.html" if (pages / f"{bare}.html").is_file() else f"{bare}/index.html"


if __name__ == "__main__":
    main()
