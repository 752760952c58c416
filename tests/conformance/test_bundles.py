"""Bundles: of a folder, and of a workspace that a server holds."""

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
    made = workspace.create("drinks", description="Of drinks")
    made.add("Tea", "# Tea\n\nGreen tea steeps for two minutes.\n")
    made.rate(made.documents["text:Tea"].id, 4, rater="ann")
    made.sources.add(PageSource(url="https://example.org/tea"))
    workspace.create("food").add("Bread", "# Bread\n\nBake bread for an hour.\n")
    workspace.files.write("notes/tea.md", "# Tea\n\nOurs comes from Uji.\n")
    workspace.entries.create("Brew tea", slug="brew-tea", prompt="Boil water.")
    return made


@pytest.fixture
def keys(tmp_path):
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "key.pem").write_bytes(private)
    (tmp_path / "key.pub").write_bytes(public)
    return tmp_path


def test_some_knowledge_bases_go_into_a_bundle_and_come_back_as_a_copy(workspace, kb, tmp_path):
    seen = []
    done = workspace.bundle(tmp_path / "drinks.zip", kbs=["drinks"], on_progress=seen.append)
    assert (done.knowledge_bases, done.documents, done.chunks) == (("drinks",), 1, 1)
    assert (done.path, done.signed, done.skipped) == (str(tmp_path / "drinks.zip"), False, ())
    assert done.bytes == (tmp_path / "drinks.zip").stat().st_size
    came = workspace.restore(tmp_path / "drinks.zip", name="copy", on_progress=seen.append)
    assert came.bundle == str(tmp_path / "drinks.zip")
    (found,) = came.knowledge_bases
    assert (found.name, found.new, found.documents, found.ratings) == ("copy", True, 1, 1)
    assert came.sources == 1
    copy = workspace["copy"]
    assert copy.search("green tea")[0].title == "Tea"
    assert [each.enabled for each in copy.sources] == [False]
    assert copy.sources.enable("https://example.org/tea").enabled
    again = workspace.restore(tmp_path / "drinks.zip", trust=True)
    assert [(each.new, each.documents, each.ratings) for each in again.knowledge_bases] == [
        (False, 0, 0)
    ]
    workspace.delete("copy", forever=True)


def test_all_goes_to_a_folder_and_is_restored_elsewhere(workspace, kb, tmp_path):
    done = workspace.bundle(tmp_path)
    assert done.path.startswith(str(tmp_path / "kbkit-"))
    assert {"drinks", "food", "files", "entries"} <= set(done.knowledge_bases)
    with kbkit.open(tmp_path / "kb") as other:
        came = other.restore(done.path, trust=True)
        assert {"files/notes/tea.md", "entries/brew-tea/prompt.md"} <= set(came.files)
        assert other.files.read("notes/tea.md") == workspace.files.read("notes/tea.md")
        assert [each.enabled for each in other["drinks"].sources] == [True]


def test_a_bundle_is_signed_by_who_asks_and_restored_if_they_are_whom_is_wanted(
    workspace, kb, keys, disk
):
    kb.improve()  # a server does it some time after a change, perhaps between the bundles
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


def test_what_cannot_be_bundled_or_restored_is_one_clear_error(workspace, kb, tmp_path):
    before = list(workspace)
    with pytest.raises(errors.NotFoundError, match="missing"):
        workspace.bundle(tmp_path / "new.zip", kbs=["missing"])
    with pytest.raises(errors.ImpossibleError, match="bundle all of it"):
        workspace.bundle(tmp_path / "new.zip", kbs=["files"])
    with pytest.raises(errors.ConfigError):
        workspace.bundle(tmp_path / "new.zip", kbs=[])
    (tmp_path / "there.zip").write_bytes(b"mine")
    with pytest.raises(errors.ConflictError, match="is there already"):
        workspace.bundle(tmp_path / "there.zip")
    with pytest.raises(errors.BundleError, match="is no folder"):
        workspace.bundle(tmp_path / "none" / "new.zip")
    with pytest.raises(errors.BundleError, match=r"no zip file.*nothing was changed"):
        workspace.restore(tmp_path / "there.zip")
    with pytest.raises(errors.BundleError, match="cannot be read"):
        workspace.restore(tmp_path / "missing.zip")
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as packed:
        packed.writestr("../../escaped.md", b"# Out")
    with pytest.raises(errors.BundleError, match=r"escaped.*nothing was changed"):
        workspace.restore(tmp_path / "bad.zip")
    workspace.bundle(tmp_path / "two.zip", kbs=["drinks", "food"])
    with pytest.raises(errors.ImpossibleError, match="holds 2 knowledge bases"):
        workspace.restore(tmp_path / "two.zip", name="one")
    with pytest.raises(errors.InvalidNameError):
        workspace.restore(tmp_path / "two.zip", name="No Name")
    assert list(workspace) == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bad.zip", "there.zip", "two.zip"]


def test_it_is_awaited_too(workspace, kb, tmp_path):
    if not hasattr(workspace, "url"):
        pytest.skip("a folder is not awaited")

    async def main() -> None:
        async with AsyncWorkspace(workspace.url) as later:
            done = await later.bundle(tmp_path / "drinks.zip", kbs=["drinks"])
            came = await later.restore(done.path, name="awaited")
            assert came.knowledge_bases[0].documents == done.documents == 1
            await later.delete("awaited", forever=True)

    asyncio.run(main())
