"""The MkDocs plugin that adds exported knowledge bases to a site (``plugins: [kbkit]``).

It finds exports in the documentation folder by their manifests, adds them to the navigation, and
renders their untrusted text with `kbkit.text.markdown.rendering`. MkDocs renders other pages.
"""

import html
import posixpath
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, DictLoader, PrefixLoader
from mkdocs.config.base import Config
from mkdocs.config.config_options import File as ConfigFile
from mkdocs.config.config_options import ListOfItems, Type
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, event_priority
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from kbkit.errors import KbkitError
from kbkit.export.facts import MANIFEST, Manifest, asset
from kbkit.export.mkdocs.build import export_recipe
from kbkit.export.mkdocs.page_head import FOLDER as GRAPHS
from kbkit.export.mkdocs.page_head import add_head, graph_scripts, picture, scripts, theme_scripts
from kbkit.export.mkdocs.search import ASSETS, PAGE, SiteSearch
from kbkit.export.mkdocs.site_pages import FOLDER, ExportedPage, RenderCache, SearchPage, Sidebar
from kbkit.export.pages.document_page import IMAGES
from kbkit.export.pages.outline import GRAPH, GRAPH_DATA, HOME
from kbkit.export.pages.writer import publish_documents, read_documents


class KbkitConfig(Config):  # type: ignore[no-untyped-call]  # mkdocs is half typed
    """Options of the plugin."""

    recipes = ListOfItems(ConfigFile(exists=True), default=[])
    """Recipes to publish, as paths from the folder of `mkdocs.yml`. Each is built if the workspace
    does not have it, and exported to `folder/NAME` in the documentation, once per command."""
    workspace = Type(str, default="kb")
    """Folder of the workspace, from the folder of `mkdocs.yml`."""
    folder = Type(str, default="kb")
    """Folder of the recipes' pages in the documentation."""
    cache_dir = Type(str, default=".cache/plugin/kbkit")
    """Cache of rendered pages, from the folder of `mkdocs.yml`; empty disables it."""
    section = Type(str, default="Knowledge bases")
    """Title of the exports in the navigation."""


def _resolve(config: MkDocsConfig, path: str) -> Path:
    return Path(config.config_file_path or ".").parent.absolute() / path


