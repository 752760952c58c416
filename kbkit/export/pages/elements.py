"""Common elements of pages: front matter, titles, links, counts."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import yaml

from kbkit.export.pages.outline import HOME, SiteOutline
from kbkit.export.pages.paths import LinkMap, relative
from kbkit.export.pages.sections import TreeSection
from kbkit.models import License
from kbkit.models.values import plain
from kbkit.text.markdown.sanitizing import escape

_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_WIDTH = 1_000_000
"""Prevents line breaks in YAML."""


def html_title(text: str) -> str:
    # plugins that render the front matter would read braces as templates
    return html.escape(plain(text), quote=False).replace("{", "&#123;").replace("}", "&#125;")


def front_matter(values: Mapping[str, Any]) -> str:
    lines = (f"{name}: {_yaml(value)}" for name, value in values.items())
    return "\n".join(["---", *lines, "---", ""])


def _yaml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_yaml(one)}' for name, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    # JSON of ASCII text is YAML, and fast; in other text it escapes surrogate pairs
    if not isinstance(value, str) or (value.isprintable() and value.isascii()):
        return json.dumps(value)
    text = yaml.dump(value, Dumper=_DUMPER, default_style='"', width=_WIDTH)
    return text.strip()


def stars(average: float) -> str:
    full = int(average + 0.5)
    return "★" * full + "☆" * (5 - full)


def breadcrumbs(outline: SiteOutline, above: Sequence[TreeSection], here: str) -> str:
    steps = [f"[{escape(outline.title)}]({relative(HOME, here)})"]
    steps += [
        f"[{escape(section.label)}]({relative(outline.page_of(section), here)})"
        for section in above
        if section.label
    ]
    return " › ".join(steps)


def unsearched_page(
    outline: SiteOutline,
    here: str,
    title: str,
    lines: Sequence[str],
    *,
    above: Sequence[TreeSection] = (),
    meta: Mapping[str, Any] | None = None,
) -> str:
    """Return a page that searches exclude, since it lists others."""
    head = {"title": html_title(title), "search": {"exclude": True}, **(meta or {})}
    top = [front_matter(head), breadcrumbs(outline, above, here), "", f"# {escape(title)}", ""]
    return "\n".join([*top, *lines, ""])


def license_link(license: License) -> str:
    return address_link(license.link, license.label) if license.link else escape(license.label)


@lru_cache(maxsize=64)
def address_link(address: str, label: str = "") -> str:
    """Return a link to a web address, or plain text for other addresses."""
    text = escape(label or address)
    if not address.startswith(("http://", "https://")):
        return text
    target = LinkMap({}).resolve(address, base=address, path="")
    return f"[{text}]({target})" if target else text
