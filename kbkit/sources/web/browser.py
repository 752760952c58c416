"""A Chromium without network that renders pages.

kbkit fetches each request of a page, with all its checks. Chromium resolves no names and opens no
connections, not even for sockets, workers, prefetching, WebRTC or redirects: its proxy does not
exist. Pages are read from an isolated world, whose JavaScript sees the page's document, but no
changes by the page's scripts to JavaScript itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from kbkit.errors import SourceError
from kbkit.extras import extra
from kbkit.sources import Outcome
from kbkit.sources.web import Response

WITHOUT_FEATURES = (
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,"  # take two thirds of a page's time
    "AimEnabled,AvoidCorsURLLoaderRestartOnRedirect,AvoidUnnecessaryBeforeUnloadCheckSync,"
    "DestroyProfileOnBrowserClose,HttpsFirstBalancedModeAutoEnable,HttpsUpgrades,LensOverlay,"
    "MediaRouter,NetworkTimeServiceQuerying,OptimizationHints,PaintHolding,PreconnectToSearch,"
    "TcpPortRandomizationWin,ThirdPartyStoragePartitioning,msForceBrowserSignIn"
)
"""Features to switch off; includes Playwright's list, which this flag replaces."""
_FLAGS = (
    # no way out: names do not resolve, and unrouted requests go to this proxy
    "--proxy-server=socks5://kbkit.invalid:9",
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--dns-prefetch-disable",
    "--disable-quic",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--js-flags=--max-old-space-size=1024",
    WITHOUT_FEATURES,
)
_POLICY = (
    "sandbox allow-scripts allow-same-origin; object-src 'none'; frame-src 'none'; "
    "img-src 'none'; media-src 'none'; font-src 'none'; manifest-src 'none'; "
    "connect-src http: https: data: blob:; form-action 'none'; webrtc 'block'"
)
"""Permissions denied to a page: dialogs, popups, downloads, forms, frames, pictures, sockets."""
_WITHOUT = """for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "WebTransport"])
  delete globalThis[name];"""
