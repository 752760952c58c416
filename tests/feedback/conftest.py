"""A small knowledge base to rate, measure and tune."""

from contextlib import contextmanager

import pytest

import kbkit

PAGES = {
    "tea": "# Tea\n\n## Green {#green}\n\nGreen tea steeps for two minutes in water that does not "
    "boil.\n\n## Black {#black}\n\nBlack tea steeps for four minutes.\n",
    "coffee": "# Coffee\n\nCoffee is ground just before it is brewed with hot water.\n",
    "milk": "# Milk\n\nMilk is kept cold, and goes into black tea last.\n",
    "bread": "# Bread\n\nBread rises for an hour before it is baked.\n",
}


@contextmanager
def kitchen(folder):
    with kbkit.open(folder) as workspace:
        kb = workspace.create("kitchen")
        for name, text in PAGES.items():
            kb.add(name.title(), text, source=f"http://x.org/{name}.html")
        yield kb


@pytest.fixture
def kb(tmp_path):
    with kitchen(tmp_path / "kb") as kb:
        yield kb


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """The same for tests that change nothing."""
    with kitchen(tmp_path_factory.mktemp("shared") / "kb") as kb:
        yield kb


@pytest.fixture
def chunk(kb):
    """Gives the id of the chunk that holds some words."""

    def find(words):
        return next(chunk.id for chunk in kb.chunks if words in chunk.text)

    return find
