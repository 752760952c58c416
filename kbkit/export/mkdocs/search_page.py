"""The page of a site that searches all of its knowledge bases, with filters."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from kbkit.models import DocumentType

_TAGS = 100
"""Most tags to choose from."""
_STARS = [(str(number), f"{number} of 5") for number in (2, 3, 4, 5)]
_AGES = [("7", "week"), ("31", "month"), ("183", "half year"), ("366", "year")]
_CURRENT = (
    '<label class="kb-check"><input type="checkbox" name="state" value="current">'
    "Without pages that may be out of date</label>"
)

_PAGE = """<div id="kb-page">
<h1>Search</h1>
<noscript><p>Searching needs JavaScript; without it, the navigation leads to every page.</p>
</noscript>
<form id="kb-search" class="kb-form" role="search" action="" autocomplete="off">
<label class="kb-query">Question or words
<input type="search" name="query" maxlength="1000" spellcheck="false" autocapitalize="off"></label>
{fields}
</form>
<p id="kb-status" class="kb-status" role="status"></p>
<ol id="kb-results" class="kb-results"></ol>
<button id="kb-more" class="kb-more" type="button" hidden>More</button>
</div>
<script src="{script}" defer></script>
"""


_HOME_FORM = """<form class="kb-home-search" role="search" action="{up}search/{index}"
autocomplete="off">{kb}<input type="search" name="query" maxlength="1000" spellcheck="false"
autocapitalize="off" aria-label="Question or words" placeholder="Ask a question, or type words">
<button>Search</button></form>
"""


def home_form(kb: str, up: str, *, directories: bool) -> str:
    """The HTML of a field that leads to the search page.

    Args:
        kb: Knowledge base that is searched, or ``""`` for all.
        up: Leads from the page to the site's root.
        directories: Whether the site's pages are folders (``use_directory_urls``).
    """
    only = f'<input type="hidden" name="kb" value="{html.escape(kb)}">' if kb else ""
    return _HOME_FORM.format(up=up, index="" if directories else "index.html", kb=only)


def search_page(
    kbs: Sequence[Mapping[str, str]], cores: Sequence[Mapping[str, Any]], script: str
) -> str:
    """The HTML of the page.

    Args:
        kbs: Name and title of each knowledge base.
        cores: What the index of each knows of all its chunks.
        script: Address of the page's script, from the page.
    """
    kinds = sorted({kind for core in cores for kind in core["kinds"]}, key=_kind_rank)
    if kinds == [DocumentType.OTHER]:
        kinds = []  # a filter that tells nothing apart
    tags = sorted({tag for core in cores for tag in core["tags"]})
    fields = []
    if len(kbs) > 1:
        fields.append(_choice("kb", "Knowledge base", [(kb["name"], kb["title"]) for kb in kbs]))
    fields.append(_choice("type", "Type", [(kind, kind.replace("_", " ")) for kind in kinds]))
    fields.append(_choice("tag", "Tag", [(tag, tag) for tag in tags[:_TAGS]]))
    if any(core["ratings"] for core in cores):
        fields.append(_choice("rating", "Rated at least", _STARS))
    fields.append(_choice("fresh", "Fetched in the last", _AGES))
    if any(core["stale"] for core in cores):
        fields.append(_CURRENT)
    return _PAGE.format(fields="".join(fields), script=script)


def _kind_rank(kind: str) -> tuple[bool, str]:
    return kind == DocumentType.OTHER, kind


def _choice(name: str, label: str, options: Sequence[tuple[str, str]]) -> str:
    """A field to choose one of some values, or any."""
    if not options:
        return ""
    values = "".join(
        f'<option value="{html.escape(value)}">{html.escape(text)}</option>'
        for value, text in options
    )
    return (
        f'<label>{label}<select name="{name}"><option value="">any</option>{values}</select>'
        "</label>"
    )
