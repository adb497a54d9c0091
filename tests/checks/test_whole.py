"""Everything in a release folder is judged: what every method writes passes, in every format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from queryveil import Clump, Dp, Kdelta, Km, Partition, Plink, Pseudonymise, QueryThreshold, Swap, TokenHash, synth
from queryveil.checks import verify
from queryveil.checks.whole import faults_of
from queryveil.data import Format, Layout, QueryLog
from queryveil.errors import NothingPromised
from queryveil.formats import layout_for, read_log, write_log
from queryveil.methods.dp.dp import synthesized
from queryveil.methods.settings import Representative, Unit, Weights
from queryveil.release import ColumnPolicy, Release, read_release
from queryveil.text.taxonomy import Taxonomy

KEY = b"a key for these tests"
KEYED = ColumnPolicy(ids="keyed", key=KEY, time="hour")  # type: ignore[arg-type]
OPEN = ColumnPolicy(ids="keep", time="keep", keep=("url", "rank"))  # type: ignore[arg-type]
BARE, BY_DAY = ColumnPolicy(), ColumnPolicy(time="day")  # type: ignore[arg-type]
FORMATS = {
    "aol": layout_for(Path("log.tsv")),
    "aol gz": layout_for(Path("log.tsv.gz")),
    "excite": layout_for(Path("log.log")),
    "csv": Layout(format=Format.CSV, names={"user": "who", "query": "what, \"'", "time": "when"}),
    "csv bz2": Layout(format=Format.CSV, compression="bz2"),
    "tsv": Layout(format=Format.TSV, names={"user": "person", "query": "words"}),
    "jsonl": Layout(format=Format.JSONL, names={"user": "person", "query": "words"}),
    "jsonl zst": Layout(format=Format.JSONL, compression="zst"),
    "parquet": Layout(format=Format.PARQUET, names={"user": "person", "query": "words"}),
    "ubi": Layout(format=Format.UBI),
    "ubi gz": Layout(format=Format.UBI, compression="gz"),
}
METHODS: dict[str, Callable[[], Any]] = {
    "km": lambda: Km(k=3, m=2),
    "km of whole histories": lambda: Km(k=2, m=None),
    "km in windows": lambda: Km(k=2, m=1, window="7d", columns=BY_DAY),
    "km in windows, keyed": lambda: Km(k=2, m=1, window="7d", columns=KEYED),
    "km, all columns": lambda: Km(k=3, m=2, columns=OPEN),
    "km, no times": lambda: Km(k=3, m=2, columns=BARE),
    "km, repeats once": lambda: Km(k=3, m=2, columns=OPEN, repeats="once"),
    "km generalised": lambda: Km(k=3, m=1, taxonomy=Taxonomy.wordnet()),
    "kdelta": lambda: Kdelta(k=3),
    "kdelta, the paper's": lambda: Kdelta(k=3, mode="paper"),
    "kdelta, same texts": lambda: Kdelta(k=2, same_texts=True, columns=KEYED),
    "kdelta, no additions": lambda: Kdelta(k=2, additions=False, columns=OPEN),
    "swap": lambda: Swap(k=3, columns=KEYED),
    "swap, fresh": lambda: Swap(k=3, l=2, drain="release"),
    "clump": lambda: Clump(k=3),
    "clump of queries": lambda: Clump(k=3, unit=Unit.QUERY, dedupe=True),
    "partition": lambda: Partition(k=3),
    "partition of queries": lambda: Partition(k=3, unit=Unit.QUERY),
    "plink": lambda: Plink(p=0.4),
    "plink, strict": lambda: Plink(p=0.4, strict=True),
    "plink of counts": lambda: Plink(p=0.4, weights=Weights.COUNT),
    "plink, strict, another aversion": lambda: Plink(p=0.4, aversion=0, strict=True),
    "plink, union": lambda: Plink(p=0.4, representative=Representative.UNION),
    "plink of counts, union": lambda: Plink(p=0.4, representative=Representative.UNION, weights=Weights.COUNT),
    "plink, tfidf": lambda: Plink(p=0.4, weights=Weights.TFIDF),
    "dp": lambda: Dp(epsilon=8, delta=0.01),
    "dp with clicks": lambda: Dp(epsilon=8, delta=0.01, clicks=0.5, rounds=2),
    "pseudonymise": Pseudonymise,
    "query threshold": lambda: QueryThreshold(k=2),
    "token hash": lambda: TokenHash(columns=OPEN),
}


@pytest.fixture(scope="module")
def log() -> QueryLog:
    made = synth(users=150, seed=4).log
    return made.with_frame(made.frame.head(1200))


def written(log: QueryLog, layout: Layout, folder: Path) -> QueryLog:
    """Take the long way: a log as a user would have it, in a file."""
    path = folder / "input"
    write_log(log, path, layout=replace(layout, compression=""))
    named = layout.format not in (Format.AOL, Format.EXCITE, Format.UBI)
    back = read_log(path, format=layout.format, columns=layout.names if named else None)
    return QueryLog(frame=back.frame, layout=replace(back.layout, compression=layout.compression))


def is_right(release: Release, folder: Path, *, original: QueryLog) -> None:
    read = read_release(release.save(folder))
    assert faults_of(read) == []
    assert read.data.n_rows or release.manifest.method == "dp"
    if release.promise.needs_original and read.manifest.columns.ids == "fresh":
        return
    try:
        key = KEY if read.manifest.columns.ids == "keyed" else None
        verdict = verify(read, original=original if read.promise.needs_original else None, key=key)
    except NothingPromised:
        assert release.promise.promises_nothing
    else:
        assert verdict.holds, verdict.in_words()


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_what_a_method_writes_is_what_its_manifest_says(log: QueryLog, tmp_path: Path, method: str) -> None:
    for name in ("jsonl zst", "aol gz"):
        here = tmp_path / name
        here.mkdir()
        original = written(log, FORMATS[name], here)
        is_right(METHODS[method]().anonymize(original), here / "out", original=original)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_can_say_what_the_manifest_says(log: QueryLog, tmp_path: Path, name: str) -> None:
    original = written(log, FORMATS[name], tmp_path)
    keep = tuple(each for each in ("url", "rank") if each in original.columns)
    for number, policy in enumerate((BY_DAY, KEYED, BARE, replace(OPEN, keep=keep))):
        release = Km(k=2, m=1, columns=policy).anonymize(original)
        is_right(release, tmp_path / f"out{number}", original=original)
    nothing = Km(k=10_000, m=1).anonymize(original)
    assert faults_of(read_release(nothing.save(tmp_path / "empty"))) == []


def test_made_up_rows_and_items_are_what_their_manifest_says(log: QueryLog, tmp_path: Path) -> None:
    rows = synthesized(Dp(epsilon=8, delta=0.01, seed=1).anonymize(log), n_users=20, seed=1)
    is_right(rows, tmp_path / "rows", original=log)
    (tmp_path / "items.txt").write_text("Milk tea\n\ntea Milk 7\nMilk 7\ntea 7\n" * 3)
    items = read_log(tmp_path / "items.txt", format="transactions")
    is_right(Km(k=2, m=2).anonymize(items), tmp_path / "items", original=items)
    is_right(Plink(p=0.5).anonymize(items), tmp_path / "groups", original=items)
