"""Search by meaning in a site: takes the place of the theme's own search box, and has a page."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kbkit.errors import ExportError
from kbkit.export.index import write_index
from kbkit.export.index.packing import read_shard, shard
from kbkit.export.index.writer import ABOUT, FOLDER
from kbkit.export.manifest import Manifest
from kbkit.export.mkdocs.guides_index import guides_content
from kbkit.export.mkdocs.scripts import scripts
from kbkit.export.pages.not_found import missing_page, write_pages

ASSETS = "assets/kbkit"
"""Where a site has the scripts of its search."""
PAGE = "search/index.md"
"""The page that searches, with filters."""
_KEYWORDS = "keywords.js"
_GUIDES = "guides"
_TAGS = 100
"""Most tags to choose from on the page."""

_WORKER = re.compile(r'(<script id="__config"[^>]*>[^<]*?"search": ")([^"]*?)(assets/[^"]*)(")')
_BUNDLE = re.compile(
    r'<script src="([^"]*?)assets/javascripts/bundle\.[^"]*"(?=></script>(\s*</body>)?)'
)
_COPY = re.compile(
    r'(<script id="__config"[^>]*>[^<]*?)(?:, "content\.code\.copy"|"content\.code\.copy"(?:, )?)'
)
_DIALOG = '<div class="md-search" data-md-component="search" role="dialog"'


@dataclass(slots=True)
class SiteSearch:
    """The search of one site.

    Attributes:
        kbs: What the browser is told of each knowledge base that has an index; see `engine.js`.
        cores: What the index of each knows of all its chunks.
        material: The theme's own worker, once a page has named it.
    """

    kbs: list[dict[str, str]]
    cores: list[Mapping[str, Any]]
    material: str = ""
    _prefixes: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, docs: Path, exports: Mapping[str, Manifest]) -> SiteSearch:
        """The search of the exports in a documentation folder that have an index.

        Args:
            docs: The folder.
            exports: Their manifests, by their folders in it.

        Raises:
            ExportError: An index is damaged.
        """
        found = cls([], [])
        for prefix, manifest in exports.items():
            top = docs / prefix / FOLDER
            if not (top / ABOUT).is_file():
                continue
            try:
                folder = json.loads((top / ABOUT).read_bytes())["folder"]
                found.cores.append(read_shard((top / folder / "core.js").read_bytes()))
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise ExportError(f"{top}: damaged ({error}); export again") from error
            base = "" if prefix == "." else f"{prefix}/"
            about = {"name": prefix if prefix != "." else manifest.kb, "title": manifest.title}
            found.kbs.append({**about, "base": base, "folder": f"{base}{FOLDER}/{folder}"})
            found._prefixes.add(prefix)
        return found

    def covers(self, prefix: str) -> bool:
        """Whether the pages of an export are found without the theme's own index."""
        return prefix in self._prefixes

    def in_page(self, output: str) -> str:
        """A page whose search box is ours."""
        found = _WORKER.search(output)
        if found is None:
            return output
        self.material = found[3]
        worker = f"{found[1]}{found[2]}{ASSETS}/{scripts()['worker.js'][0]}{found[4]}"
        output = output[: found.start()] + worker + output[found.end() :]
        output = output.replace(_DIALOG, f'{_DIALOG} aria-label="Search"', 1)
        return _with_boot(output)

    def in_document(self, output: str) -> str:
        """A page of an export, whose code gets its buttons when it is looked at."""
        found = _WORKER.search(output)
        taken, number = _COPY.subn(r"\1", output, count=1)
        if found is None or not number:
            return output
        script = f"{found[2]}{ASSETS}/{scripts()['reading.js'][0]}"
        return taken.replace("</head>", f'<script src="{script}" defer></script></head>', 1)

    def missing(self, output: str, *, directories: bool) -> str:
        """The theme's page for what is not found, with ours in it."""
        found = _WORKER.search(output)
        if found is None:
            return output
        script = f"{ASSETS}/{scripts()['missing.js'][0]}"
        return missing_page(output, found[2], script, directories=directories)

    def write(self, site: Path, name: str, titles: Mapping[str, str], *, directories: bool) -> None:
        """Write the scripts, and the list of knowledge bases, into a built site.

        The sections of pages that people wrote leave the theme's index, which every page fetches,
        for an index of ours; the theme's worker reads them only where ours cannot run.

        Args:
            site: Its folder.
            name: What it is called, plain.
            titles: Title of each page, HTML, by its address from the site's root.
            directories: Whether its pages are folders (``use_directory_urls``).
        """
        target = site / ASSETS
        target.mkdir(parents=True, exist_ok=True)
        for file, data in scripts().values():
            (target / file).write_bytes(data)
        write_pages(target, titles)
        entries = _taken(site / "search" / "search_index.json")
        (target / _KEYWORDS).write_bytes(shard({"docs": entries}))
        content = guides_content(entries, name, str(self.cores[0]["language"]))
        guides = []
        if content is not None:
            folder = write_index(content, target / _GUIDES).folder.relative_to(site).as_posix()
            guides = [{"name": content.name, "title": name, "base": "", "folder": folder}]
        about = {
            "kbs": [*self.kbs, *guides],
            "directories": directories,
            "engine": scripts()["engine.js"][0],
            "material": self.material,
            "keywords": f"{ASSETS}/{_KEYWORDS}",
        }
        (target / "site.js").write_bytes(shard(about))

    def page(self) -> str:
        """What stands in the page that searches."""
        kinds = sorted({kind for core in self.cores for kind in core["kinds"]})
        tags = sorted({tag for core in self.cores for tag in core["tags"]})
        kbs = [(kb["name"], kb["title"]) for kb in self.kbs]
        rated = any(core["ratings"] for core in self.cores)
        fields = [
            _choice("kb", "Knowledge base", kbs) if len(kbs) > 1 else "",
            _choice("type", "Type", [(k, k.replace("_", " ")) for k in kinds]),
            _choice("tag", "Tag", [(tag, tag) for tag in tags[:_TAGS]]),
            _choice("rating", "Rated at least", [(str(n), f"{n} of 5") for n in (2, 3, 4, 5)])
            if rated
            else "",
            _choice("fresh", "Fetched in the last", _AGES),
            '<label class="kb-check"><input type="checkbox" name="state" value="current">'
            "Without pages that may be out of date</label>"
            if any(core["stale"] for core in self.cores)
            else "",
        ]
        return _PAGE.format(fields="".join(fields), script=f"../{ASSETS}/{scripts()['page.js'][0]}")


