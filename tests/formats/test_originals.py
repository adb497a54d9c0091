"""What a release was made from, read from a file: a log, transactions or profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from queryveil.attacks import attack
from queryveil.checks import verify
from queryveil.data import Profiles, QueryLog, Transactions
from queryveil.errors import BadFile, BadInput, MissingColumn
from queryveil.formats import read_log, read_original, read_profiles, read_transactions
from queryveil.guarantees import Guarantee, KmAnonymity, Linkability, TransactionAnonymity
from queryveil.methods import Clump, Plink
from queryveil.utility import measure

KM, LISTS, GROUPS = KmAnonymity(k=2, m=1), TransactionAnonymity(k=2), Linkability(p=0.5)
LOG = "user\tquery\nu1\tmilk\nu2\tmilk\nu3\tmilk\n"
FILES = {
    "log.tsv": LOG,
    "log.csv": LOG.replace("\t", ","),
    "log.jsonl": '{"user": "u1", "query": "milk"}\n',
    "lists.tsv": "id\titems\n1\tmilk|tea\n",
    "lists.csv": "id,items\n1,milk|tea\n",
    "lists.jsonl": '{"id": "1", "items": ["milk", "tea"]}\n',
    "lists.txt": "milk tea\nmilk\n",
    "pets.jsonl": '{"user": "u1", "terms": {"kitten": 1.0}}\n{"user": "u2", "terms": ["kitten"]}\n',
}


def place(folder: Path, name: str) -> Path:
    (folder / name).write_text(FILES[name])
    return folder / name


@pytest.mark.parametrize(
    ("name", "promise", "kind"),
    [
        *[(f"log.{end}", promise, QueryLog) for end in ("tsv", "csv", "jsonl") for promise in (KM, LISTS, GROUPS)],
        *[(f"lists.{ending}", LISTS, Transactions) for ending in ("tsv", "csv", "jsonl", "txt")],
        ("pets.jsonl", GROUPS, Profiles),
    ],
)
def test_a_file_is_read_as_what_it_is(tmp_path: Path, name: str, promise: Guarantee, kind: type) -> None:
    assert isinstance(read_original(place(tmp_path, name), promise), kind)


@pytest.mark.parametrize(
    ("name", "promise", "fault"),
    [
        ("lists.csv", KM, MissingColumn),
        ("lists.txt", GROUPS, BadFile),
        ("pets.jsonl", KM, BadInput),
        ("pets.jsonl", LISTS, BadInput),
    ],
)
def test_what_a_promise_cannot_be_about_is_refused(
    tmp_path: Path, name: str, promise: Guarantee, fault: type[Exception]
) -> None:
    with pytest.raises(fault):
        read_original(place(tmp_path, name), promise)


def test_a_release_of_lists_is_verified_and_measured_by_the_file_of_a_log(tmp_path: Path) -> None:
    path = place(tmp_path, "log.tsv")
    release = Clump(k=2, seed=1).anonymize(read_log(path))
    assert verify(release, original=path) == verify(release, original=read_log(path))
    assert measure(path, release) == measure(read_log(path), release)


def test_a_release_of_groups_is_measured_by_the_file_of_profiles(tmp_path: Path) -> None:
    path = place(tmp_path, "pets.jsonl")
    release = Plink(p=0.5, seed=1).anonymize(read_profiles(path))
    assert measure(path, release) == measure(read_profiles(path), release)
    assert attack(path, release, seed=1).to_dict() == attack(read_profiles(path), release, seed=1).to_dict()


def test_attackers_are_not_given_transactions(tmp_path: Path) -> None:
    path = place(tmp_path, "lists.txt")
    release = Clump(k=2, seed=1).anonymize(read_transactions(path))
    with pytest.raises(BadInput, match="attackers look for people"):
        attack(path, release)
