"""Find the known names of a knowledge base in texts, in one pass.

Texts and names are folded: lower case, each word between marks. Aho-Corasick then finds the longest
names of whole words. An identifier must match exactly, a phrase matches in any case, and a common
word (``make``, ``open``) must be code or have ``()``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick

from kbkit.annotation.terms import CODE, MARK, WORDS, fold_and_mark, is_everywhere, matches_in
from kbkit.models import EntityType, SubjectKind
from kbkit.stores.catalog.subjects import GivenName
from kbkit.text import is_identifier, singular, stop_words, subject_key

MAX_NAME_LENGTH = 120
WITNESSES = 2
"""Minimum number of documents for an unmarked name."""
_MANY_WITNESSES = 5  # the same for a common word, which may be a parameter

# addresses and unqualified anchors contain no names; escapes and indentation occur within names
_SKIPPED = re.compile(
    r"\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*\)"
    r"|https?:[^\s<>\[\]()\"'`]+"
    r"|mailto:[^\s<>\[\]()\"'`]+"
    r"|\{\#[^\s{}.]+\}(?=\s|\Z)"
    r"|\\(?=[_*\[\]<>#~{}-])"
    r"|\n[ \t]+"
)
_HEADING = re.compile(
    r"^#{1,6} +(?:[\dA-Z]+(?:\.\d+)* +)?([a-z]\w*)(?= *(?:$|\(|\{#))"
    r"|\[[\dA-Z]+(?:\.\d+)+\.? ([a-z]\w*)\]",
    re.MULTILINE,
)
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_SENTENCE_START = re.compile(
    r"(?:\A|[.!?:]\s+|\n\s*(?:[-*+>#]+|\d+[.)])?\s*|[-*+|]\s+)[\"'“(*_\[]*\Z"
)
# characters that join a name to the preceding word
_TIES = ".-/\\:@"
_TIED = {".": ")]", "-": "- \n\t`", "/": "/.~", "\\": "\\", ":": ":", "@": ""}


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


class Mention(NamedTuple):
    """A known name in a text."""

    start: int
    end: int
    name: str


class NameGazetteer:
    """Finds names of documents, of a recipe and of people in texts."""

    def __init__(
        self, names: Iterable[GivenName] = (), curated: Mapping[str, Iterable[str]] | None = None
    ) -> None:
        self.types: dict[str, EntityType] = {}
        """Types by name."""
        self._rules: dict[str, list[Spelling]] = {}
        curated_keys: set[str] = set()
        for name, aliases in (curated or {}).items():
            if 0 < len(name) <= MAX_NAME_LENGTH:
                self.types[name] = EntityType.NAME
            for written in (name, *aliases):
                key = subject_key(SubjectKind.ENTITY, written)
                if key and len(written) <= MAX_NAME_LENGTH:
                    curated_keys.add(key)
                    self._add(written, name, EntityType.NAME, curated=True)
        for key, best, spellings in _groups(names):
            if key not in curated_keys:
                self.types[best.name] = best.type
                for spelling, kind in spellings.items():
                    self._add(spelling, best.name, kind)
        self._add_suffixes()
        self._patterns = list(self._rules)
        self._automaton = AhoCorasick(self._patterns)

    def _add(self, written: str, name: str, kind: EntityType, *, curated: bool = False) -> None:
        written = written.removesuffix("()") if len(written) > 2 else written
        for rule in _spellings_of(written, name, kind, curated):
            fold = fold_and_mark(rule.written)
            if MARK not in fold:
                continue  # punctuation alone cannot be recognized in a text
            rules = self._rules.setdefault(fold, [])
            if rule not in rules:
                rules.append(rule)
                rules.sort(key=lambda one: (not one.exact, one.marked))

    def _add_suffixes(self) -> None:
        ends: defaultdict[str, set[str]] = defaultdict(set)
        for name, kind in self.types.items():
            parts = _dotted_parts(name) if kind in CODE else []
            for number in range(1, len(parts)):
                ends["".join(parts[number:])].add(name)
        for end, names in ends.items():
            fold = fold_and_mark(end)
            if len(names) == 1 and fold not in self._rules and len(end) > 1:
                (name,) = names
                if is_identifier(end) or _is_distinct(end):
                    self._add(end, name, self.types[name])
                elif end[:1].isupper():
                    self._rules[fold] = [Spelling(end, name, exact=True, marked=True)]

    @cached_property
    def surfaces(self) -> Mapping[str, tuple[str, ...]]:
        """Folded spellings, with the names and conditions of each.

        Texts with spellings that differ between two gazetteers may get other names.
        """
        return {fold: tuple(map(str, rules)) for fold, rules in self._rules.items()}

    def changes_since(self, before: Mapping[str, tuple[str, ...]]) -> Callable[[str], bool] | None:
        now = self.surfaces
        changed = [fold for fold, names in now.items() if before.get(fold) != names]
        changed += [fold for fold in before if fold not in now]
        if not changed:
            return None
        automaton = AhoCorasick(changed)
        return lambda text: bool(
            automaton.find_matches_as_indexes(fold_and_mark(_without_skipped(text)[0]))
        )

    def find(self, text: str) -> list[Mention]:
        """Find the names in a text, the longest match first, without overlaps."""
        if not self._patterns:
            return []
        look = _Look(text)
        mentions: list[Mention] = []
        at = 0
        for number, start in matches_in(self._automaton, fold_and_mark(look.plain), overlap=True):
            fold = self._patterns[number]
            end = start + len(fold) - fold.count(MARK)
            if start >= at and (rule := self._rule(fold, start, end, look)):
                last = look.original_position(end - 1)
                mentions.append(Mention(look.original_position(start), last + 1, rule.name))
                at = end
        return mentions

    def _rule(self, fold: str, start: int, end: int, text: _Look) -> Spelling | None:
        if not text.is_apart(start, end):
            return None
        plain = text.plain[start:end]
        for rule in self._rules[fold]:
            if rule.exact and plain != rule.written:
                continue
            if rule.marked and not text.is_marked(start, end):
                continue
            if (
                not rule.inside
                or not _SENTENCE_START.search(text.plain, max(0, start - 20), start)
                or text.is_marked(start, end)
                or text.is_subject(start, end)
            ):
                return rule
        return None


def _without_skipped(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Remove parts without names from a text, and return a position map."""
    offsets = [(0, 0)]
    parts: list[str] = []
    at = length = 0
    for match in _SKIPPED.finditer(text):
        replacement = match[0][0] if match[0][0] in "]\n" else ""
        parts += (text[at : match.start()], replacement)
        length += match.start() - at + len(replacement)
        at = match.end()
        offsets.append((length, at))
    if not parts:
        return text, offsets
    parts.append(text[at:])
    return "".join(parts), offsets


