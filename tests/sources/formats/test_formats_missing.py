"""Formats whose library is not installed."""

import json
import os
import subprocess
import sys

import pytest

import kbkit
from kbkit.recipes import FilesSource
from tests.sources.formats import samples

LIBRARIES = {
    "a.docx": ("mammoth", "Reading DOCX", "mammoth"),
    "b.pdf": ("pypdfium2", "Reading PDF", "pypdfium2"),
    "c.pptx": ("pptx", "Reading PPTX", "python-pptx"),
    "d.xlsx": ("openpyxl", "Reading XLSX", "openpyxl"),
}
REFRESH = """
import json, sys
import kbkit
with kbkit.open(sys.argv[1]) as workspace:
    kb = workspace["office"]
    report = kb.refresh()
    states = {document.uri: document.state.value for document in kb.documents}
print(json.dumps([{p.uri: p.reason for p in report.failed}, states, report.changed, report.new]))
"""


@pytest.fixture
def folder(tmp_path):
    """A workspace that read all files with every library installed."""
    docs = tmp_path / "docs"
    docs.mkdir()
    files = {
        "a.docx": samples.docx(),
        "b.pdf": samples.pdf(),
        "c.pptx": samples.pptx(),
        "d.xlsx": samples.xlsx(sheets=2),
        "e.csv": samples.csv_file(),
        "f.md": b"# F\n\nBefore.\n",
    }
    for name, data in files.items():
        (docs / name).write_bytes(data)
    with kbkit.open(tmp_path / "work") as workspace:
        report = workspace.create("office").ingest(FilesSource(path="docs"), base=tmp_path)
        assert (report.new, report.failed, report.skipped) == (7, (), ())
    (docs / "f.md").write_text("# F\n\nAfter.\n")
    (docs / "g.md").write_text("# G\n\nNew.\n")
    return tmp_path


@pytest.mark.slow
def test_missing_library_fails_only_its_files(folder, tmp_path):
    absent = tmp_path / "absent"
    absent.mkdir()
    for module, _, _ in LIBRARIES.values():
        (absent / f"{module}.py").write_text(
            f'raise ModuleNotFoundError("No module named {module!r}", name={module!r})\n'
        )
    path = os.pathsep.join(filter(None, [str(absent), os.environ.get("PYTHONPATH", "")]))
    run = subprocess.run(
        [sys.executable, "-c", REFRESH, str(folder / "work")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert "Traceback" not in run.stderr
    problems, states, changed, new = json.loads(run.stdout)
    for name, (_, ability, package) in LIBRARIES.items():
        reason = f'{ability} needs {package}: pip install "kbkit[office]"'
        assert problems.pop(f"docs/{name}") == reason
    # the sheets that were read before are named too
    assert all(uri.startswith("docs/d.xlsx/") for uri in problems)
    # stored documents stay; files that need no library are read
    assert (changed, new) == (1, 1)
    fresh = {"docs/e.csv", "docs/f.md", "docs/g.md"}
    assert {uri for uri, state in states.items() if state == "current"} == fresh
    assert len(states) == 8
    assert {state for uri, state in states.items() if uri not in fresh} == {"stale"}
