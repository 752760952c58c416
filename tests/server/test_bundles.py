"""Bundles over HTTP: permissions, sizes and hostile ones."""

import io
import json
import zipfile

import httpx
import pytest

import kbkit
from kbkit.access import Tokens
from kbkit.recipes import FilesSource
from kbkit.server import ServerSettings, running
from tests.bundles.test_hostile import added, edited, packed
from tests.server.requests import bearer, problem

AT = "/api/knowledge"
SECRET = "quicksilver"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A workspace with two knowledge bases and files, its address, and tokens."""
    folder = tmp_path_factory.mktemp("bundles")
    (folder / "docs").mkdir()
    (folder / "docs/tea.md").write_text("# Tea\n\nSteep tea for two minutes.\n")
    with kbkit.open(folder / "kb") as workspace:
        workspace.create("mine").ingest(FilesSource(path=str(folder / "docs")))
        workspace.create("secret").add(SECRET, f"# {SECRET}\n\nNobody reads of {SECRET}.\n")
        workspace.files.write("hidden.md", f"# {SECRET}\n")
        tokens = Tokens(workspace)
        created = {"all": tokens.create("all", scope="admin").token}
        created["mine"] = tokens.create("mine", scope="admin", kbs=["mine", "files"]).token
        with running(workspace, ServerSettings(port=0, rate=0, max_body=1_000_000)) as url:
            yield workspace, url, created


def connected(served, token="all"):
    _, url, tokens = served
    return httpx.Client(base_url=url, timeout=60, headers=bearer(tokens[token]))


def members(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def bundled(client, **body):
    created = client.post(f"{AT}/bundles", json=body)
    assert created.status_code == 200, created.text
    return client.get(f"{AT}/bundles/{created.json()['archive']}")


def restore(client, data, **form):
    files = {"bundle": ("../../etc/x.zip", data)}
    return client.post(f"{AT}/restore", files=files, data=form)


def state(workspace):
    kept = [each for name in ("files", "entries") for each in workspace.path.glob(f"{name}/**/*")]
    uploads = workspace.path / "uploads"
    assert not uploads.is_dir() or not list(uploads.iterdir())
    return [*workspace.list(), *sorted(kept)]


def test_token_limits_bundles(served):
    with connected(served) as everything, connected(served, "mine") as mine:
        whole = everything.post(f"{AT}/bundles", json={}).json()
        assert {"mine", "secret", "files"} <= set(whole["knowledge_bases"])
        secret = everything.post(f"{AT}/bundles", json={"kbs": ["mine", "secret"]}).json()
        for each in (whole, secret):
            assert mine.get(f"{AT}/bundles/{each['archive']}").status_code == 404
            assert everything.get(f"{AT}/bundles/{each['archive']}").status_code == 200
        assert mine.post(f"{AT}/bundles", json={"kbs": ["secret"]}).status_code == 403
        assert mine.post(f"{AT}/bundles", json={"kbs": ["files"]}).status_code == 409
        found = members(bundled(mine).content)
        manifest = json.loads(found["manifest.json"])
        assert (manifest["knowledge_bases"], manifest["whole"]) == (["mine"], False)
        assert SECRET.encode() not in b"".join(found.values())
        own = mine.post(f"{AT}/bundles", json={"kbs": ["mine"]}).json()
        got = mine.get(f"{AT}/bundles/{own['archive']}")
        assert (got.status_code, len(got.content)) == (200, own["bytes"])
        jobs = mine.get("/api/jobs").json()["data"]
        assert {tuple(job["kbs"]) for job in jobs} == {("mine",), ("files",)}
        assert restore(mine, got.content).status_code == 403


def test_bundle_download_takes_ranges_and_only_its_own_names(served):
    with connected(served) as client:
        created = client.post(f"{AT}/bundles", json={"kbs": ["mine"], "wait": False})
        assert created.status_code == 202
        job = client.get(created.headers["location"], params={"wait": 20}).json()
        at = f"{AT}/bundles/{job['result']['archive']}"
        whole = client.get(at)
        assert whole.headers["content-type"] == "application/zip"
        part = client.get(at, headers={"Range": "bytes=2-5"})
        assert (part.status_code, part.content) == (206, whole.content[2:6])
        for name in ("..%2F..%2Fcatalog", "%2Fetc%2Fpasswd", "0" * 32):
            assert client.get(f"{AT}/bundles/{name}").status_code == 404


def test_hostile_bundle_is_refused_and_changes_nothing(served):
    workspace, _, _ = served
    with connected(served) as client:
        good = members(bundled(client, kbs=["mine"]).content)
        before = state(workspace)
        attempts = {
            "would unpack to": packed({**good, "files/zeros.bin": bytes(100_000_000)}),
            "no zip file": b"PK\x03\x04",
            "has a member": added("../x")(good),
            "a knowledge base is configured": packed(
                edited(good, "knowledge_bases", lambda rows: rows[0].update(config=[]))
            ),
            "newer kbkit": packed(good, format=3),
        }
        for message, data in attempts.items():
            refused = restore(client, data)
            problem(refused, 409, "BundleError", message)
            assert str(workspace.path) not in refused.text
        problem(restore(client, bytes(1_100_000)), 413, "LimitError")
        for form in ({"verify": "no key"}, {"name": "No Name"}, {"trust": "perhaps"}):
            refused = restore(client, packed(good), **form)
            assert refused.status_code in (400, 409, 422), refused.text
            assert str(workspace.path) not in refused.text
        assert state(workspace) == before


def test_restore_with_an_idempotency_key_runs_once(served):
    with connected(served) as client:
        data = bundled(client, kbs=["mine"]).content
        client.headers["Idempotency-Key"] = "one"
        first = restore(client, data, name="once")
        again = restore(client, data, name="once")
        assert (first.status_code, again.status_code) == (200, 200), first.text
        assert first.json() == again.json()
        assert again.headers["idempotency-replayed"] == "true"
        assert restore(client, data + b" ", name="once").status_code == 409


def test_restored_file_sources_stay_disabled(served):
    with connected(served) as client:
        data = bundled(client, kbs=["mine"]).content
        came = restore(client, data, name="trusted", trust="true")
        assert (came.status_code, came.json()["sources"]) == (200, 1), came.text
        (source,) = client.get(f"{AT}/bases/trusted/sources").json()["data"]
        assert not source["enabled"]
        at = f"{AT}/bases/trusted/sources/{source['id']}"
        problem(client.patch(at, json={"enabled": True}), 403, "ForbiddenError")
        assert not client.get(at).json()["enabled"]
        (own,) = client.get(f"{AT}/bases/mine/sources").json()["data"]  # which was enabled here
        same = client.patch(f"{AT}/bases/mine/sources/{own['id']}", json={"enabled": True})
        assert (same.status_code, same.json()["enabled"]) == (200, True)
