"""Equal titles get the part of the path in which they differ."""

import pytest

import kbkit
from kbkit.models.documents import disambiguate


@pytest.mark.parametrize(
    ("uris", "parts"),
    [
        (["http://h/a/index.html", "http://h/b/index.html", "http://h/"], ["a", "b", ""]),
        (["http://h/v1/a.html", "http://h/v2/b.html"], ["v1/a", "v2/b"]),
        (["http://h/x?id=1", "http://h/x?id=2"], ["id=1", "id=2"]),
        (["files:docs/a/README.md", "files:docs/b/README.md"], ["a", "b"]),
        (["http://h/a/%E2%80%AE%00x", "http://h/a/c"], ["x", "c"]),
        (["http://h/a/" + "x" * 80, "http://h/a/c"], ["x" * 40, "c"]),
        (["http://h/only.html"], [""]),
    ],
)
def test_labels_of_equal_titles(uris, parts):
    labels = disambiguate(dict.fromkeys(uris, "Overview") | {"http://h/other": "Other"})
    assert labels.pop("http://h/other") == "Other"
    assert list(labels.values()) == [f"Overview ({part})" if part else "Overview" for part in parts]


def test_equal_titles_differ_in_sites_and_notebooks(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("docs")
        for part in ("install", "network"):
            for page in ("index", "first", "second"):
                title = "Overview" if page == "index" else f"The {page} of {part}"
                text = f"All about the {page} page of {part}, at length."
                kb.add(title, text, source=f"http://h/{part}/{page}.html")
        hits = kb.search("overview of all pages", limit=10)
        assert "Overview (network)</a>" in hits._repr_html_()
        assert {hit.title for hit in hits} >= {"Overview"}
        project = kb.export(build=False).folder / "docs"
    home = (project / "index.md").read_text()
    assert "[Overview (install)](" in home
    assert "[Overview (network)](" in home
    (page,) = project.glob("pages/**/network/index.md")
    assert "\n# Overview\n" in page.read_text(), "the page itself has its own title"
