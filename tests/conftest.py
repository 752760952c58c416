"""Fixtures and hooks for all tests."""

import gc
import json
import logging
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    import kbkit
    from tests import chroma as chroma_server
    from tests.postgres import Server

# The gate runs the same examples each time; `make soak` draws others, even where CI is set.
settings.register_profile(
    "kbkit", deadline=None, derandomize="KBKIT_EXAMPLES" not in os.environ, database=None
)
settings.register_profile(
    "soak",
    deadline=None,
    derandomize=False,
    max_examples=int(os.environ.get("KBKIT_SOAK_CASES", "100000")),
)
settings.load_profile(os.environ.get("KBKIT_HYPOTHESIS_PROFILE", "kbkit"))

# A shell starts background jobs with SIGINT ignored, `nohup` with SIGHUP; child processes inherit
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# jsonschema would compile its grammars of IRIs, which takes a second of each process
sys.modules.setdefault("rfc3987_syntax", None)  # makes an import of it fail

# Collecting garbage after every 700 objects takes an eighth of the time
gc.set_threshold(20_000, 20, 20)

# Background embedding would outlive its test
os.environ.setdefault("KBKIT_IMPROVE", "wait")
# MiniLM takes 17 ms a chunk
os.environ.setdefault("KBKIT_MINILM_CHUNKS", "0")


@pytest.fixture(autouse=True)
def log_levels() -> None:
    """Reset the log levels that commands set in this process."""
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger("kbkit").setLevel(logging.NOTSET)


REQUIRED = os.environ.get("KBKIT_REQUIRE_BROWSER") == "1"


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of an installed Chromium or of Playwright's."""
    from kbkit.sources.web.browser import find_program

    if path := find_program():
        return path
    if find_spec("playwright"):
        from playwright.sync_api import sync_playwright

        with suppress(Exception), sync_playwright() as playwright:  # its driver may not run here
            if Path(path := playwright.chromium.executable_path).exists():
                return path
    pytest.skip("needs chromium; on Debian: apt-get install chromium")


@pytest.fixture(scope="session")
def node() -> str:
    if path := shutil.which("node"):
        return path
    if REQUIRED:
        pytest.fail("KBKIT_REQUIRE_BROWSER=1, but node is not there")
    pytest.skip("needs node; on Debian: apt-get install nodejs")


@pytest.fixture(scope="session")
def postgres() -> Iterator["Server"]:
    """A PostgreSQL server for this process."""
    yield from _postgres()


@pytest.fixture(scope="session")
def pgvector() -> Iterator["Server"]:
    """Another one with the extension pgvector."""
    yield from _postgres(pgvector=True)


def _postgres(*, pgvector: bool = False) -> Iterator["Server"]:
    if find_spec("psycopg") is None:
        if os.environ.get("KBKIT_REQUIRE_POSTGRES") == "1":
            pytest.fail("KBKIT_REQUIRE_POSTGRES=1, but psycopg is not there")
        pytest.skip("needs psycopg")
    from tests.postgres import started

    server = started(pgvector=pgvector)
    yield server
    server.close()


@pytest.fixture(scope="session")
def chroma() -> Iterator["chroma_server.Server"]:
    """A Chroma server for this process; a test that stops it starts it again."""
    from tests.chroma import Server

    server = Server()
    yield server
    server.close()


ON_POSTGRES = os.environ.get("KBKIT_TEST_DATABASE") == "postgresql"


def pytest_collection_modifyitems(config, items):
    """Deselect tests that do not depend on the database when catalogs are on a server."""
    if ON_POSTGRES:
        local = [item for item in items if item.get_closest_marker("local")]
        config.hook.pytest_deselected(items=local)
        items[:] = [item for item in items if not item.get_closest_marker("local")]


if ON_POSTGRES:

    @pytest.fixture(scope="session", autouse=True)
    def on_postgres(postgres: "Server") -> Iterator[None]:
        """Keep the catalog of each workspace in a database of the server."""
        from tests.postgres import catalogs_on

        with catalogs_on(postgres):
            yield


@pytest.fixture
def workspace(tmp_path) -> Iterator["kbkit.Workspace"]:
    """An empty workspace."""
    import kbkit

    with kbkit.open(tmp_path / "kb") as opened:
        yield opened


@pytest.fixture
def kb(workspace) -> "kbkit.KnowledgeBase":
    """An empty knowledge base."""
    return workspace.create("notes")


class Outcome(NamedTuple):
    """What a command ended with and wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def run_kbkit(monkeypatch, capsys) -> Callable[..., Outcome]:
    """Runs the command line in this process, as the installed script does."""
    from kbkit import cli

    def run(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["kbkit", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Outcome(ended.value.code or 0, out, err)

    return run


@pytest.fixture
def slow_site() -> Iterator[str]:
    """Address of a site of 2,000 slow pages and a missing one."""
    links = "".join(f'<p><a href="/page{n}.html">Page {n}</a></p>' for n in range(2000))
    broken = '<p><a href="/broken<b>.html">broken</a></p>'

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found = self.path == "/" or self.path.startswith("/page")
            body = (
                f"<html><head><title>Title of {self.path}</title></head><body><main><h1>Page</h1>"
                f"<p>This page, {self.path}, says something about gardens in a whole sentence.</p>"
                f"{broken + links if self.path == '/' else ''}</main></body></html>"
            ).encode()
            time.sleep(0.1)
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


SLOW_LIMIT = float(os.environ.get("KBKIT_SLOW_LIMIT", "inf"))
"""Seconds that a test may take which tests/slow.txt does not name; the nightly run sets it."""
slow: dict[str, float] = {}


def pytest_runtest_logreport(report):
    """Note tests that take longer than the limit."""
    name = report.nodeid.partition("[")[0]
    if report.when == "call" and report.duration > SLOW_LIMIT:
        slow[name] = max(report.duration, slow.get(name, 0.0))


def pytest_sessionfinish(session, exitstatus):
    """Store the exit code for tests/gate.py: only failed tests get a second chance."""
    if not hasattr(session.config, "workerinput"):
        if cache := getattr(session.config, "cache", None):  # none with `-p no:cacheprovider`
            cache.set("gate/exit", int(exitstatus))
        for name in Path(__file__).with_name("slow.txt").read_text("utf-8").split() if slow else ():
            slow.pop(name, None)
        if slow:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    """Name the tests that are too slow."""
    for name, seconds in slow.items():
        limit = f"over {SLOW_LIMIT:g} s; make it faster, mark it slow, or list it in tests/slow.txt"
        terminalreporter.write_line(f"SLOW {name}: {seconds:.1f} s, {limit}")


def pytest_collection_finish():
    """Exempt objects that stay to the end from garbage collection."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if REQUIRED and report.skipped and item.get_closest_marker("browser"):
        report.outcome = "failed"
        report.longrepr = f"KBKIT_REQUIRE_BROWSER=1, but skipped: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    path = getattr(collector, "path", None)
    if REQUIRED and report.outcome == "skipped" and path and "browser" in path.parts:
        report.outcome = "failed"
        report.longrepr = f"KBKIT_REQUIRE_BROWSER=1, but skipped: {report.longrepr}"
    return report
