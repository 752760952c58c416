"""Read the license in a PDF's XMP packet.

PDFium does not give it, but packets are kept plain so that programs that know nothing of a format
find them by looking for their beginning (ISO 16684-1). Pictures in a file bring packets of their
own, so only one that speaks of a PDF counts, and the last of those, as files grow at their end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kbkit.models import License
from kbkit.sources.html.licenses import rights_license

_BEGIN, _END = b"<x:xmpmeta", b"</x:xmpmeta>"
_MAX_LENGTH = 200_000
_MAX = 50
_OF_PDF = re.compile(rb"application/pdf|\bpdf:|\bpdfaid:|\bpdfx:")
_DC = "{http://purl.org/dc/elements/1.1/}"
_RIGHTS = "{http://ns.adobe.com/xap/1.0/rights/}"
_CC = "{http://creativecommons.org/ns#}"
_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"


def xmp_license(data: bytes) -> License:
    packet = next((packet for packet in _packets(data) if _OF_PDF.search(packet)), b"")
    root = _xml(packet) if packet else None
    if root is None:
        return License()
    found = License()
    for node in root.iter(f"{_CC}license"):
        found = found.or_else(License.stated(url=node.get(f"{_RDF}resource") or _text(node)))
    for name in (f"{_RIGHTS}UsageTerms", f"{_DC}rights"):
        for node in root.iter(name):
            found = found.or_else(rights_license(_text(node)))
    for node in root.iter(f"{_RDF}Description"):
        found = found.or_else(License.stated(url=node.get(f"{_CC}license")))
        found = found.or_else(License.stated(url=node.get(f"{_RIGHTS}WebStatement")))
    for node in root.iter(f"{_RIGHTS}WebStatement"):
        found = found.or_else(License.stated(url=_text(node)))
    return found


def _packets(data: bytes) -> Iterator[bytes]:
    place = len(data)
    for _ in range(_MAX):
        place = data.rfind(_BEGIN, 0, place)
        if place < 0:
            return
        end = data.find(_END, place, place + _MAX_LENGTH)
        if end >= 0:
            yield data[place : end + len(_END)]


def _xml(packet: bytes) -> Any:
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=True,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        return etree.fromstring(packet, parser)
    except (etree.LxmlError, ValueError):
        return None


def _text(node: Any) -> str:
    """Return the text of a property, in its first language."""
    first = next(node.iter(f"{_RDF}li"), node)
    return " ".join("".join(first.itertext()).split())