"""Removes APIs that open connections, in case Chromium ignores the flags."""
_TYPES = frozenset({"script", "stylesheet", "xhr", "fetch"})  # types of requests that are answered
_PROGRAMS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
_ENVIRONMENT = str.split("""
    PATH HOME USER LANG LC_ALL TMPDIR TEMP TMP SYSTEMROOT APPDATA LOCALAPPDATA PROGRAMFILES
    PROGRAMFILES(X86) LD_LIBRARY_PATH XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_CACHE_HOME
    FONTCONFIG_PATH FONTCONFIG_FILE
""")
"""Environment variables for the browser; none hold keys."""
_GLANCE = 0.15  # seconds between two checks of a page
_QUIET = 4  # consecutive checks without a change
_REQUESTS = 300  # maximum number of requests of a page
_TEXTS = 5  # maximum bytes of a page's resources, times the size limit of a page
_UNFOLDED = 500  # maximum number of unfolded parts of a page
_NO_SANDBOX = ("sandboxing failed", "No usable sandbox", "without --no-sandbox is not supported")
_LAUNCH = 60.0  # seconds for the browser to start
_GRACE = 5.0  # seconds for reading a page after its time is over
_END = 10.0  # seconds for a page or the browser to close
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page after its scripts ran.

    Attributes:
        html: Document without scripts, with open shadow trees in place.
        leads: Address that its scripts tried to open, or ``""``.
    """

    html: str
    lines: frozenset[str]
    leads: str = ""


@dataclass(slots=True)
class _Visit:
    url: str
    html: str
    fetch: Callable[[str, str], Response]
    limit: int
    seconds: float
    requests: int = 0
    size: int = 0
    pending: int = 0
    served: bool = False
    leads: str = ""
    started_at: float = field(default_factory=time.monotonic)

    def overdue(self) -> bool:
        return time.monotonic() - self.started_at > self.seconds


def find_program() -> str | None:
    """Return the path of an installed Chromium; with ``None``, Playwright chooses."""
    return next(filter(None, map(shutil.which, _PROGRAMS)), None)


class Browser:
    """A Chromium, driven by its own thread; starts with the first page, and again after a crash."""

    def __init__(self, *, user_agent: str, program: str = "", sandbox: bool = True) -> None:
        with extra("browser", "playwright", "The provider browser"):
            import playwright.async_api  # noqa: F401
        self._user_agent = user_agent
        self._program = program or find_program()
        is_root = sys.platform != "win32" and os.geteuid() == 0
        if sandbox and is_root:
            _log.warning("as root, Chromium runs without its sandbox: use another user")
        self._sandbox = sandbox and not is_root
        self._driver: Any = None
        self._chromium: Any = None
        self._launching = asyncio.Lock()
        self._closed = False
        self._pool = ThreadPoolExecutor(8, "kbkit-browser")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with suppress(Exception):  # it ends with this process anyway
            self._run(self._shut_down())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_END)
        if not self._thread.is_alive():
            self._loop.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def render(
        self,
        url: str,
        html: str,
        fetch: Callable[[str, str], Response],
        *,
        limit: int,
        seconds: float,
    ) -> RenderedPage:
        """Render a page, wait until it is stable, and read it."""
        for attempt in (0, 1):
            visit = _Visit(url, html, fetch, limit, seconds)
            try:
                return self._run(self._render(visit))
            except _GoneError:
                if attempt:
                    break  # this page crashes the browser
        raise RenderError("the browser crashed")

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _running(self) -> Any:
        async with self._launching:
            if self._closed:
                raise RenderError("stopped")
            if self._chromium is None or not self._chromium.is_connected():
                from playwright.async_api import Error, async_playwright

                if self._driver is None:
                    self._driver = await async_playwright().start()
                try:
                    self._chromium = await self._driver.chromium.launch(
                        executable_path=self._program,
                        args=list(_FLAGS),
                        chromium_sandbox=self._sandbox,
                        env={key: os.environ[key] for key in _ENVIRONMENT if key in os.environ},
                        ignore_default_args=["--disable-popup-blocking"],
                        timeout=_LAUNCH * 1000,
                    )
                except Error as error:
                    raise SourceError(_launch_error(error)) from error
            return self._chromium

    async def _shut_down(self) -> None:
        self._closed = True
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        if self._chromium is not None:
            await _ends_in_time(self._chromium.close())
        if self._driver is not None:
            await _ends_in_time(self._driver.stop())
        for task in tasks:
            task.cancel()
        await _ends_in_time(asyncio.gather(*tasks, return_exceptions=True))

    async def _render(self, visit: _Visit) -> RenderedPage:
        from playwright.async_api import Error

        chromium = await self._running()
        context = None
        try:
            context = await chromium.new_context(
                user_agent=self._user_agent,
                service_workers="block",
                accept_downloads=False,
                viewport={"width": 1280, "height": 1600},
            )
            return await self._show(context, visit)
        except Error as error:
            if not chromium.is_connected():
                raise _GoneError from error
            raise RenderError(f"cannot be rendered ({_line(error)})") from error
        finally:
            if context is not None and not await _ends_in_time(context.close()):
                # the page does not close: start a new browser for the next ones
                self._chromium = None
                await _ends_in_time(chromium.close())

    async def _show(self, context: Any, visit: _Visit) -> RenderedPage:
        page = await context.new_page()
        broken: asyncio.Future[None] = self._loop.create_future()
        page.once("crash", lambda _: broken.set_result(None))
        page.on("dialog", lambda dialog: dialog.dismiss())
        context.on("page", lambda other: self._loop.create_task(_ends_in_time(other.close())))
        await context.add_init_script(_WITHOUT)
        await context.route_web_socket("**/*", lambda socket: socket.close())
        await context.route("**/*", lambda route: self._answer(route, page, visit))
        reading = self._loop.create_task(self._read(context, page, visit))
        try:
            outcomes: set[asyncio.Future[Any]] = {reading, broken}
            remaining = visit.started_at + visit.seconds + _GRACE - time.monotonic()
            await asyncio.wait(outcomes, timeout=remaining, return_when=asyncio.FIRST_COMPLETED)
            if broken.done():
                raise RenderError("the page crashed")
            if not reading.done():
                raise RenderError(f"its scripts do not end within {visit.seconds:g} s")
            return reading.result()
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await reading

    async def _read(self, context: Any, page: Any, visit: _Visit) -> RenderedPage:
        await page.goto(visit.url, wait_until="commit", timeout=visit.seconds * 1000)
        world = IsolatedWorld(await context.new_cdp_session(page))
        await self._settle(world, visit)
        if await world.call("unfold", _UNFOLDED):
            await self._settle(world, visit)
        serialized = await world.call("serialize", visit.limit)
        if not isinstance(serialized, list):
            raise RenderError(f"larger than {visit.limit / 1e6:g} MB when it is shown")
        return RenderedPage(serialized[0], frozenset(serialized[1]), visit.leads)

    async def _settle(self, world: IsolatedWorld, visit: _Visit) -> None:
        """Wait until a page neither changes nor waits for requests, or its time is over."""
        state, quiet = "", 0
        while quiet < _QUIET and not visit.overdue():
            await asyncio.sleep(_GLANCE)
            now = await world.call("state", 0)
            stable = now == state and str(now).startswith("complete") and not visit.pending
            state, quiet = now, quiet + 1 if stable else 0

    async def _answer(self, route: Any, page: Any, visit: _Visit) -> None:
        request = route.request
        with suppress(Exception):  # the page may be gone
            if request.is_navigation_request():
                await self._navigate(route, page, visit)
                return
            visit.requests += 1
            accepted = request.resource_type in _TYPES and request.method == "GET"
            is_http = request.url.startswith(("http://", "https://"))
            within_limits = visit.requests <= _REQUESTS and visit.size <= visit.limit * _TEXTS
            if not (accepted and is_http and within_limits) or visit.overdue():
                await route.abort("blockedbyclient")
                return
            visit.pending += 1
            try:
                response = await self._loop.run_in_executor(
                    self._pool, visit.fetch, request.url, request.resource_type
                )
                visit.size += len(response.body)
                if response.outcome in (Outcome.FETCHED, Outcome.GONE):
                    charset = f"; charset={response.charset}" if response.charset else ""
                    await route.fulfill(
                        status=response.status,
                        body=response.body,
                        content_type=response.media_type + charset,
                    )
                else:
                    await route.abort("blockedbyclient")
            finally:
                visit.pending -= 1

    async def _navigate(self, route: Any, page: Any, visit: _Visit) -> None:
        request = route.request
        address = visit.url.partition("#")[0]
        if request.frame == page.main_frame and not visit.served and request.method == "GET":
            visit.served = True
            await route.fulfill(
                status=200,
                body=visit.html,
                content_type="text/html; charset=utf-8",
                headers={"Content-Security-Policy": _POLICY},
            )
            return
        if request.frame == page.main_frame and request.url.partition("#")[0] != address:
            visit.leads = visit.leads or request.url
        await route.abort("aborted")


class _GoneError(Exception):
    """The browser crashed."""


async def _ends_in_time(work: Awaitable[Any]) -> bool:
    try:
        await asyncio.wait_for(work, _END)
    except Exception as error:  # already closed, unless it takes too long
        return not isinstance(error, TimeoutError)
    return True


def _launch_error(error: Exception) -> str:
    text = str(error)
    if "executable doesn't exist" in text.lower():
        return (
            "There is no browser: install Chromium, run `playwright install chromium`, "
            "or set KBKIT_BROWSER to its path"
        )
    if any(sign in text for sign in _NO_SANDBOX):
        return (
            "The browser does not start, since the system forbids its sandbox: allow it, "
            "or set KBKIT_BROWSER_SANDBOX=0"
        )
    return f"The browser does not start ({_line(error)})"


def _line(error: Exception) -> str:
    return " ".join(str(error).partition("Call log")[0].split())[:300]


_SCRIPT = Path(__file__).with_suffix(".js").read_text("utf-8")


class RenderError(Exception):
    """A page could not be rendered; the message is a one-line reason."""


class IsolatedWorld:
    """JavaScript world of a page that the page's scripts cannot reach."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._context: int | None = None

    async def call(self, name: str, argument: int) -> Any:
        """Return the result of a function in browser.js; ``None`` if the document was replaced."""
        from playwright.async_api import Error

        if self._context is None:
            tree = await self._session.send("Page.getFrameTree")
            created = await self._session.send(
                "Page.createIsolatedWorld",
                {"frameId": tree["frameTree"]["frame"]["id"], "worldName": "kbkit"},
            )
            self._context = created["executionContextId"]
        try:
            answer = await self._session.send(
                "Runtime.evaluate",
                {
                    "expression": f"{_SCRIPT}.{name}({argument})",
                    "contextId": self._context,
                    "returnByValue": True,
                },
            )
        except Error as error:
            if "context" in str(error):  # replaced, as by document.open
                self._context = None
                return None
            raise
        if "exceptionDetails" in answer:
            raise RenderError("its document cannot be read")
        return answer["result"].get("value")
