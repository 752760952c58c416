"""Fixtures for the tests of retrieval."""

import pytest


@pytest.fixture
def vectors_in_chroma(monkeypatch):
    """Chroma is asked as if there were too many vectors to scan."""
    monkeypatch.setattr("kbkit.stores.snapshots.segments.SCAN_LIMIT", 0)
