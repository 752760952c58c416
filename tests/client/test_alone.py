"""The client with only its own dependencies installed."""

import json
import subprocess
import sys

import pytest

import kbkit
from kbkit.server import ServerSettings, running

ALONE = '''
import asyncio, json, pathlib, sys

INSTALLED = {
    "annotated_types", "anyio", "certifi", "h11", "httpcore", "httpx", "idna", "kbkit",
    "pydantic", "pydantic_core", "typing_extensions", "typing_inspection",
}


class Others:
    """Finds no packages but those that the client needs."""

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in INSTALLED and top[0] != "_" and top not in sys.stdlib_module_names:
            raise ModuleNotFoundError(f"No module named {top!r}", name=top)


sys.meta_path.insert(0, Others())

import kbkit
from kbkit.client import AsyncWorkspace

url = sys.argv[1]
docs = pathlib.Path("docs")
docs.mkdir()
(docs / "rye.md").write_text("# Rye\\n\\nRye needs more water.")


def refusal(call):
    try:
        call()
    except kbkit.KbkitError as error:
        return f"{type(error).__name__}: {error}"


async def awaited():
    async with AsyncWorkspace(url) as ws:
        kb = ws["tea"]
        await kb.add("Leeks", "Leeks simmer for an hour.")
        found, context = await asyncio.gather(kb.search("leeks"), ws.context("leeks"))
        await kb.rate(found[0].chunk.id, 4)
        return [found[0].title, "Leeks" in context.text]


with kbkit.connect(url) as ws:
    kb = ws.create("tea")
    kb.add("Green tea", "# Green tea\\n\\nSteep it for two minutes.")
    hits = kb.search("how long does tea steep")
    kb.rate(hits[0].chunk.id, 5, query=hits.query)
    kb.ingest(kbkit.FilesSource(path="docs"))
    ws.files.write("notes/tea.md", "# Tea")
    ws.entries.create("Brew tea", slug="brew-tea", prompt="Boil water.")
    ws.entries.rate("brew-tea", 4)
    ws.graph.create("Uji", type="place")
    shown = [ws, kb, kb.documents, kb.chunks, kb.sources, kb.info(), hits, ws.graph, ws.files]
    print(json.dumps({
        "searched": [hits[0].title, ws.search("rye water")[0].title],
        "asked": [hit.title for hit in kb.ask("how long does tea steep?").hits][0],
        "context": "two minutes" in ws.context("tea").text,
        "files": ws.files.read("notes/tea.md"),
        "entries": [found.slug for found in ws.entries.find("brew tea")],
        "graph": [entity.name for entity in ws.graph.entities(query="uji")],
        "awaited": asyncio.run(awaited()),
        "shown": [len(each._repr_html_()) > 9 for each in shown if hasattr(each, "_repr_html_")],
        "refused": [
            refusal(hits.to_frame), refusal(kb.documents.to_frame), refusal(kb.as_retriever),
            refusal(kb.as_tool), refusal(lambda: kbkit.open("kb")), refusal(lambda: kbkit.build),
        ],
    }))
'''


@pytest.mark.slow
def test_client_with_minimal_dependencies(tmp_path):
    with (
        kbkit.open(tmp_path / "kb") as workspace,
        running(workspace, ServerSettings(port=0, rate=0, search_processes=0)) as url,
    ):
        command = [sys.executable, "-c", ALONE, url]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    results = json.loads(run.stdout)
    refused, shown = results.pop("refused"), results.pop("shown")
    assert results == {
        "searched": ["Green tea", "Rye"],
        "asked": "Green tea",
        "context": True,
        "files": "# Tea",
        "entries": ["brew-tea"],
        "graph": ["Uji"],
        "awaited": ["Leeks", True],
    }
    assert len(shown) > 5
    assert all(shown)
    frame, _, retriever, tool, folder, build = refused
    hint = "which comes with all of kbkit: pip install kbkit"
    assert frame == f"MissingExtraError: A DataFrame needs pandas, {hint}"
    assert retriever == f"MissingExtraError: A retriever needs llama_index, {hint}"
    assert tool == f"MissingExtraError: A tool needs llama_index, {hint}"
    assert folder.startswith("MissingExtraError: A workspace in a folder needs ")
    assert build.startswith("MissingExtraError: kbkit.build needs ")
    assert all(each.endswith(hint) for each in refused)
