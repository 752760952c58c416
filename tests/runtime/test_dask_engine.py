"""Builds on a Dask cluster, also when it loses workers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest

import kbkit
from kbkit.errors import ClusterError, ConfigError
from kbkit.recipes import CrawlSource
from kbkit.runtime.engine import open_engine, perform
from kbkit.sources import SourceContext, open_reader
from kbkit.sources.html.site_extractor import ExtractTask
from kbkit.stores.catalog import corpus

distributed = pytest.importorskip("distributed")

PAGES = 30
DELAY = 0.02  # seconds between two requests, in the recipe


class Site:
    """A site on loopback that records time, path and client of its requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[float, str, str]] = []
        self.answered = threading.Condition()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(handler) -> None:
                with self.answered:
                    at = time.monotonic()
                    self.requests.append((at, handler.path, f"{handler.client_address[1]}"))
                    self.answered.notify_all()
                number = re.fullmatch(r"/(\d+)\.html", handler.path)
                known = handler.path == "/" or (number and int(number[1]) < PAGES)
                body = self.page(int(number[1]) if number else -1).encode() if known else b""
                handler.send_response(200 if known else 404)
                handler.send_header("Content-Type", "text/html; charset=utf-8")
                handler.send_header("Content-Length", str(len(body)))
                handler.end_headers()
                handler.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.address = f"http://127.0.0.1:{self._server.server_port}/"

    def page(self, number: int) -> str:
        """A page in one of two templates that links to two others."""
        text = " ".join(f"Sentence {n} of page {number} is about gardens." for n in range(30))
        links = range(8) if number < 0 else range(2 * number + 6, min(2 * number + 8, PAGES))
        anchors = "".join(f'<li><a href="/{n}.html">Page {n}</a></li>' for n in links)
        column = "left" if number % 2 else "wide"
        return (
            f"<html><head><title>Page {number} - Gardens</title></head><body>"
            f"<table><tr><td><a href='/'>Up</a></td><td>Garden manual</td></tr></table>"
            f"<div class='{column}'><h1>Page {number}</h1><p>{text}</p><h2>More</h2><p>{text}</p>"
            f"</div><ul class='menu'>{anchors}</ul><p>Copyright of nobody</p></body></html>"
        )

    def wait_for(self, count: int) -> None:
        with self.answered:
            assert self.answered.wait_for(lambda: len(self.requests) >= count, 120)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    with closing(Site()) as site:
        yield site


@contextmanager
def begun(path: Path, workspace: Path, engine: str) -> Iterator[Future[kbkit.BuildReport]]:
    """A build in a thread of its own."""
    with ThreadPoolExecutor(1) as threads:
        yield threads.submit(kbkit.build, path, workspace, site=False, engine=engine, trust=True)


@contextmanager
def cluster(workers: int = 2, **options: object) -> Iterator[distributed.LocalCluster]:
    with distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False, **options},
        silence_logs=50,
    ) as started:
        yield started


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    with cluster() as started:
        yield started.scheduler_address


def recipe(folder: Path, address: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "notes.md").write_text("# Notes\n\nPrune in March.\n")
    path = folder / "garden.yaml"
    path.write_text(
        f"name: garden\nsources:\n- type: crawl\n  url: {address}\n  allow_private: true\n"
        f"  delay: {DELAY}\n- type: files\n  path: notes.md\n"
    )
    return path


def contents(workspace: Path) -> tuple[list[object], list[object], list[list[float]]]:
    """What a build makes of its sources: documents and chunks with their ids, and vectors."""
    with kbkit.open(workspace) as opened:
        kb = opened["garden"]
        assert kb.search("sentence about gardens on page 17", limit=5).hits
        documents = [
            (each.id, each.uri, each.title, each.content, each.document_type, each.metadata)
            for each in sorted(kb.documents, key=lambda each: each.uri)
        ]
        chunks = sorted(kb.chunks, key=lambda each: each.id)
        ids, width = [each.id for each in chunks], kb.info().dimensions
        with kb._stores.database.read() as transaction:
            vectors = corpus.vectors_by_id(transaction, width, ids)
        assert vectors.any(axis=1).all()
        return documents, chunks, vectors.tolist()


