"""Detect applications, generated references and ordinary articles, and complete their extract.

Pages of documentation share a template, which separates content from boilerplate. The text of a
single article has teasers, forms and comments in it, which only trafilatura's extract leaves out.
That extract has no emphasis, and its links are at the end. On other pages it would lose short
paragraphs, headings and code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from lxml import etree
from lxml.html import defs

from kbkit.models import DocumentType
from kbkit.sources.html import BLOCKS, HEADINGS, Element, anchor, classes, normalized_text

_LOST = 0.1  # share of the words under headings that the extract of a site's page may lose
_LOST_ALONE = 0.6  # the same for a single page, where no template separates teasers from text
_PLACES = 6  # links from a page to its own anchors, from which it looks like a manual
_KEPT_WORDS = 20  # fewest words of an extract that is trusted
_WORD = re.compile(r"\w+")
_TYPE = re.compile(r'"@type"\s*:\s*\[?\s*"(?:\w*Article|\w*BlogPosting|Report)"')
_TYPES = re.compile(r"(?:Article|BlogPosting)$")
_DECLARED = etree.XPath(
    "boolean(//*[@itemprop='articleBody' or @rel='author' or @itemprop='author'])"
)
_ARTICLE_NAMES = frozenset(
    str.split("""
        comments comment-list commentlist comments-area respond comment-respond disqus_thread
        byline author entry-author post-author p-author
        """)
)
_LEADS = frozenset({"p", "div", "section", "h2", "h3"})
_LEAD_WORDS = 8  # fewest words; bylines and dates have fewer
_MAX_LEAD = 50  # blocks looked at
_LONG_WORD = re.compile(r"[^\W\d_]{2,}")
_FIELDS = frozenset({"dt", "dd", "th", "td", "tr"})
_PREFORMATTED = ("pre", "listing", "xmp")


def is_stated(root: Element) -> bool:
    """Whether an uncleaned page declares itself an article: by metadata, byline or comments."""
    for meta in root.iter("meta"):
        name = (meta.get("property") or meta.get("name") or "").lower()
        if name.startswith("article:"):
            return True
        if name == "og:type" and "article" in (meta.get("content") or "").lower():
            return True
    for script in root.iter("script"):
        if "ld+json" in (script.get("type") or "") and _TYPE.search(script.text or ""):
            return True
    if _DECLARED(root):
        return True
    return any(
        _TYPES.search(element.get("itemtype") or "")
        or not _ARTICLE_NAMES.isdisjoint((element.get("class") or "").lower().split())
        or (element.get("id") or "").lower() in _ARTICLE_NAMES
        for element in root.iter()
        # in lists and tables, such fields name the author of a manual
        if isinstance(element.tag, str) and element.tag not in _FIELDS
    )


def is_article(
    body: Element,
    region: Element,
    selected: str,
    own: dict[Element, str],
    *,
    stated: bool,
    alone: bool,
) -> bool:
    if len(_WORD.findall(selected)) < _KEPT_WORDS or not (stated or alone):
        return False
    if _is_documentation(body, region, selected, own, stated=stated):
        return False
    return (stated and alone) or _lost_share(region, selected) <= (_LOST_ALONE if alone else _LOST)


def _is_documentation(
    body: Element, region: Element, selected: str, own: dict[Element, str], *, stated: bool
) -> bool:
    if own or any(term.get("id") for term in region.iter("dt")):
        return True
    text = "".join(selected.split())
    for pre in region.iter(*_PREFORMATTED):
        if not stated or "".join("".join(pre.itertext()).split()) not in text:
            return True
    places = {part.get("id") or part.get("name") for part in region.iter()}
    targets = {(link.get("href") or "").partition("#")[2] for link in body.iter("a")}
    return not stated and len((places & targets) - {""}) >= _PLACES


def _lost_share(region: Element, selected: str) -> float:
    words: list[str] = []
    headed = False
    linked = 0
    for event, element in etree.iterwalk(region, events=("start", "end")):
        ends = event == "end"
        if not ends:
            headed = headed or element.tag in HEADINGS
        linked += (element.tag == "a") * (-1 if ends else 1)
        text = element.tail if ends and element is not region else element.text
        if text and headed and not linked and (ends or isinstance(element.tag, str)):
            words += _WORD.findall(text)
    missing = Counter(words) - Counter(_WORD.findall(selected))
    return missing.total() / max(1, len(words))


def complete(
    tree: Element, region: Element, selected: str, own: dict[Element, str], tabs: Sequence[Element]
) -> None:
    """Add anchors of headings, labels of tabs and links that trafilatura left out, in place."""
    if tabs:
        _restore_labels(tree, tabs)
    places = {normalized_text(head): anchor(head, own) for head in region.iter(*HEADINGS)}
    for heading in tree.iter(*HEADINGS):
        if place := places.get(normalized_text(heading)):
            heading.set("id", place)
    text = _folded(selected)
    verdicts: dict[Element, bool] = {}
    links: dict[str, str] = {}
    for link in region.iter("a"):
        block = next((up for up in link.iterancestors() if up.tag in BLOCKS), None)
        href, named = link.get("href"), normalized_text(link)
        if block is None or not href or not named:
            continue
        if block not in verdicts:
            verdicts[block] = _folded(normalized_text(block)) in text
        if verdicts[block]:
            links.setdefault(href, named)
    last = etree.SubElement(tree, "ul")
    for href, named in links.items():
        etree.SubElement(etree.SubElement(last, "li"), "a", href=href).text = named


def restore_lead(tree: Element, body: Element, title: Element | None, selected: str) -> None:
    """Insert the paragraphs between title and selected text, which trafilatura leaves out."""
    text = _folded(selected)
    title = next(body.iter("h1"), None) if title is None else title
    lead: list[str] = []
    for block, words in islice(_blocks_after(title, body), _MAX_LEAD):
        if _folded(words) in text:
            break
        if _is_prose(block, words):
            lead.append(words)
    else:
        return  # the selected text is elsewhere
    for place, words in enumerate(lead):
        paragraph = etree.Element("p")
        paragraph.text = words
        tree.insert(place, paragraph)


def _blocks_after(title: Element | None, body: Element) -> Iterator[tuple[Element, str]]:
    after = title is None
    for element in body.iter(etree.Element):
        if after and element.tag in _LEADS and not any(part.tag in BLOCKS for part in element):
            text = normalized_text(element)
            if len(_LONG_WORD.findall(text)) >= _LEAD_WORDS:
                yield element, text
        after = after or element is title


def _is_prose(element: Element, text: str) -> bool:
    linked = sum(len(normalized_text(link)) for link in element.iter("a"))
    beside = element.iterancestors("figure", "nav", "aside", "footer", "form")
    return linked < len(text) / 3 and next(beside, None) is None


def _restore_labels(tree: Element, tabs: Sequence[Element]) -> None:
    blocks: dict[str, Element] = {}
    for block in tree.iterdescendants(etree.Element):
        blocks.setdefault(normalized_text(block), block)
    for label in tabs:
        panel = label.getnext()
        parts = () if panel is None else panel.iter(etree.Element)
        texts = (text for part in parts if (text := normalized_text(part)))
        if (first := next((blocks[text] for text in texts if text in blocks), None)) is not None:
            paragraph = etree.Element("p")
            etree.SubElement(paragraph, "strong").text = normalized_text(label)
            first.addprevious(paragraph)


def _folded(text: str) -> str:
    return f" {' '.join(_WORD.findall(text))} "


NEEDS_BROWSER = (
    "needs a browser: use `provider: browser`, the Firecrawl provider or a prerendered export"
)
"""Reason for skipping a page whose content is made by scripts."""

_FEW = 10  # most words of a page that waits for its application
_SILENT = frozenset(str.split("script style noscript template svg"))
_BOILERPLATE = frozenset(str.split("nav header footer"))
_CONTAINERS = frozenset(str.split("div main section article"))
_SHOWN = frozenset(str.split("img picture video audio iframe object embed form input table"))
_MOUNT_NAME = re.compile(
    r"^(_*(app|root|next|nuxt|gatsby|main|mount|application|svelte|docsify|redoc)_*([-_]?(root|app|"
    r"container|ui|wrapper))?|swagger-?ui)$",
    re.IGNORECASE,
)
_WAIT = re.compile(
    r"\W*(please\W+)?(wait|loading|initiali[sz]ing|starting|just a moment|one moment|laden|lädt|"
    r"bitte warten|chargement|cargando|carregando|caricamento|загрузка|读取中|加载中|読み込み中)"
    r"(\W+[\w.-]+){0,4}\W*",
    re.IGNORECASE,
)
_JAVASCRIPT = re.compile(r"\bjava\s?script\b", re.IGNORECASE)
_REQUEST = re.compile(r"enabl|disabl|requir|need|without|turn(ed)? on|activat", re.IGNORECASE)
_PAGE_WORDS = 100  # words in paragraphs, from which a header or footer holds the page's text
_MENU = 3  # fewest links of a menu
_NOTICE = 40  # most words of a request to switch JavaScript on


def is_shell(root: Element, *, rendered: bool = False) -> bool:
    """Whether a page holds an application and hardly any text."""
    body = root.find("body")
    if body is None:
        return False
    if not rendered and next(filter(_runs, root.iter("script")), None) is None:
        return False
    words, empty, waits, asks, served = 0, False, False, False, False
    stack = [body]
    while stack:
        element = stack.pop()
        if not isinstance(element.tag, str):
            continue
        if element.tag == "noscript":
            asks = asks or bool(_JAVASCRIPT.search(normalized_text(element)))
        if element is not body:
            words += len(_WORD.findall(element.tail or ""))
        if words > _FEW:
            return False
        if element.tag in _BOILERPLATE and _holds_text(element):
            return False
        titled = element.tag == "header" and next(element.iter("h1"), None) is not None
        if (element.tag in _SILENT or element.tag in _BOILERPLATE) and not titled:
            served = served or _is_menu(element)
            continue
        if element is not body and (mount := _mount(element)) is not None:
            empty, waits = True, waits or mount
            continue
        words += len(_WORD.findall(element.text or ""))
        stack += element
    if words > _FEW:
        return False
    sourced = any(script.get("src") for script in body.iter("script"))
    # a short page is no shell; a page without any text is one, unless its menu came from the
    # server: then the page is empty, and its scripts only add to it
    return waits or (not words and (asks or ((empty or sourced) and not served)))


def _is_menu(boilerplate: Element) -> bool:
    targets = {link.get("href") for link in boilerplate.iter("a") if normalized_text(link)}
    return len({target for target in targets if target and not target.startswith("#")}) >= _MENU


def _holds_text(boilerplate: Element) -> bool:
    """Whether a header or footer holds the page's text, because it was left unclosed."""
    paragraphs = (normalized_text(paragraph) for paragraph in boilerplate.iter("p"))
    return sum(len(_WORD.findall(text)) for text in paragraphs) > _PAGE_WORDS


