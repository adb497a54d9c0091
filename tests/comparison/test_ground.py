"""What runs share: the users who are released, those who stand for the public, and a fingerprint of it all."""

from __future__ import annotations

from queryveil.attacks.attacker import Person
from queryveil.comparison.judged import ComparisonInput, split
from queryveil.comparison.plan import Run
from queryveil.data import QueryLog
from queryveil.synthesis import synthesize
from queryveil.testing import log_of

LOG = synthesize(users=200, seed=1).log
KM = Run(name="km k=5", method="km", settings={"k": 5})


def users(log: QueryLog | None) -> set[str]:
    return set() if log is None else set(log.frame["user"])


def test_a_share_of_the_users_is_left_out_with_all_their_rows() -> None:
    inputs = ComparisonInput(log=LOG).with_holdout(0.25)
    assert len(users(inputs.log)) == 150
    assert len(users(inputs.public)) == 50
    assert not users(inputs.log) & users(inputs.public)
    assert inputs.public is not None
    assert inputs.log.n_rows + inputs.public.n_rows == LOG.n_rows


def test_the_same_users_are_left_out_again_whatever_the_order_of_rows() -> None:
    turned = LOG.with_frame(LOG.frame.reverse())
    assert users(split(LOG, share=0.5, seed=1)[0]) == users(split(turned, share=0.5, seed=1)[0])
    assert users(split(LOG, share=0.5, seed=1)[0]) != users(split(LOG, share=0.5, seed=2)[0])


def test_nobody_is_left_out_if_there_is_a_public_log_or_no_holdout() -> None:
    public = log_of({"other1": ["kettle"]})
    inputs = ComparisonInput(log=LOG, public=public).with_holdout(0.25)
    assert inputs.log is LOG
    assert inputs.public is public
    assert ComparisonInput(log=LOG).with_holdout(0.0).public is None


def test_people_who_were_left_out_are_not_looked_for() -> None:
    everybody = [Person(name="Ada Quill", town="Narnholm", user=user) for user in sorted(users(LOG))]
    people = [*everybody, Person(name="Ada Quill", town="Narnholm")]
    inputs = ComparisonInput(log=LOG, people=people).with_holdout(0.25)
    assert {person.user for person in inputs.people} == users(inputs.log) | {None}


def test_the_fingerprint_is_that_of_log_public_people_settings_and_seed_but_not_of_the_name() -> None:
    inputs = ComparisonInput(log=LOG)
    renamed = Run(name="another", method="km", settings={"k": 5})
    assert inputs.fingerprint_of(KM) == ComparisonInput(log=LOG).fingerprint_of(renamed)
    shorter = LOG.with_frame(LOG.frame.head(LOG.n_rows - 1))
    others = [
        inputs.fingerprint_of(None),
        inputs.fingerprint_of(Run(name="km k=5", method="km", settings={"k": 6})),
        inputs.fingerprint_of(Run(name="km k=5", method="clump", settings={"k": 5})),
        ComparisonInput(log=shorter).fingerprint_of(KM),
        ComparisonInput(log=LOG.with_frame(LOG.frame.rename({"url": "link"}))).fingerprint_of(KM),
        ComparisonInput(log=LOG, public=shorter).fingerprint_of(KM),
        ComparisonInput(log=LOG, people=[Person(name="Ada Quill", town="Narnholm")]).fingerprint_of(KM),
        ComparisonInput(log=LOG, n_targets=7).fingerprint_of(KM),
        ComparisonInput(log=LOG, seed=7).fingerprint_of(KM),
    ]
    assert len({inputs.fingerprint_of(KM), *others}) == len(others) + 1


def test_an_empty_log_has_a_fingerprint_too() -> None:
    assert ComparisonInput(log=LOG.with_frame(LOG.frame.clear())).fingerprint


def test_the_repr_holds_no_text() -> None:
    log = log_of({"persona1": ["kestrel lantern"]})
    assert repr(ComparisonInput(log=log, people=[Person(name="kestrel", town="lantern", user="persona1")])) == (
        "ComparisonInput(log=QueryLog(n_rows=1, n_users=1, columns=['user', 'query']), public=None, n_people=1)"
    )
