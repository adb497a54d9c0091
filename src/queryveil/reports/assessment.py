"""The criteria of the draft Guidelines 02/2026 of the European Data Protection Board: isolation, linkage, inference.

Facts only: whether a release is anonymous is a judgement, and no figure here makes it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from queryveil.attacks import Attacks, Exposure
from queryveil.attacks.limits import GUESSED, Limit, risk
from queryveil.attacks.names import base_name
from queryveil.attacks.readers import READERS, Reader
from queryveil.data import Groups, QueryLog, Tallies, Transactions
from queryveil.guarantees import KmAnonymity
from queryveil.release import Release
from queryveil.reports.inspection import count_alone
from queryveil.text.histories import Histories, collect
from queryveil.text.tokens import Tokens, encode, normal_form, tokenize

MOST_TERMS = 4
"""The most terms by which it is counted who stands alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """How many records stand alone `by` what: so many terms, days, a text, a clicked page.

    - `n`: the number; None if it was not counted, `why` says why.
    - `is_least`: whether there may be more: not all combinations were looked at.
    """

    by: str
    n: int | None = None
    is_least: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """Records of a release that nobody shares: `n_records` in all, and `why` where no record is one person's."""

    n_records: int = 0
    alone: tuple[Alone, ...] = ()
    why: str = ""

    @property
    def n_alone(self) -> int:
        """The number of records that stand alone by the most telling of what was counted."""
        return max((each.n or 0 for each in self.alone), default=0)


def isolation_of(release: Release, *, tokens: Tokens | None = None) -> Isolation:
    """Count the records alone in a release: all rows of one id, or one transaction; `tokens` are those of its rows.

    >>> from queryveil.methods import Km
    >>> from queryveil.testing import tiny_log
    >>> found = isolation_of(Km(k=2, m=1).anonymize(tiny_log()))
    >>> found.n_records, [(each.by, each.n) for each in found.alone][:2]
    (4, [('1 term', 0), ('2 terms', 0)])
    """
    data = release.data
    if isinstance(data, Groups):
        return Isolation(why="a record is of a group of people")
    if isinstance(data, Tallies):
        return Isolation(why="it has counts, and no record of one person")
    if release.promise.is_noisy:
        return Isolation(why="its rows are made up, and no record is one person's")
    if isinstance(data, Transactions):
        lists = data.frame.with_row_index("user").select("user", item="items").explode("item", empty_as_null=False)
        codes, items = encode(lists["item"].cast(pl.String))
        histories, _ = Histories.of_pairs(
            lists["user"].to_numpy(), codes, n_users=data.frame.height, n_terms=max(1, len(items))
        )
        return Isolation(n_records=data.frame.height, alone=_by_terms(histories))
    if tokens is None:
        tokens = tokenize(data.frame["query"], by_blanks=_has_items(data, release))
    owners, users = encode(data.frame["user"])
    histories = collect(tokens, owners, n_users=len(users))
    frame = data.frame.with_columns(user=pl.Series(owners))
    days = Alone(by="days", why="no times are released")
    if "time" in frame.columns and frame["time"].null_count() < frame.height:
        own = frame.drop_nulls("time").group_by("user").agg(day=pl.col("time").dt.date().unique().sort())
        days = Alone(by="days", n=int((own.group_by("day").len()["len"] == 1).sum()))
    return Isolation(n_records=len(users), alone=(*_by_terms(histories), days, _by_text(frame), _by_click(data)))


def _has_items(log: QueryLog, release: Release) -> bool:
    """Return whether terms are items, parted by blanks."""
    return log.layout.terms_are_items or (isinstance(release.promise, KmAnonymity) and release.promise.items)


def _by_terms(histories: Histories) -> tuple[Alone, ...]:
    found = count_alone(histories, k=2, m=MOST_TERMS)
    sizes = {size: "1 term" if size == 1 else f"{size} terms" for size in found.n_users}
    return tuple(Alone(by=by, n=found.n_users[m], is_least=m in found.at_least) for m, by in sizes.items())


