"""Licenses of documents: name, address and attribution.

The input is untrusted: names become one line of limited length, and only web addresses are
accepted. A document stores its license in its metadata, under `KEYS`.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kbkit.models.values import Value

KEYS = ("license", "license_url", "attribution")
"""Metadata keys of a document's license."""
NAME_LENGTH = 200
"""Maximum characters of a license's name."""
TEXT_LENGTH = 300
"""Maximum characters of an attribution."""
URL_LENGTH = 500
"""Maximum characters of an address; longer ones are dropped."""

_MAX = 4_000  # characters to examine

_ADDRESS = re.compile(r"https?://[^\s<>\"'`{}|\\^]+", re.IGNORECASE)
_ACTIVE = re.compile(r"(?:javascript|vbscript|data|file|blob)\s*:", re.IGNORECASE)
_ARCHIVED = re.compile(r"^https?://web\.archive\.org/web/\w+/(?=https?://)")
_PARENTHESES = re.compile(r"\([^()]{0,100}\)")
_IGNORED_WORDS = frozenset(
    str.split("""
        the a license licence licenses version v international universal generic unported software
        public gnu
    """)
)
_CREATIVE = re.compile(
    r"(?:creativecommons|cc)(?:attribution|by)(noncommercial|nc)?"
    r"(sharealike|sa|noderivatives|noderivs|nd)?([1-4])([05])"
)
_GNU = {"gpl": "GPL", "lgpl": "LGPL", "agpl": "AGPL", "fdl": "GFDL"}


@dataclass(frozen=True, slots=True)
class License(Value):
    """A license as its source states it; each part may be ``""``. True if it has a name or address.

    Attributes:
        name: SPDX name or expression (``CC-BY-4.0``) if recognized, else the stated text.
        url: Address of its terms (http or https).
        attribution: Credit, as in a copyright notice.
    """

    name: str = ""
    url: str = ""
    attribution: str = ""

    def __bool__(self) -> bool:
        return bool(self.name or self.url)

    @property
    def label(self) -> str:
        """Name of the license, by default its address."""
        return self.name or self.url

    @property
    def link(self) -> str:
        """Address of the terms: as stated, by default the known one of the name."""
        return self.url or _terms(self.name)

    @classmethod
    def stated(cls, name: object = "", url: object = "", attribution: object = "") -> License:
        """Return a license from untrusted values. Values that are not strings are dropped.

        Args:
            name: Name, SPDX expression or address.
            url: Address.
            attribution: Notice or name.
        """
        values = (name, url, attribution)
        # cut before caching, to bound the cache
        return _license_of(*(value[:_MAX] if isinstance(value, str) else "" for value in values))

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> License:
        """Read the license from a document's untrusted metadata."""
        license_, url, attribution = (metadata.get(key) for key in KEYS)
        if isinstance(license_, Mapping):
            url = url or license_.get("url")
            license_ = license_.get("identifier") or license_.get("name")
        return cls.stated(license_, url, attribution or metadata.get("copyright"))

    def to_metadata(self) -> dict[str, str]:
        """Return non-empty parts by the `KEYS` of a document's metadata."""
        values = (self.name, self.url, self.attribution)
        return {key: value for key, value in zip(KEYS, values, strict=True) if value}

    def or_else(self, other: License) -> License:
        """Fill in missing parts from another license; name and address only together."""
        source = self if self else other
        return License(source.name, source.url, self.attribution or other.attribution)


@lru_cache(maxsize=4096)
def _license_of(name: str, url: str, attribution: str) -> License:
    text = one_line(name, NAME_LENGTH)
    address = _address(url) or _address(name)
    if _ACTIVE.match(text) or _ADDRESS.fullmatch(text):
        text = ""
    identifier = name_of_address(address) or standard_name(text)
    return License(identifier or text, address, one_line(attribution, TEXT_LENGTH))