def _mount(element: Element) -> bool | None:
    inside = sum(1 for _ in zip(element.iter(), range(30), strict=False))
    if inside >= 30 or next(element.iter(*_SHOWN), None) is not None:
        return None
    foreign = element.tag not in defs.tags
    texts = _text_pieces(element)
    if not texts:
        identity = element.get("id") or ""
        named = any(_MOUNT_NAME.match(name) for name in (identity, element.tag))
        if identity.lower() == "main" and len(element):
            return None  # may also be the content element of an empty page
        return named if foreign or element.tag in _CONTAINERS else None
    if element.tag in _CONTAINERS or foreign or element.tag in ("p", "span"):
        text = " ".join(texts)
        asks = _JAVASCRIPT.search(text) and _REQUEST.search(text) and len(text.split()) <= _NOTICE
        if all(map(_WAIT.fullmatch, texts)) or asks:
            return True
    return None


def _text_pieces(element: Element) -> list[str]:
    texts = [element.text or ""]
    for child in element:
        if isinstance(child.tag, str) and child.tag not in _SILENT:
            texts += _text_pieces(child)
        texts.append(child.tail or "")
    return [folded for text in texts if (folded := " ".join(text.split()))]


def _runs(script: Element) -> bool:
    kind = (script.get("type") or "").strip().lower()
    return kind in ("", "module", "text/javascript", "application/javascript")


