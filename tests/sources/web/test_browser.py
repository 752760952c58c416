"""The provider ``browser``: a real Chromium, applications and hostile pages on loopback."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import psutil
import pytest

from kbkit.errors import ForbiddenAddressError
from kbkit.recipes import CrawlSource, PageSource
from kbkit.sources import open_reader
from kbkit.sources.base import Outcome, SourceContext, SourceEvent
from kbkit.sources.html.articles import NEEDS_BROWSER
from kbkit.sources.web import addresses
from tests.sources.web.crawls import Memory, reasons
from tests.waiting import until

pytestmark = pytest.mark.browser

SHELL = (
    "<!DOCTYPE html><html><head><title>{0}</title></head>"
    '<body><div id="app"></div>{1}</body></html>'
)
WORDS = "A kettle boils water for tea, and it whistles when it is done."


def application(script: str, title: str = "Kettle") -> str:
    return SHELL.format(title, f"<script>{script}</script>")


SHOWS = f"document.getElementById('app').innerHTML = '<main><h1>Kettle</h1><p>{WORDS}</p></main>';"


@pytest.fixture
def context(chromium: str) -> SourceContext:
    return SourceContext(
        browser=chromium, user_agent="kbkit/test", timeout=60, browser_sandbox=False
    )


def crawl(url: str, context: SourceContext, memory: Memory | None = None, **options):
    spec = CrawlSource(url=url, provider="browser", **{"allow_private": True, **options})
    return list(open_reader(spec).events(replace(context, memory=memory or Memory())))


def read_page(url: str, context: SourceContext, **options) -> SourceEvent:
    spec = PageSource(url=url, provider="browser", **{"allow_private": True, **options})
    (event,) = open_reader(spec).events(context)
    return event


def texts(events: list[SourceEvent], site) -> dict[str, str]:
    return {
        event.uri.removeprefix(site.url): event.document.content
        for event in events
        if event.document
    }


class Listener:
    """A port on loopback that notes who comes, by TCP and by UDP."""

    def __init__(self) -> None:
        self.came: list[str] = []
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, daemon=True).start()
        threading.Thread(target=self.receive, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                connection, _ = self.tcp.accept()
            except OSError:
                return
            self.came.append("tcp")
            connection.close()

    def receive(self) -> None:
        while True:
            try:
                self.udp.recvfrom(2000)
            except OSError:
                return
            self.came.append("udp")


@pytest.fixture
def listener() -> Iterator[Listener]:
    running = Listener()
    yield running
    running.tcp.close()
    running.udp.close()


def test_without_a_browser_a_crawl_says_once_that_it_needs_one(site) -> None:
    links = "".join(f"<url><loc>{site.url}/{n}</loc></url>" for n in range(9))
    site.pages["/sitemap.xml"] = f"<urlset>{links}</urlset>"
    for path in ("/", *(f"/{n}" for n in range(9))):
        site.pages[path] = application(SHOWS)
    spec = CrawlSource(url=f"{site.url}/", allow_private=True)
    events = list(open_reader(spec).events(SourceContext()))
    assert reasons(events, site) == {
        "/": f"skipped: {NEEDS_BROWSER} (10 addresses, this is the first)"
    }
    assert sum(event.record is not None for event in events) == 10
    spec = PageSource(url=f"{site.url}/", allow_private=True)
    (event,) = open_reader(spec).events(SourceContext())
    assert (event.outcome, event.reason) == (Outcome.SKIPPED, NEEDS_BROWSER)


def test_what_scripts_fetch_and_show_is_read_and_its_links_are_followed(site, context) -> None:
    script = """
      fetch('data.json').then(answer => answer.json()).then(data => {
        const app = document.getElementById('app');
        app.innerHTML = `<main><h1>${data.title}</h1><p>${data.text}</p>
          <pre><code class="language-python">if x:\\n    y = 1\\n</code></pre>
          <a href="/guide">Guide</a></main>`;
      });"""
    site.pages["/"] = SHELL.format("Kettle", '<script src="/app.js"></script>')
    site.pages["/app.js"] = script
    site.pages["/data.json"] = f'{{"title": "Kettle", "text": "{WORDS}"}}'
    site.pages["/guide"] = SHELL.format("Guide", '<script src="/app.js"></script>')
    site.headers["/app.js"] = {"Content-Type": "text/javascript"}
    found = texts(crawl(f"{site.url}/", context), site)
    assert set(found) == {"/", "/guide"}
    assert found["/"].startswith(f"# Kettle {{#app}}\n\n{WORDS}")
    assert "```python\nif x:\n    y = 1\n```" in found["/"]
    assert site.count("/app.js") == 1  # once a crawl
    assert site.count("/data.json") == 2
    asked = dict(site.requests)
    assert asked["/data.json"]["User-Agent"] == "kbkit/test"
    assert not {"Cookie", "Referer", "Origin"} & set(asked["/data.json"])


def test_shadow_trees_stand_in_their_places_and_what_is_folded_is_unfolded(site, context) -> None:
    site.pages["/"] = application("""
      customElements.define('tea-box', class extends HTMLElement {
        connectedCallback() {
          this.attachShadow({mode: 'open'}).innerHTML =
            '<h2>In the shadow</h2><p>Before <slot></slot> after the slot of it.</p>';
        }
      });
      document.getElementById('app').innerHTML = `<main><h1>Kettle</h1>
        <tea-box><i-x>light</i-x></tea-box>
        <button aria-expanded="false" id="b"><span>POST</span> <span>/kettles</span></button>
        <div id="d"></div>
        <button aria-haspopup="true" aria-expanded="false" onclick="app.innerHTML=''">More</button>
        </main>`;
      document.getElementById('b').onclick = () => {
        document.getElementById('b').setAttribute('aria-expanded', 'true');
        document.getElementById('d').innerHTML = '<p>How a kettle is made, unfolded.</p>';
      };""")
    event = read_page(f"{site.url}/", context)
    content = event.document.content
    order = ["# Kettle", "## In the shadow", "Before light after", "POST /kettles", "How a kettle"]
    places = [content.find(text) for text in order]
    assert -1 not in places, content
    assert places == sorted(places)
    assert "More" not in content


@pytest.mark.slow
def test_hash_routes_are_pages_and_places_in_a_page_are_not(site, context) -> None:
    site.pages["/docs/"] = application("""
      const pages = {
        '': '<h1>Home</h1><p>All about kettles and tea, from the start.</p>',
        '/guide': '<h1>Guide</h1><p>How water is boiled, step by step.</p>',
        '!/old': '<h1>Old</h1><p>How it was done in former times.</p>',
      };
      const route = location.hash.slice(1).split('?')[0];
      document.getElementById('app').innerHTML = '<main>' + (pages[route] || pages['']) +
        '<a href="#/guide">Guide</a> <a href="#/guide?id=water">Water</a>' +
        '<a href="#!/old">Old</a><a href="#/">Home</a> <a href="#part">Part</a>' +
        '<a href="#/1">1</a> <a href="#/2">2</a>' +
        '<a href="#/3">3</a><a href="#/4">4</a><a href="#/5">5</a></main>';""")
    events = crawl(f"{site.url}/docs/", context, concurrency=1)
    found = texts(events, site)
    assert set(found) == {"/docs/", "/docs/#/guide", "/docs/#!/old"}
    assert "How water is boiled" in found["/docs/#/guide"]
    assert "former times" in found["/docs/#!/old"]
    said = reasons(events, site)
    assert said == {
        "/docs/#/1": f"skipped: shows what {site.url}/docs/ shows (5 addresses, this is the first)"
    }
    assert site.count("/docs/") == 1  # its routes share it
    event = read_page(f"{site.url}/docs/#/guide?id=water", context)
    assert event.uri == f"{site.url}/docs/#/guide"
    assert event.document.title == "Guide"


@pytest.mark.slow
def test_a_refresh_renders_again_and_knows_what_is_the_same(site, context) -> None:
    site.pages["/"] = application(SHOWS + "fetch('/more').then(() => 0)")
    site.headers["/"] = {"ETag": '"1"'}
    memory = Memory(crawl(f"{site.url}/", context))
    (event,) = crawl(f"{site.url}/", context, memory)
    assert event.outcome is Outcome.UNCHANGED
    assert all("If-None-Match" not in headers for _, headers in site.requests)
    site.pages["/"] = application(SHOWS.replace("boils", "heats"))
    (event,) = crawl(f"{site.url}/", context, memory)
    assert "heats" in event.document.content


def test_robots_forbid_what_a_page_asks_for_too(site, context) -> None:
    site.pages["/robots.txt"] = "User-agent: kbkit\nDisallow: /private/\n"
    site.pages["/private/data"] = "secret"
    site.pages["/"] = application(
        SHOWS
        + """
      const tell = text => document.querySelector('main').append(text);
      fetch('/private/data').then(a => a.text()).then(tell, () => tell('refused'));"""
    )
    event = read_page(f"{site.url}/", context)
    assert event.document.content.rstrip().endswith("refused")
    assert "/private/data" not in site.paths


REACHING = """
  const main = document.querySelector('main');
  const tell = name => main.append(
    Object.assign(document.createElement('p'), {textContent: name}));
  const tried = (name, attempt) => {
    const refused = () => tell(name + ' refused');
    try { Promise.resolve(attempt()).then(() => tell(name + ' went'), refused); }
    catch (error) { tell(name + ' refused'); }
  };
  const element = (tag, values) => new Promise((good, bad) => {
    const made = Object.assign(document.createElement(tag), values);
    made.onload = good; made.onerror = bad;
    document.head.append(made);
  });
  for (const there of ['http://127.0.0.1:PORT', 'http://localhost:PORT', 'http://169.254.169.254',
                       'http://10.0.0.1', 'http://[::1]:PORT', 'http://0x7f000001:PORT']) {
    tried('fetch', () => fetch(there + '/data'));
    tried('script', () => element('script', {src: there + '/a.js'}));
    tried('module', () => element('script', {src: there + '/m.js', type: 'module'}));
    tried('style', () => element('link', {href: there + '/a.css', rel: 'stylesheet'}));
    for (const rel of ['prefetch', 'preload', 'preconnect', 'dns-prefetch', 'prerender', 'icon',
                       'manifest', 'modulepreload'])
      element('link', {href: there + '/' + rel, rel}).catch(() => 0);
    for (const tag of ['img', 'iframe', 'video', 'embed', 'audio'])
      main.append(Object.assign(document.createElement(tag), {src: there + '/' + tag}));
    navigator.sendBeacon(there + '/beacon', 'x');
    new EventSource(there + '/events');
    const ws = there.replace('http', 'ws');
    tried('socket', () => new Promise((good, bad) => {
      const socket = new WebSocket(ws + '/ws'); socket.onopen = () => socket.send('x');
      socket.onmessage = good; socket.onerror = bad; socket.onclose = bad; }));
    const code = `fetch('${there}/w').catch(() => 0); new WebSocket('${ws}/w');
      try { importScripts('${there}/i.js'); } catch (error) { postMessage('done'); }`;
    const worker = new Worker(URL.createObjectURL(new Blob([code])));
    tried('worker', () => new Promise((good, bad) => {
      worker.onmessage = bad; worker.onerror = bad; }));
    window.open(there + '/popup');
  }
  const rules = document.createElement('script');
  rules.type = 'speculationrules';
  rules.textContent = '{"prerender": [{"urls": ["http://127.0.0.1:PORT/s"]}], "prefetch": ' +
    '[{"urls": ["http://127.0.0.1:PORT/s2"]}]}';
  document.head.append(rules);
  const iceServers = [{urls: 'stun:127.0.0.1:PORT'},
    {urls: 'turn:127.0.0.1:PORT', username: 'x', credential: 'x'},
    {urls: 'turn:127.0.0.1:PORT?transport=tcp', username: 'x', credential: 'x'}];
  tried('peer', () => new Promise((good, bad) => {
    const peer = new RTCPeerConnection({iceServers});
    peer.createDataChannel('x');
    const tick = setInterval(() => main.append('. '), 50);  // so that the page waits for it
    setTimeout(() => { clearInterval(tick); bad(); }, 2500);
    peer.createOffer().then(offer => peer.setLocalDescription(offer)); }));
  tried('transport', () => new WebTransport('https://127.0.0.1:PORT/t').ready);
  tried('post', () => fetch('/post', {method: 'POST', body: 'x'}));
  tried('moved', () => fetch('/moved'));
  tried('away', () => element('script', {src: '/away'}));
  const form = document.createElement('form');
  Object.assign(form, {method: 'post', action: '/form'});
  document.body.append(form);
  form.submit();
