"""The workspace that most of these tests are about."""

from __future__ import annotations

import pytest

import kbkit


@pytest.fixture
def ws(tmp_path):
    with kbkit.open(tmp_path / "ws") as workspace:
        yield workspace


@pytest.fixture
def entries(ws):
    return ws.entries
