"""Broken and hostile files give a reason, and cost no crash, time, memory or secret."""

import io
import json
import random
import re
import struct
import time
import zipfile
import zlib
from collections.abc import Iterator

import pytest

from kbkit.sources import untrusted as archive
from kbkit.sources.formats import FileParser, UnreadableError, parse
from tests.sources.formats import samples

ENTITIES = (
    '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
    + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + "]>"
)
FILE = '<!DOCTYPE x [<!ENTITY i SYSTEM "file:///etc/passwd">]>'


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def with_member(data: bytes, name: str, body: bytes) -> bytes:
    return samples.zipped({**members(data), name: body})


def corrupted(chance: random.Random) -> Iterator[tuple[str, bytes]]:
    """Files of every format, each broken in every way."""
    for name, data in samples.every().items():
        for share in (0.01, 0.05, 0.2, 0.4, 0.6, 0.8, 0.9, 0.99):
            yield name, data[: int(len(data) * share)]
        for count in (1, 1, 2, 5, 10, 20, 50, 200):
            flipped = bytearray(data)
            for _ in range(count):
                flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            yield name, bytes(flipped)
        low = chance.randrange(len(data))
        yield name, data[:low] + bytes(64) + data[low + 64 :]
        yield name, data[:low] + chance.randbytes(64) + data[low:]
        yield name, data[low:] + data[:low]
        yield name, chance.randbytes(len(data) % 5000)
        yield name, data[:8] + chance.randbytes(2000)
        if data.startswith(b"PK"):
            yield from inside(name, data, chance)
    # the content of one format under the name of another
    every = samples.every()
    for name in every:
        for other in chance.sample(sorted(every), 3):
            yield name, every[other]


def inside(name: str, data: bytes, chance: random.Random) -> Iterator[tuple[str, bytes]]:
    """Archives that are whole, with broken members."""
    parts = members(data)
    texts = [part for part in parts if part.endswith((".xml", ".rels", ".opf", ".xhtml"))]
    for _ in range(25):
        part = chance.choice(texts)
        body = bytearray(parts[part])
        match chance.randrange(4):
            case 0:
                body = body[: chance.randrange(len(body))]
            case 1:
                for _ in range(10):
                    body[chance.randrange(len(body))] = chance.randrange(256)
            case 2:
                low = chance.randrange(len(body))
                body = body[:low] + body[low + chance.randrange(200) :]
            case 3:
                body = bytearray()
        yield name, samples.zipped({**parts, part: bytes(body)})
    for part in chance.sample(sorted(parts), 4):
        yield name, samples.zipped({key: body for key, body in parts.items() if key != part})


@pytest.mark.soak
def test_500_corrupted_files_are_read_or_refused() -> None:
    files = list(corrupted(random.Random(1)))
    assert len(files) >= 500
    with FileParser(2) as reader:
        futures = [reader.submit(name, data) for name, data in files]
        results = [future.result(timeout=60) for future in futures]
        good = reader.submit("x.pdf", samples.pdf(1)).result()
    assert good.parts
    for (name, _), result in zip(files, results, strict=True):
        assert bool(result.parts) != bool(result.reason), name
        assert "\n" not in result.reason
        assert len(result.reason) < 400
        # no parser crashed, or took longer than a file may
        assert not result.failed, name
    read = sum(bool(result.parts) for result in results)
    print(f"{len(files)} files: {read} read, {len(files) - read} refused with a reason")


def lying_zip(name: str, size: int) -> bytes:
    """An archive whose member claims to be small, and unpacks to a lot."""
    data = samples.zipped({name: bytes(size)})
    return data.replace(struct.pack("<L", size), struct.pack("<L", 100)).replace(
        struct.pack("<L", zlib.crc32(bytes(size))), struct.pack("<L", zlib.crc32(bytes(100)))
    )


