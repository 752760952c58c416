"""The judging panel."""
