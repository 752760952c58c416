"""Markup as generators of documentation write it, in small: what of it the Markdown keeps."""

import re
from urllib.parse import quote

import pytest

from kbkit.sources.html.extract import extract
from kbkit.text.markdown.rendering import render

URL = "https://docs.example/guide/page.html"
PROSE = "<p>" + "Some prose stands around what is looked at, as in a manual. " * 3 + "</p>"


def markdown(body: str) -> str:
    """The Markdown of what stands between two paragraphs of a manual's page."""
    main = f"<main><h1>T</h1>{PROSE}{body}{PROSE}</main>"
    page = f"<html><head><title>T</title></head><body>{main}</body>"
    content = extract(page, URL, alone=False).content
    prose = PROSE.removeprefix("<p>").removesuffix("</p>").strip()
    start, between, end = content.split(prose)
    assert (start, end) == ("# T\n\n", "\n")
    return between.strip()


TITLED = '<div class="admonition {}"><p class="admonition-title">{}</p><p>Mind.</p></div>'
RULES = {
    "headings keep their level and anchor": {
        '<h2 id="two">Two</h2>': "## Two {#two}",
        '<section id="s"><h3>Three<a class="headerlink" href="#s">¶</a></h3></section>': (
            "### Three {#s}"
        ),
        '<h2>Old <code>x_y</code><a name="old"></a></h2>': "## Old `x_y` {#old}",
        '<a name="before"></a><h4>Four</h4>': "#### Four {#before}",
        '<span id="x y"></span><h2>Plain</h2>': "## Plain {#x%20y}",
        '<h2>Node<span><a class="mark" href="#n" id="n">#</a></span></h2>': "## Node {#n}",
        '<h2><a href="/x">Linked</a> <em>title</em></h2>': (
            "## [Linked](https://docs.example/x) title"
        ),
        '<h2 id="x"><a href="#x">Itself</a> <a href="">here</a></h2>': "## Itself here {#x}",
        '<h2 id="x"><a class="toc-backref" href="#toc-1">Kinds</a></h2>': "## Kinds {#x}",
        (
            "<div class='section' id='install'><div class='titlepage'><div><div><h2>Install</h2>"
            "</div></div></div><p>x</p></div><div><a name='tea.Pot'></a><div class='titlepage'>"
            "</div><div class='names'><h2>Pot</h2><p>y</p></div></div>"
        ): "## Install {#install}\n\nx\n\n## Pot {#tea.Pot}\n\ny",
        (
            "<div><div id='results'><div></div></div><div><div><h2>Pot</h2></div><p>y</p></div>"
            "</div>"
        ): "## Pot\n\ny",
        '<h3 id="&lt;init&gt;(int)">Pot</h3><p>Makes one.</p>': (
            "### Pot {#%3Cinit%3E(int)}\n\nMakes one."
        ),
        '<h2><a href="/g">Lib</a><span class="sep"></span>Pot<span></span>s</h2>': (
            "## [Lib](https://docs.example/g) Pots"
        ),
    },
    "terms that are code are signatures": {
        '<dl><dt id="f"><pre>proc <a href="/f">fill</a>(a)</pre></dt><dd>Fills it.</dd></dl>': (
            "## `proc` [`fill`](https://docs.example/f)`(a)` {#f}\n\nFills it."
        )
    },
    "links of headings to themselves go, their text stays": {
        '<h2 id="use"><a class="header-anchor" href="#use"><span>Use</span></a></h2>': (
            "## Use {#use}"
        ),
        '<h2><a class="permalink" href="#use">Use</a></h2>': "## Use {#use}",
        '<h2 id="use">Use <a class="header-anchor" href="#use">Direct link</a></h2>': (
            "## Use {#use}"
        ),
        '<p>It fails with <a class="permalink" href="#E"><i id="E">E</i></a> then.</p>': (
            "It fails with *E* then."
        ),
        '<dl><dt id="b"><a class="permalink" href="#b"><tt>-b</tt></a></dt><dd>A</dd></dl>': (
            "## `-b` {#b}\n\nA"
        ),
    },
    "headings end at any end tag": {
        "<h2>Lists</h1><ul><li><a href='a.html'>A</a></ul><h3>More</h3><p>Of it.</p>": (
            "## Lists\n\n-   [A](https://docs.example/guide/a.html)\n\n### More\n\nOf it."
        ),
        "<p>Stray</h4> words.</p>": "Stray words.",
    },
    "tooltips and links to sources are no part of a heading": {
        (
            '<h4 id="m">fn bytes()<div class="traits-tooltip"><h3>Notable</h3><code>impl Read'
            "</code></div></h4>"
        ): "#### fn bytes() {#m}",
        '<h3 id="boil">boil() <span><a href="kettle.js.html#line7">source</a></span></h3>': (
            "### boil() {#boil}"
        ),
        '<section id="m.len"><span><a href="/src">source</a></span><h4>fn len()</h4></section>': (
            "#### fn len() {#m.len}"
        ),
    },
    "signatures are headings with links": {
        (
            '<section id="api"><h2>API</h2><dl class="py class">'
            '<dt class="sig sig-object py"\n    id="asyncio.Task"><em class="property">'
            '<span class="pre">class</span><span class="w"> </span>\n    </em>'
            '<span class="sig-name">asyncio.Task</span>(<em class="sig-param">coro</em>, <em>*</em>'
            ')<a\n    class="headerlink" href="#asyncio.Task">¶</a></dt><dd><p>A task.</p>\n    '
            '<dl class="py method"><dt class="sig" id="asyncio.Task.done">done()</dt><dd><p>Over?'
            '</p></dd>\n    </dl></dd></dl><dl class="py function">'
            '<dt class="sig" id="asyncio.run">asyncio.run(main)</dt>\n    <dd><pre>run()</pre></dd>'
            "</dl></section>"
        ): (
            "## API {#api}\n\n### `class asyncio.Task(coro, *)` {#asyncio.Task}\n\nA task.\n\n#### "
            "done() {#asyncio.Task.done}\n\nOver?\n\n### asyncio.run(main) {#asyncio.run}\n\n```\n"
            "run()\n```"
        ),
        (
            '<dl class="function"><dt class="sig" id="boil">boil(pot: <a href="pot.html">Pot</a>)'
            '<a class="headerlink" href="#boil">¶</a></dt><dd><p>Boils.</p></dd></dl>'
        ): "## `boil(pot:` [`Pot`](https://docs.example/guide/pot.html)`)` {#boil}\n\nBoils.",
        (
            '<section id="fill"><div>fill(pot: <a href="pot.html">Pot</a>)</div>'
            '<a class="headerlink" href="#fill"></a><p>Fills.</p></section>'
        ): "## `fill(pot:` [`Pot`](https://docs.example/guide/pot.html)`)` {#fill}\n\nFills.",
        '<h3 id="new">fn <a href="#new">new</a>() -&gt; <a href="pot.html">Pot</a></h3>': (
            "### fn new() -> [Pot](https://docs.example/guide/pot.html) {#new}"
        ),
        '<p><code><a href="/a">whole</a></code></p>': "[`whole`](https://docs.example/a)",
    },
    "blocks with names become headings": {
        (
            '<h3>Methods</h3><div id="m-boil" class="method-detail"><div class="method-header">'
            '<div class="method-heading"><span>boil</span><span>(water, minutes = 3)</span></div>'
            '</div><div class="method-description"><p>Boils.</p></div></div>'
        ): "### Methods\n\n#### boil(water, minutes = 3) {#m-boil}\n\nBoils.",
        '<div id="card"><div class="card-heading">Tea</div></div><p>Text.</p>': "Tea\n\nText.",
        (
            '<h2>Pots</h2><div class="top"><p class="src"><a id="v:boil" class="def">boil</a> :: '
            '<a href="pot.html">Pot</a> -&gt; Tea</p><div class="doc"><p>Boils.</p></div></div>'
        ): (
            "## Pots\n\n### `boil ::` [`Pot`](https://docs.example/guide/pot.html) `-> Tea` "
            "{#v:boil}\n\nBoils."
        ),
        (
            '<h2>Kettle</h2><div><a name="kettle.boil"> </a><div class="name"><i>def</i> '
            'boil(cups=[])<a class="headerLink" href="#boil">¶</a></div><div class="body"><p>Boils.'
            "</p></div></div><h3>More</h3>"
        ): "## Kettle\n\n### `def boil(cups=[])` {#boil}\n\nBoils.\n\n### More",
        (
            '<div><div class="code-caption">kettle.py<a class="headerLink" href="#boil">¶</a></div>'
            '<div class="body"><p>Boils.</p></div></div>'
        ): "kettle.py\n\nBoils.",
        (
            '<div><p>First.</p><div class="name"><i>def</i> boil(cups=[])'
            '<a class="headerLink" href="#boil">¶</a></div><div class="body"><p>Boils.</p></div>'
            "</div>"
        ): "First.\n\n*def* boil(cups=[])\n\nBoils.",
    },
    "blocks in a summary stay blocks": {
        "<details><summary><p>What it is.</p><pre>f()</pre></summary><p>More.</p></details>": (
            "What it is.\n\n```\nf()\n```\n\nMore."
        ),
        "<details><summary>Title</summary><p>More.</p></details>": "**Title**\n\nMore.",
    },
    "code keeps every byte and its language": {
        (
            '<pre><code class="language-python"><span class="k">def</span> f(x):\n\n    if x &lt; '
            "3 and x &gt; 1:\n        return \"&amp;amp;\"   \n\treturn '``` ```` '\n</code></pre>"
        ): (
            '`````python\ndef f(x):\n\n    if x < 3 and x > 1:\n        return "&amp;"   \n\t'
            "return '``` ```` '\n`````"
        ),
        (
            '<div class="highlight-python3 notranslate"><div class="highlight"><pre><span></span>x '
            "= 1\n</pre></div></div>"
        ): "```python\nx = 1\n```",
        "<pre>\n\n  two\n\n</pre>": "```\n\n  two\n\n```",
        '<div class="language-rust highlight"><pre><code>fn x() {}</code></pre></div>': (
            "```rust\nfn x() {}\n```"
        ),
        (
            '<pre class="language-js"><div class="token-line"><span>line 1</span><br></div>'
            '<div class="token-line"><span>line 2</span><br></div></pre>'
        ): "```js\nline 1\nline 2\n```",
        "<pre>a<div>b</div>\nc<div>d</div>e</pre>": "```\nab\ncd\ne\n```",
        '<div class="language-js"><span class="lang">js</span><pre><code>x()</code></pre></div>': (
            "```js\nx()\n```"
        ),
        (
            '<div class="language-js"><span class="lang">Then</span><pre><code>x()</code></pre>'
            "</div>"
        ): "Then\n\n```js\nx()\n```",
    },
    "code may be written in elements for lines": {
        (
            '<div class="fragment"><div class="line"><a id="l1"></a><span class="lineno"> 1</span>'
            '&#160;int main() {</div><div class="line"><a id="l2"></a><span class="lineno"> 2'
            '</span>&#160;    return 0;</div><div class="line"><a id="l3"></a><span class="lineno">'
            ' 3</span>&#160;</div><div class="line"><a id="l4"></a><span class="lineno"> 4</span>'
            "&#160;}</div></div>"
        ): "```\nint main() {\n    return 0;\n\n}\n```",
        (
            '<div class="code-editor language-cpp"><div class="view-line"><span>int main() {</span>'
            '</div><div class="view-line"><span>    return 0;</span></div><div class="view-line">'
            '<span></span></div><div class="view-line"><span>}</span></div></div>'
        ): "```cpp\nint main() {\n    return 0;\n\n}\n```",
        (
            '<pre><code><div class="row"><div class="code"><i>a</i> = 1</div></div>'
            '<div class="row"><div class="code">\n</div></div><div class="row"><div class="code">\n'
            '</div></div><div class="row"><div class="code">b = 2</div></div></code></pre>'
        ): "```\na = 1\n\n\nb = 2\n```",
        '<div class="line-block"><div class="line">One</div><div class="line">Two</div></div>': (
            "One\n\nTwo"
        ),
        (
            '<div class="highlights"><div class="line-block"><div class="line">One</div>'
            '<div class="line">Two</div></div></div>'
        ): "One\n\nTwo",
        "<p><code>make<br>make install</code></p>": "```\nmake\nmake install\n```",
        "<p><code>\n  if <i>x</i>:<br />\n  &nbsp; y\n</code></p>": "```\nif x:\n\xa0 y\n```",
        "<p>Say <code>a<br>b</code></p>": "Say\n\n```\na\nb\n```",
        (
            "<table><tr><td><code>static &lt;T&gt;<br>T</code></td><td>x</td></tr><tr><td><code>"
            "static &lt;T&gt;<br><a href='/p'>Pot</a><br>[]</code></td><td>y</td></tr></table>"
        ): (
            "|  |  |\n| --- | --- |\n| `static <T> T` | x |\n"
            "| `static <T>` [`Pot`](https://docs.example/p) `[]` | y |"
        ),
        (
            "<code><button>-</button>{<ul><li><div><b>'id'</b>: <i>0</i>,</div></li><li><div>'of': "
            "{<ul><li>'a': 1</li></ul>}</div></li></ul>}</code>"
        ): "```\n{\n  'id': 0,\n  'of': {\n    'a': 1\n  }\n}\n```",
        "<code><ul><li><a href='/a'>a</a></li></ul></code>": "-   [a](https://docs.example/a)",
    },
    "line numbers and buttons are no code": {
        "<p>ann<span class='obfuscator'>.nosp@m.</span>@docs.example</p>": "ann@docs.example",
        (
            '<table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre>1\n2'
            '</pre></div></td><td class="code"><div class="highlight"><pre>a = 1\nb = 2\n</pre>'
            "</div></td></tr></table>"
        ): "```\na = 1\nb = 2\n```",
        '<pre><span class="linenos">1</span>a<button class="copybtn">Copy</button></pre>': (
            "```\na\n```"
        ),
        (
            '<table class="source"><tr><td>7</td><td class="code">int main() {</td></tr><tr><td>8'
            '</td><td class="code">    return 0;</td></tr><tr><td>9</td><td class="code"></td></tr>'
            '<tr><td>10</td><td class="code">}</td></tr></table>'
        ): "```\nint main() {\n    return 0;\n\n}\n```",
        "<table><tr><td></td><td>See <code>LICENSE</code>.</td></tr></table>": "See `LICENSE`.",
        "<table><tr><td>1</td><td>Event 1</td></tr><tr><td>2</td><td>Event 2</td></tr></table>": (
            "|  |  |\n| --- | --- |\n| 1 | Event 1 |\n| 2 | Event 2 |"
        ),
        '<div class="code"><pre class="lineno">1\n2</pre><pre>x = 1\ny</pre></div>': (
            "```\nx = 1\ny\n```"
        ),
    },
    "tooltips and menus are no code": {
        '<pre><code><span class="code-tooltip">This runs</span>run()</code></pre>': (
            "```\nrun()\n```"
        ),
        (
            '<div class="highlight"><pre><span class="code-tooltip">This runs</span>run()</pre>'
            "</div>"
        ): "```\nrun()\n```",
        (
            '<pre class="text">Use "<span class="dropdown"><a class="dropdown-toggle" href="#">'
            'crl-file<span class="caret"></span></a><ul class="dropdown-menu">'
            '<li class="dropdown-header">See also:</li><li><a href="#crl">Bind options</a></li>'
            '</ul></span>" here.\nOr not.</pre>'
        ): '```\nUse "crl-file" here.\nOr not.\n```',
        (
            '<p>Use <span class="dropdown"><a class="dropdown-toggle" href="#">crl-file'
            '<span class="caret"></span></a><ul class="dropdown-menu"><li class="dropdown-header">'
            'See also:</li><li><a href="#crl">Bind options</a></li></ul></span> here.</p>'
        ): "Use crl-file here.",
    },
    "lists keep their nesting": {
        (
            "<ol start=3><li><p>one</p><pre>x\n\n  y</pre></li><li>two<ul><li>a</li><li>b <b>c</b>"
            "</li></ul></li></ol>"
        ): "3.  one\n\n    ```\n    x\n\n      y\n    ```\n\n4.  two\n    -   a\n    -   b **c**",
        "<ul><li><pre>x</pre></li></ul>": "-   \xa0\n\n    ```\n    x\n    ```",
        (
            '<ul><li><input type="checkbox" checked> done</li><li><input type="checkbox"> not</li>'
            "</ul>"
        ): "-   [x] done\n-   [ ] not",
        (
            "<table><tr><td><ul><li>a</li><li>b</li></ul></td><td><ul><li>c</li></ul></td></tr>"
            "</table>"
        ): "-   a\n-   b\n\n-   c",
        (
            '<ul class="blockList"><li><h3>Methods</h3><ul><li><h4 id="boil">boil</h4><p>Boils.</p>'
            "<ul><li>It</li></ul></li></ul></li></ul>"
        ): "### Methods\n\n#### boil {#boil}\n\nBoils.\n\n-   It",
        '<ul><li><a id="m(int)"></a><ul><li><h4>m</h4><p>Boils.</p></li></ul></li></ul>': (
            "#### m {#m(int)}\n\nBoils."
        ),
        "<ul><li><hr><p>Boils.</p></li></ul>": "---\n\nBoils.",
        "<ol><li><h3>Fill</h3><p>With water.</p></li></ol>": (
            "1.  \xa0\n\n    ### Fill\n\n    With water."
        ),
    },
    "terms keep their definitions": {
        '<h2>G</h2><dl><dt id="term-x">Term</dt><dd><p>Means.</p></dd></dl>': (
            "## G\n\n### Term {#term-x}\n\nMeans."
        ),
        (
            "<dl><dt><code>-v</code></dt><dd>Says more.<pre>x -v</pre></dd><dt>b</dt><dd>c</dd>"
            "</dl>"
        ): "-   `-v`: Says more.\n\n    ```\n    x -v\n    ```\n\n-   **b**: c",
        (
            "<dl><dt id='c'>-c</dt><dt>--count</dt><dd>Count.</dd><dt id='m'>-m</dt><dt>--max</dt>"
            "<dd>Stop.</dd></dl>"
        ): "## -c {#c}\n\n## --count\n\nCount.\n\n## -m {#m}\n\n## --max\n\nStop.",
        "<div><h3>E</h3><dt><a name='e'></a>east</dt><dd>Left.</dd><p>End.</p></div>": (
            "### E\n\n#### east {#e}\n\nLeft.\n\nEnd."
        ),
        "<dl><dt>width<span class='classifier'>length</span></dt><dd>How wide.</dd></dl>": (
            "-   **width : length**: How wide."
        ),
        "<dl><dt>Parameters:</dt><dd>a</dd><dd>b</dd><dt>Since:</dt><dd>1.0</dd></dl>": (
            "-   **Parameters**: a\n\n    b\n\n-   **Since**: 1.0"
        ),
        (
            "<dl><dt><a id='A' name='A'>alias</a></dt><dd>One</dd><dt>auth</dt><dd>Two</dd><dt>asis"
            "</dt><dd>Three</dd><dt><a id='B' name='B'>buffer</a></dt><dd>Four</dd><dt>brotli</dt>"
            "<dd>Five</dd></dl>"
        ): (
            "-   **alias**: One {#A}\n\n-   **auth**: Two\n\n-   **asis**: Three\n\n-   "
            "**buffer**: Four {#B}\n\n-   **brotli**: Five"
        ),
        (
            "<dl><dt>one</dt><dd>1</dd><dt>two</dt><dd>2</dd><dt id='a'>a</dt><dt id='b'>b</dt><dd>"
            "is {x}</dd><dt id='c'>c</dt><dd><pre>3</pre></dd><dt>d</dt><dd>4</dd><dt>e</dt><dd>5"
            "</dd></dl>"
        ): (
            "-   **one**: 1\n\n-   **two**: 2\n\n-   **a** {#a}\n\n-   **b** {#b}\n\n    is {x}\n\n"
            "-   **c** {#c}\n\n    ```\n    3\n    ```\n\n-   **d**: 4\n\n-   **e**: 5"
        ),
        '<dl><dt><a href="/rfc">RFC 1</a> (<em>old</em>)</dt><dd>A rule.</dd></dl>': (
            "-   **[RFC 1](https://docs.example/rfc) (old)**: A rule."
        ),
    },
    "admonitions keep their kind and title": {
        TITLED.format("note", "Note"): "> **Note**\n>\n> Mind.",
        (
            "<div class='note'><div class='admonition_header'><p><strong>Restart</strong></p></div>"
            "<div class='admonition'><div>It has to be restarted.</div></div></div>"
        ): "> **Restart**\n>\n> It has to be restarted.",
        TITLED.format("warning", "Mind the gap"): "> **Warning: Mind the gap**\n>\n> Mind.",
        TITLED.format("warning", "Achtung"): "> **Achtung**\n>\n> Mind.",
        TITLED.format("note", "Own title"): "> **Own title**\n>\n> Mind.",
        TITLED.format("danger", "Danger of death"): "> **Danger of death**\n>\n> Mind.",
        '<div class="tip custom-block"><p class="custom-block-title">Do so</p><p>x</p></div>': (
            "> **Tip: Do so**\n>\n> x"
        ),
        '<div class="note"><p><strong>Never</strong> mix the two.</p></div>': (
            "**Never** mix the two."
        ),
        '<div class="note"><h3>Note</h3><p>Mind the gap.</p></div>': (
            "> ### Note\n>\n> Mind the gap."
        ),
        '<div class="note"><p><strong>Note:</strong></p><p>Mind the gap.</p></div>': (
            "> **Note:**\n>\n> Mind the gap."
        ),
        '<dl class="note"><dt>Note</dt><dd>Mind the gap.</dd></dl>': (
            "> **Note**\n>\n> Mind the gap."
        ),
        '<aside class="note"><b>Note</b><p>Mind the gap.</p></aside>': (
            "> **Note**\n>\n> Mind the gap."
        ),
    },
    "tables keep every cell": {
        (
            "<table><caption>Sizes</caption><thead><tr><th>a|b</th><th colspan=2>c</th></tr>"
            "</thead><tbody><tr><td rowspan=2><code>x|y</code></td><td>1<br>2</td><td><ul><li>p"
            "</li><li>q</li></ul></td></tr><tr><td></td><td>&lt;b&gt;</td></tr></tbody></table>"
        ): (
            "**Sizes**\n\n| a\\|b | c |  |\n| --- | --- | --- |\n| `x\\|y` | 1 2 | • p • q |\n|  "
            "|  | &lt;b> |"
        ),
        "<table><tr><td><h2>In</h2><pre>a\nb</pre></td></tr></table>": "## In\n\n```\na\nb\n```",
        (
            "<table><tr><th>a</th><th>b</th><th>c</th></tr><tr><td>yes<br>"
            '<img src="check.png" alt="yes"></td><td><img src="no.png" alt="no"></td><td>see '
            '<img src="chart.png" alt="chart"></td></tr></table>'
        ): (
            "| a | b | c |\n| --- | --- | --- |\n| yes | ![no](https://docs.example/guide/no.png) "
            "| see ![chart](https://docs.example/guide/chart.png) |"
        ),
        (
            '<table><tr><th colspan="2">Size</th><th>Use</th></tr><tr><td rowspan="2">big</td><td>1'
            "</td><td>a</td></tr><tr><td>2</td><td>b</td></tr></table>"
        ): "| Size |  | Use |\n| --- | --- | --- |\n| big | 1 | a |\n|  | 2 | b |",
        (
            '<table><tr><th>Size</th><th>Use</th></tr><tr><td rowspan="0">big</td><td>a</td></tr>'
            "<tr><td>b</td></tr><tr><td>c</td></tr></table>"
        ): "| Size | Use |\n| --- | --- |\n| big | a |\n|  | b |\n|  | c |",
        (
            '<table><tr class="heading"><td colspan="2"><h2 id="kinds">Kinds</h2></td></tr><tr><td>'
            'int</td><td>speed</td></tr><tr><td>int</td><td>speed</td></tr><tr><td colspan="2"><h2>'
            "Functions</h2></td></tr><tr><td>int</td><td>speed</td></tr></table>"
        ): (
            "## Kinds {#kinds}\n\n|  |  |\n| --- | --- |\n| int | speed |\n| int | speed |\n\n## "
            "Functions\n\n|  |  |\n| --- | --- |\n| int | speed |"
        ),
        (
            '<table><tr><td><a href="/">Up</a></td><td><h2 id="a">A</h2><p>Text.</p></td></tr>'
            "</table>"
        ): "[Up](https://docs.example/)\n\n## A {#a}\n\nText.",
        (
            '<table><caption>Uses of <a href="/p">p</a></caption><tr><td>a</td><td>b</td></tr>'
            "</table>"
        ): "**Uses of [p](https://docs.example/p)**\n\n|  |  |\n| --- | --- |\n| a | b |",
        (
            '<table><tr><td><span title="toggle()">+</span>Pots</td><td>All</td></tr>'
            '<tr style="display:none;"><td>Kettle</td><td>Boils</td></tr></table>'
        ): "|  |  |\n| --- | --- |\n| +Pots | All |",
    },
    "terms in cells stay in the table": {
        "<table><thead><tr><th>Request</th><th>shape</th></tr></thead><tr><td><dl class='c macro'>"
        "<dt id='c.N'><span>NDIM</span></dt><dd></dd></dl></td><td><p>yes</p></td></tr></table>": (
            "| Request | shape |\n| --- | --- |\n| `NDIM` | yes |"
        )
    },
    "cells that hold blocks end the table": {
        (
            "<table><tr><th>Option</th><th>Meaning</th></tr><tr><td>-a</td><td>All.</td></tr><tr>"
            "<td>-b</td><td>Some: <pre>x\n  y</pre></td></tr><tr><td>-c</td><td>None.</td></tr><tr>"
            "<td>-d</td><td>Any.</td></tr></table>"
        ): (
            "| Option | Meaning |\n| --- | --- |\n| -a | All. |\n| -b | Some: |\n\n```\nx\n  y\n"
            "```\n\n|  |  |\n| --- | --- |\n| -c | None. |\n| -d | Any. |"
        ),
        (
            "<table><tr><th>a</th><th>b</th></tr><tr><td>time</td><td><ul><li>Write: <pre>x\ny"
            "</pre></li></ul></td></tr></table>"
        ): "| a | b |\n| --- | --- |\n| time |  |\n\n-   Write:\n\n    ```\n    x\n    y\n    ```",
        (
            "<table><tr><th>a</th><th>Raises</th></tr><tr><td>b</td><td><ul><li><dl><dt>hot</dt>"
            "<dd>if it boils</dd></dl></li><li>cold</li></ul></td></tr></table>"
        ): "| a | Raises |\n| --- | --- |\n| b | • **hot**: if it boils • cold |",
    },
    "only header cells and bold rows name columns": {
        "<table><tr><th>x</th><th>y</th></tr><tr><td>a</td><td>b</td></tr></table>": (
            "| x | y |\n| --- | --- |\n| a | b |"
        ),
        (
            "<table><tr><td><b>x</b></td><td><strong>y</strong></td></tr><tr><td>a</td><td>b</td>"
            "</tr></table>"
        ): "| **x** | **y** |\n| --- | --- |\n| a | b |",
        (
            "<table><thead><tr><td>x</td><td>y</td></tr></thead><tr><td>a</td><td>b</td></tr>"
            "</table>"
        ): "| x | y |\n| --- | --- |\n| a | b |",
        "<table><tr><th>Size</th><td>b</td></tr><tr><th>Color</th><td>c</td></tr></table>": (
            "|  |  |\n| --- | --- |\n| Size | b |\n| Color | c |"
        ),
        (
            "<table><tr><th>x</th><th>y</th></tr><tr><td colspan=2><hr></td></tr><tr><td>a</td><td>"
            "b</td></tr></table>"
        ): "| x | y |\n| --- | --- |\n| a | b |",
    },
    "tables of one column are lists unless they have a head": {
        "<table><tr><td>It may be null.</td></tr><tr><td>It is yours.</td></tr></table>": (
            "It may be null.\n\nIt is yours."
        ),
        (
            "<table><tr><th>Notes</th></tr><tr><td>It may be null.</td></tr><tr><td>It is yours."
            "</td></tr></table>"
        ): "| Notes |\n| --- |\n| It may be null. |\n| It is yours. |",
        "<table><tr><td>&nbsp;</td><td><pre>a | b</pre></td></tr></table>": "```\na | b\n```",
        (
            "<table><tr><td colspan=2>Raises</td></tr><tr><td colspan=2><ul><li>It</li></ul></td>"
            "</tr></table>"
        ): "Raises\n\n-   It",
        "<table><tr><th>a</th><td></td></tr></table>": "| a |  |\n| --- | --- |",
        "<table><tr><td>a</td><td></td></tr><tr><td>b</td><td>c</td></tr></table>": (
            "|  |  |\n| --- | --- |\n| a |  |\n| b | c |"
        ),
        "<table><tr><td>a</td><td><img src='/p.png' alt=''></td></tr></table>": (
            "|  |  |\n| --- | --- |\n| a |  |"
        ),
    },
    "links and images are absolute and harmless": {
        '<p><a href="../x y(1).html#p">t [1]</a></p>': (
            "[t \\[1\\]](https://docs.example/x%20y%281%29.html#p)"
        ),
        '<p><a href="javascript:alert(1)">bad</a></p>': "bad",
        '<p><a href=" jAvA\nscript:alert(1)">bad</a></p>': "bad",
        '<p><a href="data:text/html,x">bad</a></p>': "bad",
        '<p><img src="i.png" alt="A plot"></p>': "![A plot](https://docs.example/guide/i.png)",
        '<p><img src="data:image/png;base64,AAAA" alt="A plot"></p>': "A plot",
        '<p><a href="/f"><code>f()</code></a></p>': "[`f()`](https://docs.example/f)",
        '<p><a href="/big.png"><img alt="A pot" src="/small.png"></a></p>': (
            "![A pot](https://docs.example/small.png)"
        ),
        '<p><a href="/pots"><img alt="A pot" src="/small.png"></a></p>': (
            "[A pot](https://docs.example/pots)"
        ),
    },
    "text that looks like markup stays text": {
        "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>": "&lt;script>alert(1)&lt;/script>",
        "<p># not a heading</p>": "\\# not a heading",
        "<p>1. not a list<br>- nor this</p>": "1\\. not a list  \n\\- nor this",
        "<p>2*3*4 = 24, a < b, snake_case, _x_</p>": "2\\*3\\*4 = 24, a < b, snake_case, \\_x\\_",
        "<p>[x](javascript:alert(1))</p>": "[x\\](javascript:alert(1))",
        "<p>[x]<b></b>(javascript:alert(1))</p>": "[x\\](javascript:alert(1))",
        "<p>text {: onclick=x }</p>": "text \\{: onclick=x }",
        "<p>&amp;lt;b&amp;gt; &amp; c</p>": "&amp;lt;b&amp;gt; & c",
        '<p>So<a href="#n6"><sup>6</sup></a>.</p>': (
            "So[\\^6](https://docs.example/guide/page.html#n6)."
        ),
        (
            "<p>Run <i class='fa'>\uf17c</i> this \uf17a:</p><label>\uf17c/\uf179</label><pre>x"
            "</pre>"
        ): "Run this :\n\n```\nx\n```",
    },
    "emphasis next to emphasis has no marks": {
        "<p><b>void pour(CUP *</b><i>cup</i><b>);</b></p>": "void pour(CUP \\**cup*);",
        "<p><b>pour</b> <i>cup</i> and <b>sip</b></p>": "**pour** *cup* and **sip**",
        "<p><b>pour</b>, <i>cup</i></p>": "**pour**, *cup*",
    },
    "ruby and formulas become text": {
        "<p><ruby>東京<rt>とうきょう</rt></ruby></p>": "東京(とうきょう)",
        "<p><ruby>東京<rp>(</rp><rt>とうきょう</rt><rp>)</rp></ruby></p>": "東京(とうきょう)",
        (
            "<p><math><mfrac><mi>a</mi><mrow><mi>b</mi><mi>c</mi></mrow></mfrac></math></p>"
        ): r"$\frac{a}{bc}$",
        "<p><math><msubsup><mi>x</mi><mi>i</mi><mi>n</mi></msubsup></math></p>": "${x}_{i}^{n}$",
        "<p><math><mroot><mi>x</mi><mn>3</mn></mroot></math></p>": r"$\sqrt[3]{x}$",
        "<p><math><msqrt><mi>x</mi><mo>%</mo></msqrt></math></p>": r"$\sqrt{x\%}$",
        "<p><math><mi>x</mi><mo>+</mo><mi>y</mi></math></p>": "x+y",
        "<p><math><msup><mi>x</mi><mtext>the <b>end</b> of</mtext></msup></math></p>": (
            r"${x}^{\text{the end of}}$"
        ),
    },
    "radio buttons of a form are no tabs": {
        '<input type="radio" id="a"><label for="a">a</label>'
        '<input type="radio" id="b"><label for="b">b</label>': "ab"
    },
    "blocks keep their anchors": {
        (
            "<p id='first'>It is a pan.</p><ul><li id='one'>One item.</li><li><a name='two'></a>"
            "Two of them.</li><li><p id='three'>Three.</p><p>More.</p></li><li id='deep'><ul><li>"
            "In it.</li></ul></li></ul><dl><dt>--apple</dt><dd><p id='apple'>Stirs.</p></dd></dl>"
            "<table><tr><th>a</th><td><p id='cell'>b</p></td></tr></table><p id='not one'>Bad.</p>"
            "<p>Literal {#nothing}</p>"
        ): (
            "It is a pan. {#first}\n\n-   One item. {#one}\n\n-   Two of them. {#two}\n\n-   "
            "Three. {#three}\n\n    More.\n\n-   -   In it.\n\n*   **--apple**: Stirs. {#apple}\n\n"
            "|  |  |\n| --- | --- |\n| a | b |\n\nBad. {#not%20one}\n\nLiteral \\{#nothing}"
        ),
        (
            '<ul><li><a id="toc-1" href="/pots">Pots</a></li><li><a id="cups">Cups</a> hold tea.'
            "</li></ul>"
        ): "-   [Pots](https://docs.example/pots)\n-   Cups hold tea. {#cups}",
        (
            '<aside class="footnote brackets" id="id5" role="doc-footnote"><span class="label">'
            '<span>[</span><a role="doc-backlink" href="#id1">1</a><span>]</span></span><p>A note.'
            "</p></aside>"
        ): "[[1](https://docs.example/guide/page.html#id1)] A note. {#id5}",
    },
    "links around blocks lead from the first of text": {
        "<a href='/t' id='t'><h2>Green <i>tea</i></h2><p>It is mild.</p></a>": (
            "## [Green tea](https://docs.example/t)\n\nIt is mild."
        ),
        "<a href='/t'><div><p><img alt=''></p><p>Tea</p></div></a><p>Pots</p>": (
            "[Tea](https://docs.example/t)\n\nPots"
        ),
    },
    "menus and controls go, content stays": {
        (
            "<nav><a href=/x>Next</a></nav><div class='toc'><ul><li>On this page</li></ul></div>"
            "<div class='breadcrumbs'>Home » Guide</div><a class='headerlink' href='#x'>¶</a>"
            "<div role='navigation'>Previous</div><div class='contents topic'>Contents</div>"
        ): "",
        (
            "<h1>Tea</h1><div><p>Available Languages: <a href='/en/a.html'>en</a> | "
            "<a href='/fr/a.html' hreflang='fr' rel='alternate'>fr</a> | "
            "<a href='/ja/a.html' hreflang='ja' rel='alternate'>ja</a></p></div><p>Text.</p>"
        ): "# Tea\n\nText.",
        (
            "<h1>Tea</h1><p>There is also a longer <a href='/g'>guide</a> to it, and this in "
            "<a href='/fr/a.html' hreflang='fr' rel='alternate'>fr</a>.</p><p>Text.</p>"
        ): (
            "# Tea\n\nThere is also a longer [guide](https://docs.example/g) to it, and this in "
            "[fr](https://docs.example/fr/a.html).\n\nText."
        ),
        (
            "<h1>Tea</h1><div><h3>Parts</h3><ul class='toc'><li><a href='#a'>A</a></li><li>"
            "<a href='#b'>B</a></li></ul><h3>News</h3><ul><li><a href='/n'>1</a></li></ul></div>"
            "<h2 id='a'>A</h2><p>x</p><h2 id='b'>B</h2><p>y</p>"
        ): (
            "# Tea\n\n### News\n\n-   [1](https://docs.example/n)\n\n## A {#a}\n\nx\n\n## B "
            "{#b}\n\ny"
        ),
        (
            "<h1>Tea</h1><div><h3>Parts</h3><ul class='toc'><li><a href='#a'>A</a></li><li>"
            "<a href='#b'>B</a></li></ul><p>Told below.</p><h3>News</h3><ul><li><a href='/n'>1</a>"
            "</li></ul></div><h2 id='a'>A</h2><p>x</p><h2 id='b'>B</h2><p>y</p>"
        ): (
            "# Tea\n\n### Parts\n\nTold below.\n\n### News\n\n-   [1](https://docs.example/n)\n\n"
            "## A {#a}\n\nx\n\n## B {#b}\n\ny"
        ),
        (
            "<div><ul role='menu'><li>Boil</li></ul><div><a href='/m'>Made by a tool</a></div>"
            "</div><h1>Tea</h1><p>Everything about tea.</p>"
        ): "# Tea\n\nEverything about tea.",
        (
            "<div><ul role='menu'><li>Boil</li></ul><p>Read <a href='/m'>this</a> first.</p></div>"
            "<h1>Tea</h1><p>Everything about tea.</p>"
        ): "Read [this](https://docs.example/m) first.\n\n# Tea\n\nEverything about tea.",
        "<div class='edit-page'><h2>Edit</h2><p>Write it anew.</p></div>": (
            "## Edit\n\nWrite it anew."
        ),
        "<div class='edit-page'><p>Write it anew.</p></div>": "",
    },
}


