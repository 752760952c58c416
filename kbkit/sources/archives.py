"""Read pages in a folder, a zip archive, a docset or a WARC.

Nothing is unpacked to disk, and members whose names lead out of the archive are skipped. Sizes are
bounded after decompression.
"""

import gzip
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, urlsplit

from kbkit.errors import SourceError
from kbkit.paths import admits, bytes_of, open_file
from kbkit.recipes import MirrorSource
from kbkit.sources import Outcome, SourceContext, SourceEvent
from kbkit.sources.decode import charset_of
from kbkit.sources.html.site_extractor import SiteExtractor
from kbkit.sources.web.pages import event_of_page
from kbkit.sources.web.urls import canonical

MAX_BYTES = 50_000_000  # of a decompressed page
TOTAL_BYTES = 8_000_000_000  # of a decompressed archive
_MEMBERS = 2_000_000
_PAGES = frozenset({".html", ".htm", ".xhtml"})
_DOCSET = "Contents/Resources/Documents"
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError)

PathFilter = Callable[[str], bool]
"""Whether to read a page, by its path inside (``/a/b.html``)."""


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A stored page, or the reason why it cannot be read.

    Attributes:
        place: Path inside (``a/b.html``); in a WARC, the address.
        body: Bytes; empty if there is a reason.
        charset: Charset from the server, or ``""``.
        failed: Whether it may be readable later.
    """

    place: str
    body: bytes = b""
    charset: str = ""
    reason: str = ""
    failed: bool = False


def read_pages(path: Path, accept: PathFilter) -> Iterator[StoredPage]:
    """Return the HTML pages of a folder, an archive or a docset."""
    name = path.name.lower()
    if path.is_dir():
        inner = path / _DOCSET
        return _folder_pages(inner if name.endswith(".docset") and inner.is_dir() else path, accept)
    if name.endswith(".zip"):
        return _zip_pages(path, accept)
    raise SourceError(
        f"{path.name}: not a folder of pages, nor an archive that kbkit reads "
        "(.zip, .warc, .warc.gz); unpack it"
    )


def _folder_pages(folder: Path, accept: PathFilter) -> Iterator[StoredPage]:
    root = folder.resolve()
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder).as_posix()
        if not _is_wanted(place, accept):
            continue
        try:
            if path.is_dir():
                continue
            if not path.resolve().is_relative_to(root):
                yield StoredPage(place, reason="a link that leads out of the folder")
            elif not path.is_file():
                yield StoredPage(place, reason="not a file")
            else:
                yield _stored_page(place, bytes_of(path, MAX_BYTES + 1))
        except (OSError, RuntimeError) as error:
            yield _failed_page(place, getattr(error, "strerror", None) or "a circle of links")


def _zip_pages(path: Path, accept: PathFilter) -> Iterator[StoredPage]:
    total = 0
    with _as_source_errors(path), open_file(path) as file, zipfile.ZipFile(file) as archive:
        members = sorted(archive.infolist(), key=lambda member: member.filename)
        if len(members) > _MEMBERS:
            raise SourceError(f"{path.name}: more than {_MEMBERS:,} files")
        docsets = (re.match(rf".*?\.docset/{_DOCSET}/", each.filename) for each in archive.filelist)
        strip = next((match[0] for match in docsets if match), "")
        for member in members:
            place = re.sub(r"^(?:\./)+", "", member.filename.removeprefix(strip))
            if _is_wanted(place, accept):
                page = _member(archive, member, place)
                total += len(page.body)
                _check_total(path.name, total)
                yield page


def _is_wanted(place: str, accept: PathFilter) -> bool:
    return PurePosixPath(place).suffix.lower() in _PAGES and accept("/" + place.lstrip("/"))


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, place: str) -> StoredPage:
    if reason := _bad_name(member.filename):
        return StoredPage(place, reason=reason)
    if stat.S_ISLNK(member.external_attr >> 16):
        return StoredPage(place, reason="a link")
    if member.flag_bits & 1:
        return StoredPage(place, reason="encrypted")
    if member.file_size > MAX_BYTES:
        return _too_large(place)
    try:
        with archive.open(member) as stream:
            return _stored_page(place, stream.read(MAX_BYTES + 1))
    except _DAMAGED as error:
        return _failed_page(place, _reason(error))


def read_warc(path: Path, base: str, accept: Callable[[str], bool]) -> Iterator[StoredPage]:
    """Yield the last capture with status 200 of each address in a WARC."""
    latest: dict[str, tuple[str, int]] = {}
    for number, url, date, _ in _records(path):
        if url.startswith(base) and accept(url) and (date, number) >= latest.get(url, ("", 0)):
            latest[url] = (date, number)
    numbers = {number for _, number in latest.values()}
    for number, url, _, record in _records(path):
        if number not in numbers:
            continue
        body = record.content_stream().read(MAX_BYTES + 1)
        yield _stored_page(url, body, charset_of(_content_type(record)))


def _records(path: Path) -> Iterator[tuple[int, str, str, Any]]:
    from warcio.archiveiterator import ArchiveIterator
    from warcio.exceptions import ArchiveLoadFailed

    with _as_source_errors(path), closing(_BoundedFile(path)) as stream:
        try:
            for number, record in enumerate(ArchiveIterator(stream, no_record_parse=False), 1):
                kind, http = record.rec_type, record.http_headers
                is_ok = http is not None and http.get_statuscode() == "200"
                is_answer = kind == "resource" or (kind == "response" and is_ok)
                is_page = _content_type(record).partition(";")[0].strip().lower() in _HTML
                url = canonical(record.rec_headers.get_header("WARC-Target-URI") or "")
                if is_answer and is_page and url:
                    date = record.rec_headers.get_header("WARC-Date") or ""
                    yield number, url, date, record
        except ArchiveLoadFailed as error:
            raise SourceError(f"{path.name}: not a WARC, or damaged ({_reason(error)})") from None


def _content_type(record: Any) -> str:
    return (record.http_headers or record.rec_headers).get_header("Content-Type") or ""


_HTML = frozenset({"text/html", "application/xhtml+xml"})


class _BoundedFile:
    """A file for warcio that bounds what is read."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        zipped = bytes_of(path, 2) == b"\x1f\x8b"
        self._file: Any = gzip.GzipFile(path) if zipped else open_file(path)
        self.tell, self.close = self._file.tell, self._file.close

    def read(self, size: int = -1) -> bytes:
        # headers of archives may claim any length
        if size < 0 or size > MAX_BYTES * 2:
            raise SourceError(f"{self._name}: a part larger than {MAX_BYTES * 2 / 1e6:g} MB")
        data: bytes = self._file.read(size)
        _check_total(self._name, self.tell())
        return data


