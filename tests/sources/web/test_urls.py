"""Canonical addresses, and the worker processes' promises."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from kbkit.processes import Workers
from kbkit.sources.html.extract_task import ExtractTask
from kbkit.sources.web.urls import canonical, index_alias

BASE = "https://docs.example/a/b.html"


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("c.html#x", "https://docs.example/a/c.html"),
        ("../../d", "https://docs.example/d"),
        ("HTTPS://DOCS.Example:443/X/./y/../z", "https://docs.example/X/z"),
        ("http://docs.example:80", "http://docs.example/"),
        ("http://docs.example:8080/", "http://docs.example:8080/"),
        ("/%7euser/%c3%bc ü", "https://docs.example/~user/%C3%BC%20%C3%BC"),
        ("/x?b=2&a=1&utm_source=q&PHPSESSID=1", "https://docs.example/x?b=2&a=1"),
        ("/x;jsessionid=12?y", "https://docs.example/x?y"),
        ("//other.example/x", "https://other.example/x"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://[::1]:81/", "http://[::1]:81/"),
        ("/100%", "https://docs.example/100%25"),
        ("mailto:a@b", ""),
        ("javascript:x", ""),
        ("http://[::1", ""),
        ("http://x:port/", ""),
        ("http:///x", ""),
    ],
)
def test_one_form_for_each_address(href: str, url: str) -> None:
    assert canonical(href, BASE) == url
    if url:
        assert canonical(url) == url


def test_index_pages_are_their_folder() -> None:
    assert index_alias("https://x/a/") == "https://x/a/index.html"
    assert index_alias("https://x/a/index.html") == "https://x/a/"
    assert index_alias("https://x/a/b.html") == ""


def test_a_worker_that_dies_costs_one_page() -> None:
    workers = Workers(1)
    try:
        results: list = []
        done = threading.Event()

        def took(page) -> None:
            results.append(page)
            done.set()

        for _ in range(2):
            (process,) = workers._processes
            os.kill(process.pid, signal.SIGKILL)
            process.wait(5)
            done.clear()
            workers.submit(ExtractTask("https://x/", b"<h1>T</h1><p>Text.</p>", "", ()), took)
            assert done.wait(20)
            done.clear()
            workers.submit(ExtractTask("https://x/", b"<h1>T</h1><p>Text.</p>", "", ()), took)
            assert done.wait(20)
        assert [bool(page.content) for page in results] == [False, True, False, True]
        assert results[0].failed
        assert "process" in results[0].reason
    finally:
        workers.close()


def test_a_script_without_a_main_guard_may_crawl_with_processes(tmp_path) -> None:
    """Worker processes that imported the script again would start the work again."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        from kbkit.sources.html.site_extractor import SiteExtractor
        print("once")
        reader = SiteExtractor(processes=2, expected=100)
        for n in range(40):
            reader.submit(n, f"https://x/{n}", b"<h1>T</h1><p>Some text here.</p>", "")
        done = 0
        while reader.pending:
            if not reader.busy:
                reader.settle()
            reading = reader.poll(1)
            done += bool(reading and reading.final)
        assert reader._workers is not None
        reader.close()
        print(done)
        """)
    )
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.stdout.split() == ["once", "40"], run.stderr
