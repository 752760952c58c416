"""Checks that the links inside a built site lead somewhere, anchors included."""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """The ids and the links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element is called and where it leads."""
        values = {name: value for name, value in attrs if value}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        for name in ("href", "src"):
            if name in values and values.get("rel") != "canonical":
                self.links.add(values[name])


def broken(site: Path) -> Iterator[tuple[str, str]]:
    """Links that lead nowhere: the page each stands on, relative to the site, and the link.

    Addresses elsewhere are not asked for.
    """
    pages = {
        path.relative_to(site).as_posix(): _Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
    }
    for name, page in pages.items():
        if name == "404.html":
            continue  # it is served in place of any page, so its links start at the root
        for link in sorted(page.links):
            target = urlsplit(link)
            if target.scheme or target.netloc:
                continue
            path = unquote(target.path)
            goal = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            if not path:
                goal = name
            elif (site / goal).is_dir():
                goal = posixpath.normpath(f"{goal}/index.html")
            lost = goal not in pages and not (site / goal).is_file()
            anchor = unquote(target.fragment)
            # the theme makes an anchor of its own for the top of a page
            if lost or (anchor and goal in pages and anchor not in {*pages[goal].ids, "__top"}):
                yield name, link


def main() -> None:
    """Check the site that is named; the exit code tells whether all is well."""
    found = list(broken(Path(sys.argv[1])))
    for page, link in found[:50]:
        print(f"{page}: {link} leads nowhere", file=sys.stderr)
    if found:
        sys.exit(f"{len(found)} links lead nowhere")


if __name__ == "__main__":
    main()