_API = frozenset(
    str.split(
        "javadoc rustdoc doxygen pydoctor pdoc pdoc3 typedoc jsdoc yard rdoc godoc dokka dartdoc"
    )
)
_AMBIGUOUS = frozenset({"doxygen"})  # also writes prose
_COMMENT = re.compile(r"<!--\s*generated by (\w+)", re.IGNORECASE)
_HEAD = 4_000  # characters that are searched for this comment
_DOXYGEN = re.compile(
    r"(?:^|/)(?:class|struct|union|interface|namespace|group__|dir_|functions|globals|annotated|"
    r"classes|hierarchy|files|[\w-]+_8\w+(?:_source)?\.html)"
)
_ENTRY = frozenset({"refentry", "manpage"})
_CONSOLES = frozenset({"swagger-ui", "redoc", "rapi-doc", "elements-api"})


def generated_type(root: Element, html: str, url: str) -> DocumentType | None:
    names = {
        _generator_name(meta.get("content"))
        for meta in root.iter("meta")
        if (meta.get("name") or "").lower() == "generator"
    }
    if comment := _COMMENT.search(html[:_HEAD]):
        names.add(comment[1].lower())
    if names & (_API - _AMBIGUOUS) or ("doxygen" in names and _DOXYGEN.search(url)):
        return DocumentType.REFERENCE
    body = root.find("body")
    if body is None:
        return None
    if _ENTRY & set(classes(body)):
        return DocumentType.REFERENCE
    for element in body.iter("div", "section", *_CONSOLES):
        names = {*classes(element), element.get("id"), element.tag}
        if "refentry" in names:
            return DocumentType.REFERENCE
        if names & _CONSOLES:
            return DocumentType.API_SPEC
    return None


def _generator_name(text: str | None) -> str:
    match = re.match(r"[a-z]+\d?", (text or "").strip().lower())
    return match[0] if match else ""
