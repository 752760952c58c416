"""What places on disk are called where others read it: never by where they are."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

import kbkit
from kbkit.sources import DiskPlace, public_uri, without_machine


@pytest.fixture
def base(tmp_path):
    for name in ("work/docs/deep", "else/docs"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.md").touch()
    return tmp_path / "work"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("docs", "docs"),
        ("./docs/../docs/", "docs"),
        (".", ""),
        ("docs/deep", "docs/deep"),
        ("docs/**/*.md", "docs"),
        ("*.md", ""),
        ("docs/deep/a.md", "docs/deep/a.md"),
        ("../else/docs", "docs"),
        ("..", None),
        ("../else/docs/*.md", "docs"),
        ("../else/docs/a.md", "a.md"),
        ("missing/*.md", "missing"),
        ("/", ""),
    ],
)
def test_names_of_places(base, path, name):
    place = DiskPlace.of(path, base)
    assert place.name == (base.parent.name if name is None else name)
    assert place.root.is_absolute()


def test_absolute_path_is_named_from_its_base_or_its_last_part(base):
    docs = base / "docs"
    assert DiskPlace.of(str(docs / "deep"), base).name == "docs/deep"
    assert DiskPlace.of(str(docs / "deep"), docs.parent.parent / "else").name == "deep"
    # the whole path would be what lies below the root folder
    assert DiskPlace.of(str(docs / "deep"), Path("/")).name == "deep"


def test_uris_name_files_in_the_place(base):
    assert DiskPlace.of("docs", base).uri(base / "docs/deep/a.md") == "docs/deep/a.md"
    assert DiskPlace.of(".", base).uri(base / "docs/a.md") == "docs/a.md"
    elsewhere = base.parent / "else/docs"
    assert DiskPlace.of(str(elsewhere), base).uri(elsewhere / "a.md") == "docs/a.md"
    assert DiskPlace.of(str(elsewhere / "a.md"), base).uri(elsewhere / "a.md") == "a.md"


def test_places_with_the_same_name_are_numbered(base):
    ours, theirs = DiskPlace.of("docs", base), DiskPlace.of("../else/docs", base)
    assert theirs.apart([ours]).name == "docs-2"
    assert theirs.apart([ours, theirs.apart([ours])]).name == "docs-2"  # the same folder
    assert DiskPlace.of("docs/deep", base).apart([ours]).name == "docs/deep"
    assert DiskPlace(base / "x/deep", "docs/deep").apart([ours]).name == "docs/deep-2"
    here = DiskPlace.of(".", base)
    assert theirs.apart([here]).name == "docs-2"
    assert DiskPlace(base / "x/new", "new").apart([here]).name == "new"
    assert DiskPlace.of(".", base.parent / "else").apart([here]).name == "else-2"
    one, other = (DiskPlace(base / folder / "a.md", "a.md") for folder in ("x", "y"))
    assert other.apart([one]).name == "a-2.md"


NOT_HERE = [
    "https://a.test/home/x",
    "python:os.path",
    "text:note",
    "docs/a.md",
    "/guide/a.html",
    "",
    "upload:a.md",
    "file:",
    "file:a.md",
    "~/docs/a.md",
    "~other/a b.md",
    "a:/kettle",
    "z:kettle",
    "/guide/two words.md",
    "urn:x:y",
    *(() if os.name == "nt" else ("C:/docs/a.md", r"C:\docs\a.md", r"\\server\share\a.md")),
]


PLACES = ("below the home folder", "in the temporary folder", "root")


@pytest.fixture(params=PLACES)
def anywhere(request, tmp_path, monkeypatch):
    """Run a test in three working directories, each with another home folder."""
    places = {"root": Path("/"), "in the temporary folder": Path(tempfile.gettempdir())}
    place = places.get(request.param, tmp_path)
    monkeypatch.chdir(place)
    monkeypatch.setenv("HOME", str(place))


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("uri", NOT_HERE)
def test_uris_of_other_machines_are_unchanged(uri):
    assert public_uri(uri) == uri


@pytest.mark.parametrize(
    "anywhere",
    ["root", *(pytest.param(place, marks=pytest.mark.slow) for place in PLACES[:2])],
    indirect=True,
)
@pytest.mark.usefixtures("anywhere")
def test_document_is_found_by_its_original_name(base):
    here = base / "docs/two words.md"
    here.touch()
    names = [*filter(None, NOT_HERE), str(here), (base / "docs/a.md").as_uri() + "#part"]
    with kbkit.open(base / "kb") as workspace:
        kb = workspace.create("guides")
        for name in names:
            kb.add("Kettle", f"A kettle called {name}.", source=name)
        assert [kb.documents[name].content for name in names] == [
            f"A kettle called {name}." for name in names
        ]
        uris = {document.uri for document in kb.documents}
        assert len(uris) == len(names)
        assert not any(str(base) in uri for uri in uris)
        here.unlink()  # the name still means the same document
        for name in names:
            kb.add("Kettle", "A kettle with a thermostat.", source=name)
            kb.rate(name, 1)
            kb.documents.delete(name)
            kb.documents.undelete(name)
            assert name in kb.documents
        assert {document.uri for document in kb.documents} == uris


@pytest.mark.usefixtures("anywhere")
def test_path_below_the_base_folder_is_relative(base):
    path = base / "docs/deep/a.md"
    assert public_uri(str(path), base / "docs") == "deep/a.md"
    assert public_uri(path.as_uri() + "#part", base) == "docs/deep/a.md#part"


def test_other_files_have_unique_names(base, monkeypatch):
    one, other = base.parent / "else/docs/a.md", base / "docs/a.md"
    name = public_uri(str(one))
    assert name.startswith("docs-")
    assert name.endswith("/a.md")
    assert name not in (public_uri(str(other)), public_uri(str(base.parent / "a.md")))
    monkeypatch.chdir(one.parent)
    monkeypatch.setenv("HOME", str(one.parent))
    assert public_uri(str(one)) == name


def test_output_of_programs_names_no_local_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path.parent)
    output = f"default={str(tmp_path / 'cache')!r}, in {sys.prefix}/share or {os.fspath(tmp_path)}."
    name = tmp_path.name
    assert without_machine(output) == f"default='.../{name}/cache', in .../share or .../{name}."
    monkeypatch.chdir("/")
    assert without_machine(f"PosixPath('{tmp_path}/x')") == "PosixPath('~/x')"
    assert without_machine(f"{tmp_path}-other /usr/share") == f"{tmp_path}-other /usr/share"
