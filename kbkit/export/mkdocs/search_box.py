"""Search by meaning in the theme's search box."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kbkit.errors import EmbedderError, ExportError
from kbkit.export.index import write_index
from kbkit.export.index.packing import decode_shard, encode_shard
from kbkit.export.index.writer import DESCRIPTOR, FOLDER, index_folder
from kbkit.export.manifest import Manifest
from kbkit.export.mkdocs.build import take_entries
from kbkit.export.mkdocs.graph_picture import write_browser_model
from kbkit.export.mkdocs.guides_index import guides_content
from kbkit.export.mkdocs.not_found import not_found_page, write_page_list
from kbkit.export.mkdocs.page_head import scripts
from kbkit.export.mkdocs.search_page import home_form, search_page, subject_line

ASSETS = "assets/kbkit"
"""Folder of the search scripts."""
PAGE = "search/index.md"
"""The page that searches, with filters."""
_KEYWORDS = "keywords.js"
_GUIDES = "guides"
_MODEL = f"{ASSETS}/model"
_VECTORS = ("vectors", "cards")

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
        kbs: Data of each indexed knowledge base for browsers; see `engine.js`.
        cores: Core of each index.
        material: The theme's own worker, once a page has named it.
    """

    kbs: list[dict[str, str]]
    cores: list[Mapping[str, Any]]
    material: str = ""
    _prefixes: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, docs: Path, exports: Mapping[str, Manifest]) -> SiteSearch:
        search = cls([], [])
        for prefix, manifest in exports.items():
            if not (docs / prefix / FOLDER / DESCRIPTOR).is_file():
                continue
            folder = index_folder(docs / prefix)
            try:
                search.cores.append(decode_shard((folder / "core.js").read_bytes()))
            except (OSError, ValueError) as error:
                raise ExportError(f"{folder}: damaged ({error}); export again") from error
            base = _base(prefix)
            about = {"name": prefix if prefix != "." else manifest.kb, "title": manifest.title}
            search.kbs.append({**about, "base": base, "folder": f"{base}{FOLDER}/{folder.name}"})
            search._prefixes.add(prefix)
        return search

    def covers(self, prefix: str) -> bool:
        return prefix in self._prefixes

    def add_box(self, output: str) -> str:
        found = _WORKER.search(output)
        if found is None:
            return output
        self.material = found[3]
        worker = f"{found[1]}{found[2]}{ASSETS}/{scripts()['worker.js'][0]}{found[4]}"
        output = output[: found.start()] + worker + output[found.end() :]
        output = output.replace(_DIALOG, f'{_DIALOG} aria-label="Search"', 1)
        return _add_boot_script(output)

    def form(self, prefix: str, up: str, *, directories: bool) -> str:
        return home_form(self._only(prefix), up, directories=directories)

    def about(self, prefix: str, names: Sequence[str], up: str, *, directories: bool) -> str:
        """Return the HTML of a page's topics, linked to the search page."""
        return subject_line(self._only(prefix), names, up, directories=directories)

    def name_of(self, prefix: str) -> str:
        """Return an export's name in the search; ``""`` if it has none."""
        names = [kb["name"] for kb in self.kbs if kb["base"] == _base(prefix)]
        return names[0] if names else ""

    def _only(self, prefix: str) -> str:
        """The knowledge base that a page of an export searches; ``""`` for all there are."""
        return self.name_of(prefix) if len(self.kbs) > 1 else ""

    def page(self) -> str:
        return search_page(self.kbs, self.cores, f"../{ASSETS}/{scripts()['page.js'][0]}")

    def delay_copy_buttons(self, output: str) -> str:
        worker = _WORKER.search(output)
        without, number = _COPY.subn(r"\1", output, count=1)
        if worker is None or not number:
            return output
        script = f"{worker[2]}{ASSETS}/{scripts()['reading.js'][0]}"
        return without.replace("</head>", f'<script src="{script}" defer></script></head>', 1)

    def not_found_page(self, output: str, *, directories: bool) -> str:
        found = _WORKER.search(output)
        if found is None:
            return output
        script = f"{ASSETS}/{scripts()['missing.js'][0]}"
        return not_found_page(output, found[2], script, directories=directories)

    def write(self, site: Path, name: str, titles: Mapping[str, str], *, directories: bool) -> None:
        """Write the list of knowledge bases and other data of the scripts into a built site.

        The sections of pages that people wrote leave the theme's index, which every page fetches,
        for an index of ours; the theme's worker reads them only where ours cannot run.
        """
        target = site / ASSETS
        write_page_list(target, titles)
        entries = take_entries(site / "search" / "search_index.json")
        (target / _KEYWORDS).write_bytes(encode_shard({"docs": entries}))
        content = guides_content(entries, name, str(self.cores[0]["language"]))
        guides = []
        if content is not None:
            folder = write_index(content, target / _GUIDES).folder.relative_to(site).as_posix()
            guides = [{"name": content.name, "title": name, "base": "", "folder": folder}]
        about = {
            "kbs": [*self.kbs, *guides],
            "directories": directories,
            "engine": scripts()["engine.js"][0],
            "annotations": scripts()["annotations.js"][0],
            "material": self.material,
            "keywords": f"{ASSETS}/{_KEYWORDS}",
        }
        if any(core.get(kind, {}).get("model") for core in self.cores for kind in _VECTORS):
            with suppress(EmbedderError):  # queries are embedded without it then
                about["model"] = f"{_MODEL}/{write_browser_model(site / _MODEL)}"
        (target / "site.js").write_bytes(encode_shard(about))


def _base(prefix: str) -> str:
    return "" if prefix == "." else f"{prefix}/"


def _add_boot_script(output: str) -> str:
    """A page with the script that runs before the theme's."""
    bundle = _BUNDLE.search(output)
    if bundle is None:
        return output
    boot = f'<script src="{bundle[1]}{ASSETS}/{scripts()["boot.js"][0]}"'
    boot += f' data-passage="{scripts()["passage.js"][0]}"'
    if bundle[2] is None:  # scripts behind the theme's may need it
        return f"{output[: bundle.start()]}{boot}></script>{output[bundle.start() :]}"
    # The page can be read before the theme's script has come
    output = f"{output[: bundle.end()]} defer{output[bundle.end() :]}"
    return output.replace("</head>", f"{boot} defer></script></head>", 1)
