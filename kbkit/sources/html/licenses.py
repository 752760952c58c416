"""Find the licenses that pages and files state.

A page may say it in several places. What is meant for programs counts before what is written for
people, and one place counts as a whole: links and the like with ``rel=license`` (HTML), JSON-LD
(schema.org), ``meta`` elements (Dublin Core), the foot of the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from lxml import etree

from kbkit.models import License
from kbkit.models.licenses import known_address, known_name
from kbkit.sources.html.dom import BLOCKS, Element, joined, normalized_text

_LD_LENGTH = 200_000  # characters of a page's JSON-LD
_LD_NODES = 200
_FOOT_LENGTH = 5_000  # characters of a foot; a larger one is a part of the page
_FEET = 20
_SEVERAL = 3  # licenses of one page that are named
_OF_OTHERS = re.compile(
    r"Image|Video|Audio|Media|Photograph|Software|Organization|Person|Product|BreadcrumbList"
)
_LICENSE = frozenset({"license", "licence", "dcterms.license", "dc.license"})
_RIGHTS = frozenset(
    {
        "copyright",
        "rights",
        "dc.rights",
        "dcterms.rights",
        "dcterms.rightsholder",
        "dc.rights.copyright",
        "dcterms.accessrights",
    }
)
_FOOT_TAGS = ("footer", "div", "section", "p", "small", "address", "span", "td")
_NOT_OF_PAGE = frozenset({"figure", "main", "article"})
_NOTICE = re.compile(
    r"(?:©|\(c\)|\bcopyright\b).*?"
    r"(?=\s*(?:\||(?:created using|made with|built with|(?:proudly )?powered by)\b|$))",
    re.IGNORECASE,
)
_PICTURE = re.compile(r"\b(?:foto|photo|bild|image|getty|shutterstock|istock|adobe ?stock)", re.I)
_SENTENCE = re.compile(
    r"\b(?:licen[sc]ed|released|published|available|distributed|provided) under "
    r"(?:the )?(?:terms of )?(?:the |an? )?(.{2,100}?)(?:[.;,](?=\s|$)|,? unless\b|,? except\b|$)",
    re.IGNORECASE,
)
_URL = re.compile(r"https?://[^\s<>\"')]+")


def page_license(root: Element, base: str) -> License:
    linked = _one(_linked(root, base))
    data = _json_ld(root, base)
    meta = _meta(root, base)
    found = linked.or_else(data).or_else(meta)
    return found if found and found.attribution else found.or_else(_foot(root, base))


def rights_license(text: str) -> License:
    """Return the license that a free-text statement names (Dublin Core's ``rights``).

    A license where it is the name of one or has the address of one; else it says whom to credit.
    """
    text = " ".join(text[:4_000].split())
    for address in _URL.findall(text):
        if known_address(address.rstrip(".,;")):
            attribution = "" if address == text else text
            return License.stated(url=address.rstrip(".,;"), attribution=attribution)
    if name := known_name(text) or _named(text):
        return License.stated(name, attribution="" if known_name(text) else text)
    return License.stated(attribution=text)


def _one(found: Iterable[License]) -> License:
    """Several statements of one place as one; a page under several licenses names them."""
    each = list(dict.fromkeys(license for license in found if license))[: _SEVERAL + 1]
    if len({license.name for license in each if license.name}) <= 1:
        return each[0] if each else License()
    names = dict.fromkeys(license.label for license in each)
    more = "" if len(names) <= _SEVERAL else ", …"
    return License.stated(", ".join(list(names)[:_SEVERAL]) + more)


def _linked(root: Element, base: str) -> Iterator[License]:
    for element in root.iter("link", "a", "area"):
        rel = element.get("rel")
        if rel and {"license", "licence"} & set(rel.lower().split()):
            text = normalized_text(element) or element.get("title") or ""
            yield License.stated(text, _joined(base, element.get("href") or ""))


def _meta(root: Element, base: str) -> License:
    license = License()
    for element in root.iter("meta"):
        name = (element.get("name") or element.get("property") or "").lower().replace(":", ".")
        content = (element.get("content") or "")[:4_000]
        if name in _LICENSE:
            address = _joined(base, content) if "/" in content and " " not in content else ""
            license = license.or_else(License.stated(content, address))
        elif name in _RIGHTS:
            license = license.or_else(rights_license(content))
    return license


def _json_ld(root: Element, base: str) -> License:
    license = License()
    length = 0
    for script in root.iter("script"):
        if (script.get("type") or "").partition(";")[0].strip().lower() != "application/ld+json":
            continue
        text = script.text or ""
        length += len(text)
        if length > _LD_LENGTH:
            break
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            continue
        for node in _works(values):
            license = license.or_else(_work(node, base))
    return license


def _works(values: Any) -> Iterator[dict[str, Any]]:
    """Nodes of JSON-LD that speak of the page; pictures and programs have licenses of their own."""
    waiting = [values]
    seen = 0
    while waiting and seen < _LD_NODES:
        seen += 1
        node = waiting.pop(0)
        if isinstance(node, list):
            waiting += node[:_LD_NODES]
        elif isinstance(node, dict) and not _OF_OTHERS.search(str(node.get("@type", ""))[:200]):
            yield node
            waiting += [node[key] for key in ("@graph", "mainEntity") if key in node]


def _work(node: dict[str, Any], base: str) -> License:
    """Return the license of a schema.org creative work (``license``, ``copyrightNotice``)."""
    stated = node.get("license")
    found = []
    for each in stated if isinstance(stated, list) else [stated]:
        if isinstance(each, dict):
            found.append(License.stated(each.get("name"), each.get("url") or each.get("@id")))
        elif isinstance(each, str):
            address = _joined(base, each) if "/" in each and " " not in each.strip() else ""
            found.append(License.stated(each, address))
    holder = node.get("copyrightHolder")
    if isinstance(holder, list):
        holder = holder[0] if holder else None
    if isinstance(holder, dict):
        holder = holder.get("name")
    if isinstance(holder, str) and (year := str(node.get("copyrightYear") or "")):
        holder = f"© {year} {holder}"
    credit = node.get("copyrightNotice") or node.get("creditText") or holder
    return _one(found).or_else(License.stated(attribution=credit))


def _foot(root: Element, base: str) -> License:
    license = License()
    for element in islice(_feet(root), _FEET):
        lines = _lines(element)
        links = [
            (normalized_text(a), _joined(base, a.get("href") or "")) for a in element.iter("a")
        ]
        known = (License.stated(url=url) for _, url in links if known_address(url))
        told = next((name for line in lines if (name := _named(line))), "")
        notice = next((text for line in lines if (text := _notice(line))), "")
        said = _one(known) or License.stated(
            told, next((url for text, url in links if told and told in text), "")
        )
        license = license.or_else(said.or_else(License.stated(attribution=notice)))
    return license


def _feet(root: Element) -> Iterator[Element]:
    """Iterate over the outermost small footers of a page; not those of articles."""
    taken: set[Element] = set()
    for element in root.iter(*_FOOT_TAGS):
        named = f"{element.get('class')} {element.get('id')}"
        if not (
            element.tag == "footer"
            or "footer" in named
            or "copyright" in named
            or element.get("role") == "contentinfo"
        ):
            continue
        around = set(element.iterancestors())
        if around & taken or _NOT_OF_PAGE & {part.tag for part in around}:
            continue
        if sum(map(len, element.itertext())) <= _FOOT_LENGTH:
            taken.add(element)
            yield element


def _lines(element: Element) -> list[str]:
    text = ""
    for event, part in etree.iterwalk(element, events=("start", "end")):
        breaks = part.tag == "br" or part.tag in BLOCKS
        silent = part.tag in ("script", "style")
        if event == "start":
            text += ("\0" if breaks else "") + ("" if silent else part.text or "")
        elif part is not element:
            text += ("\0" if breaks else "") + (part.tail or "")
    return [line for raw in text.split("\0") if (line := " ".join(raw.split()))]


def _named(line: str) -> str:
    found = _SENTENCE.search(line[:1_000])
    return known_name(found[1].strip()) if found else ""


def _notice(line: str) -> str:
    found = _NOTICE.search(line[:1_000])
    text = found[0].strip() if found else ""
    names = re.sub(r"(?i)copyright|all rights reserved|alle rechte vorbehalten|\(c\)", "", text)
    signed = re.search(r"\d{4}|©", text) and re.search(r"[^\W\d]{2}", names)
    return text if signed and not _PICTURE.search(text) else ""


def _joined(base: str, href: str) -> str:
    """Resolve a page's link; ``""`` unless it is a web address."""
    url = joined(base, href.strip()[:4_000]) if href else ""
    return url if url.startswith(("http://", "https://")) else ""