@pytest.mark.soak
def test_cluster_that_loses_a_worker_builds_the_same(tmp_path, site, scheduler):
    path = recipe(tmp_path, site.address)
    kbkit.build(path, tmp_path / "here", site=False, trust=True)
    here = contents(tmp_path / "here")
    assert len(here[0]) == PAGES + 2
    assert len(here[1]) > PAGES
    one, site.requests = site.requests, []
    with distributed.Client(scheduler, set_as_default=False) as client:
        workers = client.run(os.getpid)
    with begun(path, tmp_path / "there", f"dask:{scheduler}") as building:
        site.wait_for(PAGES // 3)
        os.kill(next(iter(workers.values())), signal.SIGKILL)  # its nanny starts another one
        report = building.result(240)
    assert not report.ingest.failed
    assert contents(tmp_path / "there") == here
    # workers asked, at the pace that this machine kept for all of them
    assert len({client for _, _, client in site.requests}) >= 2
    assert site.requests[-1][0] - site.requests[0][0] >= DELAY * (PAGES - 1)
    assert {path for _, path, _ in site.requests} == {path for _, path, _ in one}


@pytest.mark.slow
def test_build_continues_after_a_lost_cluster(tmp_path, site):
    path = recipe(tmp_path, site.address)
    with cluster(1) as dask, begun(path, tmp_path / "kb", f"dask:{dask.scheduler_address}") as work:
        site.wait_for(PAGES // 2)
        dask.close()
        with pytest.raises(ClusterError, match="stored documents stay, and another build"):
            work.result(120)
    first = len(site.requests)
    report = kbkit.build(path, tmp_path / "kb", site=False, trust=True)
    assert not report.ingest.failed
    assert len(contents(tmp_path / "kb")[0]) == PAGES + 2
    assert len(site.requests) - first <= PAGES + 5


def test_lost_cluster_does_not_mark_pages_unreadable(monkeypatch):
    def fetch(*_, **__):
        raise ClusterError("its scheduler no longer answers")

    monkeypatch.setattr("kbkit.sources.web.urls.Robots.get", fetch)
    spec = CrawlSource(url="http://127.0.0.1:9/", allow_private=True)
    with pytest.raises(ClusterError, match="no longer answers"):
        list(open_reader(spec).events(SourceContext()))


BARE_WORKER = """
import importlib.metadata, sys
known = importlib.metadata.version
def version(name):
    if name == "kbkit":
        if sys.argv[2]:
            return sys.argv[2]
        raise importlib.metadata.PackageNotFoundError(name)
    return known(name)
importlib.metadata.version = version
version.__module__ = "importlib.metadata"
sys.modules["kbkit"] = None
from distributed.cli.dask_worker import main
main([sys.argv[1], "--nthreads", "1", "--no-dashboard", "--no-nanny"])
"""


@contextmanager
def bare_worker(scheduler: str, version: str = "") -> Iterator[None]:
    """A worker that has no kbkit, or says that it has another one."""
    worker = subprocess.Popen(
        [sys.executable, "-c", BARE_WORKER, scheduler, version], stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        worker.kill()
        worker.wait(20)


@pytest.mark.parametrize("version", ["", "99.0"])
def test_worker_without_this_kbkit_is_named(version):
    has = f"has kbkit {version}" if version else "has no kbkit"
    with (
        cluster(0) as dask,
        bare_worker(dask.scheduler_address, version),
        pytest.raises(ClusterError, match=f"its worker tcp://127.* {has}; install kbkit"),
    ):
        open_engine(f"dask:{dask.scheduler_address}")


PAGE = ExtractTask("https://x/", b"<h1>T</h1><p>Text.</p>", "", ())


@pytest.mark.soak
def test_other_workers_take_the_tasks_of_one_that_hangs():
    with cluster(worker_ttl="3s") as dask, distributed.Client(dask, set_as_default=False) as client:
        process = next(iter(client.run(os.getpid).values()))
        engine = open_engine(f"dask:{dask.scheduler_address}")
        try:
            os.kill(process, signal.SIGSTOP)
            results = [engine.pool().submit(PAGE) for _ in range(20)]
            assert {each.result(100).content for each in results} == {"# T\n\nText.\n"}
        finally:
            with suppress(ProcessLookupError):  # Dask has started it again
                os.kill(process, signal.SIGCONT)
            engine.close()


def test_task_that_hangs_is_the_only_one_lost(scheduler):
    class Hangs:
        """A local class, since workers cannot import this module."""

        seconds = 0.2

        def perform(self) -> None:
            threading.Event().wait()

        def broken(self, reason: str) -> str:
            return reason

    with closing(open_engine(f"dask:{scheduler}")) as engine:
        pool = engine.pool()
        late = perform(pool, [Hangs()] * 4)
        assert {each.partition(" on tcp://")[0] for each in late} == {"took longer than 0.2 s"}
        assert perform(pool, [PAGE])[0].content


@pytest.mark.soak
def test_build_hides_output_of_dask(tmp_path):
    (tmp_path / "notes.md").write_text("# Notes\n\nPrune in March.\n")
    path = tmp_path / "garden.yaml"
    path.write_text("name: garden\nsources:\n- type: files\n  path: notes.md\n")
    command = [sys.executable, "-m", "kbkit", "--workspace", tmp_path / "kb", "build", path]
    command += ["--no-site", "--engine", "dask"]
    built = subprocess.run(command, capture_output=True, text=True, check=True)
    assert built.stderr.splitlines() == ["built garden"]


LOGS = """
import contextlib, logging, sys
from kbkit import errors
from kbkit.runtime import engine
from kbkit.runtime import logs
logs.configure(int(sys.argv[1]))
with contextlib.suppress(errors.ClusterError):
    engine.open_engine("dask:nonsense://x")
logging.getLogger("distributed.scheduler").info("Lost all workers")
"""


@pytest.mark.parametrize(("level", "output"), [("0", ""), ("1", "kbkit: Lost all workers\n")])
def test_dask_logs_are_shown_when_verbose(level, output):
    command = [sys.executable, "-c", LOGS, level]
    logged = subprocess.run(command, capture_output=True, text=True, check=True)
    assert logged.stderr == output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "error", "message"),
    [
        ("spark", ConfigError, "choose local, dask or dask:ADDRESS"),
        ("dask:tcp://127.0.0.1:1", ClusterError, "is its scheduler running, with a worker?"),
        ("dask:nonsense://x", ClusterError, "cannot be used"),
    ],
)
def test_unusable_engine_is_refused(tmp_path, monkeypatch, engine, error, message):
    monkeypatch.setattr("kbkit.runtime.engine._CONNECT_TIMEOUT", 2)
    path = recipe(tmp_path, "http://127.0.0.1:1/")
    with pytest.raises(error) as raised:
        kbkit.build(path, tmp_path / "kb", engine=engine, trust=True)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_task_that_crashes_is_the_only_one_lost(scheduler):
    with closing(open_engine(f"dask:{scheduler}")) as engine:
        pool = engine.child_processes(preload="kbkit.sources.html.extract")
        assert [each.content for each in perform(pool, [PAGE] * 4)] == ["# T\n\nText.\n"] * 4
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):  # one of another test
                if "kbkit.runtime.processes" in process.cmdline():
                    process.kill()
        after = perform(pool, [PAGE] * 6)
        assert {each.reason for each in after if each.failed} == {"the process that did it ended"}
        assert after[-1].content
