"""Workspaces for the tests of retrieval."""

import pytest

import kbkit


@pytest.fixture
def workspace(tmp_path):
    with kbkit.open(tmp_path / "kb") as opened:
        yield opened


@pytest.fixture
def vectors_in_chroma(monkeypatch):
    """Chroma is asked as if there were too many vectors to scan."""
    monkeypatch.setattr("kbkit.retrieval.corpora._SCAN_LIMIT", 0)
