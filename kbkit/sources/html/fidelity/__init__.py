"""Measure how much of a page its Markdown keeps.

Independent of the extractor, including the parsing of HTML and Markdown, so that neither hides the
other's mistakes. Content is found by what the pages of a site have in common, landmarks, links and
headings: `runs` and `states` read pages, `markdown` reads Markdown, `measure` compares them.
"""

from __future__ import annotations

from kbkit.sources.html.fidelity.markdown import recurring, survey
from kbkit.sources.html.fidelity.measure import KINDS, Fidelity

__all__ = ["KINDS", "Fidelity", "recurring", "survey"]
