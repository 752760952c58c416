"""Which addresses are crawled: canonical URLs, scope and traps, robots.txt (RFC 9309), sitemaps.

courlan, which comes with trafilatura, sorts parameters, keeps fragments and escapes, and refuses
addresses that do not look like articles (``/tag/y/``). Documentation has such pages, and the order
of parameters can matter; hence a normal form by RFC 3986.
"""

import math
import re
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from urllib.parse import quote, urljoin, urlsplit
from xml.sax.saxutils import unescape

from kbkit.paths import admits
from kbkit.sources import Outcome
from kbkit.sources.html import resolve_link
from kbkit.sources.web import Fetcher, Response, pause, refusal_of
from kbkit.text.markdown.writing import resolve

_PORTS = {"http": 80, "https": 443}
_UNRESERVED = re.compile(r"%([0-9A-Fa-f]{2})")
_SAFE = "!$&'()*+,;=:@/?%[]"
# parameters of sessions and campaigns, which never name a page
_NOISE = re.compile(
    r"^(utm_\w+|gclid|fbclid|msclkid|mc_[ce]id|phpsessid|jsessionid|aspsessionid\w*|sid|"
    r"session_?id|zenid|oscsid|_ga|ref_src|replytocom)$",
    re.IGNORECASE,
)
_PATH_SESSION = re.compile(r";jsessionid=[^/?#]*", re.IGNORECASE)
_NOT_PAGES = re.compile(
    r"\.(?:7z|avi|avif|bin|bmp|bz2|css|csv|deb|dmg|docx?|eot|epub|exe|gif|gz|ico|inv|iso|jar|jpe?g|"
    r"js|json|map|mjs|mov|mp[34]|mpe?g|msi|odt|ogg|otf|pdf|png|pptx?|ps|py|rar|rpm|svg|tar|tgz|"
    r"tiff?|ttf|txt|wasm|wav|webm|webp|whl|woff2?|xlsx?|xml|xz|zip|zst)$",
    re.IGNORECASE,
)
_MAX_LENGTH = 2000
_DEEPEST = 24  # path segments
_FIRST_YEAR = 1970
_DATES = 500  # maximum number of dates of one kind of page
_DATED = re.compile(
    r"(?<!\d)((?:19|2\d)\d\d)[-/_](\d{1,2})(?:[-/_]\d{1,2})?(?!\d)"
    r"|\byear=(\d{4})(?:&month=(\d{1,2})\b)?(?:&day=\d{1,2}\b)?"
    r"|\b(?:month|week|day|date)=(-?[\d/.-]{1,12})"
)


def canonical(url: str, base: str = "", *, routes: bool = False) -> str:
    """Normalize an address for comparison and storage; ``""`` if it is malformed.

    Scheme and host in lower case (international names in ASCII), no default port, no fragment, no
    dot segments, escapes in upper case and only where needed, no parameters of sessions and
    campaigns. The order of the other parameters stays.
    """
    try:
        url = url.strip().replace("\t", "").replace("\n", "").replace("\r", "")
        whole = resolve(base, url)
        parts = urlsplit(whole)
        if parts.scheme not in _PORTS or len(whole) > _MAX_LENGTH * 2:
            return ""
        host = (parts.hostname or "").rstrip(".")
        if not host.isascii():
            host = host.encode("idna").decode("ascii")
        port = parts.port
    except (ValueError, UnicodeError):
        return ""
    if not host:
        return ""
    authority = f"[{host}]" if ":" in host else host
    if port is not None and port != _PORTS[parts.scheme]:
        authority += f":{port}"
    if parts.username is not None:
        # kept, so that the fetcher refuses it with a reason
        authority = parts.netloc.rpartition("@")[0] + "@" + authority
    path = _PATH_SESSION.sub("", parts.path)
    if "/." in path:  # joining resolves dot segments
        path = urlsplit(urljoin(f"{parts.scheme}://{authority}", f"/.{path}")).path
    path = _escape(path) or "/"
    pairs = [pair for pair in parts.query.split("&") if pair]
    query = "&".join(_escape(pair) for pair in pairs if not _NOISE.match(pair.partition("=")[0]))
    route = _route(parts.fragment) if routes else ""
    return f"{parts.scheme}://{authority}{path}" + (f"?{query}" if query else "") + route


def _route(fragment: str) -> str:
    route = fragment.partition("?")[0]
    path = route.removeprefix("!")
    return f"#{_escape(route)}" if path.startswith("/") and path != "/" else ""


def _escape(text: str) -> str:
    def decoded(match: re.Match[str]) -> str:
        character = chr(int(match.group(1), 16))
        if character.isascii() and (character.isalnum() or character in "-._~"):
            return character
        return "%" + match.group(1).upper()

    text = re.sub(r"%(?![0-9A-Fa-f]{2})", "%25", text)
    return quote(_UNRESERVED.sub(decoded, text), safe=_SAFE, errors="surrogatepass")


def origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def folder(url: str) -> str:
    """Return the address up to the last slash of its path."""
    path = urlsplit(url).path
    return origin(url) + path[: path.rfind("/") + 1]