def _by_text(frame: pl.DataFrame) -> Alone:
    texts = frame.select("user", thing=normal_form(frame["query"])).filter(pl.col("thing") != "")
    return Alone(by="a text", n=_n_sole(texts))


def _by_click(log: QueryLog) -> Alone:
    rows = log.with_clicks_as_rows().frame
    if "url" not in rows.columns or rows["url"].null_count() == rows.height:
        return Alone(by="a clicked page", why="no clicks are released")
    return Alone(by="a clicked page", n=_n_sole(rows.select("user", thing="url").drop_nulls()))


def _n_sole(things: pl.DataFrame) -> int:
    """Count the users with a thing that no other user has."""
    pairs = things.unique()
    return pairs.join(pairs.group_by("thing").len().filter(pl.col("len") == 1), on="thing")["user"].n_unique()


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """One way to look into a criterion: what is tried, and by which attackers."""

    title: str
    attackers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """A criterion of the guidelines, what it asks, and its tests."""

    name: str
    title: str
    asks: str
    tests: tuple[Test, ...] = ()


_REBUILDERS = ("as_released", "active_id", "rebuild_1", "rebuild_2", "rebuild_3", "rebuild_4")
CRITERIA = (
    Criterion(
        name="isolation",
        title="No record isolation",
        asks="Does any record stand alone, as all that is known to concern one person?",
    ),
    Criterion(
        name="linkage",
        title="No linkage",
        asks="Can records be linked with other data about the same people, or with each other?",
        tests=(
            Test(title="Search terms of a person", attackers=("known_terms", "likely_terms", "counted_terms")),
            Test(title="When a person searched", attackers=("clock", "clock_equals")),
            Test(title="A phone book", attackers=("vanity", "named_fragments")),
            Test(title="A public log", attackers=("token_inversion",)),
            Test(title="A site's access log", attackers=("site_owner",)),
            Test(title="The same people a month later", attackers=("later_log",)),
            Test(title="Terms and texts of one person", attackers=("rare_pair", "fragments")),
            Test(title="Rows linked with each other", attackers=("stitch", "repeats", *_REBUILDERS)),
        ),
    ),
    Criterion(
        name="inference",
        title="No inference",
        asks="Can anything specific be learned about one person, beyond what is true of people in general?",
        tests=(
            Test(title="With and without a person (neighbour test)", attackers=("neighbour",)),
            Test(title="Being in the log", attackers=("membership", "sybil", "sybil_early")),
            Test(title="Sensitive categories", attackers=("sensitive",)),
            Test(title="A further fact of a person", attackers=("known_profile", "shared_term", "shared_weight")),
            Test(title="Made-up rows told apart", attackers=("added_rows",)),
        ),
    ),
)
"""The criteria, and which attackers look into which. A name that does not run counts as not tried."""


class Outcome(StrEnum):
    """What came of a criterion."""

    PASS = "pass"
    FAIL = "fail"
    PARTLY = "not fully tested"
    NOT_TESTED = "not tested"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A test with the highest risk that any of its attackers found; None if none ran, and `why`."""

    title: str
    found: Exposure | None = None
    why: str = ""
    applies: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A criterion with its outcome by all attackers, and without those that were ruled out."""

    criterion: Criterion
    outcome: Outcome
    in_context: Outcome
    tried: tuple[Tried, ...] = ()


def is_too_few(found: Exposure, *, limit: Limit) -> bool:
    """Return whether an attacker is above the limit for want of targets alone: the limit lies in its interval."""
    beyond = found.chance_share if found.chance_share >= GUESSED else 0.0
    return found in limit.ruling([found]).too_few and found.interval[0] - beyond <= limit.share < risk(found)


