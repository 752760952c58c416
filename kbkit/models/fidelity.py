"""Thresholds of page fidelity; apart from the measure, since they need no parser."""

from __future__ import annotations

from collections.abc import Mapping

POOR = 0.9
"""Kept share of words, or of code, headings and table rows, below which a page is poorly read."""
_MIN = {"words": 0.99, "surplus": 0.97, "headings": 0.97, "code": 0.97, "rows": 0.97}
"""Kept shares below which a site is poorly read; of ``surplus``, the share that is content."""

_COUNTED = ("code", "headings", "rows")


def fidelity_score(figures: Mapping[str, tuple[int, int]]) -> float:
    """Return the fidelity of a page, from 0 to 1.

    The least of three: the kept share of its words; that of its code blocks, headings and table
    rows together; the share of the written words that are its content.
    """
    pairs = [figures.get(kind, (0, 0)) for kind in _COUNTED]
    things = (sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs))
    return min(_share(one) for one in (things, *(figures.get(k, (0, 0)) for k in _WORDS)))


def losses(figures: Mapping[str, tuple[int, int]]) -> str:
    """Describe losses and surplus of a page in one line; ``""`` if there are none."""
    found = [
        f"{kind} {kept:,} of {wanted:,}"
        for kind, (kept, wanted) in figures.items()
        if kept < wanted and kind not in ("surplus", "pages")
    ]
    lines = [f"kept of the page: {', '.join(found)}"] if found else []
    kept, wanted = figures.get("surplus", (0, 0))
    if kept < wanted:
        lines.append(f"{wanted - kept:,} of {wanted:,} words written are not its content")
    return "; ".join(lines)


def poor_site(figures: Mapping[str, tuple[int, int]]) -> str:
    """Describe how badly a site's pages were read, in one line; ``""`` if all is well."""
    shares = {kind: _share(figures.get(kind, (0, 0))) for kind in _MIN}
    return ", ".join(
        f"{1 - share:.1%} of the text is not content"
        if kind == "surplus"
        else f"{1 - share:.1%} of the {kind} {'is' if kind == 'code' else 'are'} missing"
        for kind, share in shares.items()
        if share < _MIN[kind]
    )


_WORDS = ("words", "surplus")


def _share(pair: tuple[int, int]) -> float:
    return pair[0] / pair[1] if pair[1] else 1.0
