"""Check the internal links of a built site, including anchors."""

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
        """Collect ids and links."""
        values = {name: value for name, value in attrs if value}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        for name in ("href", "src"):
            if name in values and values.get("rel") != "canonical":
                self.links.add(values[name])


def broken(site: Path) -> Iterator[tuple[str, str]]:
    """Yield each broken internal link with its page, relative to the site."""
    pages = {
        path.relative_to(site).as_posix(): _Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
    }
    for name, page in pages.items():
        if name == "404.html":
            continue  # served for any address, so its links start at the root
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
            # the theme adds an anchor for the top of a page
            if lost or (anchor and goal in pages and anchor not in {*pages[goal].ids, "__top"}):
                yield name, link


def main() -> None:
    """Check a site; exit with an error if a link is broken."""
    found = list(broken(Path(sys.argv[1])))
    for page, link in found[:50]:
        print(f"{page}: {link} is broken", file=sys.stderr)
    if found:
        sys.exit(f"{len(found)} links are broken")


if __name__ == "__main__":
    main()
