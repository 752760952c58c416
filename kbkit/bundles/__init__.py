"""Bundles: knowledge bases in one portable file.

A bundle is a zip file. ``manifest.json`` lists format, versions, knowledge bases, and the other
members with sizes and SHA-256; ``tables/*.jsonl`` are rows of the catalog, one JSON object per
line; ``images/``, ``files/`` and ``entries/`` are files. An optional ``signature.json`` is a DSSE
envelope around the manifest. The same content gives the same bytes. A bundle that is read may be
hostile: everything is checked before use.
"""

import base64
import hashlib
import json
import os
import re
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from kbkit.errors import BundleError, ConfigError, ConflictError, FilesError
from kbkit.extras import extra
from kbkit.files.paths import parts_of
from kbkit.paths import open_file

FORMAT = 2
MANIFEST = "manifest.json"
SIGNATURE = "signature.json"
_BEGIN = (1980, 1, 1, 0, 0, 0)  # modification time of all members
_ENDING = ".kbkit.zip"


def bundle_path(place: str | Path) -> Path:
    path = Path(place).absolute()
    if path.is_dir():
        now = datetime.now(UTC)
        path /= f"kbkit-{now:%Y-%m-%dT%H-%M-%SZ}{_ENDING}"
    if not path.parent.is_dir():
        raise BundleError(f"{path.parent}: is not a folder; create it, or name another file")
    if os.path.lexists(path):
        raise ConflictError(f"{path}: already exists; choose another name")
    return path


class BundleWriter(AbstractContextManager["BundleWriter"]):
    """A bundle under a temporary name until it is complete."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._members: dict[str, dict[str, Any]] = {}
        with unwritten(path):
            handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".kbkit-", suffix=".part")
        self._draft = Path(draft)
        self._stream = os.fdopen(handle, "w+b")
        self._zip = zipfile.ZipFile(self._stream, "w")

    def add(self, name: str, parts: Iterable[bytes]) -> None:
        entry = zipfile.ZipInfo(name, _BEGIN)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = 0o644 << 16
        entry.create_system = 3  # the same on all systems
        digest, size = hashlib.sha256(), 0
        with unwritten(self.path), self._zip.open(entry, "w", force_zip64=True) as stream:
            for part in parts:
                digest.update(part)
                size += len(part)
                stream.write(part)
        self._members[name] = {"bytes": size, "sha256": digest.hexdigest()}

    def add_rows(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add a member of JSON lines."""
        texts = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
        # replaces lone surrogates, which UTF-8 cannot encode
        self.add(name, (text.encode("utf-8", "replace") + b"\n" for text in texts))

    def finish(self, values: Mapping[str, Any], sign: Callable[[bytes], bytes] | None) -> str:
        contents = {"format": FORMAT, **values, "members": dict(sorted(self._members.items()))}
        manifest = json.dumps(contents, indent=1, ensure_ascii=False).encode() + b"\n"
        self.add(MANIFEST, [manifest])
        if sign is not None:
            self.add(SIGNATURE, [sign(manifest)])
        with unwritten(self.path):
            self._zip.close()
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._stream.close()
            bundle_path(self.path)
            self._draft.replace(self.path)
        return hashlib.sha256(manifest).hexdigest()

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._zip.fp = None  # a discarded file needs no central directory
        with suppress(OSError):  # a full disk has no room for buffered bytes
            self._stream.close()
        self._draft.unlink(missing_ok=True)


