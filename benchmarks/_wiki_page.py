"""A wiki page in the frame of MediaWiki's skin."""

# ruff: noqa: E501 - a page is read more easily in few lines

from __future__ import annotations

import re


def wiki_page(name: str, inner: str, others: list[str]) -> str:
    """Render a page: table of contents, edit links, infobox, references, navigation box."""
    title = name.replace("_", " ").capitalize()
    contents: list[str] = []

    def heading(match: re.Match[str]) -> str:
        level, place, text = int(match[1]) + 1, match[2], match[3]
        contents.append(
            f'<li class="toclevel-{level - 1}"><a href="#{place}"><span class="tocnumber">'
            f'{len(contents) + 1}</span> <span class="toctext">{text}</span></a></li>'
        )
        edit = (
            '<span class="mw-editsection"><span class="mw-editsection-bracket">[</span>'
            f'<a href="/w/index.php?title={title}&amp;action=edit&amp;section={len(contents)}">edit'
            '</a><span class="mw-editsection-bracket">]</span></span>'
        )
        return f'<h{level}><span class="mw-headline" id="{place}">{text}</span>{edit}</h{level}>'

    text = re.sub(r'<h([1-5]) id="([^"]+)">(.*?)</h\1>', heading, inner, flags=re.S)
    text = text.replace("<table>", '<table class="wikitable">')
    notes = 0

    def cited(match: re.Match[str]) -> str:
        nonlocal notes
        notes += 1
        return (
            f'.<sup id="cite_ref-{notes}" class="reference"><a href="#cite_note-{notes}">'
            f"&#91;{notes}&#93;</a></sup></p>"
        )

    text = re.sub(r"\.</p>", cited, text, count=3)
    first, _, rest = text.partition("</p>")
    toc = (
        '<div id="toc" class="toc" role="navigation"><input type="checkbox" role="button" '
        'id="toctogglecheckbox" class="toctogglecheckbox" style="display:none" /><div class='
        '"toctitle" lang="en" dir="ltr"><h2 id="mw-toc-heading">Contents</h2><span class='
        '"toctogglespan"><label class="toctogglelabel" for="toctogglecheckbox"></label></span>'
        f"</div><ul>{''.join(contents)}</ul></div>"
    )
    infobox = (
        f'<table class="infobox vevent"><caption class="infobox-title summary">{title}</caption>'
        f'<tbody><tr><th scope="row" class="infobox-label">Module</th><td class="infobox-data">'
        f"node:{name}</td></tr><tr><th scope='row' class='infobox-label'>See</th><td class="
        f'"infobox-data"><div class="plainlist"><ul><li><a href="/wiki/{others[0]}">{others[0]}</a>'
        f'</li><li><a href="/wiki/{others[1]}">{others[1]}</a></li></ul></div></td></tr></tbody>'
        "</table>"
    )
    listed = "".join(
        f'<li id="cite_note-{number}"><span class="mw-cite-backlink"><b><a href="#cite_ref-{number}">'
        f'^</a></b></span> <span class="reference-text"><cite class="citation web">"<a rel="nofollow"'
        f' class="external text" href="https://example.org/{name}/{number}">Source {number} of {name}'
        f'</a>". <i>Example {number}</i>.</cite></span></li>'
        for number in range(1, notes + 1)
    )
    box = "".join(f'<li><a href="/wiki/{one}" title="{one}">{one}</a></li>' for one in others[:12])
    side = "".join(
        f'<li id="n-{one.replace(" ", "-")}"><a href="/wiki/{one}"><span>{one}</span></a></li>'
        for one in ("Main page", "Recent changes", "Random page", "Help about MediaWiki")
    )
    return (
        f'<!DOCTYPE html><html class="client-nojs" lang="en"><head><meta charset="UTF-8"/><title>'
        f"{title} - Manual wiki</title></head><body class='mediawiki ltr sitedir-ltr skin-vector'>"
        '<div id="mw-page-base" class="noprint"></div><div id="content" class="mw-body" role="main">'
        '<a id="top"></a><div id="siteNotice"></div><div class="mw-indicators"></div>'
        f'<h1 id="firstHeading" class="firstHeading mw-first-heading">{title}</h1>'
        '<div id="bodyContent" class="vector-body"><div id="siteSub" class="noprint">From Manual wiki'
        '</div><div id="contentSub"></div><div id="jump-to-nav"></div><a class="mw-jump-link" '
        'href="#mw-head">Jump to navigation</a><a class="mw-jump-link" href="#searchInput">Jump to '
        'search</a><div id="mw-content-text" class="mw-body-content mw-content-ltr" lang="en">'
        '<div class="mw-parser-output"><div role="note" class="hatnote navigation-not-searchable">'
        f'For other modules, see <a href="/wiki/Modules">Modules beside {name}</a>.</div>{infobox}'
        f'{first}</p>{toc}{rest}<h2><span class="mw-headline" id="References">References</span></h2>'
        f'<div class="mw-references-wrap"><ol class="references">{listed}</ol></div>'
        f'<div role="navigation" class="navbox" aria-labelledby="nav"><table class="nowraplinks '
        f'navbox-inner"><tbody><tr><th class="navbox-title" colspan="2">Modules</th></tr><tr><th '
        f'class="navbox-group">Core</th><td class="navbox-list"><ul>{box}</ul></td></tr></tbody>'
        "</table></div></div><div class='printfooter'>Retrieved from <a href='https://wiki.example/"
        f"{name}'>https://wiki.example/{name}</a></div></div><div id='catlinks' class='catlinks'>"
        '<div id="mw-normal-catlinks"><a href="/wiki/Special:Categories">Category</a>: <ul><li><a '
        'href="/wiki/Category:Modules">Modules</a></li></ul></div></div></div></div>'
        '<div id="mw-navigation"><h2>Navigation menu</h2><div id="mw-head"><nav id="p-personal" '
        'aria-labelledby="p-personal-label"><h3 id="p-personal-label"><span>Personal tools</span>'
        '</h3><ul><li><a href="/login">Log in</a></li></ul></nav></div><div id="mw-panel"><nav '
        f'id="p-navigation"><h3>Navigation</h3><ul>{side}</ul></nav></div></div><footer id="footer" '
        'class="mw-footer" role="contentinfo"><ul id="footer-info"><li id="footer-info-lastmod"> This '
        f"page was last edited on {len(name) + 3} May 2026, at 10:1{len(name) % 10}.</li><li "
        'id="footer-info-copyright">Content is available under a license unless otherwise noted.</li>'
        '</ul><ul id="footer-places"><li><a href="/p">Privacy policy</a></li><li><a href="/a">About '
        "Manual wiki</a></li></ul></footer></body></html>"
    )
