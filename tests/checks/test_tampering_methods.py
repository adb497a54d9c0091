"""What was tampered with in the releases of each method, manifest and checksums made to fit, is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.support.forging import JSONL, SECRETS, WORDS, Change, a_log, fault, forge, released, with_column

from queryveil import Clump, Dp, Kdelta, Km, Plink, Pseudonymise, Swap, TokenHash
from queryveil.checks import verify
from queryveil.data import Profiles, QueryLog
from queryveil.release import read_release


@pytest.mark.parametrize(
    ("old", "new"), [(b"kestrel", b"Kestrel"), (b"kestrel", b"kestrel,"), (b"mulberry", "mu\u0308lberry".encode())]
)
def test_a_way_of_writing_may_not_mark_a_row(tmp_path: Path, old: bytes, new: bytes) -> None:
    folder = released(tmp_path, JSONL)
    # All rows alike, so that terms are still shared.
    forge(folder, data=lambda data: data.replace(old, new))
    assert "texts differ in case or form from how they are released in" in fault(folder)


def test_texts_of_kdelta_and_hashes_are_in_their_form(tmp_path: Path) -> None:
    kdelta = Kdelta(k=2, seed=1).anonymize(a_log(JSONL)).save(tmp_path / "kdelta")
    forge(kdelta, data=lambda data: data.replace(b"kestrel", b"KESTREL"))
    assert any("texts differ in case or form" in each for each in verify(kdelta).faults)
    hashed = TokenHash().anonymize(a_log(JSONL)).save(tmp_path / "hashed")
    text = read_release(hashed).log.frame["query"][0].encode()
    forge(hashed, data=lambda data: data.replace(text, b"quince", 1))
    assert "texts differ in case or form" in fault(hashed)


def test_what_promises_nothing_is_looked_at_too(tmp_path: Path) -> None:
    folder = Pseudonymise().anonymize(a_log()).save(tmp_path / "out")
    (folder / "raw.tsv").write_text("")
    assert fault(folder) == "raw.tsv is a file that manifest.json does not list"


def repeated_once(folder: Path) -> Path:
    return Km(k=2, m=1, repeats="once").anonymize(a_log(JSONL)).save(folder / "out")


def doubled(data: bytes) -> bytes:
    first, *rest = data.splitlines(keepends=True)
    return b"".join([first, first, *rest])


def test_a_text_that_an_id_has_twice_is_found_where_repeats_leave_once(tmp_path: Path) -> None:
    folder = repeated_once(tmp_path)
    assert verify(folder).holds

    def one_more(said: dict[str, Any]) -> None:
        said["counts"]["n_rows_after"] += 1
        said["removed"]["rows_repeated"] -= 1

    log = a_log(JSONL)
    twice = Km(k=2, m=1, repeats="once").anonymize(log.with_frame(pl.concat([log.frame, log.frame.head(3)])))
    folder = twice.save(tmp_path / "twice")
    forge(folder, data=doubled, manifest=one_more)
    assert fault(folder) == "log.jsonl: an id has the same text twice in 2 rows (the first is row 1)"
    # With all repeats it is what such a release may have.
    forge(folder, manifest=lambda said: said["parameters"].update(repeats="all"))
    assert verify(folder).holds
    forge(folder, manifest=lambda said: said["parameters"].update(repeats="twice"))
    assert fault(folder) == "manifest.json has 1 setting that km does not have, or not with such a value"


def test_the_window_of_swap_must_be_that_of_the_settings(tmp_path: Path) -> None:
    folder = Swap(k=2).anonymize(a_log()).save(tmp_path / "out")
    forge(folder, manifest=lambda said: said["parameters"].pop("window"))
    assert fault(folder) == "manifest.json promises window=1d, and its settings say nothing"


def test_what_needs_its_original_is_looked_at_without_it(tmp_path: Path) -> None:
    folder = Swap(k=2).anonymize(a_log()).save(tmp_path / "out")
    forge(folder, manifest=lambda said: said["columns"].update(ids="keyed"))
    (folder / "raw.tsv").write_text("")
    assert len(verify(folder).faults) == 2


def test_transactions_have_two_columns_and_their_own_numbers(tmp_path: Path) -> None:
    folder = Clump(k=2, seed=1).anonymize(a_log()).save(tmp_path / "out")
    assert verify(folder).holds
    forge(folder, data=with_column)
    assert fault(folder) == "transactions.csv has a column that manifest.json does not list: realname"
    other = Clump(k=2, seed=1).anonymize(a_log()).save(tmp_path / "other")
    forge(other, data=lambda data: data.replace(b"\n1,", b"\npersona00,"))
    assert fault(other).startswith("transactions.csv: ids are not the numbers from 1 on in 1 row")
    forge(other, manifest=lambda said: said["counts"].update(n_users_after=3))
    assert "manifest.json says 3 users, and there are 12 in the files" in verify(other).faults


def test_counts_have_their_columns_and_nothing_beside_them(tmp_path: Path) -> None:
    folder = Dp(epsilon=20, delta=0.1, seed=1).anonymize(a_log(JSONL)).save(tmp_path / "out")
    assert verify(folder).holds
    forge(folder, data=lambda data: data.replace(b"{", b'{"who": "persona01", ', 1))
    assert fault(folder) == "queries.jsonl has a column that manifest.json does not list: who"
    (folder / "raw.tsv").write_text("")
    assert "raw.tsv is a file that manifest.json does not list" in verify(folder).faults


PEOPLE = Profiles.from_dicts(
    {f"persona{i}": {word: 1.0 for j, word in enumerate(WORDS) if (i + j) % 3} | {f"own{i}": 1.0} for i in range(9)}
)


def groups(folder: Path, *, strict: bool) -> Path:
    log = QueryLog.from_frame(
        {"user": [f"persona{i:02}" for i in range(12)], "query": [f"kestrel lantern {WORDS[i % 4]}" for i in range(12)]}
    )
    path = Plink(p=0.5, strict=strict, seed=1).anonymize(log).save(folder / f"groups {strict}")
    assert verify(path).holds
    return path


def change_first(data: bytes, change: Change) -> bytes:
    lines = [json.loads(line) for line in data.splitlines()]
    change(next(line for line in lines if line["terms"]))
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


@pytest.mark.parametrize("strict", [False, True])
def test_weights_agree_with_holders(tmp_path: Path, strict: bool) -> None:
    folder = groups(tmp_path, strict=strict)

    def heavier(group: dict[str, Any]) -> None:
        term = min(group["terms"])
        group["terms"][term] = group["terms"][term] / 2 + 0.013

    forge(folder, data=lambda data: change_first(data, heavier))
    if strict:
        # There the weights are a part of the promise.
        assert [each.kind for each in verify(folder).witnesses] == ["other_weight"]
    else:
        assert fault(folder).startswith("groups.jsonl: weights do not agree with holders, members and size in 1 row")


def test_weights_of_profiles_that_are_put_back_into_a_strict_release_break_its_promise(tmp_path: Path) -> None:
    made = Plink(p=0.6, strict=True, seed=1).group(PEOPLE)
    held = {user: dict.fromkeys(terms, len(terms) ** -0.5) for user, terms, _ in made.profiles.frame.iter_rows()}
    users = dict(made.membership.group_by("group").agg("user").iter_rows())

    def as_they_were(data: bytes) -> bytes:
        """Replace each weight by the mean of members' profiles of length 1."""
        lines = [json.loads(line) for line in data.splitlines()]
        for line in lines:
            own = [held[user] for user in users[line["group"]]]
            line["terms"] = {
                term: round(sum(one.get(term, 0.0) for one in own) / len(own), 6) for term in line["terms"]
            }
        return "".join(json.dumps(line) + "\n" for line in lines).encode()

    folder = made.release.save(tmp_path / "out")
    assert verify(folder, original=PEOPLE).holds
    forge(folder, data=as_they_were)
    verdict = verify(folder)
    assert not verdict.holds
    assert {each.kind for each in verdict.witnesses} == {"other_weight"}
    assert verdict.n_violations == sum(made.release.groups.frame["terms"].list.len())


