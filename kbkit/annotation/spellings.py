"""Spellings of names in texts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kbkit.annotation.base import MARK, fold_and_mark
from kbkit.annotation.terms import is_everywhere
from kbkit.models import EntityType
from kbkit.text.language import stop_words
from kbkit.text.subject_keys import is_identifier, singular

CODE = {
    EntityType.SYMBOL,
    EntityType.FLAG,
    EntityType.COMMAND,
    EntityType.VARIABLE,
    EntityType.SETTING,
    EntityType.ERROR,
    EntityType.FILE,
}
_PLAIN_WORD = re.compile(r"[^\W\d_]+")
# names of programs or languages that also begin sentences
_VERBS = frozenset(
    str.split("""
        access add apply be build change check click close commit copy create do double echo find
        fetch format go help import install join kill let like link list load long look make merge
        move note open order pass pick play print pull push put raise read record remove return run
        rust save script see select send set show sort split start stop string swift test time try
        type use view visit watch write yield
        """)
)

_STOP_WORDS = stop_words("english")


class Spelling(NamedTuple):
    """A spelling of a name, with conditions on its context.

    Attributes:
        marked: Must look like a name: code, a link, or a call.
        inside: Must not begin a sentence, unless it is marked.
    """

    written: str
    name: str
    exact: bool
    marked: bool
    inside: bool = False

    def __str__(self) -> str:
        return f"{self.name}\t{self.written}\t{self.exact:d}{self.marked:d}{self.inside:d}"


class Spellings:
    """Ways to write names.

    Attributes:
        by_fold: Spellings by folded form, the strictest first.
    """

    def __init__(self) -> None:
        self.by_fold: dict[str, list[Spelling]] = {}

    def add(self, written: str, name: str, kind: EntityType, *, curated: bool = False) -> None:
        written = written.removesuffix("()") if len(written) > 2 else written
        for form, rule in _forms(written, name, kind, curated):
            fold = fold_and_mark(form)
            if MARK not in fold:
                continue  # signs alone cannot be recognized in a text
            rules = self.by_fold.setdefault(fold, [])
            if rule not in rules:
                rules.append(rule)
                rules.sort(key=lambda one: (not one.exact, one.marked))

    def add_suffixes(self, types: Mapping[str, EntityType]) -> None:
        ends: defaultdict[str, set[str]] = defaultdict(set)
        for name, kind in types.items():
            if kind in CODE and " " not in name and (parts := _parts(name)):
                for number in range(1, len(parts)):
                    ends["".join(parts[number:])].add(name)
        for end, names in ends.items():
            if len(names) == 1 and fold_and_mark(end) not in self.by_fold and len(end) > 1:
                (name,) = names
                if is_identifier(end) or _is_distinct(end):
                    self.add(end, name, types[name])
                elif end[:1].isupper():
                    self.by_fold[fold_and_mark(end)] = [
                        Spelling(end, name, exact=True, marked=True)
                    ]


_SEPARATOR = re.compile(r"(\.|::|->|#)")


def _parts(name: str) -> list[str]:
    """Split a dotted name at its separators."""
    if not _SEPARATOR.search(name) or not re.fullmatch(r"[\w.:>#-]+", name):
        return []
    pieces = _SEPARATOR.split(name)
    if not all(piece for piece in pieces[::2]):
        return []
    return [
        piece + (pieces[number + 1] if number + 1 < len(pieces) else "")
        for number, piece in enumerate(pieces)
        if number % 2 == 0
    ]


def _is_distinct(word: str) -> bool:
    return "_" in word.strip("_") or bool(re.search(r"[a-z0-9][A-Z]|[A-Z]{2,}[a-z]{2,}", word))


def _forms(
    written: str, name: str, kind: EntityType, curated: bool
) -> Iterator[tuple[str, Spelling]]:
    low = written.lower()
    is_word = _PLAIN_WORD.fullmatch(written) is not None and written.isascii()
    if is_word and (len(low) <= 3 or low in _STOP_WORDS or low in _VERBS):
        # Go, C, R, make: within a sentence they are capitalized or marked
        marked = written == low if curated else not written.isupper() or len(low) == 1
        yield written, Spelling(written, name, exact=True, marked=marked, inside=True)
        return
    if " " not in written and (is_identifier(written) or _is_distinct(written)):
        yield written, Spelling(written, name, exact=True, marked=False)
        return
    if kind in CODE and not curated:
        # an ordinary word, unless it looks like a name
        plain = is_word and written in {low, low.capitalize()}
        yield written, Spelling(written, name, exact=True, marked=plain)
        return
    if is_word and is_everywhere(low) and not curated:
        yield written, Spelling(written, name, exact=False, marked=True)
        return
    proper = is_word and written != low and (curated or kind is EntityType.NAME)
    exact = written.isupper() or proper
    if written.isupper() and is_word and not curated:
        yield written + "s", Spelling(written + "s", name, exact=True, marked=False)  # URLs
    yield written, Spelling(written, name, exact=exact, marked=False)
    if kind in {EntityType.TERM, EntityType.NAME} and written.isascii() and not exact:
        head, space, last = written.rpartition(" ")
        single = singular(last)
        many = _plural(single)
        for form in (head + space + single, head + space + many):
            if form.lower() != low and len(single) > 2:
                yield form, Spelling(form, name, exact=False, marked=False)


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    return word + "s"
