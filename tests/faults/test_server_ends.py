"""A server is killed or terminated during writes: acknowledged writes stay."""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import httpx
import pytest

import kbkit
from tests.faults.served import Served, admin_token

LONG = "KBKIT_EXAMPLES" in os.environ  # `make soak`
KILLS, WRITERS = (10, 8) if LONG else (1, 3)


class Writer(threading.Thread):
    """Writes until the server ends; `busy` is set after several answers or at the end."""

    def __init__(self, served: Served, name: str) -> None:
        super().__init__(name=name)
        self.served = served
        self.asked: list[tuple[str, str]] = []
        self.answered: list[tuple[str, str]] = []
        self.wrong: list[str] = []
        self.busy = threading.Event()

    def run(self) -> None:
        try:
            self.write()
        finally:
            self.busy.set()

    def write(self) -> None:
        with httpx.Client(
            base_url=self.served.url, headers=self.served.headers, timeout=60
        ) as client:
            number = 0
            while True:
                number += 1
                text = f"{self.name}-{number}"
                for kind in ("document", "file", "vote", "rating"):
                    self.asked.append((kind, text))
                    try:
                        answer = self.send(client, kind, text)
                    except httpx.TransportError:
                        return
                    if answer.status_code == 503:
                        return  # it is about to end
                    if answer.is_success:
                        self.answered.append((kind, text))
                        if len(self.answered) == 4:
                            self.busy.set()
                    else:
                        self.wrong.append(answer.text)

    def send(self, client: httpx.Client, kind: str, text: str) -> httpx.Response:
        if kind == "document":
            body = {"kb": "drinks", "title": text, "content": f"What {text}x says."}
            return client.post("/api/knowledge/documents", json=body)
        if kind == "file":
            return client.post("/api/files/notes.md", content=f"line {text}\n")
        if kind == "vote":
            return client.post("/api/entries/brew-tea/rate", json={"score": 5, "rater": text})
        path = f"/api/knowledge/bases/drinks/targets/{self.target(client)}/ratings"
        return client.post(path, json={"score": 4, "rater": text})

    def target(self, client: httpx.Client) -> str:
        listed = client.get("/api/knowledge/documents", params={"kb": "drinks", "limit": 1})
        return str(listed.json()["data"][0]["id"])


@pytest.fixture
def folder(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        workspace.create("drinks").add("Tea", "Steep tea for two minutes.", source="text:0")
        workspace.entries.create("Brew tea", slug="brew-tea", prompt="Boil water.")
        token = admin_token(workspace)
    return tmp_path / "kb", token


def stored(folder) -> dict[str, list[str]]:
    """Stored content by kind."""
    with kbkit.open(folder) as workspace:
        kb = workspace["drinks"]
        chunks = {chunk.document_id for chunk in kb.chunks}
        documents = list(kb.documents)
        assert {document.id for document in documents} == chunks, "none is half there"
        lines = workspace.files.read("notes.md").splitlines()
        votes = workspace.entries.read("brew-tea").rating.votes
        return {
            "document": [document.title for document in documents],
            "file": [line.removeprefix("line ") for line in lines],
            "vote": [vote.rater for vote in votes],
            "rating": [rating.rater for rating in kb.ratings],
        }


def check(folder, writers) -> None:
    content = stored(folder)
    for writer in writers:
        assert not writer.wrong, writer.wrong[:3]
        for kind, text in writer.answered:
            assert content[kind].count(text) == 1, (kind, text)
    sent = {pair for writer in writers for pair in writer.asked}
    for kind, texts in content.items():
        unknown = [text for text in texts if (kind, text) not in sent]
        assert len(unknown) <= (kind == "document"), unknown  # the first document


def started(served, prefix):
    writers = [Writer(served, f"{prefix}-{number}") for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        assert writer.busy.wait(120)
        assert len(writer.answered) >= 4, writer.wrong[:3]
    return writers


@pytest.mark.soak
def test_acknowledged_writes_survive_a_kill(folder):
    path, token = folder
    chance, writers = random.Random(5), []
    for turn in range(KILLS):
        served = Served(path, token)
        new = started(served, f"kill{turn}")
        time.sleep(chance.uniform(0, 0.3))  # at any instant
        assert served.end(signal.SIGKILL) == -signal.SIGKILL
        for writer in new:
            writer.join(60)
        writers += new
        check(path, writers)
    served = Served(path, token)
    text = writers[0].answered[0][1]
    body = {"query": f"what {text}x says", "kb": "drinks", "limit": 3}
    answer = httpx.post(
        f"{served.url}/api/knowledge/search", json=body, headers=served.headers, timeout=60
    )
    assert text in [hit["title"] for hit in answer.json()["hits"]]
    assert served.end() == 0


@pytest.mark.slow
def test_terminated_server_finishes_running_requests(folder):
    path, token = folder
    served = Served(path, token)
    writers = started(served, "end")
    assert served.end(signal.SIGTERM) == 0
    for writer in writers:
        writer.join(60)
    check(path, writers)
    content = stored(path)
    for writer in writers:  # the last request was answered, or never began
        kind, text = writer.asked[-1]
        assert (text in content[kind]) == (writer.asked[-1] in writer.answered)
    assert "Traceback" not in served.log.read_text("utf-8")
