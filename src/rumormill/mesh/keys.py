"""Keys of a mesh: a certificate authority of its own, and a certificate and a signing key per node."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rumormill.errors import InputError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

YEARS = 10


def make_authority(folder: Path, mesh: str) -> None:
    """Make ca.key and ca.crt, the certificate authority of a new mesh."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "ca.key").exists() or (folder / "ca.crt").exists():
        raise InputError(f"{folder} already holds the keys of a mesh")
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"rumormill mesh {mesh}")
    made = _certificate(name, name, key, key, x509.BasicConstraints(ca=True, path_length=0))
    _write(folder / "ca.key", _pem(key), private=True)
    _write(folder / "ca.crt", made)


def make_keys(folder: Path, node: str) -> str:
    """Make NODE.key and the certificate NODE.crt, signed by the authority; the public key as hex.

    Raises InputError if one of them exists: no key is overwritten.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    for path in (folder / f"{node}.key", folder / f"{node}.crt"):
        if path.exists():
            raise InputError(f"{path} is there already: move it away, or take another name for the node")
    try:
        authority = load_pem_private_key((folder / "ca.key").read_bytes(), None)
        signer = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    except OSError as error:
        raise InputError(f"the authority of the mesh cannot be read: {error}") from None
    assert isinstance(authority, ec.EllipticCurvePrivateKey)
    key = ed25519.Ed25519PrivateKey.generate()
    made = _certificate(
        _name(node), signer.subject, key, authority, x509.BasicConstraints(ca=False, path_length=None)
    )
    _write(folder / f"{node}.key", _pem(key), private=True)
    _write(folder / f"{node}.crt", made)
    return key.public_key().public_bytes_raw().hex()


def move_keys(folder: Path, node: str, number: int) -> None:
    """Move the keys of a removed node to removed/NODE-ID.key and .crt, if they are here."""
    for kind in ("key", "crt"):
        path = folder / f"{node}.{kind}"
        if path.exists():
            (folder / "removed").mkdir(exist_ok=True)
            path.rename(folder / "removed" / f"{node}-{number}.{kind}")


Sign = Callable[[bytes], bytes]
Verify = Callable[[int, bytes, bytes], bool]
"""(node, message, signature) -> whether it is that node's."""


def signing_keys(folder: Path, node: str, public: Mapping[int, str]) -> tuple[Sign, Verify]:
    """The functions that sign with the private key of `node` and verify with the public keys of all nodes."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        own = load_pem_private_key((folder / f"{node}.key").read_bytes(), None)
    except (OSError, ValueError) as error:
        raise InputError(f"the key of node {node!r} cannot be read from {folder}: {error}") from None
    if not isinstance(own, Ed25519PrivateKey):
        raise InputError(f"the key of node {node!r} cannot sign: remove the node and add it again")
    keys = {v: Ed25519PublicKey.from_public_bytes(bytes.fromhex(each)) for v, each in public.items()}

    def verify(v: int, message: bytes, signature: bytes) -> bool:
        try:
            keys[v].verify(signature, message)
        except (InvalidSignature, KeyError):
            return False
        return True

    return own.sign, verify


def _name(text: str) -> x509.Name:
    """A certificate subject."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: EllipticCurvePrivateKey | Ed25519PrivateKey,
    signer: EllipticCurvePrivateKey,
    kind: x509.BasicConstraints,
) -> bytes:
    """A certificate in PEM, valid for `YEARS` years."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding

    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=365 * YEARS))
        .add_extension(kind, critical=True)
        .sign(signer, hashes.SHA256())
    )
    return made.public_bytes(Encoding.PEM)


def _pem(key: EllipticCurvePrivateKey | Ed25519PrivateKey) -> bytes:
    """A private key in PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write a new file; a private key is created readable for its owner only."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o644)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
