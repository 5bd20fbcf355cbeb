"""Certificates of a federation's server and keys of its parties, by the library `cryptography`.

The server shows a certificate of the federation's own authority; a party proves who it is by
signing with its key (NIST P-384, in OpenSSH's format, as `ssh-keygen -t ecdsa -b 384` makes them).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, final

from ostraka.errors import NeedError, StoreError, writing
from ostraka.store.files import make_folder, opened_log

AUTHORITY_DAYS = 3650
SERVER_DAYS = 825
"""How long certificates hold; more than 825 days, and some systems refuse a server's."""


@final
@dataclass(frozen=True)
class Authority:
    """A federation's own authority: its certificate, and the key that signs the server's."""

    certificate: Path
    key: Path


def library() -> Any:
    """The library `cryptography`, which Flower brings."""
    try:
        import cryptography.x509 as x509
    except ImportError:
        raise NeedError(
            "a federation needs Flower and the library cryptography, which are not installed: "
            "pip install 'ostraka[flower]'"
        ) from None
    return x509


def make_authority(name: str, at: Authority) -> None:
    """A new authority; its key is for nobody but its owner to read."""
    x509 = library()
    from cryptography.hazmat.primitives import hashes

    key, subject = _new_key(), _name(f"Ostraka federation {name}")
    usage = {name: False for name in _USAGES} | {"key_cert_sign": True, "crl_sign": True}
    made = (
        _begun(subject, key.public_key(), AUTHORITY_DAYS)
        .issuer_name(subject)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA384())
    )
    _write_private(at.key, _pem_of(key))
    _write(at.certificate, _pem(made))


def make_server(hosts: Sequence[str], by: Authority, certificate: Path, key_file: Path) -> None:
    """A server's certificate for these names and addresses, signed by the authority."""
    x509 = library()
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        signer: Any = load_pem_private_key(_read(by.key), None)
    except (ValueError, TypeError):
        raise StoreError(f"{by.key} is not a private key; bring the right file back") from None
    authority, key = read_certificate(by.certificate), _new_key()
    names = [_alternative(host) for host in dict.fromkeys([*hosts, "localhost", "127.0.0.1"])]
    usage = {name: False for name in _USAGES} | {"digital_signature": True}
    known = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    made = (
        _begun(_name(hosts[0]), key.public_key(), SERVER_DAYS)
        .issuer_name(authority.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(known, critical=False)
        .sign(signer, hashes.SHA384())
    )
    _write_private(key_file, _pem_of(key))
    _write(certificate, _pem(made))


def make_party_key(private: Path, public: Path) -> None:
    """A new key of a party."""
    library()
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    key = _new_key()
    _write_private(private, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    _write(public, key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b"\n")


def public_bytes(public: Path) -> bytes:
    """A party's public key, as a node proves that it holds it."""
    library()
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    form = PublicFormat.SubjectPublicKeyInfo
    given: bytes = read_public(public).public_bytes(Encoding.PEM, form)
    return given


def read_public(public: Path) -> Any:
    """A public key from its file; one that Flower would not take is refused."""
    library()
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    return _ec(public, load_ssh_public_key, EllipticCurvePublicKey)


def read_private(private: Path) -> Any:
    """A party's private key."""
    library()
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    return _ec(private, lambda data: load_ssh_private_key(data, None), EllipticCurvePrivateKey)


def same_key(private: Path, public: Path) -> bool:
    """Whether two files hold the halves of one key."""
    return bool(read_private(private).public_key() == read_public(public))


def read_certificate(path: Path) -> Any:
    """A certificate from its file."""
    try:
        return library().load_pem_x509_certificate(_read(path))
    except ValueError:
        raise StoreError(f"{path} is not a certificate; bring the right file back") from None


def issued_by(certificate: Any, authority: Any) -> bool:
    """Whether the authority's key has signed the certificate."""
    from cryptography.exceptions import InvalidSignature

    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def hosts_of(certificate: Any) -> list[str]:
    """The names and addresses that a certificate is for."""
    x509 = library()
    try:
        held = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [str(name.value) for name in held]


_USAGES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment",
    "key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip


def _begun(subject: Any, public_key: Any, days: int) -> Any:
    x509, now = library(), datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))  # a party's clock may be a little behind
        .not_valid_after(now + timedelta(days=days))
    )


def _name(common: str) -> Any:
    x509 = library()
    return x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, common[:64])])


def _alternative(host: str) -> Any:
    x509 = library()
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _new_key() -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP384R1())


def _ec(path: Path, load: Any, kind: type) -> Any:
    """A key of an elliptic curve from a file."""
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        key = load(_read(path))
    except (ValueError, UnsupportedAlgorithm, TypeError):
        key = None
    if not isinstance(key, kind):
        raise StoreError(
            f"{path} is not a key that a federation takes; make one with: "
            "ssh-keygen -t ecdsa -b 384 -N '' -f key"
        )
    return key


def _pem(certificate: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    data: bytes = certificate.public_bytes(Encoding.PEM)
    return data


def _pem_of(key: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    data: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return data


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from None


def _write(path: Path, data: bytes) -> None:
    with writing(path):
        make_folder(path.parent)
        path.write_bytes(data)


def _write_private(path: Path, data: bytes) -> None:
    """A file that only its owner can read from its first moment on."""
    with writing(path):
        make_folder(path.parent)
        with opened_log(path, "xb") as file:
            file.write(data)
