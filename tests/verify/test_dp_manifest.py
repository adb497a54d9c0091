"""A manifest of noisy counts, held against itself and against what was released."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from queryveil import Dp, verify
from queryveil.guarantees import DifferentialPrivacy
from queryveil.log import QueryLog
from queryveil.methods.dp_synthesis import synthesized
from queryveil.release import Manifest, Release
from queryveil.synth import synthesize
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
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else str(value),
)
def test_what_could_tell_of_the_log_is_not_in_a_manifest(fields: dict[str, Any], n_told: int) -> None:
    (witness,) = verify(with_manifest(PLAIN, **fields)).witnesses
    assert (witness.kind, witness.support) == ("exact_count", n_told)


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
    assert kinds(with_settings(PLAIN, clicks=0.5)) == ["other_parts"]
    assert kinds(with_settings(CLICKED, clicks=0.0)) == ["other_parts"]


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
