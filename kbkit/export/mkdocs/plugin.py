"""The MkDocs plugin that puts exported knowledge bases into a site (``plugins: [kbkit]``).

It finds the exports under the documentation folder by their manifests, gives them a place in the
navigation, and renders their pages, whose text is hostile, with `kbkit.markdown.rendering`.
Pages that people write are left to MkDocs.
"""

from __future__ import annotations

import html
import json
import os
import posixpath
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

from mkdocs.config.base import Config
from mkdocs.config.config_options import File as ConfigFile
from mkdocs.config.config_options import ListOfItems, Type
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, event_priority
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import get_toc

from kbkit.errors import RecipeError
from kbkit.export.manifest import MANIFEST, Manifest
from kbkit.export.mkdocs.page_shell import description, guarded
from kbkit.export.mkdocs.render_cache import RenderedPages
from kbkit.export.mkdocs.scripts import search_style
from kbkit.export.mkdocs.search_box import PAGE, SiteSearch
from kbkit.export.pages.about import DOCUMENTS, FULL_TEXT
from kbkit.export.pages.machine_readable import publish, read_documents
from kbkit.markdown.rendering import dated
from kbkit.recipes import load_recipe

_MIXED = re.compile(r"\b(?=\w*[a-z0-9][A-Z]|\w*[A-Z]{2}[a-z])[A-Za-z0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_FOR_PROGRAMS = {Path(name).stem for name in (DOCUMENTS, FULL_TEXT)}


class ExportedPage(Page):
    """A page of an exported knowledge base."""

    rendered: RenderedPages
    """Renders it, unless it has been."""
    coloured = ""
    """Its HTML with coloured code; the search reads ``content``, which has plain code."""
    checked = ""
    """Day on which its document was fetched last (ISO), where it is that of a document."""
    pictures: frozenset[str] = frozenset()
    """Paths of the pictures that may stand in it."""
    found = False
    """Whether the search finds it by an index of its export, so that it needs no other."""

    def render(self, config: MkDocsConfig, files: Files) -> None:
        """Convert the Markdown to HTML that is safe to show."""
        if since := self.meta.get("since"):
            self.update_date = str(since)  # what sitemap.xml says
        rendered = self.rendered.render(
            self.file.src_uri,
            self.markdown or "",
            lambda href: _page_url(href, self.file, files),
            lambda href: _picture(href, self.file, files, self.pictures),
            document="source" in self.meta,
        )
        plain = dated(rendered.plain, self.checked)
        self.coloured = dated(rendered.html, self.checked)
        if self.found:
            self.meta["search"] = {"exclude": True}
        self.meta["description"] = description(plain)
        # Pages of large sites fill the memory, so none is held twice without need
        self.content = self.coloured if self.found else plain
        self.toc = get_toc(cast(Any, rendered.toc))
        self.present_anchor_ids = set(rendered.anchors)


def _page_url(href: str, file: File, files: Files) -> str | None:
    """The address of the page that a relative link to a Markdown file means."""
    path, hash_, fragment = href.partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(file.src_uri), unquote(path)))
    found = files.src_uris.get(target)
    # Files that are no pages: those for programs. Documents cannot name them, see LinkMap
    if found is None or not (found.is_documentation_page() or found.name in _FOR_PROGRAMS):
        return None
    return str(found.url_relative_to(file)) + hash_ + fragment