@pytest.mark.parametrize("rule", RULES)
def test_html_becomes_markdown(rule: str) -> None:
    assert {html: markdown(html) for html in RULES[rule]} == RULES[rule]


def test_formulas_of_mathml_are_rendered() -> None:
    total = "<munderover><mo>∑</mo><mi>i</mi><mo>∞</mo></munderover>"
    html = f"<math>{total}<msup><mi>α</mi><mrow><mo>−</mo><mn>2</mn></mrow></msup></math>"
    text = markdown(f"<p>Is {html}.</p>")
    assert text == r"Is ${\sum }_{i}^{\infty }{\alpha }^{-2}$."
    assert "<msubsup>" in render(text, lambda _: None).html


def test_titles_of_admonitions_have_at_most_eighty_signs() -> None:
    note = '<div class="admonition tip"><dl><dt>{}</dt><dd>Mind.</dd></dl></div>'
    assert markdown(note.format("T" * 80)).startswith("> **TTT")
    assert markdown(note.format("T" * 81)).startswith("> -   **TTT")


def test_lists_of_terms_are_apart_from_lists_next_to_them() -> None:
    page = (
        "<ul><li>a</li></ul><dl><dt>T</dt><dd>x</dd><dt>U</dt><dd>y</dd></dl>"
        "<ul><li>b<dl><dt>In</dt><dd>z</dd></dl></li></ul><dl><dt>V</dt><dd>z</dd></dl>"
    )
    text = markdown(page)
    items = [line[:9] for line in text.split("\n") if line[:1] in {"-", "*"}]
    assert items == ["-   a", "*   **T**", "*   **U**", "-   b", "*   **V**"]
    assert render(text, lambda _: None, document=True).plain.count("<dl>") == 3


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("1.0 · {} · <a href='#' class='toggle'>[-]</a>", "1.0"),
        ("1.0 · {}", "1.0"),
        (" · {}", ""),
        ("1.0 [{}]", "1.0"),
        ("1.0 · 2.0", "1.0 · 2.0"),
    ],
)
def test_separators_of_links_to_sources_go(line: str, kept: str) -> None:
    link = "<a class='srclink' href='/src/a.rs.html'>source</a>"
    page = f"<h1>Tea</h1><div><span>{line.format(link)}</span></div><p>Text.</p>"
    assert markdown(page) == f"# Tea\n\n{kept}\n\nText.".replace("\n\n\n", "\n")


