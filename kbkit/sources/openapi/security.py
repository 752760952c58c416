"""How the calls of an API are authenticated, as its description says."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from kbkit.markdown.writing import code_span, escape
from kbkit.sources.openapi.descriptions import inline_markdown
from kbkit.sources.openapi.references import Node, References


class Security:
    """Writes the security schemes of one description, and what its operations require of them.

    Args:
        root: The description.
        references: Follows its references.
    """

    def __init__(self, root: Node, references: References) -> None:
        self._required = root.get("security")
        self._schemes = root.get("components").get("securitySchemes")
        self._references = references

    def schemes(self) -> list[str]:
        """The ways to authenticate, as lines of a list."""
        lines = []
        for name, part in self._schemes.items():
            scheme = self._references.resolve(part)
            said = inline_markdown(scheme.get("description").value)
            head = f"-   {code_span(name)} ({_how(scheme)})"
            lines.append(head + (f": {said}" if said else ""))
            for flow, inner in scheme.get("flows").items():
                urls = [
                    f"{label} {code_span(inner.text(key))}"
                    for key, label in (
                        ("authorizationUrl", "authorize at"),
                        ("tokenUrl", "tokens at"),
                    )
                    if inner.text(key)
                ]
                lines.append(f"    -   {escape(flow)}: {', '.join(urls)}".rstrip(": "))
                for scope, what in inner.get("scopes").items():
                    text = inline_markdown(what.value)
                    lines.append(f"        -   {code_span(scope)}" + (f": {text}" if text else ""))
        return lines

    def section(self, operation: Node) -> str:
        """What an operation requires, as a section of its page; ``""`` where nothing is said."""
        lines = []
        for requirement in self._requirements(operation):
            parts = []
            for name, scopes in requirement.items():
                scheme = self._scheme(name)
                named = [code_span(str(scope.value)) for scope in scopes.parts()]
                with_scopes = f" with {', '.join(named)}" if named else ""
                how = f" ({_how(scheme)})" if scheme.value else ""
                parts.append(f"{code_span(name)}{how}{with_scopes}")
            lines.append("-   " + (" and ".join(parts) or "none: it may be called without"))
        if not lines:
            return ""
        words = "One of these:\n\n" if len(lines) > 1 else ""
        return f"## Authentication\n\n{words}" + "\n".join(lines)

    def credentials(self, operation: Node) -> Iterator[tuple[str, str]]:
        """Headers and query parameters of the first way that an operation can be called."""
        requirements = (part.items() for part in self._requirements(operation) if part.value)
        for name, _ in next(requirements, []):
            yield _credentials(self._scheme(name))

    def _requirements(self, operation: Node) -> list[Node]:
        own = operation.get("security")
        return (own if own.value is not None else self._required).parts()

    def _scheme(self, name: str) -> Node:
        return self._references.resolve(self._schemes.get(name))


def _how(scheme: Node) -> str:
    kind = scheme.text("type")
    if kind == "apiKey":
        return f"API key in the {escape(scheme.text('in'))} {code_span(scheme.text('name'))}"
    if kind == "http":
        shape = scheme.text("bearerFormat")
        return f"HTTP {escape(scheme.text('scheme'))}" + (f", {escape(shape)}" if shape else "")
    if kind == "oauth2":
        return "OAuth 2"
    if kind == "openIdConnect":
        return f"OpenID Connect, {code_span(scheme.text('openIdConnectUrl'))}"
    return "mutual TLS" if kind == "mutualTLS" else escape(kind) or "unknown"


def _credentials(scheme: Node) -> tuple[str, str]:
    """The header and the query parameter that a scheme wants, either may be empty."""
    kind = scheme.text("type")
    if kind == "apiKey":
        name = scheme.text("name")
        match scheme.text("in"):
            case "query":
                return "", f"{quote(name)}=API_KEY"
            case "cookie":
                return f"Cookie: {name}=API_KEY", ""
            case _:
                return f"{name}: API_KEY", ""
    if kind == "http" and scheme.text("scheme").lower() == "basic":
        return "Authorization: Basic BASE64_OF_USER_AND_PASSWORD", ""
    if kind in ("http", "oauth2", "openIdConnect"):
        return "Authorization: Bearer TOKEN", ""
    return "", ""
