"""Run all attacks that apply to a release, on the release and on the pseudonymised original."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from secrets import randbits
from threading import Lock

import polars as pl

from queryveil import progress
from queryveil.attacks import (
    added_rows,
    clock,
    counted_terms,
    fragments,
    known_profile,
    known_terms,
    later_log,
    membership,
    neighbour,
    rebuild,
    repeats,
    sensitive,
    shared_term,
    site_owner,
    stitch,
    sybil,
    vanity,
)
from queryveil.attacks.attacker import Attacker, AuxiliaryData, Exposure, Person
from queryveil.attacks.token_inversion import TokenInversion
from queryveil.data import Format, Layout, QueryLog, Transactions
from queryveil.errors import BadInput, BadParameter, MissingExtra
from queryveil.formats import read_original
from queryveil.guarantees import SwapAnonymity
from queryveil.html_tables import percent, table
from queryveil.pairing import ESTIMATED, Original, Pair, pseudonymised
from queryveil.release import Release, read_release
from queryveil.text.taxonomy import Taxonomy

KNOWN = (2, 3, 4, 6, 8)
"""How many terms of a target are known to those who know some."""
N_WRONG = 2
ESTIMATED_EXPOSURE = (
    f"{ESTIMATED}; a right guess at one of n people who fit equally well counts 1/n, and what is found comes out too "
    "low, above all without times; with keyed ids and their key (--ids keyed, --key FILE) it is exact"
)
_SEED_BITS = 63


def attackers(
    release: Release, *, n_targets: int = 1000, seed: int | None = None, only: Iterable[str] = ()
) -> list[Attacker]:
    """Return all attackers, or those that `only` names, with settings for a release; not all of them will fit it.

    A name stands for all settings of that attacker: `known_terms` for any number of terms, `rebuild_1` for both orders.
    """
    # The same people and facts are drawn for the release and for the original that it is compared with.
    seed = randbits(_SEED_BITS) if seed is None else seed
    found: list[Attacker] = [
        *(
            known_terms.KnownTerms(n_known=n, n_wrong=w, n_targets=n_targets, seed=seed)
            for w in (0, N_WRONG)
            for n in KNOWN
        ),
        *(known_terms.KnownTerms(n_known=n, cautious=False, n_targets=n_targets, seed=seed) for n in KNOWN),
        *(counted_terms.CountedTerms(n_known=n, n_targets=n_targets, seed=seed) for n in (3, 8)),
        known_terms.RarePair(n_targets=n_targets, seed=seed),
        vanity.Vanity(n_targets=n_targets, seed=seed),
        clock.Clock(n_targets=n_targets, seed=seed),
        clock.ClockEquals(n_targets=n_targets, seed=seed),
        membership.Membership(n_targets=n_targets, seed=seed),
        *(sybil.Sybil(early=early, n_targets=min(n_targets, sybil.N_TARGETS), seed=seed) for early in (False, True)),
        TokenInversion(seed=seed),
        added_rows.AddedRows(seed=seed),
        shared_term.SharedTerm(),
        shared_term.SharedWeight(n_targets=n_targets, seed=seed),
        known_profile.KnownProfile(n_targets=n_targets, seed=seed),
        *(sensitive.Sensitive(n_known=n, n_targets=n_targets, seed=seed) for n in (3, None)),
        later_log.LaterLog(n_targets=n_targets, seed=seed),
        *(fragments.Fragments(of_people=of_people) for of_people in (False, True)),
        stitch.Stitch(n_targets=n_targets, seed=seed),
        site_owner.SiteOwner(n_targets=n_targets, seed=seed),
        neighbour.Neighbour(n_targets=min(n_targets, neighbour.N_TARGETS), seed=seed),
        *_of_swap(release, n_targets=n_targets, seed=seed),
    ]
    wanted, names = set(only), [attacker.name.removesuffix("+T") for attacker in found]
    for name in sorted(wanted - set(names)):
        raise BadParameter("only", name, allowed=f"one of {', '.join(dict.fromkeys(names))}")
    return [attacker for attacker, name in zip(found, names, strict=True) if not wanted or name in wanted]


def _of_swap(release: Release, *, n_targets: int, seed: int | None) -> Iterator[Attacker]:
    said = release.manifest.parameters.get("growth")
    growth = said if isinstance(said, float) else 1.2
    k = release.promise.k if isinstance(release.promise, SwapAnonymity) else 2
    yield repeats.Repeats(k=k, n_targets=n_targets, seed=seed)
    yield rebuild.AsReleased()
    yield rebuild.ActiveId()
    for kind in (rebuild.Rebuild1, rebuild.Rebuild2, rebuild.Rebuild3, rebuild.Rebuild4):
        for by_time in (False, True):
            yield kind(k=k, growth=growth, by_time=by_time, seed=seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The results of one attacker.

    - `after`: what it found in the release.
    - `before`: what it found in the log with nothing but the ids changed; None where the attack means nothing there.
    """

    after: Exposure
    before: Exposure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """An attacker that did not run, and why."""

    attacker: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacks:
    """All attacks on a release.

    - `attempts`: the results of those who ran.
    - `skipped`: those who did not fit the release.
    - `exact`: whether ids tell who is who; if not, that was estimated, and a right guess at a candidate who may be one
      of n people counts 1/n.
    """

    attempts: tuple[Attempt, ...]
    skipped: tuple[Skipped, ...] = ()
    exact: bool = True

    def named(self, attacker: str, *, n_known: int | None = None, n_wrong: int = 0) -> Attempt | None:
        """Return the attempt of an attacker, None if it did not run."""
        found = {(one.after.attacker, one.after.n_known, one.after.n_wrong): one for one in reversed(self.attempts)}
        return found.get((attacker, n_known, n_wrong))

    def _repr_html_(self) -> str:
        columns = ["attacker", "knows", "before", "after", "95 % interval", "blind guessing", "surest 1 %", "certain"]
        rows = [
            [
                found.title,
                found.knows,
                None if attempt.before is None else percent(attempt.before.share),
                percent(found.share),
                found.interval_in_words.removeprefix("95 % interval "),
                percent(found.chance_share),
                None if found.surest is None else percent(found.surest.share),
                None if found.surest is None else found.surest.n_certain,
            ]
            for attempt, found in ((attempt, attempt.after) for attempt in self.attempts)
        ]
        tables = [table(columns, rows=rows, caption="What attackers found: shares of their targets")]
        if not self.exact:
            tables.append(table(("note",), rows=[(ESTIMATED,)]))
        if self.skipped:
            skipped = [[each.attacker.replace("_", " "), each.reason] for each in self.skipped]
            tables.append(table(["did not run", "because"], rows=skipped))
        return "\n".join(tables)

    def to_dict(self) -> dict[str, object]:
        """Return all figures, for machines."""
        attempts = [
            {"after": each.after.to_dict(), "before": None if each.before is None else each.before.to_dict()}
            for each in self.attempts
        ]
        return {"exact": self.exact, "attempts": attempts, "skipped": [asdict(each) for each in self.skipped]}


