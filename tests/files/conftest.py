"""The files that most of these tests are about."""

from __future__ import annotations

import pytest

from kbkit.files.files import Files
from tests.files.plain import plain_files


@pytest.fixture
def files(tmp_path) -> Files:
    return plain_files(tmp_path / "ws")
