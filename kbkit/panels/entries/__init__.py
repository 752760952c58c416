"""The entries panel."""