def as_log(original: Original) -> QueryLog:
    """Return profiles as a log of which each row has all terms of a user, as groups have them; a log as it is.

    >>> from queryveil.data import Profiles
    >>> as_log(Profiles.from_dicts({"u1": {"Guinea pig": 1, "tea": 2}})).frame.rows()
    [('u1', 'guinea_pig tea')]
    """
    if isinstance(original, QueryLog):
        return original
    if isinstance(original, Transactions):
        raise BadInput("attackers look for people: give a log; a plain file of items is one with --format transactions")
    words = pl.element().str.normalize("NFC").str.to_lowercase().str.strip_chars().str.replace_all(r"\s+", "_")
    texts = original.frame.select("user", query=pl.col("terms").list.eval(words).list.join(" "))
    return QueryLog.from_frame(texts, layout=Layout(format=Format.TRANSACTIONS))


def attack(
    original: Original | Path | str,
    release: Release | Path | str,
    *,
    key: bytes | None = None,
    taxonomy: Taxonomy | None = None,
    membership: pl.DataFrame | None = None,
    public: QueryLog | None = None,
    people: Sequence[Person] = (),
    remake: Callable[[QueryLog], Release] | None = None,
    later: QueryLog | None = None,
    only: Iterable[str] = (),
    n_targets: int = 1000,
    seed: int | None = None,
) -> Attacks:
    """Attack a release, and the pseudonymised original for comparison, with every attacker that fits.

    - `original`: the log or the profiles that the release was made from, or the file. Attackers see of it
      only what they are said to know; it is there to judge them.
    - `release`: the release, or its folder.
    - `key`: the key of keyed ids or hashed terms.
    - `taxonomy`: the taxonomy that items moved up in, if it is not WordNet.
    - `membership`: who is in which group, a table of user and group.
    - `public`: a log of the same kind by other people, which some attackers need.
    - `people`: a directory of people.
    - `remake`: runs the method of the release on a log with users of the attacker's own.
    - `later`: a log of the same people, under the same ids, from another time.
    - `only`: the names of the attackers to run.
    - `n_targets`: the most people that each seeks.
    - `seed`: repeats what is drawn.
    """
    judged = release if isinstance(release, Release) else read_release(release)
    before = read_original(original, judged.promise) if isinstance(original, str | Path) else original
    pair = Pair(as_log(before), release=judged, key=key, taxonomy=taxonomy)
    pair.check_original()
    chosen = attackers(judged, n_targets=n_targets, seed=seed, only=only)
    auxiliary = AuxiliaryData(public=public, people=people, remake=remake, key=key, membership=membership, later=later)
    return run(chosen, pair, auxiliary=auxiliary)


