"""A workspace and its entries."""

import pytest

import kbkit


@pytest.fixture
def ws(tmp_path):
    with kbkit.open(tmp_path / "ws") as workspace:
        yield workspace


@pytest.fixture
def entries(ws):
    return ws.entries


def write_files(folder, files):
    """Write files by path."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def votes_of(entry):
    return [(vote.score, vote.rater) for vote in entry.rating.votes]
