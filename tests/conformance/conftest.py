"""The same workspace in a folder and behind a server on loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import kbkit
from kbkit.server import ServerSettings, running


@pytest.fixture(scope="module")
def disk(tmp_path_factory) -> Path:
    """Folder of the workspace on disk, which another program may write to."""
    return tmp_path_factory.mktemp("conformance") / "kb"


@pytest.fixture(scope="module", params=["folder", "server"])
def workspace(request, disk) -> Iterator[kbkit.Workspace]:
    """An empty workspace of a module, local or served."""
    with kbkit.open(disk / request.param) as local:
        if request.param == "folder":
            yield local
            return
        with (
            running(local, ServerSettings(port=0, rate=0, allow_write=True)) as url,
            kbkit.connect(url) as remote,
        ):
            yield remote


@pytest.fixture
def url(workspace) -> str:
    """Address of a served workspace, for its asynchronous calls."""
    if not hasattr(workspace, "url"):
        pytest.skip("a folder has no asynchronous calls")
    return workspace.url
