"""Titles and licenses of pages."""

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import dropwhile, islice, takewhile

from kbkit.models import License
from kbkit.models.licenses import name_of_address, standard_name
from kbkit.sources import html
from kbkit.sources.html import BLOCKS, HEADINGS, Element, plain_text
from kbkit.sources.html.regions import heading_key, key_of

MAX_LENGTH = 500  # maximum characters of a title
_TITLE_CLASS = re.compile(r"(?:title|caption|(?!sub|alt|alert|admonition)[a-z]+[-_]?title)$")
_TEXTS = frozenset({*HEADINGS, "p", "pre", "ul", "ol", "dl", "table", "blockquote"})
_LINES_BELOW = 4  # blocks below a heading that may name the site
_BESIDE_SITE = 12  # maximum characters besides the site's name in such a line
_MORE = 4  # maximum words of a heading besides the title
_TITLE_WORDS, _BESIDE = 30, 80  # maximum words of a title, and of the block around it
_PATH = re.compile(r"\w+(?:(?:\.|::)\w+)+")
_NUMBERED = re.compile(r"^(?:(?i:chapter|section|appendix|part)\s+)?(?:\d+|[A-Z])(?:\.\d+)*\.?\s+")
_SEPARATORS = " \t|–—·•»:-"
_EDITION = re.compile(
    r"\s+\([^()]*(?:version|edition|release|manual|reference|guide)[^()]*\)$", re.IGNORECASE
)
_SUFFIX = re.compile(r"\s+(?:[—–|·•»]|::|-)\s+[^—–|·•»]{1,80}$")
_VERSION = re.compile(r"\s+\(?(?:version\s+)?v?\d[\w.+-]*\)?\s+[—–|·-]\s+(.+)", re.IGNORECASE)
_AFFIXES = (
    re.compile(r"\s+\([^()]{1,80}\)$"),
    _SUFFIX,
    # after the last of several separators
    re.compile(r"(?:\s+(?:[—–|·•»]|::|-)|:)\s+(?:(?!\s(?:[—–|·•»-]|::)\s|:\s).){1,80}$"),
    re.compile(r"^[^—–|·•»:]{1,80}?(?:\s+[—–|·•»-]|:)\s+"),
)


def page_title(
    body: Element, region: Element, named: str, common: frozenset[int], *, shared: str = ""
) -> tuple[Element | None, str]:
    """Return the heading that names the page, if any, and the page's title."""
    if (own := _after_product(body, region, shared)) is not None:
        return own, plain_text(own)[:MAX_LENGTH]
    named = named.strip(_SEPARATORS)
    # the first of several is a section, unless the page's head names it
    several = sum(plain_text(head) != "" for head in region.iter("h1")) > 1
    sole = sum(plain_text(head) != "" for head in body.iter("h1")) == 1
    section: Element | None = None  # the first heading of the content, if most pages have it
    bare = bare_title(named, common)
    for scope in (region, body):
        for heading in scope.iter("h1"):
            text = plain_text(heading).rstrip("¶# ")
            if not text:
                continue
            # text in the head is the page's own, even if every menu has it; a page's only heading
            # must be on nearly all pages
            is_shared = key_of(text) in common and (not sole or heading_key(text) in common)
            if is_shared and text != bare:
                section = heading if section is None and scope is region else section
                continue
            # a heading outside the content may be the site's name; one after a heading that
            # most pages have may be a section's
            is_first = section is None and not (named and several)
            if text in named or (scope is region and (is_first or _is_title(text, bare, several))):
                return heading, _qualify(text, named, common)[:MAX_LENGTH]
    if named:
        title = bare_title(_EDITION.sub("", named), common) or named
        return _opening_heading(region, f"{title}{_letter(region)}"[:MAX_LENGTH])
    if section is not None and (text := _subtitle(section)):
        return None, text[:MAX_LENGTH]
    if shared and (letter := _letter(region)):
        prefix = _AFFIXES[-1].match(shared)
        has_site = prefix is not None and key_of(f"title {prefix[0]}") in common
        bare = _AFFIXES[-1].sub("", shared) if has_site else bare_title(shared, common)
        if bare != shared and bare_title(shared, common) != shared.split(maxsplit=1)[0]:
            return None, f"{bare}{letter}"[:MAX_LENGTH]
    for heading in region.iter(*HEADINGS):
        text = plain_text(heading).rstrip("¶# ")
        # most pages may mention the first heading without having it
        key = heading_key(text) if heading is section else key_of(text)
        if text and key not in common:
            return heading, text[:MAX_LENGTH]
    return None, ""