"""


def test_nothing_reaches_private_networks_past_the_guard(
    site, context, listener, monkeypatch
) -> None:
    refused = set()
    resolve = addresses.resolve

    def note(host: str, port: int, *, allow_private: bool) -> list[str]:
        try:
            return resolve(host, port, allow_private=allow_private)
        except ForbiddenAddressError:
            refused.add(host)
            raise

    monkeypatch.setattr(addresses, "resolve", note)

    def moved(there: str):
        def answer(handler) -> None:
            handler.send_response(302)
            handler.send_header("Location", there)
            handler.end_headers()

        return answer

    site.pages["/moved"] = moved("http://169.254.169.254/latest/")
    site.pages["/away"] = moved(f"http://127.0.0.1:{listener.port}/")
    site.pages["/"] = application(SHOWS + REACHING.replace("PORT", str(listener.port)))
    event = read_page(f"{site.url}/", context)
    content = event.document.content
    assert content.count("fetch refused") == content.count("script refused") == 6, content
    assert content.count("style refused") == content.count("module refused") == 6
    assert content.count("worker refused") == content.count("socket refused") == 6
    for name in ("peer", "post", "moved", "away", "transport"):
        assert f"{name} refused" in content, name
    assert "went" not in content
    assert {"127.0.0.1", "localhost", "169.254.169.254", "10.0.0.1", "::1"} <= refused
    assert set(site.paths) == {"/robots.txt", "/", "/moved", "/away"}
    assert listener.came == []
    socket.create_connection(("127.0.0.1", listener.port)).close()  # it does listen
    until(lambda: listener.came == ["tcp"])


def test_a_page_of_a_private_host_is_refused_before_a_browser_starts(site, context) -> None:
    site.pages["/"] = application(SHOWS)
    event = read_page(f"{site.url}/", context, allow_private=False)
    assert event.outcome is Outcome.SKIPPED
    assert "a loopback address" in event.reason
    assert site.paths == []


HOSTILE = {
    "endless": ("for (;;) {}", "failed: its scripts do not end within"),
    "endless later": ("setTimeout(() => { for (;;) {} }, 200);", "failed: its scripts do not end"),
    "endless timers": ("setInterval(() => app.append('more '), 1);", ""),
    "dialogs": ("setInterval(() => { alert(1); confirm(2); prompt(3); }, 1);", ""),
    "popups": ("setInterval(() => window.open('/popup'), 5);", ""),
    "downloads": (
        "setInterval(() => Object.assign(document.createElement('a'), {href: "
        "URL.createObjectURL(new Blob(['x'])), download: 'evil.exe'}).click(), 5);",
        "",
    ),
    "reloads": ("setInterval(() => location.reload(), 1);", ""),
    "a large document": (
        "const text = 'kettle '.repeat(1e6); for (let n = 0; n < 30; n += 1) { const p = "
        "document.createElement('p'); p.textContent = text; app.append(p); }",
        "failed: ",  # it is too large, or its time is over
    ),
    "many elements": (
        "for (let n = 0; n < 4e5; n += 1) app.append(Object.assign(document.createElement('b'), "
        "{id: 'kettle-' + n, textContent: 'kettle'}));",
        "failed: ",
    ),
    "deep": (
        "let at = document.getElementById('app'); for (let n = 0; n < 5e4; n += 1) { const next = "
        "document.createElement('div'); at.append(next); at = next; } at.append('deep');",
        None,
    ),
    "a service worker": ("navigator.serviceWorker.register('/sw.js').catch(() => 0);", ""),
    "changed prototypes": (
        "Array.prototype.push = () => { throw 1; }; String.prototype.replace = () => 'evil'; "
        "document.getElementsByTagName = null; Object.getOwnPropertyDescriptor = null;",
        "",
    ),
    "a form that hides properties": (
        "document.body.insertAdjacentHTML('beforeend', '<form><input name=childNodes>' + "
        "'<input name=attributes><input name=localName><input name=nodeType></form>');",
        "",
    ),
    "many requests": ("setInterval(() => fetch('/x?' + Math.random()).catch(() => 0), 1);", ""),
}


GATED = {"dialogs"}
"""The quickest; `make slow` opens all."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in GATED else [pytest.mark.slow]) for name in HOSTILE],
)
def test_a_hostile_page_costs_no_more_than_itself(name, site, context, page) -> None:
    """Pages get as long as the machine needs for those that are good."""
    script, said = HOSTILE[name]
    site.pages["/"] = page("Home", "/bad", "/good")
    site.pages["/bad"] = application(SHOWS + script)
    site.pages["/good"] = page("Good", text="This page is as good as any other page.")
    site.pages["/sw.js"] = "self.addEventListener('fetch', () => 0);"
    expected = {"/", "/good"} | ({"/bad"} if said == "" else set())
    for seconds in (3, 10, 30):
        site.paths.clear()
        events = crawl(f"{site.url}/", replace(context, timeout=seconds), concurrency=1)
        found = texts(events, site)
        if expected <= set(found):
            break
    assert expected <= set(found)
    outcome = reasons(events, site).get("/bad", "")
    if said is not None:
        assert outcome.startswith(said) if said else outcome == ""
        assert ("/bad" in found) is not said.startswith("failed")
    assert not {"/popup", "/sw.js"} & set(site.paths)
    assert len(site.paths) < 350


