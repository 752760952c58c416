"""Builds on a cluster of Dask: the same as here, whatever becomes of its workers."""

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
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest

import kbkit
from kbkit.engine import open_engine, perform
from kbkit.errors import ClusterError, ConfigError
from kbkit.sources.html.extract_task import ExtractTask

distributed = pytest.importorskip("distributed")

PAGES = 30
ASKED = 0.02  # seconds between two requests to a host that the recipe asks for


class Site:
    """A site on loopback that remembers who asked for what, and when."""

    def __init__(self) -> None:
        self.asked: list[tuple[float, str, str]] = []
        self.answered = threading.Condition()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(handler) -> None:
                with self.answered:
                    at = time.monotonic()
                    self.asked.append((at, handler.path, f"{handler.client_address[1]}"))
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
        """Half of the pages have another template, and each links to two others."""
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

    def wait_for(self, requests: int) -> None:
        with self.answered:
            assert self.answered.wait_for(lambda: len(self.asked) >= requests, 120)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


@contextmanager
def begun(path: Path, workspace: Path, engine: str) -> Iterator[Future[kbkit.BuildReport]]:
    """A build in a thread of its own."""
    with ThreadPoolExecutor(1) as threads:
        yield threads.submit(kbkit.build, path, workspace, site=False, engine=engine)


@contextmanager
def cluster(workers: int = 2) -> Iterator[distributed.LocalCluster]:
    with distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, host="127.0.0.1",
        dashboard_address="127.0.0.1:0", scheduler_kwargs={"dashboard": False}, silence_logs=50,
    ) as made:  # fmt: skip
        yield made


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    with cluster() as made:
        yield made.scheduler_address


def recipe(folder: Path, address: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "notes.md").write_text("# Notes\n\nPrune in March.\n")
    path = folder / "garden.yaml"
    path.write_text(
        f"name: garden\nsources:\n- type: crawl\n  url: {address}\n  allow_private: true\n"
        f"  delay: {ASKED}\n- type: files\n  path: notes.md\n"
    )
    return path


def contents(workspace: Path) -> tuple[list[object], list[object]]:
    """What a build makes of its sources: documents and chunks, with their ids."""
    with kbkit.open(workspace) as opened:
        kb = opened["garden"]
        assert kb.search("sentence about gardens on page 17", limit=5).hits
        documents = [
            (each.id, each.uri, each.title, each.content, each.document_type, each.metadata)
            for each in sorted(kb.documents, key=lambda each: each.uri)
        ]
        return documents, sorted(kb.chunks, key=lambda each: each.id)


def test_a_cluster_that_loses_a_worker_builds_what_this_machine_builds(tmp_path, site, scheduler):
    path = recipe(tmp_path, site.address)
    kbkit.build(path, tmp_path / "here", site=False)
    here = contents(tmp_path / "here")
    assert len(here[0]) == PAGES + 2
    assert len(here[1]) > PAGES
    one, site.asked = site.asked, []
    with distributed.Client(scheduler, set_as_default=False) as client:
        workers = client.run(os.getpid)
    with begun(path, tmp_path / "there", f"dask:{scheduler}") as building:
        site.wait_for(PAGES // 3)
        os.kill(next(iter(workers.values())), signal.SIGKILL)  # its nanny starts another one
        report = building.result(240)
    assert not report.ingest.failed
    assert contents(tmp_path / "there") == here
    # workers asked, at the pace that this machine kept for all of them
    assert len({client for _, _, client in site.asked}) >= 2
    assert site.asked[-1][0] - site.asked[0][0] >= ASKED * (PAGES - 1)
    assert {path for _, path, _ in site.asked} == {path for _, path, _ in one}


def test_a_cluster_that_is_lost_says_so_and_the_next_build_goes_on(tmp_path, site):
    path = recipe(tmp_path, site.address)
    with cluster(1) as made, begun(path, tmp_path / "kb", f"dask:{made.scheduler_address}") as work:
        site.wait_for(PAGES // 2)
        made.close()
        with pytest.raises(ClusterError, match="what was stored stays, and building again"):
            work.result(120)
    first = len(site.asked)
    report = kbkit.build(path, tmp_path / "kb", site=False)
    assert len(contents(tmp_path / "kb")[0]) == PAGES + 2
    assert not report.ingest.failed
    assert len(site.asked) - first <= PAGES + 5


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
from distributed.cli.dask_worker import main
main([sys.argv[1], "--nthreads", "1", "--no-dashboard", "--no-nanny"])
"""


@pytest.mark.parametrize("version", ["", "99.0"])
def test_a_worker_without_this_kbkit_is_named(version):
    has = f"has kbkit {version}" if version else "has no kbkit"
    with cluster(0) as made:
        worker = subprocess.Popen(
            [sys.executable, "-c", BARE_WORKER, made.scheduler_address, version],
            stderr=subprocess.DEVNULL,
        )
        try:
            with pytest.raises(ClusterError, match=f"its worker tcp://127.* {has}; install kbkit"):
                open_engine(f"dask:{made.scheduler_address}")
        finally:
            worker.kill()
            worker.wait(20)


@pytest.mark.parametrize(
    ("engine", "error", "said"),
    [
        ("spark", ConfigError, "it is local, dask or dask:ADDRESS"),
        ("dask:tcp://127.0.0.1:1", ClusterError, "is its scheduler running, with a worker?"),
        ("dask:nonsense://x", ClusterError, "cannot be used"),
    ],
)
def test_an_engine_that_cannot_be_had_is_one_clear_error(
    tmp_path, monkeypatch, engine, error, said
):
    monkeypatch.setattr("kbkit.dask_engine._CONNECT", 2)
    with pytest.raises(error) as raised:
        kbkit.build(recipe(tmp_path, "http://127.0.0.1:1/"), tmp_path / "kb", engine=engine)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_task_that_crashes_costs_itself_only(scheduler):
    engine = open_engine(f"dask:{scheduler}")
    try:
        pool = engine.child_processes(preload="kbkit.sources.html.extract")
        page = ExtractTask("https://x/", b"<h1>T</h1><p>Text.</p>", "", ())
        assert [each.content for each in perform(pool, [page] * 4)] == ["# T\n\nText.\n"] * 4
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):  # one of another test
                if "kbkit.processes" in process.cmdline():
                    process.kill()
        after = perform(pool, [page] * 6)
        assert {each.reason for each in after if each.failed} == {"the process that did it ended"}
        assert after[-1].content
    finally:
        engine.close()
