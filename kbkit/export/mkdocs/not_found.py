"""The 404 page: leads to the search, and to similar addresses."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from pathlib import Path

from kbkit.export.index.packing import encode_shard

PAGES = "pages.js"
"""Addresses and titles of all pages, which only this page reads."""

_HEADING = re.compile(r"<h1>404[^<]*</h1>")
_TITLE = re.compile(r"<title>")

_PAGE = """<div id="kb-missing">
<h1>Nothing is here</h1>
<p>There is no page at <code id="kb-lost">this address</code>. It may have moved, or what it was
made from is gone.</p>
<form class="kb-form" role="search" action="{root}search/{index}" autocomplete="off">
<label class="kb-query">Question or words
<input type="search" name="query" maxlength="1000" spellcheck="false" autocapitalize="off"></label>
<button class="kb-more">Search</button>
</form>
<div id="kb-near" hidden>
<h2>Pages with a similar address</h2>
<ul></ul>
</div>
<p><a href="{root}{index}">Home</a></p>
</div>
<script src="{root}{script}" defer></script>
"""


def not_found_page(output: str, root: str, script: str, *, directories: bool) -> str:
    page = _PAGE.format(root=root, script=script, index="" if directories else "index.html")
    output, found = _HEADING.subn(lambda _: page, output, count=1)
    return _TITLE.sub("<title>Nothing is here - ", output, count=1) if found else output


def write_page_list(target: Path, titles: Mapping[str, str]) -> None:
    pages = [[address, html.unescape(titles[address])] for address in sorted(titles)]
    (target / PAGES).write_bytes(encode_shard({"pages": pages}))
