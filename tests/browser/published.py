"""A published site with two knowledge bases and a page that somebody wrote, open in Chromium."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from filelock import FileLock

import kbkit
from kbkit.export import build_site
from kbkit.export.mkdocs.build import SEPARATOR, theme
from tests.browser.chrome import TIMEOUT
from tests.browser.layout import settle

GUIDES = Path(__file__).parents[2] / "site"
HOSTILE = Path(__file__).parents[1] / "export" / "hostile.yaml"
BOX = "input.md-search__input"
JELLY = """# Making jelly

## Quince jelly {#quince}

Simmer the quinces for forty minutes in water that hardly boils.

## Medlar jelly {#medlar}

Medlar jelly wants ripe fruit. A <script>alert(1)</script> in a text is a text.
"""
CELLS = "".join(f"| cell {row} | " + "a cell with some words | " * 13 + "\n" for row in range(3))
WIDE = f"""Look at `--rind` and [peel `it`](https://fruit.example/jelly.html).

| name | {"column of words | " * 13}
|{"---|" * 14}
{CELLS}
```python
# How marmalade is made
@cut(rind=0x1F, width=3.5)
class Marmalade(Jelly):
    def boil(self) -> int: return sum(len(fruit) for fruit in self.fruits if fruit is not None)
```
"""
FLAGS = """# Jelly pan

The pan has these switches.

## Options {#_options}

""" + "\n\n".join(
    f"-   **--{name}**: Stirs the {name} jam at its own speed, however thick it has become. "
    + f"The {name} gauge says when it is done, and the lid stays shut until then. " * 3
    for name in (
        "apple",
        "brine",
        "cherry",
        "damson",
        "elder",
        "fig",
        "grape",
        "huckle",
        "iris",
        "juniper",
        "kiwi",
        "lemon",
        "mango",
        "nutmeg",
    )
)
HEBREW = "שלום עולם. 100 גרם סוכר."
BIDI = "Pickled \u202egnp.exe\u202c her\u200bring"


@pytest.fixture(scope="package")
def kitchen(tmp_path_factory, worker_id) -> Path:
    """The project of the site, built once for all processes of a run."""
    folder = tmp_path_factory.getbasetemp()
    project = (folder if worker_id == "master" else folder.parent) / "searched"
    with FileLock(f"{project}.lock"):
        if not (project / "done").exists():
            build_kitchen(project)
            (project / "done").touch()
    return project


def build_kitchen(project: Path) -> None:
    docs = project / "docs"
    docs.mkdir(parents=True)
    plugins = [{"search": {"lang": "en", "separator": SEPARATOR}}, "kbkit"]
    config = {
        "site_name": "Kitchen",
        "use_directory_urls": False,
        "theme": theme(),
        "site_url": "https://example.org/sub/path/",
        "plugins": plugins,
        "extra": {"generator": False},
    }
    (project / "mkdocs.yml").write_text(yaml.safe_dump(config))
    (docs / "index.md").write_text("# Welcome\n\n## House rules\n\nWash the zester after use.\n")
    evil = yaml.safe_load(HOSTILE.read_text(encoding="utf-8"))
    with kbkit.open(project / "kb") as workspace:
        fruit = workspace.create("fruit")
        fruit.add(
            "Making jelly",
            JELLY,
            source="https://fruit.example/jelly.html",
            tags=["sweet"],
            document_type="tutorial",
        )
        for n in range(3):
            document = fruit.add(f"Jar {n}", f"Jar number {n} holds jelly.", tags=["jar"])
            fruit.rate(document.id, 5 - 2 * n)
        odd = workspace.create("odd")
        odd.add("Marmalade", WIDE, source="https://odd.example/wide.html")
        odd.add(HEBREW[:4], HEBREW, source="https://odd.example/rtl.html")
        odd.add(BIDI, f"{BIDI} keeps.\n\n## Brine", source="https://odd.example/bidi.html")
        odd.add(evil["title"], evil["content"], source=evil["uri"], tags=evil["tags"])
        odd.add("Jelly pan", FLAGS, source="https://odd.example/pan.html")
        guides = workspace.create("guides")
        guides.ingest(kbkit.FilesSource(path=str(GUIDES / "*.md")))
        guides.add("Requirements", "You must install MkDocs before you publish a site.")
        for kb in (fruit, odd, guides):
            kb.export(folder=docs / "kb" / kb.name, pages_only=True)
    build_site(project)


@pytest.fixture(scope="package")
def kitchen_address(kitchen) -> Iterator[str]:
    """Address of the site, below the top of its server."""

    class Handler(SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            below = path.partition("?")[0].removeprefix("/sub/path/")
            return str(kitchen / "site" / below)

        def send_error(self, code: int, *_: Any) -> None:  # as GitHub Pages does
            body = (kitchen / "site" / "404.html").read_bytes()
            self.send_response(code)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/sub/path/"
        server.shutdown()


_LISTEN = """window.Worker = class extends Worker {
    constructor(...given) {
        super(...given);
        this.addEventListener("message", ({ data }) => {
            if (data?.type === 3) window.kbAnswered = data.query ?? window.kbAsked;
        });
    }
    postMessage(message, ...others) {
        if (message?.type === 2) window.kbAsked = message.data;
        super.postMessage(message, ...others);
    }
};
const dispatch = EventTarget.prototype.dispatchEvent;
EventTarget.prototype.dispatchEvent = function (event) {
    if (location.protocol === "file:" && event.data?.type === 3) {
        window.kbAsked = window.kbAnswered = document.querySelector("input.md-search__input").value;
    }
    return dispatch.call(this, event);
};"""
"""Keeps what the search box asked its worker last, and what that answered last; without a server,
what stands in for the worker answers by an event of its own."""
_ANSWERED = """word => window.kbAsked?.toLowerCase().includes(word)
    && window.kbAsked === window.kbAnswered"""


class Tab:
    """A page that may ask nobody but the site, and what it asked."""

    def __init__(self, page: Any, base: str) -> None:
        self.page, self.base = page, base
        self.asked: list[str] = []
        self.trouble: list[str] = []
        page.set_default_timeout(TIMEOUT)
        page.add_init_script(_LISTEN)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on(
            "console",
            lambda line: (
                self.trouble.append(line.text) if line.type in {"error", "warning"} else None
            ),
        )
        page.on("pageerror", lambda error: self.trouble.append(str(error)))
        page.on("dialog", lambda dialog: (self.trouble.append(dialog.message), dialog.dismiss()))

    def open(self, path: str) -> None:
        self.page.goto(self.base + path)

    def type(self, query: str) -> list[str]:
        """Search in the theme's box; the titles that are found."""
        box = self.page.locator(BOX)
        box.click()
        box.fill("")
        self.page.evaluate("window.kbAsked = ''")  # the answer to an earlier query does not count
        box.press_sequentially(query)
        meta = self.page.locator(".md-search-result__meta", has_text=re.compile("matching|No "))
        meta.wait_for()
        self.page.wait_for_function(_ANSWERED, arg=query.rsplit(maxsplit=1)[-1].strip('"').lower())
        settle(self.page)
        titles = self.page.locator(".md-search-result__item a").locator("h1, h2")
        return [text.strip() for text in titles.all_text_contents()]

    def titles(self) -> list[str]:
        """The titles on the search page once it has answered."""
        self.page.locator("#kb-status", has_text=re.compile(".")).wait_for()
        self.page.locator("#kb-results:not([aria-busy])").wait_for(state="attached")
        return list(self.page.locator(".kb-card h2").all_text_contents())


@pytest.fixture
def tab(chrome, kitchen_address) -> Iterator[Tab]:
    """A page of the browser on the site."""
    yield from opened(chrome, kitchen_address)


def opened(chrome: Any, base: str) -> Iterator[Tab]:
    """A page of the browser, which must not ask others nor report trouble."""
    context = chrome.new_context(viewport={"width": 1200, "height": 800})
    tab = Tab(context.new_page(), base)
    yield tab
    context.close()
    foreign = [url for url in tab.asked if not url.startswith((base, "data:", "blob:"))]
    assert not foreign, foreign
    assert not tab.trouble, tab.trouble