def one_line(text: str, length: int) -> str:
    """Return text in one line without control and formatting characters, cut to a length."""
    folded = " ".join(text.split())
    clean = "".join(char for char in folded if not unicodedata.category(char).startswith("C"))
    return clean if len(clean) <= length else clean[: length - 1].rstrip() + "…"


def _address(url: str) -> str:
    url = url.strip()
    if len(url) > URL_LENGTH or not url.isprintable() or not _ADDRESS.fullmatch(url):
        return ""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises ValueError if invalid
    except ValueError:
        return ""
    return url if parts.hostname and "@" not in parts.netloc else ""


def name_of_address(url: str) -> str:
    try:
        parts = urlsplit(_ARCHIVED.sub("", url))
    except ValueError:
        return ""
    host = (parts.hostname or "").removeprefix("www.")
    steps = [step for step in parts.path.split("/") if step]
    last_step = re.sub(r"\.(?:html?|txt|php|[a-z]{2})$", "", steps[-1]) if steps else ""
    if host == "creativecommons.org":
        return _creative(steps)
    if host == "spdx.org" or (host == "opensource.org" and len(steps) == 2):
        return standard_name(last_step)
    if host == "apache.org" and last_step.lower() == "license-2.0":
        return "Apache-2.0"
    if host == "gnu.org" and (match := re.match(r"([al]?gpl|fdl)-(\d\.\d)$", last_step)):
        return f"{_GNU[match[1]]}-{match[2]}"
    if host == "mozilla.org" and "MPL" in steps and last_step == "2.0":
        return "MPL-2.0"
    return "Unlicense" if host == "unlicense.org" else ""


def _creative(steps: list[str]) -> str:
    path = "/".join(steps).lower()
    match = re.match(r"licenses/(by(?:-nc)?(?:-sa|-nd)?)/(\d\.\d)(?:/([a-z]{2,3}))?(?:/|$)", path)
    if match:
        return "-".join(part.upper() for part in ("cc", *match.groups()) if part)
    if path.startswith("publicdomain/zero/1.0"):
        return "CC0-1.0"
    return "CC-PDM-1.0" if path.startswith("publicdomain/mark/1.0") else ""


@cache
def _names() -> dict[str, str]:
    """Return SPDX names by common names, without spaces and `_IGNORED_WORDS`."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


@lru_cache(maxsize=1024)
def standard_name(text: str) -> str:
    if not text or len(text) > NAME_LENGTH:
        return ""
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    try:
        return str(canonicalize_license_expression(text))
    except (InvalidLicenseExpression, RecursionError, MemoryError):
        pass
    words = re.findall(r"[a-z]+|\d+", re.sub(r"v(?=\d)", " ", _PARENTHESES.sub(" ", text.lower())))
    compact = "".join(word for word in words if word not in _IGNORED_WORDS)
    if match := _CREATIVE.fullmatch(compact):
        kind = {"n": "-NC", "": ""}[(match[1] or "")[:1]]
        kind += {"s": "-SA", "n": "-ND", "": ""}[(match[2] or "")[:1]]
        return f"CC-BY{kind}-{match[3]}.{match[4]}"
    base = compact.removesuffix("orlater")
    name = _names().get(base, "") or _names().get(base.removesuffix("0"), "")
    if base == compact:
        return name
    return f"{name}-or-later" if name.startswith(tuple(_GNU.values())) else ""


def _terms(name: str) -> str:
    match = re.fullmatch(r"CC-(BY[A-Z-]*?)-(\d\.\d)(?:-([A-Z]{2,3}))?", name)
    if match:
        path = "/".join(part.lower() for part in match.groups() if part)
        return f"https://creativecommons.org/licenses/{path}/"
    if not re.fullmatch(r"[A-Za-z0-9.-]{2,60}", name) or standard_name(name) != name:
        return ""
    return "" if name.startswith("LicenseRef-") else f"https://spdx.org/licenses/{name}.html"