def test_terms_of_groups_are_in_one_form(tmp_path: Path) -> None:
    folder = groups(tmp_path, strict=False)
    forge(folder, data=lambda data: data.replace(b'"kestrel"', b'"Kestrel"'))
    assert "groups.jsonl: texts differ in case or form" in fault(folder)


def test_members_and_groups_are_counted(tmp_path: Path) -> None:
    folder = groups(tmp_path, strict=False)
    forge(folder, manifest=lambda said: said["counts"].update(n_users_after=5))
    assert fault(folder) == "manifest.json says 5 members, and there are 12 in the files"


def test_holders_are_counted_again_by_the_membership(tmp_path: Path) -> None:
    made = Plink(p=0.6, strict=True, seed=1).group(PEOPLE)
    folder = made.release.save(tmp_path / "out")
    assert verify(folder, membership=made.membership, original=PEOPLE).holds
    file = tmp_path / "who.csv"
    made.membership.write_csv(file)
    alone = verify(folder, membership=file)
    assert alone.holds
    assert "add --original LOG" in alone.notes[0]
    moved = made.membership.with_columns(group=pl.lit(1, pl.Int64))
    assert {each.kind for each in verify(folder, membership=moved).witnesses} == {"other_members"}
    swapped = made.membership.with_columns(group=made.membership["group"].reverse())
    other = verify(folder, membership=swapped, original=PEOPLE)
    assert made.release.groups.n_groups > 1
    assert "other_holders" in {each.kind for each in other.witnesses}
    assert not any(text in other.in_words() for text in SECRETS)
