"""Readers of a release folder: the manifest, the data with its checksum made to fit, signatures and keys."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl
from cryptography.hazmat.primitives import serialization
from tests.fuzzing.engine import Target
from tests.fuzzing.mutation import SECRET

from queryveil import verify
from queryveil.comparison.methods import method_of
from queryveil.data import Format, Layout, QueryLog
from queryveil.methods import BraveWdp, Dp, Ec2026, Google2024, Kdelta, Km, Partition, Plink, Swap
from queryveil.release import MANIFEST, SIGNATURE, ColumnPolicy, Ids, read_release, sizes
from queryveil.release.signing import make_keys, sign_release
from queryveil.testing import food

_KEY = b"open the door, please"
_WORDS = ("apple", "milk", SECRET)
_LAYOUTS = {
    "csv": Layout(format=Format.CSV),
    "tsv": Layout(format=Format.TSV),
    "jsonl": Layout(format=Format.JSONL),
    "parquet": Layout(format=Format.PARQUET),
    "ubi": Layout(format=Format.UBI),
}


def a_log(layout: Layout) -> QueryLog:
    """Return a log of a few people who ask for the same."""
    rows = [
        (f"{SECRET}{i}", f"{_WORDS[j]} {_WORDS[i % 2]}", f"http://{SECRET}.example") for i in range(6) for j in range(3)
    ]
    frame = pl.DataFrame(rows, schema=["user", "query", "url"], orient="row")
    return QueryLog(frame=frame, layout=layout)


def _methods() -> dict[str, Callable[[QueryLog], object]]:
    keyed = ColumnPolicy(ids=Ids.KEYED, key=_KEY)
    return {
        "km": Km(k=2, m=2, seed=1).anonymize,
        "kdelta": Kdelta(k=2, seed=1).anonymize,
        "plink": Plink(p=0.5, seed=1).anonymize,
        "partition": Partition(k=2, taxonomy=food()).anonymize,
        "swap": Swap(k=2, seed=1, columns=keyed).anonymize,
        "dp": Dp(epsilon=10.0, delta=1e-3, clicks=0.3, seed=1).anonymize,
        "google": Google2024(n_users=2, n_row_users=2).anonymize,
        "ec": Ec2026(n_users=2, cell_users=2, seed=1).anonymize,
        "brave": BraveWdp(seed=1).anonymize,
    }


class _Made:
    """A release in a folder, made when it is needed, of which one file is replaced."""

    def __init__(self, folder: Path, method: str, kind: str) -> None:
        self.folder = folder / f"{method}-{kind}"
        self._method, self._layout, self._files = method, _LAYOUTS[kind], dict[str, bytes]()

    def file(self, name: str) -> bytes:
        """Return a file as it was made; `data` is the one that the manifest calls so."""
        if not self._files:
            _methods()[self._method](a_log(self._layout)).save(self.folder)  # type: ignore[attr-defined]
            self._files = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        return self._files[json.loads(self._files[MANIFEST])["data"]["name"] if name == "data" else name]

    def judge_manifest(self, text: bytes) -> object:
        """Read and verify the release under another manifest."""
        self.file(MANIFEST)
        (self.folder / MANIFEST).write_bytes(text)
        return self._judged()

    def judge_data(self, data: bytes) -> object:
        """Read and verify the release with other data; the manifest is made to fit, as a forger would."""
        said = json.loads(self.file(MANIFEST))
        (self.folder / said["data"]["name"]).write_bytes(data)
        said["data"]["sha256"] = hashlib.sha256(data).hexdigest()
        (self.folder / MANIFEST).write_text(json.dumps(said))
        return self._judged()

    def _judged(self) -> object:
        release = read_release(self.folder)
        method_of(release.manifest)
        told = [str(size.text) for size in sizes(release.manifest)]
        # Some are judged beside their original alone; the others without it, where the forger has more room.
        original = a_log(self._layout) if self._method in ("swap", "google", "ec") else None
        verdict = verify(release, original=original, key=_KEY if self._method == "swap" else None)
        return release, told, verdict.in_words(), release.promise.in_words()


class _Signed:
    """A signed release, of which the signature or a key is replaced."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "signed"
        self._root = folder

    def make(self) -> tuple[Path, Path]:
        """Return the private and the public key."""
        private, public = self._root / "office.key", self._root / "office.pub"
        if not self.folder.exists():
            Km(k=2, m=1, seed=1).anonymize(a_log(_LAYOUTS["csv"])).save(self.folder)
            make_keys(self._root / "office")
            sign_release(self.folder, key=private)
        return private, public

    def signature(self, data: bytes) -> object:
        _, public = self.make()
        (self.folder / SIGNATURE).write_bytes(data)
        return verify(self.folder, signed_by=public).in_words()

    def public(self, text: bytes) -> object:
        self.make()
        path = self._root / "other.pub"
        path.write_bytes(text)
        return verify(self.folder, signed_by=path).in_words()

    def private(self, text: bytes) -> object:
        self.make()
        path = self._root / "other.key"
        path.write_bytes(text)
        path.chmod(0o600)
        return os.fspath(sign_release(self.folder, key=path))

    def der(self) -> list[bytes]:
        """Return the public key without its wrapping."""
        key = serialization.load_pem_public_key(self.make()[1].read_bytes())
        kind = serialization.PublicFormat.SubjectPublicKeyInfo
        return [key.public_bytes(serialization.Encoding.DER, kind)]


def _wrapped(data: bytes) -> bytes:
    return b"-----BEGIN PUBLIC KEY-----\n" + base64.encodebytes(data) + b"-----END PUBLIC KEY-----\n"


def targets(folder: Path) -> list[Target]:
    """Return the targets; releases are made in the folder."""
    found = []
    for method in _methods():
        made = _Made(folder, method, "jsonl" if method == "plink" else "csv")
        found.append(
            Target(
                name=f"manifest.{method}",
                read=made.judge_manifest,
                seeds=partial(lambda made: [made.file(MANIFEST)], made),
                quotes=True,
            )
        )
    pairs = [("km", kind) for kind in _LAYOUTS] + [("plink", "jsonl"), ("partition", "parquet"), ("partition", "tsv")]
    pairs += [("dp", kind) for kind in ("csv", "tsv", "jsonl", "parquet")] + [("kdelta", "csv"), ("swap", "csv")]
    pairs += [("google", "csv"), ("ec", "jsonl"), ("brave", "csv")]
    for method, kind in pairs:
        made = _Made(folder / "data", method, kind)
        seeds = partial(lambda made: [made.file("data")], made)
        found.append(Target(name=f"data.{method}.{kind}", read=made.judge_data, seeds=seeds))
    (folder / "data").mkdir(exist_ok=True)
    signed = _Signed(folder)
    return [
        *found,
        Target(
            name="signature",
            read=signed.signature,
            seeds=lambda: [(signed.make()[1].parent / "signed" / SIGNATURE).read_bytes()[:64]],
        ),
        Target(name="key.public", read=signed.public, seeds=lambda: [signed.make()[1].read_bytes()]),
        Target(name="key.der", read=lambda data: signed.public(_wrapped(data)), seeds=signed.der),
        Target(name="key.private", read=signed.private, seeds=lambda: [signed.make()[0].read_bytes()]),
    ]
