"""BarChart as SVG, made of numbers and words of our own.

`kbkit.plots` draws finer ones, but loads pandas, Altair and a JavaScript engine: four seconds,
which is more than all the pages of a small site take. Colours of text are those of the page around.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

COLOURS = ("#1b9e77", "#66a61e", "#c8b400", "#e69100", "#d95f02", "#a0522d")
"""From green to brown; all are seen on white and on black."""

_WIDTH = 640
_LABELS = 130
_NUMBERS = 60
_ROW = 24
_TOP = 50
_LEGEND = 26
_SWATCH = 105


@dataclass(frozen=True, slots=True)
class BarChart:
    """Horizontal bars, each divided into parts.

    Attributes:
        title: What they show.
        unit: What is counted.
        rows: Label of each bar, and its parts by name.
        parts: Names of all parts in their order; a single one needs no legend.
    """

    title: str
    unit: str
    rows: Sequence[tuple[str, Mapping[str, int]]]
    parts: Sequence[str]

    def svg(self) -> str:
        """The picture."""
        most = max((sum(parts.values()) for _, parts in self.rows), default=0) or 1
        total = sum(sum(parts.values()) for _, parts in self.rows)
        legend = _LEGEND if len(self.parts) > 1 else 0
        height = _TOP + legend + _ROW * len(self.rows) + 6
        name = html.escape(f"{self.title}: {total:,} {self.unit}")
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
            f'viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{name}" '
            'font-family="sans-serif" font-size="13" fill="currentColor" color="#767676">',
            _text(0, 16, self.title, 'font-weight="bold"'),
            _text(0, 35, f"{total:,} {self.unit}", 'opacity="0.8"'),
        ]
        if legend:
            lines += self._legend()
        for number, (label, parts) in enumerate(self.rows):
            lines += self._bar(label, parts, most, _TOP + legend + _ROW * number)
        return "\n".join([*lines, "</svg>\n"])

    def _legend(self) -> list[str]:
        lines: list[str] = []
        for number, part in enumerate(self.parts):
            x = number * _SWATCH
            colour = COLOURS[number % len(COLOURS)]
            lines.append(f'<rect x="{x}" y="{_TOP - 1}" width="12" height="12" fill="{colour}"/>')
            lines.append(_text(x + 17, _TOP + 10, part))
        return lines

    def _bar(self, label: str, parts: Mapping[str, int], most: int, y: int) -> list[str]:
        lines = [_text(_LABELS - 8, y + 15, label, 'text-anchor="end"')]
        scale = (_WIDTH - _LABELS - _NUMBERS) / most
        x = float(_LABELS)
        for number, part in enumerate(self.parts):
            width = parts.get(part, 0) * scale
            if width:
                colour = COLOURS[number % len(COLOURS)]
                lines.append(
                    f'<rect x="{x:.1f}" y="{y + 2}" width="{width:.1f}" height="{_ROW - 6}" '
                    f'fill="{colour}"><title>{html.escape(part)}: {parts[part]:,}</title></rect>'
                )
            x += width
        return [*lines, _text(round(x) + 6, y + 15, f"{sum(parts.values()):,}")]


def _text(x: int, y: int, text: str, more: str = "") -> str:
    attributes = f" {more}" if more else ""
    return f'<text x="{x}" y="{y}"{attributes}>{html.escape(text)}</text>'
