"""Text analysis for search."""

from kbkit.text.analysis import REVISION, Analyzer, analyzer

__all__ = ["REVISION", "Analyzer", "analyzer"]