@contextmanager
def _as_source_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except _DAMAGED as error:
        raise SourceError(f"{path.name}: damaged, or not an archive ({_reason(error)})") from None


def _reason(error: BaseException) -> str:
    text = " ".join((getattr(error, "strerror", None) or str(error)).split())[:200]
    return text or type(error).__name__


def _check_total(name: str, total: int) -> None:
    if total > TOTAL_BYTES:
        raise SourceError(f"{name}: contains more than {TOTAL_BYTES / 1e9:g} GB")


def _bad_name(name: str) -> str:
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0]:
        return "a name that leads out of the archive"
    if any(not character.isprintable() for character in name):
        return "a name with control characters"
    return ""


def _stored_page(place: str, body: bytes, charset: str = "") -> StoredPage:
    return StoredPage(place, body, charset) if len(body) <= MAX_BYTES else _too_large(place)


def _failed_page(place: str, reason: str) -> StoredPage:
    return StoredPage(place, reason=f"cannot be read ({reason})", failed=True)


def _too_large(place: str) -> StoredPage:
    return StoredPage(place, reason=f"larger than {MAX_BYTES / 1e6:g} MB")


def read_mirror(spec: MirrorSource, context: SourceContext) -> Iterator[SourceEvent]:
    """Read a folder, an archive or a WARC of HTML pages, in the order of completion."""
    path = context.base / Path(spec.path).expanduser()
    base = spec.base_url or ""
    base = canonical(base if not base or base.endswith("/") else base + "/")
    if not path.exists():
        raise SourceError(
            f"{spec.path}: no such folder or archive (relative paths start at "
            f"{context.base.resolve()})"
        )
    unread_events: list[SourceEvent] = []

    def is_wanted(inside: str) -> bool:
        is_error_page = inside.endswith("/404.html")  # a server's error page
        return not is_error_page and admits(inside, spec.include, spec.exclude)

    def pages() -> Iterator[tuple[str, str, bytes, str]]:
        if path.name.lower().endswith((".warc", ".warc.gz")):
            stored = read_warc(path, base, lambda url: is_wanted(urlsplit(url).path))
        else:
            stored = read_pages(path, is_wanted)
        for page in islice(stored, spec.limit):
            if context.stop():
                return
            # the place in a WARC is an address
            is_address = page.place.startswith(base)
            uri = page.place if is_address else base + quote(page.place, safe="/~!$&'()*+,;=:@")
            if page.reason:
                outcome = Outcome.FAILED if page.failed else Outcome.SKIPPED
                unread_events.append(SourceEvent(uri, outcome, reason=page.reason))
            else:
                yield uri, uri, page.body, page.charset

    for uri, page in SiteExtractor(engine=context.engine).read(pages(), context.stop):
        # noindex is for search engines; this mirror was chosen by its user
        result = replace(page, reason="") if page.noindex and page.content else page
        yield event_of_page(uri, result)
    yield from unread_events