def test_hostile_page_becomes_harmless() -> None:
    hostile = (
        "<script>alert(1)</script><style>x</style><iframe src=//evil></iframe><svg onload=x>s</svg>"
        '<p onclick="x">kept<img src=x onerror=alert(1) alt="&lt;img src=x onerror=1&gt;"></p>'
        "<h2>&lt;img src=x&gt;</h2><form action=//evil><input value=secret><textarea>t</textarea>"
        "<p>in a form</p></form><object data=x>o</object><math><mi>&lt;script&gt;</mi></math>"
        "<div style='display:none'>hidden</div><div hidden>hidden</div><noscript>n</noscript>"
        "<table><tr><td>&lt;script&gt;</td><td>|x|</td></tr><tr><td>a</td></tr></table>"
        "<pre>```\n&lt;script&gt;\n````</pre><code>` &lt;script&gt; ``</code>"
    )
    text = markdown(hostile)
    outside = re.sub(r"(`{3,})[^`].*?\n\1|(`+).*?\2", "", text, flags=re.DOTALL)
    assert not re.search(r"<[A-Za-z/!?]", outside), outside
    assert "kept" in text
    assert "in a form" in text
    for hidden in ("alert(1)", "onload", "onerror=alert", "secret", "hidden", "evil"):
        assert hidden not in text, hidden


