"""Sign release folders, and check who signed them (Ed25519).

The signature is over the bytes of the manifest, which holds the SHA-256 of every data file; `verify` reads each file
and compares. It is 64 bytes in a file of its own, so that other programs can check it too:

    openssl pkeyutl -verify -pubin -inkey office.pub -rawin -in out/manifest.json -sigfile out/manifest.sig
"""

import os
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from queryveil.errors import BadFile, NotWritten
from queryveil.formats.atomic_folders import new_file
from queryveil.release.contents import SIGNATURE, Contents
from queryveil.release.manifest import MANIFEST
from queryveil.release.release import read_release

_FOR_ALL = 0o644
_MOST_BYTES = 10_000
_FEWEST_DISTINCT = 8
_ODD = "this is no {kind} Ed25519 key; make a pair with: queryveil keygen NAME"
_PRIME = 2**255 - 19
_WEAK_POINTS = {
    0,
    1,
    _PRIME - 1,
    0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7,
    0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826,
}
"""The points of small order by their second coordinate: under such a key anybody can sign."""


def make_keys(name: str | Path) -> tuple[Path, Path]:
    """Write a new key pair: NAME.key to sign with, for its owner's eyes only, and NAME.pub for all who check."""
    private, public = Path(f"{name}.key"), Path(f"{name}.pub")
    for path in (private, public):
        if os.path.lexists(path):
            raise BadFile(str(path), "is already there; choose another name, since a lost key cannot be made again")
    key, pem = Ed25519PrivateKey.generate(), serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    shown = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    with new_file(private) as file:
        file.write(secret)
    try:
        with new_file(public, mode=_FOR_ALL) as file:
            file.write(shown)
    except BaseException:
        private.unlink(missing_ok=True)
        raise
    return private, public


def sign_release(folder: str | Path, *, key: str | Path) -> Path:
    """Sign a release folder whose files are those of its manifest; an older signature is replaced."""
    private = _read_private_key(Path(key))
    contents = read_release(folder).contents
    assert contents is not None
    path = Path(folder) / SIGNATURE
    partial = path.with_name(f".{SIGNATURE}.partial")
    with new_file(partial, mode=_FOR_ALL, replace=True) as file:
        file.write(private.sign(contents.manifest))
    try:
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise NotWritten(str(path), str(error.strerror)) from None
    return path


def signature_fault(contents: Contents, *, public: str | Path) -> str | None:
    """Return what is wrong with the signature of a release folder, or None if the owner of the key made it."""
    key = _read_public_key(Path(public))
    if contents.signature is None:
        return f"it is not signed: {SIGNATURE} is missing"
    try:
        key.verify(contents.signature, contents.manifest)
    except InvalidSignature:
        return f"{SIGNATURE} was not made with this key for this {MANIFEST}"
    return None


def _read_private_key(path: Path) -> Ed25519PrivateKey:
    text = _read(path, is_secret=True)
    try:
        key = serialization.load_pem_private_key(text, password=None)
    except TypeError:
        raise BadFile(str(path), "it has a password; write it without one: openssl pkey -in OLD -out NEW") from None
    except (ValueError, UnsupportedAlgorithm):
        raise BadFile(str(path), _ODD.format(kind="private")) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise BadFile(str(path), _ODD.format(kind="private"))
    if len(set(key.private_bytes_raw())) < _FEWEST_DISTINCT:
        raise BadFile(str(path), "a key that can be guessed; make a pair with: queryveil keygen NAME")
    return key


def _read_public_key(path: Path) -> Ed25519PublicKey:
    try:
        key = serialization.load_pem_public_key(_read(path))
    except (ValueError, UnsupportedAlgorithm):
        raise BadFile(str(path), _ODD.format(kind="public")) from None
    if not isinstance(key, Ed25519PublicKey):
        raise BadFile(str(path), _ODD.format(kind="public"))
    # The highest bit is the sign of the first coordinate.
    if int.from_bytes(key.public_bytes_raw(), "little") % 2**255 % _PRIME in _WEAK_POINTS:
        raise BadFile(str(path), "a weak key, under which anybody can sign; ask the signer for another")
    return key


def _read(path: Path, *, is_secret: bool = False) -> bytes:
    try:
        # Nothing here waits: a pipe is no key.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if is_secret and os.fstat(file.fileno()).st_mode & 0o077:
                raise BadFile(str(path), f"others can read or change it; say chmod 600 {path.name}, or make a new pair")
            return file.read(_MOST_BYTES) or b""
    except OSError as error:
        raise BadFile(str(path), (error.strerror or type(error).__name__).lower()) from None
