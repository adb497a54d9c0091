"""A made-up log whose terms stand nowhere else, releases of it, and a report with made-up findings."""

from __future__ import annotations

from datetime import date, datetime
from functools import cache

import msgspec
import polars as pl

from queryveil import methods
from queryveil.attacks.attacker import Exposure
from queryveil.attacks.suite import Attacks, Attempt, Skipped
from queryveil.checks.verdict import Verdict
from queryveil.comparison.methods import Method
from queryveil.data import ROLES, QueryLog
from queryveil.guarantees import KmAnonymity
from queryveil.pairing import Pair
from queryveil.release import ColumnPolicy, Ids, Release
from queryveil.reports.value import Judgement, Report, State, curves_of
from queryveil.utility.score import Measures, Score

KEY = b"open-sesame-open-sesame"
WORDS = ("kestrel", "lantern", "mulberry", "nutmeg", "otter", "quince", "heron", "kettle")
"""Nouns of WordNet that no report uses."""
N_USERS = 30
CLICKS = {name: ROLES[name] for name in ("user", "query", "time", "rank", "url")}


@cache
def made_up_log() -> QueryLog:
    """Thirty people who share most queries, each with one of their own."""
    rows = []
    for i in range(N_USERS):
        asked = [f"{WORDS[(i // 6 + j) % 8]} {WORDS[(i // 6 + j + 1) % 8]}" for j in range(6)]
        for j, query in enumerate([*asked, f"rarity{chr(97 + i % 26)}{chr(97 + i // 26)}"]):
            time = datetime(2024, 3, 1 + j, 7 + i % 12, i, j)
            rows.append((f"persona{i:02}", query, time, j, f"https://shop.example/{query.split()[0]}"))
    return QueryLog(frame=pl.DataFrame(rows, schema=CLICKS, orient="row"))


@cache
def release_by(method: str) -> Release:
    """Return a release of the log."""
    keyed = ColumnPolicy(ids=Ids.KEYED, key=KEY)
    made: dict[str, Method] = {
        "km": methods.Km(k=3, m=2),
        "kdelta": methods.Kdelta(k=3),
        "clump": methods.Clump(k=3),
        "partition": methods.Partition(k=3),
        "plink": methods.Plink(),
        "swap": methods.Swap(k=3, columns=keyed),
        "pseudonymise": methods.Pseudonymise(),
        "token_hash": methods.TokenHash(key=KEY),
        "query_threshold": methods.QueryThreshold(k=3),
    }
    return made[method].anonymize(made_up_log())


ALL = ("km", "kdelta", "clump", "partition", "plink", "swap", "pseudonymise", "token_hash", "query_threshold")


def key_of(method: str) -> bytes | None:
    """Return the key of a release, if it has one."""
    return KEY if method in ("swap", "token_hash") else None


def found(attacker: str, share: float, *, n_known: int | None = None, n_wrong: int = 0) -> Exposure:
    """Make up what an attacker found among a thousand."""
    return Exposure(
        attacker=attacker,
        knows="what a test says",
        what="people",
        n_targets=1000,
        n_found=round(1000 * share),
        n_by_chance=1.0,
        n_known=n_known,
        n_wrong=n_wrong,
    )


def made_up_attacks() -> Attacks:
    """Make up findings of every kind."""
    known = [
        Attempt(
            after=found("known_terms", n / 400, n_known=n, n_wrong=wrong),
            before=found("known_terms", n / 10, n_known=n, n_wrong=wrong),
        )
        for wrong in (0, 2)
        for n in (2, 3, 4, 6, 8)
    ]
    known += [
        Attempt(after=found("likely_terms", n / 100, n_known=n), before=found("likely_terms", n / 8, n_known=n))
        for n in (2, 3, 4, 6, 8)
    ]
    others = [
        Attempt(after=found("rare_pair", 0), before=found("rare_pair", 0.8)),
        Attempt(after=found("rebuild_1", 0.02), before=None),
        Attempt(after=found("rebuild_2+T", 0.05), before=None),
    ]
    skipped = tuple(Skipped(attacker=f"rebuild_{i}", reason="no queries changed hands") for i in (3, 4))
    return Attacks(attempts=(*known, *others), skipped=skipped, exact=False)


def made_up_report(*, state: State = State.HOLDS, warnings: tuple[str, ...] = ()) -> Report:
    """Return a report on a real release with made-up findings."""
    release = release_by("km")
    verdict = Verdict(
        promise=KmAnonymity(k=3, m=2), holds=True, witnesses=(), n_violations=0, n_users=30, n_checked_users=30
    )
    kept = Score(name="rows_kept", value=0.5, better="more", about="of the rows", group="kept", is_share=True)
    return Report(
        folder="out",
        manifest=msgspec.structs.replace(release.manifest, warnings=warnings),
        columns=tuple(release.data.columns),
        judgement=Judgement(state=state, verdict=verdict, beside_original=True),
        attacks=made_up_attacks(),
        measures=Measures(scores=(kept,), notes=("advertising is left out",)),
        curves=curves_of(Pair(made_up_log(), release=release)),
        made_on=date(2024, 3, 31),
    )
