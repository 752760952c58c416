"""Lighthouse on a published site: its home, a document and the search, on a phone and a desktop.

    python tests/lighthouse.py [SITE] [--document PAGE]

SITE is a built site; by default the one of `make demo`. The first run installs Lighthouse into
``build/lighthouse``; it needs Chromium. Fails if a category is below 95 in the best of three runs.

Lighthouse simulates a phone by slowing the processor down to a quarter, which supposes a fast one.
The phone, a Moto G Power, has 264 points of Lighthouse's benchmark, so slower machines are slowed
down to that only.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "build" / "demo" / "kb" / "export" / "quickstart" / "site"
TOOLS = ROOT / "build" / "lighthouse"
VERSION = "12.8.2"  # the last that runs under Node 18
FLOOR = 95
RUNS = 3
SLOWDOWN = 4.0  # Lighthouse's own
PHONE = 264  # points of the phone in Lighthouse's benchmark, by Chromium's CalibrationController
FLAGS = "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run"
FLAGS += " --disable-background-networking --disable-component-update --disable-sync"


def main() -> None:
    """Measure all pages, print a table."""
    parser = argparse.ArgumentParser(description="Lighthouse on a published site.")
    parser.add_argument("site", nargs="?", type=Path, default=DEMO)
    parser.add_argument("--document", default="", help="page of a document, below the site")
    options = parser.parse_args()
    if not (options.site / "index.html").is_file():
        sys.exit(f"lighthouse: {options.site}: no site here; run `make demo`, or name another one")
    first = json.loads((options.site / "documents.json").read_bytes())["documents"][0]
    pages = {
        "home": "index.html",
        "document": options.document or str(first["page"]).removesuffix(".md") + ".html",
        "search": "search/index.html?query=" + quote(str(first["title"])),
    }
    command = lighthouse()
    low = []
    points = SLOWDOWN * PHONE
    with served(options.site) as base:
        for device in ("phone", "desktop"):
            for name, path in pages.items():
                run = best(command, base + path, device, points)
                points = run.points
                shown = "  ".join(f"{kind} {score}" for kind, score in run.scores.items())
                slowed = f"  (slowed down {run.slowdown:.1f} times)" if run.slowdown else ""
                print(f"{device:8} {name:9} {shown}{slowed}", flush=True)
                for line in run.trouble:
                    print(f"    {line}")
                low += [name for score in run.scores.values() if score < FLOOR]
    if low:
        sys.exit(f"lighthouse: below {FLOOR}")


def lighthouse() -> Path:
    """Return the command, installed if needed."""
    command = TOOLS / "node_modules" / ".bin" / "lighthouse"
    if not command.is_file():
        npm = shutil.which("npm") or sys.exit("lighthouse: needs npm and Node 18 or newer")
        TOOLS.mkdir(parents=True, exist_ok=True)
        (TOOLS / "package.json").write_text('{"private": true}')
        quiet = ["--silent", "--no-audit", "--no-fund"]
        subprocess.run([npm, "install", *quiet, f"lighthouse@{VERSION}"], cwd=TOOLS, check=True)
    return command


@dataclass(frozen=True, slots=True)
class Run:
    """Result of Lighthouse for a page.

    Attributes:
        scores: Points of each category, of 100.
        trouble: Audits that lost points.
        points: Of the machine, in Lighthouse's benchmark.
        slowdown: How many times the processor was slowed down; 0 on a desktop.
    """

    scores: dict[str, int]
    trouble: list[str]
    points: float
    slowdown: float


def best(command: Path, url: str, device: str, points: float) -> Run:
    """Return the best of up to `RUNS` runs; ``points`` are the machine's before the first one."""
    runs: list[Run] = []
    while len(runs) < RUNS and not (runs and min(runs[-1].scores.values()) >= FLOOR):
        slowdown = max(1.0, min(SLOWDOWN, points / PHONE)) if device == "phone" else 0
        runs.append(measure(command, url, slowdown))
        points = runs[-1].points
    return max(runs, key=lambda run: min(run.scores.values()))


def measure(command: Path, url: str, slowdown: float) -> Run:
    """Run once, on a phone with this slowdown or, with 0, on a desktop."""
    result = TOOLS / "result.json"
    call = [str(command), url, "--quiet", "--output=json", f"--output-path={result}"]
    call += [f"--chrome-flags={FLAGS}"]
    call += [f"--throttling.cpuSlowdownMultiplier={slowdown}"] if slowdown else ["--preset=desktop"]
    chromium = shutil.which("chromium") or shutil.which("google-chrome") or ""
    subprocess.run(call, check=True, env={**os.environ, "CHROME_PATH": chromium})
    report = json.loads(result.read_text(encoding="utf-8"))
    scores, trouble = {}, []
    for kind, category in report["categories"].items():
        scores[kind] = round(100 * (category["score"] or 0))
        for reference in category["auditRefs"]:
            audit = report["audits"][reference["id"]]
            if reference["weight"] and audit["score"] is not None and audit["score"] < 0.9:
                trouble.append(f"{kind}: {audit['title']} {audit.get('displayValue', '')}")
    return Run(scores, trouble, report["environment"]["benchmarkIndex"], slowdown)


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve a site compressed, and yield its address."""

    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = Path(self.translate_path(self.path))
            found = path.is_file()
            data = gzip.compress((path if found else site / "404.html").read_bytes())
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", self.guess_type(path) if found else "text/html")
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Cache-Control", "max-age=600")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site)))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    main()
