"""What looks like a key or a password in a text. Rules for those that tell themselves apart.

Nothing that is found is repeated: a message names the kind and the line.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_RULES: tuple[tuple[str, str], ...] = (
    ("a private key", r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"),
    ("an access key of AWS", r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    (
        "a secret key of AWS",
        r"(?i:aws_?secret_?(?:access_?)?key)[\"']?\s*[=:]\s*[\"']?[0-9A-Za-z/+]{40}\b",
    ),
    ("a token of GitHub", r"\b(?:gh[opsur]_[0-9A-Za-z]{36,}|github_pat_[0-9A-Za-z_]{22,})"),
    ("a token of GitLab", r"\bglpat-[0-9A-Za-z_-]{20,}"),
    ("a token of Slack", r"\bxox[abeoprs]-[0-9A-Za-z-]{10,}|\bxapp-[0-9]-[0-9A-Za-z-]{10,}"),
    ("a webhook of Slack", r"hooks\.slack\.com/services/T\w{6,}/B\w{6,}/\w{16,}"),
    ("a key of a language model's service", r"\bsk-(?:[a-z]{2,10}[0-9]{0,2}-)?[0-9A-Za-z_-]{20,}"),
    ("a key of Google", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("a key of Stripe", r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,}"),
    ("a token of Hugging Face", r"\bhf_[0-9A-Za-z]{30,}"),
    ("a token of npm", r"\bnpm_[0-9A-Za-z]{36}"),
    ("a token of PyPI", r"\bpypi-[0-9A-Za-z_-]{50,}"),
    ("a signed token", r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    (
        "a password in an address",
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"'<>]{1,100}:(?![<${*%]|x{3,}|pass|secret|\.{3})"
        r"[^\s/@\"'<>]{3,200}@[\w.-]",
    ),
    (
        "a password or a key",
        r"(?i:passw(?:or)?d|secret|token|api_?-?key|access_?key)\w{0,20}[\"']?\s{0,5}[=:]\s{0,5}"
        r"[\"'](?=[^\"'\s]{0,200}[0-9])(?=[^\"'\s]{0,200}[A-Za-z])[^\"'\s<>{}$]{16,200}[\"']",
    ),
)
_ANY = [(kind, re.compile(rule)) for kind, rule in _RULES]


class Credential(NamedTuple):
    """Where something stands that looks like a key or a password.

    Attributes:
        kind: What it looks like.
        line: From 1.
    """

    kind: str
    line: int


def find_credential(data: bytes) -> Credential | None:
    """The first thing in a file that looks like a key or a password; ``None`` without any."""
    text = data.decode("latin-1")  # keys are ASCII, whatever else a file holds
    found = [
        (match.start(), kind) for kind, rule in _ANY if (match := rule.search(text)) is not None
    ]
    if not found:
        return None
    at, kind = min(found)
    return Credential(kind, text.count("\n", 0, at) + 1)
