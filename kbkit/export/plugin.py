"""The MkDocs plugin that puts exported knowledge bases into a site (``plugins: [kbkit]``).

It finds the exports under the documentation folder by their manifests, gives them a place in the
navigation, and renders their pages, whose text is hostile, with `kbkit.export.render`. Pages that
people write are left to MkDocs.
"""

from __future__ import annotations

import html
import json
import posixpath
import re
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

from mkdocs.config.base import Config
from mkdocs.config.config_options import Type
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import BasePlugin, event_priority
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import get_toc

from kbkit.export.manifest import MANIFEST, Manifest
from kbkit.export.render import Rendered, render

_MIXED = re.compile(r"\b(?=\w*[a-z0-9][A-Z]|\w*[A-Z]{2}[a-z])[A-Za-z0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_HEAD = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'self' 'unsafe-inline' "
    "data: blob:; object-src 'none'; frame-src 'none'; base-uri 'none'; form-action 'self'\">"
    "<style>.md-typeset .kb-meta{color:var(--md-default-fg-color--light);font-size:.68rem;"
    "margin-top:-.8em;overflow-wrap:anywhere}</style>"
)
"""What exported pages have in their head: a policy of what they may load, which is a second wall
behind the renderer, and the small print of where a page comes from."""


class ExportedPage(Page):
    """A page of an exported knowledge base."""

    coloured = ""
    """Its HTML with coloured code; the search reads ``content``, which has plain code."""

    def render(self, config: MkDocsConfig, files: Files) -> None:
        """Convert the Markdown to HTML that is safe to show."""
        rendered: Rendered = render(
            self.markdown or "",
            lambda href: _page_url(href, self.file, files),
            meta_line="source" in self.meta,
        )
        self.content = rendered.plain
        self.coloured = rendered.html
        self.toc = get_toc(cast(Any, rendered.toc))
        self.present_anchor_ids = set(rendered.anchors)


def _page_url(href: str, file: File, files: Files) -> str | None:
    """The address of the page that a relative link to a Markdown file means."""
    path, hash_, fragment = href.partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(file.src_uri), unquote(path)))
    found = files.get_file_from_path(target)
    if found is None or not found.is_documentation_page():
        return None
    return str(found.url_relative_to(file)) + hash_ + fragment


class KbkitConfig(Config):  # type: ignore[no-untyped-call]  # mkdocs is half typed
    """Options of the plugin."""

    section = Type(str, default="Knowledge bases")
    """Title of the exports' part of the navigation, where there is a navigation besides them."""


class KbkitPlugin(BasePlugin[KbkitConfig]):  # type: ignore[no-untyped-call]  # mkdocs is half typed
    """Finds exports, and shows them safely."""

    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        """Read the manifests and add the exports to the navigation."""
        docs = Path(config.docs_dir)
        self.exports = {
            path.parent.relative_to(docs).as_posix(): Manifest.read(path.parent)
            for path in sorted(docs.glob(f"**/{MANIFEST}"))
        }
        parts = {prefix: _nav(prefix, manifest) for prefix, manifest in self.exports.items()}
        if "." in parts:
            config.nav = [*(config.nav or []), *parts.pop(".")]
        if parts:
            exports = [
                {html.escape(self.exports[prefix].title): nav} for prefix, nav in parts.items()
            ]
            config.nav = [*(config.nav or []), {self.config.section: exports}]
        return config

    def on_files(self, files: Files, config: MkDocsConfig) -> Files:
        """Take charge of the exported pages; all but the sections stay out of the navigation."""
        for prefix, manifest in self.exports.items():
            titles = manifest.nav_titles()
            for path in manifest.files:
                file = files.get_file_from_path(posixpath.normpath(posixpath.join(prefix, path)))
                if file is not None:
                    if path not in titles:
                        file.inclusion = InclusionLevel.NOT_IN_NAV
                    # MkDocs puts titles into pages as they are
                    title = html.escape(titles[path]) if path in titles else None
                    ExportedPage(title, file, config)
        return files

    # After the search plugin, which is three times faster on plain code
    @event_priority(-100)
    def on_page_context(self, context: Any, *, page: Page, config: MkDocsConfig, nav: Any) -> Any:
        """Show coloured code."""
        if isinstance(page, ExportedPage):
            page.content = page.coloured.replace(' data-search-exclude="1"', "")
        return context

    def on_post_page(self, output: str, *, page: Page, config: MkDocsConfig) -> str:
        """Forbid exported pages to load anything from elsewhere, and style their small print."""
        if isinstance(page, ExportedPage):
            return output.replace("<head>", f"<head>{_HEAD}", 1)
        return output

    # After the search plugin, which writes the index
    @event_priority(-100)
    def on_post_build(self, *, config: MkDocsConfig) -> None:
        """Let the search find the parts of names such as ``appendEvent``.

        The search's own means, a separator before capitals, would lose the whole: nobody would
        find ``DataFrame`` by "dataframe". So the parts go to a field of their own.
        """
        path = Path(config.site_dir, "search", "search_index.json")
        if not path.exists():
            return
        index = json.loads(path.read_text(encoding="utf-8"))
        index["config"]["fields"]["names"] = {"boost": 10.0}
        for entry in index["docs"]:
            if parts := name_parts(f"{entry['title']} {entry['text']}"):
                entry["names"] = parts
        path.write_text(json.dumps(index, separators=(",", ":")), encoding="utf-8")


def name_parts(text: str) -> str:
    """The parts of the names in a text that are written with capitals inside, each once."""
    parts = {part for name in _MIXED.findall(text) for part in _HUMP.split(name)}
    return " ".join(sorted(part for part in parts if len(part) > 1))


def _nav(prefix: str, manifest: Manifest) -> list[dict[str, Any]]:
    """The navigation of one export in the form of ``mkdocs.yml``."""

    def entry(item: dict[str, Any]) -> dict[str, Any]:
        title = html.escape(item["title"])
        path = posixpath.normpath(posixpath.join(prefix, item["path"]))
        if not item.get("children"):
            return {title: path}
        return {title: [path, *map(entry, item["children"])]}

    return [entry(item) for item in manifest.nav]
