"""Signed releases: who stands behind the manifest and the files that it lists."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from queryveil import Km, verify
from queryveil.errors import BadFile, BadInput, BadRelease
from queryveil.release import MANIFEST, SIGNATURE, read_release
from queryveil.release.signing import make_keys, sign_release
from queryveil.testing import tiny_log

PEM = serialization.Encoding.PEM
PKCS8, SPKI = serialization.PrivateFormat.PKCS8, serialization.PublicFormat.SubjectPublicKeyInfo


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Km(k=2, m=1).anonymize(tiny_log()).save(tmp_path / "out")


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    return make_keys(tmp_path / "office")


def test_a_signed_release_holds_for_whoever_has_the_public_key(folder: Path, keys: tuple[Path, Path]) -> None:
    private, public = keys
    assert sign_release(folder, key=private) == folder / SIGNATURE
    assert verify(folder, signed_by=public).holds
    # The signature is no stranger in the folder, and nobody must ask for it.
    assert verify(folder).holds
    assert sorted(path.name for path in folder.iterdir()) == ["log.parquet", MANIFEST, SIGNATURE]


def test_a_release_without_a_signature_or_with_that_of_another_is_at_fault(
    folder: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    private, public = keys
    assert verify(folder, signed_by=public).faults == ("it is not signed: manifest.sig is missing",)
    other, _ = make_keys(tmp_path / "other")
    sign_release(folder, key=other)
    verdict = verify(folder, signed_by=public)
    assert not verdict.holds
    assert verdict.faults == ("manifest.sig was not made with this key for this manifest.json",)
    # An older signature is replaced.
    sign_release(folder, key=private)
    assert verify(folder, signed_by=public).holds


def test_whatever_byte_is_changed_the_signature_no_longer_holds(folder: Path, keys: tuple[Path, Path]) -> None:
    private, public = keys
    sign_release(folder, key=private)
    text = (folder / MANIFEST).read_bytes()
    (folder / MANIFEST).write_bytes(text + b"\n")
    assert not verify(folder, signed_by=public).holds
    (folder / MANIFEST).write_bytes(text)
    made = (folder / SIGNATURE).read_bytes()
    for wrong in (b"", made[:-1], made + b"x", made[:10] + bytes([made[10] ^ 1]) + made[11:]):
        (folder / SIGNATURE).write_bytes(wrong)
        assert not verify(folder, signed_by=public).holds
    (folder / SIGNATURE).write_bytes(made)
    data = (folder / "log.parquet").read_bytes()
    (folder / "log.parquet").write_bytes(data + b"x")
    with pytest.raises(BadRelease, match="sha256 differs"):
        verify(folder, signed_by=public)
    with pytest.raises(BadRelease, match="sha256 differs"):
        sign_release(folder, key=private)
    (folder / "log.parquet").write_bytes(data)
    assert verify(folder, signed_by=public).holds


def test_the_private_key_is_for_its_owner_alone(folder: Path, keys: tuple[Path, Path]) -> None:
    private, public = keys
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    for mode in (0o640, 0o604, 0o620, 0o644):
        private.chmod(mode)
        with pytest.raises(BadFile, match=r"others can read or change it; say chmod 600 office\.key"):
            sign_release(folder, key=private)
    assert not (folder / SIGNATURE).exists()
    with pytest.raises(BadFile, match="is already there"):
        make_keys(private.with_suffix(""))
    private.unlink()
    with pytest.raises(BadFile, match="is already there"):
        make_keys(public.with_suffix(""))
    assert not private.exists()


def owned(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def test_what_is_no_key_or_a_weak_one_is_refused(folder: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    private, public = keys
    no_password, password = serialization.NoEncryption(), serialization.BestAvailableEncryption(b"secret")
    curve = ec.generate_private_key(ec.SECP256R1())
    zeros = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))
    locked = ed25519.Ed25519PrivateKey.generate().private_bytes(PEM, PKCS8, password)
    bad = {
        "no private Ed25519 key": [b"", b"x" * 50, public.read_bytes(), curve.private_bytes(PEM, PKCS8, no_password)],
        "a key that can be guessed": [zeros.private_bytes(PEM, PKCS8, no_password)],
        "it has a password": [locked],
    }
    for reason, texts in bad.items():
        for text in texts:
            with pytest.raises(BadFile, match=reason) as told:
                sign_release(folder, key=owned(tmp_path / "bad", text))
            assert "\n" not in str(told.value)
    sign_release(folder, key=private)
    weak = [
        "0100000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    ]
    points = [ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(point)) for point in weak]
    for text in (b"", private.read_bytes(), curve.public_key().public_bytes(PEM, SPKI)):
        with pytest.raises(BadFile, match="no public Ed25519 key"):
            verify(folder, signed_by=owned(tmp_path / "bad", text))
    for point in points:
        with pytest.raises(BadFile, match="a weak key, under which anybody can sign"):
            verify(folder, signed_by=owned(tmp_path / "bad", point.public_bytes(PEM, SPKI)))


def test_nothing_waits_for_a_pipe_and_a_release_that_was_not_read_has_no_signature(
    folder: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(BadFile):
        sign_release(folder, key=tmp_path / "pipe")
    with pytest.raises(BadFile):
        verify(folder, signed_by=tmp_path / "nothing")
    with pytest.raises(BadInput, match="only a release that was read from its folder"):
        verify(Km(k=2, m=1).anonymize(tiny_log()), signed_by=keys[1])
    os.mkfifo(folder / SIGNATURE)
    assert f"{SIGNATURE} is a pipe that {MANIFEST} does not list" in verify(folder, signed_by=keys[1]).faults
    assert read_release(folder).contents is not None


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_openssl_comes_to_the_same_verdict(folder: Path, keys: tuple[Path, Path]) -> None:
    private, public = keys
    sign_release(folder, key=private)
    check = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", str(public), "-rawin", "-in", str(folder / MANIFEST)]
    check += ["-sigfile", str(folder / SIGNATURE)]
    assert subprocess.run(check, capture_output=True, check=False).returncode == 0
    (folder / MANIFEST).write_bytes((folder / MANIFEST).read_bytes() + b" ")
    assert subprocess.run(check, capture_output=True, check=False).returncode != 0
