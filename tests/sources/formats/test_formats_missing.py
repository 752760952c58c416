"""Formats whose library is not installed."""

import sys

import pytest

from kbkit.errors import MissingExtraError
from kbkit.recipes import FilesSource
from kbkit.sources import Outcome, SourceContext, open_reader
from kbkit.sources.formats import ParseTask, parse
from tests.sources.formats import samples
from tests.sources.web.crawls import Memory


@pytest.mark.parametrize(
    ("name", "module", "message"),
    [
        ("a.docx", "mammoth", "Reading DOCX needs mammoth"),
        ("b.pdf", "pypdfium2", "Reading PDF needs pypdfium2"),
        ("c.pptx", "pptx", "Reading PPTX needs python-pptx"),
        ("d.xlsx", "openpyxl", "Reading XLSX needs openpyxl"),
    ],
)
def test_missing_library_is_named(name, module, message, monkeypatch) -> None:
    data = getattr(samples, name[2:])()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=f'{message}: pip install "kbkit\\[office\\]"'):
        parse(name, data)
    assert ParseTask(name, data).perform().failed


def test_missing_library_fails_a_file_and_its_known_parts(tmp_path, monkeypatch) -> None:
    (tmp_path / "d.xlsx").write_bytes(samples.xlsx(sheets=2))
    (tmp_path / "e.csv").write_bytes(samples.csv_file())
    reader = open_reader(FilesSource(path="."))
    first = list(reader.events(SourceContext(base=tmp_path)))
    assert [event.uri for event in first] == ["d.xlsx/Sheet 1", "d.xlsx/Sheet 2", "e.csv"]
    # read in this process, where the library is missing
    monkeypatch.setattr("kbkit.sources.formats.NEED_PROCESS", frozenset())
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    again = reader.events(SourceContext(base=tmp_path, memory=Memory(first)))
    failed = [event.uri for event in again if event.outcome is Outcome.FAILED]
    assert failed == ["d.xlsx", "d.xlsx/Sheet 1", "d.xlsx/Sheet 2"]
