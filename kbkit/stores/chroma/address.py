"""The address and credentials of a Chroma server."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit

from kbkit.errors import ConfigError

_ADVICE = "write http://HOST:PORT or https://HOST, with ?tenant=NAME&database=NAME where needed"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,126}[A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class ChromaAddress:
    """Address of a Chroma server; empty fields mean the server's defaults."""

    url: str
    tenant: str = ""
    database: str = ""
    token: str = field(default="", repr=False)

    @property
    def secure(self) -> bool:
        return self.url.startswith("https:")

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or (443 if self.secure else 80)

    @property
    def place(self) -> str:
        """The address without the token, for `parse`."""
        return self.url + self._query

    @property
    def _query(self) -> str:
        names = {"tenant": self.tenant, "database": self.database}
        query = urlencode({name: value for name, value in names.items() if value})
        return f"?{query}" if query else ""

    @classmethod
    def parse(cls, url: str, token: str = "") -> ChromaAddress:
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
            query = parts.query
            names = dict(
                parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else ()
            )
        except ValueError:
            usable, names = False, {}
        if not url.isascii() or not url.isprintable() or " " in url or not usable:
            raise ConfigError(f"KBKIT_CHROMA_URL is no address of a server; {_ADVICE}")
        if parts.username is not None or parts.password is not None:
            raise ConfigError(
                "KBKIT_CHROMA_URL contains a user or a password; leave them out, and set the "
                "server's token as KBKIT_CHROMA_TOKEN"
            )
        if parts.fragment or not names.keys() <= {"tenant", "database"}:
            raise ConfigError(
                f"KBKIT_CHROMA_URL: nothing but tenant and database may follow it; {_ADVICE}"
            )
        if not all(_NAME.fullmatch(name) for name in names.values()):
            raise ConfigError(
                "KBKIT_CHROMA_URL: a tenant and a database have 3 to 128 letters, digits, "
                "'.', '_' or '-', with a letter or a digit at both ends"
            )
        address = cls(
            f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", **names, token=token
        )
        address._check_token(parts.hostname or "")
        return address

    def _check_token(self, host: str) -> None:
        if not self.token.isascii() or not self.token.isprintable() or " " in self.token:
            raise ConfigError(
                "KBKIT_CHROMA_TOKEN has characters that no token has; copy it as it was shown"
            )
        if self.token and not self.secure and not _is_loopback(host):
            raise ConfigError(
                f"KBKIT_CHROMA_URL: KBKIT_CHROMA_TOKEN would be sent to {host} unencrypted; "
                "write https://, or leave out the token if the server needs none"
            )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
