"""One set of pages as sites, each with the search of one project."""

from __future__ import annotations

import gzip
import html
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import kbkit
from kbkit.export import build_site

PAGEFIND = "1.6.0"
BLANK = "blank.html"
MODEL = "assets/kbkit/model/"
PAGE = '<!doctype html><html lang="en"><title>Search</title>'
ASK_LUNR = """
async (query) => {
  if (!window.asked) {
    window.asked = new Worker("/search/worker.js");
    await new Promise((resolve) => {
      window.asked.onmessage = ({ data }) => data.allowSearch && resolve();
      window.asked.postMessage({ init: true });
    });
  }
  const start = performance.now();
  return new Promise((resolve) => {
    window.asked.onerror = () => resolve([[], performance.now() - start]); // e.g. a lonely "+"
    window.asked.onmessage = ({ data }) =>
      resolve([data.results.slice(0, 100).map((one) => one.location), performance.now() - start]);
    window.asked.postMessage({ query });
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


@dataclass(frozen=True, slots=True)
class Site:
    """A site and its search.

    Attributes:
        name: Name of the search.
        folder: Folder to serve.
        index: Patterns of the index's files.
        ask: JavaScript that runs a query and returns addresses and milliseconds; empty if
            queries are typed into the page's search box.
        start: Page to open.
    """

    name: str
    folder: Path
    index: tuple[str, ...]
    ask: str = ""
    start: str = "index.html"

    def index_files(self) -> list[Path]:
        found = {path for pattern in self.index for path in self.folder.glob(pattern)}
        return sorted(path for path in found if path.is_file())


def ours(kb: kbkit.KnowledgeBase, project: Path, name: str) -> Site:
    """Build the site that kbkit publishes."""
    if not (project / "site").is_dir():
        kb.export(folder=project)
    return Site(name, project / "site", ("search/*/**/*",))


def peers(exported: Path, folder: Path) -> Iterator[Site]:
    """Build sites of the same pages with other searches.

    Args:
        exported: A project that kbkit exported.
        folder: Place of the sites.
    """
    material, lunr, found = folder / "material", folder / "lunr", folder / "pagefind"
    if not (material / "site").is_dir():
        ignored = shutil.ignore_patterns("search", "*.lock", "site")
        shutil.copytree(exported, material, ignore=ignored, dirs_exist_ok=True)
        build_site(material)
    yield Site("Material's own", material / "site", ("search/search_index.json",))
    if not lunr.is_dir():
        _lunr(material / "site", lunr)
    yield Site("lunr as in MkDocs", lunr, ("search/search_index.json",), ASK_LUNR, BLANK)
    npm = shutil.which("npm")
    if not (found / "pagefind").is_dir() and npm:
        _pagefind(npm, material / "site", found, folder / "npm")
    if (found / "pagefind").is_dir():
        parts = ("fragment/*", "index/*", "*.pf_meta", "*.json", "wasm.*")
        index = tuple(f"pagefind/{part}" for part in parts)
        yield Site("Pagefind", found, index, ASK_PAGEFIND, BLANK)
    else:
        print("Pagefind: left out, it needs npm and its registry")


def _lunr(material: Path, target: Path) -> None:
    """Use the search of MkDocs' own themes: its worker, lunr, the text of all sections."""
    import mkdocs.contrib.search

    scripts = Path(mkdocs.contrib.search.__file__).parent / "templates" / "search"
    shutil.copytree(scripts, target / "search")
    marked = json.loads((material / "search/search_index.json").read_bytes())
    documents = [
        {name: _plain(one[name]) for name in ("location", "title", "text")}
        for one in marked["docs"]
    ]
    index = {"config": {"lang": ["en"], "separator": r"[\s\-]+"}, "docs": documents}
    (target / "search/search_index.json").write_text(json.dumps(index), encoding="utf-8")
    (target / BLANK).write_text(PAGE, encoding="utf-8")


def _plain(text: str) -> str:
    """Strip the markup of Material's index as MkDocs' own plugin does."""
    return " ".join(html.unescape(re.sub("<[^>]*>", "", text)).split())


def _pagefind(npm: str, material: Path, target: Path, tools: Path) -> None:
    tools.mkdir(exist_ok=True)
    run = partial(subprocess.run, check=False, cwd=tools, stdout=subprocess.DEVNULL)
    run([npm, "install", "--silent", "--no-audit", "--no-fund", f"pagefind@{PAGEFIND}"])
    program = tools / "node_modules/.bin/pagefind"
    if program.exists():
        shutil.copytree(material, target, dirs_exist_ok=True)
        run([program, "--site", target, "--root-selector", "article"])
        (target / BLANK).write_text(PAGE, encoding="utf-8")


def compressed(path: Path) -> int:
    """Return a file's size as a server that compresses sends it."""
    data = path.read_bytes()
    return min(len(data), len(gzip.compress(data)))


class Loads:
    """Files that a page loaded for its search, each counted once.

    Attributes:
        model: Bytes of the model that kbkit fetches after its first answer.
    """

    def __init__(self, page: Any, folder: Path) -> None:
        self._folder, self._bytes, self.model = folder, dict[str, int](), 0
        page.on("request", lambda request: self._note(request.url))

    def _note(self, url: str) -> None:
        path = unquote(urlsplit(url).path).lstrip("/")
        of_search = ("search" in path, "assets/kbkit/" in path, "pagefind" in path)
        if any(of_search) and path not in self._bytes and (self._folder / path).is_file():
            size = compressed(self._folder / path)
            is_model = MODEL in path
            self.model += size * is_model
            self._bytes[path] = size * (not is_model)

    def so_far(self) -> tuple[int, int]:
        """Return bytes and requests without the model."""
        return sum(self._bytes.values()), sum(size > 0 for size in self._bytes.values())
