"""Text as search reads it: the analyzer, its stop words, and Markdown without link targets."""

from kbkit.markdown.links import without_link_targets
from kbkit.text.analysis import REVISION, Analyzer, analyzer

__all__ = ["REVISION", "Analyzer", "analyzer", "without_link_targets"]
