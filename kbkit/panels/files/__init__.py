"""The files panel."""