def _after_product(body: Element, region: Element, head: str) -> Element | None:
    """Return the heading that the head of a page names after a product and its version."""
    product = next((text for part in body.iter("h1") if (text := plain_text(part))), "")
    match = _VERSION.match(head.removeprefix(product))
    if not product or not head.startswith(product) or match is None:
        return None
    return next((part for part in region.iter("h2") if plain_text(part) == match[1]), None)


def _opening_heading(region: Element, title: str) -> tuple[Element | None, str]:
    """Return the heading at the start of a page that states its title, and the title.

    The heading may add a number and a few words, such as "Class".
    """
    headings = list(region.iter(*HEADINGS))
    linked = list(takewhile(lambda head: head.getparent().tag == "a", headings))  # to other pages
    heading = next(iter(headings[len(linked) :]), None)
    text = plain_text(heading).rstrip("¶# ") if heading is not None else ""
    if not text or not plain_text(region).startswith(" ".join([*map(plain_text, linked), text])):
        return None, title
    if _NUMBERED.fullmatch(f"{title} ") and text.startswith(f"{title.rpartition(' ')[2]} "):
        return heading, text[:MAX_LENGTH]  # the head has the number only
    if _squash(_NUMBERED.sub("", text)) == _squash(_NUMBERED.sub("", title)):
        return heading, title
    extra_words = len(text.split()) - len(title.split())
    if 0 < extra_words <= _MORE and html.fold(title) in html.fold(text):
        return heading, text[:MAX_LENGTH]
    return None, title


def _subtitle(section: Element) -> str:
    following = section.getnext()
    text = plain_text(following) if following is not None and following.tag == "p" else ""
    return text if len(text.split()) <= _TITLE_WORDS else ""


def _qualify(heading: str, full_title: str, common: Collection[int]) -> str:
    bare = bare_title(full_title, common)
    if (common and bare.startswith(f"{heading} (")) or _squash(bare) == _squash(heading):
        return bare  # with marks that a style sheet draws in the heading
    part = full_title.removeprefix(heading)
    if common and part.startswith(" (") and bare.endswith(part):
        return full_title
    *_, last_word = heading.split() or [""]
    for path in _PATH.findall(full_title):
        if path.endswith((f".{last_word}", f"::{last_word}")):
            return heading.removesuffix(last_word) + str(path)
    prefix = full_title.rpartition(heading)[0]
    return prefix.split()[-1] + heading if prefix.endswith(("/", "::", ".", "\\")) else heading


def _letter(region: Element) -> str:
    """Return ``": "`` and the letter of a page of an index, or ``""``."""
    heads = [plain_text(head) for head in region.iter(*HEADINGS)]
    letter = heads[0].strip("-–— ") if len(heads) == 1 else ""
    return f": {letter}" if len(letter) == 1 else ""


def title_block(
    body: Element, region: Element, named: str, common: Collection[int], *, in_site: bool
) -> tuple[Element, Element] | None:
    """Find the title of a page outside its region, and the block around it.

    It precedes the region or starts it; after other texts, it must repeat the title in the head.
    """
    heading_texts = [text for head in region.iter("h1") if (text := plain_text(head))]
    if any(not named or _is_title(text, named, len(heading_texts) > 1) for text in heading_texts):
        return None
    bare = html.fold(bare_title(named, common))
    titles = [head for head in body.iter("h1") if plain_text(head)]
    in_region = after_text = False
    holders = {region, *region.iterancestors()}
    for element in body.iter():
        in_region = in_region or element is region
        has_title_class = any(map(_TITLE_CLASS.match, (element.get("class") or "").lower().split()))
        if in_region and element.tag in HEADINGS:
            return None  # headings of the content keep their level, whatever their class
        if in_region and not has_title_class and element.tag in _TEXTS:
            after_text = after_text or key_of(plain_text(element)) not in common
        if element in holders or ((element.tag != "h1" or after_text) and not has_title_class):
            continue
        text = _own_text(element)
        if not text or len(text.split()) > _TITLE_WORDS or key_of(text) in common:
            continue
        if after_text:  # after other texts, only the page's title, maybe with a prefix
            matches = html.fold(text) == html.fold(named) or (
                bool(bare.strip()) and has_title_class and html.fold(text).endswith(bare)
            )
        elif heading_texts:  # beside another heading, only the start of the page's title
            matches = html.fold(named).startswith(html.fold(text))
        else:
            # a page's only heading is its title, even if the head differs
            sole = (in_site or bool(common)) and titles == [element]
            matches = not named or sole or _alike(text, named) or _alike(text, bare)
        if matches and next(element.iterancestors("td", "th"), None) is None:
            return element, element if in_region else _around(element, region)
    return None


