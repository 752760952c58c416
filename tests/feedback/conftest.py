"""A small knowledge base to rate, measure and tune."""

import shutil

import pytest

import kbkit

PAGES = {
    "tea": "# Tea\n\n## Green {#green}\n\nGreen tea steeps for two minutes in water that does not "
    "boil.\n\n## Black {#black}\n\nBlack tea steeps for four minutes.\n",
    "coffee": "# Coffee\n\nCoffee is ground just before it is brewed with hot water.\n",
    "milk": "# Milk\n\nMilk is kept cold, and goes into black tea last.\n",
    "bread": "# Bread\n\nBread rises for an hour before it is baked.\n",
}


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory):
    """The folder of a workspace that `kb` copies."""
    folder = tmp_path_factory.mktemp("kitchen") / "kb"
    with kbkit.open(folder) as workspace:
        kb = workspace.create("kitchen")
        for name, text in PAGES.items():
            kb.add(name.title(), text, source=f"http://x.org/{name}.html")
    return folder


@pytest.fixture
def kb(kitchen, tmp_path):
    with kbkit.open(shutil.copytree(kitchen, tmp_path / "kb")) as workspace:
        yield workspace["kitchen"]


@pytest.fixture(scope="module")
def shared(kitchen):
    """The same knowledge base for tests that only read it."""
    with kbkit.open(kitchen) as workspace:
        yield workspace["kitchen"]


@pytest.fixture
def chunk(kb):
    """Finds the id of the chunk with some words."""

    def find(words):
        return next(chunk.id for chunk in kb.chunks if words in chunk.text)

    return find
