"""Retrievers, tools, plots and frames of local and served knowledge bases."""

from __future__ import annotations

import asyncio

import pytest

from kbkit import errors
from kbkit.client import AsyncWorkspace

PAGES = {
    "Pools": "# Pools\n\nA connection pool keeps connections open.\n\n## Limits\n\nAt most ten.",
    "Retries": "# Retries\n\nWait longer before each retry.\n\n## Jitter\n\nAt random.",
    "Logs": "# Logs\n\nA log line has a time and a level.",
}


@pytest.fixture(scope="module")
def kb(workspace):
    kb = workspace.create("shown", description="Of services.")
    for title, text in PAGES.items():
        kb.add(title, text, source=f"https://example.org/{title.lower()}")
    kb.annotations.make()
    kb.rate(kb.search("pool", limit=1)[0].chunk.id, 4, query="pool", rater="ann")
    return kb


def test_retriever_returns_search_results(workspace, kb):
    for of in (kb, workspace):
        found = of.as_retriever(limit=2).retrieve("connection pool")
        assert [node.node_id for node in found] == [
            hit.chunk.id for hit in of.search("connection pool", limit=2)
        ]
        assert found[0].metadata["title"] == "Pools"
        with pytest.raises(errors.ConfigError, match="limit"):
            of.as_retriever(limit=0)
    with pytest.raises(errors.NotFoundError, match="none"):
        workspace.as_retriever(kbs=["none"])


def test_tool_quotes_search_results(kb):
    tool = kb.as_tool(limit=1)
    assert tool.metadata.name == "search_shown"
    assert "Of services." in tool.metadata.description
    answer = str(tool.call(query="connection pool"))
    assert "keeps connections open" in answer
    assert "1 passages" in answer
    with pytest.raises(errors.ConfigError, match="1 to 20"):
        kb.as_tool(limit=21)


def test_plots(kb):
    titles = {
        kb.plot.documents: "Documents by type and freshness",
        kb.plot.chunks: "chunks",
        kb.plot.ratings: "ratings",
        kb.plot.map: "",
    }
    for draw, title in titles.items():
        drawn = draw().to_dict()
        assert drawn["$schema"].endswith("/v5.json")
        assert title.lower() in str(drawn).lower()
    with pytest.raises(errors.ConfigError, match="folder"):
        kb.plot.map(colour="red")


def test_embedding_map_of_chunks(kb):
    frame = kb.chunks.embedding_map(limit=4, seed=2)
    assert " ".join(frame.columns) == "x y title section snippet document_type folder uri"
    assert len(frame) == 4
    assert set(frame.index) < {chunk.id for chunk in kb.chunks}
    assert frame.attrs["chunks"] == len(kb.chunks) == 5
    assert len(frame.attrs["variance"]) == 2
    assert frame.attrs["variance"][0] > 0
    assert frame["document_type"].dtype == "category"
    with pytest.raises(errors.ConfigError, match=r"5,?000"):
        kb.chunks.embedding_map(limit=5001)


def test_query_encoder_is_fitted(kb):
    assert kb.chunks.fit_query_encoder()["chunks"] == 5


def test_collections_have_frames_and_tables(workspace, kb):
    collections = [kb.documents, kb.chunks, kb.ratings, kb.sources, kb.annotations, workspace]
    for collection in collections:
        assert list(collection.to_frame().columns)
        assert "<table" in collection._repr_html_()
    assert len(kb.documents.to_frame()) == len(kb.documents) == 3
    assert kb.ratings.to_frame()["score"].tolist() == [4]
    assert not any(5 in collection for collection in collections[:4])
    assert "3 documents of &#x27;shown&#x27;" in kb.documents._repr_html_()
    assert "shown" in workspace._repr_html_()


def test_annotations_are_counted_and_listed(kb):
    assert kb.info().annotations_waiting == 0
    assert kb.annotations.make().annotated == 0
    assert kb.annotations.make(estimate=True).model
    listed = list(kb.annotations)
    assert len(listed) == len(kb.annotations) == len(kb.annotations.to_frame()) > 0
    chunks = kb.annotations.chunks()
    assert [each for chunk in chunks for each in chunk.annotations] == listed
    first = chunks[0]
    assert (first.title, first.uri) == ("Logs", "https://example.org/logs")
    assert kb.annotations.chunks(after=(first.uri, first.position)) == chunks[1:]
    assert kb.annotations.chunks(limit=1) == [first]