def test_links_that_run_code_go() -> None:
    code = 'fn main() { println!("tea {}", 1 + 2); } // boil it'
    run = f"<a href='https://play.example/?code={quote(code)}'>Run</a>"
    about = f"<a href='https://docs.example/{'why%20' * 20}'>Why</a>"
    assert "Run" not in markdown(f"<div><pre>{code}</pre>{run}</div>")
    assert "[Why](" in markdown(f"<div><pre>{code}</pre>{about}</div>")
    assert "[Run](" in markdown(f"<div><pre>other words of code here</pre>{run}</div>")


@pytest.mark.parametrize(
    ("block", "language"),
    [
        ('<pre class="play"><code class="language-rust ed">{}</code></pre>', "rust"),
        ('<pre class="brush: java; toolbar: false">{}</pre>', "java"),
        ('<pre class="example source-c">{}</pre>', "c"),
        ('<div class="src-block"><pre class="src src-python">{}</pre></div>', "python"),
        ('<pre><code data-lang="toml">{}</code></pre>', "toml"),
        ('<pre class="rust rust-example-rendered"><code>{}</code></pre>', "rust"),
        ('<pre class="programlisting sql">{}</pre>', "sql"),
        ('<pre class="screen">{}</pre>', ""),
    ],
)
def test_language_of_code_comes_from_any_class(block: str, language: str) -> None:
    assert markdown(block.format("x = 1")) == f"```{language}\nx = 1\n```"