def _picture(href: str, file: File, files: Files, pictures: frozenset[str]) -> str | None:
    """The SVG that a relative link means, if it is one of the export."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(file.src_uri), unquote(href)))
    found = files.src_uris.get(target) if target in pictures else None
    return None if found is None else found.content_string


class SearchPage(Page):
    """The page that searches all knowledge bases of the site."""

    search: SiteSearch

    def render(self, config: MkDocsConfig, files: Files) -> None:
        """Give what `SiteSearch` has made."""
        self.meta["search"] = {"exclude": True}
        self.meta["description"] = f"Search {config.site_name} by words and by meaning."
        self.content = self.search.page()
        self.toc = get_toc([])
        self.present_anchor_ids = set()


class KbkitConfig(Config):  # type: ignore[no-untyped-call]  # mkdocs is half typed
    """Options of the plugin."""

    recipes = ListOfItems(ConfigFile(exists=True), default=[])
    """Recipes whose knowledge bases are put into the site: each is built where the workspace does
    not have it, and its pages are exported to `folder/NAME` in the documentation, once per
    command. Paths start at the folder of `mkdocs.yml`."""
    workspace = Type(str, default="kb")
    """Folder of the workspace; it starts there too."""
    folder = Type(str, default="kb")
    """Folder in the documentation that the pages of recipes go to."""
    cache_dir = Type(str, default=".cache/plugin/kbkit")
    """Folder for pages as they were rendered, so that a build renders those that changed only; it
    starts there too. It may be removed at any time; an empty name keeps none."""
    section = Type(str, default="Knowledge bases")
    """Title of the exports' part of the navigation, where there is a navigation besides them."""


def _beside(config: MkDocsConfig, path: str) -> Path:
    """A path that starts at the folder of ``mkdocs.yml``."""
    return Path(config.config_file_path or ".").parent.absolute() / path