def index_alias(url: str) -> str:
    if "?" in url:
        return ""
    head, _, name = url.rpartition("/")
    if name in ("index.html", "index.htm"):
        return head + "/"
    return "" if name else url + "index.html"


@dataclass(slots=True)
class CrawlScope:
    """Addresses of a crawl: same origin, at or below the start's folder.

    With ``routes``, script routes (``#/guide``) are separate addresses.
    """

    start: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    queries: int = 200
    routes: bool = False
    prefix: str = ""
    _variants: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.prefix = self.prefix or folder(self.start)

    def follow_start(self, target: str) -> None:
        start_path, prefix = urlsplit(self.start).path, self.prefix
        if not start_path.endswith("/") and urlsplit(target).path.endswith("/"):
            prefix = f"{origin(target)}{start_path}/"  # a folder whose slash was missing
        elif not target.startswith(prefix):
            prefix = origin(target) + urlsplit(prefix).path
        self.prefix = prefix if target.startswith(prefix) else folder(target)

    def contains(self, url: str) -> bool:
        """Whether a canonical address is in scope, regardless of globs."""
        return url.startswith(self.prefix)

    def allows(self, url: str) -> bool:
        return self.contains(url) and admits(urlsplit(url).path, self.include, self.exclude)

    def link(self, href: str, base: str) -> str:
        url = canonical(href, base, routes=self.routes)
        if not url or not self.contains(url) or refusal_of(url) or len(url) > _MAX_LENGTH:
            return ""
        return "" if _NOT_PAGES.search(urlsplit(url).path) else url

    def refusal(self, url: str) -> str:
        """Return the reason why an address is not followed, or ``""``.

        Very deep addresses, repeating folders, ever more queries of a page, and calendars indicate
        an endless site. Counts its calls, so call it once per address.
        """
        if not self.contains(url):
            return "outside the crawl"
        if not self.allows(url):
            return "left out by include and exclude"
        parts = urlsplit(url)
        segments = [segment for segment in parts.path.split("/") if segment]
        if len(segments) > _DEEPEST:
            return f"more than {_DEEPEST} folders deep; looks endless"
        if _repeats(segments):
            return "repeats its folders again and again; looks endless"
        if reason := self._calendar(parts.path, parts.query):
            return reason
        if parts.query:
            self._variants[parts.path] += 1
            if self._variants[parts.path] > self.queries:
                return f"more than {self.queries} queries of one page (queries); looks endless"
        return ""

    def _calendar(self, path: str, query: str) -> str:
        text = f"{path}?{query}" if query else path
        match = _DATED.search(text)
        if match is None:
            return ""
        year, month = match.group(1) or match.group(3), match.group(2) or match.group(4)
        if match.group(1) and not 1 <= int(month) <= 12:
            return ""  # a number, not a date
        if year and month and not _FIRST_YEAR <= int(year) <= datetime.now(UTC).year + 1:
            return "a date far in the past or the future; looks like an endless calendar"
        kind = text[: match.start()] + "<date>" + text[match.end() :]
        self._variants[kind] += 1
        if self._variants[kind] > _DATES:
            return f"more than {_DATES} dates of one page; looks like an endless calendar"
        return ""


def _repeats(segments: list[str]) -> bool:
    if segments and max(Counter(segments).values()) > 4:
        return True
    for length in (2, 3, 4):
        for start in range(len(segments) - 3 * length + 1):
            first = segments[start : start + length]
            if len(set(first)) > 1 and first * 3 == segments[start : start + 3 * length]:
                return True
    return False


