"""Text as search reads it: the analyzer, its stop words, and Markdown without link targets."""

from kbkit.text.analysis import REVISION, Analyzer, analyzer
from kbkit.text.links import without_link_targets

__all__ = ["REVISION", "Analyzer", "analyzer", "without_link_targets"]
