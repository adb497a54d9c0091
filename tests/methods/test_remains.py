"""How much of a log is left, and the setting that is said to keep more: each suggestion is tried here as it is told."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from hypothesis import given
from tests.support.examples import examples

from queryveil.checks import verify
from queryveil.data import Format, Layout, Profiles, QueryLog
from queryveil.formats import read_log
from queryveil.methods import (
    Clump,
    Dp,
    Ec2026,
    Kdelta,
    Km,
    Partition,
    Plink,
    Pseudonymise,
    QueryThreshold,
    Swap,
    TokenHash,
    warn_if_little,
    way_out_of_no_counts,
    what_is_left,
)
from queryveil.methods.remains import MOST_ROWS
from queryveil.release import Release, read_release
from queryveil.testing import log_of
from queryveil.testing.strategies import logs

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"
SPARSE = log_of({f"persona{i}": ["red wine", f"kestrel {i // 4} nest {i // 2}", f"own {i}"] for i in range(12)})
METHODS: dict[str, Any] = {
    "km": Km(seed=1),
    "kdelta": Kdelta(seed=1),
    "plink": Plink(seed=1),
    "clump": Clump(seed=1),
    "partition": Partition(seed=1),
    "swap": Swap(seed=1),
    "query_threshold": QueryThreshold(seed=1),
    "ec_2026": Ec2026(seed=1),
}
_FOUND = re.compile(
    r"(?:with|tried)((?: --[a-z-]+ \d+)+) (?:it would be|keeps most:) ([\d,]+) (\w+) and ([\d,]+) words"
)


def told(method: Any, log: QueryLog) -> tuple[Release, str]:
    """Return the release with what is told of it, if anything is."""
    release = method.anonymize(log)
    warned = warn_if_little(method, log, release)
    new = warned.manifest.warnings[len(release.manifest.warnings) :]
    assert len(new) <= 1
    return warned, new[0] if new else ""


def check_suggestion(method: Any, log: QueryLog, warning: str) -> None:
    """Try what a warning suggests, and compare."""
    found = _FOUND.search(warning)
    assert found is not None, warning
    flags, rows, noun, words = found.groups()
    named = {name.replace("-", "_"): int(value) for name, value in re.findall(r"--([a-z-]+) (\d+)", flags)}
    left = what_is_left(log, replace(method, **named).anonymize(log))
    assert (f"{left.n:,}", left.noun, f"{left.n_words:,}") == (rows, noun, words)
    before = what_is_left(log, method.anonymize(log))
    assert left.n_words > before.n_words
    assert ("keeps most" in warning) == left.is_little


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("name", ["ubi-sample.ndjson", "excite-small.log"])
def test_real_logs_are_told_what_is_left_and_what_would_keep_more(name: str, method: Any) -> None:
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not beside the checkout")
    log = read_log(DATA / name)
    release, warning = told(method, log)
    assert bool(warning) == what_is_left(log, release).is_little
    if warning:
        check_suggestion(method, log, warning)
    else:
        # Of these many words stay as they were typed.
        assert release.manifest.method in ("plink", "swap")
        assert what_is_left(log, release).n_words > 0.5 * what_is_left(log, release).n_words_before


@pytest.mark.slow
@pytest.mark.real_data
def test_the_ubi_sample_keeps_3_of_222_words_with_the_defaults_of_km() -> None:
    if not (DATA / "ubi-sample.ndjson").exists():
        pytest.skip("ubi-sample.ndjson is not beside the checkout")
    left = what_is_left(log := read_log(DATA / "ubi-sample.ndjson"), Km(seed=1).anonymize(log))
    assert (left.n_words, left.n_words_before, left.is_little) == (3, 222, True)


@pytest.mark.parametrize("name", ["km", "clump", "partition", "query_threshold"])
def test_what_is_suggested_is_what_comes_of_it_and_the_release_is_sound(name: str) -> None:
    method = replace(METHODS[name], k=13) if name in ("km", "query_threshold") else METHODS[name]
    release, warning = told(method, SPARSE)
    assert bool(warning) == what_is_left(SPARSE, release).is_little
    if name in ("km", "query_threshold"):
        check_suggestion(method, SPARSE, warning)
    if name != "query_threshold":
        assert verify(release).faults == ()


def test_a_release_that_keeps_much_is_not_warned_of() -> None:
    assert told(Pseudonymise(seed=1), SPARSE)[1] == ""
    assert told(Km(k=2, m=1, seed=1), log_of({f"persona{i}": ["red wine", "gout diet"] for i in range(5)}))[1] == ""


def test_nothing_is_told_as_nothing_and_the_next_best_setting_is_named() -> None:
    warning = told(QueryThreshold(k=40, seed=1), SPARSE)[1]
    assert warning == (
        "nothing was released: 0 of 36 rows and 0 of 17 words as typed; with --k 3 it would be 12 rows and "
        "2 words, for less protection"
    )


def test_where_no_setting_keeps_more_that_is_said() -> None:
    alone = log_of({"persona1": ["red wine", "gout diet"]})
    assert told(Km(seed=1), alone)[1] == (
        "nothing was released: 0 of 2 rows and 0 of 4 words as typed; weaker settings that were tried keep no more; a "
        "log of more users does"
    )


def test_larger_logs_are_not_gone_through_again() -> None:
    n = MOST_ROWS + 1
    own = pl.DataFrame({"user": pl.Series(range(n)).cast(pl.String), "query": pl.Series(range(n)).cast(pl.String)})
    assert told(QueryThreshold(seed=1), QueryLog(frame=own))[1] == (
        "nothing was released: 0 of 50,001 rows and 0 of 50,001 words as typed; a smaller --k keeps more, for less "
        "protection; so does a log of more users"
    )


def test_hashes_and_noisy_counts_hold_no_words_that_could_be_few() -> None:
    assert told(TokenHash(key=b"k" * 32, seed=1), SPARSE)[1] == ""
    assert told(Dp(seed=1), SPARSE)[1] == ""


def test_items_and_terms_of_profiles_are_counted_as_they_stand() -> None:
    items = QueryLog(
        frame=log_of({"1": ["Red-wine 7"], "2": ["Red-wine 8"]}).frame, layout=Layout(format=Format.TRANSACTIONS)
    )
    left = what_is_left(items, Km(k=2, m=1, seed=1).anonymize(items))
    assert (left.n_words, left.n_words_before) == (1, 3)
    profiles = Profiles.from_frame(
        {"user": ["1", "2"], "terms": [["dog"], ["dog", "gout"]], "weights": [[1.0], [1.0, 1.0]]}
    )
    release = Plink(p=1, seed=1).anonymize(profiles)
    left = what_is_left(profiles, release)
    assert (left.noun, left.n, left.n_before, left.n_words_before) == ("users", 2, 2, 2)


@examples(20)
@given(log=logs())
def test_a_release_with_the_warning_is_as_sound_as_without_it(log: QueryLog) -> None:
    release, warning = told(Km(k=3, m=2, seed=1), log)
    assert verify(release).faults == ()
    assert bool(warning) == (log.n_rows > 0 and what_is_left(log, release).is_little)


def test_a_warning_that_nobody_gives_is_found(tmp_path: Path) -> None:
    release, warning = told(Km(k=13, m=2, seed=1), SPARSE)
    folder = release.save(tmp_path / "out")
    assert verify(read_release(folder)).faults == ()
    changed = warning.replace("words as typed", "words of persona1")
    (folder / "manifest.json").write_text((folder / "manifest.json").read_text().replace(warning, changed))
    assert verify(read_release(folder)).faults == ("manifest.json has warnings that no release of km has",)


def test_no_noisy_count_is_told_with_what_would_give_some() -> None:
    log = log_of({f"persona{i}": ["red wine", "gout diet", "kestrel", "nest", "plumber"] for i in range(25)})
    method = Dp(seed=1)
    assert method.anonymize(log).tallies.n_queries == 0
    # About 5 people count for each query: with epsilon 2 or 5 all of them need luck.
    way_out = "with --epsilon 10 --max-queries 1 it would be about 5, for less protection"
    assert way_out_of_no_counts(method, log) == way_out


def test_a_release_without_a_noisy_count_says_so_when_it_is_written_and_no_other(tmp_path: Path) -> None:
    warning = "nothing was released: no noisy count reached its threshold"
    nothing = read_release(Dp(seed=1).anonymize(SPARSE).save(tmp_path / "nothing"))
    assert warning in nothing.manifest.warnings
    assert verify(nothing).holds
    some = Dp(epsilon=20, max_queries=1, seed=1).anonymize(log_of({f"persona{i}": ["red wine"] for i in range(99)}))
    assert some.tallies.n_queries == 1
    assert warning not in some.as_written.warnings
    false = msgspec.structs.replace(some.manifest, warnings=(*some.manifest.warnings, warning))
    assert not verify(replace(some, manifest=false)).holds
    assert pl.DataFrame(nothing.tallies.frame).is_empty()
