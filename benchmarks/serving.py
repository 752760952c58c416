"""A server under load: clients read and write at once.

20,000 chunks of the Python documentation. Clients search, ask for contexts, read and add documents,
append to files, vote and rate, each with its own connection and pauses between requests. Afterwards
every acknowledged write is looked up. Slow answers are listed by time. Beside it, in the same run,
a bare FastAPI handler returns the bytes of a search's answer.

Run from the project's root: ``python benchmarks/serving.py [--seconds 120] [--clients 50]
[--pause 1.0 0.5]``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

from _clients import Order
from _corpora import assorted_questions, bench_folder, python_manual, report, table

import kbkit
from kbkit.access import Tokens

HERE = Path(__file__).parent
BARE = """
import socket, sys
import fastapi, uvicorn
app = fastapi.FastAPI()
body = sys.stdin.buffer.read()
@app.post("/api/knowledge/search")
def search(query: dict) -> fastapi.Response:
    return fastapi.Response(body, media_type="application/json")
listening = socket.create_server(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
config = uvicorn.Config(app, log_config=None, access_log=False, timeout_keep_alive=60)
uvicorn.Server(config).run([listening])
"""


@contextmanager
def started(command: Sequence[str | Path], stdin: bytes = b"") -> Iterator[str]:
    """Start a server in its own process and yield its address."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if stdin:
            process.stdin.write(stdin)
            process.stdin.close()
        for line in process.stdout:
            if found := re.search(rb"http://[\d.]+:\d+", line):
                yield found[0].decode()
                break
        else:
            raise SystemExit("the server did not start")
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def load(order: Order) -> dict[str, Any]:
    """Run the clients in their own process."""
    done = subprocess.run(
        [sys.executable, HERE / "_clients.py"],
        input=json.dumps(asdict(order)).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


def lost(workspace: kbkit.Workspace, kb: kbkit.KnowledgeBase, written: dict[str, Any]) -> int:
    """Count the acknowledged writes that are missing."""
    missing = 0
    titles = {document.title for document in kb.documents}
    missing += len(set(written.get("add a document", ())) - titles)
    lines = [
        line
        for name in workspace.files.list("load")
        for line in workspace.files.read(name.path).splitlines()
    ]
    appended = written.get("append to a file", [])
    missing += sum(lines.count(line) != 1 for line in appended)
    voters = {vote.rater for vote in workspace.entries.read("under-load").rating.votes}
    missing += len(set(written.get("vote for an entry", ())) - voters)
    raters = {rating.rater for rating in kb.ratings}
    missing += len(set(written.get("rate a chunk", ())) - raters)
    return missing


def row(kind: str, times: Sequence[float], seconds: float) -> list[str]:
    ordered = sorted(times)
    p95 = ordered[int(len(ordered) * 0.95)]
    shown = [f"{each * 1000:.1f}" for each in (median(ordered), p95, ordered[-1])]
    return [kind, str(len(ordered)), f"{len(ordered) / seconds:.1f}", *shown]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--pause", type=float, nargs="+", default=[1.0, 0.5])
    parser.add_argument("--workspace", type=Path, help="a copy of one, with its knowledge base")
    parser.add_argument("--kb", default="")
    options = parser.parse_args()
    asked = assorted_questions()
    lines: list[str] = []
    with bench_folder() as folder:
        path = options.workspace or folder / "kb"
        with kbkit.open(path) as workspace:
            kb = workspace[options.kb] if options.kb else python_manual(workspace, folder)
            kb.improve()
            if "under-load" not in [each.slug for each in workspace.entries.list()]:
                workspace.entries.create("Under load", slug="under-load", prompt="Stand it.")
            workspace.files.write("load/shared.md", "# What all read\n\nIt stays.\n")
            name, chunks = kb.name, kb.info().chunks
            token = Tokens(workspace).create(f"load-{os.getpid()}", scope="write").token
            body = json.dumps(kb.search(asked[0]).to_dict()).encode()
        serve = [sys.executable, "-m", "kbkit", "--workspace", path, "serve", "--port", "0"]
        for pause in options.pause:
            with started([*serve, "--rate", "0", "--until-stdin-closes"]) as url:
                run = f"{os.getpid()}-{pause:g}"
                order = Order(url, token, name, options.clients, options.seconds, pause, asked, run)
                seen = load(order)
            with kbkit.open(path) as workspace:
                gone = lost(workspace, workspace[name], seen["written"])
            with started([sys.executable, "-c", BARE], body) as url:
                bare = load(replace(order, url=url, seconds=order.seconds / 6))
            answered = sum(map(len, seen["written"].values()))
            lines += [
                f"{options.clients} clients on {chunks:,} chunks for {options.seconds:g} s, "
                f"pauses of {pause:g} s on average. {answered:,} writes answered, {gone} of them "
                f"lost; answered with errors: {sum(seen['failed'].values())}.",
                "",
            ]
            lines += [f"- {error}: {count}" for error, count in seen["failed"].items()]
            rows = [row(kind, seen["times"][kind], options.seconds) for kind in seen["times"]]
            rows.append(row("a bare handler", bare["times"]["search"], options.seconds / 6))
            head = ["", "answers", "a second", "p50, ms", "p95, ms", "longest, ms"]
            lines += [*table(head, rows), ""]
            slow = [[f"{at:.1f}", kind, f"{took:.2f}"] for at, kind, took in sorted(seen["slow"])]
            lines += [*table(["slow answers: sent at, s", "", "took, s"], slow), ""]
    report("serving", lines)


if __name__ == "__main__":
    main()
