"""The provider ``browser``: a real Chromium, applications and hostile pages on loopback."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import psutil
import pytest

from kbkit.errors import ForbiddenAddressError
from kbkit.recipes import CrawlSource, PageSource
from kbkit.sources import Outcome, SourceContext, SourceEvent, open_reader
from kbkit.sources.html.extract import NEEDS_BROWSER
from kbkit.sources.web import addresses
from tests.sources.web.crawls import Memory, answer, one_page, reasons, redirect
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
    """A port on loopback that counts connections by TCP and packets by UDP."""

    def __init__(self) -> None:
        self.arrivals: list[str] = []
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, daemon=True).start()
        threading.Thread(target=self.receive, daemon=True).start()

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.tcp.accept()
                self.arrivals.append("tcp")
                connection.close()

    def receive(self) -> None:
        with suppress(OSError):
            while True:
                self.udp.recvfrom(2000)
                self.arrivals.append("udp")


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.tcp.close()
    listener.udp.close()


def test_need_of_a_browser_is_reported_once(site) -> None:
    paths = [f"/{n}" for n in range(9)]
    links = "".join(f"<url><loc>{site.url}{path}</loc></url>" for path in paths)
    site.pages["/sitemap.xml"] = f"<urlset>{links}</urlset>"
    site.pages |= dict.fromkeys(["/", *paths], application(SHOWS))
    spec = CrawlSource(url=f"{site.url}/", allow_private=True)
    events = list(open_reader(spec).events(SourceContext()))
    assert reasons(events, site) == {
        "/": f"skipped: {NEEDS_BROWSER} (10 addresses, this is the first)"
    }
    assert sum(event.record is not None for event in events) == 10
    event = one_page(f"{site.url}/")
    assert (event.outcome, event.reason) == (Outcome.SKIPPED, NEEDS_BROWSER)


def test_content_and_links_of_scripts_are_read(site, context) -> None:
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
    contents = texts(crawl(f"{site.url}/", context), site)
    assert set(contents) == {"/", "/guide"}
    assert contents["/"].startswith(f"# Kettle {{#app}}\n\n{WORDS}")
    assert "```python\nif x:\n    y = 1\n```" in contents["/"]
    assert site.count("/app.js") == 1  # once a crawl
    assert site.count("/data.json") == 2
    headers = dict(site.requests)["/data.json"]
    assert headers["User-Agent"] == "kbkit/test"
    assert not {"Cookie", "Referer", "Origin"} & set(headers)


def test_shadow_trees_and_folded_content_are_read_in_place(site, context) -> None:
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
def test_hash_routes_are_pages_and_anchors_are_not(site, context) -> None:
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
    contents = texts(events, site)
    assert set(contents) == {"/docs/", "/docs/#/guide", "/docs/#!/old"}
    assert "How water is boiled" in contents["/docs/#/guide"]
    assert "former times" in contents["/docs/#!/old"]
    skipped = reasons(events, site)
    assert skipped == {
        "/docs/#/1": f"skipped: shows what {site.url}/docs/ shows (5 addresses, this is the first)"
    }
    assert site.count("/docs/") == 1  # its routes share it
    event = read_page(f"{site.url}/docs/#/guide?id=water", context)
    assert event.uri == f"{site.url}/docs/#/guide"
    assert event.document.title == "Guide"


@pytest.mark.slow
def test_refresh_renders_again_and_detects_changes(site, context) -> None:
    site.pages["/"] = application(SHOWS + "fetch('/more').then(() => 0)")
    site.headers["/"] = {"ETag": '"1"'}
    memory = Memory(crawl(f"{site.url}/", context))
    (event,) = crawl(f"{site.url}/", context, memory)
    assert event.outcome is Outcome.UNCHANGED
    assert all("If-None-Match" not in headers for _, headers in site.requests)
    site.pages["/"] = application(SHOWS.replace("boils", "heats"))
    (event,) = crawl(f"{site.url}/", context, memory)
    assert "heats" in event.document.content


def test_robots_txt_forbids_requests_of_scripts(site, context) -> None:
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


def test_scripts_cannot_reach_private_networks(site, context, listener, monkeypatch) -> None:
    refused = set()
    resolve = addresses.resolve

    def note(host: str, port: int, *, allow_private: bool) -> list[str]:
        try:
            return resolve(host, port, allow_private=allow_private)
        except ForbiddenAddressError:
            refused.add(host)
            raise

    monkeypatch.setattr(addresses, "resolve", note)
    site.pages["/moved"] = redirect("http://169.254.169.254/latest/")
    site.pages["/away"] = redirect(f"http://127.0.0.1:{listener.port}/")
    site.pages["/"] = application(SHOWS + REACHING.replace("PORT", str(listener.port)))
    content = read_page(f"{site.url}/", context).document.content
    for name in ("fetch", "script", "style", "module", "worker", "socket"):
        assert content.count(f"{name} refused") == 6, (name, content)
    for name in ("peer", "post", "moved", "away", "transport"):
        assert f"{name} refused" in content, name
    assert "went" not in content
    assert {"127.0.0.1", "localhost", "169.254.169.254", "10.0.0.1", "::1"} <= refused
    assert set(site.paths) == {"/robots.txt", "/", "/moved", "/away"}
    assert listener.arrivals == []
    socket.create_connection(("127.0.0.1", listener.port)).close()  # it does listen
    until(lambda: listener.arrivals == ["tcp"])


def test_page_of_a_private_host_is_refused(site, context) -> None:
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
def test_hostile_page_does_not_stop_a_crawl(name, site, context, page) -> None:
    """The timeout grows until the machine reads the good pages."""
    script, reason = HOSTILE[name]
    site.pages["/"] = page("Home", "/bad", "/good")
    site.pages["/bad"] = application(SHOWS + script)
    site.pages["/good"] = page("Good", text="This page is as good as any other page.")
    site.pages["/sw.js"] = "self.addEventListener('fetch', () => 0);"
    expected = {"/", "/good"} | ({"/bad"} if reason == "" else set())
    for seconds in (3, 10, 30):
        site.paths.clear()
        events = crawl(f"{site.url}/", replace(context, timeout=seconds), concurrency=1)
        pages = set(texts(events, site))
        if expected <= pages:
            break
    assert expected <= pages
    outcome = reasons(events, site).get("/bad", "")
    if reason is not None:
        assert outcome.startswith(reason) if reason else outcome == ""
        assert ("/bad" in pages) is not reason.startswith("failed")
    assert not {"/popup", "/sw.js"} & set(site.paths)
    assert len(site.paths) < 350


@pytest.mark.slow
def test_page_that_scripts_navigate_to_is_read_instead(site, context, page) -> None:
    path = "/new/home?a=1&b=2"
    site.pages["/"] = application(f"location.href = '{path}';")
    site.pages[path] = page("Home")
    events = crawl(f"{site.url}/", context)
    assert set(texts(events, site)) == {path}
    assert reasons(events, site) == {"/": f"skipped: redirects to {site.url}{path} (meta refresh)"}


def test_application_without_text_fails(site, context) -> None:
    site.pages["/"] = application("document.getElementById('app').textContent = 'Loading...';")
    event = read_page(f"{site.url}/", context)
    assert event.outcome is Outcome.FAILED
    assert event.reason.startswith("its scripts show no text in kbkit's restricted browser")


def browsers() -> set[psutil.Process]:
    processes = set()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            line = process.cmdline()
            if "--headless" in line and not any("--type=" in part for part in line):
                processes.add(process)
    return processes


@pytest.mark.slow
def test_browser_that_crashes_is_started_again(site, context, page) -> None:
    killed: list[int] = []
    others = browsers()  # of other tests

    def kill(handler) -> None:
        for process in browsers() - others:
            process.kill()
            killed.append(process.pid)
        answer(200, page("Killer"), Content_Type="text/html")(handler)

    site.link({"/": ["/kill", "/after"]}, "/after")
    site.pages["/kill"] = kill
    events = crawl(f"{site.url}/", context, concurrency=1)
    assert killed
    assert set(texts(events, site)) == {"/", "/kill", "/after"}


def test_stopped_crawl_ends_its_browser(site, context) -> None:
    site.link({"/": ["/endless", "/after"]}, "/after")
    site.pages["/endless"] = application("for (;;) {}")
    spec = CrawlSource(url=f"{site.url}/", provider="browser", allow_private=True, concurrency=1)
    stop = threading.Event()
    stoppable = replace(context, timeout=60, stop=stop.is_set)
    thread = threading.Thread(target=lambda: list(open_reader(spec).events(stoppable)), daemon=True)
    others = browsers()
    thread.start()
    until(lambda: "/endless" in site.paths)
    assert len(browsers() - others) == 1
    stop.set()
    until(lambda: not thread.is_alive() and not browsers() - others)


def test_missing_browser_is_explained_in_one_line(site, context, tmp_path) -> None:
    site.pages["/"] = application(SHOWS)
    event = read_page(f"{site.url}/", replace(context, browser=str(tmp_path / "none")))
    assert event.outcome is Outcome.FAILED
    assert "\n" not in event.reason
    assert "KBKIT_BROWSER" in event.reason
