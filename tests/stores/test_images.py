"""Images of documents; with a catalog on a server, every machine has them."""

from pathlib import Path

import pytest

import kbkit
from kbkit.errors import WorkspaceError
from kbkit.models import Image, SourceDocument
from kbkit.stores.catalog import reading
from tests.stores.workspaces import execute, opened

pytestmark = pytest.mark.local

DRAWN = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><path d="M0 0h{}v9z"/></svg>'


def pictures():
    from kbkit.sources.html.images import prepare_image

    return [prepare_image(DRAWN.format(n).encode()) for n in range(1, 4)]


def fill(workspace):
    """Add documents with an image each; return the images by name."""
    images = pictures()
    workspace.create("shapes").ingest(
        SourceDocument(
            f"s:{n}",
            f"Shape {n}",
            f"# Shape {n}\n\n![A shape](p{n}.svg)\n",
            images={f"p{n}.svg": image},
        )
        for n, image in enumerate(images)
    )
    return {image.name: image.data for image in images}


def exported(workspace, folder):
    workspace["shapes"].export(folder=folder, pages_only=True)
    return {path.name: path.read_bytes() for path in Path(folder).rglob("images/*.svg")}


def kept(workspace):
    images = workspace._stores.images
    return {name: images.read(name) for name in images.names()}


@pytest.mark.slow
def test_images_on_a_server_reach_other_machines(tmp_path, postgres):
    url = postgres.catalog()
    with opened(tmp_path / "one", url) as one:
        expected = fill(one)
        one.files.write("notes/tea.md", "# Tea\n")
    with opened(tmp_path / "two", url) as two:
        assert exported(two, tmp_path / "site") == expected
        done = two.bundle(tmp_path / "shapes.zip", kbs=["shapes"])
        assert not done.skipped
        # files and entries are in the folder of the other machine
        with pytest.raises(WorkspaceError, match=f"{tmp_path / 'one'}; share that folder"):
            two.bundle(tmp_path / "all.zip")
        assert not (tmp_path / "all.zip").exists()
    assert not (tmp_path / "one" / "images").exists()
    with opened(tmp_path / "three") as three:
        three.restore(tmp_path / "shapes.zip")
        assert kept(three) == expected
    url = postgres.catalog()
    with opened(tmp_path / "four", url) as four:
        four.restore(tmp_path / "shapes.zip")
        assert kept(four) == expected
        four["shapes"].documents.delete("s:0")
        execute(postgres, url, "UPDATE images SET added_at = now() + interval '1 hour'")
        assert four.compact().images == 0  # too young to be removed
        execute(postgres, url, "UPDATE images SET added_at = now() - interval '1 hour'")
        assert four.compact().images == 1
        assert len(kept(four)) == 2
        with pytest.raises(ValueError, match="is not the name of an image"):
            four._stores.images.add(Image("../x.svg", b""))
        assert four._stores.images.read("../x.svg") is None


@pytest.mark.slow
def test_images_move_with_a_workspace(tmp_path, postgres, monkeypatch):
    with opened(tmp_path / "one") as workspace:
        expected = fill(workspace)
    url, other = postgres.empty(), postgres.empty()
    assert kbkit.migrate(tmp_path / "one", to=url).folders == ("images",)
    with opened(tmp_path / "two", url) as workspace:
        assert exported(workspace, tmp_path / "site") == kept(workspace) == expected
    monkeypatch.setenv("KBKIT_DATABASE_URL", url)
    assert kbkit.migrate(tmp_path / "two", to=other).folders == ("images",)
    assert kbkit.migrate(tmp_path / "two", to=tmp_path / "back").folders == ("images",)
    for folder, address in (("three", other), ("back", "")):
        with opened(tmp_path / folder, address) as workspace:
            assert kept(workspace) == expected


def test_image_added_during_a_sweep_stays(tmp_path, monkeypatch):
    """The clock may be wrong: the folder may be on another machine."""
    [image, *_] = pictures()
    with opened(tmp_path) as workspace:
        fill(workspace)
        workspace["shapes"].documents.delete("s:0")
        (tmp_path / "images" / image.name).unlink()
        used = reading.image_names

        def looked_up(transaction):
            names = used(transaction)
            workspace._stores.images.add(image)
            return names - {image.name}

        monkeypatch.setattr("time.time", lambda: 4e9)
        monkeypatch.setattr("kbkit.stores.stores.reading.image_names", looked_up)
        assert workspace._stores.sweep_images() == (0, 0)
        assert image.name in kept(workspace)