def lead(region: Element, title: Element, block: Element) -> None:
    """Move the title block to the start of the content, in place."""
    inner = [part for part in title if part.tag in BLOCKS]
    for part in inner:
        html.drop_tree(part)
    title.tag = "h1"
    html.drop_tree(block)
    block.tail, region.text = region.text, None
    region.insert(0, block)
    for part in reversed(inner):
        title.addnext(part)


def drop_site_line(region: Element, named: str, common: Collection[int]) -> None:
    """Remove a line under the first heading that names the site, in place."""
    heading = next(region.iter("h1"), None)
    site = named.replace(bare_title(named, common), "").strip(_SEPARATORS).lower() if common else ""
    if heading is None or not site:
        return
    blocks_after = dropwhile(lambda part: part is not heading, region.iter(*BLOCKS))
    leaves = (part for part in blocks_after if not any(child.tag in BLOCKS for child in part))
    for part in list(islice(leaves, 1, 1 + _LINES_BELOW)):
        text = plain_text(part)
        is_short_shared = key_of(text) in common and len(text) <= len(site) + _BESIDE_SITE
        if is_short_shared and site in text.lower():
            html.drop_tree(part)
        elif text:
            return


def _own_text(element: Element) -> str:
    pieces = [element.text or ""]
    for child in element:
        pieces += () if child.tag in BLOCKS else child.itertext()
        pieces.append(child.tail or "")
    return " ".join("".join(pieces).split())


def _alike(text: str, title: str) -> bool:
    text, title = html.fold(text), html.fold(title)
    return text in title or title in text


def _squash(text: str) -> str:
    return "".join(html.WORD.findall(text))


def _is_title(text: str, title: str, several: bool) -> bool:
    """Whether a heading is the page's title; of several, a prefix is enough.

    "2. Simple Select Processing" is a section of the page "SELECT".
    """
    if not several:
        return _alike(text, title)
    return html.fold(text) in html.fold(title) or html.fold(text).startswith(html.fold(title))


def _around(title: Element, region: Element) -> Element:
    """Return the largest block around a title that is no menu and does not hold the region.

    It is short, unless it starts with the title.
    """
    holders = set(region.iterancestors())
    block, title_text = title, plain_text(title)
    for parent in takewhile(lambda up: up not in holders, title.iterancestors()):
        text = plain_text(parent)
        is_long = len(text.split()) > _BESIDE and not text.startswith(title_text)
        if is_long or html.linked_share(parent) >= html.LINKED:
            break
        block = parent
    return block


def title_keys(named: str) -> frozenset[int]:
    matches = (affix.search(named) for affix in _AFFIXES)
    keys = (key_of(f"title {match[0]}") for match in matches if match is not None)
    return frozenset(keys) | {key_of(named)}


def bare_title(named: str, common: Collection[int]) -> str:
    if not common:
        return _SUFFIX.sub("", named)
    for affix in _AFFIXES:
        match = affix.search(named)
        if match is not None and key_of(f"title {match[0]}") in common:
            named = affix.sub("", named)
    return named


