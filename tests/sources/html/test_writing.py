"""What stands in a line is read from its Markdown as it was written in HTML."""

import html
import random

import pytest
from lxml import etree
from markdown_it import MarkdownIt

from kbkit.sources.html import writer
from kbkit.sources.html.extract import markdown_of

READER = MarkdownIt("commonmark").enable("table").enable("strikethrough")
SIGNS = [
    *("*", "**", "_", "__", "`", "``", *"[]()|<>&#", "~", "~~", *"\\{}ab", "word", *'1.-+:="'),
    *("&amp;", "<b>", "x_y", "a*b", "[x](y)", "![a](b)", "*[", *"é   "),
]
TAGS = ("b", "strong", "em", "i", "code", "a", "", "", "")
BLOCKS = {
    "paragraph": "<p>{}</p>",
    "item": "<ul><li>{}</li></ul>",
    "heading": "<h2>{}</h2>",
    "cell": "<table><tr><th>h</th><th>k</th></tr><tr><td>{}</td><td></td></tr></table>",
    "definition": "<dl><dt>h</dt><dd>{}</dd></dl>",
    "quotation": "<blockquote><p>{}</p></blockquote>",
}


def text_of(markup: str) -> str:
    """The text of some HTML without white space."""
    root = etree.fromstring(f"<body>{markup}</body>", etree.HTMLParser())
    return "".join("".join(root.itertext()).split())


def line(chance: random.Random, depth: int = 0) -> str:
    """Some HTML of a line."""
    pieces = []
    for _ in range(chance.randint(1, 4)):
        signs = "".join(chance.choice(SIGNS) for _ in range(chance.randint(1, 5)))
        tag = chance.choice(TAGS) if depth < 2 else ""
        inner = html.escape(signs, quote=False)
        if tag in ("b", "strong", "em", "i") and chance.random() < 0.3:
            inner = line(chance, depth + 1)
        if tag == "code" or (tag == "a" and pieces and pieces[-1].endswith("code>")):
            pieces.append(" ")
        where = ' href="https://x.example/p"' * (tag == "a")
        pieces.append(f"<{tag}{where}>{inner}</{tag}>" if tag else inner)
    return "".join(pieces)


@pytest.mark.parametrize("name", BLOCKS)
def test_random_lines_are_read_back_from_their_markdown(name: str) -> None:
    chance = random.Random(14)
    for _ in range(400):
        markup = BLOCKS[name].format(line(chance))
        markdown = markdown_of(markup)
        expected, read = text_of(markup), text_of(READER.render(markdown))
        if name == "definition":
            expected, read = expected.removeprefix("h"), read.removeprefix("h").removeprefix(":")
        assert read == expected, f"{markup}\n{markdown}"


@pytest.mark.parametrize(
    ("markup", "markdown"),
    [
        ("<b>2 * 3</b>", "**2 * 3**"),
        ("<b>*</b>", "**\\***"),
        ("<b>* all</b>", "**\\* all**"),
        ("<i>n *</i>", "*n \\**"),
        ("<b>a*b</b> and <i>_x_</i>", "**a\\*b** and *\\_x\\_*"),
        ("a<b>(b)</b>c", "a(b)c"),  # no reader finds marks between a letter and a bracket
        ("<b>a</b><i>b</i>", "**a**b"),
        ("<b><i>a</i></b>", "***a***"),
        ("<b>a <i>b</i></b>", "**a b**"),
        ("<code>a</code><code>b</code>", "`ab`"),
        (
            '<code><a href="https://x.example/">a</a>.</code><code>b</code>',
            "[`a`](https://x.example/)`.b`",
        ),
        ('See!<a href="https://x.example/">x</a>', "See\\![x](https://x.example/)"),
        ("<code>a ``` b</code> c", "```` a ``` b ```` c"),
        (r'<a href="https://x.example/">a \[b]</a>', r"[a \\\[b\]](https://x.example/)"),
    ],
)
def test_emphasis_is_written_as_readers_parse_it(markup: str, markdown: str) -> None:
    assert markdown_of(f"<p>{markup}</p>") == markdown


def test_signs_in_cells_and_terms_are_escaped() -> None:
    row = "<tr><td>{}</td><td>{}</td></tr>"
    table = "<table>" + row.format("\\\\|x", "<code>a ``` | b</code>") + "</table>"
    assert markdown_of(table).endswith("| \\\\\\\\\\|x | ```` a ``` \\| b ```` |")
    assert markdown_of("<dl><dt>*</dt><dd>All.</dd></dl>") == "-   **\\***: All."


def test_headings_do_not_read_the_whole_text_of_their_parent(monkeypatch):
    read = []
    plain_text = writer.plain_text
    monkeypatch.setattr(
        writer, "plain_text", lambda part: read.append(part.tag) or plain_text(part)
    )
    page = "".join(f"<h2>Tea {n}</h2><p>Steep it for {n} minutes.</p>" for n in range(9))
    assert markdown_of(f"<body><article>{page}</article></body>").count("## Tea") == 9
    assert "article" not in read
