"""Write the label of each tab above its panel: without scripts, all panels are shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from lxml import etree

from kbkit.sources.html.dom import Element, drop_tree, normalized_text

_LEVELS = 3  # ancestors of the labels that are searched for panels


def label_tabs(body: Element) -> list[Element]:
    """Move the labels of tabs, found by roles or radio buttons, in place; return these."""
    moved: list[Element] = []
    named = {each.get("id"): each for each in body.iter() if each.get("id")}
    for tabs in [each for each in body.iter() if each.get("role") == "tablist"]:
        labels = [each for each in tabs.iter() if each.get("role") == "tab"]
        moved += _move(
            labels, _controlled(labels, named) or _beside(tabs, len(labels), by_role=True)
        )
    groups: defaultdict[Element, list[Element]] = defaultdict(list)
    for label in body.iter("label"):
        button = named.get(label.get("for"))
        if button is not None and button.tag == "input" and button.get("type") == "radio":
            groups[label.getparent()].append(label)
    for parent, labels in groups.items():
        panels = [_next(label) for label in labels]
        if any(panel is None or panel.tag == "label" for panel in panels):
            panels = _beside(parent, len(labels), by_role=False)
        moved += _move(labels, panels)
    return moved


def _move(labels: Sequence[Element], panels: Sequence[Element | None]) -> list[Element]:
    texts = [normalized_text(label) for label in labels]
    whole = [panel for panel in panels if panel is not None and panel.getparent() is not None]
    if not labels or not all(texts) or len(set(whole)) != len(labels):
        return []
    if any(panel in label.iterancestors() for label in labels for panel in whole):
        return []
    above = []
    for label, text, panel in zip(labels, texts, whole, strict=True):
        drop_tree(label)  # but not its parent, which may hold the panels
        paragraph = etree.Element("p")
        etree.SubElement(paragraph, "strong").text = text
        panel.addprevious(paragraph)
        above.append(paragraph)
    return above


def _controlled(labels: Sequence[Element], named: dict[str, Element]) -> list[Element | None]:
    """Return the panels that labels name, or that name their labels."""
    by_label = {name: each for each in named.values() if (name := each.get("aria-labelledby"))}
    panels = []
    for label in labels:
        target = label.get("aria-controls") or (label.get("href") or "").partition("#")[2]
        target = target or (label.get("data-bs-target") or label.get("data-target") or "").strip(
            "#"
        )
        panels.append(named.get(target, by_label.get(label.get("id"))))
    return panels if all(panel is not None for panel in panels) else []


def _beside(labels: Element, count: int, *, by_role: bool) -> list[Element | None]:
    """Return as many panels as there are labels, inside or after their ancestors."""
    place: Element | None = labels
    for _ in range(_LEVELS):
        if place is None:
            return []
        if by_role:
            panels = [each for each in place.iter() if each.get("role") == "tabpanel"]
        else:
            panels = list(following) if (following := _next(place)) is not None else []
        if len(panels) == count:
            return panels
        place = place.getparent()
    return []


def _next(element: Element) -> Element | None:
    following = element.getnext()
    while following is not None and following.tag == "input":
        following = following.getnext()
    return following
