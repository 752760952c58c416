"""Invalid bundles are refused with one message and without changes; signatures."""

import base64
import hashlib
import io
import json
import os
import stat
import struct
import warnings
import zipfile
import zlib

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from typer.testing import CliRunner

import kbkit
from kbkit import cli
from kbkit.errors import BundleError, ConfigError, ConflictError

pytestmark = pytest.mark.local


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Members of a valid bundle."""
    folder = tmp_path_factory.mktemp("good")
    with kbkit.Workspace(folder / "kb") as workspace:
        kb = workspace.create("drinks")
        kb.add("Tea", "# Tea\n\nGreen tea, and `kettle.boil()` of the class `Kettle`.\n")
        kb.rate(kb.documents["text:Tea"].id, 4, rater="ann")
        workspace.files.write("tea.md", "# Tea\n")
        workspace.bundle(folder / "good.zip")
    with zipfile.ZipFile(folder / "good.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("kb") / "kb"
    with kbkit.Workspace(path) as workspace:
        workspace.create("own").add("Mine", "# Mine\n\nMine.\n")
    return path


def packed(members, manifest=None, **changes):
    """A bundle of members, with a matching manifest but for some values."""
    if manifest is None:
        values = json.loads(members["manifest.json"])
        values["members"] = {
            name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in members.items()
            if name not in ("manifest.json", "signature.json")
        }
        manifest = json.dumps({**values, **changes}).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**members, "manifest.json": manifest}.items():
            archive.writestr(name, data)
    return stream.getvalue()


def edited(members, table, edit):
    name = f"tables/{table}.jsonl"
    rows = [json.loads(line) for line in members[name].splitlines()]
    edit(rows)
    return {**members, name: b"".join(json.dumps(row).encode() + b"\n" for row in rows)}


def set_to(table, **values):
    return lambda good: packed(edited(good, table, lambda rows: rows[0].update(values)))


def added(name, data=b"x"):
    return lambda good: packed({**good, name: data})


def twice(good):
    stream = io.BytesIO(packed(good))
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("tables/chunks.jsonl", good["tables/chunks.jsonl"])
    return stream.getvalue()


def bomb(good):
    return packed({**good, "files/zeros.bin": bytes(100_000_000)})


def lying_bomb(good):
    """Its header claims a small size."""
    data = bytearray(packed({**good, "files/zeros.bin": bytes(30_000_000)}))
    size = struct.pack("<L", 30_000_000)
    assert data.count(size) == 2
    return bytes(data).replace(size, struct.pack("<L", 10))


def link(good):
    stream = io.BytesIO(packed(good))
    about = zipfile.ZipInfo("files/link")
    about.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr(about, b"/etc/passwd")
    return stream.getvalue()


def flipped(good):
    data = bytearray(packed(good))
    data[200] ^= 1
    return bytes(data)


def other_digest(good):
    manifest = json.loads(packed_manifest(good))
    manifest["members"]["tables/chunks.jsonl"]["sha256"] = "0" * 64
    return packed(good, json.dumps(manifest).encode())


def packed_manifest(good):
    with zipfile.ZipFile(io.BytesIO(packed(good))) as archive:
        return archive.read("manifest.json")


def missing(good):
    return packed({k: v for k, v in good.items() if "chunks" not in k}, packed_manifest(good))


def config(**values):
    def edit(rows):
        rows[0]["config"].update(values)

    return lambda good: packed(edited(good, "knowledge_bases", edit))


def named(name):
    def change(good):
        members = edited(good, "knowledge_bases", lambda rows: rows[0].update(name=name))
        return packed(members, knowledge_bases=[name, "files"])

    return change


ONE = base64.b64encode(b"ab").decode()
PLUGIN = {"type": "llama-index", "model": "os:system", "arguments": {"command": "id"}}
HOSTILE = {
    "no zip": (lambda good: b"hello", "not a zip"),
    "empty": (lambda good: b"", "not a zip"),
    "cut off": (lambda good: packed(good)[:-40], "cut off"),
    "cut in half": (lambda good: packed(good)[: len(packed(good)) // 2], "cut off"),
    "flipped bit": (flipped, "damaged"),
    "traversal": (added("files/../../escaped"), "has a member"),
    "traversal, Windows": (added("files/..\\..\\escaped"), "has a member"),
    "absolute": (added("/tmp/escaped"), "has a member"),
    "drive": (added("files/C:/escaped"), "has a member"),
    "hidden file": (added("files/.bashrc"), "has a member"),
    "trash": (added("files/.trash/x"), "has a member"),
    "reserved name": (added("files/con"), "has a member"),
    "control character": (added("files/\x1b[2J"), "has a member"),
    "unknown member": (added("run.sh"), "has a member"),
    "picture that is none": (
        added(f"images/{'0' * 32}.svg", b"<svg onload='x()'/>"),
        "not an image",
    ),
    "entry in no folder": (added("entries/skill.yaml"), "has a member"),
    "bad slug": (added("entries/No Slug/skill.yaml"), "slug"),
    "link": (link, "does not name it"),
    "two of one name": (twice, "two members"),
    "bomb": (bomb, "unpack to"),
    "bomb that lies": (lying_bomb, "damaged"),
    "wrong digest": (other_digest, "SHA-256"),
    "member missing": (missing, "lacks"),
    "no manifest": (lambda good: packed(good, b""), "is not a manifest"),
    "manifest of lists": (lambda good: packed(good, b"[" * 100_000), "is not a manifest"),
    "manifest says more": (lambda good: packed(good, surprise=1), "is not a manifest"),
    "newer format": (lambda good: packed(good, format=3), "newer kbkit"),
    "older format": (lambda good: packed(good, format=1), "older kbkit"),
    "newer tables": (lambda good: packed(good, revision="9999"), "newer kbkit"),
    "older tables": (lambda good: packed(good, revision="0001"), "older kbkit"),
    "other names": (lambda good: packed(good, knowledge_bases=["x"]), "differ from its manifest"),
    "no JSON": (lambda g: packed({**g, "tables/chunks.jsonl": b"{\n"}), "not JSON"),
    "deep JSON": (lambda g: packed({**g, "tables/chunks.jsonl": b"[" * 100_000}), "not JSON"),
    "id that is SQL": (set_to("knowledge_bases", id='x"; DROP TABLE chunks; --'), "id is invalid"),
    "name that is none": (named("../up"), "row 1 of knowledge_bases"),
    "name of a built-in": (named("entries"), "name is reserved"),
    "foreign row": (set_to("documents", kb_id="0" * 32), "names no knowledge base"),
    "score": (set_to("ratings", score=600), "score"),
    "number as text": (set_to("chunks", start="0"), "start has an invalid value"),
    "number too large": (set_to("chunks", start=2**80), "start has an invalid value"),
    "version too large": (set_to("knowledge_bases", version=2**63 - 1), "version has an invalid"),
    "vectors too long": (set_to("knowledge_bases", dimensions=10**6), "figures are invalid"),
    "uses of a name": (set_to("name_uses", times=2**40), "times is impossible"),
    "lone surrogate": (set_to("documents", title="\ud800"), "title has an invalid value"),
    "no time": (set_to("documents", fetched_at="soon"), "fetched_at has an invalid value"),
    "column missing": (lambda g: packed(edited(g, "chunks", lambda r: r[0].popitem())), "columns"),
    "short vector": (set_to("vectors", vector=ONE), "length"),
    "vector of no chunk": (lambda g: packed(edited(g, "chunks", list.clear)), "names no chunk"),
    "chunk without a vector": (lambda g: packed(edited(g, "vectors", list.clear)), "vectors"),
    "chunks of one number": (
        lambda g: packed(edited(g, "chunks", lambda r: r.append({**r[0], "id": "0" * 32}))),
        "vectors",
    ),
    "chunk twice": (lambda g: packed(edited(g, "chunks", lambda r: r.append(dict(r[0])))), "fit"),
    "state": (set_to("documents", state="odd"), "state"),
    "unknown setting": (config(language="english", spell="x"), "configured in a way"),
    "code to run": (config(embedding=PLUGIN), "--trust"),
    "file to open": (config(embedding={"type": "onnx", "model": "/etc"}), "--trust"),
    "model to ask": (config(expand={"llm": "openai:gpt"}), "--trust"),
}


def contents(folder):
    """The content of all files of a folder, and a dump of the catalog."""
    import sqlite3

    with sqlite3.connect(folder / "catalog.db") as connection:
        dump = list(connection.iterdump())
    kept = {"catalog.db", "catalog.db-wal", "catalog.db-shm"}
    files = {
        os.fspath(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in kept and "locks" not in path.parts
    }
    return dump, files


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_bundle_is_refused_without_changes(good, folder, tmp_path, case):
    make, message = HOSTILE[case]
    path = tmp_path / "bundle.zip"
    path.write_bytes(make(good))
    before = contents(folder)
    around = sorted(folder.parent.iterdir())
    with kbkit.Workspace(folder) as workspace, pytest.raises(BundleError, match=message) as caught:
        workspace.restore(path)
    assert "nothing was changed" in str(caught.value)
    assert str(caught.value).isprintable()
    assert contents(folder) == before
    assert sorted(folder.parent.iterdir()) == around


def test_valid_bundle_is_restored(good, tmp_path):
    (tmp_path / "good.zip").write_bytes(packed(good))
    with kbkit.Workspace(tmp_path / "kb") as workspace:
        assert workspace.restore(tmp_path / "good.zip").knowledge_bases
        assert workspace["drinks"].search("green tea")[0].title == "Tea"


# ---- signatures


def pem(key):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def public_pem(key):
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.fixture
def keys(tmp_path):
    for name in ("ann", "eve"):
        key = ed25519.Ed25519PrivateKey.generate()
        (tmp_path / f"{name}.pem").write_bytes(pem(key))
        (tmp_path / f"{name}.pub").write_bytes(public_pem(key))
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (tmp_path / "rsa.pem").write_bytes(pem(other))
    (tmp_path / "rsa.pub").write_bytes(public_pem(other))
    return tmp_path


def test_signature_is_verified(folder, keys):
    signed, unsigned = keys / "signed.zip", keys / "unsigned.zip"
    with kbkit.Workspace(folder) as workspace:
        assert workspace.bundle(signed, sign=keys / "ann.pem").signed
        workspace.bundle(unsigned)
    with kbkit.Workspace(keys / "kb") as workspace:
        for file, key, message in (
            (signed, "eve.pub", "was not signed with the key"),
            (unsigned, "ann.pub", "is not signed"),
        ):
            with pytest.raises(BundleError, match=message):
                workspace.restore(file, verify=keys / key)
        assert list(workspace) == []
        assert workspace.restore(signed, verify=keys / "ann.pub").knowledge_bases


def test_forged_signature_is_refused(folder, keys):
    file, forged = keys / "signed.zip", keys / "forged.zip"
    with kbkit.Workspace(folder) as workspace:
        workspace.bundle(file, sign=keys / "ann.pem")
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    envelope = json.loads(members["signature.json"])
    changed = edited(members, "documents", lambda rows: rows[0].update(title="Yours"))
    foreign = {**envelope, "payloadType": "application/json"}
    attempts = [
        (changed, None, envelope),  # a valid manifest of other rows
        (members, members["manifest.json"] + b" ", envelope),
        (members, members["manifest.json"], foreign),
        (members, members["manifest.json"], {**envelope, "signatures": []}),
        (members, members["manifest.json"], {"signatures": [{"sig": "!"}]}),
        (members, members["manifest.json"], [[]]),
    ]
    with kbkit.Workspace(keys / "kb") as workspace:
        for parts, manifest, signature in attempts:
            data = packed({**parts, "signature.json": json.dumps(signature).encode()}, manifest)
            forged.write_bytes(data)
            with pytest.raises(BundleError, match="was not signed with the key"):
                workspace.restore(forged, verify=keys / "ann.pub")
        assert list(workspace) == []


def test_signature_follows_dsse(folder, keys):
    """See https://github.com/secure-systems-lab/dsse/blob/master/protocol.md"""
    with kbkit.Workspace(folder) as workspace:
        workspace.bundle(keys / "signed.zip", sign=keys / "ann.pem")
    with zipfile.ZipFile(keys / "signed.zip") as archive:
        manifest = archive.read("manifest.json")
        envelope = json.loads(archive.read("signature.json"))
    kind = b"application/vnd.kbkit.bundle+json"
    signed = b" ".join(
        (b"DSSEv1", str(len(kind)).encode(), kind, str(len(manifest)).encode(), manifest)
    )
    (signature,) = envelope["signatures"]
    key = load_pem_private_key((keys / "ann.pem").read_bytes(), None)
    key.public_key().verify(base64.b64decode(signature["sig"]), signed)
    assert base64.b64decode(envelope["payload"]) == manifest


