"""Convert Markdown of exported pages to safe HTML.

Unlike MkDocs' renderer, it follows CommonMark, shows raw HTML as text, ignores attribute lists
(``{: onclick=... }``), turns images of third parties into links, and cleans the result with nh3.
"""

import html
import re
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, count, pairwise
from typing import Any
from urllib.parse import unquote, urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from pygments import highlight as _pygments
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from kbkit.models.values import plain
from kbkit.text.markdown import extensions, without_text_anchor
from kbkit.text.markdown.structure import RELATIVE, SAFE_SCHEMES, anchors, split_anchor
from kbkit.text.markdown.writing import admonition_style

HIGHLIGHT_LIMIT = 30_000
"""Maximum characters of a highlighted code block: hostile code can make lexers slow."""

_LANGUAGE = re.compile(r"[A-Za-z0-9+#._-]{1,40}")
_CODE_OPEN = '<div class="%shighlight"><pre><span></span><code>'
_CODE = re.compile(
    r'(<div class="(?:language-[^"]+ )?highlight"><pre><span></span><code>)(.*?)'
    r"(</code></pre></div>)",
    re.DOTALL,
)


def code_block(
    _: object, tokens: Sequence[Token], index: int, __: object, env: MutableMapping[str, Any]
) -> str:
    token = tokens[index]
    match = _LANGUAGE.match(token.info.strip())
    prompt = "pycon" if token.content.lstrip().startswith(">>> ") else ""
    language = match[0].lower() if match else prompt
    env["code"].append((language, token.content))
    name = f"language-{language} " if language else ""
    return f"{_CODE_OPEN % name}{html.escape(token.content)}</code></pre></div>\n"


def colour(page: str, blocks: list[tuple[str, str]]) -> str:
    remaining = iter(blocks)

    def coloured(match: re.Match[str]) -> str:
        language, code = next(remaining)
        text = _colour(code, language)
        return match[0] if text is None else f"{match[1]}{text}{match[3]}"

    return _CODE.sub(coloured, page)


# cached because a class and its subclasses have the same examples
@lru_cache(maxsize=1_024)
def _colour(code: str, language: str) -> str | None:
    lexer = _lexer(language) if len(code) <= HIGHLIGHT_LIMIT else None
    return None if lexer is None else _pygments(code, lexer, _FORMATTER)


_FORMATTER = HtmlFormatter[str](nowrap=True)


@lru_cache(maxsize=256)
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False) if language else None
    except ClassNotFound:
        return None


_DAY = '<span class="kb-fetched"></span>'
_NAV = '<nav class="kb-%s" aria-label="%s" data-search-exclude="1">'
_ONWARDS = _NAV % ("onwards", "Related passages and neighbours") + "\n"
_BREADCRUMBS = _NAV % ("breadcrumbs", "Breadcrumbs")
PREVIOUS, NEXT = "Previous: ", "Next: "
"""Starts of the paragraphs that link the previous and next page."""
_STEPS = {PREVIOUS: "prev", NEXT: "next"}


def mark_breadcrumbs(tokens: list[Token]) -> None:
    """Put the paragraph before the title into an element."""
    kinds = [token.type for token in tokens[:4]]
    if kinds == ["paragraph_open", "inline", "paragraph_close", "heading_open"]:
        tokens[0] = Token("html_block", "", 0, content=_BREADCRUMBS)
        tokens[2] = Token("html_block", "", 0, content="</nav>\n")


def mark_meta_line(tokens: list[Token]) -> None:
    title = next((n for n, token in enumerate(tokens) if token.type == "heading_open"), 0)
    for number, token in enumerate(tokens[title:], title):
        if token.type == "paragraph_open":
            token.attrSet("class", "kb-meta")
            token.attrSet("data-search-exclude", "1")
            if (children := tokens[number + 1].children) is not None:
                children.append(Token("html_inline", "", 0, content=_DAY))
            return


def add_date(page: str, day: str) -> str:
    """Add the date of the last fetch to a page; apart from `render`, as each refresh changes it."""
    badge = f' · <span class="kb-badge">fetched {html.escape(day)}</span>' if day else ""
    return page.replace(_DAY, badge, 1)


def mark_onwards(tokens: list[Token]) -> None:
    """Put everything after the last rule into an element, in place of the rule."""
    rules = [n for n, token in enumerate(tokens) if token.type == "hr" and token.level == 0]
    if rules:
        for opening, inline in pairwise(tokens[rules[-1] :]):
            step = _STEPS.get((inline.children or [inline])[0].content)
            if opening.type == "paragraph_open" and step:
                opening.attrSet("class", f"kb-{step}")
                for link in inline.children or []:
                    if link.type == "link_open":
                        link.attrSet("rel", step)
        tokens[rules[-1]] = Token("html_block", "", 0, content=_ONWARDS)
        tokens.append(Token("html_block", "", 0, content="</nav>\n"))


