"""The second search warms up snapshots and the index for later ones."""

import json
import subprocess
import sys
import threading
import time

import pytest

import kbkit
from kbkit.errors import NotFoundError
from kbkit.recipes import JsonlSource
from kbkit.stores.catalog import knowledge_bases
from kbkit.stores.snapshots import near_chunks

SEARCHES = """
import sys, threading
import kbkit
kb = kbkit.open(sys.argv[1])["drinks"]
for _ in range(int(sys.argv[2])):
    assert kb.search("green tea")[0].title == "green tea"
print(sorted(sys.modules))
"""


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """Searches ask Chroma, as if there were too many vectors to scan."""
    monkeypatch.setattr("kbkit.stores.snapshots.segments.SCAN_LIMIT", 0)


@pytest.fixture
def folder(tmp_path):
    """A closed workspace with an ingested knowledge base."""
    names = ("green tea", "black tea", "milk")
    lines = [{"uri": f"doc:{name}", "title": name, "text": f"All about {name}."} for name in names]
    path = tmp_path / "drinks.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with kbkit.open(tmp_path / "kb") as workspace:
        workspace.create("drinks").ingest(JsonlSource(path=str(path)))
    return tmp_path / "kb"


def warmers():
    return [thread for thread in threading.enumerate() if thread.name == "kbkit-warmer"]


def is_open(kb):
    with kb._stores.database.read() as transaction:
        row = knowledge_bases.get_by_id(transaction, kb.id)
    return kb._stores.vectors.is_open(row)


def run(folder, searches):
    """Search in a process that ends without closing the workspace."""
    command = [sys.executable, "-c", SEARCHES, str(folder), str(searches)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_second_search_warms_up_and_close_waits_for_it(folder, monkeypatch):
    # like without the extra `scale`
    monkeypatch.setattr(near_chunks, "is_coded", lambda _: False)
    with kbkit.open(folder) as workspace:
        kb = workspace["drinks"]
        one = kb.search("green tea")
        assert not warmers()
        assert not is_open(kb)
        two = kb.search("green tea")
        workspace._stores.warmer.close()
        assert is_open(kb)
        three = kb.search("green tea")
        assert not warmers()
        assert one.hits == two.hits == three.hits
        kb.add("mate", "Drunk from a gourd.")
        assert is_open(kb)  # the change is a small segment
        assert kb.search("gourd")[0].title == "mate"
        kb.add("rum", "Made of molasses.")
        kb.search("molasses")
    assert not warmers()


def test_codes_need_no_index_of_vectors(folder, monkeypatch):
    monkeypatch.setattr(near_chunks, "is_coded", lambda _: True)
    with kbkit.open(folder) as workspace:
        kb = workspace["drinks"]
        hits = [kb.search("green tea").hits for _ in range(2)]
        workspace._stores.warmer.close()
        assert not is_open(kb)
        assert [*hits, kb.search("green tea").hits] == [hits[0]] * 3
        assert not is_open(kb)


def test_first_search_rebuilds_missing_files(folder):
    for file in (folder / "snapshots").iterdir():
        file.unlink()
    with kbkit.open(folder) as workspace:
        assert workspace["drinks"].search("green tea")[0].title == "green tea"
    assert len(list((folder / "snapshots").glob("*.json"))) == 1


def test_frequent_writes_do_not_rebuild_snapshots_each_time(folder):
    with kbkit.open(folder) as workspace:
        kb, warmer = workspace["drinks"], workspace._stores.warmer
        for _ in range(2):
            kb.search("green tea")
        warmer.close()
        warmer._again = time.monotonic() + 3600  # as if the last one had taken minutes
        kb.add("mate", "Drunk from a gourd.")
        assert [kb.search("gourd")[0].title for _ in range(3)] == ["mate"] * 3
        for _ in range(3):
            warmer.record_search(kb.id, ready=False)
        assert not warmers()
        warmer._again = -3600.0
        warmer.record_search(kb.id, ready=False)
        warmer.close()
        assert warmer._again > 0


def test_deletion_during_warming_prints_nothing(folder, capfd):
    with kbkit.open(folder) as workspace:
        kb = workspace["drinks"]
        for _ in range(2):
            kb.search("green tea")
        workspace.delete("drinks")
        with pytest.raises(NotFoundError, match="deleted"):
            kb.search("green tea")
        workspace._stores.warmer.record_search(kb.id, ready=False)
        workspace._stores.warmer.close()
        assert not list((folder / "snapshots").iterdir())
    assert not warmers()
    assert capfd.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.parametrize("searches", [1, 2, 3])
def test_process_ends_cleanly_after_searches(folder, searches):
    ended = run(folder, searches)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_first_search_on_a_snapshot_loads_no_heavy_module(folder):
    ended = run(folder, 1)
    loaded = {name.partition(".")[0] for name in eval(ended.stdout)}
    assert loaded.isdisjoint({"alembic", "chromadb", "ipywidgets", "llama_index", "lxml"})
    assert loaded.isdisjoint({"mkdocs", "pandas", "scipy", "trafilatura"})


def test_few_vectors_need_no_chroma(folder, monkeypatch):
    monkeypatch.setattr("kbkit.stores.snapshots.segments.SCAN_LIMIT", 1000)
    with kbkit.open(folder) as workspace:
        kb = workspace["drinks"]
        for _ in range(3):
            assert kb.search("green tea")[0].title == "green tea"
        assert not warmers()
        assert not is_open(kb)
