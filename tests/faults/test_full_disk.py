"""A full disk gives one clear error and loses nothing."""

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import kbkit
from kbkit.errors import BundleError, ExportError, FilesError
from kbkit.knowledge_base.chunks import write_documents
from kbkit.stores.snapshots.array_files import write_arrays
from tests.faults.actions import ACTIONS, MIGRATE
from tests.faults.small_disk import CHANGES

resource = pytest.importorskip("resource", reason="no limits of files' sizes here")
WORDS = "".join(f"word{number} " for number in range(20_000))


@contextmanager
def room(size):
    """Limit the size of files; the system refuses more, like a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_full_disk_fails_bundles_exports_and_files(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("drinks")
        kb.add("Tea", f"# Tea\n\nTea steeps. {WORDS}")
        workspace.files.write("a.md", "before")
        with room(20_000):
            with pytest.raises(BundleError, match=r"x\.zip: cannot be written"):
                workspace.bundle(tmp_path / "x.zip", kbs=["drinks"])
            with pytest.raises(ExportError, match=r"x\.jsonl: cannot be written"):
                write_documents(kb.documents, tmp_path / "x.jsonl")
            with pytest.raises(FilesError, match=r"a\.md: cannot be written"):
                workspace.files.write("a.md", WORDS)
        assert [path.name for path in tmp_path.iterdir()] == ["kb"]
        assert workspace.files.read("a.md") == "before"
        assert kb.search("tea steeps", limit=1)[0].title == "Tea"
        assert workspace.bundle(tmp_path / "x.zip").documents >= 2


def test_snapshot_without_room_leaves_no_file(tmp_path):
    path = tmp_path / "snapshots" / "a"
    arrays = {"vectors": np.ones((1_000, 64), np.float32)}
    with room(20_000), pytest.raises(OSError, match="a: cannot be written"):
        write_arrays(path, arrays, {})
    assert list(path.parent.iterdir()) == []
    write_arrays(path, arrays, {})
    assert path.is_file()


def on_a_small_disk(tmp_path, script, *arguments):
    """Run a script on a small disk of its own; return its JSON lines."""
    (tmp_path / "disk").mkdir()
    mount = 'mount -t tmpfs -o size=80m kbkit "$0" && exec "$@"'
    alone = ["unshare", "--mount", *(["--map-root-user"] if os.getuid() else []), "sh", "-c"]
    place = str(tmp_path / "disk")
    if (
        not shutil.which("unshare")
        or subprocess.run(
            [*alone, mount, place, "true"], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("no disk of one's own can be made here")
    done = subprocess.run(
        [
            *alone,
            mount,
            place,
            sys.executable,
            str(Path(__file__).with_name(script)),
            place,
            *arguments,
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KBKIT_IMPROVE": "off", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def small_disk(tmp_path, rooms, checked):
    outcomes = on_a_small_disk(tmp_path, "small_disk.py", json.dumps(rooms), checked)
    assert all(each["sound"] for each in outcomes)
    return outcomes


def check_changes(tmp_path, rooms, actions):
    """Check that each action lacks room somewhere, and explains it."""
    outcomes = on_a_small_disk(tmp_path, "full_disk.py", json.dumps(rooms), json.dumps(actions))
    refused = [error for _, _, status, error in outcomes if status]
    assert len(outcomes) == (1 + len(rooms)) * len(actions)
    assert len(refused) >= len(actions)
    for error in refused:
        assert re.match(r"\w+Error: \S+: .*(free some space|with room for it)", error), outcomes


@pytest.mark.slow
@pytest.mark.local
def test_change_without_room_is_explained(tmp_path):
    check_changes(tmp_path, [60_000], ["rate"])


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_action_without_room_loses_data(tmp_path):
    actions = [action for action in (*ACTIONS, MIGRATE) if action != "upgrade"]
    check_changes(tmp_path, [0, 20_000, 100_000, 400_000, 1_500_000], actions)


@pytest.mark.local
@pytest.mark.soak
def test_files_and_entries_are_unchanged_without_room_for_the_catalog(tmp_path):
    outcomes = small_disk(tmp_path, [7_000_000], "yes")
    assert len(outcomes) == len(CHANGES)
    for each in outcomes:
        assert each["same"], each
        assert each["error"].startswith("FilesError: "), each
        assert "too little room" in each["error"]
        assert "nothing was changed" in each["error"]


@pytest.mark.local
@pytest.mark.soak
def test_error_without_room_check_reports_completed_steps(tmp_path):
    outcomes = small_disk(tmp_path, [0, 20_000], "no")
    kinds = {(each["change"], each["error"].partition(":")[0], each["same"]) for each in outcomes}
    assert not [each for each in outcomes if not each["error"] and each["same"]]
    for each in outcomes:
        if each["error"]:
            done = "that is done" in each["error"]
            assert done != each["same"], each
    assert {kind for _, kind, same in kinds if same} == {"FilesError"}
    assert {kind for _, kind, same in kinds if not same} <= {
        "WorkspaceError",
        "",
        "StoreUnreachableError",
    }


def test_search_needs_no_room(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        workspace.create("drinks").add("Tea", f"# Tea\n\nTea steeps. {WORDS}")
    with kbkit.open(tmp_path / "kb") as workspace, room(0):
        assert workspace["drinks"].search("tea steeps", limit=1)[0].title == "Tea"
