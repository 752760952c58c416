"""Plots of a knowledge base, made with Altair from DataFrames.

Plots fetch nothing: JupyterLab and Notebook draw them with their own Vega; elsewhere (Voilà,
exported pages) vl-convert makes an SVG. Text and lines have no colour, to follow the theme.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from kbkit.extras import extra

with extra("plots", "altair", "A plot"):
    import altair as alt

if TYPE_CHECKING:
    import pandas as pd

NEUTRAL_INK = "#767676"
"""A grey that is readable on white and black."""
_SHOWN_BY_JUPYTER = "application/vnd.vegalite.v5+json"
"""JupyterLab 4 and Notebook 7 draw Vega-Lite 3 to 5 only."""
_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
"""Names the version; nothing is fetched from there."""
_WIDTH = 520
_NO_EDITOR = {
    "embedOptions": {
        "actions": {"export": True, "source": False, "compiled": False, "editor": False}
    }
}
"""The menu of a plot saves it, but does not send the data to a web editor."""
_SPARE = 24
"""Pixels on the right, since the reader's font may be wider than the measured one."""
_FRESHNESS = {"today": 1, "this week": 7, "this month": 30, "this quarter": 90, "this year": 365}
_OLDER = "older"
_BINS = 40
_FOLDERS = 9
_OTHERS = "others"
_PALETTE: Final = "tableau10"


class Plot:
    """A plot for the end of a cell, or as SVG.

    Attributes:
        chart: The Altair chart, to change or combine.
    """

    def __init__(self, chart: alt.Chart) -> None:
        self.chart = chart

    def svg(self, ink: str = "currentColor") -> str:
        """Return the plot as SVG.

        Args:
            ink: CSS colour of text and lines. The default follows the text of a page around it; a
                separate file is black.
        """
        with extra("plots", "vl-convert-python", "The SVG of a plot"):
            import vl_convert

        specification = self.to_dict()
        specification["config"] = specification.get("config", {}) | _colours(ink)
        return vl_convert.vegalite_to_svg(specification, vl_version="5.20")

    def to_dict(self) -> dict[str, Any]:
        """Return the Vega-Lite 5 specification, with its data."""
        # plots include their data, whose size is limited
        with alt.data_transformers.enable("default", max_rows=None):
            specification: dict[str, Any] = self.chart.to_dict()
        specification["$schema"] = _SCHEMA
        return specification

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {
            _SHOWN_BY_JUPYTER: self.to_dict(),
            "image/svg+xml": self.svg(NEUTRAL_INK),
            "text/plain": repr(self),
        }

    def __repr__(self) -> str:
        return f"<Plot: {self.to_dict().get('description', 'an Altair chart')}>"


def documents_by_type(documents: pd.DataFrame, now: datetime | None = None) -> Plot:
    """Plot the number of documents by type and age, without gone ones."""
    documents = documents[documents["state"] != "gone"]
    ages = ((now or datetime.now(UTC)) - documents["fetched_at"]).dt.days
    fresh = ages.map(
        lambda days: next((name for name, limit in _FRESHNESS.items() if days < limit), _OLDER)
    )
    fresh = fresh.astype("string").rename("fetched")
    kinds = documents["document_type"].astype("string").str.replace("_", " ")
    counts = documents.groupby([kinds, fresh]).size().rename("documents").reset_index()
    order = [*_FRESHNESS, _OLDER]
    counts["age"] = counts["fetched"].map(order.index)
    colours = alt.Scale(domain=order, range=_FRESH_TO_OLD)
    chart = (
        alt.Chart(counts)
        .mark_bar()
        .encode(
            x=alt.X("documents:Q", title="documents", axis=_integers(counts["documents"].max())),
            y=alt.Y("document_type:N", title=None, sort="-x"),
            color=alt.Color("fetched:N", title="fetched", sort=order, scale=colours),
            order=alt.Order("age:Q"),
            tooltip=["document_type:N", "fetched:N", "documents:Q"],
        )
    )
    return _plot(chart, "Documents by type and freshness", f"{len(documents):,} documents")


