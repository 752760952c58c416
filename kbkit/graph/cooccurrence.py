"""Which entities stand together in sections oftener than chance has it. Pure functions.

``NPMI = ln(p(a, b) / (p(a) p(b))) / -ln p(a, b)`` over sections, from -1 to 1 (G. Bouma, Normalized
(pointwise) mutual information in collocation extraction, 2009). A pair that is seen n times has the
weight ``NPMI * n / (n + 2)``, so that few sightings prove little. It is of three decimals: how many
sections there are is part of each, and one more document should not change them all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import log

from kbkit.recipes import GraphSpec
from kbkit.stores.catalog.graph import CO_OCCURS, Fact

MOST_IN_SECTION = 40
"""Names of a section that counts; one with more is a list."""
_IN_EXAMPLES = re.compile(r"-\w$|/|[A-Za-z]:[\\/]")
"""Flags of one letter and paths stand beside each other in examples, whatever those are of."""
_EVIDENCE = 3
_SHRINK = 2
_DECIMALS = 3


def co_occurrence(
    sections: Sequence[Sequence[int]],
    mentions: Mapping[int, Sequence[str]],
    names: Mapping[str, str],
    spec: GraphSpec,
) -> list[Fact]:
    """The relations of what stands together.

    Args:
        sections: ``chunks.seq`` of the chunks of each section, in an order that lasts.
        mentions: Ids of the entities in each chunk.
        names: What those are called. ``Path.glob`` and ``glob`` stand together anyway.
        spec: What is too weak or too much.

    Returns:
        Evidence of these relations, up to three sections of each.
    """
    least = spec.least_sections
    found_in = [
        sorted({known for seq in seqs for known in mentions.get(seq, ())}) for seqs in sections
    ]
    counted = [
        (index, found) for index, found in enumerate(found_in) if 0 < len(found) <= MOST_IN_SECTION
    ]
    single = Counter(known for _, found in counted for known in found)
    common = {
        known
        for known, count in single.items()
        if count >= least and not _IN_EXAMPLES.match(names[known])
    }
    together: Counter[tuple[str, str]] = Counter()
    for _, found in counted:
        together.update(combinations([known for known in found if known in common], 2))
    strong = sorted(
        (
            (-weight, pair)
            for pair, count in together.items()
            if count >= least
            and (weight := _weight(single[pair[0]], single[pair[1]], count, len(counted)))
            >= spec.co_occurrence
            and not _alike(names[pair[0]], names[pair[1]])
        )
    )
    degree: Counter[str] = Counter()
    kept: dict[tuple[str, str], float] = {}
    for minus, pair in strong:
        if max(degree[pair[0]], degree[pair[1]]) < spec.co_occurrences:
            degree.update(pair)
            kept[pair] = round(-minus, _DECIMALS)
    return _evidence(kept, counted, sections, mentions)


def _alike(first: str, second: str) -> bool:
    """Whether one name is the other's end, or its beginning."""
    short, long = sorted((_bare(first), _bare(second)), key=len)
    return long.startswith(short) or long.endswith(short)


def _bare(name: str) -> str:
    return "".join(char for char in name.partition("(")[0].lower() if char.isalnum())


def _weight(first: int, second: int, both: int, sections: int) -> float:
    """NPMI, less for few sightings; 0 to 1."""
    if both == sections:
        return 0.0
    npmi = log(both * sections / (first * second)) / log(sections / both)
    return min(npmi * both / (both + _SHRINK), 0.99)


def _evidence(
    kept: Mapping[tuple[str, str], float],
    counted: Sequence[tuple[int, Sequence[str]]],
    sections: Sequence[Sequence[int]],
    mentions: Mapping[int, Sequence[str]],
) -> list[Fact]:
    """The first sections that show each pair; their weights add up to what gives the pair's."""
    shown: dict[tuple[str, str], list[int]] = {}
    partners: dict[str, set[str]] = {}
    for first, second in kept:
        partners.setdefault(first, set()).add(second)
    for index, found in counted:
        there = set(found)
        for first in found:
            for second in partners.get(first, set()) & there:
                seqs = shown.setdefault((first, second), [])
                if len(seqs) < _EVIDENCE:
                    seqs.append(_chunk(sections[index], mentions, first, second))
    return [
        Fact(seq, "entity", first, CO_OCCURS, "entity", second,
             kept[first, second] / (1 - kept[first, second]) / len(seqs))
        for (first, second), seqs in shown.items()
        for seq in seqs
    ]  # fmt: skip


def _chunk(
    seqs: Sequence[int], mentions: Mapping[int, Sequence[str]], first: str, second: str
) -> int:
    """The chunk of a section that has both names, else the first that has one."""
    with_first = [seq for seq in seqs if first in mentions.get(seq, ())]
    both = [seq for seq in with_first if second in mentions.get(seq, ())]
    return (both or with_first)[0]
