"""Pages as documentation generators write them, each with a poor and a good reading."""

# ruff: noqa: E501 - a page is read more easily in few lines

from collections.abc import Mapping
from dataclasses import dataclass

from kbkit.sources.html.extract import ExtractedPage
from kbkit.sources.html.site_extractor import SiteExtractor


@dataclass(frozen=True, slots=True)
class GeneratedPage:
    """A page and two readings of it.

    Attributes:
        html: The page's body.
        bad: What was written of it.
        good: What should be.
        kinds: What the first lost, or in ``surplus`` holds besides.
        others: Bodies of other pages of the site, by which its template is known.
    """

    html: str
    bad: str
    good: str
    kinds: tuple[str, ...]
    others: tuple[str, ...] = ()


def read_site(pages: Mapping[str, bytes]) -> dict[str, ExtractedPage]:
    """Read pages, given by address, together as one site."""
    tasks = ((url, url, html, "") for url, html in pages.items())
    return dict(SiteExtractor(processes=1).read(tasks))


def _numbered(body: str) -> tuple[str, ...]:
    """The same body on other pages, with words of their own in place of ``@``."""
    return tuple(body.replace("@", word) for word in ("amber", "basalt", "coral", "delta", "ember"))


_FOOT = '<div id="foot">Made by a tool <a href="/">Start</a> <a href="/all">All pages</a></div>'

_LONG = (
    "It takes a while until the jam is ready, and a while longer until it is cold. " * 3
).strip()
_MENU = "".join(f'<li><a href="/{n}">A{n}{"r" * 30}</a></li>' for n in range(20))
_MENU = f"<ul>{_MENU}</ul>"
_MENU_LINES = "\n".join(f"-   [A{n}{'r' * 30}](https://docs.example/{n})" for n in range(20))
_LETTERS = " ".join(f"<a href='#{letter}'>{letter}</a>" for letter in "ABC")
_LETTER_LINES = " ".join(f"[{letter}](https://docs.example/p.html#{letter})" for letter in "ABC")
_INDEX = "".join(f"<li><a id='{letter}' href='/{letter}'>Jam {letter}</a></li>" for letter in "ABC")
_INDEX_LINES = "\n".join(f"-   [Jam {letter}](https://docs.example/{letter})" for letter in "ABC")
_LICENSE = (
    "<table><tr><td></td><td><div>© @<p>Under the License of Tea, see the file TEA.</p></div></td>"
    "</tr></table>"
)
_LINES = [f"int @_{n}; // the food number {n} takes a while until it is cold" for n in range(9)]
_SOURCE = (
    "<div><div class='title'>@.h</div></div><div class='contents'><div class='fragment'>"
    + "".join(f"<div class='line'>{line}</div>" for line in ("/* Free. */", "/* Use. */", *_LINES))
    + "</div></div>"
)
_JAM_LINES = "\n".join(_LINES).replace("@", "jam")

