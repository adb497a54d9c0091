"""A manifest of noisy counts, held against itself and against what was released."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from typing import Any

import msgspec
import polars as pl
import pytest

from queryveil import Dp, verify
from queryveil.data import CLICKS_SCHEMA, QueryLog, Tallies
from queryveil.guarantees import DifferentialPrivacy
from queryveil.methods.dp.dp import synthesized
from queryveil.release import ColumnReport, Ids, Manifest, Release, TimeDetail, read_release
from queryveil.synthesis import synthesize
from queryveil.testing import log_of

replaced = msgspec.structs.replace
ASKED = log_of({f"persona{i}": ["kestrel", "lantern", "mulberry", f"own {i}"] for i in range(300)})
PLAIN = Dp(epsilon=2.0, max_queries=3, seed=1).anonymize(ASKED)
TWICE = Dp(epsilon=2.0, max_queries=3, rounds=2, seed=1).anonymize(ASKED)
MADE_UP = synthesized(PLAIN, n_users=30, seed=1)
CLICKED = Dp(epsilon=20, delta=0.01, clicks=0.5, max_clicks=2, seed=1).anonymize(
    QueryLog.from_frame(
        {
            "user": [f"persona{i}" for i in range(300)],
            "query": ["kestrel"] * 300,
            "url": ["https://birds.example"] * 300,
        }
    )
)


def with_manifest(release: Release, **fields: Any) -> Release:
    return Release(data=release.data, manifest=replaced(release.manifest, **fields))


def with_settings(release: Release, **settings: Any) -> Release:
    return with_manifest(release, parameters=release.manifest.parameters | settings)


def kinds(release: Release, original: QueryLog | None = None) -> list[str]:
    return [witness.kind for witness in verify(release, original=original).witnesses]


@pytest.mark.parametrize("release", [PLAIN, TWICE, MADE_UP, CLICKED], ids=["counts", "rounds", "made up", "clicks"])
def test_a_release_as_it_was_made_agrees_with_itself(release: Release, tmp_path: Path) -> None:
    assert kinds(release) == []
    assert verify(release.save(tmp_path / "release")).holds


def test_a_release_that_was_read_is_judged_when_its_folder_is_gone(tmp_path: Path) -> None:
    release = read_release(PLAIN.save(tmp_path / "release"))
    rmtree(tmp_path / "release")
    assert verify(release).holds


def test_every_warning_that_there_is_may_be_given() -> None:
    release = synthesized(Dp(epsilon=11, delta=0.1, seed=1).anonymize(ASKED), n_users=3, seed=1)
    assert len(release.manifest.warnings) == 4
    assert kinds(release) == []


@pytest.mark.parametrize(
    ("fields", "n_told"),
    [
        ({"warnings": ("300 users were in the log",)}, 1),
        ({"removed": {"bot_rows": 0}}, 1),
        ({"changed": {"rows": 12}}, 1),
        ({"changed": {"rows_added": 3}}, 1),
        ({"counts": replaced(PLAIN.manifest.counts, n_users_after=300)}, 1),
        ({"parameters": PLAIN.manifest.parameters | {"n_users": 300, "choose": "of 300"}}, 2),
        ({"parameters": PLAIN.manifest.parameters | {"mechanism": "300", "bot_threshold": "300"}}, 2),
        ({"parameters": PLAIN.manifest.parameters | {"synthesized": True}}, 1),
        ({"parameters": PLAIN.manifest.parameters | {"max_clicks": 0}}, 1),
        ({"parameters": PLAIN.manifest.parameters | {"max_clicks": 300_000}}, 1),
        ({"parameters": PLAIN.manifest.parameters | {"max_clicks": 5.0, "bot_threshold": 0.3}}, 2),
        ({"parameters": PLAIN.manifest.parameters | {"max_clicks": True, "bot_threshold": 0}}, 2),
        ({"warnings": PLAIN.manifest.warnings * 3}, 2),
        ({"versions": PLAIN.manifest.versions | {"users": "300"}}, 1),
        ({"versions": PLAIN.manifest.versions | {"python": "300 users", "numpy": "persona1"}}, 2),
        ({"columns": ColumnReport(ids=Ids.KEEP, time=TimeDetail.DROP)}, 1),
        ({"columns": ColumnReport(ids=Ids.FRESH, time=TimeDetail.HOUR)}, 1),
        ({"method": "dp of 300 users"}, 1),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else str(value),
)
def test_what_could_tell_of_the_log_is_not_in_a_manifest(fields: dict[str, Any], n_told: int) -> None:
    (witness,) = verify(with_manifest(PLAIN, **fields)).witnesses
    assert (witness.kind, witness.support) == ("exact_count", n_told)


@pytest.mark.parametrize("version", ["3.13", "3.14.0rc1", "2.0.0.post1", "1.2.3.dev4+g1a2b3c", "3.15.0a2+"])
def test_versions_may_be_whatever_versions_are(version: str) -> None:
    assert kinds(with_manifest(PLAIN, versions=PLAIN.manifest.versions | {"python": version})) == []


def rewritten(folder: Path, change: Callable[[str], str]) -> list[tuple[str, int]]:
    """Judge a folder whose manifest was changed by hand, and put it back."""
    path = folder / "manifest.json"
    before = path.read_text()
    changed = change(before)
    assert changed != before
    path.write_text(changed)
    found: list[tuple[str, int]] = [(witness.kind, witness.support) for witness in verify(folder).witnesses]
    path.write_text(before)
    return found


def with_keys(**fields: Any) -> Callable[[str], str]:
    return lambda text: json.dumps(json.loads(text) | fields)


def test_keys_that_nobody_reads_are_read_by_whoever_looks_at_the_file(tmp_path: Path) -> None:
    folder = PLAIN.save(tmp_path / "release")
    said = json.loads((folder / "manifest.json").read_text())
    (part,) = said["noise"]
    odd: list[tuple[dict[str, Any], int]] = [
        ({"n_users": 300}, 1),
        ({"n_users": 300, "n_rows": {"before": 1200}}, 2),
        ({"noise": [part | {"largest": 300}]}, 1),
        ({"promise": said["promise"] | {"of": 300}, "counts": said["counts"] | {"n_bots": 3}}, 2),
        ({"data": said["data"] | {"n_rows": 300}, "columns": said["columns"] | {"names": ["who"]}}, 2),
    ]
    for fields, n_told in odd:
        assert rewritten(folder, with_keys(**fields)) == [("exact_count", n_told)]
    twice = rewritten(folder, lambda text: text.replace('"method": "dp"', '"method": "300 users", "method": "dp"'))
    assert twice == [("exact_count", 1)]
    for senseless in ("[" * 900 + "]" * 900, "9" * 5000):
        changed = rewritten(folder, lambda text, more=senseless: text.replace("{", f'{{"n": {more},', 1))  # type: ignore[misc]
        assert changed == [("exact_count", 1)]
    assert rewritten(folder, lambda text: json.dumps(json.loads(text))) == []


@pytest.mark.parametrize("release", [PLAIN, MADE_UP, CLICKED], ids=["counts", "made up", "clicks"])
def test_files_are_described_as_all_others_are(release: Release, tmp_path: Path) -> None:
    folder = release.save(tmp_path / "release")
    for name in ("data", "clicks"):
        said = json.loads((folder / "manifest.json").read_text())[name]
        if said is None:
            continue
        for odd in ({"has_header": False}, {"names": {"user": "AnonID"}}):
            # A log could not be read by the names of other columns.
            if release is MADE_UP and "names" in odd:
                continue
            assert rewritten(folder, with_keys(**{name: said | odd})) == [("exact_count", 1)]
        (folder / "of 300 users").write_bytes((folder / said["name"]).read_bytes())
        assert rewritten(folder, with_keys(**{name: said | {"name": "of 300 users"}})) == [("exact_count", 1)]


def test_made_up_rows_have_no_file_of_clicks_that_nobody_judges(tmp_path: Path) -> None:
    clicks = json.loads((CLICKED.save(tmp_path / "clicked") / "manifest.json").read_text())["clicks"]
    folder = MADE_UP.save(tmp_path / "release")
    (folder / clicks["name"]).write_bytes((tmp_path / "clicked" / clicks["name"]).read_bytes())
    assert rewritten(folder, with_keys(clicks=clicks)) == [("exact_count", 1)]


def test_there_are_counts_of_clicks_if_the_settings_ask_for_them() -> None:
    without = Tallies(frame=CLICKED.tallies.frame)
    (witness,) = verify(Release(data=without, manifest=CLICKED.manifest)).witnesses
    assert witness.in_words() == "the settings ask for clicks, and the release has no counts of any"
    none = Tallies(frame=PLAIN.tallies.frame, clicks=pl.DataFrame(schema=CLICKS_SCHEMA))
    (witness,) = verify(Release(data=none, manifest=PLAIN.manifest)).witnesses
    assert witness.in_words() == "the settings ask for no clicks, and the release has 0 counts of such"


def test_rows_are_in_an_order_that_tells_nothing() -> None:
    frame = PLAIN.tallies.frame
    assert frame.height == 3
    moved = Release(data=Tallies(frame=frame[[1, 0, 2]]), manifest=PLAIN.manifest)
    (witness,) = verify(moved).witnesses
    assert (witness.kind, witness.support) == ("other_order", 2)
    assert witness.in_words() == "rows are not by count and text, in 2 places, which may tell of the log"
    same = frame.with_columns(count=pl.lit(40, pl.Int64))
    by_text = same.sort("query")
    assert kinds(Release(data=Tallies(frame=by_text), manifest=PLAIN.manifest)) == []
    assert kinds(Release(data=Tallies(frame=by_text.reverse()), manifest=PLAIN.manifest)) == ["other_order"]


@pytest.mark.parametrize("clicks", [-300, 300, True, None, "300"])
def test_the_part_for_clicks_is_one(clicks: Any) -> None:
    assert "exact_count" in kinds(with_settings(PLAIN, clicks=clicks))


def test_a_raw_log_is_no_release_whatever_its_manifest_says() -> None:
    raw = Release(data=ASKED, manifest=PLAIN.manifest)
    assert {"not_made_up", "odd_id", "other_size"} <= set(kinds(raw))
    assert not verify(raw, original=ASKED).holds
    numbered = log_of({str(i + 1): ["kestrel", "lantern"] for i in range(300)})
    for fields in ({}, {"changed": {"rows_added": 600}}, {"parameters": MADE_UP.manifest.parameters}):
        counts = replaced(PLAIN.manifest.counts, n_rows_after=600, n_users_after=300)
        there = with_manifest(Release(data=numbered, manifest=PLAIN.manifest), counts=counts, **fields)
        assert kinds(there) == ["not_made_up"]
    sessions = synthesize(users=60, seed=2).log
    assert {"more_columns", "odd_id"} <= set(kinds(Release(data=sessions, manifest=MADE_UP.manifest)))


def test_made_up_rows_are_counted_right() -> None:
    counts = MADE_UP.manifest.counts
    for wrong in ({"n_rows_after": counts.n_rows_after + 1}, {"n_users_after": 29}):
        assert kinds(with_manifest(MADE_UP, counts=replaced(counts, **wrong))) == ["other_size"]
    added = {"rows_added": counts.n_rows_after - 1}
    assert kinds(with_manifest(MADE_UP, changed=added)) == ["not_made_up"]
    assert kinds(with_manifest(MADE_UP, changed=MADE_UP.manifest.changed | {"rows_moved": 2})) == ["exact_count"]


def test_as_many_queries_left_as_the_manifest_says() -> None:
    counts = replaced(PLAIN.manifest.counts, n_rows_after=PLAIN.tallies.n_queries + 1)
    assert kinds(with_manifest(PLAIN, counts=counts)) == ["other_size"]


@pytest.mark.parametrize("settings", [{"epsilon": 0.1}, {"delta": 1e-6}, {"epsilon": None}, {"delta": True}], ids=str)
def test_the_settings_have_the_epsilon_and_delta_of_the_promise(settings: dict[str, Any]) -> None:
    assert kinds(with_settings(PLAIN, **settings)) == ["other_promise"]
    more = DifferentialPrivacy(epsilon=3.0, delta=2e-5)
    assert kinds(with_manifest(PLAIN, promise=more)) == ["other_promise"] * 2


def test_there_is_a_part_of_the_noise_for_each_round_and_for_clicks() -> None:
    assert kinds(with_manifest(TWICE, noise=TWICE.manifest.noise[1:])) == ["other_parts"]
    assert kinds(with_settings(TWICE, rounds=1)) == ["other_parts"]
    assert kinds(with_settings(PLAIN, clicks=0.5)) == ["other_clicks", "other_parts", "other_promise"]
    assert kinds(with_settings(CLICKED, clicks=0.0)) == ["other_clicks", "other_parts"]


def test_the_noise_is_for_as_many_counts_a_person_as_the_settings_say() -> None:
    assert kinds(with_settings(PLAIN, max_queries=4)) == ["other_items"]
    assert kinds(with_settings(CLICKED, max_clicks=3)) == ["other_items"]
    (part,) = PLAIN.manifest.noise
    # Enough for one count, had each person a part in no more.
    less = replaced(part, max_items=1, scale=part.scale)
    assert kinds(with_manifest(PLAIN, noise=(less,))) == ["other_items"]


@pytest.mark.parametrize("missing", ["epsilon", "delta", "max_queries", "rounds"], ids=lambda name: f"without {name}")
def test_what_is_not_said_does_not_agree(missing: str) -> None:
    manifest: Manifest = PLAIN.manifest
    settings = {name: value for name, value in manifest.parameters.items() if name != missing}
    assert len(kinds(with_manifest(PLAIN, parameters=settings))) == 1


def test_what_is_found_is_said_without_text_of_the_log() -> None:
    verdict = verify(Release(data=ASKED, manifest=PLAIN.manifest), original=ASKED)
    words = [witness.in_words() for witness in verdict.witnesses]
    assert "1,200 rows of users left, and the manifest does not say that all are made up" in words
    assert not any(text in line for line in words for text in ("kestrel", "persona", "own"))
