"""Keys of a mesh: a certificate authority of its own, and a certificate and a signing key per node.

Nodes load them as TLS contexts; a certificate whose serial number the mesh file revokes is refused by peers.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rumormill.errors import InputError
from rumormill.mesh.file import serial_text

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

YEARS = 10
# X509_V_FLAG_NO_CHECK_TIME of OpenSSL: an expired certificate can be read too.
NO_CHECK_TIME = 0x200000


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


def move_keys(folder: Path, node: str, label: str) -> None:
    """Move the keys of a node to removed/NODE-LABEL.key and .crt, if they are here."""
    for kind in ("key", "crt"):
        path = folder / f"{node}.{kind}"
        if path.exists():
            (folder / "removed").mkdir(exist_ok=True)
            path.rename(folder / "removed" / f"{node}-{label}.{kind}")


def serial_of(folder: Path, node: str) -> str | None:
    """The serial number of a node's certificate; None if it is not here."""
    from cryptography import x509

    path = folder / f"{node}.crt"
    if not path.exists():
        return None
    try:
        return serial_text(x509.load_pem_x509_certificate(path.read_bytes()).serial_number)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None


FAILED: ContextVar[list[ssl.SSLError] | None] = ContextVar("FAILED", default=None)
"""Where the handshakes of this task report why they failed."""


class AlertSender(ssl.SSLObject):
    """Lets asyncio send the alert of a failed handshake, which it drops: the peer logs the reason too."""

    _failure: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        """As of SSLObject; a failure is raised by the next call, after what it has written was sent."""
        failures = FAILED.get()
        if self._failure is not None:
            raise self._failure
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            if failures is None or "ALERT" in error.reason:  # the peer's alert: there is none to send
                raise
            failures.append(error)
            self._failure = error
            raise ssl.SSLWantReadError from None


@dataclass(frozen=True)
class NodeTls:
    """The TLS contexts of a node, and what its certificate says."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    serial: str
    expires: Mapping[str, float]
    """When the certificates of the "node" and of the "authority" expire, in seconds since 1970."""


def load_tls(folder: Path, node: str) -> NodeTls:
    """The keys of a node; InputError unless key, certificate and authority belong together."""
    contexts = [_context(folder, node, server=server) for server in (True, False, True, False)]
    for context in contexts[2:]:
        context.verify_flags |= NO_CHECK_TIME
    try:
        own = _seen_by_peers(*contexts[2:])
    except ssl.SSLError as error:
        raise InputError(
            f"{folder / node}.crt is not a certificate of the authority {folder / 'ca.crt'}: {error.reason}"
        ) from None
    if common_name(own) != node:
        raise InputError(f"{folder / node}.crt is the certificate of {common_name(own)!r}, not of {node!r}")
    dates = {"node": own, "authority": contexts[1].get_ca_certs()[0]}
    expires = {name: float(ssl.cert_time_to_seconds(str(each["notAfter"]))) for name, each in dates.items()}
    return NodeTls(contexts[0], contexts[1], serial_number(own), expires)


def common_name(certificate: Mapping[str, Any]) -> str:
    """The node that a certificate names, in the form of `getpeercert`; empty if there is none."""
    names = (value for part in certificate.get("subject", ()) for key, value in part if key == "commonName")
    return str(next(names, ""))


def serial_number(certificate: Mapping[str, Any]) -> str:
    """The serial number of a certificate in the form of `getpeercert`."""
    return serial_text(int(certificate.get("serialNumber", "0"), 16))


def _context(folder: Path, node: str, *, server: bool) -> ssl.SSLContext:
    """TLS 1.3 with the node's own certificate, and the mesh's authority as the only one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.sslobject_class = AlertSender
    if server:
        context.num_tickets = 0
    try:
        context.load_verify_locations(folder / "ca.crt")
        context.load_cert_chain(folder / f"{node}.crt", folder / f"{node}.key")
    except (OSError, ssl.SSLError) as error:
        raise InputError(
            f"keys of node {node!r} cannot be read from {folder}: {error}; `rumormill mesh add` makes some"
        ) from None
    return context


def _seen_by_peers(server: ssl.SSLContext, client: ssl.SSLContext) -> Mapping[str, Any]:
    """The node's own certificate, from a handshake with itself in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(to_client, to_server)
    two = server.wrap_bio(to_server, to_client, server_side=True)
    for side in (one, two, one, two):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return one.getpeercert() or {}


Sign = Callable[[bytes], bytes]
Verify = Callable[[int, bytes, bytes], bool]
"""(node, message, signature) -> whether it is that node's."""


def signing_keys(folder: Path, node: str, public: Mapping[int, Sequence[str]]) -> tuple[Sign, Verify]:
    """The functions that sign with the private key of `node` and verify with the public keys of all nodes.

    A node has one public key, and those it had before it was rotated.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        own = load_pem_private_key((folder / f"{node}.key").read_bytes(), None)
    except (OSError, ValueError) as error:
        raise InputError(f"the key of node {node!r} cannot be read from {folder}: {error}") from None
    if not isinstance(own, Ed25519PrivateKey):
        raise InputError(f"the key of node {node!r} cannot sign: remove the node and add it again")
    keys = {
        v: [Ed25519PublicKey.from_public_bytes(bytes.fromhex(each)) for each in known]
        for v, known in public.items()
    }

    def verify(v: int, message: bytes, signature: bytes) -> bool:
        for key in keys.get(v, ()):
            with contextlib.suppress(InvalidSignature):
                key.verify(signature, message)
                return True
        return False

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
