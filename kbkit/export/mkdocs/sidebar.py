"""The sidebar of exported pages: the sections above a page with their entries.

A script loads other sections when a reader unfolds them; without scripts their names are links. So
the size of a page does not grow with the number of documents.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import BaseLoader, ChoiceLoader, DictLoader, PrefixLoader

from kbkit.export.index.packing import encode_call
from kbkit.export.pages.outline import BROWSE
from kbkit.export.pages.paths import digest

MAX_SHOWN = 40
"""Maximum entries of a section on a page."""
MAX_UNFOLDED = 500
"""Maximum entries of an unfolded section."""
FOLDER = "contents"
"""Folder of the files of sections, next to the scripts."""

_TEMPLATE = "partials/nav.html"
_NAV = """{% if page and page.sidebar %}
<nav class="md-nav md-nav--primary kb-contents" aria-label="{{ lang.t('nav') }}" data-md-level="0">
<label class="md-nav__title" for="__drawer">
<a href="{{ nav.homepage.url | d('', true) | url }}" title="{{ config.site_name | e }}" \
class="md-nav__button md-logo" aria-label="{{ config.site_name }}" data-md-component="logo">\
{% include "partials/logo.html" %}</a>{{ config.site_name }}</label>
<ul class="md-nav__list" data-md-scrollfix>{{ page.sidebar }}</ul>
</nav>
{% else %}{% include "theme/partials/nav.html" %}{% endif %}
"""


def with_sidebar(templates: BaseLoader) -> BaseLoader:
    ours = DictLoader({_TEMPLATE: _NAV})
    return ChoiceLoader([ours, templates, PrefixLoader({"theme": templates})])


@dataclass(slots=True, eq=False)
class _Entry:
    """A page or a section in the tree.

    Attributes:
        listing: Address of the section's full list.
        ends: Whether it is the first entry after the documents.
    """

    title: str
    url: str
    listing: str = ""
    over: _Entry | None = None
    children: list[_Entry] = field(default_factory=list)
    ends: bool = False

    @property
    def id(self) -> str:
        return digest(f"{self.url} {self.listing}")


class Sidebar:
    """The tree of one export."""

    def __init__(
        self,
        nav: Sequence[Mapping[str, Any]],
        address: Callable[[str], str | None],
        site: tuple[str, str] | None = None,
        others: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._address = address
        self._site = site
        self._others = others
        self._entries: dict[str, _Entry] = {}
        self._root = _Entry("", "")
        self._root.children = list(self._read(nav, self._root))
        if nav and "list" in nav[0]:
            self._root.listing = address(nav[0]["list"]) or ""

    def _read(
        self, nav: Sequence[Mapping[str, Any]], over: _Entry, prefix: str = ""
    ) -> Iterator[_Entry]:
        for item in nav:
            path = str(item["path"])
            url = self._address(path)
            if url is None:
                continue
            # members of a class do not repeat its name
            title = str(item["title"])
            short = title.removeprefix(f"{prefix}.") if prefix else title
            entry = _Entry(short, url, over=over, ends=path == BROWSE)
            self._entries.setdefault(path, entry)
            if children := item.get("children"):
                listed = str(item.get("list", ""))
                entry.listing = (self._address(listed) if listed else "") or url
                entry.children = list(self._read(children, entry, title))
                self._entries.setdefault(listed or path, entry)
            yield entry

    def reading(self) -> Iterator[str]:
        return iter(self._entries)

    def of(self, path: str, url: str) -> str:
        up = "../" * url.count("/")
        current = self._entries.get(path)
        branch = []
        entry = current
        while entry is not None:
            branch.append(entry)
            entry = entry.over
        parts = []
        if self._site:
            title, address = self._site
            parts.append(_item(f"‹ {html.escape(title)}", up + address, "kb-site"))
        parts += _level(self._root, branch, current, url, up)
        parts += [_item(html.escape(title), up + to, "kb-other") for title, to in self._others]
        return "".join(parts)

    def files(self) -> Iterator[tuple[str, bytes]]:
        for entry in self._entries.values():
            if entry.children:
                rows = [
                    [each.title, each.url, *([each.id] if each.children else [])]
                    for each in entry.children[:MAX_UNFOLDED]
                ]
                if left := len(entry.children) - len(rows):
                    rows.append([f"{left:,} more", entry.listing])
                yield f"{entry.id}.js", encode_call("kbkitContents", [entry.id, rows])

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self.files():
            (folder / name).write_bytes(data)


def _level(
    over: _Entry, branch: Sequence[_Entry], current: _Entry | None, here: str, up: str
) -> Iterator[str]:
    entries = over.children
    if len(entries) > MAX_SHOWN:
        place = next((n for n, each in enumerate(entries) if each in branch), 0)
        first = max(0, min(place - MAX_SHOWN // 2, len(entries) - MAX_SHOWN))
        entries = entries[first : first + MAX_SHOWN]
    for entry in entries:
        link = _link(html.escape(entry.title), up + entry.url)
        if entry is current and entry.url == here:
            link = link.replace(
                'class="md-nav__link"',
                'class="md-nav__link md-nav__link--active" aria-current=page',
            )
        if not entry.children:
            yield f'<li class="md-nav__item{" kb-end" * entry.ends}">{link}</li>'
        elif entry in branch:
            inner = "".join(_level(entry, branch, current, here, up))
            yield f'<li class="md-nav__item kb-open" data-kb={entry.id}>{link}<ul>{inner}</ul></li>'
        else:
            yield f'<li class="md-nav__item" data-kb={entry.id}>{link}</li>'
    if len(entries) < len(over.children) and over.listing:
        yield _item(f"All {len(over.children):,} …", up + over.listing, "kb-all")


def _link(title: str, address: str) -> str:
    return f'<a class="md-nav__link" href="{html.escape(address)}">{title}</a>'


def _item(title: str, address: str, name: str) -> str:
    return f'<li class="md-nav__item {name}">{_link(title, address)}</li>'