def run(chosen: Sequence[Attacker], pair: Pair, *, auxiliary: AuxiliaryData, with_baseline: bool = True) -> Attacks:
    """Run attackers on a release, and with a baseline on the pseudonymised original too, side by side in threads.

    They share what they read. Each draws from a generator of its own, so that figures do not depend on the others.
    """
    progress.step("telling who is who")
    is_exact = pair.identity.exact
    auxiliary = replace(auxiliary, remake=_one_at_a_time(auxiliary.remake))
    results: list[Attempt | Skipped] = []
    with ThreadPoolExecutor(max_workers=pl.thread_pool_size()) as pool:

        def start(attacker: Attacker) -> Future[Attempt | Skipped]:
            return pool.submit(_tried, attacker, pair, auxiliary=auxiliary, with_baseline=with_baseline)

        # The first reads and counts what the others find there.
        waiting = [start(attacker) for attacker in chosen[:1]]
        try:
            for i, attacker in enumerate(chosen):
                progress.step(f"attacking: {attacker.name}", i / len(chosen))
                results.append(waiting[i].result())
                if i == 0:
                    waiting += [start(other) for other in chosen[1:]]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    attempts = tuple(each for each in results if isinstance(each, Attempt))
    # Settings of one attacker that are skipped for one reason are told once.
    skipped = tuple(dict.fromkeys(each for each in results if isinstance(each, Skipped)))
    return Attacks(attempts=attempts, skipped=skipped, exact=is_exact)


def _tried(attacker: Attacker, pair: Pair, *, auxiliary: AuxiliaryData, with_baseline: bool) -> Attempt | Skipped:
    reason = attacker.skip_reason(pair, auxiliary=auxiliary)
    if reason is not None:
        return Skipped(attacker=attacker.name, reason=reason)
    try:
        found = attacker.attack(pair, auxiliary=auxiliary)
    except MissingExtra as error:
        # The method of the release cannot be run here, and whoever needs it cannot attack.
        missing = f"needs the extra {error.extra} (pip install 'queryveil[{error.extra}]')"
        return Skipped(attacker=attacker.name, reason=missing)
    # Nothing was promised of the original, so whoever adds users to it finds them all.
    auxiliary_before = replace(auxiliary, remake=pseudonymised)
    if not with_baseline or attacker.skip_reason(pair.baseline, auxiliary=auxiliary_before) is not None:
        return Attempt(after=found, before=None)
    return Attempt(after=found, before=attacker.attack(pair.baseline, auxiliary=auxiliary_before))


def _one_at_a_time(remake: Callable[[QueryLog], Release] | None) -> Callable[[QueryLog], Release] | None:
    """Let a method be run by one attacker at a time: kernels that use all cores may not be called by two."""
    if remake is None:
        return None
    lock = Lock()

    def guarded(log: QueryLog) -> Release:
        with lock:
            return remake(log)

    return guarded