def chunk_lengths(chunks: pd.DataFrame) -> Plot:
    """Plot a histogram of the chunks' lengths in characters."""
    import numpy as np
    import pandas as pd

    lengths = chunks["length"].to_numpy(dtype=np.int64)
    edges = np.histogram_bin_edges(lengths, bins=min(_BINS, max(1, int(lengths.max(initial=1)))))
    numbers, edges = np.histogram(lengths, bins=edges)
    bars = pd.DataFrame(
        {"from": edges[:-1].round(), "to": edges[1:].round(), "chunks": numbers}
    ).query("chunks > 0")
    x = alt.X("from:Q", title="characters", bin=alt.BinParams(binned=True))
    y = alt.Y("chunks:Q", title="chunks", axis=_integers(numbers.max()))
    chart = (
        alt.Chart(bars)
        .mark_bar(binSpacing=1)
        .encode(x=x, x2="to:Q", y=y, tooltip=["from:Q", "to:Q", "chunks:Q"])
    )
    middle = f", median {np.median(lengths):,.0f} characters" if len(lengths) else ""
    return _plot(chart, "Lengths of chunks", f"{len(lengths):,} chunks{middle}")


def rating_histogram(ratings: pd.DataFrame) -> Plot:
    """Plot ratings by score, 1 to 5; the last rating by a rater for a target and query counts."""
    last = ratings.drop_duplicates(["target", "rater", "query"], keep="last")
    counts = last.value_counts(["score", "target_type"]).rename("ratings").reset_index()
    scores = alt.Scale(domain=[1, 2, 3, 4, 5])
    nonzero = counts[counts["ratings"] > 0].rename(columns={"target_type": "of"})
    chart = (
        alt.Chart(nonzero)
        .mark_bar()
        .encode(
            x=alt.X("score:O", title="stars", scale=scores, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("ratings:Q", title="ratings", axis=_integers(counts["ratings"].max())),
            color=alt.Color("of:N", title="of a", scale=alt.Scale(scheme=_PALETTE)),
            tooltip=["score:O", "of:N", "ratings:Q"],
        )
    )
    raters = last["rater"].nunique()
    people = f"{raters:,} {'person' if raters == 1 else 'people'}"
    return _plot(chart, "Ratings", f"{len(last):,} ratings by {people}")


def embedding_map(points: pd.DataFrame, colour: str = "document_type") -> Plot:
    table = points[["x", "y", "title", "section", "snippet"]].copy()
    kinds = points[colour].astype("string").str.replace("_", " ")
    frequent = kinds.value_counts().index[:_FOLDERS]
    table["colour"] = kinds.where(kinds.isin(frequent), _OTHERS)
    shares = points.attrs.get("variance", (0.0, 0.0))
    frame = alt.Axis(grid=False, labels=False, ticks=False)
    scale = alt.Scale(zero=False, padding=12)
    chart = (
        alt.Chart(table.round(4))
        .mark_circle(size=30, opacity=0.8, aria=False)  # too many for a screen reader
        .encode(
            x=alt.X("x:Q", title=f"{shares[0]:.0%} of the variance", axis=frame, scale=scale),
            y=alt.Y("y:Q", title=f"{shares[1]:.0%} of the variance", axis=frame, scale=scale),
            color=alt.Color(
                "colour:N", title=colour.replace("_", " "), scale=alt.Scale(scheme=_PALETTE)
            ),
            tooltip=["title:N", "section:N", "snippet:N"],
        )
        .properties(height=380)
        .interactive()
    )
    chunks = points.attrs.get("chunks", len(points))
    note = f", drawn at random from {chunks:,}" if chunks > len(points) else ""
    return _plot(chart, "Chunks by meaning", f"{len(points):,} chunks{note}")


_FRESH_TO_OLD = ["#1b9e77", "#66b32e", "#c8b400", "#e69100", "#d95f02", "#a0522d"]
"""From green to brown, all visible on white and on black."""


def _integers(limit: float) -> alt.Axis:
    return alt.Axis(format=",d", tickCount=int(min(10, max(1, limit if limit > 0 else 1))))


def _plot(chart: alt.Chart, title: str, subtitle: str) -> Plot:
    return Plot(
        chart.properties(
            title=alt.TitleParams(title, subtitle=subtitle, anchor="start"),
            width=_WIDTH,
            background="transparent",
            padding={"left": 5, "top": 5, "right": _SPARE, "bottom": 5},
            description=f"{title}: {subtitle}",
            usermeta=_NO_EDITOR,
        ).configure_view(strokeOpacity=0)
    )


def _colours(ink: str) -> dict[str, Any]:
    text = {"labelColor": ink, "titleColor": ink}
    lines = dict.fromkeys(("domainColor", "tickColor", "gridColor"), ink)
    opacities = {"gridOpacity": 0.15, "domainOpacity": 0.5, "tickOpacity": 0.5}
    title = {"color": ink, "subtitleColor": ink}
    return {"axis": text | lines | opacities, "legend": text, "title": title}