def mount(recipe: Path, workspace: Path, folder: Path) -> None:
    """Export the knowledge base of a recipe into a folder named after it.

    Another process does it: the export knows no workspace, and MkDocs need not hold what an
    ingest loads.

    Raises:
        PluginError: The recipe is wrong, or cannot be built or exported.
    """
    try:
        name = load_recipe(recipe).name
    except RecipeError as error:
        raise PluginError(f"kbkit: {error}") from None
    target = folder / name
    command = [sys.executable, "-P", "-m", "kbkit.cli", "--workspace", str(workspace)]
    command += ["export", str(recipe), "--pages", str(target)]
    done = subprocess.run(  # noqa: S603  # our own interpreter, no shell
        command,
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    if done.returncode:
        raise PluginError(f"kbkit: {recipe} cannot be published:\n{done.stderr.strip()}")


class KbkitPlugin(BasePlugin[KbkitConfig]):  # type: ignore[no-untyped-call]  # mkdocs is half typed
    """Finds exports, and shows them safely."""

    mounted = False
    """Whether the recipes have been exported."""

    def on_startup(self, *, command: str, dirty: bool) -> None:
        """Begin a command; with `mkdocs serve`, several builds follow."""
        self.mounted = False

    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        """Export recipes, read the manifests and add the exports to the navigation."""
        docs = Path(config.docs_dir)
        if not self.mounted:
            for recipe in self.config.recipes:
                workspace = _beside(config, self.config.workspace)
                mount(Path(recipe), workspace, docs / self.config.folder)
            self.mounted = True
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
        self.search = SiteSearch.of(docs, self.exports)
        if self.search.kbs:
            config.nav = [*(config.nav or []), {"Search": PAGE}]
        return config

    def on_files(self, files: Files, config: MkDocsConfig) -> Files:
        """Take charge of the exported pages; all but the sections stay out of the navigation."""
        cache = self.config.cache_dir
        self.rendered = RenderedPages(_beside(config, cache) if cache and self.exports else None)
        for prefix, manifest in self.exports.items():
            titles = manifest.nav_titles()
            fetched = {
                document["page"]: str(document.get("fetched", ""))
                for document in read_documents(Path(config.docs_dir, prefix))["documents"]
            }
            places = [posixpath.normpath(posixpath.join(prefix, path)) for path in manifest.files]
            pictures = frozenset(place for place in places if place.endswith(".svg"))
            for path, place in zip(manifest.files, places, strict=True):
                file = files.get_file_from_path(place)
                if file is not None and file.is_documentation_page():
                    if path not in titles:
                        file.inclusion = InclusionLevel.NOT_IN_NAV
                    # MkDocs puts titles into pages as they are
                    title = html.escape(titles[path]) if path in titles else None
                    page = ExportedPage(title, file, config)
                    page.rendered = self.rendered
                    page.checked = fetched.get(path, "")
                    # Pages of documents have none, whatever the documents say
                    page.pictures = frozenset() if path in fetched else pictures
                    page.found = self.search.covers(prefix)
        if self.search.kbs:
            file = File.generated(config, PAGE, content="")
            files.append(file)
            SearchPage("Search", file, config).search = self.search
        self.files = files
        return files

    def on_env(self, env: Any, *, config: MkDocsConfig, files: Files) -> None:
        """Keep the pages, all of which have been rendered now."""
        self.rendered.close()

    # After the search plugin, which is three times faster on plain code
    @event_priority(-100)
    def on_page_context(self, context: Any, *, page: Page, config: MkDocsConfig, nav: Any) -> Any:
        """Show coloured code."""
        if isinstance(page, ExportedPage):
            page.content = page.coloured.replace(' data-search-exclude="1"', "")
            page.coloured = ""
        return context

    # After plugins that add scripts of theirs, which the policy has to know
    @event_priority(-100)
    def on_post_page(self, output: str, *, page: Page, config: MkDocsConfig) -> str:
        """Put our search in, and forbid exported pages to load anything from elsewhere."""
        if self.search.kbs:
            output = self.search.in_page(output)
        if isinstance(page, ExportedPage):
            output = self.search.in_document(output) if self.search.kbs else output
            return guarded(output, page.content or "")
        return guarded(output, style=search_style()) if isinstance(page, SearchPage) else output

    def on_post_template(
        self, output_content: str, *, template_name: str, config: MkDocsConfig
    ) -> str:
        """Give the page for what is not found the same search, and help of its own."""
        if not self.search.kbs or not template_name.endswith(".html"):
            return output_content
        output, ours = output_content, False
        if template_name == "404.html":
            output = self.search.missing(output, directories=config.use_directory_urls)
            ours = output != output_content
        output = self.search.in_page(output)
        return guarded(output, style=search_style()) if ours else output

    # After the search plugin, which writes the index
    @event_priority(-100)
    def on_post_build(self, *, config: MkDocsConfig) -> None:
        """Let the search find the parts of names such as ``appendEvent``.

        The search's own means, a separator before capitals, would lose the whole: nobody would
        find ``DataFrame`` by "dataframe". So the parts go to a field of their own.
        """
        for prefix in self.exports:
            publish(
                Path(config.docs_dir, prefix),
                Path(config.site_dir, prefix),
                partial(self._address, prefix),
            )
        if self.search.kbs:
            name = html.unescape(config.site_name)
            titles = {file.url: _title(file) for file in self.files.documentation_pages()}
            directories = config.use_directory_urls
            self.search.write(Path(config.site_dir), name, titles, directories=directories)
            return
        path = Path(config.site_dir, "search", "search_index.json")
        if not path.exists():
            return
        index = json.loads(path.read_text(encoding="utf-8"))
        index["config"]["fields"]["names"] = {"boost": 10.0}
        for entry in index["docs"]:
            if parts := name_parts(f"{entry['title']} {entry['text']}"):
                entry["names"] = parts
        path.write_text(json.dumps(index, separators=(",", ":")), encoding="utf-8")

    def _address(self, prefix: str, path: str) -> str | None:
        """Address of a page of an export, relative to the export's own."""
        file = self.files.get_file_from_path(posixpath.normpath(posixpath.join(prefix, path)))
        return None if file is None else posixpath.relpath(file.url, prefix) + _slash(file.url)


def _title(file: File) -> str:
    """The title of a page, HTML."""
    page = file.page
    return str((page and (page.meta.get("title") or page.title)) or file.url)


def _slash(url: str) -> str:
    return "/" if url.endswith("/") else ""


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