PAGES = {
    "articles that are manuals": GeneratedPage(
        "<h1>Kettle</h1><p>Boils.</p><h2>Use</h2><p>Fill the kettle with cold water up to the line, "
        "put it on its base and wait until it turns itself off, which takes three minutes.</p>"
        "<h2>Safety</h2><p>Hot.</p><ul><li>Keep away.</li><li>Unplug.</li></ul>",
        "# Kettle\n\n## Use\n\nFill the kettle with cold water up to the line, put it on its base and "
        "wait until it turns itself off, which takes three minutes.\n",
        "# Kettle\n\nBoils.\n\n## Use\n\nFill the kettle with cold water up to the line, put it on its "
        "base and wait until it turns itself off, which takes three minutes.\n\n## Safety\n\nHot.\n\n"
        "-   Keep away.\n-   Unplug.\n",
        ("words", "headings"),
    ),
    "a title block beside the content": GeneratedPage(
        '<div id="header"><h1>brew(1)</h1><h2 id="_name">NAME</h2><div class="sectionbody">'
        "<p>brew - make tea out of water and leaves</p></div></div>"
        '<div id="content"><h2 id="_use">SYNOPSIS</h2><p>brew LEAVES</p></div>',
        "# brew(1)\n\n## SYNOPSIS {#_use}\n\nbrew LEAVES\n",
        "# brew(1) {#header}\n\n## NAME {#_name}\n\nbrew - make tea out of water and leaves\n\n"
        "## SYNOPSIS {#_use}\n\nbrew LEAVES\n",
        ("words", "headings", "anchors"),
    ),
    "a caption that names the page": GeneratedPage(
        '<div id="package-header"><span class="caption">kitchen-1.0</span></div><div id="content">'
        '<div id="module-header"><p class="caption">Kitchen.Kettle</p></div>'
        "<div><h1>Kinds</h1><p>There are two kinds.</p></div></div>",
        "# Kinds\n\nThere are two kinds.\n",
        "Kitchen.Kettle\n\n# Kinds\n\nThere are two kinds.\n",
        ("words",),
        _numbered(
            '<div id="package-header"><span class="caption">kitchen-1.0</span></div>'
            '<p class="caption">@</p>'
        ),
    ),
    "the name of an admonition": GeneratedPage(
        '<h1>Cups</h1><div class="note"><table><tr><td rowspan="2"><img src="n.png" alt=""></td>'
        "<th>Watch out</th></tr><tr><td><p>They are hot.</p></td></tr></table></div>",
        "# Cups\n\n| | |\n| --- | --- |\n| | They are hot. |\n",
        "# Cups\n\n> **Watch out**\n>\n> They are hot.\n",
        ("words",),
    ),
    "blocks inside a summary": GeneratedPage(
        "<main><h1>Vec</h1><details open><summary><section id='method.push'><h4>fn push(item)</h4>"
        "</section><p>Adds an item.</p></summary><p>Grows if it has to.</p></details></main>",
        "# Vec\n\n**fn push(item) Adds an item.**\n\nGrows if it has to.\n",
        "# Vec\n\n#### fn push(item) {#method.push}\n\nAdds an item.\n\nGrows if it has to.\n",
        ("headings", "anchors"),
    ),
    "code whose lines are elements": GeneratedPage(
        '<h1>Clock</h1><p>So:</p><div class="fragment"><div class="line"><span class="lineno">1</span>'
        '<a href="c.html">Clock</a> clock;</div><div class="line"><span class="lineno">2</span>'
        '    clock.wind();</div><div class="ttc" id="c"><div class="ttname">Clock</div><div>Tells the hour'
        "</div></div></div>",
        "# Clock\n\nSo:\n\n1[Clock](https://docs.example/c.html) clock;\n\n2 clock.wind();\n\nClock\n\n"
        "Tells the hour\n",
        "# Clock\n\nSo:\n\n```\nClock clock;\n    clock.wind();\n```\n",
        ("code", "surplus"),
    ),
    "preformatted text whose lines are blocks": GeneratedPage(
        "<h1>Walk</h1><pre><pre><code><div>def walk():<br></div><div>    go()<br></div></code></pre></pre>",
        "# Walk\n\n`def walk(): go()`\n",
        "# Walk\n\n```\ndef walk():\n    go()\n```\n",
        ("code",),
    ),
    "code with breaks": GeneratedPage(
        '<h1>Run</h1><div class="example"><p><code>$ run --all<br>\nDone<br>\nBye</code></p></div>',
        "# Run\n\n`$ run --all Done Bye`\n",
        "# Run\n\n```\n$ run --all\nDone\nBye\n```\n",
        ("code",),
    ),
    "spans that say a cell again": GeneratedPage(
        '<h1>Teas</h1><table><tr><th>Tea</th><th>Minutes</th></tr><tr><td colspan="2">Green teas are '
        "not boiled</td></tr><tr><td>Sencha</td><td>2</td></tr></table>",
        "# Teas\n\n| Tea | Minutes |\n| --- | --- |\n| Green teas are not boiled | Green teas are not "
        "boiled |\n| Sencha | 2 |\n",
        "# Teas\n\n| Tea | Minutes |\n| --- | --- |\n| Green teas are not boiled |  |\n| Sencha | 2 |\n",
        ("surplus",),
    ),
    "a table with a cell that holds blocks": GeneratedPage(
        "<h1>Members</h1><table><tr><td colspan='2'><h2>Functions</h2></td></tr><tr><td>Time</td>"
        "<td>elapsed()</td></tr><tr><td>void</td><td>restart()</td></tr></table>",
        "# Members\n\n**Functions**\n\nTime\n\nelapsed()\n\nvoid\n\nrestart()\n",
        "# Members\n\n## Functions\n\n|  |  |\n| --- | --- |\n| Time | elapsed() |\n| void | restart() |\n",
        ("headings", "rows"),
    ),
    "content that is called related": GeneratedPage(
        '<h1>Server</h1><table class="related"><tr><th>Related parts</th><th>Related switches</th></tr>'
        '<tr><td><a href="a.html">mod_a</a></td><td><a href="b.html">SwitchB</a></td></tr></table>'
        "<p>It serves.</p>",
        "# Server\n\nIt serves.\n",
        "# Server\n\n| Related parts | Related switches |\n| --- | --- |\n| "
        "[mod_a](https://docs.example/a.html) | [SwitchB](https://docs.example/b.html) |\n\nIt serves.\n",
        ("words", "rows", "cells", "links"),
    ),
    "steps to the pages around": GeneratedPage(
        '<div class="header"><p>Next: <a href="n.html" rel="next">Pouring</a>, Up: <a href="u.html" '
        'rel="up">Brewing</a> [<a href="t.html">Contents</a>][<a href="i.html">Index</a>]</p></div>'
        "<h2>Steeping</h2><p>Leaves stay in the water.</p>",
        "Next: [Pouring](https://docs.example/n.html), Up: [Brewing](https://docs.example/u.html) "
        "\\[[Contents](https://docs.example/t.html)\\]\\[[Index](https://docs.example/i.html)\\]\n\n"
        "## Steeping\n\nLeaves stay in the water.\n",
        "# Manual\n\n## Steeping\n\nLeaves stay in the water.\n",
        ("surplus",),
    ),
    "links to the source": GeneratedPage(
        '<main><h1>Vec</h1><h3 id="len">len <a class="src" href="vec.html#1">Source</a></h3>'
        '<p>Counts. <a href="../src/vec.html">source</a></p></main>',
        "# Vec\n\n### len Source {#len}\n\nCounts. [source](https://docs.example/src/vec.html)\n",
        "# Vec\n\n### len {#len}\n\nCounts.\n",
        ("surplus", "headings"),
    ),
    "sources folded behind a summary": GeneratedPage(
        '<main><h1>kettle</h1><dl><dt id="boil"><code>def boil(water)</code></dt><dd><details class='
        '"source"><summary><span>Expand source code</span></summary><pre><code class="python">def '
        "boil(water):\n    return heat(water)</code></pre></details><p>Boils.</p></dd></dl></main>",
        "# kettle\n\n## def boil(water) {#boil}\n\n**Expand source code**\n\n```python\ndef boil("
        "water):\n    return heat(water)\n```\n\nBoils.\n",
        "# kettle\n\n## `def boil(water)` {#boil}\n\nBoils.\n",
        ("surplus",),
    ),
    "sources folded behind a button": GeneratedPage(
        '<main><h1>kettle</h1><section id="boil"><input id="b" type="checkbox"><div><span>def boil('
        'water)</span><label for="b"><span>View Source</span></label></div><a class="headerlink" href="#boil">'
        '</a><div class="code"><pre><a href="#L-1">def</a> boil(water):\n    return heat(water)'
        "</pre></div><p>Boils.</p></section></main>",
        "# kettle\n\ndef boil(water) View Source\n\n```\ndef boil(water):\n    return heat(water)\n"
        "```\n\nBoils.\n",
        "# kettle\n\n## def boil(water) {#boil}\n\nBoils.\n",
        ("surplus",),
    ),
    "code that says that it is numbered": GeneratedPage(
        '<main><h1>kettle.js</h1><pre class="line-number"><code class="linenums">boil();\npour();'
        "</code></pre></main>",
        "# kettle.js\n",
        "# kettle.js\n\n```\nboil();\npour();\n```\n",
        ("words", "code"),
    ),
    "what introduces the page beside its content": GeneratedPage(
        '<header><h1>Module Kettle</h1><p>Boils water.</p><pre>boil</pre></header><div><h2 id="use">Use'
        "</h2><p>Fill it.</p></div>",
        "# Kettle\n\n## Use {#use}\n\nFill it.\n",
        "# Module Kettle\n\nBoils water.\n\n```\nboil\n```\n\n## Use {#use}\n\nFill it.\n",
        ("words", "headings", "code"),
    ),
    "results of a search that nobody made": GeneratedPage(
        '<div><main><h1>Kettle</h1><p>Boils.</p></main><div class="search-results"><h1>No results '
        'matching ""</h1></div></div>',
        "# Kettle\n\nBoils.\n\n# No results matching\n",
        "# Kettle\n\nBoils.\n",
        ("surplus",),
    ),
    "rows that unfold": GeneratedPage(
        '<h1>Parts</h1><table><tr><td><span onclick="unfold()">+</span>Pots</td><td>All pots</td></tr>'
        '<tr style="display:none"><td>Kettle</td><td>It boils</td></tr></table>',
        "# Parts\n\n|  |  |\n| --- | --- |\n| +Pots | All pots |\n",
        "# Parts\n\n|  |  |\n| --- | --- |\n| +Pots | All pots |\n| Kettle | It boils |\n",
        ("words", "rows", "cells"),
    ),
    "the contents of a manual": GeneratedPage(
        '<div class="navigation"><a href="n1.html"><img alt="next"></a><b>Next:</b> <a href="n1.html">'
        'Pots</a></div><p>tea<hr><ul><li><a href="n1.html">Pots</a></li><li><a href="n2.html">Cups'
        '</a></li><li><a href="n3.html">Spoons</a></li></ul>',
        "Next: [Pots](https://docs.example/n1.html)\n\ntea\n\n-   [Pots](https://docs.example/n1.html)\n"
        "-   [Cups](https://docs.example/n2.html)\n-   [Spoons](https://docs.example/n3.html)\n",
        "tea\n\n-   [Pots](https://docs.example/n1.html)\n-   [Cups](https://docs.example/n2.html)\n-   "
        "[Spoons](https://docs.example/n3.html)\n",
        ("surplus",),
        _numbered(
            '<h1>@</h1><p>It is @.</p><p>tea<ul><li><a href="n1.html">Pots</a></li><li><a href="n2.html">'
            'Cups</a></li><li><a href="n3.html">Spoons</a></li></ul>'
        ),
    ),
    "links of a signature": GeneratedPage(
        '<h1>List</h1><div class="spec"><code><span>val map : <a href="f.html">fn</a> -&gt; '
        '<a href="l.html">list</a></span></code></div><p>Applies.</p>',
        "# List\n\n`val map : fn -> list`\n\nApplies.\n",
        "# List\n\n`val map :` [`fn`](https://docs.example/f.html) `->` "
        "[`list`](https://docs.example/l.html)\n\nApplies.\n",
        ("links",),
    ),
    "the foot of every page": GeneratedPage(
        f"<h1>Spoon</h1><p>Stirs.</p>{_FOOT}",
        "# Spoon\n\nStirs.\n\nMade by a tool [Start](https://docs.example/) "
        "[All pages](https://docs.example/all)\n",
        "# Spoon\n\nStirs.\n",
        ("surplus",),
        _numbered(f"<h1>@</h1><p>It is @.</p>{_FOOT}"),
    ),
    "a menu of the site": GeneratedPage(
        '<div class="left"><ul><li><a href="/a">Apples and pears</a></li><li><a href="/b">Bread and '
        "butter</a></li></ul></div><div><h1>Jam</h1><p>Sweet.</p></div>",
        "-   [Apples and pears](https://docs.example/a)\n-   [Bread and butter](https://docs.example/b)"
        "\n\n# Jam\n\nSweet.\n",
        "# Jam\n\nSweet.\n",
        ("surplus",),
        _numbered(
            '<div class="left"><ul><li><a href="/a">Apples and pears</a></li><li><a href="/b">Bread '
            "and butter</a></li></ul></div><div><h1>@</h1><p>@!</p></div>"
        ),
    ),
    "a long menu in the frame of the content": GeneratedPage(
        f"<div id='content'><div>{_MENU}</div><div><h1>Jam</h1><p>Sweet. {_LONG}</p></div></div>",
        f"# Jam {{#content}}\n\n{_MENU_LINES}\n\nSweet. {_LONG}\n",
        f"# Jam {{#content}}\n\nSweet. {_LONG}\n",
        ("surplus",),
        _numbered(
            f"<div id='content'><div>{_MENU}</div><div><h1>@</h1><p>@! {_LONG}</p></div></div>"
        ),
    ),
    "the license below all pages": GeneratedPage(
        f"<h1>Jam</h1><p>Sweet.</p>{_LICENSE.replace('@', 'Jim')}",
        "# Jam\n\nSweet.\n\n© Jim\n\nUnder the License of Tea, see the file TEA.\n",
        "# Jam\n\nSweet.\n\n© Jim\n",
        ("surplus",),
        _numbered(f"<h1>@</h1><p>It is @.</p>{_LICENSE}"),
    ),
    "sources that begin alike": GeneratedPage(
        _SOURCE.replace("@", "jam"),
        f"# jam.h\n\n{_JAM_LINES}\n",
        f"# jam.h\n\n```\n/* Free. */\n/* Use. */\n{_JAM_LINES}\n```\n",
        ("words", "code"),
        _numbered(_SOURCE),
    ),
    "an index below its letters": GeneratedPage(
        f"<div><a href='/'>Home</a></div><div id='start'><h1>Index</h1><p>{_LONG}</p><p>{_LETTERS}"
        f"</p></div><div><ul>{_INDEX}</ul></div>",
        f"# Index {{#start}}\n\n{_LONG}\n\n{_LETTER_LINES}\n",
        f"# Index {{#start}}\n\n{_LONG}\n\n{_LETTER_LINES}\n\n{_INDEX_LINES}\n",
        ("words", "links"),
        _numbered(f"<div id='page'><h1>@</h1><p>It is @. {_LONG}</p></div>"),
    ),
}
