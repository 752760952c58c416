"""Ordinary articles: what trafilatura left out of a page goes out of its tree, block by block.

The pages of a site that is documentation share a template that tells content from furniture. An
article on its own has teasers, forms and comments amid its text that nothing but trafilatura's
judgement tells from it; so here only those blocks stay whose words trafilatura kept, written as
the tree has them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from kbkit.sources.html.dom import BLOCKS, PREFORMATTED, Element, drop_tree

_WORD = re.compile(r"\w+")
_SOFT_HYPHEN = "\xad"  # trafilatura leaves them out
_KEPT = 0.5  # share of a block's word triples that has to be kept
_COVERED = 0.97  # share of the kept words that the element to be pruned has to hold
_SHORT = 3  # words up to which a block has to stand on a line of its own
_UNDIVIDED = frozenset({"p", "pre", "ul", "ol", "table"})
_LISTS = frozenset({"ul", "ol", "dl"})
_ATOMS = frozenset({"table", *PREFORMATTED})


class MainText:
    """What trafilatura kept of a page, ready to be asked about.

    Args:
        text: Its text, one block on a line.
    """

    def __init__(self, text: str) -> None:
        words = _words(text)
        self.words = Counter(words)
        self._triples = set(_triples(words))
        self._lines = {" ".join(_words(line)) for line in text.splitlines()}
        self._all = " " + " ".join(words) + " "

    def contains(self, words: list[str]) -> bool:
        """Whether these words of one block were kept."""
        if len(words) <= _SHORT:
            return " ".join(words) in self._lines
        if f" {' '.join(words)} " in self._all:
            return True
        triples = _triples(words)
        return sum(triple in self._triples for triple in triples) >= _KEPT * len(triples)

    def coverage(self, element: Element) -> float:
        """Share of the kept words that an element holds, from 0 to 1."""
        held = Counter(_words(" ".join(element.itertext())))
        return (self.words & held).total() / max(1, self.words.total())


def enclosing_element(body: Element, main: MainText) -> Element:
    """The smallest element that holds nearly all of what was kept.

    Nearer to all than a template's region needs to be, since what is too much is pruned.
    """
    need = (main.coverage(body) - 1 + _COVERED) * main.words.total()
    element = body
    while True:
        for child in element:
            if not isinstance(child.tag, str) or child.tag in _UNDIVIDED:
                continue
            if main.coverage(child) * main.words.total() >= need:
                element = child
                break
        else:
            return element


def prune(element: Element, main: MainText) -> None:
    """Take out of an element the blocks that were not kept; in place."""
    holders: set[Element] = set()
    for block in element.iter(*BLOCKS):
        parent = block.getparent()
        while parent is not None and parent not in holders:
            holders.add(parent)
            parent = parent.getparent()
    _prune(element, main, holders)


def _prune(element: Element, main: MainText, holders: set[Element]) -> bool:
    """Prune an element; whether anything of it is left."""
    if element not in holders or element.tag in _ATOMS:
        words = _words(" ".join(element.itertext()))
        return main.contains(words) if words else True
    if element.tag in _LISTS and main.contains(_words(" ".join(element.itertext()))):
        return True  # with its short items, which alone would be too little to go by
    left = False
    follows = False  # whether what comes behind is kept: a heading stays with it
    for run in reversed(list(_runs(element, holders))):
        if isinstance(run, list):
            words = _words(" ".join(text for _, text in run))
            if not words:
                continue
            if main.contains(words):
                left = follows = True
            else:
                _blank(element, run)
                follows = False
        elif _prune(run, main, holders) or (follows and run.tag == "h1"):
            left = follows = True
        else:
            drop_tree(run)
            follows = False
    return left


Run = list[tuple[Element | None, str]]


def _runs(element: Element, holders: set[Element]) -> Iterator[Run | Element]:
    """Runs of text between the blocks of an element, and these blocks, in order.

    A run names the children whose text or tail it is made of; ``None`` is the element's text.
    """
    run: Run = [(None, element.text or "")]
    for child in list(element):
        tag = child.tag
        if isinstance(tag, str) and (tag in BLOCKS or child in holders):
            yield run
            yield child
            run = [(child, child.tail or "")]
            continue
        inner = " ".join(child.itertext()) if isinstance(tag, str) else ""
        run.append((child, f"{inner}{child.tail or ''}"))
    yield run


def _blank(element: Element, run: Run) -> None:
    for place, (child, _) in enumerate(run):
        if child is None:
            element.text = None
        elif place == 0:
            child.tail = None
        else:
            child.tail = None
            if child.getparent() is not None:
                child.getparent().remove(child)


def _triples(words: list[str]) -> list[tuple[str, str, str]]:
    return list(zip(words, words[1:], words[2:], strict=False))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.replace(_SOFT_HYPHEN, ""))
