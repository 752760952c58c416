"""Tells what kind of text a document is, by simple rules that can be read here.

The first rule that fits decides:

1. A path segment or a file name that names a type (``/tutorial/``, ``faq.html``, ``/api/``).
2. A word in the title that names a type (``Frequently asked questions``, ``API reference``).
3. The content: many questions as headings are a FAQ; many HTTP methods with paths an API
   specification; many signatures as headings a reference; "shall" and "must" in every other
   paragraph a policy; numbered steps or many commands under "you" a tutorial; much prose
   under headings a manual.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from kbkit.models import DocumentType

_PATHS: tuple[tuple[DocumentType, frozenset[str]], ...] = (
    (
        DocumentType.FAQ,
        frozenset({"faq", "faqs", "q-and-a", "qna", "questions"}),
    ),
    (
        DocumentType.TUTORIAL,
        frozenset(
            str.split("""
        tutorial tutorials quickstart quick-start getting-started getting_started
        gettingstarted howto how-to howtos how-tos cookbook recipes examples learn
        lessons walkthrough first-steps intro introduction codelab codelabs patterns
        """)
        ),
    ),
    (
        DocumentType.API_SPEC,
        frozenset({"openapi", "swagger", "rest-api", "rest", "endpoints", "graphql"}),
    ),
    (
        DocumentType.POLICY,
        frozenset(
            str.split("""
        policy policies legal terms privacy license licenses copyright security-policy
        code-of-conduct code_of_conduct compliance guidelines governance sla
        """)
        ),
    ),
    (
        DocumentType.REFERENCE,
        frozenset(
            str.split("""
        reference ref references api apidoc apidocs apidocs api-reference library
        modules module-index cmdref commands cli man glossary genindex c-api capi c3ref
        syntax lang settings spec specs specification
        """)
        ),
    ),
    (
        DocumentType.MANUAL,
        frozenset(
            str.split("""
        manual guide guides user-guide userguide handbook topics using docs book
        administration admin install installation operations runbook runbooks
        """)
        ),
    ),
)
_TITLES: tuple[tuple[DocumentType, re.Pattern[str]], ...] = (
    (DocumentType.FAQ, re.compile(r"\bFAQs?\b|frequently asked", re.I)),
    (
        DocumentType.TUTORIAL,
        re.compile(r"\btutorial\b|\bhow ?-?to\b|getting started|quick ?-?start|first steps|"
                   r"\bwalkthrough\b|\bcookbook\b", re.I),
    ),
    (DocumentType.API_SPEC, re.compile(r"\b(?:REST|HTTP|Web|GraphQL) API\b|\bOpenAPI\b", re.I)),
    (
        DocumentType.POLICY,
        re.compile(r"\bpolicy\b|\bpolicies\b|terms of (?:use|service)|code of conduct|"
                   r"\blicen[cs]e\b|\bguidelines\b", re.I),
    ),
    (
        DocumentType.REFERENCE,
        re.compile(r"\breference\b|\bAPI\b|\bglossary\b|\bindex\b|\bspecification\b", re.I),
    ),
    (DocumentType.MANUAL, re.compile(r"\bmanual\b|\bguide\b|\bhandbook\b|\brunbook\b", re.I)),
)  # fmt: skip
_HEADINGS = re.compile(r"(?m)^#{2,6} (.+)$")
_ENDPOINT = re.compile(r"(?m)\b(?:GET|POST|PUT|PATCH|DELETE) /[\w{}/.:-]*")
_SIGNATURE = re.compile(r"^`?(?:class |async |static )?[\w.:]+\(|\{#[\w.]+\.[\w.]+\}$")
_STEP = re.compile(r"(?m)^(?:\d+\.\s|#{2,6} (?:step|part) \d)", re.I)
_DUTY = re.compile(r"\b(?:must|shall|may not|should) (?:not )?(?:be|have|use|provide|include)\b")
_READ = 50_000


def detect(uri: str, title: str, content: str) -> DocumentType:
    """Tell what kind of text a document is.

    Args:
        uri: Address or path of the document.
        title: Its title.
        content: Its Markdown.

    Returns:
        The type by the first rule that fits, ``OTHER`` when none does.
    """
    path = unquote(urlsplit(uri).path if "://" in uri else uri).lower()
    segments = [segment for segment in re.split(r"[/\\]", path) if segment]
    if segments:
        segments[-1] = re.sub(r"\.[a-z]{1,8}$", "", segments[-1])
    for segment in reversed(segments):
        for kind, names in _PATHS:
            if segment in names and not (kind is DocumentType.MANUAL and segment == "docs"):
                return kind
    for kind, pattern in _TITLES:
        if pattern.search(title):
            return kind
    return _by_content(content[:_READ])


def _by_content(text: str) -> DocumentType:
    headings = _HEADINGS.findall(text)
    if len(headings) >= 4:
        questions = sum(bool(re.search(r"\?\s*(?:\{#[^}]*\})?$", head)) for head in headings)
        if questions >= len(headings) / 2:
            return DocumentType.FAQ
        signatures = sum(bool(_SIGNATURE.search(heading)) for heading in headings)
        if signatures >= len(headings) / 2:
            return DocumentType.REFERENCE
    if len(_ENDPOINT.findall(text)) >= 5:
        return DocumentType.API_SPEC
    paragraphs = max(1, text.count("\n\n"))
    if paragraphs >= 6 and len(_DUTY.findall(text)) >= paragraphs / 2:
        return DocumentType.POLICY
    if len(_STEP.findall(text)) >= 4 and "```" in text:
        return DocumentType.TUTORIAL
    if len(headings) >= 3 and len(text) >= 3000:
        return DocumentType.MANUAL
    return DocumentType.OTHER
