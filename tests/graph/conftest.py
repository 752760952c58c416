import pytest

from kbkit.knowledge_base import handle_of


@pytest.fixture
def kb(workspace):
    return workspace.create("manual")


@pytest.fixture
def graph(workspace):
    return workspace.graph


@pytest.fixture
def database(kb):
    return handle_of(kb).stores.database