@pytest.mark.parametrize("name", ["rsa.pem", "ann.pub", "none.pem", "signed.txt"])
def test_invalid_key_is_refused_before_any_work(folder, keys, name):
    (keys / "signed.txt").write_text("secret words")
    with kbkit.Workspace(folder) as workspace:
        with pytest.raises(ConfigError, match=r"openssl genpkey|cannot be read") as caught:
            workspace.bundle(keys / "x.zip", sign=keys / name)
        assert "secret" not in str(caught.value)
        workspace.bundle(keys / "y.zip")
        other = name.replace("rsa.pem", "rsa.pub").replace("ann.pub", "ann.pem")
        with pytest.raises(ConfigError, match=r"openssl genpkey|cannot be read"):
            workspace.restore(keys / "y.zip", verify=keys / other)
        assert not (keys / "x.zip").exists()
    with pytest.raises(ConflictError):
        kbkit.Workspace(folder).bundle(keys / "y.zip")


def test_command_line_raises_bundle_error(good, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("KBKIT_WORKSPACE", str(folder))
    (tmp_path / "bad.zip").write_bytes(zlib.compress(b"nothing"))
    result = CliRunner().invoke(cli.app, ["restore", str(tmp_path / "bad.zip")])
    assert isinstance(result.exception, BundleError)
