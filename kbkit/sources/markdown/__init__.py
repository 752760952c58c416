"""Convert Markdown dialects to the Markdown that kbkit stores: CommonMark with tables and anchors.

* `containers`: admonitions, tabs, details and directives of MkDocs, GitHub, MyST, Docusaurus and
  VitePress, footnotes, definition lists, abbreviations, components of MDX;
* `inline`: emoji codes, roles, attribute lists, tasks, tags, raw HTML.

Code is never changed.
"""

from __future__ import annotations

from kbkit.sources.markdown.containers import labels, unfold
from kbkit.sources.markdown.inline import heading_titles, plain_markup


def commonmark(text: str, *, components: bool = False) -> str:
    unfolded = unfold(text, components=components)
    targets = heading_titles(unfolded) if "ref}`" in unfolded else {}
    notes = frozenset(labels(text))
    return plain_markup(unfolded, notes=notes, components=components, targets=targets)