@contextmanager
def unwritten(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BundleError(
            f"{path}: cannot be written ({error.strerror}); name a file in a folder that you may "
            "write to, with room for it"
        ) from error


_MAX_LENGTH = 200_000_000  # bytes of one line
_MAX_MEMBERS = 1_000_000
_LARGEST_MANIFEST = 100_000_000
# a bundle may unpack to 100 times its size, and to 50 MB in any case
_RATIO, _FREE = 100, 50_000_000
_BLOCK = 1 << 20
_DAMAGED = (OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError)
_FOLDERS = ("files", "entries")
_TABLE = re.compile(r"tables/[a-z_]+\.jsonl")
_IMAGE = re.compile(r"images/[0-9a-f]{32}\.(?:png|jpg|gif|webp|svg)")


class _Member(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class BundleManifest(BaseModel):
    """Manifest of a bundle; ``members`` has size and SHA-256 of all others but the signature."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: int
    kbkit: str
    revision: str
    whole: bool
    knowledge_bases: list[str]
    members: dict[str, _Member]


class BundleReader(AbstractContextManager["BundleReader"]):
    """An open bundle, checked except for its signature."""

    def __init__(self, path: Path, revision: str) -> None:
        self.path = path
        with ExitStack() as stack:
            try:
                file = stack.enter_context(open_file(path))
                self._zip = stack.enter_context(zipfile.ZipFile(file))
            except OSError as error:
                raise BundleError(f"{path}: cannot be read ({error.strerror or error})") from error
            except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
                raise self._bad(f"is not a zip file, or was cut off ({error})") from None
            self._infos = self._members()
            self.manifest_bytes = self._small(MANIFEST)
            self.signature = self._small(SIGNATURE) if SIGNATURE in self._infos else None
            self.manifest = self._parse_manifest(revision)
            self._check_members()
            self._opened = stack.pop_all()

    def rows(self, table: str) -> Iterator[Any]:
        """Iterate over the rows of a table, if it exists; check its digest again."""
        name = f"tables/{table}.jsonl"
        if name not in self._infos:
            return
        partial = b""
        number = 0
        for block in chain(self.blocks(name), [b"\n"]):  # the last line may have no end
            *lines, partial = (partial + block).split(b"\n")
            if len(partial) > _MAX_LENGTH:
                raise self._bad(f"{name}: line {number + 1:,} is too long")
            for line in filter(None, lines):
                number += 1
                try:
                    yield json.loads(line)
                except (ValueError, RecursionError):
                    raise self._bad(f"{name}: line {number:,} is not JSON") from None

    def names(self, folder: str) -> list[str]:
        return sorted(n.partition("/")[2] for n in self._infos if n.startswith(f"{folder}/"))

    def read(self, name: str) -> bytes:
        return b"".join(self.blocks(name))

    def blocks(self, name: str) -> Iterator[bytes]:
        member, digest, size = self.manifest.members[name], hashlib.sha256(), 0
        try:
            with self._zip.open(self._infos[name]) as stream:
                while block := stream.read(_BLOCK):
                    digest.update(block)
                    size += len(block)
                    if size > member.bytes:
                        break
                    yield block
        except _DAMAGED as error:
            raise self._bad(f"{name}: cannot be read ({error})") from None
        if (size, digest.hexdigest()) != (member.bytes, member.sha256):
            raise self._bad(f"{name}: differs from the manifest (size or SHA-256)")

    def _members(self) -> dict[str, zipfile.ZipInfo]:
        infos = self._zip.infolist()
        members = {info.filename: info for info in infos}
        if len(members) != len(infos):
            raise self._bad("has two members with the same name")
        if len(members) > _MAX_MEMBERS:
            raise self._bad("has too many members")
        for name, info in members.items():
            if info.orig_filename != name or not _is_known(name):
                raise self._bad(f"has a member {ascii(info.orig_filename)[:100]}")
            is_supported = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            if info.flag_bits & 1 or not is_supported:
                raise self._bad(f"{name}: is encrypted, or compressed in an unsupported way")
        size = sum(info.file_size for info in infos)
        if size > _FREE + _RATIO * self.path.stat().st_size:
            raise self._bad(f"would unpack to {size / 1e6:,.0f} MB, far more than any bundle")
        return members

    def _small(self, name: str) -> bytes:
        info = self._infos.get(name)
        if info is None:
            raise self._bad(f"has no {name}")
        if info.file_size > _LARGEST_MANIFEST:
            raise self._bad(f"{name}: is too large")
        try:
            with self._zip.open(info) as stream:
                return stream.read(_LARGEST_MANIFEST)
        except _DAMAGED as error:
            raise self._bad(f"{name}: cannot be read ({error})") from None

    def _parse_manifest(self, revision: str) -> BundleManifest:
        current = FORMAT, revision
        try:
            values = json.loads(self.manifest_bytes)
            actual = values["format"], values["revision"]
            is_newer = actual > current
            if actual == current:
                return BundleManifest.model_validate_json(self.manifest_bytes)
        except (ValueError, TypeError, KeyError, RecursionError):
            raise self._bad(f"{MANIFEST}: is not a manifest") from None
        raise BundleError(
            f"{self.path}: made by {'a newer' if is_newer else 'an older'} kbkit "
            f"({ascii(values.get('kbkit'))[1:20]}); "
            f"{'upgrade kbkit' if is_newer else 'restore it with that one'}; nothing was changed"
        )

    def _check_members(self) -> None:
        names = self._infos.keys() - {MANIFEST, SIGNATURE}
        if missing := self.manifest.members.keys() - names:
            raise self._bad(f"lacks {ascii(min(missing))[:100]}")
        if unknown := names - self.manifest.members.keys():
            raise self._bad(f"{min(unknown)}: the manifest does not name it")
        for name, member in self.manifest.members.items():
            if self._infos[name].file_size != member.bytes:
                raise self._bad(f"{name}: differs from the manifest (size or SHA-256)")
            for _ in self.blocks(name):
                pass

    def _bad(self, reason: str) -> BundleError:
        return BundleError(
            f"{self.path}: {reason}; the bundle is damaged, or not from kbkit; nothing was changed"
        )

    def __exit__(self, *_: object) -> None:
        self._opened.close()


def _is_known(name: str) -> bool:
    if name in (MANIFEST, SIGNATURE) or _TABLE.fullmatch(name) or _IMAGE.fullmatch(name):
        return True
    folder, _, path = name.partition("/")
    if folder not in _FOLDERS or not path:
        return False
    try:
        parts = parts_of(path)
    except FilesError:
        return False
    return "/".join(parts) == path and (folder == "files" or len(parts) > 1)


PAYLOAD_TYPE = "application/vnd.kbkit.bundle+json"
_MAKE = (
    "make a pair with `openssl genpkey -algorithm ed25519 -out key.pem` and "
    "`openssl pkey -in key.pem -pubout -out key.pub`"
)


def sign(manifest: bytes, key_file: str | Path) -> bytes:
    key = load_key(key_file)
    public = key.public_key().public_bytes_raw()
    signature = base64.b64encode(key.sign(_signed_bytes(manifest))).decode()
    signatures = [{"keyid": hashlib.sha256(public).hexdigest(), "sig": signature}]
    payload = base64.b64encode(manifest).decode()
    envelope = {"payloadType": PAYLOAD_TYPE, "payload": payload, "signatures": signatures}
    return json.dumps(envelope, indent=1, sort_keys=True).encode() + b"\n"


def verify(envelope: bytes | None, manifest: bytes, key_file: str | Path) -> None:
    key = load_key(key_file, private=False)
    if envelope is None:
        raise BundleError(
            "the bundle is not signed, but must be signed by the owner of "
            f"{key_file}; nothing was changed"
        )
    from cryptography.exceptions import InvalidSignature

    for signature in _signatures(envelope, manifest):
        try:
            key.verify(signature, _signed_bytes(manifest))
        except InvalidSignature:
            continue
        return
    raise BundleError(
        f"the bundle was not signed with the key that {key_file} belongs to, or was changed since; "
        "nothing was changed here"
    )


def _signatures(envelope: bytes, manifest: bytes) -> list[bytes]:
    try:
        values = json.loads(envelope)
        if values["payloadType"] != PAYLOAD_TYPE:
            return []
        if base64.b64decode(values["payload"], validate=True) != manifest:
            return []
        return [base64.b64decode(each["sig"], validate=True) for each in values["signatures"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        return []


def _signed_bytes(payload: bytes) -> bytes:
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def load_key(path: str | Path, *, private: bool = True) -> Any:
    purpose = "Signing bundles" if private else "Checking who signed a bundle"
    with extra("sign", "cryptography", purpose):
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); name a key file") from None
    key: Any = None
    with suppress(ValueError, TypeError, UnsupportedAlgorithm):  # the reason may quote the key
        if private:
            key = serialization.load_pem_private_key(data, None)
        else:
            key = serialization.load_pem_public_key(data)
    if isinstance(key, ed25519.Ed25519PrivateKey if private else ed25519.Ed25519PublicKey):
        return key
    kind = "private Ed25519 key in a PEM file without a password"
    if not private:
        kind = "public Ed25519 key in a PEM file"
    raise ConfigError(f"{path}: is not a {kind}; {_MAKE}")
