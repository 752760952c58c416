"""Sites of nearly empty knowledge bases."""

import pytest

import kbkit
from kbkit.export.index_writer import index_folder
from kbkit.export.published_index import PublishedIndex

TEXTS = {
    "no term": ["# A\n"],
    "stop words": ["# And\n\nThe of and to, with which it was.\n"],
    "signs": ["# ???\n\n!!! --- ***\n"],
    "one term": ["# Zebra\n"],
    "a term beside none": ["# Zebra\n\nStripes.\n", "# A\n"],
    "nothing": [],
}


def knowledge_base(folder, texts):
    kb = kbkit.open(folder / "kb").create("few")
    for number, text in enumerate(texts):
        kb.add(f"{number}", text, source=f"note-{number}")
    return kb


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[] if case == "nothing" else pytest.mark.soak) for case in TEXTS],
)
def test_site_of_few_terms_is_built(case, tmp_path):
    kb = knowledge_base(tmp_path, TEXTS[case])
    report = kb.export(folder=tmp_path / "out")
    assert (report.site / "index.html").is_file()
    assert report.documents == len(TEXTS[case])
    hits = PublishedIndex.open(tmp_path / "out/docs").search("zebra") if TEXTS[case] else []
    assert bool(list(hits)) == ("term" in case and "no term" not in case)


@pytest.mark.soak
def test_site_is_built_after_its_documents_are_deleted(tmp_path):
    kb = knowledge_base(tmp_path, ["# Zebra\n\nStripes.\n"])
    assert kb.export(folder=tmp_path / "out").documents == 1
    assert index_folder(tmp_path / "out/docs").is_dir()
    kb.documents.delete("note-0")
    report = kb.export(folder=tmp_path / "out")
    assert report.documents == 0
    assert (report.site / "index.html").is_file()
    assert not (tmp_path / "out/docs/search").exists()