def _with_boot(output: str) -> str:
    """A page with the script that runs before the theme's."""
    bundle = _BUNDLE.search(output)
    if bundle is None:
        return output
    boot = f'<script src="{bundle[1]}{ASSETS}/{scripts()["boot.js"][0]}"'
    if bundle[2] is None:  # scripts behind the theme's may need it
        return f"{output[: bundle.start()]}{boot}></script>{output[bundle.start() :]}"
    # The page can be read before the theme's script has come
    output = f"{output[: bundle.end()]} defer{output[bundle.end() :]}"
    return output.replace("</head>", f"{boot} defer></script></head>", 1)


_AGES = [("7", "week"), ("31", "month"), ("183", "half year"), ("366", "year")]

_PAGE = """<div id="kb-page">
<h1>Search</h1>
<noscript><p>Searching needs JavaScript; without it, the navigation leads to every page.</p>
</noscript>
<form id="kb-search" class="kb-form" role="search" action="" autocomplete="off">
<label class="kb-query">Question or words
<input type="search" name="query" maxlength="1000" spellcheck="false" autocapitalize="off"></label>
{fields}
</form>
<p id="kb-status" class="kb-status" role="status"></p>
<ol id="kb-results" class="kb-results"></ol>
<button id="kb-more" class="kb-more" type="button" hidden>More</button>
</div>
<script src="{script}" defer></script>
"""


def _choice(name: str, label: str, options: Sequence[tuple[str, str]]) -> str:
    """A field to choose one of some values, or any."""
    if not options:
        return ""
    values = "".join(
        f'<option value="{html.escape(value)}">{html.escape(text)}</option>'
        for value, text in options
    )
    return (
        f'<label>{label}<select name="{name}"><option value="">any</option>{values}</select>'
        "</label>"
    )


def _taken(path: Path) -> list[dict[str, Any]]:
    """The sections in the theme's index, which is left with none of them."""
    if not path.exists():
        return []
    index = json.loads(path.read_text(encoding="utf-8"))
    entries: list[dict[str, Any]] = index.pop("docs")
    text = json.dumps({**index, "docs": []}, separators=(",", ":"))
    path.write_text(text, encoding="utf-8")
    path.with_suffix(".js").write_text(f"var __index = {text};", encoding="utf-8")
    return entries
