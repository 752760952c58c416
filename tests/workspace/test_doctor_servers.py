"""The doctor looks at jobs, tokens, codes of vectors, what was mended before; on PostgreSQL too."""

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import make_url
from typer.testing import CliRunner

import kbkit
from kbkit.access import Tokens
from kbkit.cli import app
from kbkit.errors import TokenError, WorkspaceError
from kbkit.models import JobState
from kbkit.models.jobs import KINDS
from kbkit.runtime.config import Settings
from kbkit.server.jobs import Jobs
from kbkit.server.tasks import TASKS
from kbkit.stores.snapshots import codes
from kbkit.stores.snapshots.chunk_table import read_arrays, write_arrays

pytestmark = pytest.mark.local
JOB = "0" * 32


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A workspace with a knowledge base, a token for it, and a job that waits."""
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
    jobs._closing.set()  # nobody does it
    jobs.start("refresh", {"kb": "notes"}, kbs=("notes",))


@pytest.fixture
def folder(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "kb"))


def sql(folder, statement):
    with closing(sqlite3.connect(folder / "catalog.db")) as connection:
        connection.execute(statement)
        connection.commit()


def waiting(workspace):
    return [job.state for job in Jobs(workspace).list()]


def test_the_kinds_of_jobs_are_those_that_are_done():
    assert set(TASKS) == set(KINDS)


def test_jobs_and_tokens_that_are_as_they_should_be_are_no_findings(folder):
    with kbkit.open(folder) as workspace:
        assert workspace.doctor().findings == ()
        workspace.delete("notes")  # from where it can come back
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
def test_a_job_that_cannot_be_read_is_told_and_forgotten(folder, name):
    sql(folder, f"UPDATE jobs SET {UNREADABLE[name]}")
    with kbkit.open(folder) as workspace:
        (found,) = workspace.doctor().findings
        assert (found.part, found.kb, found.mended) == ("jobs", "", False)
        assert "cannot be read" in found.problem
        assert "kbkit doctor --repair" in found.remedy
        assert workspace.doctor(repair=True).sound
        assert workspace.doctor().findings == ()
        assert waiting(workspace) == []


def test_jobs_that_cannot_be_read_are_one_clear_error_for_who_lists_them(folder):
    sql(folder, "UPDATE jobs SET state = 'asleep'")
    with (
        kbkit.open(folder) as workspace,
        pytest.raises(WorkspaceError, match=r"cannot be read.*kbkit doctor"),
    ):
        Jobs(workspace).resume()


def test_jobs_that_nobody_can_do_are_ended(folder):
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
        found = workspace.doctor(repair=True)
        assert [each.mended for each in found.findings] == [True, False]
        assert waiting(workspace) == [JobState.FAILED]
        (token,) = workspace.doctor().findings  # who is let in, only people say
        assert f"token revoke {Tokens(workspace).list()[0].id}" in token.remedy
    told = CliRunner().invoke(app, ["--workspace", str(folder), "doctor", "--json"])
    assert (told.exit_code, json.loads(told.output)["findings"][0]["part"]) == (1, "tokens")


@pytest.mark.parametrize("damage", ["scope = 'all'", "kbs = '{}'", "digest = 'x'", "kbs = 'x'"])
def test_a_token_that_cannot_be_read_lets_nobody_in_and_can_be_revoked(folder, damage):
    with kbkit.open(folder) as workspace:
        secret = Tokens(workspace).create("eve").token
    sql(folder, f"UPDATE tokens SET {damage} WHERE name = 'eve'")
    with kbkit.open(folder) as workspace:
        tokens = Tokens(workspace)
        with pytest.raises((TokenError, WorkspaceError)):
            tokens.check(secret)
        (found,) = workspace.doctor(repair=True).findings
        assert (found.part, found.mended) == ("tokens", False)
        revoke = found.remedy.partition("`")[2].partition("`")[0].split()
        done = CliRunner().invoke(app, ["--workspace", str(folder), *revoke[1:]])
        assert (done.exit_code, done.output) == (0, "revoked eve\n")
        assert workspace.doctor().findings == ()
        assert [each.name for each in tokens.list()] == ["ann"]


@pytest.mark.parametrize("summaries", [False, True])
@pytest.mark.soak
def test_codes_of_other_vectors_are_found_and_made_anew(folder, monkeypatch, summaries):
    """Whole files that say something else than the vectors beside them."""
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
        about, arrays = read_arrays(path)
        kept = {name: np.array(array) for name, array in arrays.items()}
        write_arrays(path, kept | {"codes": kept["codes"][::-1]}, about)
        (found,) = workspace.doctor().findings
        assert (found.part, found.kb) == ("snapshot", "notes")
        assert "codes of other vectors for" in found.problem
        assert workspace.doctor(repair=True).sound
        assert workspace.doctor().findings == ()
        (path,) = (folder / "snapshots").glob(pattern)
        data = bytearray(path.read_bytes())
        data[-20] ^= 1
        path.write_bytes(data)
        assert "is damaged" in workspace.doctor().findings[0].problem


def test_what_was_emptied_when_it_was_opened_is_told_until_somebody_repairs(folder):
    path = folder / "chroma" / "chroma.sqlite3"
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    path.write_bytes(data)
    with kbkit.open(folder) as workspace:
        workspace["notes"].add("Mate", "# Mate\n\nMate steeps for five minutes.\n")
    run = CliRunner().invoke(app, ["--workspace", str(folder), "doctor"])
    assert run.exit_code == 0
    assert "chroma.sqlite3 not as it was written" in run.output
    assert "mended" in run.output
    with kbkit.open(folder) as workspace:
        (found,) = workspace.doctor().findings
        assert (found.part, found.kb, found.mended) == ("index", "", True)
        assert "UTC" in found.problem
        assert workspace.doctor(repair=True).findings == (found,)
        assert workspace.doctor().findings == ()


def test_a_snapshot_that_was_damaged_is_told_after_it_was_made_anew(folder):
    (path,) = (folder / "snapshots").glob("*.safetensors")
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    with kbkit.open(folder) as workspace:
        assert workspace["notes"].search("green tea")[0].title == "Tea"
        workspace._stores.snapshots.save(workspace["notes"].id)
        (found,) = workspace.doctor().findings
        assert (found.part, found.mended) == ("snapshot", True)
        assert "damaged" in found.problem


def test_notes_that_cannot_be_read_or_written_stand_in_nobodys_way(folder):
    (folder / "mended.jsonl").write_bytes(b'\xff\n[1]\n{"a": 1}\n["t", "index", "it was so"]\n')
    with kbkit.open(folder) as workspace:
        (found,) = workspace.doctor().findings
        assert found.problem == "it was so (found t)"
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
    """Opens a copy of the workspace, of which the catalog was changed."""

    def change(*statements):
        url = postgres.copy(on_server[1])
        for statement in statements:
            postgres.execute(statement, make_url(url).database)
        place = tmp_path / f"kb{len(list(tmp_path.iterdir()))}"
        return opened(Path(shutil.copytree(on_server[0], place)), url)

    return change


def opened(folder, url):
    return kbkit.Workspace(folder, settings=replace(Settings.load({}), database_url=url))


def test_a_catalog_on_a_server_is_sound(damaged):
    with damaged() as workspace:
        assert workspace.doctor() == kbkit.models.Health((), 1)


def test_words_that_a_server_lost_are_made_anew(damaged):
    with damaged() as workspace:
        table = f"lexical_{workspace['notes'].id}"
    forget = f"UPDATE {table} SET terms = ts_delete(terms, 'tea')"
    with damaged(forget) as workspace:
        (found,) = workspace.doctor().findings
        assert (found.part, found.kb) == ("words", "notes")
        assert "1 of" in found.problem
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
def test_what_a_server_has_lost_is_told_once_and_in_plain_words(damaged, name):
    statement, part, told = SERVER[name]
    with damaged(statement) as workspace:
        found = workspace.doctor(repair=True)
        assert [(each.part, each.mended) for each in found.findings] == [(part, False)]
        assert told in found.findings[0].problem
        assert "kbkit_pg" not in str(found)


def test_snapshots_jobs_and_tokens_of_a_server_are_looked_at(damaged):
    odd = ("UPDATE jobs SET state = 'asleep'", "UPDATE tokens SET kbs = '{}'")
    with damaged(*odd) as workspace:
        (path,) = (workspace.path / "snapshots").glob("*.safetensors")
        data = bytearray(path.read_bytes())
        data[-100] ^= 1
        path.write_bytes(data)
        found = workspace.doctor(repair=True).findings
        assert [(each.part, each.mended) for each in found] == [
            ("snapshot", True),
            ("jobs", True),
            ("tokens", False),
        ]
        Tokens(workspace).revoke("ann")
        assert workspace.doctor().findings == ()
