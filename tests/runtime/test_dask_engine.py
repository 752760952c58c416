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
from kbkit.errors import ClusterError, ConfigError
from kbkit.runtime.engine import open_engine, perform
from kbkit.sources.html.site_extractor import ExtractTask
from kbkit.sources.web import Response
from kbkit.sources.web.pages import Downloads, PageRequest
from kbkit.stores.catalog import corpus
from tests.waiting import until

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
        yield threads.submit(kbkit.build, path, workspace, site=False, engine=engine, trust=True)


@contextmanager
def cluster(workers: int = 2) -> Iterator[distributed.LocalCluster]:
    with distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
        silence_logs=50,
    ) as made:
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
            vectors = corpus.vectors_by_id(transaction, kb.id, width, ids)
        assert vectors.any(axis=1).all()
        return documents, chunks, vectors.tolist()


@pytest.mark.soak
def test_a_cluster_that_loses_a_worker_builds_what_this_machine_builds(tmp_path, site, scheduler):
    path = recipe(tmp_path, site.address)
    kbkit.build(path, tmp_path / "here", site=False, trust=True)
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


@pytest.mark.slow
def test_a_cluster_that_is_lost_says_so_and_the_next_build_goes_on(tmp_path, site):
    path = recipe(tmp_path, site.address)
    with cluster(1) as made, begun(path, tmp_path / "kb", f"dask:{made.scheduler_address}") as work:
        site.wait_for(PAGES // 2)
        made.close()
        with pytest.raises(ClusterError, match="stored documents stay, and another build"):
            work.result(120)
    first = len(site.asked)
    report = kbkit.build(path, tmp_path / "kb", site=False, trust=True)
    assert not report.ingest.failed
    assert len(contents(tmp_path / "kb")[0]) == PAGES + 2
    assert len(site.asked) - first <= PAGES + 5


class _Lost:
    """Stands for a fetcher while the cluster goes, which a real one does within milliseconds."""

    def get(self, url: str, **options: object) -> Response:
        raise ClusterError("its scheduler no longer answers")

    def verdict(self, url: str) -> None:
        pass

    def wait(self, url: str) -> bool:
        return True

    def stop(self) -> bool:
        return False


def test_a_page_is_not_called_unreadable_since_the_cluster_is_lost():
    """Else the build that goes on would leave it out."""
    lost = _Lost()
    downloads = Downloads(lost, lost, lambda task, url: None, concurrency=1)
    downloads.start(PageRequest("http://127.0.0.1:9/", 0, "", None))
    with pytest.raises(ClusterError, match="no longer answers"):
        downloads.poll(60)
    downloads.close()


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
def test_a_worker_without_this_kbkit_is_named(version):
    has = f"has kbkit {version}" if version else "has no kbkit"
    with (
        cluster(0) as made,
        bare_worker(made.scheduler_address, version),
        pytest.raises(ClusterError, match=f"its worker tcp://127.* {has}; install kbkit"),
    ):
        open_engine(f"dask:{made.scheduler_address}")


PAGE = ExtractTask("https://x/", b"<h1>T</h1><p>Text.</p>", "", ())


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks at workers more often than is needed otherwise."""
    monkeypatch.setattr("kbkit.runtime.engine._CHECK_INTERVAL", 0.2)
    monkeypatch.setattr("kbkit.runtime.engine._SILENCE_LIMIT", 2)
    monkeypatch.setattr("kbkit.runtime.engine._REPLY_TIMEOUT", 2)


@pytest.mark.slow
def test_a_worker_that_comes_later_without_kbkit_is_left_out(scheduler, quick, caplog):
    engine = open_engine(f"dask:{scheduler}")
    try:
        with bare_worker(scheduler):
            # before it has a task: one that it cannot read ends it, and nothing is left to tell of
            until(lambda: "others do its tasks" in caplog.text)
            made = perform(engine.pool(), [PAGE] * 20)
    finally:
        engine.close()
    assert [each.content for each in made] == ["# T\n\nText.\n"] * 20
    assert "has no kbkit; install kbkit" in caplog.text


@pytest.mark.parametrize("stopped", ["before", "while it is asked"])
@pytest.mark.soak
def test_others_do_the_tasks_of_a_worker_that_hangs(scheduler, quick, caplog, stopped):
    """Dask itself would wait for five minutes, which are what its schedulers are set to."""
    with distributed.Client(scheduler, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        address, process = next(iter(client.run(os.getpid).items()))
    if stopped == "before":
        os.kill(process, signal.SIGSTOP)
    engine = open_engine(f"dask:{scheduler}")
    try:
        os.kill(process, signal.SIGSTOP)
        asked = [engine.pool().submit(PAGE) for _ in range(20)]
        assert {each.result(100).content for each in asked} == {"# T\n\nText.\n"}
    finally:
        os.kill(process, signal.SIGCONT)
        engine.close()
    said = "does not answer" if stopped == "before" else "has given no sign of life for 2 s"
    assert f"its worker {address} {said}; others do its tasks" in caplog.text


def test_a_task_that_hangs_in_a_worker_costs_itself_only(scheduler):
    class Hangs:
        """Sent as it is: its module is not where workers could import it from."""

        seconds = 0.2

        def perform(self) -> None:
            threading.Event().wait()

        def broken(self, reason: str) -> str:
            return reason

    engine = open_engine(f"dask:{scheduler}")
    try:
        pool = engine.pool()
        late = perform(pool, [Hangs()] * 4)
        assert {each.partition(" on tcp://")[0] for each in late} == {"took longer than 0.2 s"}
        assert perform(pool, [PAGE])[0].content
    finally:
        engine.close()


@pytest.mark.soak
def test_a_build_shows_nothing_of_dask(tmp_path):
    (tmp_path / "notes.md").write_text("# Notes\n\nPrune in March.\n")
    path = tmp_path / "garden.yaml"
    path.write_text("name: garden\nsources:\n- type: files\n  path: notes.md\n")
    command = [sys.executable, "-m", "kbkit", "--workspace", tmp_path / "kb", "build", path]
    built = subprocess.run(
        [*command, "--no-site", "--engine", "dask"], capture_output=True, text=True, check=True
    )
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


@pytest.mark.parametrize(("level", "said"), [("0", ""), ("1", "kbkit: Lost all workers\n")])
def test_what_dask_logs_is_shown_to_those_who_ask_for_it(level, said):
    logged = subprocess.run(
        [sys.executable, "-c", LOGS, level], capture_output=True, text=True, check=True
    )
    assert logged.stderr == said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "error", "said"),
    [
        ("spark", ConfigError, "choose local, dask or dask:ADDRESS"),
        ("dask:tcp://127.0.0.1:1", ClusterError, "is its scheduler running, with a worker?"),
        ("dask:nonsense://x", ClusterError, "cannot be used"),
    ],
)
def test_an_engine_that_cannot_be_had_is_one_clear_error(
    tmp_path, monkeypatch, engine, error, said
):
    monkeypatch.setattr("kbkit.runtime.engine._CONNECT_TIMEOUT", 2)
    with pytest.raises(error) as raised:
        kbkit.build(
            recipe(tmp_path, "http://127.0.0.1:1/"), tmp_path / "kb", engine=engine, trust=True
        )
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_a_task_that_crashes_costs_itself_only(scheduler):
    engine = open_engine(f"dask:{scheduler}")
    try:
        pool = engine.child_processes(preload="kbkit.sources.html.extract")
        assert [each.content for each in perform(pool, [PAGE] * 4)] == ["# T\n\nText.\n"] * 4
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):  # one of another test
                if "kbkit.runtime.processes" in process.cmdline():
                    process.kill()
        after = perform(pool, [PAGE] * 6)
        assert {each.reason for each in after if each.failed} == {"the process that did it ended"}
        assert after[-1].content
    finally:
        engine.close()
