"""Text as search reads it: `analysis` turns it into terms, `stopwords` lists what it leaves out."""

from kbkit.text.analysis import REVISION, Analyzer, analyzer

__all__ = ["REVISION", "Analyzer", "analyzer"]
