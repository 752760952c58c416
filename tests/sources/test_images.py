"""Pictures of Markdown files: copied along where they are pictures, and of the folder."""

import io
import os
import struct
import zlib
from pathlib import Path

import pytest
from PIL import Image as Pillow

import kbkit
from kbkit.recipes import FilesSource
from kbkit.sources.html.images import MAX_BYTES, image_addresses, prepare_image

SVG = b"""<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9"
  onload="alert(1)"><script>alert(2)</script><circle id="c" r="3" fill="red" onclick="x()"/>
  <use xlink:href="#c"/><use href="https://evil.example/x#c"/><foreignObject><b>x</b></foreignObject>
  <image href="https://evil.example/pixel.png"/><style>@import "https://evil.example/x.css";</style>
  <rect style="fill: url(https://evil.example/#p)"/><a href="javascript:alert(3)"><text>t</text></a>
  <animate attributeName="href" values="javascript:alert(4)"/></svg>"""


def picture(form: str, size: tuple[int, int] = (4, 3)) -> bytes:
    stream = io.BytesIO()
    Pillow.new("RGB", size, (9, 99, 199)).save(stream, form)
    return stream.getvalue()


def bomb() -> bytes:
    """A PNG that says that it is 60,000 by 60,000."""
    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    crc = zlib.crc32(b"IHDR" + head)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + head + struct.pack(">I", crc)


@pytest.mark.parametrize(
    ("form", "suffix"), [("PNG", "png"), ("JPEG", "jpg"), ("GIF", "gif"), ("WEBP", "webp")]
)
def test_images_are_recognized_by_content(form: str, suffix: str) -> None:
    image = prepare_image(picture(form))
    assert image is not None
    assert image.name.endswith(f".{suffix}")
    assert image.data == picture(form)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<script>alert(1)</script>",
        b"%PDF-1.7",
        b"\x89PNG\r\n\x1a\nbroken",
        bomb(),
        picture("PNG") + b"\0" * MAX_BYTES,
        picture("BMP"),
        b"<html><svg></svg></html>",
        b'<!DOCTYPE svg [<!ENTITY a "aaaa">]><svg xmlns="http://www.w3.org/2000/svg">&a;</svg>',
        b'<svg xmlns="http://www.w3.org/1999/xhtml"></svg>',
    ],
)
def test_other_data_is_no_image(data: bytes) -> None:
    assert prepare_image(data) is None


def test_svg_keeps_shapes_only() -> None:
    image = prepare_image(SVG)
    assert image is not None
    text = image.data.decode()
    assert "<circle" in text
    assert 'xlink:href="#c"' in text
    marks = ("script", "alert", "onload", "onclick", "evil.example", "foreignObject", "@import")
    assert [mark for mark in marks if mark in text] == []


def test_addresses_of_images() -> None:
    text = r"![a](x.png) [l](y.png) ![b](<with space.png> 't') [![c](z(1).svg)](u) ![a](x.png)"
    assert image_addresses(text) == ["x.png", "with space.png", "z(1).svg"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    for name in ("img", "guide", "public"):
        (docs / name).mkdir(parents=True)
    (docs / "img/a b.png").write_bytes(picture("PNG"))
    (docs / "img/v.svg").write_bytes(SVG)
    (docs / "img/fake.png").write_bytes(b"<script>alert(1)</script>")
    (docs / "public/site.gif").write_bytes(picture("GIF"))
    (tmp_path / "secret.png").write_bytes(picture("PNG", (7, 7)))
    (docs / "img" / "link.png").symlink_to(tmp_path / "secret.png")
    os.mkfifo(docs / "img" / "pipe.png")
    (docs / "guide" / "a.md").write_text(
        '# A\n\n![One](../img/a%20b.png){ width="3" } <img src="../img/v.svg" alt="Two">\n'
        "![Site](/site.gif) ![Fake](../img/fake.png) ![Link](../img/link.png)\n"
        "![Up](../../secret.png) ![Abs](/etc/passwd) ![File](file:///etc/passwd)\n"
        "![Pipe](../img/pipe.png) ![Web](https://x.example/p.png)\n"
        "![Data](data:image/png;base64,xx)\n"
    )
    return tmp_path


@pytest.mark.slow
def test_images_of_files_are_exported(folder: Path) -> None:
    with kbkit.Workspace(folder / "ws") as workspace:
        kb = workspace.create("pictures")
        kb.ingest(FilesSource(path=str(folder / "docs")))
        (document,) = kb.documents
        assert set(document.images) == {"../img/a%20b.png", "../img/v.svg", "/site.gif"}
        before = kb.ingest(FilesSource(path=str(folder / "docs")))
        assert (before.same, before.changed) == (1, 0)
        report = kb.export(folder=folder / "site")
        page = next((folder / "site" / "site" / "pages").rglob("*.html")).read_text()
        assert page.count("<img ") == 3
        assert page.count('loading="lazy"') == 3
        for name in document.images.values():
            assert f"/images/{name}" in page
            assert (folder / "site" / "site" / "images" / name).is_file()
        for alt in ("Fake", "Link", "Up", "Abs", "File", "Pipe"):
            assert f'alt="{alt}"' not in page
        copied = {path.name for path in (folder / "site" / "docs" / "images").iterdir()}
        assert copied == set(document.images.values())
        assert kb.export(folder=folder / "site").written < report.written
        (folder / "docs" / "guide" / "a.md").write_text("# A\n\nNo picture any more.\n")
        kb.ingest(FilesSource(path=str(folder / "docs")))
        kb.export(folder=folder / "site")
        assert not (folder / "site" / "docs" / "images").exists()