def test_expansion_needs_a_language_model(kb):
    with pytest.raises(errors.ConfigError, match="names no language model"):
        kb.documents.expand()
    assert kb.documents.unexpand() == 0


def test_doctor_reports_a_sound_workspace(workspace):
    found = workspace.doctor()
    assert (found.sound, found.knowledge_bases) == (True, len(workspace))


def test_local_calls_are_refused_remotely(workspace, kb):
    if not hasattr(workspace, "url"):
        assert kb.sources.paths() == []
        return
    message = r"the folder is on the server.*kbkit\.open"
    for remote in (workspace, kb, workspace.files, workspace.entries):
        with pytest.raises(errors.LocalOnlyError, match=message):
            _ = remote.path
        assert not hasattr(remote, "path")
    for remote in (workspace, AsyncWorkspace(workspace.url)):
        for name in ("bundle", "rebuild", "restore"):
            message = rf"{name}: .*on its machine, run `kbkit {name}`.*kbkit\.open"
            with pytest.raises(errors.LocalOnlyError, match=message):
                getattr(remote, name)
    for name in ("export", "import"):
        with pytest.raises(errors.LocalOnlyError, match=f"run `kbkit entries {name}`"):
            getattr(workspace.entries, f"{name}_skills")
    with pytest.raises(errors.LocalOnlyError, match="run `kbkit doctor --repair`"):
        workspace.doctor(repair=True)
    for name in ("bundle", "nothing"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            getattr(kb, name)
    with pytest.raises(errors.ConfigError, match=r"kb\.refresh\(local=True\)"):
        kb.sources.paths()
    with pytest.raises(errors.ConfigError, match="its own language model"):
        kb.documents.expand(object())


def test_collections_and_tools_can_be_awaited(workspace, url, kb):
    async def main() -> None:
        async with AsyncWorkspace(url) as later:
            awaited = later["shown"]
            found = await awaited.as_retriever(limit=2).aretrieve("connection pool")
            hits = await awaited.search("connection pool", limit=2)
            assert [node.node_id for node in found] == [hit.chunk.id for hit in hits]
            tool = await awaited.as_tool(limit=1)
            assert "keeps connections open" in str(await tool.acall(query="connection pool"))
            for name in ("documents", "chunks", "ratings", "sources", "annotations"):
                collection, here = getattr(awaited, name), getattr(kb, name)
                assert await collection.count() == len(here)
                assert (await collection.to_frame()).equals(here.to_frame())
                assert [one async for one in collection] == list(here)
            assert await awaited.documents.get("https://example.org/logs") in list(kb.documents)
            drawn = (await awaited.plot.documents()).to_dict()
            assert drawn == kb.plot.documents().to_dict()
            assert (await awaited.chunks.embedding_map(limit=2)).attrs["chunks"] == 5
            assert (await later.to_frame()).index.tolist() == list(workspace)
            assert await awaited.annotations.statement_types() == kb.annotations.statement_types
            with pytest.raises(errors.ConfigError, match="aretrieve"):
                later.as_retriever().retrieve("pool")

    asyncio.run(main())


def test_pages_are_exported_into_a_local_folder(kb, tmp_path):
    reports: list[object] = []
    pages = tmp_path / "pages"
    report = kb.export(folder=pages, pages_only=True, on_progress=reports.append)
    assert (report.folder, report.site, report.documents) == (pages, None, 3)
    assert {"index.md", "pools.md", "logs.md"} <= {path.name for path in pages.rglob("*.md")}
    assert reports
    assert kb.export(folder=pages, pages_only=True).written == 0
    with pytest.raises(errors.ConfigError, match="pages_only"):
        kb.export(pages_only=True)
    (tmp_path / "index.md").write_text("mine")
    with pytest.raises(errors.ExportError, match="kbkit"):
        kb.export(folder=tmp_path, pages_only=True)
    assert (tmp_path / "index.md").read_text() == "mine"