def test_contents_stay_whole_where_parts_link_each_other() -> None:
    parts = ("One", "Two", "Three")
    steps = "".join(
        f"<div><p>Next: <a href='#{after}' rel='next'>{after}</a>, "
        f"Up: <a href='#Top' rel='up'>Top</a></p></div><h2 id='{part}'>{part}</h2><p>Text.</p>"
        for part, after in zip(parts, (*parts[1:], parts[0]), strict=True)
    )
    one, two, three = (f"<a href='#{part}'>{part}</a>" for part in parts)
    text = markdown(f"<ul><li>{one}<ul><li>{two}</li><li>{three}</li></ul></li></ul>{steps}")
    assert [text.count(f"[{part}](") for part in parts] == [1, 1, 1]
    assert "Next:" not in text


TEXT = "It takes a while until the water boils, and a while longer until the tea is ready. "
ITEMS = "".join(f"<li><a href='#{one}'>{one.upper()}</a></li>" for one in "abc")
PARTS = "".join(f"<h2 id='{one}'>Part {one}</h2><p>{TEXT}</p>" for one in "abc")


@pytest.mark.parametrize("tags", ["ul li", "div p"])
@pytest.mark.parametrize("page", ["", "page.html"])
def test_contents_before_the_first_heading_go(page: str, tags: str) -> None:
    outer, inner = tags.split()
    items = ITEMS.replace("'#", f"'{page}#").replace("<li>", f"<{inner}><b>")
    items = f"<{outer}>{items.replace('</li>', f'</b></{inner}>')}</{outer}>"
    html = f"<title>T</title><body><main>{items}<h1>T</h1>{PROSE}{PARTS}</main></body>"
    assert extract(html, URL, alone=False).content.startswith("# T\n\nSome prose")
    other = html.replace(f"{page}#b", "other.html#e")
    assert "other.html#e" in extract(other, URL, alone=False).content


