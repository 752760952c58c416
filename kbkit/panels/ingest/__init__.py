"""The panel that brings documents in."""
