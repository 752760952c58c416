"""Measure how much of a page its Markdown keeps.

Independent of the extractor, even in parsing HTML and Markdown, so that neither hides the other's
mistakes. Shared text of a site's pages, landmarks, links and headings identify the content. `runs`
and `states` read pages, `markdown` reads Markdown, `measure` compares them.
"""

from __future__ import annotations

from kbkit.sources.html.fidelity.markdown import recurring, survey
from kbkit.sources.html.fidelity.measure import KINDS, Fidelity

__all__ = ["KINDS", "Fidelity", "recurring", "survey"]
