"""A small real workspace for the panels."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import kbkit
from kbkit.workspace import Workspace

HOSTILE_TITLE = "<script>boom()</script> Files <img src=x onerror=boom()>"
HOSTILE_TEXT = (
    "Read a file <img src=x onerror='boom()'> or [click](javascript:boom()) "
    '"><script>boom()</script> ' + "x" * 50_000
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with kbkit.open(tmp_path_factory.mktemp("workspace")) as workspace:
        manual = workspace.create("manual", description="A manual")
        manual.add(
            "Reading CSV files",
            "## Reader\n\nThe csv.reader function reads a CSV file row by row.",
            source="https://docs.example.org/csv.html",
            document_type="reference",
        )
        manual.add(
            "Opening files",
            "## Open\n\nThe open function opens a file and returns a file object.",
            source="https://docs.example.org/open.html",
        )
        notes = workspace.create("notes")
        notes.add(HOSTILE_TITLE, HOSTILE_TEXT, source="javascript:boom()")
        notes.add("Baking bread", "Flour, water, salt and time make a good bread.")
        yield workspace


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a workspace that `scratch` copies."""
    folder = tmp_path_factory.mktemp("garden") / "kb"
    with kbkit.open(folder) as workspace:
        workspace.create("garden").add("Roses", "Roses need sun, water and patience.")
    return folder


@pytest.fixture
def scratch(garden: Path, tmp_path: Path) -> Iterator[Workspace]:
    """A workspace that a test may change."""
    with kbkit.open(shutil.copytree(garden, tmp_path / "kb")) as workspace:
        yield workspace
