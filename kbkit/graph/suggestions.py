"""Suggest entities to merge: acronyms, spellings, same definitions. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from kbkit.models import EntityType, MergeSuggestion
from kbkit.stores.catalog.graph import NamedEntity
from kbkit.text.language import stop_words

MIN_SPELLING = 90.0
"""Similarity of two spellings, 0 to 100 (normalized Indel similarity of rapidfuzz)."""
_MAX_COMPARED = 5_000
_ACRONYM = re.compile(r"[A-Z][A-Za-z]*[A-Z]s?|[A-Z]{2,8}")
_LONG_DESCRIPTION = 40
_DIGITS = re.compile(r"\d+")


def suggestions(
    entities: Sequence[NamedEntity], decided: Collection[frozenset[str]]
) -> list[MergeSuggestion]:
    """Pairs that may be one, the surest first, each once."""
    found: dict[frozenset[str], MergeSuggestion] = {}
    for each in (*_acronyms(entities), *_definitions(entities), *_spellings(entities)):
        pair = frozenset((each.keep, each.merge))
        if pair in decided or (pair in found and found[pair].score >= each.score):
            continue
        found[pair] = each
    return sorted(found.values(), key=lambda each: (-each.score, each.names))


def _acronyms(entities: Sequence[NamedEntity]) -> Iterator[MergeSuggestion]:
    """``RAM`` and *random-access memory*: first letters, of words or of all but small words."""
    by_initials: dict[str, list[NamedEntity]] = {}
    for entity in entities:
        words = re.split(r"[\s\-/]+", entity.name)
        if 2 <= len(words) <= 8 and all(word[:1].isalpha() for word in words):
            small = [word for word in words if word.lower() not in stop_words("english")]
            for initials in {"".join(word[0] for word in kept).upper() for kept in (words, small)}:
                by_initials.setdefault(initials, []).append(entity)
    for entity in entities:
        bare = entity.name.removesuffix("s")
        if not _ACRONYM.fullmatch(entity.name) or len(bare) < 2:
            continue
        longer = by_initials.get(bare.upper(), ())
        for long in longer:
            if len(bare) == 2 and len(longer) > 1 and not _written_out(entity, long):
                continue  # two letters are those of too much
            score = 0.5 + 0.1 * min(len(bare), 4) + (0.1 if _written_out(entity, long) else 0.0)
            yield _suggestion(
                long,
                entity,
                "acronym",
                f"{entity.name} are the first letters of {long.name}",
                score,
            )


def _written_out(short: NamedEntity, long: NamedEntity) -> bool:
    text = f"{short.description} {long.description}".lower()
    return short.name.lower() in text and long.name.lower() in text


def _definitions(entities: Sequence[NamedEntity]) -> Iterator[MergeSuggestion]:
    by_text: dict[str, list[NamedEntity]] = {}
    for entity in entities:
        text = " ".join(entity.description.lower().split())
        if len(text) >= _LONG_DESCRIPTION:
            by_text.setdefault(text, []).append(entity)
    for same in by_text.values():
        if len(same) == 2:  # more share a form of words, and no meaning
            keep, other = _ranked(*same)
            if _tail(keep.name) == _tail(other.name):
                yield _suggestion(keep, other, "definition", f"both are “{keep.description}”", 0.75)


def _spellings(entities: Sequence[NamedEntity]) -> Iterator[MergeSuggestion]:
    """Suggest phrases of one type with almost the same spelling; not identifiers."""
    from rapidfuzz import fuzz, process

    phrases = sorted(
        (
            entity
            for entity in entities
            if entity.type in (EntityType.TERM, EntityType.NAME, "")
            and len(entity.name) >= 6
            and entity.chunks
        ),
        key=lambda entity: (-entity.chunks, entity.id),
    )[:_MAX_COMPARED]
    names = [" ".join(re.split(r"[\s\-_]+", entity.name.lower())) for entity in phrases]
    for start in range(0, len(phrases), 500):
        scores = process.cdist(
            names[start : start + 500], names, scorer=fuzz.ratio, score_cutoff=MIN_SPELLING
        )
        for row, column in zip(*scores.nonzero(), strict=True):
            first, second = phrases[start + row], phrases[column]
            if start + row >= column or not _same_thing(names[start + row], names[column]):
                continue
            keep, other = _ranked(first, second)
            yield _suggestion(
                keep,
                other,
                "spelling",
                f"written {scores[row, column]:.0f} % alike; {keep.name} in {keep.chunks} "
                f"passages, {other.name} in {other.chunks}",
                float(scores[row, column]) / 100 * 0.9,
            )


def _same_thing(first: str, second: str) -> bool:
    if _DIGITS.findall(first) != _DIGITS.findall(second):
        return False
    ones, others = first.split(), second.split()
    if first.replace(" ", "") == second.replace(" ", ""):
        return True
    if len(ones) != len(others):
        return False
    different = [(a, b) for a, b in zip(ones, others, strict=True) if a != b]
    return len(different) == 1 and _is_variant(*different[0])


def _is_variant(first: str, second: str) -> bool:
    """``serialise`` of ``serialize``, ``indexes`` of ``index``; not ``input`` of ``output``."""
    short, long = sorted((first, second), key=len)
    if min(len(first), len(second)) < 4:
        return False
    if long.startswith(short):
        return long[len(short) :] in {"s", "es", "d", "ed"}
    return first.translate(_SPELLED) == second.translate(_SPELLED) or (
        first.replace("our", "or") == second.replace("our", "or")
    )


_SPELLED = str.maketrans({"z": "s"})


def _ranked(first: NamedEntity, second: NamedEntity) -> tuple[NamedEntity, NamedEntity]:
    return (
        (first, second)
        if (first.chunks, second.id) >= (second.chunks, first.id)
        else (second, first)
    )


def _tail(name: str) -> str:
    return name.partition("(")[0].rpartition(".")[2].lower()


def _suggestion(
    keep: NamedEntity, other: NamedEntity, reason: str, evidence: str, score: float
) -> MergeSuggestion:
    names = (keep.name, other.name)
    return MergeSuggestion(keep.id, other.id, names, reason, evidence, round(min(score, 1.0), 3))
