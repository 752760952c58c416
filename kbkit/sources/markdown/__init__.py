"""Convert Markdown dialects to the Markdown that kbkit stores.

What is kept is CommonMark with tables and anchors of headings, as it is written of HTML pages too:
search reads no markup, offsets of chunks are those of what is kept, and every interface shows the
same. Dialects are turned into it where they are read:

* `containers`: what spans lines. Admonitions, tabs, details and directives of MkDocs, GitHub,
  MyST, Docusaurus and VitePress, footnotes, definition lists, abbreviations;
* `components`, `formulas`, `listings`: MDX, formulas on lines of their own, tables of MyST;
* `inline`: what stands in lines, and raw HTML. Emoji codes, roles, attribute lists, tasks, tags;
* `html_tables`: Markdown in cells of HTML.

Code is never touched.
"""

from __future__ import annotations

from kbkit.sources.markdown.containers import labels, unfold
from kbkit.sources.markdown.inline import heading_titles, plain_markup


def commonmark(text: str, *, components: bool = False) -> str:
    """Convert Markdown of any dialect to the CommonMark that kbkit stores."""
    unfolded = unfold(text, components=components)
    targets = heading_titles(unfolded) if "ref}`" in unfolded else {}
    notes = frozenset(labels(text))
    return plain_markup(unfolded, notes=notes, components=components, targets=targets)
