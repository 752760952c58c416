"""The head of an exported page: policy, style and description."""

from __future__ import annotations

import base64
import hashlib
import html
import re

from kbkit.export.mkdocs.scripts import page_style, scripts

_CHARSET = '<meta charset="utf-8">'
_POLICY = '<meta http-equiv="Content-Security-Policy" content="{}">'
_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
_TITLE = re.compile(r"<h1.*?</h1>", re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_SENTENCES = 160
"""Characters of a description; search engines show no more."""
_TELLING = 30
"""Shorter paragraphs describe nothing."""


def content_security_policy(shell: str) -> str:
    """A Content-Security-Policy that lets a page load what is the site's own.

    Scripts within the page are allowed by their hashes.

    Args:
        shell: The page without what documents say.
    """
    hashes = "".join(
        f" 'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in dict.fromkeys(_INLINE.findall(shell))
    )
    return (
        f"default-src 'self'; script-src 'self'{hashes}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; font-src 'self' data:; object-src 'none'; frame-src 'none'; "
        "base-uri 'none'; form-action 'self'"
    )


def add_head(output: str, content: str = "", style: str = "", assets: str = "") -> str:
    """A page with our style, and a policy: a second wall behind the renderer.

    Args:
        output: The page as the theme made it.
        content: What documents say in it, which is nothing that a policy could allow.
        style: Rules for this kind of page.
        assets: Address of the folder of scripts and styles, from an exported page; without it the
            style stands in the page.
    """
    shell = output.replace(content, "") if content else output
    # The encoding has to stand in the first kilobyte, which the policy fills
    output = output.replace(_CHARSET, "", 1)
    head = f"<head>{_CHARSET}{_POLICY.format(content_security_policy(shell))}"
    output = output.replace("<head>", head, 1)
    if assets:
        ends = f'<link rel="stylesheet" href="{assets}/{scripts()["pages.css"][0]}">'
        ends += f'<script src="{assets}/{scripts()["contents.js"][0]}" defer></script>'
    else:
        style = page_style() + style
    ends = (ends if assets else "") + (f"<style>{style}</style>" if style else "")
    return output.replace("</head>", f"{ends}</head>", 1)


def description(content: str) -> str:
    """The beginning of the first paragraph that says something, for search engines.

    Args:
        content: The HTML of a page; where it has no such paragraph, all it says is taken.

    Returns:
        HTML that may stand in an attribute.
    """
    texts = (_plain(paragraph[1]) for paragraph in _PARAGRAPH.finditer(content))
    text = next((text for text in texts if len(text) >= _TELLING), "")
    text = text or _plain(_TITLE.sub("", content, count=1))
    if len(text) > _SENTENCES:
        text = (text[:_SENTENCES].rpartition(" ")[0] or text[:_SENTENCES]) + " …"
    # Braces would be templates to plugins that render the page
    return html.escape(text).replace("{", "&#123;").replace("}", "&#125;")


def _plain(content: str) -> str:
    return " ".join(html.unescape(_TAG.sub(" ", content)).split())
