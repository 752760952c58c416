"""Bundles of local and served workspaces."""

import asyncio
import zipfile

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

import kbkit
from kbkit import errors
from kbkit.client import AsyncWorkspace
from kbkit.recipes import PageSource


@pytest.fixture(scope="module")
def kb(workspace):
    kb = workspace.create("drinks", description="Of drinks")
    kb.add("Tea", "# Tea\n\nGreen tea steeps for two minutes.\n")
    kb.rate(kb.documents["text:Tea"].id, 4, rater="ann")
    kb.sources.add(PageSource(url="https://example.org/tea"))
    workspace.create("food").add("Bread", "# Bread\n\nBake bread for an hour.\n")
    workspace.files.write("notes/tea.md", "# Tea\n\nOurs comes from Uji.\n")
    workspace.entries.create("Brew tea", slug="brew-tea", prompt="Boil water.")
    return kb


@pytest.fixture
def keys(tmp_path):
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "key.pem").write_bytes(private)
    (tmp_path / "key.pub").write_bytes(public)
    return tmp_path


def test_bundle_of_a_knowledge_base_is_restored_as_a_copy(workspace, kb, tmp_path):
    seen = []
    path = tmp_path / "drinks.zip"
    done = workspace.bundle(path, kbs=["drinks"], on_progress=seen.append)
    assert (done.knowledge_bases, done.documents, done.chunks) == (("drinks",), 1, 1)
    assert (done.path, done.signed, done.skipped) == (str(path), False, ())
    assert done.bytes == path.stat().st_size
    came = workspace.restore(path, name="copy", on_progress=seen.append)
    assert came.bundle == str(path)
    (found,) = came.knowledge_bases
    assert (found.name, found.new, found.documents, found.ratings) == ("copy", True, 1, 1)
    assert came.sources == 1
    copy = workspace["copy"]
    assert copy.search("green tea")[0].title == "Tea"
    assert [each.enabled for each in copy.sources] == [False]
    assert copy.sources.enable("https://example.org/tea").enabled
    (again,) = workspace.restore(path, trust=True).knowledge_bases
    assert (again.new, again.documents, again.ratings) == (False, 0, 0)
    workspace.delete("copy", forever=True)


def test_bundle_of_everything_is_restored_elsewhere(workspace, kb, tmp_path):
    done = workspace.bundle(tmp_path)
    assert done.path.startswith(str(tmp_path / "kbkit-"))
    assert {"drinks", "food", "files", "entries"} <= set(done.knowledge_bases)
    with kbkit.open(tmp_path / "kb") as other:
        came = other.restore(done.path, trust=True)
        assert {"files/notes/tea.md", "entries/brew-tea/prompt.md"} <= set(came.files)
        assert other.files.read("notes/tea.md") == workspace.files.read("notes/tea.md")
        assert [each.enabled for each in other["drinks"].sources] == [True]


def test_signed_bundle_is_restored_with_the_right_key(workspace, kb, keys, disk):
    kb.improve()  # a server does so after a change, perhaps between the bundles
    signed = workspace.bundle(keys / "signed.zip", kbs="drinks", sign=keys / "key.pem")
    assert signed.signed
    assert signed.bytes == (keys / "signed.zip").stat().st_size
    folder = "server" if hasattr(workspace, "url") else "folder"
    with kbkit.open(disk / folder) as same:
        same.bundle(keys / "here.zip", kbs="drinks", sign=keys / "key.pem")
    assert (keys / "here.zip").read_bytes() == (keys / "signed.zip").read_bytes()
    came = workspace.restore(keys / "signed.zip", name="theirs", verify=keys / "key.pub")
    assert (came.knowledge_bases[0].name, came.sources) == ("theirs", 0)
    workspace.delete("theirs", forever=True)
    workspace.bundle(keys / "unsigned.zip", kbs=["drinks"])
    with pytest.raises(errors.BundleError, match="is not signed"):
        workspace.restore(keys / "unsigned.zip", name="theirs", verify=keys / "key.pub")
    with pytest.raises(errors.ConfigError, match="is no public Ed25519 key"):
        workspace.restore(keys / "signed.zip", verify=keys / "key.pem")
    with pytest.raises(errors.ConfigError, match="is no private Ed25519 key"):
        workspace.bundle(keys / "other.zip", sign=keys / "key.pub")
    assert not list(keys.glob("other.zip")) + list(keys.glob(".kbkit-*"))


def test_bundle_and_restore_errors(workspace, kb, tmp_path):
    before = list(workspace)
    new, existing, bad, two = (tmp_path / f"{name}.zip" for name in ("new", "there", "bad", "two"))
    existing.write_bytes(b"mine")
    with zipfile.ZipFile(bad, "w") as packed:
        packed.writestr("../../escaped.md", b"# Out")
    workspace.bundle(two, kbs=["drinks", "food"])
    for kind, message, call in (
        (errors.NotFoundError, "missing", lambda: workspace.bundle(new, kbs=["missing"])),
        (errors.ImpossibleError, "bundle all of it", lambda: workspace.bundle(new, kbs=["files"])),
        (errors.ConfigError, None, lambda: workspace.bundle(new, kbs=[])),
        (errors.ConflictError, "is there already", lambda: workspace.bundle(existing)),
        (errors.BundleError, "is no folder", lambda: workspace.bundle(tmp_path / "none/new.zip")),
        (errors.BundleError, "no zip file.*nothing was", lambda: workspace.restore(existing)),
        (errors.BundleError, "cannot be read", lambda: workspace.restore(tmp_path / "missing.zip")),
        (errors.BundleError, "escaped.*nothing was changed", lambda: workspace.restore(bad)),
        (errors.ImpossibleError, "holds 2 know", lambda: workspace.restore(two, name="one")),
        (errors.InvalidNameError, None, lambda: workspace.restore(two, name="No Name")),
    ):
        with pytest.raises(kind, match=message):
            call()
    assert list(workspace) == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bad.zip", "there.zip", "two.zip"]


def test_bundles_can_be_awaited(url, kb, tmp_path):
    async def main() -> None:
        async with AsyncWorkspace(url) as later:
            done = await later.bundle(tmp_path / "drinks.zip", kbs=["drinks"])
            came = await later.restore(done.path, name="awaited")
            assert came.knowledge_bases[0].documents == done.documents == 1
            await later.delete("awaited", forever=True)

    asyncio.run(main())