def test_label_of_contents_before_the_first_heading_goes() -> None:
    label = f"<a id='below'><strong>Subsections</strong></a><ul>{ITEMS}</ul>"
    html = f"<main>{label}<h1>Kettle</h1><p>{TEXT}</p>{PARTS}</main>"
    assert extract(html, URL, alone=False).content.startswith("# Kettle")


@pytest.mark.parametrize(
    "boilerplate",
    [
        "<div class='top'><a href='#head'><img alt='top' src='/up.gif'></a></div>",
        "<div class='up'><a href='/'><img alt='<-' src='/left.gif'></a></div>",
        f"<h2>Table of Contents</h2><div><ul>{ITEMS}</ul></div>",
        "<div class='onlyprint'><h1>Kettle</h1></div>",
        "<p><a href='/'><img alt='Kettle logo' src='/logo.png'></a></p>",
        "<p><a href='javascript:void(0)'>[-]</a></p>",
        "<div class='navigate'><a href='/s'><img alt='Summary'></a></div>",
        f"<div class='nav'><ul>{ITEMS}</ul></div>",
        "<div class='tocset'><table><tr><td>1<td><a href='/b'>Pot</a></table></div>",
        "<p><a class='seesrc' href='/x#L2'>Source</a> <a class='seesrc' href='/e'>Edit</a></p>",
        "<details open><summary><span>Expand description</span></summary></details>",
    ],
)
def test_boilerplate_amid_the_content_goes(boilerplate: str) -> None:
    parts = PARTS.replace("h2", "h3")
    with_it, without = (
        extract(f"<main><h1>Kettle</h1><p>{TEXT}</p>{each}{parts}</main>", URL, alone=False)
        for each in (boilerplate, "")
    )
    assert with_it.content == without.content


