"""Mirrors in archives have the same pages as in a folder, and only pages."""

import gzip
import io
import random
import zipfile
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from kbkit.errors import ConfigError, SourceError
from kbkit.recipes import MirrorSource
from kbkit.sources import Outcome, SourceContext, archives, open_reader

BASE = "https://docs.example/v1/"
NAMES = ("index.html", "guide/start.html", "guide/end.htm")


@pytest.fixture
def folder(tmp_path: Path, page) -> Path:
    for name in NAMES:
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(name))
    (tmp_path / "site" / "style.css").write_text("p {}")
    return tmp_path


def read(base: Path, path: str, **options) -> list:
    options.setdefault("base_url", BASE)
    spec = MirrorSource(path=path, **options)
    return list(open_reader(spec).events(SourceContext(base=base)))


def contents(events: list) -> dict[str, str]:
    return {event.uri: event.document.content for event in events if event.document}


def pack(folder: Path, prefix: str = "") -> None:
    files = [path for path in (folder / "site").rglob("*") if path.is_file()]
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        for path in files:
            archive.write(path, prefix + path.relative_to(folder / "site").as_posix())


def test_archive_is_read_like_its_folder(folder) -> None:
    pack(folder)
    expected = contents(read(folder, "site"))
    assert sorted(expected) == sorted(BASE + part for part in NAMES)
    assert contents(read(folder, "a.zip")) == expected
    part = contents(read(folder, "a.zip", include=("/guide/*",), exclude=("*end*",)))
    assert list(part) == [BASE + "guide/start.html"]
    assert len(contents(read(folder, "a.zip", limit=2))) == 2


def test_docsets(folder) -> None:
    pack(folder, "Toy.docset/Contents/Resources/Documents/")
    assert sorted(contents(read(folder, "a.zip"))) == sorted(BASE + part for part in NAMES)
    (folder / "Toy.docset" / "Contents" / "Resources").mkdir(parents=True)
    (folder / "site").rename(folder / "Toy.docset" / "Contents" / "Resources" / "Documents")
    assert sorted(contents(read(folder, "Toy.docset"))) == sorted(BASE + part for part in NAMES)


HOSTILE = (
    "../up.html",
    "/etc/abs.html",
    "a/../../b.html",
    "C:/x.html",
    "..\\w.html",
    "li\nne.html",
)


def test_hostile_names_in_a_zip(tmp_path, page) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in (*HOSTILE, "good.html"):
            archive.writestr(name, page("x"))
        link = zipfile.ZipInfo("link.html")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    results = read(tmp_path, "a.zip")
    assert list(contents(results)) == [BASE + "good.html"]
    skipped = [event for event in results if event.outcome is Outcome.SKIPPED]
    assert len(skipped) == len(HOSTILE) + 1
    assert {event.reason for event in skipped} == {
        "a name that leads out of the archive",
        "a name with control characters",
        "a link",
    }
    assert all(event.uri.startswith(BASE) for event in skipped)


def test_links_out_of_the_folder_are_skipped(folder) -> None:
    (folder / "secret.html").write_text("<p>secret</p>")
    (folder / "site" / "link.html").symlink_to(folder / "secret.html")
    results = {event.uri: event.reason for event in read(folder, "site")}
    assert results[BASE + "link.html"] == "a link that leads out of the folder"