@pytest.mark.slow
def test_where_scripts_lead_on_to_is_read_instead(site, context, page) -> None:
    site.pages["/"] = application("location.href = '/new/home?a=1&b=2';")
    site.pages["/new/home?a=1&b=2"] = page("Home")
    events = crawl(f"{site.url}/", context)
    assert set(texts(events, site)) == {"/new/home?a=1&b=2"}
    there = f"{site.url}/new/home?a=1&b=2"
    assert reasons(events, site) == {"/": f"skipped: leads on to {there} (meta refresh)"}


def test_a_page_that_shows_nothing_says_so(site, context) -> None:
    site.pages["/"] = application("document.getElementById('app').textContent = 'Loading...';")
    event = read_page(f"{site.url}/", context)
    assert event.outcome is Outcome.FAILED
    assert event.reason.startswith("its scripts show no text in kbkit's restricted browser")


@pytest.mark.slow
def test_a_browser_that_goes_down_is_started_again(site, context, page) -> None:
    def killed(handler) -> None:
        for process in browsers() - others:
            process.kill()
            gone.append(process.pid)
        body = page("Killer").encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "text/html")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    gone: list[int] = []
    others = browsers()  # those of other tests, which run on
    site.pages["/"] = page("Home", "/kill", "/after")
    site.pages["/kill"] = killed
    site.pages["/after"] = page("After")
    events = crawl(f"{site.url}/", context, concurrency=1)
    assert gone
    assert set(texts(events, site)) == {"/", "/kill", "/after"}


