"""The process that forks children to kill."""

import pytest

from tests.faults.cases import Children


@pytest.fixture(scope="session")
def children():
    running = Children()
    yield running
    running.close()
