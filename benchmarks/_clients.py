"""Clients that put load on a server, each with its own connection.

As a program it reads an `Order` as JSON and writes `Seen`, so that clients take no time from the
server's process.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

SHARES = {
    "search": 50,
    "context": 5,
    "read a document": 10,
    "read a file": 5,
    "list entries": 5,
    "add a document": 3,
    "append to a file": 8,
    "vote for an entry": 6,
    "rate a chunk": 8,
}
"""Of 100 requests, how many are of each kind."""
WARM = 5.0
"""Seconds at the beginning that are not measured."""
SLOW = 0.5
"""Seconds above which an answer is listed by itself."""


@dataclass
class Order:
    """The work of the clients.

    Attributes:
        url: Address of the server.
        token: Token of the requests.
        kb: Knowledge base to search and write to.
        clients: Number of clients.
        seconds: Duration.
        pause: Mean seconds between an answer and the next request.
        questions: Queries to draw from.
        name: Prefix of everything the run writes.
    """

    url: str
    token: str
    kb: str
    clients: int
    seconds: float
    pause: float
    questions: list[str]
    name: str


@dataclass
class Seen:
    """The answers that clients received.

    Attributes:
        times: Seconds of each answer, by kind of request.
        slow: Answers above `SLOW` seconds: seconds since the start, kind, seconds it took.
        failed: Number of errors, by kind and status.
        written: Notes of successful writes, by kind.
    """

    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    slow: list[tuple[float, str, float]] = field(default_factory=list)
    failed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    written: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))


class Client:
    def __init__(self, number: int, order: Order) -> None:
        parts = urlsplit(order.url)
        self.number, self.order = number, order
        self.chance = random.Random(number)
        self.connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        self.headers = {
            "Authorization": f"Bearer {order.token}",
            "Content-Type": "application/json",
        }
        self.kb, self.questions = order.kb, order.questions
        self.found: list[dict[str, Any]] = []
        self.seen = Seen()
        self.count = 0

    def run(self) -> None:
        seconds, pause = self.order.seconds, self.order.pause
        began = time.perf_counter()
        time.sleep(self.chance.random() * pause)
        while (now := time.perf_counter()) < began + seconds:
            kind = self.chance.choices(list(SHARES), list(SHARES.values()))[0]
            method, path, body, note = self.request(kind)
            sent = time.perf_counter()
            status, answer = self.ask(method, path, body)
            took = time.perf_counter() - sent
            if now > began + min(WARM, seconds / 4):
                self.seen.times[kind].append(took)
                if took > SLOW:
                    self.seen.slow.append((now - began, kind, took))
            if status >= 400:
                self.seen.failed[f"{kind}: {status} {answer[:200]!r}"] += 1
            elif note is not None:
                self.seen.written[kind].append(note)
            elif kind == "search":
                self.found = json.loads(answer)["hits"] or self.found
            time.sleep(self.chance.expovariate(1 / pause) if pause else 0)

    def ask(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        """Send a request and return its status and body."""
        text = body if isinstance(body, bytes) or body is None else json.dumps(body)
        self.connection.request(method, path, text, self.headers)
        response = self.connection.getresponse()
        return response.status, response.read()

    def request(self, kind: str) -> tuple[str, str, Any, Any]:
        """Return method, path and body of a request, and what must exist once it has succeeded."""
        question = self.chance.choice(self.questions)
        self.count += 1
        name = f"{self.order.name}-{self.number}-{self.count}"
        hit = self.chance.choice(self.found) if self.found else None
        if kind == "context":
            return "POST", "/api/knowledge/context", {"query": question, "kb": self.kb}, None
        if kind == "read a document" and hit:
            return "GET", f"/api/knowledge/documents/{hit['document_id']}?kb={self.kb}", None, None
        if kind == "read a file":
            return "GET", "/api/files/load/shared.md", None, None
        if kind == "list entries":
            return "GET", "/api/entries?limit=20", None, None
        if kind == "add a document":
            content = f"Client wrote {name}x."
            body: Any = {"kb": self.kb, "title": f"Load {name}", "content": content}
            return "POST", "/api/knowledge/documents", body, f"Load {name}"
        if kind == "append to a file":
            line = f"line {name} of a client"
            return "POST", f"/api/files/load/{self.number % 5}.md", line.encode(), line
        if kind == "vote for an entry":
            rater = f"client-{name}"
            return "POST", "/api/entries/under-load/rate", {"score": 4, "rater": rater}, rater
        if kind == "rate a chunk" and hit:
            body = {"score": 3, "query": question, "rater": f"client-{name}"}
            path = f"/api/knowledge/chunks/{hit['chunk_id']}/rate?kb={self.kb}"
            return "POST", path, body, f"client-{name}"
        return "POST", "/api/knowledge/search", {"query": question, "kb": self.kb}, None


def run(order: Order) -> Seen:
    """Run all clients and join what they saw."""
    many = [Client(number, order) for number in range(order.clients)]
    threads = [threading.Thread(target=each.run) for each in many]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = Seen()
    for each in many:
        whole.slow += each.seen.slow
        for kind, times in each.seen.times.items():
            whole.times[kind] += times
        for kind, notes in each.seen.written.items():
            whole.written[kind] += notes
        for error, count in each.seen.failed.items():
            whole.failed[error] += count
    return whole


if __name__ == "__main__":
    json.dump(vars(run(Order(**json.load(sys.stdin)))), sys.stdout)
