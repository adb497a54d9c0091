"""Methods by name: built, rebuilt from a manifest, and as a command."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from queryveil.cli import main
from queryveil.comparison.methods import METHODS, build_method, command, key_of, method_of, settings_of
from queryveil.comparison.plan import Run, default_plan
from queryveil.data import Profiles, QueryLog, Transactions
from queryveil.errors import BadParameter
from queryveil.guarantees import NoPromise, SwapAnonymity
from queryveil.methods import Clump, Km, Plink, Swap, Target
from queryveil.pairing import Pair
from queryveil.release import ColumnPolicy, Ids, TimeDetail
from queryveil.synthesis import synthesize
from queryveil.testing import food, log_of

pytestmark = pytest.mark.slow

RUNS = default_plan().runs


@pytest.fixture(scope="module")
def log() -> QueryLog:
    return synthesize(users=120, seed=5).log


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_every_run_of_the_default_plan_is_built_and_rebuilt_from_its_manifest(run: Run, log: QueryLog) -> None:
    release = build_method(run.method, run.settings).anonymize(log)
    again = method_of(release.manifest)
    assert again is not None
    assert again.promise == release.promise
    remade = again.anonymize(log)
    assert remade.manifest.parameters == release.manifest.parameters
    assert remade.manifest.columns == release.manifest.columns


@pytest.mark.parametrize("name", METHODS)
def test_who_is_who_is_known_where_a_log_is_released(name: str, log: QueryLog) -> None:
    method = build_method(name, {})
    release = method.anonymize(log)
    if isinstance(release.data, QueryLog):
        # Ids of swap change with time, and others from row to row, as they do for whoever receives them.
        has_several = name == "swap" or release.promise.changes_ids
        assert release.manifest.columns.ids is (Ids.KEYED if has_several else Ids.KEEP)
        assert Pair(log, release=release, key=key_of(method)).identity.exact


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_the_command_of_a_run_makes_a_release_with_its_settings(run: Run, log: QueryLog, tmp_path: Path) -> None:
    from queryveil.formats import write_log
    from queryveil.release import read_release

    write_log(log, tmp_path / "log.parquet")
    words = shlex.split(command(run.method, run.settings))
    assert words[:2] == ["queryveil", "anonymize"]
    places = {"LOG": str(tmp_path / "log.parquet"), "DIR": str(tmp_path / "out")}
    with pytest.raises(SystemExit) as stopped:
        main([places.get(word, word) for word in words[1:]])
    assert stopped.value.code == 0
    manifest = read_release(tmp_path / "out").manifest
    assert manifest.method == run.method
    assert run.settings.items() <= manifest.parameters.items()


def test_an_unknown_method_or_setting_is_told_what_there_is() -> None:
    with pytest.raises(BadParameter, match=r"method must be one of km, kdelta, .*, query_threshold, got nosuch"):
        build_method("nosuch", {})
    with pytest.raises(BadParameter, match=r"a setting of clump must be one of k, r, .*, got m"):
        build_method("clump", {"m": 2})
    assert "seed" not in settings_of("km")
    assert "key" not in settings_of("token_hash")


@pytest.mark.parametrize(
    ("name", "setting", "value", "allowed"),
    [
        ("km", "k", "five", "a whole number"),
        ("km", "k", 2.5, "a whole number"),
        ("km", "k", True, "a whole number"),
        ("km", "m", "all", "a whole number or none"),
        ("km", "restore", 1, "true or false"),
        ("km", "target", "fame", "one of log_size, users"),
        ("km", "taxonomy", "mine.csv", "wordnet"),
        ("kdelta", "delta", "half", "a number"),
        ("km", "keep", 3, "a list of texts"),
        ("km", "k", 1, "2 or more"),
    ],
)
def test_a_setting_of_the_wrong_kind_is_one_clear_line(name: str, setting: str, value: object, allowed: str) -> None:
    with pytest.raises(BadParameter, match=f"^{setting} must be {allowed}"):
        build_method(name, {setting: value})  # type: ignore[dict-item]


def test_what_has_no_word_in_toml_is_called_none() -> None:
    method = build_method("km", {"m": "none", "bot_threshold": "none"})
    assert isinstance(method, Km)
    assert (method.m, method.bot_threshold) == (None, None)


def test_times_and_columns_to_keep_are_settings_too(log: QueryLog) -> None:
    release = build_method("km", {"k": 2, "m": 1, "time": "hour", "keep": ["rank"]}).anonymize(log)
    assert release.manifest.columns.time is TimeDetail.HOUR
    assert release.manifest.columns.kept == ("rank",)
    both = build_method("km", {"k": 2, "m": 1, "keep": "rank+url"}).anonymize(log)
    assert both.manifest.columns.kept == ("rank", "url")


def test_with_a_window_ids_are_fresh_because_kept_ones_would_join_the_windows() -> None:
    method = build_method("km", {"k": 2, "m": 1, "window": "7d"})
    assert isinstance(method, Km)
    assert method.columns.ids is Ids.FRESH


def test_each_comparison_hashes_terms_under_a_key_of_its_own() -> None:
    one, other = (getattr(build_method("token_hash", {}), "key", b"") for _ in range(2))
    assert len(one) >= 16
    assert one != other


def test_a_method_with_things_of_your_own_cannot_be_rebuilt() -> None:
    bags = Transactions.from_frame({"items": [["apple", "beef"], ["apple", "beef"]]})
    assert method_of(Clump(k=2, taxonomy=food()).anonymize(bags).manifest) is None
    people = Profiles.from_dicts({"u1": {"kitten": 1}, "u2": {"pup": 0.6}})
    assert method_of(Plink(p=0.5).anonymize(people).manifest) is None
    log = log_of({"u1": ["kettle"], "u2": ["kettle"]})
    values = {"term": ["kettle"], "bid": [1.0]}
    import polars as pl

    priced = Km(k=2, m=1, target=Target.BID, values=pl.DataFrame(values)).anonymize(log)
    assert method_of(priced.manifest) is None


def test_a_release_of_a_stream_or_of_another_version_cannot_be_rebuilt() -> None:
    import msgspec

    release = Swap(k=2, columns=ColumnPolicy(ids=Ids.KEEP)).anonymize(log_of({"u1": ["kettle"], "u2": ["kettle"]}))
    manifest = release.manifest
    live = msgspec.structs.replace(manifest, promise=SwapAnonymity(k=2, l=2, remembered=100))
    assert method_of(live) is None
    newer = msgspec.structs.replace(manifest, parameters=manifest.parameters | {"moon": "full"})
    assert method_of(newer) is None
    unknown = msgspec.structs.replace(manifest, method="nosuch", promise=NoPromise(reason="a test"))
    assert method_of(unknown) is None
    assert method_of(manifest) is not None