def is_over(found: Exposure, *, limit: Limit) -> bool:
    """Return whether an attacker is above the limit, and not for want of targets alone."""
    return risk(found) > limit.share and not is_too_few(found, limit=limit)


def findings(attacks: Attacks | None, isolation: Isolation, *, limit: Limit) -> tuple[Finding, ...]:
    """Return what came of each criterion."""
    alone = isolation.n_alone
    counted = Outcome.FAIL if alone else Outcome.PASS
    if isolation.n_records and any(each.is_least for each in isolation.alone) and not alone:
        counted = Outcome.PARTLY
    first = Finding(criterion=CRITERIA[0], outcome=counted, in_context=counted)
    return (first, *(_finding(each, attacks, limit=limit) for each in CRITERIA[1:]))


def _finding(criterion: Criterion, attacks: Attacks | None, *, limit: Limit) -> Finding:
    tried = tuple(_tried(test, attacks, left_out={}) for test in criterion.tests)
    within = tuple(_tried(test, attacks, left_out=limit.exceptions) for test in criterion.tests)
    outcomes = [_outcome(each, limit=limit) for each in (tried, within)]
    return Finding(criterion=criterion, outcome=outcomes[0], in_context=outcomes[1], tried=tried)


def _tried(test: Test, attacks: Attacks | None, *, left_out: Mapping[str, str]) -> Tried:
    names = [name for name in test.attackers if name not in left_out]
    if not names:
        return Tried(title=test.title, why="ruled out", applies=False)
    if attacks is None:
        return Tried(title=test.title, why="the original was not given")
    found = strongest(found for found in exposures(attacks) if base_name(found.attacker) in names)
    if found is not None:
        return Tried(title=test.title, found=found)
    reasons = [each.reason for each in attacks.skipped if base_name(each.attacker) in names]
    # Whoever needs something could be tried; for the others there is nothing to find in such a release.
    needs = [reason for reason in reasons if "needs " in reason or ": --" in reason]
    return Tried(title=test.title, why=(needs or reasons or ["not tried"])[0], applies=bool(needs) or not reasons)


def _outcome(tried: Iterable[Tried], *, limit: Limit) -> Outcome:
    tests = list(tried)
    found = [each.found for each in tests if each.found is not None]
    if any(is_over(each, limit=limit) for each in found):
        return Outcome.FAIL
    if any(each.found is None and each.applies for each in tests):
        return Outcome.PARTLY if found else Outcome.NOT_TESTED
    return Outcome.PARTLY if any(is_too_few(each, limit=limit) for each in found) else Outcome.PASS


class Risk(StrEnum):
    """Where what attackers find stands, beside the limit."""

    UNDER = "under"
    OVER = "over"
    TOO_FEW = "too few targets"
    UNKNOWN = "not known"


def risk_of(attacks: Attacks | None, *, limit: Limit) -> Risk:
    """Return where a release stands by all attackers that were not ruled out."""
    ruling = limit.ruling([] if attacks is None else exposures(attacks))
    if not ruling.n_considered:
        return Risk.UNKNOWN
    if any(is_over(found, limit=limit) for found in ruling.over):
        return Risk.OVER
    return Risk.TOO_FEW if ruling.over else Risk.UNDER


def exposures(attacks: Attacks) -> tuple[Exposure, ...]:
    """Return what each attacker found in the release."""
    return tuple(attempt.after for attempt in attacks.attempts)


def strongest(found: Iterable[Exposure]) -> Exposure | None:
    """Return the attacker with the highest risk; None if none had a target."""
    return max((each for each in found if each.n_targets), key=risk, default=None)


def by_reader(attacks: Attacks) -> dict[Reader, tuple[Exposure, ...]]:
    """Return what the attackers found that stand for each reader, the highest risk first."""
    ran = sorted((each for each in exposures(attacks) if each.n_targets), key=risk, reverse=True)
    return {
        reader: tuple(each for each in ran if base_name(each.attacker) in reader.attackers)
        for reader in READERS.values()
    }