_FOOT_LENGTH = 5_000  # maximum characters of a footer; a larger one holds content
_FEET = 20
_SEVERAL = 3  # maximum licenses named
_LICENSE = frozenset({"license", "licence", "dcterms.license", "dc.license"})
_FOOT_TAGS = ("footer", "div", "section", "p", "small", "address", "span", "td")
_FOOT_NAMES = re.compile("footer|copyright|contentinfo")
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
    linked = (
        License.stated(
            plain_text(element) or element.get("title") or "",
            html.web_address(base, element.get("href")),
        )
        for element in root.iter("link", "a", "area")
        if {"license", "licence"} & set((element.get("rel") or "").lower().split())
    )
    best = _merge(linked).or_else(_meta(root, base))
    return best if best and best.attribution else best.or_else(_foot(root, base))


def rights_license(text: str) -> License:
    """Return the license in a free text (Dublin Core's ``rights``), or the text as attribution."""
    text = " ".join(text[:4_000].split())
    for address in _URL.findall(text):
        if name_of_address(address.rstrip(".,;")):
            attribution = "" if address == text else text
            return License.stated(url=address.rstrip(".,;"), attribution=attribution)
    name = standard_name(text)
    return License.stated(name or _license_name(text), attribution="" if name else text)


def _merge(licenses: Iterable[License]) -> License:
    """Merge several statements of one place; a page under several licenses names them."""
    distinct = list(dict.fromkeys(filter(None, licenses)))[: _SEVERAL + 1]
    if len({license.name for license in distinct if license.name}) <= 1:
        return distinct[0] if distinct else License()
    names = dict.fromkeys(license.label for license in distinct)
    ellipsis = "" if len(names) <= _SEVERAL else ", …"
    return License.stated(", ".join(list(names)[:_SEVERAL]) + ellipsis)


def _meta(root: Element, base: str) -> License:
    license = License()
    for element in root.iter("meta"):
        name = (element.get("name") or element.get("property") or "").lower().replace(":", ".")
        content = (element.get("content") or "")[:4_000]
        if name in _LICENSE:
            address = (
                html.web_address(base, content) if "/" in content and " " not in content else ""
            )
            license = license.or_else(License.stated(content, address))
        elif name in html.NAMES["rights"]:
            license = license.or_else(rights_license(content))
    return license


def _foot(root: Element, base: str) -> License:
    license = License()
    for element in islice(_feet(root), _FEET):
        lines = _lines(element)
        links = [(plain_text(a), html.web_address(base, a.get("href"))) for a in element.iter("a")]
        linked = (License.stated(url=url) for _, url in links if name_of_address(url))
        name = next(filter(None, map(_license_name, lines)), "")
        address = next((url for text, url in links if name and name in text), "")
        notice = License.stated(attribution=next(filter(None, map(_notice, lines)), ""))
        stated = _merge(linked) or License.stated(name, address)
        license = license.or_else(stated.or_else(notice))
    return license


def _feet(root: Element) -> Iterator[Element]:
    """Yield the outermost small footers of a page, except those of articles."""
    yielded: set[Element] = set()
    for element in root.iter(*_FOOT_TAGS):
        if element.tag != "footer" and not _FOOT_NAMES.search(" ".join(element.values())):
            continue
        ancestors = set(element.iterancestors())
        if ancestors & yielded or _NOT_OF_PAGE & {part.tag for part in ancestors}:
            continue
        if sum(map(len, element.itertext())) <= _FOOT_LENGTH:
            yielded.add(element)
            yield element


def _lines(element: Element) -> list[str]:
    lines = ""
    for part, begins, text in html.texts_of(element):
        lines += "\0" * (part.tag == "br" or part.tag in BLOCKS)
        lines += "" if begins and part.tag in ("script", "style") else text
    return [line for raw in lines.split("\0") if (line := " ".join(raw.split()))]


def _license_name(line: str) -> str:
    match = _SENTENCE.search(line[:1_000])
    return standard_name(match[1].strip()) if match else ""


def _notice(line: str) -> str:
    match = _NOTICE.search(line[:1_000])
    text = match[0].strip() if match else ""
    names = re.sub(r"(?i)copyright|all rights reserved|alle rechte vorbehalten|\(c\)", "", text)
    signed = re.search(r"\d{4}|©", text) and re.search(r"[^\W\d]{2}", names)
    return text if signed and not _PICTURE.search(text) else ""
