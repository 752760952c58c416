"""A scripted agent without a model answers a question over MCP."""

import shutil
from dataclasses import dataclass, field
from typing import Any

import pytest

from kbkit.embedding.static import count_tokens
from tests.mcp.agents import Agent, agent_of, tokens, unmarked

QUESTION = "How do I bake bread?"


@dataclass
class Transcript:
    """The calls of an agent, and the tokens of each answer."""

    agent: Agent
    lines: list[tuple[str, int]] = field(default_factory=list)

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        answer = self.agent.call(name, **arguments)
        assert not answer.is_error, answer.content[0].text
        shown = ", ".join(f"{key}={value!r:.60}" for key, value in arguments.items())
        self.lines.append((f"{name}({shown})", count_tokens(answer.content[0].text)))
        assert tokens(answer) <= arguments.get("max_tokens", 2500)
        return answer.structured_content

    def __str__(self) -> str:
        rows = [f"{cost:>6,}  {call}" for call, cost in self.lines]
        return "\n".join(["tokens  call", *rows, f"{self.cost:>6,}  in all"])

    @property
    def cost(self) -> int:
        return sum(cost for _, cost in self.lines)


def answered(transcript: Transcript) -> str:
    """Look for entries and notes, then for passages; answer, and store what helps."""
    known = transcript.call("find_entries", query=QUESTION, limit=3)["entries"]
    hint = unmarked(transcript.call("get_entry", slug=known[0]["slug"])["text"])
    notes = transcript.call("memory", command="view", path="/memories/kitchen.md")
    found = transcript.call("search_knowledge_base", query=QUESTION, limit=2, max_tokens=1200)
    best = next(each for each in found["results"] if each["source"].startswith("https:"))
    source = best["source"].partition("#")[0]
    section = {"document_name": source, "kb_name": best["kb"], "section": "Oven"}
    oven = transcript.call("get_document", **section, max_tokens=800)
    step = next(line for line in unmarked(oven["text"]).splitlines() if "Bake" in line)
    note = unmarked(notes["text"]).strip().splitlines()[-1].partition("\t")[2]
    answer = f"{step} {note} {hint.strip()} ({source}, {best['fetched_at']})"
    line = {"path": "/memories/kitchen.md", "insert_text": f"- asked: {QUESTION}\n"}
    transcript.call("memory", command="insert", insert_line=1, **line)
    transcript.call("rate_entry", slug=known[0]["slug"], score=5)
    chunk = {"chunk_id": best["chunk_id"], "kb_name": best["kb"]}
    transcript.call("rate_chunk", **chunk, score=5, query=QUESTION)
    return answer


@pytest.fixture
def folder(folder, tmp_path):
    """A copy, since the agent writes."""
    return shutil.copytree(folder, tmp_path / "ws")


@pytest.fixture
def agent(folder):
    with agent_of(folder, "--tools", "core,files,entries", "--allow-write") as found:
        yield found


def test_agent_answers_from_documents_notes_and_entries(agent):
    entry = {"title": "Bake bread at altitude", "description": "Baking bread high up."}
    agent.values("create_entry", **entry, prompt="Bake five minutes longer.")
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
