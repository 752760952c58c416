"""The search page of a site, with filters."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from kbkit.export.index.packing import decode_varints
from kbkit.models import DocumentType

_TAGS = 100
"""Maximum tags offered."""
_STARS = [(str(number), f"{number} of 5") for number in (2, 3, 4, 5)]
_AGES = [("7", "week"), ("31", "month"), ("183", "half year"), ("366", "year")]
_CURRENT = (
    '<label class="kb-check"><input type="checkbox" name="state" value="current">'
    "Without pages that may be out of date</label>"
)
_SUBJECTS = (
    '<label>Topic<input data-adds="subject" list="kb-subjects" maxlength="200" '
    'placeholder="any topic"></label><datalist id="kb-subjects"></datalist>'
    '<label>Mentions<input data-adds="entity" list="kb-entities" maxlength="200" '
    'placeholder="any name"></label><datalist id="kb-entities"></datalist>'
)

_PAGE = """<div id="kb-page">
<h1>Search</h1>
<noscript><p>Searching needs JavaScript; without it, the navigation leads to every page.</p>
</noscript>
<form id="kb-search" class="kb-form" role="search" action="" autocomplete="off">
<label class="kb-query">Question or words
<input type="search" name="query" maxlength="1000" spellcheck="false" autocapitalize="off"></label>
{fields}
<div id="kb-chosen" class="kb-chosen" role="group" aria-label="Only passages that"></div>
</form>
<p id="kb-status" class="kb-status" role="status"></p>
<button id="kb-drop" class="kb-more" type="button" hidden>Search without filters</button>
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
    only = f'<input type="hidden" name="kb" value="{html.escape(kb)}">' if kb else ""
    return _HOME_FORM.format(up=up, index="" if directories else "index.html", kb=only)


def subject_line(kb: str, names: Sequence[str], up: str, *, directories: bool) -> str:
    """Return the HTML of a page's topics, linked to other pages about them."""
    page = f"{up}search/{'' if directories else 'index.html'}"
    links = []
    for name in names:
        plain = html.unescape(name)
        asked = {"query": plain, **({"kb": kb} if kb else {}), "entity": plain}
        address = f"{page}?{urlencode(asked, errors='replace')}"
        links.append(f'<a href="{html.escape(address)}">{html.escape(plain)}</a>')
    return f'<span class="kb-subjects">About: {", ".join(links)}</span>'


def search_page(
    kbs: Sequence[Mapping[str, str]], cores: Sequence[Mapping[str, Any]], script: str
) -> str:
    kinds, tags, frames = _document_counts(cores)
    fields = []
    if len(kbs) > 1:
        fields.append(_choice("kb", "Knowledge base", [(kb["name"], kb["title"]) for kb in kbs]))
    types = _counted(kinds, sorted(kinds, key=_kind_rank))
    fields.append(_choice("type", "Type", [(k, text.replace("_", " ")) for k, text in types]))
    fields.append(_choice("tag", "Tag", _counted(tags, sorted(tags)[:_TAGS])))
    if frames:
        fields.append(_choice("frame", "Kind of statement", _counted(frames, frames)))
        fields.append(_SUBJECTS)
    if any(core["ratings"] for core in cores):
        fields.append(_choice("rating", "Rated at least", _STARS))
    fields.append(_choice("fresh", "Fetched in the last", _AGES))
    if any(core["stale"] for core in cores):
        fields.append(_CURRENT)
    return _PAGE.format(fields="".join(fields), script=script)


def _document_counts(
    cores: Sequence[Mapping[str, Any]],
) -> tuple[Counter[str], Counter[str], Counter[str]]:
    kinds: Counter[str] = Counter()
    tags: Counter[str] = Counter()
    frames: Counter[str] = Counter()
    for core in cores:
        kinds.update(core["kinds"][number] for number in decode_varints(core["kind"]).tolist())
        tags.update(core["tags"][number] for held in core["tag"] for number in held)
        frames.update(core.get("frames", {}))
    return kinds, tags, Counter(dict(frames.most_common()))


def _counted(counts: Mapping[str, int], names: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, f"{name} ({counts[name]:,})") for name in names]


def _kind_rank(kind: str) -> tuple[bool, str]:
    return kind == DocumentType.OTHER, kind


def _choice(name: str, label: str, options: Sequence[tuple[str, str]]) -> str:
    """A field to choose one of some values, or any; nothing where there is no choice."""
    if len(options) < 2:
        return ""
    values = "".join(
        f'<option value="{html.escape(value)}">{html.escape(text)}</option>'
        for value, text in options
    )
    return (
        f'<label>{label}<select name="{name}"><option value="">any</option>{values}</select>'
        "</label>"
    )
