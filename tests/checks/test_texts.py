"""What a manifest says of the texts that one person alone asked is counted again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from hypothesis import given
from tests.support.examples import examples
from tests.support.forging import fault, forge
from tests.support.plain_texts import plain_counts

from queryveil.checks import verify
from queryveil.checks.texts import too_few_of_one
from queryveil.checks.tokens import folded_all, lowered_all
from queryveil.data import QueryLog
from queryveil.methods import Clump, Dp, Kdelta, Km, Pseudonymise, Swap, TokenHash
from queryveil.release import ColumnPolicy, Ids
from queryveil.testing.logs import log_of
from queryveil.testing.strategies import logs

KEY = b"a key for tests only"
LOG = log_of(
    {
        f"u{i}": ["champions league final", "soccer scores", f"tennis champions final {'abcdefghijkl'[i]}"]
        for i in range(12)
    }
)
KM = Km(k=2, m=1, seed=1)
KDELTA = Kdelta(k=2, min_cluster_users=1, seed=1)
SWAP = Swap(k=2, columns=ColumnPolicy(ids=Ids.KEYED, key=KEY), seed=1)


def saved(method: Any, folder: Path, log: QueryLog = LOG) -> Path:
    path: Path = method.anonymize(log).save(folder / "out")
    return path


def texts(**said: Any) -> Any:
    def change(manifest: dict[str, Any]) -> None:
        manifest["texts"] |= {name: value(manifest["texts"][name]) for name, value in said.items()}

    return change


def less(n: int) -> int:
    return n - 1


def km_log() -> QueryLog:
    """Terms that two people share; one pair of them stands in a query of one person alone."""
    return log_of({"u1": ["red wine", "gout"], "u2": ["red", "wine", "gout"], "u3": ["red wine gout"], "u4": ["wine"]})


def test_what_km_leaves_is_counted_again_without_the_original(tmp_path: Path) -> None:
    folder = saved(KM, tmp_path, km_log())
    assert verify(folder).holds
    forge(folder, manifest=texts(n_of_one_person=less))
    assert "says that one person alone asked 2 texts, and there are 3 or more" in fault(folder)
    forge(folder, manifest=texts(n_of_one_person=lambda n: n + 1, n_rows_of_one_person=less))
    assert any("asked 2 rows with a text, and there are 3 or more" in each for each in verify(folder).faults)


@pytest.mark.parametrize(("method", "key"), [(KDELTA, None), (SWAP, KEY)], ids=["kdelta", "swap"])
@pytest.mark.parametrize("name", ["n_of_one_person", "n_rows_of_one_person"])
def test_whole_texts_are_counted_again_beside_the_original(
    tmp_path: Path, method: Any, key: bytes | None, name: str
) -> None:
    folder = saved(method, tmp_path)
    assert verify(folder, original=LOG, key=key).holds
    forge(folder, manifest=texts(**{name: less}))
    found = verify(folder, original=LOG, key=key).faults
    assert any("says that one person alone asked" in each for each in found)


@pytest.mark.parametrize("method", [KM, KDELTA, Pseudonymise()], ids=["km", "kdelta", "pseudonymise"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda said: said.update(texts=None), "does not say how many texts one person alone asked"),
        (lambda said: said.pop("texts"), "does not say how many texts one person alone asked"),
        (texts(n_texts=lambda n: n + 5), "texts, and there are"),
        (
            texts(n_with_identifier=lambda _: 1000),
            "counts more texts of one person or with an identifier than there are",
        ),
        (texts(n_rows_with_identifier=lambda _: 1), "or other rows of them"),
        (
            texts(n_of_one_person=lambda _: None, n_rows_of_one_person=lambda _: None),
            "says what a stream does not know",
        ),
    ],
)
def test_counts_that_cannot_be_are_faults(tmp_path: Path, method: Any, change: Any, said: str) -> None:
    folder = saved(method, tmp_path)
    forge(folder, manifest=change)
    assert said in fault(folder)


@pytest.mark.parametrize("method", [Clump(k=2, seed=1), TokenHash()], ids=["clump", "token_hash"])
def test_a_release_without_texts_counts_none(tmp_path: Path, method: Any) -> None:
    folder = saved(method, tmp_path)
    counts = dict.fromkeys(("n_texts", "n_with_identifier", "n_rows_with_identifier"), 0)
    forge(folder, manifest=lambda said: said.update(texts=counts))
    assert "counts texts, and such a release has none" in fault(folder)


def test_noisy_counts_never_tell_how_many_texts_are_one_person_s(tmp_path: Path) -> None:
    folder = saved(Dp(epsilon=20, delta=0.1, seed=1), tmp_path)
    assert verify(folder).holds
    counts = dict.fromkeys(("n_texts", "n_with_identifier", "n_rows_with_identifier"), 0)
    forge(folder, manifest=lambda said: said.update(texts=counts))
    (witness,) = verify(folder).witnesses
    assert witness.kind == "exact_count"


@examples(60)
@given(log=logs())
def test_no_more_are_found_than_one_by_one(log: QueryLog) -> None:
    manifest = Pseudonymise().anonymize(log).manifest
    assert manifest.texts is not None
    said = plain_counts(log.frame["query"], log.frame.select("user", "query").rows())
    assert manifest.texts.n_of_one_person == said["n_of_one_person"]
    assert too_few_of_one(log, manifest, asked=log.frame) == []
    if said["n_of_one_person"]:
        fewer = type(manifest.texts)(
            n_texts=said["n_texts"],
            n_of_one_person=said["n_of_one_person"] - 1,
            n_rows_of_one_person=said["n_rows_of_one_person"],
            n_with_identifier=0,
            n_rows_with_identifier=0,
        )
        (found,) = too_few_of_one(log, msgspec.structs.replace(manifest, texts=fewer), asked=log.frame)
        assert f"and there are {said['n_of_one_person']:,} or more" in found


def test_a_letter_that_one_table_does_not_lower_is_no_fault() -> None:
    written = pl.Series(["\u1c89 wine", "\u1c8a wine", "RED\x1fwine", "\u00c9t\u00e9"])
    assert folded_all(written)[2:].to_list() == lowered_all(written)[2:].to_list() == ["red wine", "\u00e9t\u00e9"]
