"""Markdown pages of an exported knowledge base, and files for programs."""