def test_headings_of_members_are_below_their_class() -> None:
    member = '<div id="{0}"><div>{0}()</div><a class="headerlink" href="#{0}"></a>{1}</div>'
    doc = "<div><h6>Arguments</h6><p>None.</p></div>"
    methods = "".join(member.format(name, doc) for name in ("Pot.boil", "Pot.pour"))
    classes = member.format("Pot", doc + methods) + member.format("Cup", doc)
    text = markdown(f"<section><h2>Classes</h2>{classes}</section>")
    assert [line for line in text.split("\n") if line.startswith("#") and "(" in line] == [
        "### Pot() {#Pot}",
        "#### Pot.boil() {#Pot.boil}",
        "#### Pot.pour() {#Pot.pour}",
        "### Cup() {#Cup}",
    ]


def test_rules_and_trails_around_the_content_go() -> None:
    html = f"<body><ul><li>Pot</li></ul><hr><h1>Class Pot</h1><hr><p>{TEXT}</p><hr></body>"
    content = extract(html, URL, alone=False).content
    assert content == f"# Class Pot\n\n---\n\n{TEXT.strip()}\n"


def test_code_around_a_whole_page_stays_code() -> None:
    code = "<br>".join(f"<b>val</b> pour_{n} : cup -&gt; tea" for n in range(30))
    content = extract(f"<body><code>sig<br>{code}<br>end</code></body>", URL, alone=False).content
    assert content.startswith("```\nsig\nval pour_0 : cup -> tea\nval pour_1")