def browsers() -> set[psutil.Process]:
    found = set()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            line = process.cmdline()
            if "--headless" in line and not any("--type=" in part for part in line):
                found.add(process)
    return found


def test_a_crawl_that_is_left_takes_its_browser_along(site, context, page) -> None:
    site.pages["/"] = page("Home", "/endless", "/after")
    site.pages["/endless"] = application("for (;;) {}")
    site.pages["/after"] = page("After")
    spec = CrawlSource(url=f"{site.url}/", provider="browser", allow_private=True, concurrency=1)
    stop = threading.Event()
    reading = replace(context, timeout=60, stop=stop.is_set)
    crawling = threading.Thread(target=lambda: list(open_reader(spec).events(reading)), daemon=True)
    others = browsers()
    crawling.start()
    until(lambda: "/endless" in site.paths)
    assert len(browsers() - others) == 1
    stop.set()
    until(lambda: not crawling.is_alive() and not browsers() - others)


def test_no_browser_is_one_line_that_says_how_to_get_one(site, context, tmp_path) -> None:
    site.pages["/"] = application(SHOWS)
    event = read_page(f"{site.url}/", replace(context, browser=str(tmp_path / "none")))
    assert event.outcome is Outcome.FAILED
    assert "\n" not in event.reason
    assert "KBKIT_BROWSER" in event.reason
