"""Controls for ranking settings."""

from __future__ import annotations

import ipywidgets as widgets

from kbkit.models import Mode
from kbkit.panels.controls import control, mode_box, row
from kbkit.recipes import RetrievalSpec

_WEIGHTS = {
    "dense_weight": ("Meaning", 1.0),
    "document_weight": ("Document", 5.0),
    "title_weight": ("Title", 5.0),
    "heading_weight": ("Headings", 5.0),
    "card_weight": ("About", 5.0),
    "page_weight": ("Whole text", 5.0),
    "graph_weight": ("Graph", 5.0),
    "learned_weight": ("Learned", 5.0),
}
"""Labels of weights, with their maximum."""
_ENCODERS = (("The model", "model"), ("Fitted to the chunks", "fitted"))


class RankingForm(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """The settings of one side of a comparison.

    Attributes:
        weight_boxes: The weights, by their names in `RetrievalSpec`.
    """

    def __init__(self, side: str, present: RetrievalSpec) -> None:
        self._present = present
        self.mode_box = mode_box(tooltip=f"{side}: search by")
        self.weight_boxes = {
            name: control(
                widgets.BoundedFloatText,
                label,
                tooltip=f"{side}: weight of {label.lower()}, 0 to {most:g}",
                min=0.0,
                max=most,
                step=0.05,
            ).add_class("kbkit-weight")
            for name, (label, most) in _WEIGHTS.items()
        }
        self.encoder_box = control(widgets.Dropdown, "Queries embedded by", options=_ENCODERS)
        self.fill(present)
        name = f'<div class="kbkit-side-name" role="heading" aria-level="3">{side}</div>'
        super().__init__(
            [
                widgets.HTML(name),
                row(self.mode_box, self.encoder_box),
                row(*self.weight_boxes.values()),
            ]
        )
        self.add_class("kbkit-side")

    def fill(self, settings: RetrievalSpec, mode: str | Mode = Mode.HYBRID) -> None:
        self._present = settings
        self.mode_box.value = Mode(mode).value
        self.encoder_box.value = settings.query_encoder
        for name, box in self.weight_boxes.items():
            box.value = getattr(settings, name)

    def chosen(self) -> tuple[Mode, RetrievalSpec]:
        values = {name: round(box.value, 4) for name, box in self.weight_boxes.items()}
        changed = values | {"query_encoder": self.encoder_box.value}
        settings = RetrievalSpec.model_validate(self._present.model_dump() | changed)
        return Mode(self.mode_box.value), settings

    def enable(self, enabled: bool) -> None:
        for box in (self.mode_box, self.encoder_box, *self.weight_boxes.values()):
            box.disabled = not enabled