class _Look:
    """Context of a match."""

    def __init__(self, text: str) -> None:
        self.plain, self._offsets = _without_skipped(text)
        self._length = len(text)

    def original_position(self, at: int) -> int:
        position, original = self._offsets[bisect_right(self._offsets, (at, self._length)) - 1]
        return original + at - position

    def is_apart(self, start: int, end: int) -> bool:
        plain = self.plain
        before, after = plain[start - 1 : start] or " ", plain[end : end + 1] or " "
        if before.isspace() and after.isspace():
            return True
        name = plain[start:end]
        if after in "+#" and name.isalpha() and len(name) == 1:  # C++ is not C
            return False
        if not _wordy(name, 0):  # such as a flag
            joined = after == "-" and _wordy(plain, end + 1)  # --all of --all-files
            return not (joined or _wordy(before, 0) or before == name[0])
        if before in _TIES and start > 1 and plain[start - 2] in _TIED[before]:
            return False
        if before in _TIES and _wordy(plain, start - 2):
            return False
        # in path.to or read-only, an ordinary word is not a separate name
        return not (
            after in ".:-/" and _wordy(plain, end + 1) and name.isalnum() and name.islower()
        )

    def is_marked(self, start: int, end: int) -> bool:
        plain = self.plain
        if plain[end : end + 1] == "(" and plain[end : end + 2] != "(s":
            return True
        if (start, end) in self.headings:
            return True
        before = plain[start - 1 : start]
        after = plain[end : end + 1]
        if before == "`" and after in ("`", " ", "=", "(", ":"):
            return True
        if after == "`" or before == "`":
            return any(a <= start and end <= b for a, b in self._spans)
        return before == "[" and after == "]"

    def is_subject(self, start: int, end: int) -> bool:
        """Whether a verb follows (``Go is compiled``), or the match is a single letter (``R``)."""
        is_letter = end - start == 1 and self.plain[start] not in "AI"
        return is_letter or _FINITE.match(self.plain, end) is not None

    @cached_property
    def headings(self) -> frozenset[tuple[int, int]]:
        return frozenset(
            match.span(match.lastindex or 0) for match in _HEADING.finditer(self.plain)
        )

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        return [match.span(2) for match in _CODE_SPAN.finditer(self.plain)]


