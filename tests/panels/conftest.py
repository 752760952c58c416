"""A small real workspace for the panels."""

import json
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import kbkit
from kbkit.knowledge_base import KnowledgeBase
from kbkit.panels import GraphPanel
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


@pytest.fixture
def kb(scratch: Workspace) -> KnowledgeBase:
    return scratch["garden"]


def text_of(markup: str) -> str:
    """Return the text of HTML."""

    class Text(HTMLParser):
        text = ""

        def handle_data(self, data: str) -> None:
            self.text += data

    parser = Text()
    parser.feed(markup)
    return parser.text


def status(panel: Any) -> str:
    return text_of(panel.status_line.value)


def ask(panel: Any, what: str, **values: Any) -> dict[str, Any]:
    """Send a request as the page does, and return the reply."""
    replies: list[dict[str, Any]] = []
    panel._view.send = lambda content, buffers=None: replies.append(content)
    panel._view._handle_custom_msg({"event": what, "number": 7, **values}, [])
    if isinstance(panel, GraphPanel):  # which answers in a thread
        panel._join(60)
    (reply,) = [each for each in replies if each.get("number") == 7]
    json.dumps(reply)
    del reply["number"]
    return reply