def test_archive_bombs_are_bounded(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(archives, "MAX_BYTES", 1_000_000)
    monkeypatch.setattr(archives, "TOTAL_BYTES", 5_000_000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("big.html", b"a" * 3_000_000)
        archive.writestr("ok.html", "<p>Some words that are all there is to say here.</p>")
    results = {event.uri: event.reason for event in read(tmp_path, "a.zip")}
    assert results[BASE + "big.html"] == "larger than 1 MB"
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(6):
            archive.writestr(f"{number}.html", b"a" * 900_000)
    with pytest.raises(SourceError, match=r"more than 0\.005 GB"):
        read(tmp_path, "b.zip")
    (tmp_path / "w.warc.gz").write_bytes(gzip.compress(b"WARC/1.0\r\n" + b"a: b\r\n" * 1_000_000))
    with pytest.raises(SourceError, match=r"more than 0\.005 GB"):
        read(tmp_path, "w.warc.gz")


@pytest.mark.parametrize("name", ["a.zip", "w.warc.gz"])
def test_damaged_archives_are_one_clear_error(folder, name) -> None:
    if name == "w.warc.gz":
        warc(folder / name, [(f"{BASE}{n}", "200", "<p>words</p>", "2026") for n in range(50)])
    else:
        pack(folder)
    whole = (folder / name).read_bytes()
    refused = []
    for seed in range(40):
        data, draw = bytearray(whole), random.Random(seed)
        if seed % 2:
            del data[len(data) * seed // 40 :]
        else:
            for _ in range(1 + seed):
                data[draw.randrange(len(data))] ^= 1 << seed % 8
        (folder / name).write_bytes(data)
        try:
            read(folder, name)
        except SourceError as error:
            refused.append(str(error))
    assert len(refused) > 5
    assert not any("\n" in message for message in refused)


@pytest.mark.parametrize("name", ["a.tgz", "a.zip", "nowhere.zip"])
def test_other_files_are_no_archives(tmp_path, name) -> None:
    (tmp_path / "a.tgz").write_text("x")
    (tmp_path / "a.zip").write_text("x")
    with pytest.raises(SourceError, match=r"not a folder|not an archive|no such folder"):
        read(tmp_path, name)


def warc(path: Path, records: list[tuple[str, str, str, str]], **headers: str) -> None:
    kind = headers.get("kind", "text/html; charset=utf-8")
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=path.suffix == ".gz")
        for url, status, body, date in records:
            record = writer.create_warc_record(
                url,
                "response",
                io.BytesIO(body.encode()),
                http_headers=StatusAndHeaders(f"{status} OK", [("Content-Type", kind)], "HTTP/1.1"),
                warc_headers_dict={"WARC-Date": f"{date}-01-01T00:00:00Z"},
            )
            writer.write_record(record)


@pytest.mark.parametrize("name", ["w.warc", "w.warc.gz"])
def test_warcs_have_addresses(tmp_path, page, name) -> None:
    records = [
        (BASE + "a.html", "200", page("New", text="The new text of a page, as it is now."), "2026"),
        (BASE + "a.html", "200", page("Old", text="The old text of a page, as it was."), "2024"),
        (BASE + "b.html", "200", page("Other"), "2026"),
        (BASE + "gone.html", "404", page("Gone"), "2026"),
        ("https://elsewhere.example/", "200", page("Else"), "2026"),
    ]
    warc(tmp_path / name, records)
    results = contents(read(tmp_path, name, base_url=None))
    assert sorted(results) == [BASE + "a.html", BASE + "b.html", "https://elsewhere.example/"]
    assert "The new text" in results[BASE + "a.html"]
    assert sorted(contents(read(tmp_path, name))) == [BASE + "a.html", BASE + "b.html"]
    assert list(contents(read(tmp_path, name, exclude=("*/a*",)))) == [BASE + "b.html"]


def test_warc_without_pages(tmp_path) -> None:
    warc(tmp_path / "w.warc", [(BASE + "x", "200", "{}", "2026")], kind="application/json")
    assert read(tmp_path, "w.warc") == []
    (tmp_path / "bad.warc.gz").write_bytes(gzip.compress(b"GET / HTTP/1.1\r\n\r\n"))
    with pytest.raises(SourceError, match="not a WARC"):
        read(tmp_path, "bad.warc.gz")


def test_only_warcs_need_no_base_url() -> None:
    MirrorSource(path="x.warc.gz")
    with pytest.raises(ConfigError, match="base_url is needed"):
        MirrorSource(path="site")