class KbkitPlugin(BasePlugin[KbkitConfig]):  # type: ignore[no-untyped-call]  # mkdocs is half typed
    """Finds exports, and renders them safely."""

    recipes_exported = False

    def on_startup(self, *, command: str, dirty: bool) -> None:
        """Reset at the start of a command; `mkdocs serve` runs several builds."""
        self.recipes_exported = False

    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        docs = Path(config.docs_dir)
        if not self.recipes_exported:
            for recipe in self.config.recipes:
                workspace = _resolve(config, self.config.workspace)
                try:
                    export_recipe(Path(recipe), workspace, docs / self.config.folder)
                except KbkitError as error:
                    raise PluginError(f"kbkit: {error}") from None
            self.recipes_exported = True
        self.exports = {
            path.parent.relative_to(docs).as_posix(): Manifest.read(path.parent)
            for path in sorted(docs.glob(f"**/{MANIFEST}"))
        }
        navs = {
            prefix: [
                {html.escape(item["title"]): posixpath.normpath(f"{prefix}/{item['path']}")}
                for item in manifest.top()
            ]
            for prefix, manifest in self.exports.items()
        }
        root_nav = navs.pop(".", [])
        exports = [{html.escape(self.exports[prefix].title): nav} for prefix, nav in navs.items()]
        if root_nav:  # the site is an export; others are its sections
            config.nav = [*(config.nav or []), *root_nav, *exports]
        elif exports:
            config.nav = [*(config.nav or []), {self.config.section: exports}]
        self.search = SiteSearch.read(docs, self.exports)
        if self.search.kbs:
            config.nav = [*(config.nav or []), {"Search": PAGE}]
        return config

    def on_files(self, files: Files, config: MkDocsConfig) -> Files:
        """Replace exported pages; only sections stay in the navigation."""
        cache = self.config.cache_dir
        self.renderer = RenderCache(_resolve(config, cache) if cache and self.exports else None)
        for prefix, manifest in self.exports.items():
            data = files.get_file_from_path(posixpath.normpath(f"{prefix}/{GRAPH_DATA}"))
            if data is not None and GRAPH_DATA in manifest.files:
                files.remove(data)  # published as a script
            titles = {item["path"]: str(item["title"]) for item in manifest.top()}
            fetched = {
                document["page"]: str(document.get("fetched", ""))
                for document in read_documents(Path(config.docs_dir, prefix))["documents"]
            }
            places = {posixpath.normpath(f"{prefix}/{path}"): path for path in manifest.files}
            pictures = frozenset(
                each for each in places if each.endswith(".svg") and f"/{IMAGES}/" not in f"/{each}"
            )
            for place, path in places.items():
                file = files.get_file_from_path(place)
                if file is not None and file.is_documentation_page():
                    if path not in titles:
                        file.inclusion = InclusionLevel.NOT_IN_NAV
                    # MkDocs inserts titles into pages as HTML
                    title = html.escape(titles[path]) if path in titles else None
                    page = ExportedPage(title, file, config)
                    page.prefix, page.path = prefix, path
                    page.renderer = self.renderer
                    page.is_document = path in fetched
                    page.checked = fetched.get(path, "")
                    # documents must not show pictures of the export
                    page.pictures = frozenset() if page.is_document else pictures
                    page.images = posixpath.normpath(posixpath.join(prefix, IMAGES))
                    page.found = bool(self.search.name_of(prefix))
        if self.search.kbs:
            file = File.generated(config, PAGE, content="")
            files.append(file)
            SearchPage("Search", file, config).search = self.search
        self.files = files
        return files

    def on_nav(self, nav: Any, *, config: MkDocsConfig, files: Files) -> Any:
        """Read trees and graphs of the exports; set the neighbours of pages in reading order."""
        docs = Path(config.docs_dir)
        graphs = {
            prefix: graph_scripts(docs / prefix, partial(self._url, prefix))
            for prefix in self.exports
        }
        self.graphs = {prefix: scripts for prefix, scripts in graphs.items() if scripts}
        home = files.get_file_from_path("index.md")
        self.sidebars: dict[str, Sidebar] = {}
        for prefix, manifest in self.exports.items():
            address = partial(self._url, prefix)
            site = (config.site_name, home.url) if home and prefix != "." else None
            other_exports = self._others() if prefix == "." else ()
            self.sidebars[prefix] = Sidebar(manifest.nav, address, site, other_exports)
            for path in manifest.files:
                if page := self._page(prefix, path):
                    page.previous_page = page.next_page = None
            pages = (self._page(prefix, path) for path in self.sidebars[prefix].reading())
            for earlier, later in pairwise(page for page in pages if page and page.is_document):
                earlier.next_page, later.previous_page = later, earlier
        return nav

    def on_env(self, env: Any, *, config: MkDocsConfig, files: Files) -> None:
        """Close the cache, since all pages are rendered, and collect the theme's scripts."""
        self.renderer.close()
        self.scripts = theme_scripts(config.theme.dirs)
        if self.exports and config.theme.name == "material":
            sidebar = DictLoader({"partials/nav.html": asset("nav.html.j2")})
            theirs = PrefixLoader({"theme": env.loader})
            env.loader = ChoiceLoader([sidebar, env.loader, theirs])

    # after the search plugin, which is three times faster on plain code
    @event_priority(-100)
    def on_page_context(self, context: Any, *, page: Page, config: MkDocsConfig, nav: Any) -> Any:
        if isinstance(page, ExportedPage):
            page.content = page.coloured.replace(' data-search-exclude="1"', "")
            page.coloured = ""
            page.sidebar = self.sidebars[page.prefix].of(page.path, page.url)
            up, directories = "../" * page.url.count("/"), config.use_directory_urls
            if page.path == HOME and page.found:
                page.add_below_lead(self.search.form(page.prefix, up, directories=directories))
            if page.path == GRAPH and page.prefix in self.graphs:
                name, kb = next(iter(self.graphs[page.prefix])), self.search.name_of(page.prefix)
                page.add_below_lead(picture(name, kb, up + ASSETS))
            if page.is_document and page.found and (names := page.meta.get("about")):
                line = self.search.about(page.prefix, names, up, directories=directories)
                page.add_subjects(line)
        return context

    # after plugins that change pages
    @event_priority(-100)
    def on_post_page(self, output: str, *, page: Page, config: MkDocsConfig) -> str:
        if self.search.kbs:
            output = self.search.add_box(output)
        if isinstance(page, ExportedPage):
            assets = "../" * page.url.count("/") + ASSETS
            return add_head(output, self.scripts, assets=assets)
        if isinstance(page, SearchPage):
            return add_head(output, self.scripts)
        return output

    def on_post_template(
        self, output_content: str, *, template_name: str, config: MkDocsConfig
    ) -> str:
        if not self.search.kbs or not template_name.endswith(".html"):
            return output_content
        output = self.search.add_box(output_content)
        return add_head(output, self.scripts) if template_name == "404.html" else output

    # after the search plugin, which writes the index
    @event_priority(-100)
    def on_post_build(self, *, config: MkDocsConfig) -> None:
        files = dict(scripts().values()) if self.exports else {}
        for graph in self.graphs.values():
            files |= {f"{GRAPHS}/{name}": data for name, data in graph.items()}
        for sidebar in self.sidebars.values():
            files |= {f"{FOLDER}/{name}": data for name, data in sidebar.files()}
        for name, data in files.items():
            path = Path(config.site_dir, ASSETS, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        for prefix in self.exports:
            docs, site = Path(config.docs_dir, prefix), Path(config.site_dir, prefix)
            publish_documents(docs, site, partial(self._address, prefix))
        if self.search.kbs:
            name = html.unescape(config.site_name)
            directories = config.use_directory_urls
            self.search.write(Path(config.site_dir), name, directories=directories)

    def _others(self) -> list[tuple[str, str]]:
        homes = {prefix: self._url(prefix, HOME) for prefix in self.exports if prefix != "."}
        return [(self.exports[prefix].title, url) for prefix, url in homes.items() if url]

    def _file(self, prefix: str, path: str) -> File | None:
        return self.files.get_file_from_path(posixpath.normpath(posixpath.join(prefix, path)))

    def _page(self, prefix: str, path: str) -> ExportedPage | None:
        file = self._file(prefix, path)
        return file.page if file and isinstance(file.page, ExportedPage) else None

    def _url(self, prefix: str, path: str) -> str | None:
        file = self._file(prefix, path)
        return None if file is None else file.url

    def _address(self, prefix: str, path: str) -> str | None:
        url = self._url(prefix, path)
        slash = "/" if url and url.endswith("/") else ""
        return None if url is None else posixpath.relpath(url, prefix) + slash
