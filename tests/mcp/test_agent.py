"""A scripted agent, without a model, answers a question over MCP: what it asks, reads and keeps."""

import re
import shutil
from dataclasses import dataclass, field
from typing import Any

import pytest

from kbkit.embedding.static import count_tokens
from tests.mcp.agents import Agent, agent_of, tokens

QUESTION = "How do I bake bread?"


@dataclass
class Transcript:
    """What an agent asked, and what each answer cost it."""

    agent: Agent
    lines: list[tuple[str, int]] = field(default_factory=list)

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        answer = self.agent.call(name, **arguments)
        assert not answer.is_error, answer.content[0].text
        said = ", ".join(f"{key}={value!r:.60}" for key, value in arguments.items())
        self.lines.append((f"{name}({said})", count_tokens(answer.content[0].text)))
        assert tokens(answer) <= arguments.get("max_tokens", 2500)
        return answer.structured_content

    def __str__(self) -> str:
        rows = [f"{cost:>6,}  {said}" for said, cost in self.lines]
        return "\n".join(["tokens  call", *rows, f"{self.cost:>6,}  in all"])

    @property
    def cost(self) -> int:
        return sum(cost for _, cost in self.lines)


def unquoted(text: str) -> str:
    return re.sub(r"</?quote-\d{10}>", "", text)


def answered(transcript: Transcript) -> str:
    """Look for what worked before, then for passages; read on, answer, and keep what helps."""
    known = transcript.call("find_entries", query=QUESTION, limit=3)["entries"]
    hints = [
        unquoted(transcript.call("get_entry", slug=each["slug"])["text"]) for each in known[:1]
    ]
    notes = transcript.call("memory", command="view", path="/memories/kitchen.md")
    found = transcript.call("search_knowledge_base", query=QUESTION, limit=2, max_tokens=1200)
    best = next(each for each in found["results"] if each["source"].startswith("https:"))
    source = best["source"].partition("#")[0]
    oven = transcript.call(
        "get_document", document_name=source, kb_name=best["kb"], section="Oven", max_tokens=800
    )
    step = next(line for line in unquoted(oven["text"]).splitlines() if "Bake" in line)
    note = unquoted(notes["text"]).strip().splitlines()[-1].partition("\t")[2]
    answer = f"{step} {note} {hints[0].strip()} ({source}, {best['fetched_at']})"
    transcript.call(
        "memory",
        command="insert",
        path="/memories/kitchen.md",
        insert_line=1,
        insert_text=f"- asked: {QUESTION}\n",
    )
    transcript.call("rate_entry", slug=known[0]["slug"], score=5)
    transcript.call(
        "rate_chunk", chunk_id=best["chunk_id"], kb_name=best["kb"], score=5, query=QUESTION
    )
    return answer


@pytest.fixture
def folder(folder, tmp_path):
    """A workspace of its own, since the agent writes."""
    return shutil.copytree(folder, tmp_path / "ws")


@pytest.fixture
def agent(folder):
    with agent_of(folder, "--tools", "core,files,entries", "--allow-write") as found:
        yield found


def test_an_agent_answers_out_of_documents_notes_and_entries(agent):
    agent.values(
        "create_entry",
        title="Bake bread at altitude",
        prompt="Bake five minutes longer.",
        description="Baking bread high up.",
    )
    note = "Our oven runs ten degrees hot."
    agent.values("memory", command="create", path="/memories/kitchen.md", file_text=f"{note}\n")
    transcript = Transcript(agent)
    answer = answered(transcript)
    print(f"\n{transcript}\n\nanswer: {answer}")  # shown with -s
    for part in ("230 degrees", note, "five minutes longer", "https://kitchen.example/bread"):
        assert part in answer
    assert len(transcript.lines) == 8
    assert transcript.cost < 2500
    again = agent.values("memory", command="view", path="/memories/kitchen.md")
    assert f"asked: {QUESTION}" in again["text"]
    assert agent.values("find_entries", query=QUESTION)["entries"][0]["rating"] == 5
