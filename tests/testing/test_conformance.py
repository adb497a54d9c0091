"""The house rules find what breaks them, also in methods that promise nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from queryveil.data import QueryLog
from queryveil.guarantees import Guarantee, NoPromise
from queryveil.methods import Kdelta, Km, TokenHash
from queryveil.release import ColumnPolicy, Release
from queryveil.testing import Check, checks_for, log_of, tiny_log


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A method that says one thing and does another."""

    does: Km | TokenHash
    says: Guarantee
    adds: str = ""
    columns: ColumnPolicy = field(default_factory=ColumnPolicy)
    seed: int | None = None

    @property
    def promise(self) -> Guarantee:
        return self.says

    def anonymize(self, log: QueryLog) -> Release:
        release = replace(self.does, columns=self.columns, seed=self.seed).anonymize(log)
        frame = release.log.frame
        return replace(release, data=log.with_frame(frame.with_columns(query=frame["query"] + self.adds)))


def broken_by(method: Changed, log: QueryLog) -> set[str]:
    found = set()
    for check in checks_for(method):
        try:
            check.run(log)
        except AssertionError:
            found.add(check.name)
    return found


def test_a_method_that_says_it_promises_nothing_and_makes_a_promise_is_found() -> None:
    found = broken_by(Changed(does=Km(k=2, m=1), says=NoPromise(reason="it is a baseline")), tiny_log())
    assert {"the_promise_is_kept", "the_promise_is_the_one_asked_for", "the_written_files_keep_the_promise"} <= found


def test_a_method_that_promises_nothing_may_not_give_anybody_more_hashes_than_words() -> None:
    honest = TokenHash(key=b"0123456789abcdef")
    log = log_of({"persona1": ["kestrel lantern"], "persona2": ["kestrel"]})
    assert broken_by(Changed(does=honest, says=honest.promise), log) == set()
    assert broken_by(Changed(does=honest, says=honest.promise, adds=" 77aa"), log) == {
        "no_term_is_invented",
        # It does not look like a hash either.
        "the_written_files_keep_the_promise",
    }


@pytest.mark.parametrize("check", list(checks_for(Kdelta(k=2, mode="paper"))), ids=lambda check: check.name)
def test_a_method_that_promises_nothing_in_one_mode_keeps_the_other_rules(check: Check) -> None:
    check.run(tiny_log())