_THEME_ID = re.compile(r"__(?!.*__$)")
_PERMALINK = '<a class="headerlink" href="#%s" title="Permanent link">¶</a>'
_ALLOWED = extensions.allowed("html")
_STYLES = {f"text-align:{side}" for side in ("left", "right", "center")}

_MAX_TITLE_LENGTH = 200
_SIGNATURE = re.compile(r"(?:[a-z]+ ){0,3}[\w.]*\w\(.*\)(?: (?:→|->) .{1,200})?$")
"""A signature in a heading of API documentation."""
_MARK = '<span class="kb-picture-%s"></span>'
_PICTURE = re.compile(_MARK % r"(\d+)")
ResolvePage = Callable[[str], str | None]
"""Resolves a relative link to a Markdown file; ``None`` if unknown."""

Picture = Callable[[str], str | None]
"""Returns the SVG at a relative address; ``None`` if it is not an image of the export."""

TocEntry = dict[str, Any]
"""``level``, ``id``, ``name`` (HTML) and ``children``, for MkDocs."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A page's HTML.

    Attributes:
        plain: HTML with code as plain text, for search.
        html: HTML with highlighted code and formulas as MathML, for readers.
        anchors: Ids of all headings and terms, and those of paragraphs and items.
    """

    plain: str
    html: str
    toc: list[TocEntry]
    anchors: frozenset[str]


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.core.ruler.after("block", "html_as_text", _html_as_text)
    parser.core.ruler.after("block", "heading_anchors", _take_anchors)
    parser.inline.ruler.before("escape", "formula", extensions.formula)
    parser.core.ruler.push("callouts", _callouts)
    parser.add_render_rule("formula", extensions.mark_formula)
    parser.add_render_rule("fence", code_block)
    parser.add_render_rule("code_block", code_block)
    return parser


def render(
    markdown: str,
    resolve: ResolvePage,
    *,
    document: bool = False,
    picture: Picture = lambda _: None,
    image: ResolvePage = lambda _: None,
) -> Rendered:
    parser = _parser()
    env: dict[str, Any] = {"code": []}
    tokens = parser.parse(markdown, env)
    pictures: list[str] = []

    for token in tokens:
        if token.type == "inline":
            token.children = _safe(token.children or [], resolve, image, picture, pictures)
    toc, anchors = _finish_headings(tokens)
    if document:
        extensions.link_notes(tokens, anchors)
        _finish_terms(extensions.make_definition_lists(tokens), anchors)
        mark_meta_line(tokens)
        mark_onwards(tokens)
    mark_breadcrumbs(tokens)
    dirty = parser.renderer.render(tokens, parser.options, env)
    plain_html = nh3.clean(
        dirty,
        **_ALLOWED,
        tag_attribute_values={"th": {"style": _STYLES}, "td": {"style": _STYLES}},
        url_schemes=set(SAFE_SCHEMES),
        link_rel=None,
    )
    html = extensions.with_mathml(colour(plain_html, env["code"]))
    html = _PICTURE.sub(lambda match: pictures[int(match[1])], html)
    return Rendered(plain_html, html, toc, frozenset(anchors))


def _take_anchors(state: StateCore) -> None:
    parent = None
    for token, text in pairwise(state.tokens):
        if token.type == "heading_open":
            text.content, anchor = split_anchor(text.content)
            token.attrSet("id", anchor)
        elif token.type == "paragraph_open":
            text.content, anchor = without_text_anchor(text.content)
            item = parent is not None and parent.type == "list_item_open"
            if anchor:
                (parent if item and parent else token).attrSet("id", anchor)
        parent = token


def _html_as_text(state: StateCore) -> None:
    for number, token in reversed(list(enumerate(state.tokens))):
        if token.type == "html_block":
            inline = Token("inline", "", 0, content="", level=token.level + 1)
            inline.children = [Token("text", "", 0, content=token.content.strip())]
            opening = Token("paragraph_open", "p", 1, block=True, level=token.level)
            closing = Token("paragraph_close", "p", -1, block=True, level=token.level)
            state.tokens[number : number + 1] = [opening, inline, closing]


def _callouts(state: StateCore) -> None:
    for number, (token, paragraph) in enumerate(pairwise(state.tokens)):
        is_callout = token.type == "blockquote_open" and paragraph.type == "paragraph_open"
        if is_callout and (name := _bold(state.tokens[number + 2])):
            token.tag = state.tokens[extensions.end_of(state.tokens, number)].tag = "div"
            token.attrSet("class", f"admonition {admonition_style(name)}")
            paragraph.attrSet("class", "admonition-title")


def _bold(inline: Token) -> str:
    children = [child for child in inline.children or [] if child.nesting or child.content]
    marks = [child.type for child in children if child.type.startswith("strong_")]
    if marks != ["strong_open", "strong_close"] or len(inline.content) > _MAX_TITLE_LENGTH:
        return ""
    is_whole = children[0].type == "strong_open" and children[-1].type == "strong_close"
    return _name(inline) if is_whole else ""


