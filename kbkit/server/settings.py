"""Settings of a server."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from kbkit.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Address and limits of a server.

    Attributes:
        host: Address to listen on.
        port: Port; 0 for a free one.
        allow_hosts: Further valid ``Host`` names.
        public_url: Public address, if it differs (a proxy's).
        allow_origins: Origins of web pages that may use it; by default only its own.
        max_body: Maximum size of a request, in bytes.
        rate: Average requests per second of one caller; 0 for no limit.
        burst: Requests that a caller may make at once.
        body_seconds: Seconds for a request's body.
        tools: Tool sets of MCP; empty turns MCP off.
        allow_write: Whether MCP has writing tools.
        max_tokens: Maximum tokens of an MCP reply.
        search_processes: Processes for searches and contexts; with 0 the server's own.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    allow_hosts: tuple[str, ...] = ()
    public_url: str = ""
    allow_origins: tuple[str, ...] = ()
    max_body: int = 100_000_000
    rate: float = 1000.0
    burst: int = 2000
    body_seconds: float = 30.0
    tools: tuple[str, ...] = ("core",)
    allow_write: bool = False
    max_tokens: int = 2500
    search_processes: int = 0

    def __post_init__(self) -> None:
        for name, values in (
            ("public_url", (self.public_url,) if self.public_url else ()),
            ("allow_origin", self.allow_origins),
        ):
            for value in values:
                parts = urlsplit(value)
                path = parts.path.rstrip("/") if name == "allow_origin" else ""
                if parts.scheme not in ("http", "https") or not parts.hostname or path:
                    raise ConfigError(f"{name}={value!r}: give one such as https://kb.example")
