"""Signatures of bundles: Ed25519, in a DSSE envelope.

Of the envelope: https://github.com/secure-systems-lab/dsse/blob/master/protocol.md
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from kbkit.errors import BundleError, ConfigError
from kbkit.extras import extra

PAYLOAD_TYPE = "application/vnd.kbkit.bundle+json"
_MAKE = (
    "make a pair with `openssl genpkey -algorithm ed25519 -out key.pem` and "
    "`openssl pkey -in key.pem -pubout -out key.pub`"
)


def sign(manifest: bytes, key_file: str | Path) -> bytes:
    key = private_key(key_file)
    public = key.public_key().public_bytes_raw()
    signature = {
        "keyid": hashlib.sha256(public).hexdigest(),
        "sig": base64.b64encode(key.sign(_encoded(manifest))).decode(),
    }
    envelope = {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(manifest).decode(),
        "signatures": [signature],
    }
    return json.dumps(envelope, indent=1, sort_keys=True).encode() + b"\n"


def verify(envelope: bytes | None, manifest: bytes, key_file: str | Path) -> None:
    key = _public_key(key_file)
    if envelope is None:
        raise BundleError(
            "the bundle is not signed, and was to be by the owner of "
            f"{key_file}; nothing was changed"
        )
    from cryptography.exceptions import InvalidSignature

    for signature in _signatures(envelope, manifest):
        try:
            key.verify(signature, _encoded(manifest))
        except InvalidSignature:
            continue
        return
    raise BundleError(
        f"the bundle was not signed with the key that {key_file} belongs to, or was changed since; "
        "nothing was changed here"
    )


def _signatures(envelope: bytes, manifest: bytes) -> list[bytes]:
    try:
        said = json.loads(envelope)
        if said["payloadType"] != PAYLOAD_TYPE:
            return []
        if base64.b64decode(said["payload"], validate=True) != manifest:
            return []
        return [base64.b64decode(each["sig"], validate=True) for each in said["signatures"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        return []


def _encoded(payload: bytes) -> bytes:
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def private_key(path: str | Path) -> Any:
    """Load a private key; raises the errors of `sign`."""
    with extra("sign", "cryptography", "Signing bundles"):
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    try:
        key = load_pem_private_key(_read(path), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # the reason may quote the key
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(
            f"{path}: is no private Ed25519 key in a PEM file without a password; {_MAKE}"
        )
    return key


def public_pem(path: str | Path) -> str:
    """A public key as PEM, and nothing else that the file holds."""
    key = _public_key(path)
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    pem: bytes = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem.decode()


def _public_key(path: str | Path) -> Any:
    with extra("sign", "cryptography", "Checking who signed a bundle"):
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    try:
        key = load_pem_public_key(_read(path))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise ConfigError(f"{path}: is no public Ed25519 key in a PEM file; {_MAKE}")
    return key


def _read(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); name a key file") from None
