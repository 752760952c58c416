"""Measure how much of a page its Markdown keeps.

Written apart from the extractor on purpose, down to the reading of the tree and of Markdown: a
mistake of one does not hide behind the other. What is content is found by what the pages of a site
have in common, by landmarks, links and headings; `runs`, `states` and `page` read pages so,
`markdown` reads what was written, `measure` compares them.
"""

from __future__ import annotations

from kbkit.sources.html.fidelity.markdown import recurring, survey
from kbkit.sources.html.fidelity.measure import KINDS, Fidelity

__all__ = ["KINDS", "Fidelity", "recurring", "survey"]
