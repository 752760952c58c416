"""Markdown: its structure, its rendering, and text of others made harmless."""
