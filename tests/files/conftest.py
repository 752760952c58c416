"""Files without a catalog, and of a workspace."""

import pytest

import kbkit
from kbkit.files.files import Files
from tests.files.plain import plain_files


@pytest.fixture
def files(tmp_path) -> Files:
    return plain_files(tmp_path / "ws")


@pytest.fixture
def workspace(tmp_path):
    with kbkit.open(tmp_path / "ws") as workspace:
        yield workspace


def paths(infos):
    return [info.path for info in infos]