_FINITE = re.compile(
    r"(?:['’]s)?\s+(?:is|isn['’]t|was|has|had|does|doesn['’]t|can|cannot|can['’]t|could|will|would"
    r"|may|might|must|shall|should)\b"
)


def _wordy(text: str, at: int) -> bool:
    return at < len(text) and (text[at].isalnum() or text[at] == "_")


def _groups(names: Iterable[GivenName]) -> Iterator[tuple[str, GivenName, dict[str, EntityType]]]:
    """Yield the normal form of each name that counts, its best spelling, and the reliable ones."""
    by_key: defaultdict[str, list[GivenName]] = defaultdict(list)
    for given_name in names:
        if len(given_name.name) <= MAX_NAME_LENGTH:
            by_key[subject_key(SubjectKind.ENTITY, given_name.name)].append(given_name)
    by_key.pop("", None)
    for key, group in by_key.items():
        best = max(group, key=lambda n: (n.defined, n.documents, n.confirmed, n.name))
        # unconfirmed names of few documents are often accidental
        reliable = [n for n in group if n.confirmed or n.documents >= WITNESSES] or group
        is_plain = all(n.name.isalpha() and n.name.islower() for n in group)
        needed = _MANY_WITNESSES if is_plain and best.type in CODE else WITNESSES
        if any(n.confirmed for n in group) or sum(n.documents for n in group) >= needed:
            yield key, best, {n.name: n.type for n in reliable}


_PLAIN_WORD = re.compile(r"[^\W\d_]+")
_COMMON = stop_words("english") | frozenset(WORDS["verbs"].split())
_SEPARATOR = re.compile(r"(\.|::|->|#)")


def _dotted_parts(name: str) -> list[str]:
    """Split a dotted name after its separators."""
    pieces = _SEPARATOR.split(name) if re.fullmatch(r"[\w.:>#-]+", name) else []
    ends = zip(pieces[::2], [*pieces[1::2], ""], strict=False)
    return [piece + separator for piece, separator in ends] if all(pieces[::2]) else []


def _is_distinct(word: str) -> bool:
    return "_" in word.strip("_") or bool(re.search(r"[a-z0-9][A-Z]|[A-Z]{2,}[a-z]{2,}", word))


def _spellings_of(written: str, name: str, kind: EntityType, curated: bool) -> Iterator[Spelling]:
    low = written.lower()
    is_word = _PLAIN_WORD.fullmatch(written) is not None and written.isascii()
    if is_word and (len(low) <= 3 or low in _COMMON):
        # Go, C, R, make: within a sentence they are capitalized or marked
        marked = written == low if curated else not written.isupper() or len(low) == 1
        yield Spelling(written, name, exact=True, marked=marked, inside=True)
        return
    if " " not in written and (is_identifier(written) or _is_distinct(written)):
        yield Spelling(written, name, exact=True, marked=False)
        return
    if kind in CODE and not curated:
        # an ordinary word, unless it looks like a name
        is_plain = is_word and written in {low, low.capitalize()}
        yield Spelling(written, name, exact=True, marked=is_plain)
        return
    if is_word and is_everywhere(low) and not curated:
        yield Spelling(written, name, exact=False, marked=True)
        return
    proper = is_word and written != low and (curated or kind is EntityType.NAME)
    exact = written.isupper() or proper
    if written.isupper() and is_word and not curated:
        yield Spelling(written + "s", name, exact=True, marked=False)  # URLs
    yield Spelling(written, name, exact=exact, marked=False)
    if kind in {EntityType.TERM, EntityType.NAME} and written.isascii() and not exact:
        head, space, last = written.rpartition(" ")
        single = singular(last)
        plural = _plural(single)
        for form in (head + space + single, head + space + plural):
            if form.lower() != low and len(single) > 2:
                yield Spelling(form, name, exact=False, marked=False)


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    return word + "s"
