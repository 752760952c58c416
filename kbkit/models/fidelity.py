"""When a page counts as poorly read; apart from the measure, since this needs no parser."""

from __future__ import annotations

from collections.abc import Mapping

POOR = 0.9
"""Share of code, headings and table rows below which a page counts as poorly read."""

_COUNTED = ("code", "headings", "rows")


def fidelity_score(figures: Mapping[str, tuple[int, int]]) -> float:
    """Kept share of code blocks, headings and table rows together, from 0 to 1.

    Args:
        figures: Kept and wanted things by kind.
    """
    pairs = [figures.get(kind, (0, 0)) for kind in _COUNTED]
    wanted = sum(pair[1] for pair in pairs)
    return sum(pair[0] for pair in pairs) / wanted if wanted else 1.0