def hostile() -> Iterator[tuple[str, bytes, str]]:
    docx, xlsx, pptx, epub = (samples.docx(), samples.xlsx(3), samples.pptx(), samples.epub())
    for name, data, part in (
        ("x.docx", docx, "word/document.xml"),
        ("x.xlsx", xlsx, "xl/workbook.xml"),
        ("x.xlsx", xlsx, "xl/worksheets/sheet1.xml"),
        ("x.pptx", pptx, "ppt/slides/slide1.xml"),
        ("x.docx", docx, "_rels/.rels"),
    ):
        for bomb in (ENTITIES + "<x>&i;</x>", FILE + "<x>&i;</x>"):
            yield name, with_member(data, part, bomb.encode()), "hostile"
            yield name, with_member(data, part, bomb.encode("utf-16")), "hostile"
        utf7 = '<?xml version="1.0" encoding="UTF-7"?>+ADw-!DOCTYPE x+AD4-'
        yield name, with_member(data, part, utf7.encode()), "charset"
    bomb = with_member(docx, "word/document.xml", bytes(201_000_000))
    yield "x.docx", bomb, "unpacks to more than 200 MB"
    yield "x.docx", with_member(docx, "word/document.xml", docx), "charset|broken"  # nested
    yield "x.docx", lying_zip("[Content_Types].xml", 5_000_000), "broken|XML|charset"
    yield "x.epub", with_member(epub, "OEBPS/one.xhtml", bytes(201_000_000)), "unpacks"
    yield "x.epub", with_member(epub, "META-INF/container.xml", FILE.encode()), "broken"
    many = samples.zipped({f"m{n}": b"" for n in range(10_001)}, compressed=False)
    yield "x.docx", many, "members"
    yield "x.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(5000), "encrypted"
    yield "x.pdf", samples.encrypted_pdf(), "encrypted"
    flagged = docx.replace(b"PK\x03\x04\x14\x00\x00", b"PK\x03\x04\x14\x00\x01")
    flagged = flagged.replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01")
    yield "x.docx", flagged, "encrypted"
    yield "x.json", b"[" * 200_000, "nested too deeply|broken"
    yield "x.json", b"9" * 100_000, "too long|digits"
    yield "x.yaml", b"[" * 50_000, ""
    yield "x.yaml", b"a" + b" " * 1_000_000, ""
    yield "x.yaml", b"a: !!python/object/apply:os.system [x]\nb: {", ""
    yield "x.py", b"(" * 50_000, ""
    yield "x.py", b"x = " + b"-" * 200_000 + b"1", ""
    yield "x.html", b"<div>" * 100_000 + b"words", ""
    yield "x.ipynb", b"[" * 200_000, "nested too deeply|broken"
    yield "x.ipynb", json.dumps({"cells": [{"cell_type": "code", "outputs": 7}, 3]}).encode(), "no"
    yield "x.csv", b"a," * 10_000, "columns"
    yield "x.csv", b'"' + b"x" * 12_000_000, "field"
    yield "x.rst", b"* " * 20_000, ""
    yield "x.rst", b".. a:: b\n\n" + b"".join(b" " * n + b"x\n" for n in range(1500)), ""
    yield "x.rst", b"|a|\n\n.. |a| replace:: |a|\n", ""
    yield "x.go", b"func " * 100_000, ""


@pytest.mark.slow
def test_hostile_files_end_with_a_reason() -> None:
    files = list(hostile())
    with FileParser(2) as reader:
        futures = [reader.submit(name, data) for name, data, _ in files]
        for (name, data, reason), future in zip(files, futures, strict=True):
            result = future.result(timeout=100)
            assert not result.failed, (name, data[:60], result.reason)
            if reason:
                assert re.search(reason, result.reason), (name, data[:60], result.reason)
            assert not any("root:" in part.content for part in result.parts)


def test_yaml_aliases_are_not_expanded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40)]
    (part,) = parse("x.yaml", "\n".join(lines).encode())
    assert len(part.content) < 10_000


def test_sheet_that_claims_a_million_rows_is_read() -> None:
    data, name = samples.xlsx(3, sheets=1), "xl/worksheets/sheet1.xml"
    sheet = members(data)[name].decode()
    row = '<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>far</t></is></c></row>'
    sheet = sheet.replace("</sheetData>", row + "</sheetData>")
    started = time.process_time()
    (part,) = parse("x.xlsx", with_member(data, name, sheet.encode()))
    assert "| P1-2 | 3 |" in part.content
    assert time.process_time() - started < 10


def test_sizes_of_members_are_counted() -> None:
    opened = archive.Archive(lying_zip("x.xml", 5_000_000))
    try:
        assert len(opened.read("x.xml")) <= 100
    except UnreadableError as error:
        assert "cannot be unpacked" in str(error)  # noqa: PT017 - either way is safe


def test_parser_over_its_time_or_memory_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    from kbkit.sources import formats as file_parser

    monkeypatch.setattr(file_parser.ParseTask, "seconds", 0.2)
    with FileParser(1) as reader:
        slow = reader.submit("x.json", json.dumps([[1] * 50] * 60_000).encode()).result(30)
        assert slow.failed
        assert "longer than 0.2 s" in slow.reason
        monkeypatch.setattr(file_parser.ParseTask, "seconds", 60.0)
        assert reader.submit("x.json", b'{"a": 1}').result(30).parts
    monkeypatch.setattr(file_parser, "MEMORY", 300_000_000)
    with FileParser(1) as reader:
        huge = reader.submit("x.json", b"[" + b"[],[],[]," * 3_000_000 + b"1]").result(60)
        assert "memory" in huge.reason or huge.failed
        assert reader.submit("x.json", b'{"a": 1}').result(30).parts
