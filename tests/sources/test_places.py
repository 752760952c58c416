"""What places on disk are called where others read it: never by where they are."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from kbkit.sources.places import DiskPlace, published_uri, without_machine


@pytest.fixture
def base(tmp_path):
    for name in ("work/docs/deep", "else/docs"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.md").touch()
    return tmp_path / "work"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("docs", "docs"), ("./docs/../docs/", "docs"), (".", ""), ("docs/deep", "docs/deep"),
        ("docs/**/*.md", "docs"), ("*.md", ""), ("docs/deep/a.md", "docs/deep/a.md"),
        ("../else/docs", "docs"), ("..", None), ("../else/docs/*.md", "docs"),
        ("../else/docs/a.md", "a.md"), ("missing/*.md", "missing"), ("/", ""),
    ],
)  # fmt: skip
def test_names_of_places(base, path, name):
    place = DiskPlace.of(path, base)
    assert place.name == (base.parent.name if name is None else name)
    assert place.root.is_absolute()


def test_an_absolute_path_is_called_as_from_its_base_or_by_its_last_part(base):
    docs = base / "docs"
    assert DiskPlace.of(str(docs / "deep"), base).name == "docs/deep"
    assert DiskPlace.of(str(docs / "deep"), docs.parent.parent / "else").name == "deep"
    # the whole path would be what lies below the root folder
    assert DiskPlace.of(str(docs / "deep"), Path("/")).name == "deep"


def test_uris_are_of_files_in_the_place(base):
    assert DiskPlace.of("docs", base).uri(base / "docs/deep/a.md") == "docs/deep/a.md"
    assert DiskPlace.of(".", base).uri(base / "docs/a.md") == "docs/a.md"
    elsewhere = base.parent / "else/docs"
    assert DiskPlace.of(str(elsewhere), base).uri(elsewhere / "a.md") == "docs/a.md"
    assert DiskPlace.of(str(elsewhere / "a.md"), base).uri(elsewhere / "a.md") == "a.md"


def test_places_of_one_name_are_told_apart(base):
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


@pytest.mark.parametrize(
    "uri",
    ["https://a.test/home/x", "python:os.path", "text:note", "docs/a.md", "/guide/a.html", "",
     "upload:a.md", "file:"],
)  # fmt: skip
def test_what_is_no_path_of_this_machine_stays(uri):
    assert published_uri(uri) == uri


def test_paths_of_this_machine_are_told_from_a_folder_that_says_nothing(base, monkeypatch):
    monkeypatch.setenv("HOME", str(base))
    path = base / "docs/deep/a.md"
    assert published_uri(str(path)) == "docs/deep/a.md"
    assert published_uri(str(path), base / "docs") == "deep/a.md"
    assert published_uri(path.as_uri() + "#part") == "docs/deep/a.md#part"
    here = Path(tempfile.gettempdir(), "x.md")
    assert published_uri(str(here)) == "x.md"


def test_other_files_get_names_that_are_theirs_alone(base, monkeypatch, tmp_path_factory):
    monkeypatch.setenv("HOME", str(base))
    monkeypatch.setattr(tempfile, "tempdir", str(base / "docs"))
    one, other = base.parent / "else/docs/a.md", base.parent / "a.md"
    other.touch()
    names = {published_uri(str(each)) for each in (one, other)}
    assert len(names) == 2
    assert not any(str(base.parent) in name or name.startswith("/") for name in names)
    assert published_uri(str(one)) in names


def test_what_programs_write_says_nothing_of_this_machine(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path.parent)
    said = f"default={str(tmp_path / 'cache')!r}, in {sys.prefix}/share or {os.fspath(tmp_path)}."
    assert without_machine(said) == "default='.../" + tmp_path.name + "/cache', in .../share or " \
        ".../" + tmp_path.name + "."  # fmt: skip
    monkeypatch.chdir("/")
    assert without_machine(f"PosixPath('{tmp_path}/x')") == "PosixPath('~/x')"
    assert without_machine(f"{tmp_path}-other /usr/share") == f"{tmp_path}-other /usr/share"
