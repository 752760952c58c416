"""The doctor checks jobs, tokens, codes of vectors and earlier repairs, on PostgreSQL too."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kbkit
from kbkit.access import Tokens
from kbkit.cli import app
from kbkit.errors import TokenError, WorkspaceError
from kbkit.models import JobState
from kbkit.models.ingest_report import KINDS
from kbkit.server.jobs import Jobs
from kbkit.server.tasks import TASKS
from kbkit.stores.snapshots import snapshot as codes
from tests.stores.workspaces import execute, opened
from tests.workspace.damage import flip, flip_a_snapshot, sql

pytestmark = pytest.mark.local
JOB = "0" * 32


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """A workspace with a knowledge base, a token for it, and a queued job."""
    folder = tmp_path_factory.mktemp("servers") / "kb"
    with kbkit.open(folder) as workspace:
        fill(workspace)
    return folder


def fill(workspace):
    workspace.create("notes").add("Tea", "# Tea\n\nSteep green tea for two minutes.\n")
    workspace["notes"].add("Milk", "# Milk\n\nKeep milk cold.\n")
    workspace._stores.snapshots.save(workspace["notes"].id)
    Tokens(workspace).create("ann", scope="write", kbs=["notes"])
    jobs = Jobs(workspace, tasks=dict.fromkeys(TASKS), workers=1)
    jobs._closing.set()  # so that it stays queued
    jobs.start("refresh", {"kb": "notes"}, kbs=("notes",))


@pytest.fixture
def folder(closed, tmp_path):
    return Path(shutil.copytree(closed, tmp_path / "kb"))


def waiting(workspace):
    return [job.state for job in Jobs(workspace).list()]


def test_every_job_kind_has_a_task():
    assert set(TASKS) == set(KINDS)


def test_valid_jobs_and_tokens_give_no_findings(folder):
    with kbkit.open(folder) as workspace:
        assert workspace.doctor().findings == ()
        workspace.delete("notes")  # to the trash
        assert workspace.doctor().findings == ()


UNREADABLE = {
    "an unknown state": "state = 'asleep'",
    "names that are no list": "kbs = '\"notes\"'",
    "no JSON": "arguments = 'x'",
    "arguments that are none": "arguments = '[]'",
    "no date": "created_at = 'x'",
    "progress of something else": "progress = '[1]'",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_job_is_found_and_removed(folder, name):
    sql(folder, f"UPDATE jobs SET {UNREADABLE[name]}")
    with kbkit.open(folder) as workspace:
        (finding,) = workspace.doctor().findings
        assert (finding.part, finding.kb, finding.mended) == ("jobs", "", False)
        assert "cannot be read" in finding.problem
        assert "kbkit doctor --repair" in finding.remedy
        assert workspace.doctor(repair=True).sound
        assert workspace.doctor().findings == ()
        assert waiting(workspace) == []


def test_listing_unreadable_jobs_is_one_clear_error(folder):
    sql(folder, "UPDATE jobs SET state = 'asleep'")
    with (
        kbkit.open(folder) as workspace,
        pytest.raises(WorkspaceError, match=r"cannot be read.*kbkit doctor"),
    ):
        Jobs(workspace).resume()


def test_impossible_jobs_are_failed(folder):
    sql(folder, "UPDATE jobs SET kind = 'juggle'")
    with kbkit.open(folder) as workspace:
        assert "juggle" in workspace.doctor().findings[0].problem
    sql(folder, "UPDATE jobs SET kind = 'refresh'")
    with kbkit.open(folder) as workspace:
        workspace.delete("notes", forever=True)
        jobs, tokens = workspace.doctor().findings
        assert (jobs.part, tokens.part) == ("jobs", "tokens")
        assert "notes, which is gone" in jobs.problem
        assert "ann" in tokens.problem
        health = workspace.doctor(repair=True)
        assert [each.mended for each in health.findings] == [True, False]
        assert waiting(workspace) == [JobState.FAILED]
        (token,) = workspace.doctor().findings  # only people change access
        assert f"token revoke {Tokens(workspace).list()[0].id}" in token.remedy
    run = CliRunner().invoke(app, ["--workspace", str(folder), "doctor", "--json"])
    assert (run.exit_code, json.loads(run.output)["findings"][0]["part"]) == (1, "tokens")


@pytest.mark.parametrize("damage", ["scope = 'all'", "kbs = '{}'", "digest = 'x'", "kbs = 'x'"])
def test_unreadable_token_is_rejected_and_can_be_revoked(folder, damage):
    with kbkit.open(folder) as workspace:
        secret = Tokens(workspace).create("eve").token
    sql(folder, f"UPDATE tokens SET {damage} WHERE name = 'eve'")
    with kbkit.open(folder) as workspace:
        tokens = Tokens(workspace)
        with pytest.raises((TokenError, WorkspaceError)):
            tokens.check(secret)
        (finding,) = workspace.doctor(repair=True).findings
        assert (finding.part, finding.mended) == ("tokens", False)
        revoke = finding.remedy.partition("`")[2].partition("`")[0].split()
        done = CliRunner().invoke(app, ["--workspace", str(folder), *revoke[1:]])
        assert (done.exit_code, done.output) == (0, "revoked eve\n")
        assert workspace.doctor().findings == ()
        assert [each.name for each in tokens.list()] == ["ann"]


@pytest.mark.parametrize("summaries", [False, True])
@pytest.mark.soak
def test_damaged_codes_are_found_and_rebuilt(folder, monkeypatch, summaries):
    pytest.importorskip("faiss")
    monkeypatch.setattr(codes, "MIN", 2)
    with kbkit.open(folder) as workspace:
        snapshots, kb = workspace._stores.snapshots, workspace["notes"]
        for n in range(30):
            kb.add(f"Tea {n}", f"# Tea {n}\n\nTea number {n} steeps {n} minutes.\n")
        snapshots.make_anew(kb.id)
        pattern = "*.summaries.codes.*" if summaries else "*[0-9a-f].codes.*"
        (path,) = (folder / "snapshots").glob(pattern)
        assert workspace.doctor().findings == ()
        flip(path, -20)
        (finding,) = workspace.doctor().findings
        assert (finding.part, finding.kb) == ("snapshot", "notes")
        assert "is damaged" in finding.problem
        assert workspace.doctor(repair=True).sound
        assert workspace.doctor().findings == ()


def test_index_emptied_on_opening_is_reported_until_repair(folder):
    flip(folder / "chroma" / "chroma.sqlite3", 5000)
    with kbkit.open(folder) as workspace:
        workspace["notes"].add("Mate", "# Mate\n\nMate steeps for five minutes.\n")
    run = CliRunner().invoke(app, ["--workspace", str(folder), "doctor"])
    assert run.exit_code == 0
    assert "chroma.sqlite3 not as it was written" in run.output
    assert "mended" in run.output
    with kbkit.open(folder) as workspace:
        (finding,) = workspace.doctor().findings
        assert (finding.part, finding.kb, finding.mended) == ("index", "", True)
        assert "UTC" in finding.problem
        assert workspace.doctor(repair=True).findings == (finding,)
        assert workspace.doctor().findings == ()


def test_damaged_snapshot_is_reported_after_its_rebuild(folder):
    flip_a_snapshot(folder)
    with kbkit.open(folder) as workspace:
        assert workspace["notes"].search("green tea")[0].title == "Tea"
        workspace._stores.snapshots.save(workspace["notes"].id)
        (finding,) = workspace.doctor().findings
        assert (finding.part, finding.mended) == ("snapshot", True)
        assert "damaged" in finding.problem


def test_unreadable_repair_log_is_harmless(folder):
    (folder / "mended.jsonl").write_bytes(b'\xff\n[1]\n{"a": 1}\n["t", "index", "it was so"]\n')
    with kbkit.open(folder) as workspace:
        (finding,) = workspace.doctor().findings
        assert finding.problem == "it was so (found t)"
    (folder / "mended.jsonl").unlink()
    (folder / "mended.jsonl").mkdir()
    with kbkit.open(folder) as workspace:
        assert workspace.doctor(repair=True).findings == ()


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


def test_lost_words_on_a_server_are_rebuilt(damaged):
    with damaged() as workspace:
        table = f"lexical_{workspace['notes'].id}"
    forget = f"UPDATE {table} SET terms = ts_delete(terms, 'tea')"
    with damaged(forget) as workspace:
        (finding,) = workspace.doctor().findings
        assert (finding.part, finding.kb) == ("words", "notes")
        assert "1 of" in finding.problem
        assert workspace.doctor(repair=True).sound
        assert workspace.doctor().findings == ()
        assert workspace["notes"].search("tea", mode="lexical")[0].title == "Tea"


SERVER = {
    "a vector too short": (
        "UPDATE vectors SET vector = substring(vector FROM 1 FOR 7)",
        "vectors",
        "not of",
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


def test_snapshots_jobs_and_tokens_on_a_server_are_checked(damaged):
    odd = ("UPDATE jobs SET state = 'asleep'", "UPDATE tokens SET kbs = '{}'")
    with damaged(*odd) as workspace:
        flip_a_snapshot(workspace.path)
        findings = workspace.doctor(repair=True).findings
        assert [(each.part, each.mended) for each in findings] == [
            ("snapshot", True),
            ("jobs", True),
            ("tokens", False),
        ]
        Tokens(workspace).revoke("ann")
        assert workspace.doctor().findings == ()
