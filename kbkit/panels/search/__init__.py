"""The search panel."""
