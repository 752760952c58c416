"""Measures what a page's Markdown keeps of the page, against its tree; apart from the writer."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import lxml.html

FENCE = re.compile(r"^((?:> ?| )*)(`{3,})[\w+#.-]*$")
JUNK = ("script", "style", "noscript", "button", "nav", "template")


@dataclass
class Shares:
    total: Counter = field(default_factory=Counter)
    kept: Counter = field(default_factory=Counter)
    lost: dict = field(default_factory=dict)

    def add(self, kind, wanted, found):
        wanted, found = Counter(wanted), Counter(found)
        self.total[kind] += wanted.total()
        missing = wanted - found
        self.kept[kind] += wanted.total() - missing.total()
        if missing:
            self.lost.setdefault(kind, []).extend(missing)

    def share(self, kind):
        return self.kept[kind] / self.total[kind] if self.total[kind] else 1.0

    def __str__(self):
        return "  ".join(
            f"{kind} {100 * self.share(kind):.2f}% of {self.total[kind]}" for kind in self.total
        )


def squash(text):
    return re.sub(r"\W+", "", text).lower()


def region(html, xpath):
    root = lxml.html.document_fromstring(
        html.encode("utf-8", "replace"),
        parser=lxml.html.HTMLParser(encoding="utf-8", remove_comments=True),
    )
    found = root.xpath(xpath)
    if not found:
        return None
    body = found[0]
    for junk in body.xpath(
        ".//*[contains(concat(' ',@class,' '),' headerlink ') or @class='linenos' or @class='mark'"
        " or @class='viewcode-link' or @class='viewcode-back' or contains(@class,'copybtn')]"
    ) + list(body.iter(*JUNK)):
        if junk.getparent() is not None and not (junk.tag == "a" and junk.get("id")):
            junk.drop_tree()
        elif junk.tag == "a":
            junk.text = ""
    return body


def code_of(pre):
    for br in pre.iter("br"):
        br.tail = "\n" + (br.tail or "")
    text = "".join(pre.itertext())
    return text.removeprefix("\n").removesuffix("\n")


def wanted_headings(body):
    for heading in body.iter("h1", "h2", "h3", "h4", "h5", "h6"):
        if any(up.tag in ("td", "th") for up in heading.iterancestors()):
            continue
        text = squash(heading.text_content())
        if text:
            yield heading, int(heading.tag[1]), text


def places(heading):
    """Every id that leads to a heading."""
    found = {heading.get("id")} | {el.get("id") or el.get("name") for el in heading.iter()}
    node = heading
    for _ in range(2):
        before = node.getprevious()
        while before is not None and not before.text_content().strip():
            found |= {el.get("id") or el.get("name") for el in before.iter()}
            before = before.getprevious()
        node = node.getparent()
        if node is None or before is not None:
            break
        found.add(node.get("id"))
    return found - {None}


def written(markdown):
    """Code blocks, headings (level, text, anchor) and table rows of Markdown."""
    codes, headings, rows = [], [], []
    lines = markdown.split("\n")
    index = 0
    while index < len(lines):
        line = lines[index]
        if match := FENCE.match(line):
            prefix, ticks = match.groups()
            code = []
            index += 1
            while index < len(lines) and lines[index].strip("> ") != ticks:
                text = lines[index]
                code.append(text[len(prefix) :] if text.startswith(prefix) else text.lstrip("> "))
                index += 1
            codes.append("\n".join(code))
        elif match := re.match(r"^(?:> | )*(#{1,6}) (.*?)(?: \{#([^}\s]+)\})?$", line):
            headings.append((len(match[1]), squash(plain(match[2])), match[3] or ""))
        elif re.match(r"^[> ]*\|", line) and not re.match(r"^[> ]*\|( --- \|)+$", line):
            cells = re.split(r"(?<!\\)\|", line.strip("> "))[1:-1]
            rows.append([squash(plain(cell)) for cell in cells])
        index += 1
    return codes, headings, rows


def plain(text):
    text = re.sub(r"!?\[((?:[^\[\]\\]|\\.)*)\]\([^)\s]*\)", r"\1", text)
    return text.replace("&lt;", "<").replace("&amp;", "&")


def measure(shares, html, markdown, xpath):
    body = region(html, xpath)
    if body is None:
        return False
    codes, headings, rows = written(markdown)
    wanted = [code for pre in body.iter("pre") if (code := code_of(pre)).strip()]
    shares.add("code", wanted, codes)
    expected = list(wanted_headings(body))
    shares.add("headings", [(l, t) for _, l, t in expected], [(l, t) for l, t, _ in headings])
    by_text = {}
    for level, text, anchor in headings:
        by_text.setdefault((level, text), []).append(anchor)
    right = []
    for heading, level, text in expected:
        ids = places(heading)
        if ids:
            got = set(by_text.get((level, text), ()))
            right.append((level, text, bool(got & ids)))
    shares.add("anchors", [(l, t, True) for l, t, _ in right], [r for r in right if r[2]])
    anchors = {anchor for _, _, anchor in headings}
    terms = [dt.get("id") for dt in body.xpath(".//dl[not(contains(@class,'footnote'))]/dt[@id]")]
    shares.add("terms", terms, [term for term in terms if term in anchors])
    cells = []
    for table in body.iter("table"):
        if table.xpath(".//table") or table.xpath(".//pre") or table.xpath(".//h1|.//h2|.//h3"):
            continue
        for row in table.iter("tr"):
            texts = [squash(cell.text_content()) for cell in row if cell.tag in ("td", "th")]
            cells.append(tuple(text for text in texts if text))
    held = Counter()
    flat = [tuple(cell for cell in row if cell) for row in rows]
    for row in cells:
        # spans repeat cells, so a row has to hold the wanted cells in order
        ok = any(_ordered(row, candidate) for candidate in flat)
        held[row] += ok
    shares.add("rows", cells, held.elements())
    return True


def _ordered(row, candidate):
    it = iter(candidate)
    return all(cell in it for cell in row)