def _safe(
    children: list[Token],
    resolve: ResolvePage,
    image: ResolvePage,
    picture: Picture,
    pictures: list[str],
) -> list[Token]:
    """Remove links that lead neither to pages nor to the web; turn images into links.

    The export's pictures become marks; documents cannot forge these: their HTML becomes text.
    """
    safe: list[Token] = []
    open_links: list[str] = []  # addresses of removed links, "" for others
    for token in children:
        if token.type == "link_open":
            address = str(token.attrGet("href") or "")
            href = _safe_href(address, resolve)
            open_links.append("" if href is not None else address or "#")
            if href is not None:
                safe.append(_link(href, token))
        elif token.type == "link_close":
            address = open_links.pop()
            if not address:
                safe.append(token)
            elif RELATIVE.fullmatch(address):
                code = Token("code_inline", "code", 0, content=plain(unquote(address)), markup="`")
                safe += [Token("text", "", 0, content=" "), code]
        elif token.type == "image":
            address = str(token.attrGet("src") or "")
            href = _safe_href(address, lambda _: None)
            label = Token("text", "", 0, content=token.content or "image")
            if svg := picture(address):
                safe.append(Token("html_inline", "", 0, content=_MARK % len(pictures)))
                pictures.append(svg)
            elif src := image(address):
                token.attrs = {"src": src, "alt": "", "loading": "lazy"}
                safe.append(token)
            elif href is None or "" in open_links:
                safe.append(label)
            else:
                safe += [_link(href, token), label, Token("link_close", "a", -1)]
        else:
            token.type = "text" if token.type == "html_inline" else token.type
            safe.append(token)
    return safe


def _link(href: str, token: Token) -> Token:
    link = Token("link_open", "a", 1, attrs={"href": href})
    if title := token.attrGet("title"):
        link.attrSet("title", str(title))
    if href.startswith(("http://", "https://")):
        link.attrSet("rel", "noopener nofollow")
    return link


def _safe_href(href: str, resolve: ResolvePage) -> str | None:
    try:
        scheme = urlsplit(href).scheme
    except ValueError:
        return None
    if scheme or href.startswith("#"):
        return href if scheme in SAFE_SCHEMES or (not scheme and len(href) > 1) else None
    return resolve(href) if href else None


def _finish_headings(tokens: list[Token]) -> tuple[list[TocEntry], set[str]]:
    toc: list[TocEntry] = []
    stack: list[TocEntry] = []
    used_ids: set[str] = set()
    headings = [(token, text) for token, text in pairwise(tokens) if token.type == "heading_open"]
    texts = [_name(text) for _, text in headings]
    ids = anchors(texts, [str(token.attrGet("id") or "") for token, _ in headings])
    for (token, text), name, proposed in zip(headings, texts, ids, strict=True):
        anchor = _choose_anchor(token, text, proposed, used_ids)
        if _SIGNATURE.match(name):
            token.attrSet("class", "kb-signature")
        level, identity = int(token.tag[1]), html.escape(anchor)
        entry = {"level": level, "id": identity, "name": html.escape(name), "children": []}
        while stack and stack[-1]["level"] >= level:
            stack.pop()
        (stack[-1]["children"] if stack else toc).append(entry)
        stack.append(entry)
    for token in tokens:
        if token.type in {"paragraph_open", "list_item_open"} and (own_id := token.attrGet("id")):
            token.attrSet("id", _unique(str(own_id), used_ids))
    return toc, used_ids


def _finish_terms(terms: Sequence[Token], used_ids: set[str]) -> None:
    texts = terms[1::2]
    proposed = anchors([_name(text) for text in texts], [""] * len(texts))
    for token, text, anchor in zip(terms[::2], texts, proposed, strict=True):
        _choose_anchor(token, text, anchor, used_ids)


def _choose_anchor(token: Token, text: Token, proposed: str, used_ids: set[str]) -> str:
    anchor = _unique(proposed, used_ids)
    token.attrSet("id", anchor)
    assert text.children is not None
    text.children.append(Token("html_inline", "", 0, content=_PERMALINK % html.escape(anchor)))
    return anchor


def _name(heading: Token) -> str:
    parts = (
        child.content if child.type in {"text", "code_inline", "formula"} else " "
        for child in heading.children or []
        if child.nesting == 0
    )
    return " ".join("".join(parts).split())


def _unique(anchor: str, used_ids: set[str]) -> str:
    if _THEME_ID.match(anchor):
        # the theme's scripts read #__config and #__search, which documents must not replace
        anchor = f"anchor-{anchor.lstrip('_')}"
    names = chain([anchor], (f"{anchor}_{number}" for number in count(2)))
    unique = next(name for name in names if name not in used_ids)
    used_ids.add(unique)
    return unique
