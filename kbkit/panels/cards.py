"""One result of a search as a card with stars."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as widgets
from traitlets import Bunch

from kbkit.models import Hit, Rating

MEANINGS = ("not useful", "slightly useful", "useful", "very useful", "the answer")
"""What 1 to 5 stars say."""


# ipywidgets has no types, so its classes are `Any` to the type checker.
class ResultCard(widgets.VBox):  # type: ignore[misc]
    """A result, 1 to 5 stars to rate it with, and a button that takes the rating back.

    A panel keeps its cards and fills them anew for each search, since making widgets costs far
    more than changing them, and a card that stays in place makes nothing jump.

    Attributes:
        hit: What the card shows, or ``None`` while it is hidden.
        stars: Radio buttons whose value is the score, or ``None``.
        undo: Takes the last change of the stars back.
    """

    def __init__(
        self, rate: Callable[[Hit, int], Rating | None], take_back: Callable[[Hit, Rating], bool]
    ) -> None:
        """Make a hidden card.

        Args:
            rate: Stores a score for a hit; returns the rating, or ``None`` when that failed.
            take_back: Removes a stored rating of a hit; returns whether it is gone.
        """
        self.hit: Hit | None = None
        self._rate = rate
        self._take_back = take_back
        # Ratings that this card stored, with the score that stood before each.
        self._history: list[tuple[Rating, int | None]] = []
        self._score: int | None = None
        self._filling = False
        self._body = widgets.HTML()
        self.stars = widgets.RadioButtons(
            options=[(_label(score), score) for score in range(1, 6)],
            index=None,
            orientation="horizontal",
            layout=widgets.Layout(width="auto"),
        ).add_class("kbkit-stars")
        self.stars.observe(self._starred, "value")
        self.undo = widgets.Button(
            description="Undo",
            tooltip="Take back the last change of this rating",
            layout=widgets.Layout(width="auto", visibility="hidden"),
        ).add_class("kbkit-undo")
        self.undo.on_click(lambda _button: self.take_back())
        actions = widgets.HBox([self.stars, self.undo]).add_class("kbkit-actions")
        super().__init__([self._body, actions], layout=widgets.Layout(display="none"))
        self.add_class("kbkit-card")

    def show(self, hit: Hit, html: str, score: int | None) -> None:
        """Fill the card.

        Args:
            hit: What it shows.
            html: How that looks.
            score: The score that the reader has given it for this query, if any.
        """
        if self.hit is None or self.hit.chunk.id != hit.chunk.id or self._score != score:
            self._history = []
        self.hit = hit
        self._body.value = html
        self._display(score)
        self.layout.display = None

    def hide(self) -> None:
        """Show nothing."""
        self.hit = None
        self._history = []
        self.layout.display = "none"

    def take_back(self) -> None:
        """Undo the last change of the rating, if this card made one."""
        if self.hit is None or not self._history:
            return
        rating, before = self._history[-1]
        if self._take_back(self.hit, rating):
            self._history.pop()
            self._display(before)

    def _starred(self, change: Bunch) -> None:
        if self._filling or self.hit is None or change["new"] is None:
            return
        rating = self._rate(self.hit, change["new"])
        if rating is None:
            self._display(self._score)
        else:
            self._history.append((rating, self._score))
            self._display(rating.score)

    def _display(self, score: int | None) -> None:
        self._score = score
        self._filling = True
        try:
            self.stars.value = score
        finally:
            self._filling = False
        # Hidden, not gone: the row keeps its height.
        self.undo.layout.visibility = "visible" if self._history else "hidden"


def _label(score: int) -> str:
    return f"{score} {'star' if score == 1 else 'stars'}, {MEANINGS[score - 1]}"
