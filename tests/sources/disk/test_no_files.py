"""Pipes and devices in place of files are refused at once."""

import os
from pathlib import Path

import pytest

import kbkit
from kbkit.errors import BundleError, SourceError
from kbkit.recipes import FilesSource, JsonlSource, MirrorSource, OpenApiSource, ParquetSource
from kbkit.sources import Outcome, SourceContext, open_reader

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes"),
    pytest.mark.timeout(60),
]


@pytest.fixture(params=["a pipe", "a device"])
def place(request, tmp_path):
    """Puts a pipe or a device where a file is expected."""

    def place(name: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        if request.param == "a pipe":
            os.mkfifo(path)
        else:
            path.symlink_to("/dev/zero")
        return path

    return place


def events(spec, base):
    return list(open_reader(spec).events(SourceContext(base=base)))


BESIDE = ("b.md", "b.txt", "b.rst", "mkdocs.yml", "../mkdocs.yml")


@pytest.mark.parametrize("path", ["docs", "docs/*"])
@pytest.mark.parametrize("name", BESIDE)
def test_pipe_or_device_in_a_folder(tmp_path, place, name, path):
    (tmp_path / "docs").mkdir()
    place(f"docs/{name}")
    (tmp_path / "docs/ok.md").write_text("# Fine\n\n![b](b.md)\n")
    results = events(FilesSource(path=path), tmp_path)
    read = [event.document.title for event in results if event.outcome is Outcome.FETCHED]
    assert read == ["Fine"]
    others = [event for event in results if event.outcome is not Outcome.FETCHED]
    assert all("not a file" in event.reason or "leads out" in event.reason for event in others)


@pytest.mark.parametrize("path", ["docs", "docs/*"])
def test_links_in_a_circle(tmp_path, path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("# Fine\n\n[[b]] ![b](b.md)\n")
    (tmp_path / "mkdocs.yml").write_text('nav: [b.md, a.md, "a\\0.md"]')
    for name in ("b.md", "c.odd"):
        (tmp_path / "docs" / name).symlink_to(tmp_path / "docs" / name)
    results = events(FilesSource(path=path), tmp_path)
    assert [event.outcome for event in results][:2] == [Outcome.FETCHED, Outcome.SKIPPED]


def test_pipe_or_device_in_a_mirror(tmp_path, place):
    place("site/b.html")
    (tmp_path / "site/a.html").write_text("<title>A</title><h1>A page</h1><p>Words of it.</p>")
    results = events(MirrorSource(path="site", base_url="https://example.com/"), tmp_path)
    assert [event.outcome for event in results] == [Outcome.FETCHED, Outcome.SKIPPED]


@pytest.mark.parametrize(
    "spec",
    [
        JsonlSource(path="in"),
        ParquetSource(path="in"),
        OpenApiSource(path="in"),
        *(
            MirrorSource(path=f"in{suffix}", base_url="https://example.com/")
            for suffix in (".zip", ".warc.gz", ".warc")
        ),
    ],
    ids=lambda spec: f"{spec.type} {spec.path}",
)
def test_pipe_or_device_as_a_source(tmp_path, place, spec):
    place(spec.path)
    with pytest.raises(SourceError, match="not a file, but a pipe or a device"):
        events(spec, tmp_path)


def test_pipe_or_device_in_a_reference(tmp_path, place):
    place("parts.yaml")
    (tmp_path / "api.yaml").write_text(
        "openapi: 3.0.0\ninfo: {title: T, version: '1'}\n"
        "paths: {/a: {get: {responses: {'200': {$ref: 'parts.yaml#/a'}}}}}\n"
    )
    results = events(OpenApiSource(path="api.yaml"), tmp_path)
    # a link to a device leads out of the folder
    assert any("not a file, but" in event.reason or "out of" in event.reason for event in results)


def test_pipe_or_device_as_a_bundle(tmp_path, place):
    with (
        kbkit.open(tmp_path / "kb") as workspace,
        pytest.raises(BundleError, match="not a file, but a pipe or a device"),
    ):
        workspace.restore(place("in.zip"))
