"""A served workspace, its clients and its tokens."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

import kbkit
from kbkit.access import Tokens
from kbkit.server import ServerSettings, running


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Iterator[kbkit.Workspace]:
    with kbkit.open(tmp_path_factory.mktemp("rest") / "kb") as opened:
        opened.create("drinks").add("Tea", "Steep tea for two minutes.")
        opened.create("food").add("Bread", "Bake bread for an hour.")
        yield opened


@pytest.fixture(scope="module")
def serve(workspace):
    """Serves the workspace as settings say, and gives a client of it."""

    @contextmanager
    def started(**settings):
        with (
            running(workspace, ServerSettings(port=0, **settings)) as url,
            httpx.Client(base_url=url, timeout=20) as client,
        ):
            yield client

    return started


@pytest.fixture
def tokens(workspace) -> Iterator[Tokens]:
    """Tokens of the workspace, revoked after the test."""
    created = Tokens(workspace)
    yield created
    for info in created.list():
        created.revoke(info.id)