_MAX_BYTES = 512 * 1024  # RFC 9309 asks for at least 500 KiB
_MAX_DELAY = 60.0
_WITH_VALUES = frozenset(
    {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"}
)


def directives(header: str, token: str) -> frozenset[str]:
    names = set()
    for line in header.split("\n"):
        applies = True
        for part in line.split(","):
            name, colon, value = (piece.strip() for piece in part.partition(":"))
            if colon and name not in _WITH_VALUES:
                applies = name in ("*", token.lower())
                name = value
            if applies and name:
                names.add(name)
    return frozenset(names)


class Robots:
    """Fetches what robots.txt allows, at each host's pace; safe to use from several threads."""

    def __init__(
        self,
        fetcher: Fetcher,
        user_agent: str,
        delay: float = 0.0,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._fetcher = fetcher
        self.token = user_agent.partition("/")[0].strip() or "kbkit"
        self.stop = stop
        self._delay = delay
        self._rules: dict[str, tuple[Response | None, Any]] = {}
        self._lock = threading.Lock()
        self._next: dict[str, float] = {}
        self._turns = threading.Lock()

    def close(self) -> None:
        self._fetcher.close()

    def get(
        self, url: str, *, check: Callable[[str], Response | None] | None = None, **options: Any
    ) -> Response:
        """Fetch an address, if its rules and those of each redirect allow it; see `Fetcher.get`."""
        if (refusal := self.verdict(url)) is not None:
            return refusal
        if not self.wait(url):
            return Response(url, Outcome.FAILED, "stopped")
        return self._fetcher.get(url, check=check or self.verdict, **options)

    def verdict(self, url: str) -> Response | None:
        """Return the response for an address that may not be fetched, or ``None``."""
        refusal, rules = self._rules_of(origin(url))
        if refusal is not None:
            return replace(refusal, url=url)
        if rules.can_fetch(url.partition("#")[0], self.token):
            return None
        return Response(url, Outcome.SKIPPED, "robots.txt forbids it")

    def delay(self, url: str) -> float:
        """Return the seconds between two requests to a host: as it asks, at most a minute."""
        _, rules = self._rules_of(origin(url))
        delay = rules.crawl_delay(self.token)
        if delay is None:
            rate = rules.request_rate(self.token)
            delay = rate.seconds / rate.requests if rate and rate.requests else 0.0
        seconds = 0.0 if math.isnan(float(delay)) else min(max(float(delay), 0.0), _MAX_DELAY)
        return max(self._delay, seconds)

    def wait(self, url: str) -> bool:
        delay = self.delay(url)
        if not delay:
            return not self.stop()
        with self._turns:
            host = origin(url)
            now = time.monotonic()
            start = max(now, self._next.get(host, now))
            self._next[host] = start + delay
        return pause(start - now, self.stop)

    def sitemaps(self, url: str) -> list[str]:
        _, rules = self._rules_of(origin(url))
        return list(filter(None, (resolve_link(url, href) for href in islice(rules.sitemaps, 100))))

    def _rules_of(self, host: str) -> tuple[Response | None, Any]:
        with self._lock:
            if host not in self._rules:
                self._rules[host] = self._read(host)
            return self._rules[host]

    def _read(self, host: str) -> tuple[Response | None, Any]:
        """Return the response for all pages of a blocked host, or ``None``, and its rules."""
        from protego import Protego

        response = self._fetcher.get(f"{host}/robots.txt", max_bytes=_MAX_BYTES, truncate=True)
        if response.outcome is Outcome.FETCHED:
            return None, Protego.parse(response.body.decode("utf-8-sig", errors="replace"))
        allow_all = Protego.parse("")
        if 400 <= response.status < 500 and response.status != 429:
            return None, allow_all  # "unavailable" in RFC 9309: everything is allowed
        if response.status == 0:
            # the host is unreachable, not just robots.txt
            return response, allow_all
        reason = f"robots.txt cannot be read ({response.reason}), which forbids everything"
        return Response(host, Outcome.FAILED, reason), allow_all


_MAX_FILES = 50
_MAX_SITEMAP_BYTES = 50_000_000  # limit of sitemaps.org
_MAX_URLS = 50_000
_MAX_SECONDS = 120.0  # for all sitemaps
_ROOT = re.compile(r"<([\w.-]+:)?(sitemapindex|urlset)\b", re.IGNORECASE)
_LOC = r"<{}loc>\s*(?:<!\[CDATA\[)?\s*([^<\]\s]{{1,2000}})"
"""Address of a page; pictures' addresses have another namespace prefix."""
_QUOTES = {"&quot;": '"', "&apos;": "'"}


def read_sitemaps(robots: Robots, scope: CrawlScope, *, guess: bool = False) -> list[str]:
    """Return the addresses in scope that sitemaps name.

    Sitemaps are those in robots.txt; if there are none, or with `guess`, also those at the usual
    paths. Missing or damaged ones are ignored. No XML parser is used: there are no entities to
    expand, and malformed sitemaps can be read.
    """
    starts = robots.sitemaps(scope.prefix)
    if guess or not starts:
        starts += [origin(scope.prefix) + "/sitemap.xml", scope.prefix + "sitemap.xml"]
    files = list(dict.fromkeys(starts))
    seen = set(files)
    pages: dict[str, None] = {}
    end = time.monotonic() + _MAX_SECONDS
    for url in islice(files, _MAX_FILES):  # indexes add files to the list
        if len(pages) >= _MAX_URLS or robots.stop() or time.monotonic() > end:
            break
        response = robots.get(url, max_bytes=_MAX_SITEMAP_BYTES)
        text = _text(response.body) if response.outcome is Outcome.FETCHED else ""
        root = _ROOT.search(text[:2000])
        if root is not None or "<loc>" in text:
            loc = re.compile(_LOC.format((root and root[1]) or ""), re.IGNORECASE)
            locations = [unescape(match, _QUOTES) for match in loc.findall(text)]
        else:
            locations = [] if "<" in text[:200] else text.split()
        for relative in locations[:_MAX_URLS]:
            location = resolve_link(url, relative)
            if root is not None and root[2].lower() == "sitemapindex":
                # an index must not lead to other hosts
                if location not in seen and origin(location) == origin(url):
                    seen.add(location)
                    files.append(location)
            elif page := scope.link(location, ""):
                pages[page] = None
    return list(pages)[:_MAX_URLS]


def _text(body: bytes) -> str:
    if body.startswith(b"\x1f\x8b"):
        try:
            body = zlib.decompressobj(31).decompress(body, _MAX_SITEMAP_BYTES)
        except zlib.error:
            return ""
    return body.decode("utf-8-sig", errors="replace")
