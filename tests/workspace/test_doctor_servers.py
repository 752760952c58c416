"""The doctor checks codes of vectors, and a catalog on PostgreSQL."""

import shutil
from pathlib import Path

import pytest

import kbkit
from kbkit.stores.snapshots import snapshot as codes
from tests.stores.workspaces import execute, opened
from tests.workspace.damage import flip

pytestmark = pytest.mark.local


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("servers") / "kb"
    with kbkit.open(folder) as workspace:
        fill(workspace)
    return folder


def fill(workspace):
    workspace.create("notes").add("Tea", "# Tea\n\nSteep green tea for two minutes.\n")
    workspace["notes"].add("Milk", "# Milk\n\nKeep milk cold.\n")
    workspace._stores.snapshots.save(workspace["notes"].id)


@pytest.fixture
def folder(closed, tmp_path):
    return Path(shutil.copytree(closed, tmp_path / "kb"))


@pytest.mark.parametrize("summaries", [False, True])
@pytest.mark.soak
def test_damaged_codes_are_found_and_rebuilt(folder, monkeypatch, summaries):
    pytest.importorskip("faiss")
    monkeypatch.setattr(codes, "MIN", 2)
    monkeypatch.setattr("kbkit.stores.snapshots.segments.SCAN_LIMIT", 0)
    with kbkit.open(folder) as workspace:
        snapshots, kb = workspace._stores.snapshots, workspace["notes"]
        for n in range(30):
            kb.add(f"Tea {n}", f"# Tea {n}\n\nTea number {n} steeps {n} minutes.\n")
        snapshots.rebuild(kb.id)
        pattern = "*.summaries.codes.*" if summaries else "*[0-9a-f].codes.*"
        (path,) = (folder / "snapshots").glob(pattern)
        assert workspace.doctor().findings == ()
        flip(path, -20)
        (finding,) = workspace.doctor().findings
        assert (finding.part, finding.kb) == ("snapshot", "notes")
        assert "is damaged" in finding.problem
        assert workspace.doctor(repair=True).sound
        assert workspace.doctor().findings == ()


# ---- on a real server


@pytest.fixture(scope="module")
def on_server(postgres, tmp_path_factory):
    folder, url = tmp_path_factory.mktemp("server") / "kb", postgres.empty()
    with opened(folder, url) as workspace:
        fill(workspace)
    return folder, url


@pytest.fixture
def damaged(postgres, on_server, tmp_path):
    """Opens a copy of the workspace with a changed catalog."""

    def change(*statements):
        url = postgres.copy(on_server[1])
        execute(postgres, url, *statements)
        place = tmp_path / f"kb{len(list(tmp_path.iterdir()))}"
        return opened(Path(shutil.copytree(on_server[0], place)), url)

    return change


def test_catalog_on_a_server_is_sound(damaged):
    with damaged() as workspace:
        assert workspace.doctor() == kbkit.models.Health((), 1)


SERVER = {
    "a vector too short": (
        "UPDATE vectors SET vector = substring(vector FROM 1 FOR 7)",
        "vectors",
        "do not have 256 numbers",
    ),
    "no vector": ("DELETE FROM vectors", "vectors", "2 chunks have no vector"),
    "a column is gone": (
        "ALTER TABLE deleted_documents DROP COLUMN uri CASCADE",
        "catalog",
        "deleted_documents cannot be read",
    ),
    "a table is gone": ("DROP TABLE name_uses CASCADE", "catalog", "name_uses is missing"),
    "an unknown type": (
        "UPDATE documents SET document_type = 'x'",
        "catalog",
        "impossible document_type",
    ),
    "a newer configuration": (
        "UPDATE knowledge_bases SET config = (config::jsonb || '{\"quantum\": 1}')::json",
        "configuration",
        "quantum",
    ),
}


@pytest.mark.parametrize("name", SERVER)
def test_damage_on_a_server_is_reported_once(damaged, name):
    statement, part, problem = SERVER[name]
    with damaged(statement) as workspace:
        health = workspace.doctor(repair=True)
        assert [(each.part, each.mended) for each in health.findings] == [(part, False)]
        assert problem in health.findings[0].problem
        assert "kbkit_pg" not in str(health)
